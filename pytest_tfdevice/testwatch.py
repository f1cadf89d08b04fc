"""Watches the body of one test and judges it: what the hooks in ``plugin`` call on.

It knows pytest's items, and reaches TensorFlow through ``capture`` only, which it imports when a
test needs it: a run without a marked test never imports TensorFlow.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfdevice.config import Settings
from pytest_tfdevice.gate.collected import node_id
from pytest_tfdevice.marks import Plan, enforced, plan

if TYPE_CHECKING:
    from pytest_tfdevice.capture.graph_log import GraphLog
    from pytest_tfdevice.devices import DeviceReport
    from pytest_tfdevice.limits import LimitVerdict
    from pytest_tfdevice.logdir import Logdir
    from pytest_tfdevice.model import Record
    from pytest_tfdevice.results import RunResults, TestResult
    from pytest_tfdevice.verdict import Verdict

EXHAUSTED = "GPU memory ran out (tfdevice)"
SECTION = "where TensorFlow ran (tfdevice)"
NOT_PLACED = "what TensorFlow could not place (tfdevice)"
"""Titles of the plugin's sections of a test's report."""

USAGE_ERRORS = "tfdevice_usage_errors"
"""Key of pytest-xdist's ``workeroutput``."""
MAX_ERRORS = 10


@dataclass
class Watched:
    """What came of watching one test."""

    record: Record
    verdicts: tuple[Verdict, ...]
    result: TestResult
    report: str = ""
    """The failure report; empty where the test passed."""
    exhausted: str = ""
    """Where the test ran out of GPU memory, what to know of it."""
    notes: str = ""
    """What to know of a test that passed; empty where there is nothing."""
    limits: tuple[LimitVerdict, ...] = ()


WATCHED = pytest.StashKey[list[Watched]]()
"""Where what was watched of a test is kept until it is reported."""


@dataclass(frozen=True)
class NotPlaced:
    """Ops that TensorFlow refused to place, which made a test raise; ``text`` is the report."""

    text: str
    count: int

    def counted_in(self, result: TestResult) -> TestResult:
        """The test's result with those ops counted as off their device."""
        return replace(
            result,
            outcome="watched" if result.outcome == "watched" else "failed",
            counting=result.counting + self.count,
            summary=self.text.partition("\n")[0],
        )


