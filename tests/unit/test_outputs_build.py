"""What was watched of a test becomes its report, where the test ran."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_tfdevice.memory import GpuMemory, MemoryLimit, judge_memory
from pytest_tfdevice.model import (
    Device,
    DeviceInfo,
    DeviceScope,
    DeviceSpec,
    Placement,
    Record,
    SourceLine,
    TensorInfo,
)
from pytest_tfdevice.outputs.build import Seen, report_of, without_the_rest
from pytest_tfdevice.patterns import Rule, parse_patterns
from pytest_tfdevice.results import TestResult
from pytest_tfdevice.rules import judge
from pytest_tfdevice.serial.run_report import TestReport
from pytest_tfdevice.verdict import Verdict

GPU = Device("localhost", 0, 0, "GPU", 0)
GPU1 = Device("localhost", 0, 0, "GPU", 1)
CPU = Device("localhost", 0, 0, "CPU", 0)
FLOATS = (TensorInfo("float32", (2, 2)),)


def op(name: str, device: Device, **more: Any) -> Placement:
    facts = {"inputs": FLOATS, "outputs": FLOATS, "dtypes": (("T", "float32"),)}
    return Placement(name, name, device, **{**facts, **more})


def verdict(record: Record, device: str = "GPU", **more: Any) -> Verdict:
    return judge(record, Rule(DeviceSpec.parse(device), marker=f"on_device({device!r})", **more))


def report(record: Record, *verdicts: Verdict, result: TestResult | None = None) -> TestReport:
    item: Any = SimpleNamespace(
        nodeid="a/t.py::test_x",
        listchain=list,
        location=("a/t.py", 4, "test_x"),
        config=SimpleNamespace(rootpath=Path("/w")),
        ihook=SimpleNamespace(pytest_tfdevice_classify=lambda placement: None),
    )
    result = result or TestResult.of(item.nodeid, record, verdicts)
    (found,) = report_of(item, Seen(record, result, verdicts), "failed").tests
    return found


def off(test: TestReport) -> dict[str, str]:
    """Reason by op, of what offends."""
    return {placement.op: reason.code for placement, reason in test.offenders()}


def test_of_several_rules_each_offender_counts_once() -> None:
    record = Record((op("Exp", GPU), op("Sin", GPU1), op("Cos", CPU)))
    test = report(record, verdict(record, "GPU"), verdict(record, "GPU:0"))
    assert set(off(test)) == {"Sin", "Cos"}
    assert (test.counting, test.on_target) == (3, 1)
    assert [check.marker for check in test.checks] == ["on_device('GPU')", "on_device('GPU:0')"]


def test_what_could_not_be_placed_is_counted() -> None:
    record = Record((op("Exp", GPU),))
    judged = verdict(record)
    plain = TestResult.of("t", record, (judged,))
    refused = TestResult(**{**plain.__dict__, "outcome": "failed", "counting": 3})
    test = report(record, judged, result=refused)
    assert (test.outcome, test.counting, test.on_target) == ("failed", 3, 1)


def test_what_is_excused_is_still_in_the_operations_as_in_a_baseline() -> None:
    record = Record((op("Exp", CPU), op("Sin", GPU)))
    test = report(record, verdict(record, allow=parse_patterns(["Exp"])))
    assert {(o.type, o.device) for o in test.operations} == {("Exp", "CPU:0"), ("Sin", "GPU:0")}
    assert off(test) == {}
    (excused,) = (j for p, j in test.rows() if j is not None and p.op == "Exp")
    assert (excused.allowed, excused.counts) == ("Exp", False)


def test_files_are_named_from_the_root() -> None:
    scope = DeviceScope(DeviceSpec.parse("CPU:0"), SourceLine("/w/a/m.py", 3))
    placed = op("Exp", CPU, request=scope, source=SourceLine("/w/a/m.py", 4))
    record = Record((placed,))
    test = report(record, verdict(record))
    ((placement, reason),) = test.offenders()
    assert placement.source == SourceLine("a/m.py", 4)
    assert reason.evidence == "tf.device asked for CPU:0 at a/m.py:3"
    assert "/w/" not in reason.mend
    assert test.source == SourceLine("a/t.py", 5, "test_x")


def test_a_summary_needs_the_offenders_only() -> None:
    record = Record((op("Exp", GPU), op("Sin", CPU), op("Cos", GPU)))
    item = report(record, verdict(record))
    (slim,) = without_the_rest(_run(item)).tests
    assert [placement.op for placement in slim.placements] == ["Sin"]
    assert off(slim) == off(item)
    assert (slim.counting, slim.on_target) == (3, 2)


def _run(test: TestReport) -> Any:
    from pytest_tfdevice.serial.run_report import RunReport

    return RunReport(tests=(test,))


def test_memory_and_its_limit() -> None:
    memory = (GpuMemory(GPU, before=0, peak=2048, after=0, total=4096),)
    record = Record((op("Exp", GPU),), memory=memory, devices=(DeviceInfo(GPU),))
    limit = judge_memory(memory, MemoryLimit(max_bytes=1024))
    item: Any = SimpleNamespace(
        nodeid="t", location=("t.py", None, "t"), config=SimpleNamespace(rootpath=Path("/w"))
    )
    judged = verdict(record)
    result = TestResult.of("t", record, (judged,), (limit,))
    (test,) = report_of(item, Seen(record, result, (judged,), limits=(limit,)), "failed").tests
    assert [(c.kind, c.outcome) for c in test.checks] == [
        ("placement", "passed"),
        ("memory", "failed"),
    ]
    assert (dict(test.memory), test.gpu_memory) == ({"GPU:0": 2048}, memory)
    assert test.source is None
