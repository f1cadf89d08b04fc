"""Which kernels exist for which device: the live registry of a TensorFlow, or a shipped table.

``for_version("2.21.0")`` reads a shipped table (no TensorFlow needed), ``registered()`` asks the
TensorFlow of this process.  Both give a :class:`KernelRegistry` of the same entries.
"""

from pytest_tfdevice.kernels.live import registered
from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.kernels.shipped import NoTableError, for_version, shipped_versions, table_text
from pytest_tfdevice.kernels.table import KernelEntry, TableError

__all__ = [
    "KernelEntry",
    "KernelRegistry",
    "NoTableError",
    "TableError",
    "for_version",
    "registered",
    "shipped_versions",
    "table_text",
]
