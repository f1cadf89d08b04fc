"""pytest's hooks for the merge gate, and nothing else: each calls on the room that does the work.

Registered by ``plugin`` in every run, so that what does the work is imported when there is some.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfdevice.config import Settings, is_isolated, runs_for_another
from pytest_tfdevice.gate import COMPARED
from pytest_tfdevice.gate.collected import Collected, asks_for_baseline, is_marked, name_of, node_id
from pytest_tfdevice.marks import plan

if TYPE_CHECKING:
    from pytest_tfdevice.gate.checks import Checks, Seen
    from pytest_tfdevice.gate.keeper import Keeper
    from pytest_tfdevice.gate.skips import ExpectedSkips
    from pytest_tfdevice.model import Record

COLLECTED = "tfdevice_collected"
"""Key of pytest-xdist's ``workeroutput``."""

_SEEN: pytest.StashKey[list[Seen]] = pytest.StashKey()


class Gate:
    """The merge gate of one run, in one process."""

    def __init__(self, config: pytest.Config, settings: Settings) -> None:
        self._config = config
        self._settings = settings
        self._is_worker = runs_for_another(config)
        self._began = False
        self._collected = Collected()
        self._kept: Keeper | None = None
        self._skips = self._expected_skips()
        self._lines: list[str] = []

    def _expected_skips(self) -> ExpectedSkips | None:
        if not self._settings.expected_skips:
            return None
        from pytest_tfdevice.gate.skips import ExpectedSkips

        return ExpectedSkips.read(self._settings.expected_skips)

    @cached_property
    def _checks(self) -> Checks:
        from pytest_tfdevice.gate.checks import Checks

        return Checks(self._settings, self._config.rootpath)

    def _keeper(self) -> Keeper:
        if self._kept is None:
            from pytest_tfdevice.gate.keeper import Keeper

            self._kept = Keeper(self._settings, self._config.rootpath, self._collected)
        return self._kept

    # ------------------------------------------------------- what others call
    def check_marked(self, item: pytest.Item, records: Sequence[Record]) -> None:
        """Compares what a marked test ran, once it has ended well."""
        wanted = plan(item, self._settings)
        if wanted.baseline is not None:
            for record in records:
                self.check(item, record, wanted.baseline.name, wanted.target)

    def check(self, item: pytest.Item, record: Record, name: str | None, on: str) -> None:
        """Compares a record with the baseline of a test."""
        __tracebackhide__ = True
        if self._settings.baseline == "off":
            return
        seen = item.stash.setdefault(_SEEN, [])
        found = self._checks.check(item, record, name, on)
        if any((one.test, one.environment) == (found.test, found.environment) for one in seen):
            pytest.fail(
                f"{found.test} was compared with its baseline already: give each check a name",
                pytrace=False,
            )
        seen.append(found)

    @property
    def _is_controller(self) -> bool:
        """True where the workers of pytest-xdist collect."""
        return self._config.pluginmanager.has_plugin("dsession")

    # ------------------------------------------------------------------ hooks
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Promises are looked after once, before there is a worker, and not to list tests."""
        if self._settings.require and not (self._is_worker or session.config.option.collectonly):
            from pytest_tfdevice.gate.promise import keep

            keep(self._settings.require)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._collected.reported(report, self._config.rootpath)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self._collected.add(items)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self._collected.add(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Another try of the same test begins afresh."""
        item.stash[_SEEN] = []
        item.stash[COMPARED] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Only now all tests are known: the collection may have been interrupted."""
        self._began = not session.config.option.collectonly

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if self._skips is not None and is_marked(item):
            self._skips.judge(report, node_id(item))
            report.tfdevice_marked = node_id(item)  # type: ignore[attr-defined]
        if call.when == "call" and report.passed and asks_for_baseline(item):
            seen = [one.to_json() for one in item.stash.get(_SEEN, [])]
            told = [name_of(item), str(self._checks.file_of(item)), seen]
            # As ASCII: pytest-xdist dies of a name that is no Unicode (a lone surrogate).
            report.tfdevice_baseline = json.dumps(told)  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = getattr(report, "tfdevice_baseline", None)
        if told is not None:
            self._keeper().add(*json.loads(told))
        marked = getattr(report, "tfdevice_marked", None)
        if self._skips is not None and marked is not None:
            self._skips.add(report, marked)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        collected = getattr(node, "workeroutput", {}).get(COLLECTED)
        if collected is not None:
            self._collected.merge(collected)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if is_isolated(self._config):
            return
        if not self._is_controller:
            self._collected.finish(self._config, ended=self._began)
        if self._is_worker:
            self._config.workeroutput[COLLECTED] = self._collected.to_json()  # type: ignore[attr-defined]
            return
        from pytest_tfdevice.gate.places import has_places

        settings, root = self._settings, self._config.rootpath
        failed = False
        if self._kept is not None or has_places(
            self._collected.modules, settings.baseline_dir, root
        ):
            keeper = self._keeper()
            keeper.finish()
            self._lines += keeper.lines
            failed = keeper.failed
        if self._skips is not None:
            stale = self._skips.stale(self._collected)
            self._lines += stale
            failed = failed or bool(stale)
        if failed and session.exitstatus in (0, 5):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lines:
            from pytest_tfdevice.reports.terminal import write_lines

            write_lines(terminalreporter, self._lines)
