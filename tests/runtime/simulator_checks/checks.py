"""What the scripts in this folder share: a process that runs many checks and writes what it saw.

A script registers functions with ``@check`` and ends with ``run()``.  Each function returns
something that JSON can hold; a function that raises leaves its traceback instead.  One import of
TensorFlow costs seconds, so checks share a process wherever they can.
"""

from __future__ import annotations

import json
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

from pytest_tfdevice.capture.output import OutputCapture

_checks: dict[str, Callable[[], Any]] = {}


def check(function: Callable[[], Any]) -> Callable[[], Any]:
    _checks[function.__name__] = function
    return function


def run() -> None:
    """Runs the checks in order and writes their results to the file named by the script's last
    argument."""
    results = {}
    for name, function in _checks.items():
        try:
            results[name] = {"value": function()}
        except BaseException:
            results[name] = {"error": traceback.format_exc()[-4000:]}
    with open(sys.argv[-1], "w") as file:
        json.dump(results, file)


def short(device: str) -> str:
    """``GPU:0`` of a device's full name."""
    return re.sub(r"^.*device:", "", device or "")


def where(tensor: Any) -> list[str]:
    """The device that made a tensor, and the one that has its memory."""
    return [short(tensor.device), short(tensor.backing_device)]


def devices_by_node(metadata: Any) -> dict[str, str]:
    """Node name to device, from a RunMetadata."""
    graphs = [*metadata.partition_graphs]
    for function in metadata.function_graphs:
        graphs.extend(function.partition_graphs)
    return {node.name: short(node.device) for graph in graphs for node in graph.node}


def computed_on(device: str, metadata: Any) -> list[str]:
    """Types of the ops on ``device`` that have a floating-point result and aren't of a pipeline."""
    found = set()
    for function in metadata.function_graphs:
        for node in function.post_optimization_graph.node:
            pipeline = "Dataset" in node.op or "Iterator" in node.op
            plain = node.op in {"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "Const"}
            floats = any(node.attr[name].type == 1 for name in ("T", "dtype", "DstT"))
            if short(node.device) == device and floats and not pipeline and not plain:
                found.add(node.op)
    return sorted(found)


class Output:
    """Captures what this process and C++ write to stdout and stderr.

    TensorFlow's placer prints through C's stdio, which keeps it back unless it is flushed.
    """

    def __enter__(self) -> Output:
        self.text = ""
        self._capture = OutputCapture()
        self._capture.__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        self._capture.__exit__(*exc)
        self.text = (self._capture.stdout + self._capture.stderr).decode(errors="replace")
