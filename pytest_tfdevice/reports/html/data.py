"""A run's report → what the page shows, as plain data.

The page's scripts know this form and no other: what changes in :class:`RunReport` is taken up here.
All text is escaped for reading (no control characters); the page puts it in as text, never as
markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_tfdevice.baseline import names
from pytest_tfdevice.baseline.compare import on
from pytest_tfdevice.model import DeviceInfo, DeviceSpec, Placement
from pytest_tfdevice.reports.html.columns import Row, columns
from pytest_tfdevice.reports.words import count, escape, percent
from pytest_tfdevice.serial.run_report import Operation, RunReport, TestReport

UNKNOWN = "unknown"
_ORDER = {"failed": 0, "error": 1, "passed": 2, "watched": 3}


def run(report: RunReport) -> dict[str, Any]:
    """The head of the page: the conclusion, on what it ran, and a line for each test."""
    tests = ordered(report)
    return {
        "conclusion": conclusion(report),
        "outcome": _worst(report),
        "tensorflow": escape(report.tensorflow),
        "python": escape(report.python),
        "simulated": report.simulated,
        "devices": [_device(info) for info in report.devices],
        "tests": [_line(test) for test in tests],
    }


def ordered(report: RunReport) -> list[TestReport]:
    """What failed first; else as in the report."""
    return sorted(report.tests, key=lambda test: _ORDER.get(test.outcome, 1))


def conclusion(report: RunReport) -> str:
    """The run in one sentence."""
    if not report.tests:
        return "No test was watched"
    outcomes = Counter(test.outcome for test in report.tests)
    judged = len(report.tests) - outcomes["watched"]
    if not judged:
        return f"{count(len(report.tests), 'test')} watched, none judged"
    parts = []
    if outcomes["failed"]:
        parts.append(f"{outcomes['failed']:,} of {count(judged, 'judged test')} failed")
    if outcomes["error"]:
        parts.append(f"{count(outcomes['error'], 'test')} could not be judged")
    if not parts:
        parts.append(f"{count(judged, 'judged test')} passed")
    if outcomes["watched"]:
        parts.append(f"{outcomes['watched']:,} more watched only")
    return "; ".join(parts)


def test(report: TestReport) -> dict[str, Any]:
    """All that the page shows of one test."""
    return {
        "id": escape(report.nodeid),
        "outcome": report.outcome,
        "summary": _lines(report.summary),
        "target": escape(report.target),
        "counting": report.counting,
        "onTarget": report.on_target,
        "share": percent(report.on_target / report.counting) if report.counting else "",
        "devices": _counted(report.devices),
        "problems": [_lines(problem) for problem in report.problems],
        "notes": [_lines(note) for note in report.notes],
        "memory": _counted(report.memory),
        "transfers": None
        if report.transfers is None
        else {"count": report.transfers.count, "bytes": report.transfers.bytes},
        "operations": columns(rows(report)),
    }


def rows(report: TestReport) -> Iterator[Row]:
    """A row for each placement where they are there in full, else for each sum of operations."""
    is_on = _is_on(report.target)
    if not report.placements:
        for op in report.operations:
            yield _of_operation(op, is_on)
        return
    known = {(op.scope, op.type, op.device): op for op in report.operations}
    for placement in report.placements:
        device = UNKNOWN if placement.device is None else placement.device.short
        key = (names.scope_of(placement), names.type_of(placement), device)
        yield _of_placement(placement, device, known.get(key), is_on)


def _of_operation(op: Operation, is_on: Callable[[str], bool]) -> Row:
    return Row(
        scope=op.scope,
        type=op.type,
        device=op.device,
        reason=op.reason,
        weight=op.count,
        counts=op.counts,
        off=not is_on(op.device),
    )


def _of_placement(
    placement: Placement, device: str, op: Operation | None, is_on: Callable[[str], bool]
) -> Row:
    scope, _, name = placement.path.rpartition("/")
    source = placement.source
    return Row(
        scope=scope,
        name=name,
        type=names.type_of(placement),
        device=device,
        reason=op.reason if op is not None else "",
        file=source.file if source is not None else "",
        line=source.line if source is not None else 0,
        function=placement.function or "",
        runs=placement.count,
        counts=op is not None and op.counts,
        off=not is_on(device),
    )


def _is_on(target: str) -> Callable[[str], bool]:
    spec = DeviceSpec.parse(target)
    known: dict[str, bool] = {}

    def is_on(device: str) -> bool:
        if device not in known:
            known[device] = on(device, spec)
        return known[device]

    return is_on


def _line(report: TestReport) -> dict[str, Any]:
    return {
        "id": escape(report.nodeid),
        "outcome": report.outcome,
        "off": report.counting - report.on_target,
        "total": sum(report.devices.values()),
    }


def _worst(report: RunReport) -> str:
    outcomes = {test.outcome for test in report.tests}
    return next((outcome for outcome in _ORDER if outcome in outcomes), "watched")


def _device(info: DeviceInfo) -> dict[str, Any]:
    return {
        "name": info.device.short,
        "description": escape(info.description),
        "memory": info.memory,
        "simulated": info.simulated,
    }


def _counted(amounts: Mapping[str, int]) -> list[list[Any]]:
    return [[escape(name), amount] for name, amount in sorted(amounts.items())]


def _lines(text: str) -> str:
    """Escaped, but for line ends."""
    return "\n".join(map(escape, text.split("\n")))
