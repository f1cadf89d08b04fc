"""A run's report → what the page shows, as plain data.

The page's scripts know this form and no other: what changes in :class:`RunReport` is taken up here.
All text is escaped for reading (no control characters); the page puts it in as text, never as
markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pytest_tfdevice.model import DeviceInfo
from pytest_tfdevice.reports.html import figures
from pytest_tfdevice.reports.html.columns import columns
from pytest_tfdevice.reports.html.rows import rows
from pytest_tfdevice.reports.words import count, escape, percent
from pytest_tfdevice.serial.run_report import RunReport, TestReport

_ORDER = {"failed": 0, "error": 1, "expected": 2, "passed": 3, "watched": 4}


def run(report: RunReport) -> dict[str, Any]:
    """The head of the page: the conclusion, on what it ran, and a line for each test."""
    return {
        "outcome": _worst(report),
        "tensorflow": escape(report.tensorflow),
        "python": escape(report.python),
        "plugin": escape(report.plugin),
        "ran": report.ran,
        "exitStatus": report.exit_status,
        "ended": _lines(report.ended),
        "simulated": report.simulated,
        "devices": [_device(info) for info in report.devices],
        "tests": [_line(test) for test in ordered(report)],
        "skipped": [[escape(s.nodeid), _lines(s.reason)] for s in report.skipped],
        "staleAllow": [escape(entry) for entry in report.stale_allow],
    }


def ordered(report: RunReport) -> list[TestReport]:
    """What failed first; else as in the report."""
    return sorted(report.tests, key=lambda test: _ORDER.get(test.outcome, 1))


def conclusion(report: RunReport) -> str:
    """The run in one sentence."""
    if not report.tests:
        return "No test was watched"
    outcomes = Counter(test.outcome for test in report.tests)
    judged = len(report.tests) - outcomes["watched"] - outcomes["expected"]
    parts = []
    if outcomes["failed"]:
        parts.append(f"{outcomes['failed']:,} of {count(judged, 'judged test')} failed")
    elif outcomes["passed"]:
        parts.append(f"{count(outcomes['passed'], 'judged test')} passed")
    if outcomes["error"]:
        parts.append(f"{count(outcomes['error'], 'test')} could not be judged")
    if outcomes["expected"]:
        parts.append(f"{count(outcomes['expected'], 'test')} failed as expected (xfail)")
    if not parts:
        return f"{count(len(report.tests), 'test')} watched, none judged"
    if outcomes["watched"]:
        parts.append(f"{outcomes['watched']:,} more watched only")
    return "; ".join(parts)


def test(report: TestReport) -> dict[str, Any]:
    """All that the page shows of one test."""
    return {
        "id": escape(report.nodeid),
        "outcome": report.outcome,
        "pytestOutcome": escape(report.pytest_outcome),
        "summary": _lines(report.summary),
        "text": _lines(report.text),
        "source": escape(str(report.source or "")),
        "target": escape(report.target),
        "counting": report.counting,
        "share": percent(report.on_target / report.counting) if report.counting else "",
        "devices": _counted(report.devices),
        "checks": [[c.outcome, escape(c.marker), _lines(c.summary)] for c in report.checks],
        "problems": [_lines(problem) for problem in report.problems],
        "notes": [_lines(note) for note in report.notes],
        "memory": figures.memory(report),
        "transfers": figures.transfers(report),
        "baselines": figures.baselines(report),
        "operations": columns(rows(report)),
    }


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
