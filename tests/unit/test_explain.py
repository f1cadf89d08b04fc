"""Why an operation is off its device, on kernels of TensorFlow 2.21."""

from __future__ import annotations

import pytest
from tensorflow_facts import (
    CPU,
    GPU,
    GPU1,
    LINE,
    ON_GPU,
    TABLE,
    asked,
    matmul,
    place,
    record,
)

from pytest_tfdevice.explain import explain
from pytest_tfdevice.kernels.match import in_name_only
from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.kernels.table import KernelEntry
from pytest_tfdevice.model import DeviceSpec, Placement, Record, SourceLine
from pytest_tfdevice.reason import Reason


def why(placement: Placement, *others: Placement, **more) -> Reason:
    target = more.pop("target", ON_GPU)
    kernels = more.pop("kernels", TABLE)
    return explain(placement, record(placement, *others, **more), kernels, target)


def resize(**more) -> Placement:
    return place("ResizeBicubic", CPU, "float32[1,8,8,3] int32[2]", "float32[1,4,4,3]", **more)


def test_requested_elsewhere_names_the_line_of_the_tf_device() -> None:
    opened = SourceLine("train.py", 40)
    reason = why(matmul(CPU, request=asked("CPU:0", source=opened), source=LINE))
    assert reason.code == "requested-elsewhere"
    assert reason.evidence == "tf.device asked for CPU:0 at train.py:40"
    assert reason.mend == "take it out of that tf.device at train.py:40, or ask for GPU there"


def test_requested_elsewhere_falls_back_on_the_line_of_the_operation() -> None:
    reason = why(matmul(CPU, request=asked("CPU:0"), source=LINE))
    assert "for the operation at model.py:12" in reason.evidence


def test_a_request_wins_over_missing_kernels_and_a_missing_gpu() -> None:
    assert why(resize(request=asked("CPU:0"))).code == "requested-elsewhere"
    alone = why(matmul(CPU, request=asked("CPU:0")), devices=(CPU,))
    assert alone.code == "requested-elsewhere"


def test_a_function_inherits_the_request_of_its_call() -> None:
    call = Placement("step", "__inference_step_3", CPU, origin="eager", request=asked("CPU:0"))
    reason = why(matmul(CPU, function="step"), call)
    assert reason.code == "requested-elsewhere"
    assert "asked for CPU:0 when step was called" in reason.evidence


def test_another_gpu_than_the_rule_wants() -> None:
    first = DeviceSpec.parse("GPU:0")
    on_the_other = matmul(GPU1, request=asked("GPU:1"))
    assert why(on_the_other, devices=(CPU, GPU, GPU1), target=first).code == "requested-elsewhere"


def test_no_kernel() -> None:
    reason = why(resize())
    assert reason.code == "no-kernel"
    assert reason.evidence == "TensorFlow 2.21.0 has no GPU kernel for ResizeBicubic"
    assert 'allow="ResizeBicubic"' in reason.mend


def test_dtype_lists_what_the_kernels_take() -> None:
    reason = why(matmul(CPU, "int32"))
    assert reason.code == "dtype"
    assert reason.evidence == (
        "MatMul has no GPU kernel for T=int32; it has for T: bfloat16, complex128, complex64, "
        "float16, float32, float64"
    )
    assert reason.mend.startswith("cast int32 to float32 or float16 before it, or allow=")


def test_a_float_is_not_told_to_be_an_integer() -> None:
    takes = KernelEntry("Relu", "GPU", (("T", ("float32", "int64", "float64")),))
    relu = place("Relu", dtypes=(("T", "bfloat16"),))
    reason = why(relu, kernels=KernelRegistry("2.12.1", "table", [takes]))
    assert reason.code == "dtype"
    assert reason.mend.startswith("cast bfloat16 to float32 or float64 before it")


def test_dtype_of_a_pair_names_the_one_that_is_wrong() -> None:
    cast = place("Cast", CPU, "int64[2,2]", "float32[2,2]")
    reason = why(cast)
    assert reason.code == "dtype"
    assert "it has for SrcT: float8_e5m2, int32" in reason.evidence
    assert "DstT:" not in reason.evidence


