"""Kernel entries and the tables of them that ship with the package.

A table holds what the CUDA-enabled wheel of one TensorFlow minor version registers for GPU
(devices ``GPU`` and ``DEFAULT``; the latter serve every device type).  It is a gzipped text of
tab-separated lines, so that it can be read here without TensorFlow, and by the simulated GPU's C++
without a parser of its own kind::

    # pytest-tfdevice kernel table 1
    # tensorflow 2.21.0
    GPU <tab> AddV2 <tab> label <tab> priority <tab> T=float32,float64 <tab> x,y <tab> cuda

The columns are device type, op type, label, priority, dtype constraints (``ATTR=dtype,…`` joined by
``;``), arguments kept in host memory, and ``cuda`` where only the CUDA-enabled wheel has the kernel
or ``host`` where the CPU-only wheel registers it for that device type too.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One registered kernel.

    ``constraints``: for each dtype attribute the dtypes that it serves; an attribute that isn't
    named is free.  ``host_args``: inputs and outputs that it keeps in host memory.
    """

    op: str
    device_type: str
    constraints: tuple[tuple[str, tuple[str, ...]], ...] = ()
    host_args: tuple[str, ...] = ()
    label: str = ""
    priority: int = 0
    cuda_only: bool = True

    def serves(self, dtypes: dict[str, str]) -> bool:
        """True where the kernel takes these dtype attributes (those not given are free)."""
        return all(
            attr not in dtypes or dtypes[attr] in allowed for attr, allowed in self.constraints
        )
