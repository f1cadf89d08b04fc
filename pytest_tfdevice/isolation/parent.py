"""In the run: has a test run in a process of its own, and replays what became of it."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from pytest_tfdevice.isolation import job as jobs
from pytest_tfdevice.isolation.process import TestProcess, describe_end
from pytest_tfdevice.results import LOST, TestResult

When = Literal["setup", "call", "teardown"]

ENDED = "earlier fixtures that ended here"
"""Title of a section."""
_PHASE = {"setup": "its setup", "call": "the test's body", "teardown": "its teardown"}


def run(item: pytest.Item, nextitem: pytest.Item | None, path: list[str]) -> None:
    """What ``pytest_runtest_protocol`` does for any test; ``path`` is ``sys.path`` at the start."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    replay = Replay(item)
    replay.run(path)
    replay.finish(_tear_down(item, nextitem))
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    replay.stop()


class Replay:
    """One test, and what its process tells of it."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._last: pytest.TestReport | None = None
        self._teardown: pytest.TestReport | None = None
        self._troubles: list[str] = []
        self._stop: BaseException | None = None

    def run(self, path: list[str]) -> None:
        """Runs the test to its end, whatever that is, and reports it."""
        config = self._item.config
        with TestProcess(
            jobs.Job.of(self._item).to_json(),
            path=path,
            env=jobs.environment(config),
            swallow=config.getoption("capture", "no") == "fd",
        ) as process:
            try:
                for kind, content in process.messages():
                    if kind == "end":
                        break
                    getattr(self, f"_on_{kind}")(content)
                self._end(process, process.wait())
            except KeyboardInterrupt:
                process.interrupt()
                raise
            except pytest.fail.Exception as error:  # of a timer that interrupts what runs here
                process.kill()
                self._fail(str(error), process)

    def finish(self, ended: pytest.TestReport | None) -> None:
        """Reports the teardown; ``ended`` is the error of what earlier tests had set up here."""
        if ended is not None and self._teardown is not None:
            if self._teardown.failed:
                self._teardown.sections.append((ENDED, ended.longreprtext))
                ended = None
            else:
                ended.sections = [*self._teardown.sections, *ended.sections]
                self._teardown = None
        self._log_teardown()
        if ended is not None:
            self._log(ended)

    def stop(self) -> None:
        """Ends the run where the test did (``pytest.exit``, Ctrl-C)."""
        if self._stop is not None:
            raise self._stop

    # --------------------------------------------------------------------- messages
    def _on_captured(self, _: None) -> None:
        """Its descriptors are what counts."""

    def _on_report(self, data: dict[str, Any]) -> None:
        config = self._item.config
        self._log_teardown()
        data["nodeid"] = self._item.nodeid  # in a worker of pytest-xdist it may have an ending
        report = config.hook.pytest_report_from_serializable(config=config, data=data)
        self._last = report
        if report.when == "teardown":
            # Held until the process has ended: it may still die, and that is the test's doing.
            self._teardown = report
        else:
            self._log(report)

    def _on_warning(self, data: Mapping[str, Any]) -> None:
        message = warnings.WarningMessage(
            data["text"],
            _category(data["category"]),
            data["filename"],
            data["lineno"],
            line=data["line"],
        )
        self._item.ihook.pytest_warning_recorded.call_historic(
            kwargs={
                "warning_message": message,
                "when": "runtest",
                "nodeid": data["nodeid"],
                "location": data["location"],
            }
        )

    def _on_trouble(self, text: str) -> None:
        self._troubles.append(text)

    def _on_stop(self, why: str) -> None:
        self._item.session.shouldstop = why

    def _on_exit(self, told: tuple[str, int | None]) -> None:
        self._stop = pytest.exit.Exception(*told)

    def _on_interrupt(self, _: None) -> None:
        self._stop = KeyboardInterrupt()

    # -------------------------------------------------------------------- the end
    def _end(self, process: TestProcess, status: int | None) -> None:
        ended_well = self._teardown is not None or self._stop is not None
        if ended_well and not self._troubles and (status is not None and status >= 0):
            return
        when = self._phase
        text = (
            f"{self._item.nodeid} ran in a process of its own (isolated=True), which "
            f"{describe_end(status)} "
            + ("after the test had ended" if ended_well else f"before {_PHASE[when]} had ended")
        )
        hint = "without isolated=True the test runs in pytest's own process"
        self._fail("\n".join([text, *self._troubles, hint]), process)

    @property
    def _phase(self) -> When:
        """What the test was in."""
        if self._last is None:
            return "setup"
        return "call" if self._last.when == "setup" and self._last.passed else "teardown"

    def _fail(self, text: str, process: TestProcess) -> None:
        """A report in place of the one that never came, or that can't be trusted."""
        when = self._phase
        call = pytest.CallInfo.from_call(lambda: pytest.fail(text, pytrace=False), when)
        report = _report(self._item, call)
        if when != "teardown":
            # What it was watched for died with it: so that nobody takes it for one that passed.
            result = TestResult(self._item.nodeid, "error", {}, summary=text.partition("\n")[0])
            report.tfdevice = result.to_json()  # type: ignore[attr-defined]
            setattr(report, LOST, True)
        for name, written in process.output().items():
            report.sections.append((f"Captured {name} {when}", written))
        if when == "teardown":
            self._teardown = report
        else:
            self._log(report)

    def _log_teardown(self) -> None:
        if self._teardown is not None:
            self._log(self._teardown)
            self._teardown = None

    def _log(self, report: pytest.TestReport) -> None:
        self._item.ihook.pytest_runtest_logreport(report=report)


def _tear_down(item: pytest.Item, nextitem: pytest.Item | None) -> pytest.TestReport | None:
    """Ends what earlier tests have set up here and the next one doesn't need; gives the report of
    an error, which pytest counts as the test's.

    The runner's own part of the hook: others expect a test that was set up.
    """
    runner: Any = item.config.pluginmanager.get_plugin("runner")
    call = pytest.CallInfo.from_call(
        lambda: runner.pytest_runtest_teardown(item=item, nextitem=nextitem),
        "teardown",
        reraise=(pytest.exit.Exception, KeyboardInterrupt),
    )
    return None if call.excinfo is None else _report(item, call)


def _report(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
    """Not by the hook, whose implementations expect a test that was set up here."""
    return pytest.TestReport.from_item_and_call(item, call)


def _category(name: str) -> type[Warning]:
    """A warning's class by its name; one that only looks so where the class isn't to be had."""
    for module in (builtins, pytest):
        found = getattr(module, name, None)
        if isinstance(found, type) and issubclass(found, Warning):
            return found
    return type(name, (Warning,), {})