@pytest.mark.parametrize("type_", ["VarHandleOp", "VariableV2"])
def test_the_int32_variable_is_told_to_be_int64(type_: str) -> None:
    variable = place(type_, CPU, dtypes=(("dtype", "int32"),), request=asked("GPU:0"))
    reason = why(variable)
    assert reason.code == "dtype"
    assert "for dtype=int32" in reason.evidence
    assert reason.mend == "make the variable int64 or float32"


def test_colocated_follows_the_chain_to_the_operation_that_decides() -> None:
    cause = resize(op="resize")
    middle = matmul(CPU, op="middle", colocated_with=("resize",))
    reason = why(matmul(CPU, op="end", colocated_with=("middle",)), middle, cause)
    assert reason.code == "colocated"
    assert reason.root == "no-kernel"
    assert "tied by colocation to middle (MatMul)" in reason.evidence
    assert "tied by colocation to resize (ResizeBicubic)" in reason.evidence
    assert "no GPU kernel for ResizeBicubic" in reason.evidence


def test_a_group_is_tied_both_ways() -> None:
    """An update without a kernel takes its variable along, and that its initial value."""
    update = resize(op="update", colocated_with=("weight",))
    weight = matmul(CPU, op="weight")
    initial = matmul(CPU, op="initial", colocated_with=("weight",))
    assert why(weight, update, initial).root == "no-kernel"
    reason = why(initial, update, weight)
    assert (reason.code, reason.root) == ("colocated", "no-kernel")
    assert reason.evidence.startswith("tied by colocation to weight (MatMul), there because: ")


def test_colocate_with_copies_the_request_of_another_operation() -> None:
    pinned = matmul(CPU, op="pinned", request=asked("CPU:0", source=LINE))
    tied = matmul(CPU, op="tied", request=asked("CPU:0"), colocated_with=("pinned",))
    reason = why(tied, pinned)
    assert (reason.code, reason.root) == ("colocated", "requested-elsewhere")
    own = matmul(CPU, op="own", request=asked("CPU:0", source=LINE), colocated_with=("pinned",))
    assert why(own, pinned).code == "requested-elsewhere"


def test_a_ring_of_colocations_ends() -> None:
    one = matmul(CPU, op="one", colocated_with=("two",))
    two = matmul(CPU, op="two", colocated_with=("one",))
    assert why(one, two).code == "unknown"


def test_a_large_group_in_which_each_is_tied_to_each_is_searched_once() -> None:
    names = tuple(f"m{i}" for i in range(200))
    group = [matmul(CPU, op=name, colocated_with=names) for name in names]
    group[150] = resize(op="m150", colocated_with=names)
    assert why(*group).root == "no-kernel"


def test_own_missing_kernel_comes_before_colocation_but_not_before_a_request() -> None:
    tied = resize(op="a", colocated_with=("b",))
    assert why(tied, matmul(CPU, "int32", op="b")).code == "no-kernel"
    requested = matmul(CPU, op="b", request=asked("CPU:0"))
    assert why(tied, requested).code == "colocated"
    assert why(tied, requested, kernels=None).root == "requested-elsewhere"


def test_an_update_follows_its_variable() -> None:
    variable = place("VarHandleOp", CPU, op="w", dtypes=(("dtype", "float32"),),
                     request=asked("CPU:0", source=LINE))  # fmt: skip
    read = place("ReadVariableOp", CPU, "resource[]", "float32[2]")
    reason = why(read, variable)
    assert (reason.code, reason.root) == ("colocated", "requested-elsewhere")
    assert "its variable is, such as w (VarHandleOp)" in reason.evidence
    assert "model.py:12" in reason.evidence


def test_an_update_of_a_variable_from_before_the_window() -> None:
    reason = why(place("ReadVariableOp", CPU, "resource[]", "float32[2]"))
    assert reason.code == "colocated"
    assert "from before the test was watched" in reason.evidence


def test_host_memory() -> None:
    reason = why(place("AddV2", CPU, "int32[4,4] int32[4,4]", "int32[4,4]"))
    assert reason.code == "host-memory"
    assert "keeps every tensor in host memory for T=int32" in reason.evidence


