"""The properties of a test, which ``--junitxml`` writes and pytest-xdist brings to where the
session is run; ``tfdevice_junit = false`` leaves them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_tfdevice.gate import COMPARED
from pytest_tfdevice.outputs.paths import Shortener
from pytest_tfdevice.reports import junit
from pytest_tfdevice.results import TestResult
from pytest_tfdevice.testwatch import WATCHED

if TYPE_CHECKING:
    from pytest_tfdevice.gate.checks import Compared

_ADDED = pytest.StashKey[list[junit.Property]]()


def add_properties(item: pytest.Item, report: pytest.TestReport) -> None:
    """Adds them to the report of a test's body, once all else is known of it."""
    found = _properties(item, report)
    # A JUnit file has those of the teardown's report, which takes them from the item.  What an
    # earlier try of the same test left there goes.
    earlier = item.stash.get(_ADDED, [])
    for properties in (item.user_properties, report.user_properties):
        properties[:] = [*(one for one in properties if one not in earlier), *found]
    item.stash[_ADDED] = found


def _properties(item: pytest.Item, report: pytest.TestReport) -> list[junit.Property]:
    result = getattr(report, "tfdevice", None)
    compared = item.stash.get(COMPARED, [])
    short = Shortener(item.config.rootpath)
    found: list[junit.Property] = []
    if result is not None:
        offenders = (
            replace(offender, placement=short.placement(offender.placement))
            for watched in item.stash.get(WATCHED, [])
            for verdict in watched.verdicts
            for offender in verdict.offenders
        )
        summed = TestResult.from_json(result)
        found += junit.of_result(replace(summed, summary=short.text(summed.summary)), offenders)
    if compared:
        changes = [change for one in compared for change in one.changes]
        found += junit.of_baseline(_state(compared), changes)
    return found


def _state(compared: Sequence[Compared]) -> str:
    """The worst that came of a test's comparisons."""
    if any(one.lost for one in compared):
        return "regression"
    actions = {one.action for one in compared}
    return next(one for one in ("missing", "created", "updated", "checked") if one in actions)
