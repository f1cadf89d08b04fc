"""A run's report → what the page shows, as plain data.

The page's scripts know this form and no other: what changes in :class:`RunReport` is taken up here.
All text is escaped for reading (no control characters); the page puts it in as text, never as
markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_tfdevice.model import DeviceInfo
from pytest_tfdevice.reports import run_words
from pytest_tfdevice.reports.html import figures
from pytest_tfdevice.reports.html.columns import columns
from pytest_tfdevice.reports.html.rows import rows
from pytest_tfdevice.reports.words import percent, printable
from pytest_tfdevice.serial.run_report import RunReport, TestReport

_ORDER = {"failed": 0, "error": 1, "expected": 2, "passed": 3, "watched": 4}


def run(report: RunReport) -> dict[str, Any]:
    """The head of the page: the conclusion, on what it ran, and a line for each test."""
    return {
        "outcome": _worst(report),
        "tensorflow": printable(report.tensorflow),
        "python": printable(report.python),
        "plugin": printable(report.plugin),
        "ran": report.ran,
        "remarks": [_lines(remark) for remark in run_words.remarks(report)],
        "simulated": report.simulated,
        "devices": [_device(info) for info in report.devices],
        "tests": [_line(test) for test in ordered(report)],
        "skipped": [[printable(s.nodeid), _lines(s.reason)] for s in report.skipped],
        "staleAllow": [printable(entry) for entry in report.stale_allow],
    }


def ordered(report: RunReport) -> list[TestReport]:
    """What failed first; else as in the report."""
    return sorted(report.tests, key=lambda test: _ORDER.get(test.outcome, 1))


def conclusion(report: RunReport) -> str:
    """The run in one sentence, which begins a page."""
    said = run_words.conclusion(report)
    return said[:1].upper() + said[1:]


def test(report: TestReport) -> dict[str, Any]:
    """All that the page shows of one test."""
    return {
        "id": printable(report.nodeid),
        "outcome": report.outcome,
        "pytestOutcome": printable(report.pytest_outcome),
        "summary": _lines(report.summary),
        "text": _lines(report.text),
        "source": printable(str(report.source or "")),
        "target": printable(report.target),
        "counting": report.counting,
        "share": percent(report.on_target / report.counting) if report.counting else "",
        "devices": _counted(report.devices),
        "checks": [[c.outcome, printable(c.marker), _lines(c.summary)] for c in report.checks],
        "problems": [_lines(problem) for problem in report.problems],
        "notes": [_lines(note) for note in report.notes],
        "memory": figures.memory(report),
        "transfers": figures.transfers(report),
        "baselines": figures.baselines(report),
        "operations": columns(rows(report)),
    }


def _line(report: TestReport) -> dict[str, Any]:
    return {
        "id": printable(report.nodeid),
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
        "description": printable(info.description),
        "memory": info.memory,
        "simulated": info.simulated,
    }


def _counted(amounts: Mapping[str, int]) -> list[list[Any]]:
    return [[printable(name), amount] for name, amount in sorted(amounts.items())]


def _lines(text: str) -> str:
    """Escaped, but for line ends."""
    return "\n".join(map(printable, text.split("\n")))
