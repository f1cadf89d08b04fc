"""Signatures and kernels of TensorFlow, copied by hand, and short ways to make placements.

Source: ``op_def_registry.get(name)`` and ``kernels.get_registered_kernels_for_op(name)`` of the
CUDA-enabled wheel of TensorFlow 2.21.0: of the kernels those that the tests need, of the ``bool``
and other plain attributes few.
"""

from __future__ import annotations

from typing import Any

from pytest_tfdevice.kernels.table import KernelEntry
from pytest_tfdevice.model import (
    ArgSpec,
    Device,
    DeviceInfo,
    DeviceScope,
    DeviceSpec,
    OpSignature,
    Placement,
    Record,
    SourceLine,
    TensorInfo,
)

CPU = Device.parse("CPU:0")
GPU = Device.parse("GPU:0")
GPU1 = Device.parse("GPU:1")
ON_GPU = DeviceSpec.parse("GPU")
LINE = SourceLine("model.py", 12, "step")


def op(type: str, inputs: str = "", outputs: str = "", attrs: str = "", stateful: bool = False):
    """``op("MatMul", "a:T b:T", "product:T", "T:type")``; ``@float32`` is a fixed dtype."""
    return OpSignature(
        type,
        stateful,
        tuple(_arg(text) for text in inputs.split()),
        tuple(_arg(text) for text in outputs.split()),
        tuple((a.split(":")[0], a.split(":")[1]) for a in attrs.split()),
    )


def _arg(text: str) -> ArgSpec:
    name, _, kind = text.partition(":")
    if kind.startswith("@"):
        return ArgSpec(name, dtype=kind[1:])
    return ArgSpec(name, attr=kind.removesuffix("*"), is_list=kind.endswith("*"))


ADAM = "beta1_power:T beta2_power:T lr:T beta1:T beta2:T epsilon:T grad:T"
SHARED = "container:string shared_name:string"

SIGNATURES = {
    s.type: s
    for s in (
        op("MatMul", "a:T b:T", "product:T", "transpose_a:bool T:type"),
        op("AddV2", "x:T y:T", "z:T", "T:type"),
        op("Cast", "x:SrcT", "y:DstT", "SrcT:type DstT:type"),
        op("ResizeBicubic", "images:T size:@int32", "resized_images:@float32", "T:type"),
        op("Greater", "x:T y:T", "z:@bool", "T:type"),
        op("Shape", "input:T", "output:out_type", "T:type out_type:type"),
        op("Identity", "input:T", "output:T", "T:type"),
        op("Const", "", "output:dtype", "value:tensor dtype:type"),
        op("NoOp"),
        op("_Arg", "", "output:T", "T:type index:int", stateful=True),
        op("While", "input:T*", "output:T*", "T:list(type) cond:func body:func", stateful=True),
        op("MapDataset", "input_dataset:@variant other_arguments:Targuments*", "handle:@variant",
           "f:func Targuments:list(type)"),
        op("IteratorGetNext", "iterator:@resource", "components:output_types*",
           "output_types:list(type)", stateful=True),
        op("VarHandleOp", "", "resource:@resource", f"{SHARED} dtype:type", stateful=True),
        op("VariableV2", "", "ref:dtype", f"shape:shape dtype:type {SHARED}", stateful=True),
        op("ReadVariableOp", "resource:@resource", "value:dtype", "dtype:type", stateful=True),
        op("AssignAddVariableOp", "resource:@resource value:dtype", "", "dtype:type",
           stateful=True),
        op("DestroyResourceOp", "resource:@resource", "", "", stateful=True),
        op("VariableShape", "input:@resource", "output:out_type", "out_type:type", stateful=True),
        op("ResourceApplyAdam", f"var:@resource m:@resource v:@resource {ADAM}", "", "T:type",
           stateful=True),
        op("ResourceGather", "resource:@resource indices:Tindices", "output:dtype",
           "dtype:type Tindices:type", stateful=True),
        op("HashTableV2", "", "table_handle:@resource", f"{SHARED} key_dtype:type value_dtype:type",
           stateful=True),
        op("LookupTableFindV2", "table_handle:@resource keys:Tin default_value:Tout", "values:Tout",
           "Tin:type Tout:type", stateful=True),
        op("TensorListStack", "input_handle:@variant element_shape:@int32", "tensor:element_dtype",
           "element_dtype:type"),
        op("QueueDequeueV2", "handle:@resource", "components:component_types*",
           "component_types:list(type)", stateful=True),
        op("Unstage", "", "values:dtypes*", f"dtypes:list(type) {SHARED}", stateful=True),
        op("WriteScalarSummary", "writer:@resource step:@int64 tag:@string value:T", "", "T:type",
           stateful=True),
        op("Assert", "condition:@bool data:T*", "", "T:list(type)", stateful=True),
        op("Print", "input:T data:U*", "output:T", "T:type U:list(type)", stateful=True),
        op("Timestamp", "", "ts:@float64", "", stateful=True),
        op("EagerPyFunc", "input:Tin*", "output:Tout*",
           "token:string is_async:bool Tin:list(type) Tout:list(type)", stateful=True),
        op("CTCGreedyDecoder", "inputs:T sequence_length:@int32",
           "decoded_indices:@int64 decoded_values:@int64 decoded_shape:@int64 log_probability:T",
           "T:type"),
        op("DecodeBmp", "contents:@string", "image:@uint8", "channels:int"),
        op("RandomUniform", "shape:T", "output:dtype", "dtype:type T:type", stateful=True),
        op("RngReadAndSkip", "resource:@resource alg:@int32 delta:@uint64", "value:@int64", "",
           stateful=True),
        op("StatefulUniform", "resource:@resource algorithm:@int64 shape:shape_dtype",
           "output:dtype", "dtype:type shape_dtype:type", stateful=True),
        op("CollectiveReduceV3", "input:T communicator:@resource group_assignment:@int32",
           "data:T", "T:type", stateful=True),
        op("XlaReduce", "input:T init_value:T", "output:T", "T:type reducer:func"),
        op("PartitionedCall", "args:Tin*", "output:Tout*", "Tin:list(type) Tout:list(type) f:func"),
    )
}  # fmt: skip


