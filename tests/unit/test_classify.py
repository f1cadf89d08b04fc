"""Which operations count: every sentence of the rule, on signatures of TensorFlow 2.21."""

from __future__ import annotations

import dataclasses

import pytest
from tensorflow_facts import CPU, GPU, ON_GPU, SIGNATURES, asked, matmul, place

from pytest_tfdevice.classify import LISTED, classify
from pytest_tfdevice.model import DeviceSpec, Placement


def kind(placement: Placement, target: DeviceSpec = ON_GPU) -> str:
    return classify(placement, SIGNATURES.get(placement.type or ""), target).kind


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        # Structural.
        (place("NoOp"), "structural"),
        (place("Const", outs="float32[2,2]"), "structural"),
        (place("Const", outs="string[]"), "structural"),
        (place("_Arg", outs="float32[2,2]"), "structural"),
        (place("Identity", ins="float32[2,2]", outs="float32[2,2]"), "structural"),
        (place("While", ins="variant[] float32[2]", outs="variant[] float32[2]"), "structural"),
        (place("PartitionedCall", ins="string[]", outs="float32[2]"), "structural"),
        (place("VarHandleOp", outs="resource[]", dtypes=(("dtype", "float32"),)), "structural"),
        (place("__inference_step_12", ins="float32[2,2]", outs="float32[2,2]"), "structural"),
        # Host work.
        (place("MapDataset", outs="variant[]"), "host"),
        (place("IteratorGetNext", ins="resource[]", outs="float32[8,3]"), "host"),
        (place("QueueDequeueV2", ins="resource[]", outs="float32[8,3]"), "host"),
        (place("Unstage", outs="float32[8,3]"), "host"),
        (place("TensorListStack", ins="variant[] int32[1]", outs="float32[3,2]"), "host"),
        (place("HashTableV2", outs="resource[]"), "host"),
        (place("LookupTableFindV2", ins="resource[] int64[3] float32[]", outs="float32[3]"),
         "host"),
        (place("DecodeBmp", ins="string[]", outs="uint8[4,4,3]"), "host"),
        (place("WriteScalarSummary", ins="resource[] int64[] string[] float32[]"), "host"),
        (place("Assert", ins="bool[] float32[2,2]"), "host"),
        (place("Print", ins="float32[2,2]", outs="float32[2,2]"), "host"),
        (place("Timestamp", outs="float64[]"), "host"),
        (place("EagerPyFunc", ins="float32[2,2]", outs="float32[2,2]"), "host"),
        (matmul(CPU, host_context="tf.data"), "host"),
        (matmul(CPU, host_context="py_function"), "host"),
        # Bookkeeping.
        (place("Shape", ins="float32[2,2]", outs="int32[2]"), "bookkeeping"),
        (place("AddV2", ins="int32[] int32[]", outs="int32[]"), "bookkeeping"),
        (place("AddV2", ins="int64[3] int64[3]", outs="int64[3]"), "bookkeeping"),
        (place("AssignAddVariableOp", ins="resource[] int64[]"), "bookkeeping"),
        (place("ReadVariableOp", ins="resource[]", outs="int64[]"), "bookkeeping"),
        (place("VariableShape", ins="resource[]", outs="int32[2]"), "bookkeeping"),
        (place("DestroyResourceOp", ins="resource[]"), "bookkeeping"),
        (place("RngReadAndSkip", ins="resource[] int32[] uint64[]", outs="int64[3]"),
         "bookkeeping"),
        # Everything else counts.
        (matmul(CPU), "counts"),
        (matmul(CPU, "int32"), "counts"),
        (matmul(CPU, "complex64"), "counts"),
        (matmul(CPU, "qint8"), "counts"),
        (place("AddV2", ins="float32[] float32[]", outs="float32[]"), "counts"),
        (place("Greater", ins="float32[] float32[]", outs="bool[]"), "counts"),
        (place("Cast", ins="int32[]", outs="float32[]"), "counts"),
        (place("Cast", ins="float32[3]", outs="int32[3]"), "counts"),
        (place("ReadVariableOp", ins="resource[]", outs="float32[]"), "counts"),
        (place("AssignAddVariableOp", ins="resource[] float32[]"), "counts"),
        (place("AssignAddVariableOp", ins="resource[] int64[4,4]"), "counts"),
        (place("ResourceApplyAdam", ins="resource[] resource[] resource[]" + " float32[]" * 7),
         "counts"),
        (place("ResourceGather", ins="resource[] int64[3]", outs="float32[3,8]"), "counts"),
        (place("VariableV2", outs="float32[2]"), "counts"),
        (place("RandomUniform", ins="int32[2]", outs="float32[2,2]"), "counts"),
        (place("StatefulUniform", ins="resource[] int64[] int32[1]", outs="float32[4]"), "counts"),
        (place("CTCGreedyDecoder", ins="float32[9,2,5] int32[2]",
               outs="int64[4,2] int64[4] int64[2] float32[2,1]"), "counts"),
        (place("CollectiveReduceV3", ins="float32[4] resource[] int32[1,2]", outs="float32[4]"),
         "counts"),
        (place("XlaReduce", ins="float32[4] float32[]", outs="float32[]"), "counts"),
    ],
    ids=lambda value: f"{value.type}-{'-'.join(t.dtype for t in (*value.inputs, *value.outputs))}"
    if isinstance(value, Placement) else value,
)  # fmt: skip
def test_the_class_of_an_operation(placement: Placement, expected: str) -> None:
    assert kind(placement) == expected


