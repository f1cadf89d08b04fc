"""Why TensorFlow could not place an op: a failure → exactly one reason, as for an op elsewhere.

The message itself is the first witness: it lists devices, the colocation group and often the
registered kernels of the process that raised it.  Where it doesn't, a kernel registry is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pytest_tfdevice.errors.placement import Failure, Member
from pytest_tfdevice.kernels.match import Kernels, offered, serving, usable
from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.kernels.table import KernelEntry
from pytest_tfdevice.model import Device, DeviceError, DeviceSpec, Placement
from pytest_tfdevice.reason import Reason

SOFT = (
    "allow soft placement (tf.config.set_soft_device_placement(True), or "
    "ConfigProto(allow_soft_placement=True))"
)
MAX_NAMED = 3
_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of kernels besides what a message lists.

    ``same``: they are of the TensorFlow that wrote the message, ``tensorflow`` being its version.
    """

    kernels: Kernels | None = None
    tensorflow: str = ""
    same: bool = True


def reason_of(failure: Failure, kernels: Known = Known()) -> Reason:
    """Says why, and how to mend it."""
    wanted = _spec(failure.wanted)
    target = wanted.type or "GPU"
    if failure.problem == "no-device":
        return _no_device(failure, wanted, target)
    if failure.type is None and len(failure.types) == 1:
        failure = replace(failure, type=failure.types[0][0])  # the op is alone in its group
    culprits = [op_type for op_type, devices in failure.types if target not in devices]
    if failure.type is None and failure.problem == "no-kernel":
        return _of_unknown_type(failure, culprits, target)
    if failure.type is not None and (failure.type in culprits or not failure.types):
        return _own(failure, target, kernels)
    if culprits:
        return _group(failure, culprits, target, kernels)
    return _conflict(failure)


def _no_device(failure: Failure, wanted: DeviceSpec, target: str) -> Reason:
    present = [device for device in map(_device, failure.available) if device is not None]
    same = [device for device in present if device.type == target]
    at = f" at {failure.source}" if failure.source else ""
    name = str(wanted) if wanted != DeviceSpec() else failure.wanted or target
    if not failure.available:
        have = "there is no such device"
    elif not same:
        have = f"TensorFlow has no {target}, only {_list(present)}"
    else:
        have = f"there is only {_list(same)}"
    if target == "GPU" and any(device.type == "XLA_GPU" for device in present) and not same:
        have += "; an XLA_GPU is no GPU for placement: CUDA's libraries did not load"
    mend = (
        "see what is missing with `pytest-tfdevice devices`, or simulate a GPU with "
        "--tfdevice-simulate"
        if not same
        else f"ask for one that is there, or {SOFT}"
    )
    if wanted.job not in (None, "localhost") and not any(d.job == wanted.job for d in present):
        mend = f"take the tf.device for job {wanted.job} out, or run it in a cluster that has one"
    return Reason("no-gpu", f"{name} was asked for{at}; {have}", mend)


def _of_unknown_type(failure: Failure, culprits: list[str], target: str) -> Reason:
    """The message breaks off before it says what the op is."""
    what = f"{failure.name} and what is tied to it have" if culprits else f"{failure.name} has"
    which = f": {_list(culprits[:MAX_NAMED])} among them" if culprits else ""
    return Reason(
        "no-kernel",
        f"TensorFlow says that {what} no {target} kernel, at all or for the dtypes{which}",
        f"take it out of the tf.device for {target}, or {SOFT}",
    )


def _own(failure: Failure, target: str, known: Known) -> Reason:
    """The op that the message names has no kernel itself."""
    assert failure.type is not None
    if failure.kernels:
        known = replace(known, kernels=KernelRegistry("", "error", failure.kernels), same=True)
    where = "" if failure.problem == "no-kernel" else _tie(failure)
    return _by_kernels(failure.type, dict(failure.dtypes), target, known, where)


