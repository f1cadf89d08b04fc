"""What pytest's report of a test gets from this plugin: sections, the result, JUnit properties."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_tfdevice.gate import COMPARED
from pytest_tfdevice.testwatch import EXHAUSTED, NOT_PLACED, SECTION, WATCHED, NotPlaced, TestWatch


def add_to(
    report: pytest.TestReport,
    item: pytest.Item,
    watch: TestWatch,
    raised: pytest.ExceptionInfo[BaseException] | None,
) -> None:
    """Adds to the report of a test's body, which ``raised`` or not."""
    refused = None
    if report.failed and raised is not None:
        refused = watch.not_placed(item, raised.value)
    if not report.skipped or hasattr(report, "wasxfail"):
        _add_watched(report, item, refused)
    if refused is not None:
        report.sections.append((NOT_PLACED, refused.text))
    told = item.stash.get(COMPARED, []) or hasattr(report, "tfdevice")
    if told and watch.settings.junit:
        from pytest_tfdevice.outputs.junit import add_properties

        add_properties(item, report)


def _add_watched(report: pytest.TestReport, item: pytest.Item, refused: NotPlaced | None) -> None:
    for watched in item.stash.get(WATCHED, []):
        result = watched.result if refused is None else refused.counted_in(watched.result)
        result = result.with_baselines(item.stash.get(COMPARED, []))
        if not report.passed and not watched.report:
            # It was cut short: what it would have needed isn't known.
            result = replace(result, unused_allow=())
        expected = hasattr(report, "wasxfail")
        report.tfdevice = result.to_json(expected)  # type: ignore[attr-defined]
        text = watched.report if report.failed else watched.notes
        # Of a test that could not place its ops before any ran, "nothing ran" says nothing new.
        if refused is not None and not watched.record.saw_something:
            text = ""
        if text and text not in str(report.longrepr):
            report.sections.append((SECTION, text))
        if watched.exhausted:
            report.sections.append((EXHAUSTED, watched.exhausted))
