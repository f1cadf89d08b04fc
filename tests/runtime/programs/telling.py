"""What the programs in this folder share.

A program runs TensorFlow in a process of its own.  Each function marked ``@fact`` is run at once,
and what it returns is stored under its name, for a test to compare with what TensorFlow documents.
Source lines are told by the comment at their end: ``# pin`` gives ``"pin"``.
"""

from __future__ import annotations

import json
import linecache
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any

facts: dict[str, Any] = {}


def fact(function: Callable[[], Any]) -> Callable[[], Any]:
    """Runs ``function`` and keeps its result; an error is kept too, for the test that asks."""
    try:
        facts[function.__name__] = function()
    except Exception:
        facts[function.__name__] = {"raised in the program": traceback.format_exc()}
    return function


def simulate(count: int = 1) -> None:
    """Loads simulated GPUs, before TensorFlow is imported; ends the program where it can't be."""
    from pytest_tfdevice import simulator

    try:
        simulator.load(count, "4 GiB")
    except simulator.SimulatorError as error:  # no compiler, another platform
        facts["not simulated"] = str(error)
        tell()
        sys.exit(0)


def tell() -> None:
    """Writes the facts to the file that the test named."""
    with open(sys.argv[1], "w") as file:
        json.dump(facts, file)


def tag(source: Any) -> str | None:
    """The comment at the end of a source line; the place itself where it has none."""
    if source is None:
        return None
    text = linecache.getline(source.file, source.line)
    return text.rpartition("# ")[2].strip() if "# " in text else str(source)


def ops(placements: Iterable[Any]) -> list[dict[str, Any]]:
    """Placements as data that JSON can hold."""
    return [
        {
            "op": p.op,
            "path": p.path,
            "type": p.type,
            "device": p.device.short if p.device is not None else None,
            "kind": p.kind,
            "origin": p.origin,
            "inputs": [[t.dtype, t.shape] for t in p.inputs],
            "outputs": [[t.dtype, t.shape] for t in p.outputs],
            "dtypes": dict(p.dtypes),
            "request": str(p.request.spec) if p.request is not None else None,
            "opened": tag(p.request.source) if p.request is not None else None,
            "by framework": p.request.by_framework if p.request is not None else None,
            "line": tag(p.source),
            "function": p.function,
            "host": p.host_context,
            "unit": p.unit,
            "contents": p.contents,
            "on host": p.on_host,
            "raised": p.raised,
            "count": p.count,
            "colocated": list(p.colocated_with),
        }
        for p in placements
    ]


def record(watched: Any) -> dict[str, Any]:
    """A record of a window, as data that JSON can hold."""
    found = watched.record
    return {
        "ops": ops(found.placements),
        "calls": dict(found.calls),
        "notes": list(found.notes),
        "problems": list(found.problems),
        "verdict": verdict(found),
    }


def verdict(found: Any, on: str = "GPU", **arguments: Any) -> dict[str, Any]:
    """How ``on_gpu`` judges a record."""
    judged = found.verdict(on, **arguments)
    return {
        "passed": judged.passed,
        "counting": judged.counting,
        "on target": judged.on_target,
        "problems": list(judged.problems),
        "notes": list(judged.notes),
        "framework": [p.type for p in judged.framework],
        "offenders": [
            {
                "op": o.placement.op,
                "path": o.placement.path,
                "type": o.placement.type,
                "device": o.placement.device.short if o.placement.device else None,
                "reason": o.reason.code,
                "root": o.reason.root,
                "evidence": o.reason.evidence,
                "opened": tag(o.placement.request.source) if o.placement.request else None,
                "line": tag(o.placement.source),
            }
            for o in judged.offenders
        ],
    }
