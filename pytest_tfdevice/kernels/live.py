"""The kernels that the TensorFlow of this process has registered."""

from __future__ import annotations

from typing import Any

from pytest_tfdevice.capture import private
from pytest_tfdevice.kernels.dtypes import dtype_name
from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.kernels.table import KernelEntry, bool_value, int_value, make_entry, text_value


def registered() -> KernelRegistry:
    """The live registry, every device type; imports TensorFlow.  Takes about 0.2 seconds.

    Not cached: a library loaded later (the simulated GPU is one) adds to it.

    Raises:
        MissingPrivate: this TensorFlow doesn't list its kernels.
    """
    import tensorflow as tf

    return KernelRegistry(
        str(tf.__version__), "live", (_entry(kernel) for kernel in private.registered_kernels())
    )


def _entry(kernel: Any) -> KernelEntry:
    """A ``KernelDef`` proto as an entry."""
    return make_entry(
        op=kernel.op,
        device_type=kernel.device_type,
        constraints=[(c.name, _allowed(c.allowed_values.list)) for c in kernel.constraint],
        host_args=kernel.host_memory_arg,
        label=kernel.label,
        priority=kernel.priority,
        cuda_only=False,
    )


def _allowed(values: Any) -> list[str]:
    """The values in an ``AttrValue.ListValue``."""
    return [
        *(dtype_name(number) for number in values.type),
        *(int_value(number) for number in values.i),
        *(bool_value(number) for number in values.b),
        *(text_value(text.decode()) for text in values.s),
    ]
