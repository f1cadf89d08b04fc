"""The failure report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_tfdevice.model import (
    Device,
    DeviceScope,
    DeviceSpec,
    Placement,
    Record,
    SourceLine,
    TensorInfo,
)
from pytest_tfdevice.patterns import Pattern, Rule
from pytest_tfdevice.reports.text import failure
from pytest_tfdevice.rules import judge

CPU = Device.parse("/job:localhost/replica:0/task:0/device:CPU:0")
GPU = Device.parse("/job:localhost/replica:0/task:0/device:GPU:0")


def op(name: str, kind: str, device: Device, **extra: object) -> Placement:
    floats = (TensorInfo("float32", (2, 2)),)
    facts = {"origin": "session", "inputs": floats, "outputs": floats}
    return Placement(op=name, type=kind, device=device, **{**facts, **extra})


def report(*placements: Placement, **rule: object) -> list[str]:
    record = Record(placements=placements, tensorflow="2.21.0")
    verdict = judge(record, Rule(DeviceSpec(type="GPU"), marker="on_gpu()", **rule))
    return failure(verdict, record).splitlines()


def test_files_below_the_working_directory_are_shown_relative_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    opened = SourceLine(str(tmp_path / "pkg" / "net.py"), 7, "call")
    scope = DeviceScope(DeviceSpec(type="CPU", index=0), opened, False)
    created = SourceLine(str(tmp_path / "pkg" / "net.py"), 8, "call")
    text = "\n".join(report(op("a/MatMul", "MatMul", CPU, request=scope, source=created)))
    assert "why:   tf.device asked for CPU:0 at pkg/net.py:7" in text
    assert "line:  pkg/net.py:8 in call" in text
    assert str(tmp_path) not in text


def test_an_op_of_a_session_without_a_line_says_so():
    placed = op("a/MatMul", "MatMul", CPU)
    assert any("line:  not on record" in line for line in report(placed))
    created = SourceLine("net.py", 8, "call")
    placed = op("a/MatMul", "MatMul", CPU, source=created)
    assert not any("not on record" in line for line in report(placed))


def test_what_the_test_fails_for_comes_first():
    lines = report(op("a/MatMul", "MatMul", GPU), ops=(Pattern.parse("Conv2D"),))
    assert lines[0].startswith("Conv2D was not seen; the one operation that counts ran on GPU:0")


@pytest.mark.parametrize("kind", ["_FusedConv2D", "Conv2D"])
def test_a_fused_op_is_still_what_it_was_made_of(kind: str):
    assert Pattern.parse("Conv2D").matches(op("a/Relu", kind, GPU))
    assert Pattern.parse(kind).matches(op("a/Relu", kind, GPU))
    assert not Pattern.parse("MatMul").matches(op("a/Relu", kind, GPU))


def test_a_cause_comes_before_what_it_drew_along():
    scope = DeviceScope(DeviceSpec(type="CPU", index=0), SourceLine("net.py", 7, "call"), False)
    effect = op("a/MatMul", "MatMul", CPU, colocated_with=("b/MatMul",))
    cause = op("b/MatMul", "MatMul", CPU, request=scope)
    codes = [line.rpartition(": ")[2] for line in report(effect, cause) if " on CPU:0: " in line]
    assert codes == ["requested-elsewhere", "colocated"]


def test_under_strict_what_is_there_in_name_only_is_told_once():
    integers = (TensorInfo("int32", ()),)
    hollow = op("Add", "AddV2", GPU, origin="eager", inputs=integers, outputs=integers)
    hollow = replace(hollow, on_host=True, dtypes=(("T", "int32"),))
    text = "\n".join(report(hollow, strict=True))
    assert "host-memory" in text
    assert "operation on GPU in name only" not in text


def pinned(scopes: int) -> list[str]:
    """The report on a MatMul in each of so many scopes, all of them under one tf.device."""
    scope = DeviceScope(DeviceSpec(type="CPU", index=0), SourceLine("net.py", 7, "call"))
    ops = [op(f"block_{n}/MatMul", "MatMul", CPU, request=scope) for n in range(scopes)]
    return report(*ops)


def test_many_scopes_with_one_cause_are_one_group():
    text = "\n".join(pinned(30))
    assert text.count("requested-elsewhere") == 1
    assert text.count("tf.device asked for CPU:0 at net.py:7") == 1
    assert "30 operations in 30 scopes on CPU:0" in text
    assert "block_0" in text
    assert "30 of 30 operations" in text


def test_a_few_scopes_stay_apart():
    text = "\n".join(pinned(2))
    assert "1 operation in block_0 on CPU:0: requested-elsewhere" in text
    assert "1 operation in block_1 on CPU:0: requested-elsewhere" in text


def test_scopes_with_different_causes_stay_apart():
    lines = [SourceLine("net.py", n, "call") for n in range(6)]
    scopes = [DeviceScope(DeviceSpec(type="CPU", index=0), line) for line in lines]
    ops = [op(f"b{n}/MatMul", "MatMul", CPU, request=s) for n, s in enumerate(scopes)]
    text = "\n".join(report(*ops))
    assert text.count("1 operation in b") == 6
