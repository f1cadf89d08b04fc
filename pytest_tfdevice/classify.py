"""Which operations count: a placement → its class.

The rule in one sentence: work on tensor data that the model does must be on the device; input,
output and bookkeeping need not be.  What an op does is read from its dtypes, its ranks and its
signature in TensorFlow's op registry (``OpDef``): statefulness, arguments, attributes.  Names of op
types decide nothing where those can: "Decode*" would take ``CTCGreedyDecoder`` for input.

The order of the questions matters; the first that says yes decides:

1. *Structural*, by what the op is: arguments, constants, control flow, plain copies.  First,
   because a constant is a constant even where it holds a string or stands in a pipeline.
2. *Host work*: it is where it belongs, whatever anybody asked for, so it comes before the requests.
3. A *request that was not honoured* counts whatever the type, and so before bookkeeping, and even
   for a variable's handle, which holds no data: the int32 variable that silently is on the CPU.
4. *Variable handles* are structural otherwise.
5. *Placed by the framework* on the CPU, on purpose.
6. Metadata readers, and integer and boolean results of rank 0 or 1, are *bookkeeping*.
7. Everything else *counts*; also what is not known well enough to say that it doesn't.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from pytest_tfdevice.model import ArgSpec, DeviceSpec, OpSignature, Placement, TensorInfo

Class = Literal["structural", "host", "framework", "bookkeeping", "counts", "ignored"]
"""What an op is to a rule; ``ignored`` only by the hook ``pytest_tfdevice_classify``."""

LISTED: tuple[tuple[Class, str, str], ...] = (
    # Registered as ordinary float ops with kernels for every device; only the name tells that they
    # hand a value in or out of a function (`function_ops.cc`).
    ("structural", "argument or result", "_Arg _Retval _DeviceArg _DeviceRetval"),
    # The control flow of TensorFlow 1, and what While and If are lowered to.  Their signatures are
    # those of an identity or of a choice of values (`control_flow_ops.cc`).
    ("structural", "control flow", "Switch Merge Enter Exit NextIteration LoopCond _SwitchN"),
    (
        "structural",
        "control flow",
        "RefSwitch RefMerge RefEnter RefExit RefNextIteration RefSelect",
    ),
    # Copies between devices and processes: the signature of a source or a sink (`sendrecv_ops.cc`).
    ("structural", "send or receive", "_Send _Recv _HostSend _HostRecv Send Recv XlaSend XlaRecv"),
    # One tensor in, the same tensor out; but `Relu` has that signature too (`array_ops.cc`).
    ("structural", "plain copy", "Identity IdentityN RefIdentity Snapshot StopGradient DeepCopy"),
    (
        "structural",
        "plain copy",
        "PreventGradient EnsureShape GuaranteeConst PlaceholderWithDefault",
    ),
    # The same, for the runtime's own use: a constant handed to an eager op, copies to and from host
    # memory, a check of the allocator, a fence for XLA.
    ("structural", "plain copy", "_EagerConst _CopyFromGpuToHost _CopyFromHostToGpu CheckPinned"),
    ("structural", "plain copy", "XlaOptimizationBarrier"),
    # The same, for TensorFlow's debugger (`debug_ops.cc`).
    ("structural", "plain copy", "Copy CopyHost DebugIdentity DebugIdentityV2 DebugIdentityV3"),
    # A log that is read without TensorFlow comes without signatures, which tell these four.
    ("structural", "constant or placeholder", "Const Placeholder PlaceholderV2"),
    ("structural", "takes and makes no tensor", "NoOp"),
    # They take a float tensor and read none of its values: neither dtypes nor kernels say so.
    (
        "bookkeeping",
        "reads only a tensor's metadata",
        "Shape ShapeN Size Rank IsVariableInitialized",
    ),
    # An identity that prints (TensorFlow 1); PrintV2 takes a string and needs no entry.
    ("host", "prints", "Print"),
    # A stateful op that makes a float64 out of nothing, as a random number would be: the clock.
    ("host", "reads the clock", "Timestamp"),
)
"""What only an op's name can tell.  Each entry says why; everything else is decided below."""

VARIABLE_ARGUMENTS = frozenset({"resource", "resources", "var", "ref"})
"""Names of the argument that holds a variable, in every variable op since TensorFlow 1.0
(``resource_variable_ops.cc``, ``training_ops.cc``, ``state_ops.cc``; ``stateful_random_ops.cc``,
whose state is a variable).  Handles of tables, iterators, queues, stacks, readers and summary
writers have names of their own (``table_handle``, ``iterator``, ``handle``, ``writer``)."""

COLLECTIVE_ARGUMENTS = frozenset({"communicator", "ordering_token"})
"""Handles that order collective ops (``collective_ops.cc``); the data is in their other inputs."""