@pytest.mark.parametrize(
    ("request_", "device", "expected"),
    [
        (asked("GPU:0"), CPU, "counts"),
        (asked("GPU:7"), GPU, "counts"),
        (asked("GPU:0"), GPU, "structural"),
        (asked("CPU:0"), CPU, "structural"),
        (asked("GPU:0", by_framework=True), CPU, "structural"),
        (None, CPU, "structural"),
    ],
    ids=["GPU-on-CPU", "GPU:7-on-GPU:0", "honoured", "CPU", "by-the-framework", "none"],
)
def test_a_refused_request_makes_even_a_variable_handle_count(request_, device, expected) -> None:
    handle = place("VarHandleOp", device, dtypes=(("dtype", "int32"),), request=request_)
    assert kind(handle) == expected


@pytest.mark.parametrize(
    ("type_", "ins", "outs", "expected"),
    [
        ("AddV2", "int32[] int32[]", "int32[]", "counts"),
        ("Shape", "float32[2]", "int32[1]", "counts"),
        ("Const", "", "int32[]", "structural"),
        ("_Arg", "", "float32[2]", "structural"),
        ("NoOp", "", "", "structural"),
        ("DecodeBmp", "string[]", "uint8[4,4,3]", "host"),
        ("LookupTableFindV2", "resource[] int64[3] int64[]", "int64[3]", "host"),
    ],
)
def test_a_refused_request_counts_unless_host_work_or_structural(type_, ins, outs, expected):
    assert kind(place(type_, CPU, ins, outs, request=asked("GPU:0"))) == expected


def test_what_the_framework_put_on_the_cpu_does_not_count() -> None:
    mean = place("AddV2", CPU, "float32[] float32[]", "float32[]")
    by_keras = dataclasses.replace(mean, request=asked("CPU:0", by_framework=True))
    by_user = dataclasses.replace(mean, request=asked("CPU:0"))
    assert kind(by_keras) == "framework"
    assert kind(by_user) == "counts"


def test_a_replica_scope_of_a_strategy_does_not_hide_the_model() -> None:
    assert kind(matmul(GPU, request=asked("GPU:0", by_framework=True))) == "counts"
    assert kind(matmul(CPU, request=asked("GPU:0", by_framework=True))) == "counts"


def test_for_a_cpu_rule_what_the_framework_put_there_counts() -> None:
    placement = matmul(CPU, request=asked("CPU:0", by_framework=True))
    assert kind(placement, DeviceSpec.parse("CPU:0")) == "counts"


def test_a_compiled_function_counts_once_whatever_is_in_it() -> None:
    unit = Placement("step", None, GPU, origin="eager", unit="step", contents=212)
    found = classify(unit, None, ON_GPU)
    assert (found.kind, found.why) == ("counts", "compiled function of 212 operations")
    assert kind(dataclasses.replace(unit, host_context="tf.data")) == "host"


def test_an_operation_that_raised_is_judged_by_its_signature() -> None:
    raised = place("MatMul", CPU, "float32[2,2] float32[3,3]", raised=True)
    assert kind(raised) == "counts"


@pytest.mark.parametrize(
    ("ins", "outs", "expected"),
    [
        ("int32 int32", "int32", "bookkeeping"),
        ("int32[4,4] int32", "int32", "counts"),
        ("int32[4,4] int32[]", "int32[4,4]", "counts"),
        ("int32[?,?] int32[]", "int32[?,?]", "counts"),
        ("int32[4,4] int32[]", "int32[]", "bookkeeping"),
    ],
)
def test_integers_of_unknown_rank_are_in_doubt(ins: str, outs: str, expected: str) -> None:
    found = classify(place("AddV2", CPU, ins, outs), SIGNATURES["AddV2"], ON_GPU)
    assert found.kind == expected
    assert found.in_doubt is (outs == "int32")


def test_what_a_log_does_not_tell_counts_and_is_in_doubt() -> None:
    found = classify(Placement("a", "MatMul", CPU), None, ON_GPU)
    assert (found.kind, found.in_doubt) == ("counts", True)
    without_dtypes = classify(Placement("a", "MatMul", CPU), SIGNATURES["MatMul"], ON_GPU)
    assert (without_dtypes.kind, without_dtypes.in_doubt) == ("counts", True)
    assert kind(Placement("a", "Const", CPU)) == "structural"
    assert classify(Placement("b", "NoOp", CPU), None, ON_GPU).kind == "structural"


def test_the_list_names_no_type_twice() -> None:
    types = [name for _, _, names in LISTED for name in names.split()]
    assert len(types) == len(set(types))