def _kernels(op: str, device: str, attr: str, dtypes: str, host: str = "") -> list[KernelEntry]:
    return [
        KernelEntry(op, device, ((attr, (dtype,)),), tuple(host.split()))
        for dtype in dtypes.split()
    ]


_REAL = "bfloat16 float16 float32 float64"
KERNELS = (
    *_kernels("MatMul", "GPU", "T", f"{_REAL} complex64 complex128"),
    *_kernels("AddV2", "GPU", "T", f"{_REAL} int64 int8 uint8"),
    *_kernels("AddV2", "GPU", "T", "int32", "x y z"),
    *_kernels("AddV2", "DEFAULT", "T", "int32", "x y z"),
    *_kernels("VarHandleOp", "DEFAULT", "dtype", f"{_REAL} bool int64 uint8", "resource"),
    *_kernels("VariableV2", "GPU", "dtype", f"{_REAL} bool int64 uint32"),
    *_kernels("AssignAddVariableOp", "DEFAULT", "dtype", f"{_REAL} int32 int64", "resource"),
    KernelEntry("ReadVariableOp", "DEFAULT", (), ("resource",)),
    KernelEntry("Cast", "GPU", (("SrcT", ("int32",)), ("DstT", ("float32",)))),
    KernelEntry("Cast", "GPU", (("SrcT", ("float32",)), ("DstT", ("int32",)))),
    KernelEntry("Cast", "GPU", (("SrcT", ("float8_e5m2",)), ("DstT", ("float32",)))),
    *_kernels("Greater", "GPU", "T", _REAL),
)


class Table:
    """The kernels above, as the registry answers."""

    def entries(self, op: str, device_type: str) -> tuple[KernelEntry, ...]:
        own = [e for e in KERNELS if e.op == op and e.device_type == device_type]
        return (*own, *(e for e in KERNELS if e.op == op and e.device_type == "DEFAULT"))


TABLE = Table()


def tensor(text: str) -> TensorInfo:
    """``tensor("float32[2,3]")``, ``"int32[]"``; without brackets the shape isn't known."""
    dtype, bracket, dims = text.partition("[")
    if not bracket:
        return TensorInfo(dtype)
    shape = tuple(None if d == "?" else int(d) for d in dims.rstrip("]").split(",") if d)
    return TensorInfo(dtype, shape)


def asked(device: str, by_framework: bool = False, source: SourceLine | None = None) -> DeviceScope:
    return DeviceScope(DeviceSpec.parse(device), source, by_framework)


def place(
    type: str, device: Device | None = CPU, ins: str = "", outs: str = "", **more: Any
) -> Placement:
    """A placement; ``ins`` and ``outs`` are tensors, its dtype attributes follow from them."""
    inputs = tuple(tensor(t) for t in ins.split())
    outputs = tuple(tensor(t) for t in outs.split())
    signature = SIGNATURES.get(type)
    if "dtypes" not in more and signature is not None:
        # Seen tensors may be fewer (an op that raised has no outputs) or more (a list argument).
        args = (*signature.inputs[: len(inputs)], *signature.outputs)
        pairs = zip(args, (*inputs[: len(signature.inputs)], *outputs), strict=False)
        found = {a.attr: t.dtype for a, t in pairs if a.attr is not None and not a.is_list}
        more["dtypes"] = tuple(found.items())
    more.setdefault("op", type)
    more.setdefault("origin", "function")
    return Placement(type=type, device=device, inputs=inputs, outputs=outputs, **more)


def matmul(device: Device | None = GPU, dtype: str = "float32", **more: Any) -> Placement:
    return place("MatMul", device, f"{dtype}[2,2] {dtype}[2,2]", f"{dtype}[2,2]", **more)


def record(*placements: Placement, devices: tuple[Device, ...] = (CPU, GPU), **more: Any) -> Record:
    more.setdefault("tensorflow", "2.21.0")
    return Record(
        placements=placements,
        devices=tuple(DeviceInfo(device) for device in devices),
        signatures=SIGNATURES,
        **more,
    )
