"""The rule on every op type that the installed TensorFlow has.

For each op a placement on the CPU is made up, with float dtypes where the op takes them, and the
class is looked at from sides that don't use the rule's own way to decide: the names that
TensorFlow gives to families of ops.  To read the whole list:
``python tests/runtime/test_classify_registry.py``.
"""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

import pytest

from pytest_tfdevice.classify import LISTED, Classified, classify, is_value_dtype
from pytest_tfdevice.model import ArgSpec, Device, DeviceSpec, OpSignature, Placement

pytest.importorskip("tensorflow")

CPU = Device.parse("CPU:0")
ON_GPU = DeviceSpec.parse("GPU")
FLOATS_FIRST = ("float32", "float64", "complex64", "qint8")
INTS_FIRST = ("int32", "int64", "bool", "uint8")


class Op(NamedTuple):
    signature: OpSignature
    choices: dict[str, tuple[str, ...]]
    """For each dtype attribute the dtypes that it takes; empty where it takes all."""
    dtypes: frozenset[str]
    """Those that its arguments name, and what its attributes were given."""
    found: Classified


@cache
def registry() -> dict[str, Any]:
    """Every ``OpDef``: those in ``tf.raw_ops``, and those that have a kernel only."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels, op_def_registry

    names = set(dir(tf.raw_ops)) | {k.op for k in kernels.get_all_registered_kernels().kernel}
    found = {name: op_def_registry.get(name) for name in sorted(names)}
    return {name: op_def for name, op_def in found.items() if op_def is not None}


@cache
def ops(prefer: tuple[str, ...] = FLOATS_FIRST) -> dict[str, Op]:
    """Every op type with its class, dtype attributes being of ``prefer`` where they can."""
    return {name: _op(name, op_def, prefer) for name, op_def in registry().items()}


def _op(name: str, op_def: Any, prefer: tuple[str, ...]) -> Op:
    signature = OpSignature(
        name,
        op_def.is_stateful,
        tuple(_arg(arg) for arg in op_def.input_arg),
        tuple(_arg(arg) for arg in op_def.output_arg),
        tuple((attr.name, attr.type) for attr in op_def.attr),
    )
    choices = {
        attr.name: tuple(_name(t) for t in attr.allowed_values.list.type)
        for attr in op_def.attr
        if attr.type == "type"
    }
    dtypes = {attr: _pick(allowed, prefer) for attr, allowed in choices.items()}
    placement = Placement(name, name, CPU, origin="eager", dtypes=tuple(dtypes.items()))
    args = (*signature.inputs, *signature.outputs)
    named = {arg.dtype or dtypes.get(arg.attr or "", "") for arg in args} - {""}
    return Op(signature, choices, frozenset(named), classify(placement, signature, ON_GPU))


def _arg(arg: Any) -> ArgSpec:
    return ArgSpec(
        arg.name,
        _name(arg.type) if arg.type else None,
        arg.type_attr or arg.type_list_attr or None,
        bool(arg.number_attr or arg.type_list_attr),
    )


def _name(enum: int) -> str:
    import tensorflow as tf

    return str(tf.as_dtype(enum).name).removesuffix("_ref")


def _pick(allowed: tuple[str, ...], prefer: tuple[str, ...]) -> str:
    return next((d for d in prefer if not allowed or d in allowed), allowed[0] if allowed else "")


def matching(*patterns: str, but: Iterable[str] = ()) -> set[str]:
    found = {n for n in registry() for p in patterns if fnmatch.fnmatchcase(n, p)}
    return found - set(but)


def not_of(kinds: str, names: Iterable[str]) -> dict[str, str]:
    return {n: ops()[n].found.kind for n in names if ops()[n].found.kind not in kinds.split()}


def test_the_registry_is_there() -> None:
    assert len(registry()) > 1500


def test_datasets_and_iterators_are_host_work() -> None:
    names = matching("*Dataset*", "*Iterator*")
    assert len(names) > 150
    assert not_of("host", names) == {}


def test_strings_and_variants_are_host_work() -> None:
    fixed = {
        name
        for name, op in ops().items()
        for arg in (*op.signature.inputs, *op.signature.outputs)
        if arg.dtype in {"string", "variant"}
    }
    assert len(fixed) > 300
    # A string out of nothing is a constant, such as Fact; RemoteCall calls a function.
    assert not_of("host structural", fixed) == {}
    assert {n for n in fixed if ops()[n].found.kind == "structural"} <= {
        "Fact", "KernelLabel", "RemoteCall", "TPUCompilationResult",
    }  # fmt: skip


def test_tables_queues_stacks_and_readers_are_host_work() -> None:
    families = matching(
        "*HashTable*", "LookupTable*", "InitializeTable*", "*Queue*", "Stack*", "TensorArray*",
        "TensorList*", "Barrier*", "*Reader*", "*Stage*", "*Unstage*", "*Accumulator*",
        but=("EnqueueTPUEmbedding", "StageClear"),
    )  # fmt: skip
    assert len(families) > 120
    assert not_of("host", families) == {}


def test_files_summaries_printing_and_python_are_host_work() -> None:
    families = matching(
        "*Summary", "*SummaryV2", "*SummaryWriter", "Save*", "Restore*", "*File", "Print*",
        "Assert*", "*PyFunc*", "Encode*", "Decode*",
        # These compute statistics of float tensors.
        but=("DebugNumericSummary", "DebugNumericSummaryV2", "BoostedTreesMakeStatsSummary"),
    )  # fmt: skip
    assert len(families) > 50
    assert not_of("host", families) == {}


def test_updates_of_variables_count() -> None:
    updates = matching("Resource*Apply*", "Apply*", "SparseApply*", "Resource*Scatter*",
                       "Assign*Variable*", "Scatter*",
                       but=("ResourceAccumulatorApplyGradient",))  # fmt: skip
    assert len(updates) > 80
    assert not_of("counts", updates) == {}


def test_gradients_of_layers_count() -> None:
    grads = matching("*Backprop*", "*Grad", "*GradV[23]", "*GradGrad*", "*Gradient",
                     but=matching("*Accumulator*", "TensorArray*", "*Variant*", "SymbolicGradient",
                                  "PreventGradient", "StopGradient"))  # fmt: skip
    # Unbatch and its gradient move tensors between batching queues; CSR matrices are variants.
    grads -= {"UnbatchGrad", "SparseMatrixSoftmaxGrad", "DebugGradientIdentity"}
    assert len(grads) > 80
    assert not_of("counts", grads) == {}


@pytest.mark.parametrize(
    "name",
    ["CTCGreedyDecoder", "CTCBeamSearchDecoder", "MatMul", "Conv2D", "CudnnRNNV3", "ReadVariableOp",
     "ResourceGather", "RandomUniform", "StatelessRandomNormalV2", "NonMaxSuppressionV3", "ArgMax",
     "StatefulUniform", "CollectiveReduceV2", "CheckNumerics", "Reshape", "QuantizedConv2D",
     "SparseTensorDenseMatMul", "VariableV2", "XlaReduce", "_FusedConv2D", "CropAndResize"],
)  # fmt: skip
def test_these_count(name: str) -> None:
    if name not in registry():
        pytest.skip(f"this TensorFlow has no {name}")
    assert ops()[name].found.kind == "counts"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("VarHandleOp", "structural"), ("PartitionedCall", "structural"), ("While", "structural"),
     ("StatelessIf", "structural"), ("Case", "structural"), ("Const", "structural"),
     ("ControlTrigger", "structural"), ("Placeholder", "structural"), ("HostConst", "structural"),
     ("RngReadAndSkip", "bookkeeping"), ("StatelessRandomGetKeyCounter", "bookkeeping"),
     ("BroadcastGradientArgs", "bookkeeping"), ("VarIsInitializedOp", "bookkeeping"),
     ("VariableShape", "bookkeeping"), ("Rank", "bookkeeping")],
)  # fmt: skip
def test_these_do_not_count(name: str, kind: str) -> None:
    assert ops()[name].found.kind == kind


def test_functions_whose_ops_are_seen_elsewhere_are_only_these() -> None:
    calls = {n for n, op in ops().items() if op.found.why.startswith("calls a function")}
    assert calls - {"XlaIf", "XlaWhile", "TPUPartitionedCall", "_If", "_While"} == {
        "BatchFunction", "Case", "For", "If", "MapDefun", "PartitionedCall", "RemoteCall",
        "StatefulPartitionedCall", "StatelessCase", "StatelessIf", "StatelessWhile",
        "SymbolicGradient", "While",
    }  # fmt: skip


def test_float_work_is_never_taken_for_anything_else() -> None:
    """An op on floats alone counts, unless the list names it or it makes nothing."""
    listed = {name for _, _, names in LISTED for name in names.split()}
    hidden = {
        name: op.found
        for name, op in ops().items()
        if op.dtypes
        and all(is_value_dtype(dtype) for dtype in op.dtypes)
        and op.signature.outputs
        and op.found.kind != "counts"
        and not op.found.why.startswith("calls a function")
        and name not in listed
    }
    # What has no inputs and no state makes a constant.
    sources = {name for name in hidden if not ops()[name].signature.inputs}
    assert set(hidden) - sources == set()
    assert sources <= {"HostConst", "ImmutableConst", "FakeParam"}


def test_side_effects_without_a_result_are_only_these() -> None:
    """Float ops without a result that are taken for side effects: nobody's model work.

    NegTrain (word2vec of TensorFlow 0.x) does update its weights, which only a reference would
    tell; it has no GPU kernel and is no longer in the public API.
    """
    effects = {
        name
        for name, op in ops().items()
        if op.found.why.startswith("acts on the world") and any(map(is_value_dtype, op.dtypes))
    }
    known = matching("*TPUEmbedding*", "Infeed*", "Outfeed*", "_Nccl*Send")
    assert effects - known <= {"DumpTensor", "NegTrain", "SleepOp"}


def test_integers_alone_never_count_without_a_rank() -> None:
    """An op whose every dtype is integer or boolean is bookkeeping until a rank says otherwise."""
    wrong = {
        name: op.found.why
        for name, op in ops(INTS_FIRST).items()
        if op.found.kind == "counts"
        and op.dtypes
        and not any(is_value_dtype(dtype) for dtype in op.dtypes)
        and not op.found.why.startswith("its dtypes")
    }
    assert wrong == {}


def test_what_the_list_names_exists_somewhere() -> None:
    """A name that no TensorFlow has would be a slip of the pen."""
    since_then = {"CheckPinned", "_CopyFromGpuToHost", "_CopyFromHostToGpu", "DebugIdentityV3"}
    listed = {name for _, _, names in LISTED for name in names.split()}
    assert listed - set(registry()) <= since_then


def listing() -> str:
    """Every op type under its class and the why of it."""
    groups = defaultdict(list)
    for name, op in ops().items():
        groups[f"{op.found.kind}: {op.found.why}"].append(name)
    return "\n".join(f"{why} ({len(names)})\n    {' '.join(names)}" for why, names in
                     sorted(groups.items()))  # fmt: skip


if __name__ == "__main__":
    print(listing())
