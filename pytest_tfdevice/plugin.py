"""pytest's hooks, and nothing else: each calls on the room that does the work."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import pytest

from pytest_tfdevice import hookspecs
from pytest_tfdevice.config import Settings, add_options
from pytest_tfdevice.fixtures import placement, placement_session, tf_devices
from pytest_tfdevice.marks import marker_lines
from pytest_tfdevice.results import RunReport, TestResult
from pytest_tfdevice.simulation import Simulation
from pytest_tfdevice.testwatch import TestWatch, Watched

__all__ = ["placement", "placement_session", "tf_devices"]

SECTION = "where TensorFlow ran (tfdevice)"
NOT_PLACED = "what TensorFlow could not place (tfdevice)"
_WATCH = pytest.StashKey[TestWatch]()
_REPORT = pytest.StashKey[RunReport]()
_ALLOWED = "tfdevice_allow"
_WATCHED = pytest.StashKey[list[Watched]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Before any conftest can touch TensorFlow's devices."""
    Simulation(early_config).prepare()


def pytest_configure(config: pytest.Config) -> None:
    for line in marker_lines():
        config.addinivalue_line("markers", line)
    watch = TestWatch(Settings.of(config))
    config.stash[_WATCH] = watch
    config.pluginmanager.register(_Results(watch.results), "tfdevice-results")


def pytest_report_header(config: pytest.Config) -> list[str]:
    shown = config.stash[_WATCH].settings.effective()
    return [f"tfdevice: {', '.join(shown)}"] if shown else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Wrong marker arguments end the run here, not in the middle of it."""
    for item in items:
        config.stash[_WATCH].plan(item)
    config.stash[_WATCH].note_allow(items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    reason = item.config.stash[_WATCH].skip_reason(item)
    if reason is not None:
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Innermost of the wrappers: only the body is watched, and xfail sees the failure."""
    with item.config.stash[_WATCH].watching(item) as found:
        item.stash[_WATCHED] = found
        result = yield
    for watched in found:
        if watched.report:
            pytest.fail(watched.report, pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when != "call":
        return report
    refused = None
    if report.failed and call.excinfo is not None:
        refused = item.config.stash[_WATCH].not_placed(item, call.excinfo.value)
    for watched in item.stash.get(_WATCHED, []):
        result = watched.result if refused is None else refused.counted_in(watched.result)
        if report.skipped or (report.failed and not watched.report):
            # It was cut short: what it would have needed isn't known.
            result = replace(result, unused_allow=())
        report.tfdevice = result.to_json()  # type: ignore[attr-defined]
        # Of a test that raised before anything ran, "nothing ran" says nothing new.
        told = watched.report in str(report.longrepr) or not watched.record.saw_something
        if report.failed and watched.report and not told:
            report.sections.append((SECTION, watched.report))
    if refused is not None:
        report.sections.append((NOT_PLACED, refused.text))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of pytest-xdist says which tests have which ``allow``: only workers collect."""
    allowed = getattr(node, "workeroutput", {}).get(_ALLOWED, {})
    node.config.stash[_WATCH].allowed_in.update(allowed)


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    watch = config.stash[_WATCH]
    if hasattr(config, "workeroutput"):
        config.workeroutput[_ALLOWED] = watch.allowed_in
    elif watch.results:
        config.stash[_REPORT] = report = watch.report(config)
        config.hook.pytest_tfdevice_report(report=report)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    from pytest_tfdevice.reports.terminal import write_summary

    report = config.stash.get(_REPORT, None)
    if report is not None:
        write_summary(terminalreporter, report.tests, report.stale_allow)


class _Results:
    """Gathers results from the reports, which also come from the workers of pytest-xdist."""

    def __init__(self, results: list[TestResult]) -> None:
        self._results = results

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = getattr(report, "tfdevice", None)
        if data is not None:
            self._results.append(TestResult.from_json(data))
