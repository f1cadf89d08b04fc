"""The failure report."""

from __future__ import annotations

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
