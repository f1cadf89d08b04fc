"""In the test's own process: runs pytest on the one test, and tells the run that started it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import warnings
from collections.abc import Generator
from typing import Any, NoReturn

import pytest

from pytest_tfdevice.config import ISOLATED
from pytest_tfdevice.isolation import wire
from pytest_tfdevice.isolation.job import Job

_OTHERS = ("terminalreporter", "lfplugin", "nfplugin", "stepwiseplugin")
"""Plugins that speak for a run: the one that started this process has them."""
_OPTIONS = {
    "cacheclear": False,
    "failedfirst": False,
    "lf": False,
    "log_file": os.devnull,  # the run has it open, and both would write over each other
    "maxfail": 0,
    "newfirst": False,
    "pastebin": None,
    "trace": False,
    "usepdb": False,  # there is no keyboard
    "xmlpath": None,
}
"""Options that are the run's, too."""


def main(descriptor: int) -> NoReturn:
    """Runs the test that comes over the socket ``descriptor``."""
    sock = socket.socket(fileno=descriptor)
    sock.set_inheritable(False)
    job = _receive(sock)
    threading.Thread(target=_follow, args=(sock,), daemon=True).start()
    sys.argv = list(job.argv)
    sys.exit(pytest.main(list(job.args), plugins=[IsolatedTest(sock, job)]))


class IsolatedTest:
    """The plugin: picks the test, leaves to the run what is the run's, and tells the rest."""

    __name__ = ISOLATED  # pytest's name for the plugin

    def __init__(self, sock: socket.socket, job: Job) -> None:
        self._socket = sock
        self._job = job
        self._config: pytest.Config | None = None

    def _tell(self, kind: str, content: Any, descriptors: tuple[int, ...] = ()) -> None:
        wire.send(self._socket, (kind, wire.plain(content)), descriptors)

    # ------------------------------------------------------------------ the session
    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Before any of the plugins that write for the run is configured."""
        self._config = config
        for name in _OTHERS:
            config.pluginmanager.set_blocked(name)
        given = vars(config.option)
        given.update({name: value for name, value in _OPTIONS.items() if name in given})
        if self._job.base:
            config.option.basetemp = self._job.base
        if "[" not in self._job.path:  # pytest takes that for parameters
            config.args = [self._job.path]
        coverage: Any = config.pluginmanager.get_plugin("_cov")
        if coverage is not None:
            coverage.options.cov_report = {}
            coverage.options.cov_fail_under = None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Last, so that no plugin waits for pytest-xdist; tests still see whose worker they are."""
        if self._job.worker is not None:
            session.config.workerinput = self._job.worker  # type: ignore[attr-defined]
            session.config.workeroutput = {}  # type: ignore[attr-defined]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, items: list[pytest.Item]
    ) -> Generator[None, None, None]:
        """Whatever other plugins sort out or reorder."""
        mine = [item for item in items if item.nodeid == self._job.nodeid][:1]
        if not mine:
            self._tell("trouble", f"it is not among the {len(items)} tests that were found there")
        items[:] = mine
        try:
            return (yield)
        finally:
            items[:] = mine

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell("trouble", report.longreprtext)

    def pytest_internalerror(self, excrepr: object) -> None:
        self._tell("trouble", str(excrepr))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        error = excinfo.value
        if isinstance(error, pytest.exit.Exception):
            self._tell("exit", (str(error.msg), error.returncode))
        elif not isinstance(error, pytest.Session.Interrupted):
            self._tell("interrupt", None)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.shouldstop:
            self._tell("stop", str(session.shouldstop))

    # --------------------------------------------------------------------- the test
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Now output is captured: the other side keeps hold of it, for the case of a crash."""
        self._tell("captured", None, (1, 2))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        assert self._config is not None
        hook = self._config.hook
        data = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._tell("report", data)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        if when != "runtest":
            return  # the run has collected the same
        self._tell(
            "warning",
            {
                "text": str(warning_message.message),
                "category": warning_message.category.__name__,
                "filename": warning_message.filename,
                "lineno": warning_message.lineno,
                "line": warning_message.line,
                "nodeid": nodeid,
                "location": location,
            },
        )


def _receive(sock: socket.socket) -> Job:
    reader = wire.Reader()
    while data := sock.recv(65536):
        for _, content in reader.feed(data):
            return Job(**content)
    os._exit(1)  # the run is gone


def _follow(sock: socket.socket) -> None:
    """Ends this process with the run that started it: nobody else would."""
    with contextlib.suppress(OSError):
        while sock.recv(1):
            pass
    os._exit(1)