@dataclass
class TestWatch:
    """The watch over a run's tests."""

    __test__ = False

    settings: Settings
    results: list[TestResult] = field(default_factory=list)
    allowed_in: dict[str, list[str]] = field(default_factory=dict)
    """Patterns of ``allow``, each with the node ids of the tests that have it."""
    logdir: Logdir | None = None
    """Where the graphs of watched tests go."""

    def note_allow(self, items: Sequence[pytest.Item]) -> None:
        """Notes which tests have which patterns, before any is deselected."""
        for item in items:
            for pattern in {p for rule in self.plan(item).rules for p in rule.allow}:
                tests = self.allowed_in.setdefault(str(pattern), [])
                if node_id(item) not in tests[-1:]:
                    tests.append(node_id(item))

    def report(self, config: pytest.Config) -> RunResults:
        """What the run came to."""
        from pytest_tfdevice.results import RunResults
        from pytest_tfdevice.stale import stale_entries

        users: dict[str, list[str]] = self.allowed_in
        project = {str(pattern) for pattern in self.settings.allow}
        if any("::" in argument for argument in config.args):
            users = {}  # some tests were picked by name: the others may need what these don't
        elif self.settings.enforce or config.args_source.name == "ARGS":
            users = {p: tests for p, tests in users.items() if p not in project}
        stale = stale_entries(users, self.results, project)
        return RunResults(tuple(self.results), tuple(map(str, stale)))

    def plan(self, item: pytest.Item) -> Plan:
        """What the markers of a test ask for.

        Raises:
            pytest.UsageError: a marker's arguments are wrong.
        """
        return plan(item, self.settings)

    def check(self, items: Sequence[pytest.Item], workeroutput: dict[str, Any]) -> None:
        """Reads the markers of all tests; ``workeroutput`` takes what is wrong to the controller.

        Raises:
            pytest.UsageError: arguments are wrong, one message for each test.
        """
        errors = []
        for item in items:
            try:
                self.plan(item)
            except pytest.UsageError as error:
                errors.append(str(error))
        if errors:
            more = len(errors) - MAX_ERRORS
            errors[MAX_ERRORS:] = [f"… and wrong markers on {more} more tests"] if more > 0 else []
            workeroutput[USAGE_ERRORS] = errors
            raise pytest.UsageError(*errors)

    @cached_property
    def devices(self) -> DeviceReport:
        """What TensorFlow has; imports TensorFlow, where there is one."""
        from pytest_tfdevice.devices import find_devices

        found = find_devices()
        for remark in found.remarks:
            warnings.warn(pytest.PytestWarning(f"tfdevice: {remark}"), stacklevel=2)
        return found

    @cached_property
    def _lost(self) -> str:
        """Why the simulated GPU that was asked for can't be had; empty where it can."""
        from pytest_tfdevice.simulator import SimulatorError

        try:
            self.devices  # noqa: B018
        except SimulatorError as error:
            return f"--tfdevice-simulate {self.settings.simulate}: {error}"
        return ""

    def skip_reason(self, item: pytest.Item) -> str | None:
        """Why a marked test can't run here; None where it can.

        A test that can't run because the simulated GPU fails to load fails, and isn't skipped: the
        run was promised that GPU.
        """
        needs = self.plan(item)
        if not needs.marked:
            return None
        if self._lost:
            pytest.fail(self._lost, pytrace=False)
        if self.devices.build is None:
            return f"{self.devices.cause}"
        requirement = needs.requirement
        if requirement is None:
            return None
        reason = self.devices.skip_reason(
            requirement.count, requirement.memory, requirement.compute_capability
        )
        if reason is not None and not self.devices.count and sys.platform == "linux":
            count = f"--tfdevice-simulate {requirement.count}"
            reason += f" ({count} runs it on simulated ones)"
        return reason

    def runs_elsewhere(self, item: pytest.Item) -> bool:
        """True for a test that wants a process of its own.

        One that has to be skipped needs none, where asking takes no import of TensorFlow.
        """
        if not self.plan(item).isolated:
            return False
        if "tensorflow" not in sys.modules and importlib.util.find_spec("tensorflow") is not None:
            return True
        try:
            return self.skip_reason(item) is None
        except pytest.fail.Exception:  # for the same reason the test's setup fails
            return False

    @contextlib.contextmanager
    def watching(self, item: pytest.Item) -> Iterator[list[Watched]]:
        """Watches the test's body; the list holds the result once it has ended, if any."""
        found: list[Watched] = []
        needs = self.plan(item)
        report_only = not needs.judged
        everything = self.settings.watch or self.settings.enforce
        if report_only and not everything:
            yield found
            return
        if not needs.rules and self.settings.enforce and self._has_gpu():
            needs = replace(needs, rules=(enforced(self.settings),))
        from pytest_tfdevice.late_window import LateWindow

        memory_only = not (needs.rules or needs.transfers or needs.baseline or everything)
        window = LateWindow(
            needs.rules,
            wait=report_only,
            memory_only=memory_only,
            keep_graphs=self.logdir is not None,
        )
        error: BaseException | None = None
        try:
            yield found
        except BaseException as raised:
            error = raised
            raise
        finally:
            record = window.close(leftovers=any(m.max_growth is not None for m in needs.memory))
            if record is not None and (record.saw_something or not report_only):
                watched = self._judge(item, record, needs, error)
                if window.graphs is not None:
                    watched.result = self._with_graphs(watched.result, window.graphs)
                found.append(watched)
            error = None

    def _with_graphs(self, result: TestResult, log: GraphLog) -> TestResult:
        """Writes the graphs that a test ran; no test fails because they can't be written."""
        from pytest_tfdevice.capture.event_files import write

        assert self.logdir is not None
        lost = f"{log.dropped} did not fit" if log.dropped else ""
        written = 0
        try:
            folder = self.logdir.begin(result.nodeid)
            for graph in log.graphs:
                write(self.logdir.file(folder, graph.name), graph, result.nodeid)
                written += 1
        except OSError as error:
            lost = f"{len(log.graphs) - written + log.dropped} could not be written: {error}"
        return replace(result, graphs=written, graphs_lost=lost)

    def not_placed(self, item: pytest.Item, error: BaseException) -> NotPlaced | None:
        """What TensorFlow could not place, where that is why a watched test raised."""
        if not (self.plan(item).rules or self.settings.watch or self.settings.enforce):
            return None
        from pytest_tfdevice.errors.placement import find_failures

        texts: dict[str, None] = {}
        step: BaseException | None = error
        while step is not None and len(texts) < MAX_CAUSES:
            texts[str(step)] = None
            step = step.__cause__ or step.__context__
        failures = find_failures("\n".join(texts))
        if not failures:
            return None
        from pytest_tfdevice.errors.reasons import Known, reason_of
        from pytest_tfdevice.reports.errors import section

        known = Known()
        if (tensorflow := sys.modules.get("tensorflow")) is not None:
            from pytest_tfdevice.kernels.current import gpu_kernels

            known = Known(gpu_kernels(), str(tensorflow.__version__))
        text = section([(failure, reason_of(failure, known)) for failure in failures])
        return NotPlaced(text, len(failures))

    def _has_gpu(self) -> bool:
        """Asked only where TensorFlow is there already, so that it isn't imported for this."""
        return "tensorflow" not in sys.modules or self.devices.count > 0

    def _judge(
        self, item: pytest.Item, record: Record, needs: Plan, error: BaseException | None
    ) -> Watched:
        from pytest_tfdevice.kernels.current import gpu_kernels
        from pytest_tfdevice.limits import judge_limits
        from pytest_tfdevice.reports.resources import remarks as resource_remarks
        from pytest_tfdevice.reports.text import failure, remarks
        from pytest_tfdevice.results import TestResult
        from pytest_tfdevice.rules import judge

        hook = item.ihook
        hook.pytest_tfdevice_record(item=item, record=record)
        rules = [rule for rule in needs.rules if rule.marker != _ENFORCE or record_has_gpu(record)]
        kernels = gpu_kernels() if rules else None
        verdicts = tuple(
            judge(record, rule, kernels, lambda p: hook.pytest_tfdevice_classify(placement=p))
            for rule in rules
        )
        limits = judge_limits(record, needs, verdicts)
        reports = [failure(verdict, record) for verdict in verdicts if not verdict.passed]
        notes = [remarks(verdict) for verdict in verdicts if verdict.notes]
        if not verdicts:
            notes += resource_remarks(record.notes)
        idle = [limits.idle] if limits.idle else []
        reports += limits.report(record)
        return Watched(
            record,
            verdicts,
            TestResult.of(node_id(item), record, verdicts, limits.verdicts, len(idle)),
            "\n\n".join(reports + idle if reports else ()),
            _exhausted(error, record, needs),
            "\n\n".join(notes + idle),
            limits.verdicts,
        )


