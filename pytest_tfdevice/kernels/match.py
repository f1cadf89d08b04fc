"""Which kernel an op gets, which dtypes it could have, and whether its tensors leave the host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pytest_tfdevice.kernels.table import KernelEntry
from pytest_tfdevice.model import OpSignature, Placement


class Kernels(Protocol):
    """What is asked of a kernel registry.

    It must be complete for the device types that are asked for: a registry of the CPU-only wheel
    lacks nearly all GPU kernels, and from it "no kernel" would be untrue.  Where there is no such
    registry, pass None instead.
    """

    def entries(self, op: str, device_type: str) -> tuple[KernelEntry, ...]:
        """Kernels of ``op`` for that type of device, those of type DEFAULT among them."""


def usable(kernels: Kernels, op: str, device_type: str) -> tuple[KernelEntry, ...]:
    """Without the kernels that only an explicit ``_kernel`` attribute selects."""
    return tuple(entry for entry in kernels.entries(op, device_type) if not entry.label)


def serving(entries: Iterable[KernelEntry], placement: Placement) -> list[KernelEntry]:
    """Those that take the op's dtypes."""
    dtypes = dict(placement.dtypes)
    return [entry for entry in entries if entry.serves(dtypes)]


def chosen(placement: Placement, kernels: Kernels | None, device_type: str) -> KernelEntry | None:
    """The kernel that TensorFlow takes for the op on such a device; None where none or unknown.

    As ``FindKernelRegistration`` in TensorFlow's ``op_kernel.cc``: one of the device's own type of
    the highest priority, and only where none of them serves, a DEFAULT one.
    """
    if kernels is None or placement.type is None:
        return None
    found = serving(usable(kernels, placement.type, device_type), placement)
    own = [entry for entry in found if entry.device_type == device_type]
    return max(own or found, key=lambda entry: entry.priority, default=None)


def offered(entries: Iterable[KernelEntry], placement: Placement, attr: str) -> tuple[str, ...]:
    """Dtypes of ``attr`` that a kernel takes together with the op's other dtypes, else at all."""
    others = {name: dtype for name, dtype in placement.dtypes if name != attr}
    entries = tuple(entries)
    fitting = [entry for entry in entries if entry.serves(others)] or entries
    return tuple(sorted({d for e in fitting for d in dict(e.constraints).get(attr, ())}))


def all_on_host(entry: KernelEntry, signature: OpSignature | None) -> bool:
    """True where the kernel keeps every tensor in host memory, and there is one.

    Resource handles always are in host memory; they don't tell where a variable's value is.
    """
    if signature is None:
        return False
    args = {arg.name for arg in (*signature.inputs, *signature.outputs) if arg.dtype != "resource"}
    return bool(args) and args <= set(entry.host_args)


def in_name_only(
    placement: Placement, signature: OpSignature | None, kernels: Kernels | None
) -> bool:
    """True for an op on a device whose kernel there keeps every tensor in host memory."""
    if placement.device is None or placement.device.type == "CPU" or placement.is_unit:
        return False
    if placement.on_host:
        return True
    if not placement.dtypes:
        return False  # which of its kernels it has isn't known
    entry = chosen(placement, kernels, placement.device.type)
    return entry is not None and all_on_host(entry, signature)