def test_in_name_only() -> None:
    ints = place("AddV2", GPU, "int32[4,4] int32[4,4]", "int32[4,4]")
    signatures = record().signatures
    assert in_name_only(ints, signatures["AddV2"], TABLE)
    assert not in_name_only(ints, signatures["AddV2"], None)
    assert not in_name_only(matmul(GPU), signatures["MatMul"], TABLE)
    read = place("ReadVariableOp", GPU, "resource[]", "float32[2]")
    assert not in_name_only(read, signatures["ReadVariableOp"], TABLE)
    assert in_name_only(matmul(GPU, on_host=True), signatures["MatMul"], None)
    assert not in_name_only(matmul(CPU, on_host=True), signatures["MatMul"], None)
    assert why(ints).code == "host-memory"


def test_no_gpu_where_the_index_is_not_there() -> None:
    reason = why(matmul(CPU, request=asked("GPU:7", source=LINE)))
    assert reason.code == "no-gpu"
    assert reason.evidence == "GPU:7 was wanted at model.py:12; there is only GPU:0"


def test_no_gpu_where_the_rule_wants_one_that_is_not_there() -> None:
    assert why(matmul(GPU), target=DeviceSpec.parse("GPU:3")).code == "no-gpu"


def test_no_gpu_on_a_host_without_any() -> None:
    reason = why(matmul(CPU, "int32"), devices=(CPU,))
    assert reason.code == "no-gpu"
    assert "TensorFlow has no GPU, only CPU:0" in reason.evidence


def test_moved_tells_before_and_after() -> None:
    reason = why(matmul(CPU, placed_on=GPU))
    assert reason.code == "moved"
    assert reason.evidence == "it was placed on GPU:0; an optimiser moved it to CPU:0"
    assert why(resize(placed_on=CPU)).code == "no-kernel"


def test_xla_names_the_unit_and_what_it_holds() -> None:
    unit = Placement("step", None, CPU, origin="eager", unit="step", contents=212,
                     request=asked("CPU:0", source=LINE))  # fmt: skip
    reason = why(unit)
    assert reason.code == "xla"
    assert reason.evidence == (
        "compiled function step of 212 operations was called on CPU:0; tf.device asked for CPU:0 "
        "at model.py:12"
    )
    assert reason.mend == "call it under tf.device('GPU:0')"


def test_unknown_says_what_is_missing() -> None:
    no_table = why(matmul(CPU), kernels=None, tensorflow="2.22.0")
    assert no_table.code == "unknown"
    assert no_table.evidence == (
        "there is no table of the GPU kernels of TensorFlow 2.22.0 to look it up in"
    )
    no_dtypes = why(matmul(CPU, dtypes=()))
    assert no_dtypes.code == "unknown"
    assert "dtypes are not in the record" in no_dtypes.evidence
    assert "no way to know" in why(matmul(None)).evidence
    assert "names no op type" in why(Placement("a", None, CPU)).evidence
    log = Record(placements=(matmul(CPU),), signatures=record().signatures)
    assert "doesn't say which devices" in explain(matmul(CPU), log, TABLE, ON_GPU).evidence
    assert "an input that was there" in why(matmul(CPU)).evidence


def test_for_a_cpu_rule() -> None:
    target = DeviceSpec.parse("CPU:0")
    assert why(matmul(GPU, request=asked("GPU:0")), target=target).code == "requested-elsewhere"
    assert "prefers a GPU" in why(matmul(GPU), target=target).evidence


def test_an_operation_on_its_device_has_no_reason() -> None:
    with pytest.raises(ValueError, match="MatMul is on GPU:0, which is GPU"):
        why(matmul(GPU))


def test_every_reason_is_one_line_each() -> None:
    cases = [resize(), matmul(CPU, "int32"), matmul(None), matmul(CPU, placed_on=GPU),
             matmul(CPU, request=asked("GPU:7")), matmul(CPU, request=asked("CPU:0"))]  # fmt: skip
    for reason in map(why, cases):
        assert reason.mend
        assert "\n" not in reason.evidence + reason.mend
