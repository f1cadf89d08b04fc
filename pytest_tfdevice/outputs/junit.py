"""pytest's hook for the properties of tests, which ``--junitxml`` writes and pytest-xdist brings to
where the session is run.

Registered by ``plugin``; ``tfdevice_junit = false`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_tfdevice.gate.checks import COMPARED
from pytest_tfdevice.testwatch import WATCHED

if TYPE_CHECKING:
    from pytest_tfdevice.gate.checks import Compared
    from pytest_tfdevice.reports.junit import Property

_ADDED = pytest.StashKey[list["Property"]]()


class Properties:
    """Adds to ``user_properties``."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Outside the other wrappers, which have added what they know."""
        report = yield
        if call.when != "call":
            return report
        found = _properties(item, report)
        # A JUnit file has those of the teardown's report, which takes them from the item.  What an
        # earlier try of the same test left there goes.
        earlier = item.stash.get(_ADDED, [])
        for properties in (item.user_properties, report.user_properties):
            properties[:] = [*(one for one in properties if one not in earlier), *found]
        item.stash[_ADDED] = found
        return report


def _properties(item: pytest.Item, report: pytest.TestReport) -> list[Property]:
    result = getattr(report, "tfdevice", None)
    compared = item.stash.get(COMPARED, [])
    if result is None and not compared:
        return []
    from pytest_tfdevice.outputs.paths import Shortener
    from pytest_tfdevice.reports import junit
    from pytest_tfdevice.results import TestResult

    short = Shortener(item.config.rootpath)
    found: list[Property] = []
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
    if any(
        one.action == "checked" and any(change.is_regression for change in one.changes)
        for one in compared
    ):
        return "regression"
    actions = {one.action for one in compared}
    return next(one for one in ("missing", "created", "updated", "checked") if one in actions)
