"""Questions to a set of kernels: which there are for an op, and which one TensorFlow would take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_tfdevice.kernels.dtypes import dtype_order
from pytest_tfdevice.kernels.table import KernelEntry

DEFAULT = "DEFAULT"
"""Kernels of this device type serve every device that has none of its own for the op."""


class KernelRegistry:
    """The kernels of one TensorFlow.

    Attributes:
        version: of the TensorFlow that they are from, ``"2.21.0"``.
        source: ``"table"`` (a CUDA-enabled wheel, as shipped with this package) or ``"live"`` (what
            the TensorFlow of this process has registered).
    """

    def __init__(self, version: str, source: str, entries: Iterable[KernelEntry]) -> None:
        self.version = version
        self.source = source
        self._by_op: dict[str, list[KernelEntry]] = {}
        for entry in entries:
            self._by_op.setdefault(entry.op, []).append(entry)

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._by_op.values())

    def __contains__(self, op: object) -> bool:
        """True where the op has any kernel here."""
        return op in self._by_op

    @property
    def all(self) -> tuple[KernelEntry, ...]:
        """Every entry, ops in the order in which they were first seen."""
        return tuple(entry for entries in self._by_op.values() for entry in entries)

    def entries(self, op: str, device_type: str = "GPU") -> tuple[KernelEntry, ...]:
        """Kernels of ``op`` that may serve ``device_type``: its own, then the DEFAULT ones."""
        found = self._by_op.get(op, ())
        own = [entry for entry in found if entry.device_type == device_type]
        return (*own, *(entry for entry in found if entry.device_type == DEFAULT))

    def find(
        self, op: str, device_type: str, dtypes: Mapping[str, str], label: str = ""
    ) -> KernelEntry | None:
        """The kernel that TensorFlow takes for these dtype attributes, None where there is none.

        As ``FindKernelRegistration`` in TensorFlow's ``op_kernel.cc`` does: of the device's own
        kernels with that label the one of highest priority; only where none fits, a DEFAULT one.
        """
        wanted = dict(dtypes)
        for device in (device_type, DEFAULT):
            fitting = [
                entry
                for entry in self._by_op.get(op, ())
                if entry.device_type == device and entry.label == label and entry.serves(wanted)
            ]
            if fitting:
                return max(fitting, key=lambda entry: entry.priority)
        return None

    def gpu_dtypes(self, op: str, attr: str) -> tuple[str, ...] | None:
        """Dtypes of ``attr`` for which ``op`` has a GPU kernel, in the order of ``types.proto``.

        None where a GPU kernel leaves the attribute free (any dtype will do); an empty tuple where
        the op has no GPU kernel at all.
        """
        dtypes: set[str] = set()
        for entry in self.entries(op, "GPU"):
            allowed = dict(entry.constraints).get(attr)
            if allowed is None:
                return None
            dtypes.update(allowed)
        return tuple(sorted(dtypes, key=dtype_order))
