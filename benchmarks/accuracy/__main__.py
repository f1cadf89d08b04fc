"""Runs the programs and prints a table, and last ``clean A/B, faults C/D, reasons E/F``.

Each program runs alone, in a process that did nothing else before, and after at least 20 others in
one process; cold and warm; with ``jit_compile`` at its default and off where it takes it.  It
counts as right where all its runs are.  Exit status 1 where one isn't.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import importlib.metadata
import os
import random
import sys
from collections.abc import Iterable, Iterator

from benchmarks.accuracy import judging
from benchmarks.accuracy.judging import Run
from benchmarks.accuracy.processes import Stopwatch, in_child
from benchmarks.accuracy.program import TABLE, Program, Version

BEFORE = 20
"""How many others run before the first one that counts as run after others."""

GROUP = 50
"""How many programs share a process, those before not counted."""

LIMIT = 600.0
"""Seconds that a program may take in all its ways."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("programs", nargs="*", help="names (shell patterns); all by default")
    parser.add_argument("--alone", action="store_true", help="don't run them after others too")
    parser.add_argument("--seed", type=int, default=0, help="of the order after others")
    parser.add_argument("--quiet", action="store_true", help="print only what is wrong")
    given = parser.parse_args()

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    watch = Stopwatch()
    version = _import()
    programs = _chosen(given.programs, version)
    if not programs:
        print("no such program", file=sys.stderr)
        return 2
    found: dict[str, list[Run]] = {program.name: [] for program in programs}
    for run in _alone(programs):
        found[run.program].append(run)
    if not given.alone:
        for run in _after_others(programs, given.seed):
            found[run.program].append(run)
    for program in programs:
        _print(program, found[program.name], given.quiet)
    count = sum(map(len, found.values()))
    print(f"\n{_versions()}: {count} runs of {len(programs)} programs in {watch.seconds:.0f} s")
    return _closing_line(programs, found)


def _import() -> Version:
    """TensorFlow, the simulated GPUs and the programs, before anything is forked."""
    from pytest_tfdevice import simulator

    simulator.load(count=2, memory="4 GiB", progress=judging.log)
    import tensorflow as tf

    import benchmarks.accuracy.programs  # noqa: F401  (fills the table)

    gc.freeze()
    major, minor = tf.__version__.split(".")[:2]
    return int(major), int(minor)


def _versions() -> str:
    import tensorflow as tf

    keras = importlib.metadata.version("keras")
    build = "CUDA wheel" if tf.test.is_built_with_cuda() else "CPU wheel"
    return f"TensorFlow {tf.__version__} ({build}), Keras {keras}, Python {sys.version.split()[0]}"


def _chosen(patterns: list[str], version: Version) -> list[Program]:
    fitting = (program.for_version(version) for program in TABLE.values())
    return [
        program
        for program in fitting
        if program is not None
        and (not patterns or any(fnmatch.fnmatchcase(program.name, p) for p in patterns))
    ]


def _alone(programs: Iterable[Program]) -> Iterator[Run]:
    for program in programs:
        result = in_child(lambda program=program: judging.runs(program, "alone"), LIMIT)
        yield from result.found
        wrong = not all(run.right for run in result.found) or result.died
        judging.log(f"{'WRONG' if wrong else 'right'} {program.name}")
        if result.died:
            yield Run(program.name, "alone", crashed=f"the process {result.died}")


def _after_others(programs: list[Program], seed: int) -> Iterator[Run]:
    order = random.Random(seed).sample(programs, len(programs))
    for start in range(0, len(order), GROUP):
        group = order[start : start + GROUP]
        others = [program for program in order if program not in group] or order
        before = (others * BEFORE)[:BEFORE]

        def work(before: list[Program] = before, group: list[Program] = group) -> Iterator[Run]:
            for program in before:
                for _ in judging.runs(program, "before"):
                    pass
            for program in group:
                gc.collect()
                yield from judging.runs(program, "after others")

        result = in_child(work, LIMIT * 6)
        yield from result.found
        if result.died:
            done = {run.program for run in result.found}
            for program in group:
                if program.name not in done:
                    yield Run(program.name, "after others", crashed=f"the process {result.died}")


def _print(program: Program, runs: list[Run], quiet: bool) -> None:
    wrong = [run for run in runs if not run.right]
    if quiet and not wrong:
        return
    expected = ", ".join(dict.fromkeys(p.reason for p in program.planted)) or "passes"
    state = f"WRONG in {len(wrong)} of" if wrong else "right in all"
    name = f"{program.kind:5} {program.topic:18} {program.name:36}"
    print(f"{name} {expected:24} {state} {len(runs)}")
    for run in wrong:
        for text in (*run.verdict_wrong, *run.reason_wrong, *run.crashed.splitlines()):
            print(f"        {run.mode}: {text}")


def _closing_line(programs: list[Program], found: dict[str, list[Run]]) -> int:
    clean = [p for p in programs if p.kind == "clean"]
    faults = [p for p in programs if p.kind == "fault"]

    def verdicts(program: Program) -> bool:
        runs = found[program.name]
        return bool(runs) and not any(run.verdict_wrong or run.crashed for run in runs)

    passed = sum(map(verdicts, clean))
    caught = sum(map(verdicts, faults))
    reasons = sum(all(run.right for run in found[p.name]) for p in faults if found[p.name])
    print(
        f"clean {passed}/{len(clean)}, faults {caught}/{len(faults)}, "
        f"reasons {reasons}/{len(faults)}"
    )
    right = all(run.right for runs in found.values() for run in runs)
    return 0 if right and all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