def _by_kernels(
    op_type: str, dtypes: dict[str, str], target: str, known: Known, where: str = ""
) -> Reason:
    version = f"TensorFlow {known.tensorflow}" if known.tensorflow else "this TensorFlow"
    leave = f"take it out of the tf.device for {target}, or {SOFT}"
    entries = usable(known.kernels, op_type, target) if known.kernels is not None else ()
    placement = Placement(op_type, op_type, None, dtypes=tuple(dtypes.items()))
    lists = _dtype_lists(entries, placement, dtypes)
    if known.kernels is None or (entries and not known.same):
        has = f"; in {version} it has for {lists}" if lists else ""
        return Reason(
            "no-kernel",
            f"TensorFlow says that {op_type} has no {target} kernel, at all or for its dtypes"
            f"{has}{where}",
            leave,
        )
    if not entries:
        either = "" if known.same else " either"
        return Reason(
            "no-kernel", f"{version} has no {target} kernel for {op_type}{either}{where}", leave
        )
    if not lists or (dtypes and serving(entries, placement)):
        return Reason(
            "unknown",
            f"{op_type} has a {target} kernel for its dtypes; an input that must be elsewhere "
            f"may have kept it from there{where}",
            leave,
        )
    given = _list(f"{attr}={dtype}" for attr, dtype in dtypes.items()) or "its dtypes"
    variable = op_type in _VARIABLES
    mend = "give the variable one of those types" if variable else "cast to one of those"
    return Reason(
        "dtype",
        f"{op_type} has no {target} kernel for {given}; it has for {lists}{where}",
        f"{mend}, {leave}",
    )


def _dtype_lists(
    entries: Iterable[KernelEntry], placement: Placement, dtypes: dict[str, str]
) -> str:
    entries = tuple(entries)
    attrs = list(dict.fromkeys(attr for e in entries for attr, _ in e.constraints))
    takes = {
        attr: dict.fromkeys(d for d in offered(entries, placement, attr) if ":" not in d)
        for attr in attrs
    }
    wrong = [a for a in attrs if a in dtypes and takes[a] and dtypes[a] not in takes[a]]
    shown = wrong or [a for a in attrs if takes[a]]
    return "; ".join(f"{attr}: {_list(takes[attr])}" for attr in shown)


def _group(failure: Failure, culprits: list[str], target: str, known: Known) -> Reason:
    """Other members of the group have no kernel, and the op has to be where they are."""
    member = next((m for m in failure.members if m.type in culprits), None)
    culprit = member.type if member is not None else culprits[0]
    name = f"{member.op} ({member.type})" if member is not None else culprit
    cause = _by_kernels(culprit, {}, target, known)
    more = f" and {len(culprits) - 1} more" if len(culprits) > 1 else ""
    return Reason(
        "colocated",
        f"tied by colocation to {name}{more}, there because: {cause.evidence}",
        f"take what is tied to {name} out of the tf.device for {target}, or {SOFT}",
        cause,
    )


def _conflict(failure: Failure) -> Reason:
    asked = [member for member in failure.members if member.device]
    if failure.partner:
        evidence = f"tied by colocation to {failure.partner}; no device supports both"
    elif len({member.device for member in asked}) > 1:
        names = _list(f"{m.op} on {m.device}" for m in asked[:MAX_NAMED])
        evidence = f"its colocation group was asked to be on several devices: {names}"
    else:
        evidence = f"its colocation group must be on {failure.wanted or 'another device'}"
    return Reason("colocated", evidence, f"ask for one device for the whole group, or {SOFT}")


def _tie(failure: Failure) -> str:
    anchor = _anchor(failure)
    if anchor is None:
        return ""
    return f"; it is tied by colocation to {anchor.op} ({anchor.type}) on {anchor.device}"


def _anchor(failure: Failure) -> Member | None:
    """The member that sent the group to where it must be."""
    return next((m for m in failure.members if m.device and m.op != failure.op), None)


def _spec(text: str) -> DeviceSpec:
    try:
        spec = DeviceSpec.parse(text)
    except DeviceError:
        return DeviceSpec()
    if spec.job == "localhost":
        return DeviceSpec(type=spec.type, index=spec.index)
    return spec


def _device(text: str) -> Device | None:
    try:
        return Device.parse(text)
    except DeviceError:
        return None


def _list(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))
