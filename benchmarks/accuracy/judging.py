"""One run of a program: what was said, held against what should be."""

from __future__ import annotations

import fnmatch
import importlib.metadata
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.accuracy.program import Planted, Program, Step


@dataclass
class Run:
    """How a program was run, and what was wrong with the answer (nothing, if it is right)."""

    program: str
    mode: str
    verdict_wrong: list[str] = field(default_factory=list)
    reason_wrong: list[str] = field(default_factory=list)
    crashed: str = ""

    @property
    def right(self) -> bool:
        return not (self.verdict_wrong or self.reason_wrong or self.crashed)


def variants(program: Program) -> tuple[bool | None, ...]:
    return (None, False) if program.takes_jit else (None,)


def runs(program: Program, where: str) -> Iterator[Run]:
    """Runs a program in all its ways, in this process."""
    for jit in variants(program):
        label = where + (", jit off" if jit is False else "")
        step, cold = _cold(program, jit, label)
        yield cold
        if program.warm and step is not None:
            yield _warm(program, jit, step, label)


def _cold(program: Program, jit: bool | None, label: str) -> tuple[Step | None, Run]:
    import pytest_tfdevice

    run = Run(program.name, f"{label}, cold")
    step: Step | None = None
    try:
        if program.cold:
            with pytest_tfdevice.watch(program.on) as watch:
                step = program.make(jit)
                step()
            _compare(program, jit, watch.record, run)
        else:
            run.mode = f"{label}, first"
            step = program.make(jit)
            step()
    except Exception:
        run.crashed = traceback.format_exc(limit=-6)
        return None, run
    return step, run


def _warm(program: Program, jit: bool | None, step: Step, label: str) -> Run:
    import pytest_tfdevice

    run = Run(program.name, f"{label}, warm")
    try:
        with pytest_tfdevice.watch(program.on) as watch:
            step()
        _compare(program, jit, watch.record, run)
    except Exception:
        run.crashed = traceback.format_exc(limit=-6)
    return run


def _compiles(jit: bool | None) -> bool:
    """True where the default of Keras' ``compile`` compiles the step (Keras 3)."""
    return jit is None and not importlib.metadata.version("keras").startswith("2.")


def _compare(program: Program, jit: bool | None, record: Any, run: Run) -> None:
    verdict = record.verdict(program.on, *program.ops, strict=program.strict)
    compiled = program.takes_jit and _compiles(jit)
    planted = program.planted
    if compiled and program.compiled is not None:
        planted = program.compiled
    expected = "error" if program.problem else "failed" if planted else "passed"
    if verdict.outcome != expected:
        run.verdict_wrong.append(f"{verdict.outcome}, not {expected}: {verdict.summary}")
        run.verdict_wrong += verdict.problems
    if not planted and bool(verdict.counting) != program.counts:
        run.verdict_wrong.append(f"{verdict.counting} operations count: {verdict.summary}")
    if program.problem and not any(program.problem in text for text in verdict.problems):
        run.reason_wrong.append(f"no problem says {program.problem!r}: {verdict.problems}")
    if compiled and program.note and not any(program.note in note for note in verdict.notes):
        run.reason_wrong.append(f"no note says {program.note!r}: {verdict.notes}")
    file = program.build.__code__.co_filename
    met: set[Planted] = set()
    for offender in verdict.offenders:
        fitting = [p for p in planted if _is(p, offender.placement)]
        met.update(fitting)
        text = f"{offender.placement.op} ({offender.placement.type}): {offender.reason.code}"
        if not fitting:
            run.verdict_wrong.append(f"false alarm {text}: {offender.why}; {offender.reason}")
        elif not any(_explains(p, offender, file) for p in fitting):
            wanted = ", ".join(sorted({p.reason for p in fitting}))
            run.reason_wrong.append(f"{text}, not {wanted}: {offender.reason}")
    for missing in planted:
        if missing.sure and missing not in met:
            run.verdict_wrong.append(f"missed {missing.type} ({missing.name})")


def _is(planted: Planted, placement: Any) -> bool:
    names = (placement.op, placement.path)
    return fnmatch.fnmatchcase(placement.type or "", planted.type) and any(
        fnmatch.fnmatchcase(name, planted.name) for name in names
    )


def _explains(planted: Planted, offender: Any, file: str) -> bool:
    if offender.reason.code != planted.reason:
        return False
    return not planted.line or f" at {file}:" in offender.reason.evidence


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
