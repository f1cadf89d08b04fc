"""What became of a test → the parcel that travels with pytest's report of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_tfdevice.gate import COMPARED
from pytest_tfdevice.gate.collected import asks_for_baseline
from pytest_tfdevice.results import TestResult
from pytest_tfdevice.testwatch import EXHAUSTED, NOT_PLACED, WATCHED, TestWatch

if TYPE_CHECKING:
    from pytest_tfdevice.serial.run_report import RunReport


def parcel(
    item: pytest.Item, report: pytest.TestReport, watch: TestWatch, *, whole: bool
) -> str | None:
    """The packed report of a test; None of one of which there is nothing to tell.

    ``whole``: with all its placements, not only those that offend.
    """
    try:
        found = _report(item, report, watch)
        return _packed(found, whole) if found is not None else None
    except Exception as error:  # a report that can't be made must not break the run
        from pytest_tfdevice.outputs import build

        why = f"its report could not be made: {type(error).__name__}: {error}"
        return _packed(build.broken(item, why, report.outcome), whole)


def _packed(found: RunReport, whole: bool) -> str:
    from pytest_tfdevice.outputs.build import without_the_rest
    from pytest_tfdevice.outputs.parcel import pack

    return pack(found if whole else without_the_rest(found))


def _report(item: pytest.Item, report: pytest.TestReport, watch: TestWatch) -> RunReport | None:
    if report.when == "setup":
        return _broken(item, report, watch)
    watched = item.stash.get(WATCHED, [])
    result = getattr(report, "tfdevice", None)
    compared = item.stash.get(COMPARED, [])
    if not (watched and result is not None) and not compared:
        return None
    from pytest_tfdevice.outputs import build

    if watched and result is not None:
        target = watch.plan(item).target
        seen = build.watched(item, target, watched[0], TestResult.from_json(result), compared)
    else:
        seen = build.compared_only(item, compared)
    text = "\n\n".join(_texts(report, [one.report for one in watched], seen.compared))
    return build.report_of(item, replace(seen, text=text), str(report.outcome))


def _broken(item: pytest.Item, report: pytest.TestReport, watch: TestWatch) -> RunReport | None:
    """A marked test whose setup failed: nothing of it was watched, and nobody may take it for one
    that passed."""
    if not report.failed or not (watch.plan(item).judged or asks_for_baseline(item)):
        return None
    from pytest_tfdevice.outputs import build

    why = f"it was not watched: its setup failed: {_cause(report.longreprtext)}"
    return build.broken(item, why, report.outcome)


def _cause(text: str) -> str:
    """The line of a traceback that says what was wrong."""
    lines = text.strip().splitlines()
    marked = [line.removeprefix("E").strip() for line in lines if line.startswith("E ")]
    return next(iter([*marked, *lines]), "")


def _texts(
    report: pytest.TestReport, reports: Iterable[str], compared: Iterable[object]
) -> Iterable[str]:
    """The failure report, and the plugin's sections that say more."""
    if not report.failed:
        return
    yield from filter(None, reports)
    said = report.longreprtext
    if any(compared) and not any(text in said for text in reports if text):
        yield said
    for title, text in report.sections:
        if title in (EXHAUSTED, NOT_PLACED):
            yield f"{title.removesuffix(' (tfdevice)')}\n{text}"
