"""pytest's hooks for report files and GitHub Actions, and nothing else.

Registered by ``plugin`` where an output is wanted, in the workers of pytest-xdist too: those make
the tests' reports, the controller gathers them and writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from pytest_tfdevice.config import runs_for_another
from pytest_tfdevice.gate.collected import is_marked
from pytest_tfdevice.outputs import github
from pytest_tfdevice.outputs.files import Written, obstacle, write_all
from pytest_tfdevice.outputs.gathered import Gathered
from pytest_tfdevice.reports.words import escape
from pytest_tfdevice.testwatch import TestWatch

if TYPE_CHECKING:
    from pytest_tfdevice.serial.run_report import RunReport

PARCEL = "tfdevice_report"
SKIPPED = "tfdevice_skipped"
"""Attributes of pytest's report of a test."""


class Outputs:
    """The outputs of one run, in one process."""

    def __init__(self, config: pytest.Config, watch: TestWatch) -> None:
        self._config = config
        self._watch = watch
        self._is_worker = runs_for_another(config)
        self._gathered = Gathered()
        self._written: list[Written] = []
        self._commands: list[str] = []
        self._remarks: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """A file that can't be written is better known before the tests than after."""
        if self._is_worker:
            return
        for path in self._watch.settings.report:
            if why := obstacle(path):
                raise pytest.UsageError(f"--tfdevice-report (ini: tfdevice_report): {why}")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Outside the other wrappers, which have added what they know."""
        report = yield
        if call.when == "teardown":
            return report
        from pytest_tfdevice.outputs.one_test import parcel

        packed = parcel(item, report, self._watch, whole=bool(self._watch.settings.report))
        if packed:
            setattr(report, PARCEL, packed)
        elif report.skipped and is_marked(item) and not hasattr(report, "wasxfail"):
            setattr(report, SKIPPED, True)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker:
            return
        # pytest keeps its reports until the run ends; what is packed need not stay there too.
        packed = report.__dict__.pop(PARCEL, None)
        self._gathered.add(report, packed, skipped=hasattr(report, SKIPPED))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._gathered.ended = str(excinfo.value) or type(excinfo.value).__name__

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """After the others, which may yet fail the run."""
        if self._is_worker:
            return
        settings = self._watch.settings
        if self._gathered.is_empty and not settings.report:
            return
        self._gathered.stopped(session)
        report = self._gathered.report(
            self._watch.report(self._config), session.exitstatus, self._config.rootpath
        )
        self._written = write_all(settings.report, report)
        if settings.wants_github and not self._gathered.is_empty:
            self._tell_github(report)
        if any(one.error for one in self._written) and session.exitstatus in (0, 5):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        from pytest_tfdevice.reports.terminal import write_lines

        write_lines(terminalreporter, self._lines(), "reports (tfdevice)")

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """When the last line of the terminal has been printed, and where there is no terminal."""
        if self._is_worker:
            return
        if not config.pluginmanager.has_plugin("terminalreporter"):
            for one in self._written:
                if one.error:
                    print(escape(f"tfdevice: {one.line}"), file=sys.stderr)
        if self._commands:
            github.tell(self._commands)

    def _lines(self) -> list[str]:
        return [*(one.line for one in self._written), *self._remarks]

    def _tell_github(self, report: RunReport) -> None:
        plugins = self._config.pluginmanager
        workspace = github.Workspace.of(self._config.rootpath, os.environ)
        annotated = any(plugins.has_plugin(name) for name in github.ANNOTATING)
        self._commands = github.commands(report, workspace, with_tests=not annotated)
        remark = github.summarise(report, os.environ)
        self._remarks = [remark] if remark else []
