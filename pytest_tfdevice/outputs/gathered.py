"""Gathers the tests' reports where the session is run, and makes the run's report of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tfdevice.results import LOST

if TYPE_CHECKING:
    from pytest_tfdevice import results
    from pytest_tfdevice.serial.run_report import RunReport, TestReport


@dataclass
class Gathered:
    """What has come in; of a test that was tried again the last try.

    ``ended``: why the run ended early; empty where it did not.
    """

    ended: str = ""
    _parcels: dict[str, str] = field(default_factory=dict)
    _skipped: dict[str, str] = field(default_factory=dict)
    _crashed: dict[str, str] = field(default_factory=dict)
    _ran: set[str] = field(default_factory=set)

    def add(self, report: pytest.TestReport, packed: str | None, *, skipped: str) -> None:
        """A report of pytest's; ``skipped`` is the node id of a marked test which was."""
        if str(report.outcome) == "rerun":
            return
        if report.when == "call" or report.outcome == "failed":
            self._ran.add(report.nodeid)
        if packed is not None:
            self._parcels[report.nodeid] = packed
        # Of pytest-xdist's the phase isn't one of pytest's, where a worker died.
        if report.when not in ("setup", "call", "teardown") or hasattr(report, LOST):
            self._crashed[report.nodeid] = str(report.longrepr)
        if skipped:
            self._skipped[skipped] = _reason(report)

    @property
    def is_empty(self) -> bool:
        """True where no test was watched, or skipped that is marked."""
        return not (self._parcels or self._skipped or self._crashed)

    def stopped(self, session: pytest.Session) -> None:
        """Notes what pytest stopped for by itself (``-x``, ``--maxfail``)."""
        why = session.shouldfail or session.shouldstop
        if why and not self.ended:
            self.ended = why if isinstance(why, str) else "it was stopped"

    def report(self, summed: results.RunResults, exit_status: int, root: Path) -> RunReport:
        """The run."""
        from pytest_tfdevice.outputs.build import empty
        from pytest_tfdevice.outputs.parcel import joined, unpack
        from pytest_tfdevice.outputs.paths import in_repository
        from pytest_tfdevice.serial.run_report import SkippedTest

        whole = replace(
            empty(),
            root=in_repository(root),
            tests=tuple(_crashed(*one) for one in self._crashed.items()),
            skipped=tuple(SkippedTest(*one) for one in sorted(self._skipped.items())),
            ran=len(self._ran),
            stale_allow=summed.stale_allow,
            ended=self.ended,
            exit_status=int(exit_status),
        )
        return joined(map(unpack, self._parcels.values()), whole)


def _crashed(nodeid: str, why: str) -> TestReport:
    from pytest_tfdevice.model import SourceLine
    from pytest_tfdevice.serial.run_report import TestReport

    file, _, name = nodeid.partition("::")
    summary = f"it was not watched: {why}"
    return TestReport(nodeid, "error", "failed", summary, source=SourceLine(file, 1, name))


def _reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    return str(reason).removeprefix("Skipped: ")
