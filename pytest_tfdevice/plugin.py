"""pytest's hooks, and nothing else: each calls on the room that does the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfdevice import hookspecs
from pytest_tfdevice.config import Settings, is_isolated
from pytest_tfdevice.fixtures import (
    GATE,
    placement,
    placement_baseline,
    placement_session,
    tf_devices,
)
from pytest_tfdevice.gate import COMPARED
from pytest_tfdevice.gate.hooks import Gate
from pytest_tfdevice.marks import marker_lines
from pytest_tfdevice.options import add_options
from pytest_tfdevice.simulation import Simulation
from pytest_tfdevice.testwatch import USAGE_ERRORS, WATCHED, TestWatch, open_logdir

if TYPE_CHECKING:
    from pytest_tfdevice.results import RunResults, TestResult

__all__ = ["placement", "placement_baseline", "placement_session", "tf_devices"]

_WATCH = pytest.StashKey[TestWatch]()
_REPORT: pytest.StashKey[RunResults] = pytest.StashKey()
_ALLOWED = "tfdevice_allow"
_PATH = list(sys.path)
"""As it was at the start: for the processes of isolated tests."""


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
    settings = Settings.of(config)
    watch = TestWatch(settings, logdir=open_logdir(config, settings))
    config.stash[_WATCH] = watch
    config.pluginmanager.register(_Results(watch.results), "tfdevice-results")
    config.stash[GATE] = Gate(config, watch.settings)
    config.pluginmanager.register(config.stash[GATE], "tfdevice-gate")
    if watch.settings.wants_outputs and not config.option.collectonly:
        from pytest_tfdevice.outputs.hooks import Outputs

        config.pluginmanager.register(Outputs(config, watch), "tfdevice-outputs")


def pytest_report_header(config: pytest.Config) -> list[str]:
    shown = config.stash[_WATCH].settings.effective()
    return [f"tfdevice: {', '.join(shown)}"] if shown else []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Wrong marker arguments end the run here, not in the middle of it."""
    watch = config.stash[_WATCH]
    watch.check(items, getattr(config, "workeroutput", {}))
    watch.note_allow(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker of pytest-xdist tells when it ends.

    It can't end the run by itself, so that its usage error is raised here; and only workers collect
    tests, so that they say which tests have which ``allow``.
    """
    told = getattr(node, "workeroutput", {})
    if told.get(USAGE_ERRORS):
        raise pytest.UsageError(*told[USAGE_ERRORS])
    node.config.stash[_WATCH].allowed_in.update(told.get(_ALLOWED, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """What a worker of pytest-xdist isn't told by itself."""
    from pytest_tfdevice.isolation.job import INVOCATION, invocation

    node.workerinput[INVOCATION] = invocation(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Before plugins that run a test again: they do so in the test's own process."""
    if is_isolated(item.config) or not item.config.stash[_WATCH].runs_elsewhere(item):
        return None
    from pytest_tfdevice.isolation import parent

    parent.run(item, nextitem, _PATH)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    reason = item.config.stash[_WATCH].skip_reason(item)
    if reason is None:
        return
    # As a marker, so that pytest shows the test's place and not this one's.
    item.add_marker(pytest.mark.skip(reason=reason), append=False)
    if not item.config.pluginmanager.has_plugin("skipping"):
        pytest.skip(reason)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Innermost of the wrappers: only the body is watched, and xfail sees the failure."""
    with item.config.stash[_WATCH].watching(item) as found:
        item.stash[WATCHED] = found
        result = yield
    for watched in found:
        if watched.report:
            pytest.fail(watched.report, pytrace=False)
    item.config.stash[GATE].check_marked(item, [watched.record for watched in found])
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    stash = item.stash
    if call.when == "call" and (report.failed or stash.get(WATCHED, []) or stash.get(COMPARED, [])):
        from pytest_tfdevice.sections import add_to

        add_to(report, item, item.config.stash[_WATCH], call.excinfo)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    watch = config.stash[_WATCH]
    if is_isolated(config):
        return
    if hasattr(config, "workeroutput"):
        config.workeroutput[_ALLOWED] = watch.allowed_in
    elif watch.results:
        config.stash[_REPORT] = report = watch.report(config)
        config.hook.pytest_tfdevice_report(report=report)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    report = config.stash.get(_REPORT, None)
    if report is not None:
        from pytest_tfdevice.reports.terminal import write_graphs, write_summary

        settings = config.stash[_WATCH].settings
        write_summary(terminalreporter, report.tests, report.stale_allow, settings.top)
        if settings.logdir is not None:
            logdir = os.path.relpath(settings.logdir, config.invocation_params.dir)
            write_graphs(terminalreporter, report.tests, logdir)


class _Results:
    """Gathers results from the reports, which also come from the workers of pytest-xdist."""

    def __init__(self, results: list[TestResult]) -> None:
        self._results = results

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = getattr(report, "tfdevice", None)
        # pytest-rerunfailures reports each try; the last one is the test's.
        if data is not None and str(report.outcome) != "rerun":
            from pytest_tfdevice.results import TestResult

            self._results.append(TestResult.from_json(data))
