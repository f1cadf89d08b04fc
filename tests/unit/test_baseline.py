"""Baselines: names, what is kept of a record, the file, and what changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_records import OPERATION_LISTS, RECORDS
from tensorflow_facts import CPU, GPU, GPU1, place, record

from pytest_tfdevice.baseline import files, names
from pytest_tfdevice.baseline.compare import Change, compare
from pytest_tfdevice.baseline.entries import Entry, Environment, by_hand, keep_reasons, observe
from pytest_tfdevice.model import Device, DeviceInfo, DeviceSpec, Placement, Record
from pytest_tfdevice.patterns import Rule
from pytest_tfdevice.rules import judge
from pytest_tfdevice.serial.run_report import BaselineCheck, Operation

RULE = Rule(DeviceSpec(type="GPU"))


def op(text: str, count: int = 1, reason: str = "") -> Operation:
    """``"dense MatMul GPU:0"``."""
    scope, kind, device = text.split(" ")
    return Operation(scope, kind, device, count, reason)


def entry(*ops: Operation) -> Entry:
    return Entry(tuple(sorted(ops)))


def seen(*placements: Placement) -> list[str]:
    found = observe(judge(record(*placements), RULE))
    return [f"{o.scope} {o.type} {o.device} ×{o.count}" for o in found.operations]


def matmul(name: str, device: Device = GPU, **more: object) -> Placement:
    more.setdefault("origin", "function")
    return place("MatMul", device, "float32[2,2] float32[2,2]", "float32[2,2]", op=name, **more)


# -------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("model/dense/attention", "model/dense/attention"),
        ("model_3/dense_12/attention", "model/dense/attention"),
        ("block1/conv2_block1_1_conv", "block1/conv2_block1_1_conv"),
        ("Adam_1_2/update", "Adam/update"),
        ("a_1", "a"),
        ("_17/b", "_17/b"),
        ("q_0b6f1c9e-13a4-4a55-9c0e-0123456789ab/x", "q_*/x"),
        ("obj0x7f3a2b4c5d6e/x", "obj*/x"),
        ("m/add_1/ArithmeticOptimizer", "m/add"),
        ("ConstantFolding/m/add", "m/add"),
        ("", ""),
    ],
)
def test_numbers_and_ids_are_taken_away(name: str, plain: str) -> None:
    assert names.plain(name) == plain


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("__inference_train_step_1234", "train_step"),
        ("__forward_call_7", "call"),
        ("train_step", "train_step"),
        ("inference", "inference"),
    ],
)
def test_functions_lose_their_numbers(name: str, plain: str) -> None:
    assert names.plain_function(name) == plain


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("_FusedConv2D", "Conv2D"),
        ("_MklMatMul", "MatMul"),
        ("_MklNativeConv2D", "Conv2D"),
        ("_MklFusedBatchMatMulV2", "FusedBatchMatMulV2"),
        ("FusedBatchNormV3", "FusedBatchNormV3"),
        ("MatMul", "MatMul"),
    ],
)
def test_types_lose_their_fusions(kind: str, plain: str) -> None:
    assert names.plain_type(kind) == plain


# ------------------------------------------------------------------------------ entries


def test_operations_are_counted_by_scope_type_and_device() -> None:
    assert seen(
        matmul("m/dense/MatMul"),
        matmul("m/dense_1/MatMul"),
        matmul("m/dense_2/MatMul", CPU),
        matmul("m/head/MatMul", GPU1),
    ) == [
        "m/dense MatMul CPU:0 ×1",
        "m/dense MatMul GPU:0 ×2",
        "m/head MatMul GPU:1 ×1",
    ]


def test_runs_and_traces_are_not_counted() -> None:
    assert seen(
        matmul("MatMul", origin="eager", count=40),
        matmul("MatMul", origin="eager", count=3, dtypes=(("T", "float64"),)),
        matmul("m/MatMul", function="__inference_step_1"),
        matmul("StatefulPartitionedCall/m/MatMul", function="__inference_step_1"),
        matmul("m/MatMul", function="__inference_step_27"),
    ) == [" MatMul GPU:0 ×1", "m MatMul GPU:0 ×1"]


def test_what_counts_for_no_verdict_is_not_kept() -> None:
    shape = place("Shape", GPU, "float32[2]", "int32[1]", op="m/Shape", origin="function")
    assert seen(shape, matmul("m/MatMul")) == ["m MatMul GPU:0 ×1"]


@pytest.mark.parametrize(
    "name",
    [
        "m/conv-0-TransposeNHWCToNCHW-LayoutOptimizer",
        "m/mul-CastToFp16-1-AutoMixedPrecision",
    ],
)
def test_what_an_optimiser_made_is_not_kept(name: str) -> None:
    assert seen(matmul(name), matmul("m/MatMul")) == ["m MatMul GPU:0 ×1"]


def test_a_compiled_function_is_one_operation() -> None:
    unit = Placement(
        "StatefulPartitionedCall", "step", GPU, origin="function", unit="step", contents=9
    )
    inner = matmul("m/MatMul", origin="compiled", unit="step")
    assert seen(unit, inner) == ["step compiled function GPU:0 ×1"]


def test_operations_off_the_gpu_have_a_reason() -> None:
    found = observe(judge(record(matmul("m/MatMul", CPU)), RULE)).operations
    assert [o.reason for o in found] == ["unknown"]


@pytest.mark.parametrize(
    ("gpus", "key"),
    [
        ([DeviceInfo(GPU, simulated=True)], "simulated GPU, TensorFlow 2.21"),
        ([DeviceInfo(GPU, "NVIDIA H200")], "NVIDIA H200, TensorFlow 2.21"),
        ([DeviceInfo(GPU, "B"), DeviceInfo(GPU1, "A")], "A + B, TensorFlow 2.21"),
        ([DeviceInfo(GPU)], "GPU, TensorFlow 2.21"),
        ([DeviceInfo(CPU)], "no GPU, TensorFlow 2.21"),
    ],
)
def test_environments(gpus: list[DeviceInfo], key: str) -> None:
    assert Environment.of(Record(devices=tuple(gpus), tensorflow="2.21.0-rc1")).key == key
    assert Environment.of(Record(devices=tuple(gpus))).key == "placement log"


@pytest.mark.parametrize(
    ("reason", "written"),
    [("", False), ("dtype", False), ("dtype, no-kernel", False), ("dtype: see #4", True)],
)
def test_reasons_by_hand(reason: str, written: bool) -> None:
    assert by_hand(reason) is written


def test_reasons_by_hand_are_kept_the_nearest_first() -> None:
    new = entry(op("a MatMul CPU:0", reason="dtype"), op("b MatMul CPU:0", reason="dtype"))
    own = entry(op("a MatMul CPU:0", reason="mine"), op("b MatMul CPU:0", reason="no-kernel"))
    other = entry(op("a MatMul CPU:0", reason="theirs"), op("b MatMul CPU:0", reason="theirs"))
    kept = keep_reasons(new, own, None, other)
    assert [o.reason for o in kept.operations] == ["mine", "theirs"]


# ------------------------------------------------------------------------------ compare


def changes(old: Entry, new: Entry) -> list[str]:
    return [f"{c.kind} {c.type} {c.before}>{c.after} ×{c.count}" for c in compare(old, new)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([("a X GPU:0", 2)], [("a X GPU:0", 2)], []),
        ([("a X GPU:0", 2)], [("a X GPU:0", 1), ("a X CPU:0", 1)], ["lost X GPU:0>CPU:0 ×1"]),
        ([("a X CPU:0", 2)], [("a X GPU:0", 2)], ["gained X CPU:0>GPU:0 ×2"]),
        ([], [("a X CPU:0", 1)], ["new-off X >CPU:0 ×1"]),
        ([("a X GPU:0", 1)], [("a X GPU:0", 1), ("a X CPU:0", 3)], ["new-off X >CPU:0 ×3"]),
        ([], [("a X GPU:0", 1)], ["new X >GPU:0 ×1"]),
        ([("a X CPU:0", 1)], [], ["gone X CPU:0> ×1"]),
        ([("a X GPU:0", 1)], [("a X GPU:1", 1)], ["moved X GPU:0>GPU:1 ×1"]),
        ([("a X GPU:0", 1)], [("a X unknown", 1)], ["lost X GPU:0>unknown ×1"]),
        (
            [("a X GPU:0", 1), ("a Y CPU:0", 1)],
            [("a X CPU:0", 1), ("a Y GPU:0", 1)],
            ["lost X GPU:0>CPU:0 ×1", "gained Y CPU:0>GPU:0 ×1"],
        ),
    ],
)
def test_what_changed(
    old: list[tuple[str, int]], new: list[tuple[str, int]], expected: list[str]
) -> None:
    assert changes(entry(*(op(*o) for o in old)), entry(*(op(*o) for o in new))) == expected


@pytest.mark.parametrize(
    ("action", "passed"),
    [("checked", False), ("updated", True), ("created", True), ("missing", False)],
)
def test_a_regression_that_was_recorded_is_none(action: Any, passed: bool) -> None:
    lost = Change("lost", "a", "X", 1, "GPU:0", "CPU:0")
    assert BaselineCheck(action, "f", "t", "e", (lost,)).passed is passed


def test_a_test_meant_for_the_cpu_loses_what_leaves_it() -> None:
    old, new = op("a X CPU:0"), op("a X GPU:0")
    assert [c.kind for c in compare(Entry((old,)), Entry((new,), "CPU"))] == ["lost"]


@given(OPERATION_LISTS, OPERATION_LISTS)
def test_changes_account_for_every_operation(
    old: tuple[Operation, ...], new: tuple[Operation, ...]
) -> None:
    """Applied to the old counts, the changes give the new ones."""
    counts = {(o.scope, o.type, o.device): o.count for o in old}
    for c in compare(Entry(old), Entry(new)):
        for device, sign in ((c.before, -1), (c.after, 1)):
            if device:
                key = c.scope, c.type, device
                counts[key] = counts.get(key, 0) + sign * c.count
    assert {k: n for k, n in counts.items() if n} == {
        (o.scope, o.type, o.device): o.count for o in new
    }


@given(OPERATION_LISTS, OPERATION_LISTS)
def test_more_off_the_gpu_is_a_regression(
    old: tuple[Operation, ...], new: tuple[Operation, ...]
) -> None:
    def off(operations: tuple[Operation, ...]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for o in operations:
            if "GPU" not in o.device:
                found[o.scope, o.type] = found.get((o.scope, o.type), 0) + o.count
        return found

    before, after = off(old), off(new)
    worse = any(n > before.get(key, 0) for key, n in after.items())
    assert any(c.is_regression for c in compare(Entry(old), Entry(new))) is worse


# --------------------------------------------------------------------------------- files

TESTS = st.dictionaries(
    st.text(max_size=8),
    st.dictionaries(st.text(max_size=8), st.builds(Entry, OPERATION_LISTS), min_size=1, max_size=2),
    max_size=3,
)


@given(TESTS)
@settings(deadline=None)
def test_a_file_comes_back_the_same(tests: dict[str, dict[str, Entry]]) -> None:
    text = files.BaselineFile(tests).to_text()
    assert files.BaselineFile.from_json(json.loads(text), "f").tests == tests
    assert files.BaselineFile.from_json(json.loads(text), "f").to_text() == text


def test_a_file_has_one_operation_a_line_and_keeps_its_schema() -> None:
    stored = files.BaselineFile(
        {
            "test_b": {"GPU": entry(op("a X GPU:0", 2), op("a X CPU:0", reason='"quoted"'))},
            "test_a": {"z": Entry((), "CPU:0"), "a": entry(op("a Y GPU:0"))},
        }
    )
    assert stored.to_text().splitlines()[3:] == [
        '  "tests": {',
        '    "test_a": {',
        '      "a": {',
        '        "operations": [',
        '          {"scope": "a", "type": "Y", "device": "GPU:0", "count": 1}',
        "        ]",
        "      },",
        '      "z": {',
        '        "target": "CPU:0",',
        '        "operations": [',
        "        ]",
        "      }",
        "    },",
        '    "test_b": {',
        '      "GPU": {',
        '        "operations": [',
        '          {"scope": "a", "type": "X", "device": "CPU:0", "count": 1, '
        '"reason": "\\"quoted\\""},',
        '          {"scope": "a", "type": "X", "device": "GPU:0", "count": 2}',
        "        ]",
        "      }",
        "    }",
        "  }",
        "}",
    ]
    from test_serial import validate

    validate(json.loads(stored.to_text()), "baseline")


@given(RECORDS, RECORDS)
@settings(deadline=None, max_examples=60)
def test_create_check_update_check_is_stable(
    tmp_path_factory: pytest.TempPathFactory, first: Record, second: Record
) -> None:
    """Whatever a test ran: what was recorded passes, and recording it again changes nothing."""
    path = tmp_path_factory.mktemp("b") / "test_m.json"
    for found in (first, second):
        new = observe(judge(found, RULE))
        key = "test_m", Environment.of(found).key
        files.change(path, {key: keep_reasons(new, files.read(path).get(*key))})
        stored = files.read(path).get(*key)
        assert stored is not None
        assert compare(stored, new) == ()
        text = path.read_bytes()
        assert files.change(path, {key: keep_reasons(new, stored)}) is False
        assert path.read_bytes() == text
    # The other environment's entry is as it was, unless it is the same one.
    if Environment.of(first) != Environment.of(second):
        kept = files.read(path).get("test_m", Environment.of(first).key)
        assert kept == observe(judge(first, RULE))


def test_an_empty_file_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    files.change(path, {("test", "env"): entry(op("a X GPU:0"))})
    assert files.change(path, {("test", "env"): None}) is True
    assert not path.exists()
    assert files.change(path, {("test", "env"): None}) is False