METADATA_ARGUMENTS = frozenset({"input"})
"""``VariableShape`` alone names its variable so."""

CALL_ATTRIBUTES = frozenset({"f", "then_branch", "else_branch", "branches", "cond", "body"})
"""Attributes that hold a function that the op calls (``functional_ops.cc``).  The function's ops
are in the record themselves.  The functions of a reduction (``XlaReduce``) have other names."""

FUNCTION_PREFIXES = ("__inference_", "__forward_", "__backward_")
"""How ``tf.function`` names what it compiles; an op type of that name is a call."""

CALLS = "calls a function, whose operations are judged"
HOST_DTYPES = {"string": "strings", "variant": "variants"}
_VALUE_PREFIXES = ("float", "bfloat", "complex", "qint", "quint", "half", "double")
_BY_TYPE = {op: (kind, why) for kind, why, ops in LISTED for op in ops.split()}


@dataclass(frozen=True, slots=True)
class Classified:
    """The class of an op and a phrase that says why.

    ``in_doubt`` is True where a dtype or a rank that would decide isn't known.
    """

    kind: Class
    why: str
    in_doubt: bool = False


def is_value_dtype(dtype: str) -> bool:
    """True for floating-point, complex and quantised types, whose values are a model's data."""
    return dtype.startswith(_VALUE_PREFIXES)


def classify(placement: Placement, signature: OpSignature | None, target: DeviceSpec) -> Classified:
    """Says what ``placement`` is to a rule about ``target``; the order is the module's.

    ``signature`` may be None (a log, without TensorFlow): what can't be told then counts.
    """
    if placement.is_unit and placement.host_context is None:
        return Classified("counts", f"compiled function of {placement.contents} operations")
    return (
        _structural(placement, signature)
        or _host(placement, signature)
        or _refused(placement, target)
        or _handle(placement, signature)
        or _framework(placement, target)
        or _by_values(placement, signature)
    )


def refused(placement: Placement, target: DeviceSpec) -> bool:
    """True where the user asked for a device of the target's type and the op isn't on it.

    What TensorFlow's own code asked for (a strategy's replica scopes) is no promise to the user.
    """
    request = placement.request
    return (
        request is not None
        and not request.by_framework
        and request.spec.type is not None
        and request.spec.type == target.type
        and placement.device is not None
        and not request.spec.matches(placement.device)
    )


def is_variable_handle(signature: OpSignature | None) -> bool:
    """True for ``VarHandleOp`` and its like: a variable's handle out of nothing."""
    return (
        signature is not None
        and not signature.inputs
        and any(arg.dtype == "resource" for arg in signature.outputs)
        and any(arg.name in VARIABLE_ARGUMENTS for arg in signature.outputs)
        and any(name in {"dtype", "dtypes"} for name, _ in signature.attrs)
    )


def uses_variable(signature: OpSignature | None) -> bool:
    """True for an op that reads or updates a resource variable, which ties it to its device."""
    return signature is not None and any(
        arg.dtype == "resource" and arg.name in VARIABLE_ARGUMENTS for arg in signature.inputs
    )