def open_logdir(config: pytest.Config, settings: Settings) -> Logdir | None:
    """The folder for graphs, where one is asked for.

    Raises:
        pytest.UsageError: it can't be written to.  The controller of pytest-xdist looks, once.
    """
    if settings.logdir is None:
        return None
    from uuid import uuid4

    from pytest_tfdevice.logdir import Logdir, LogdirError, check

    worker: dict[str, Any] = getattr(config, "workerinput", {})
    try:
        if not worker:
            check(settings.logdir)
    except LogdirError as error:
        raise pytest.UsageError(f"--tfdevice-logdir (ini: tfdevice_logdir): {error}") from None
    run = worker.get("testrunuid", uuid4().hex)
    return Logdir(settings.logdir, run[:8], worker.get("workerid", "main"))


_ENFORCE = "--tfdevice-enforce"

MAX_CAUSES = 8
"""How far back the causes of an exception are read."""


def _exhausted(error: BaseException | None, record: Record, needs: Plan) -> str:
    """The section on GPU memory that ran out; empty where it did not."""
    if error is None:
        return ""
    from pytest_tfdevice.capture.residents import describe_oom, find_oom
    from pytest_tfdevice.reports.resources import out_of_memory

    oom = find_oom(error)
    if oom is None:
        return ""
    found = describe_oom(oom, {memory.device: memory for memory in record.memory})
    return out_of_memory(found, [limit.marker for limit in needs.memory])


def record_has_gpu(record: Record) -> bool:
    """True where TensorFlow had a GPU, real or simulated."""
    return any(info.device.type == "GPU" for info in record.devices)