def tensors(
    placement: Placement, signature: OpSignature | None
) -> tuple[tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
    """The op's inputs and outputs; a side that wasn't seen is read from the signature.

    A dtype of ``""`` isn't known.  An op that raised has no outputs that could be seen.
    """
    inputs, outputs = placement.inputs, placement.outputs
    if signature is not None:
        dtypes = dict(placement.dtypes)
        inputs = inputs or tuple(_declared(signature.inputs, dtypes))
        outputs = outputs or tuple(_declared(signature.outputs, dtypes))
    elif not inputs and not outputs:
        inputs = tuple(TensorInfo(dtype) for _, dtype in placement.dtypes)
    return inputs, outputs


def _declared(args: Iterable[ArgSpec], dtypes: dict[str, str]) -> Iterator[TensorInfo]:
    for arg in args:
        yield TensorInfo(arg.dtype or dtypes.get(arg.attr or "", ""))


def _structural(placement: Placement, signature: OpSignature | None) -> Classified | None:
    kind, why = _BY_TYPE.get(placement.type or "", (None, ""))
    if kind == "structural":
        return Classified(kind, why)
    if (placement.type or placement.op).startswith(FUNCTION_PREFIXES):
        return Classified("structural", CALLS)
    if signature is None:
        return None
    if not signature.inputs and not signature.outputs:
        return Classified("structural", "takes and makes no tensor")
    if _holds_handles(signature):
        return None
    if not signature.inputs and not signature.stateful:
        return Classified("structural", "constant or placeholder")
    for name, attr_type in signature.attrs:
        if attr_type in {"func", "list(func)"} and name in CALL_ATTRIBUTES:
            return Classified("structural", CALLS)
    return None


def _holds_handles(signature: OpSignature) -> bool:
    """Datasets and iterators hold functions under the same attribute names; they have handles."""
    args = (*signature.inputs, *signature.outputs)
    return any(arg.dtype in {"variant", "resource"} for arg in args)


def _host(placement: Placement, signature: OpSignature | None) -> Classified | None:
    if placement.host_context == "tf.data":
        return Classified("host", "runs inside a tf.data pipeline")
    if placement.host_context == "py_function":
        return Classified("host", "runs inside a py_function")
    kind, why = _BY_TYPE.get(placement.type or "", (None, ""))
    if kind == "host":
        return Classified(kind, why)
    if signature is not None and (why := _host_by_signature(signature)):
        return Classified("host", why)
    for tensor in (t for side in tensors(placement, signature) for t in side):
        if tensor.dtype in HOST_DTYPES:
            return Classified("host", f"works on {HOST_DTYPES[tensor.dtype]}")
    return None


def _host_by_signature(signature: OpSignature) -> str:
    """Why an op of this signature is host work whatever its tensors are; "" where it isn't."""
    args = (*signature.inputs, *signature.outputs)
    handle = next((arg.name for arg in args if arg.dtype == "resource"), None)
    # In a variable op the variable comes first; its optimiser slots follow under various names.
    known = VARIABLE_ARGUMENTS | COLLECTIVE_ARGUMENTS | METADATA_ARGUMENTS
    if handle is not None and handle not in known:
        return f"works on a table, iterator or other container of the host ({handle})"
    attrs = {name for name, _ in signature.attrs}
    if {"token", "Tin", "Tout"} <= attrs:  # the key under which Python keeps the function
        return "calls back into Python"
    owns_variable = any(arg.name in VARIABLE_ARGUMENTS for arg in args)
    if {"container", "shared_name"} <= attrs and not owns_variable:
        return "keeps a container on the host"  # staging areas, batching queues
    if signature.stateful and not signature.outputs and not owns_variable:
        return "acts on the world outside the graph"  # assertions, dumps
    return ""


def _refused(placement: Placement, target: DeviceSpec) -> Classified | None:
    if not refused(placement, target) or placement.request is None:
        return None
    return Classified("counts", f"{placement.request.spec} was asked for")


def _handle(placement: Placement, signature: OpSignature | None) -> Classified | None:
    if is_variable_handle(signature) or (signature is None and placement.type == "VarHandleOp"):
        return Classified("structural", "variable handle")
    return None


def _framework(placement: Placement, target: DeviceSpec) -> Classified | None:
    """Only on the CPU: what a strategy puts on a GPU of its replicas is the model's work."""
    request, device = placement.request, placement.device
    if request is None or not request.by_framework or device is None:
        return None
    if request.spec.type != "CPU" or target.type == "CPU" or not request.spec.matches(device):
        return None
    return Classified("framework", "put there by TensorFlow's or Keras' own code")


def _by_values(placement: Placement, signature: OpSignature | None) -> Classified:
    kind, why = _BY_TYPE.get(placement.type or "", (None, ""))
    if kind == "bookkeeping":
        return Classified(kind, why)
    inputs, outputs = tensors(placement, signature)
    for tensor in (*outputs, *inputs):
        if is_value_dtype(tensor.dtype):
            verb = "makes" if tensor in outputs else "reads"
            return Classified("counts", f"{verb} {tensor.dtype} values")
    if not inputs and not outputs and signature is None:
        return Classified("counts", "nothing but its type is known", in_doubt=True)
    if any(not t.dtype for t in (*inputs, *outputs)):
        return Classified("counts", "its dtypes are not known", in_doubt=True)
    return _by_rank(inputs, outputs)


def _by_rank(inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]) -> Classified:
    """Integers and booleans: rank 2 or more is data (a mask, ids), less is a shape or a counter.

    An update of a variable has no result; the values that it writes stand in for one.
    """
    results = outputs or inputs
    judged = [t for t in results if t.dtype != "resource"]
    large = next((t for t in judged if t.rank is not None and t.rank >= 2), None)
    if large is not None:
        return Classified("counts", f"{large.dtype} of rank {large.rank}")
    if all(t.rank is not None for t in judged):
        return Classified("bookkeeping", "integers or booleans of rank 0 or 1")
    # The rank of a result that isn't known: data where an input is known to be.
    if any(t.rank is not None and t.rank >= 2 and t.dtype != "resource" for t in inputs):
        return Classified("counts", "integers of unknown rank from rank 2 or more", in_doubt=True)
    return Classified("bookkeeping", "integers or booleans of unknown rank", in_doubt=True)
