"""What holds GPU memory in this process: variables and eager tensors that Python reaches."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

from pytest_tfdevice.capture import memory, private_memory, signatures
from pytest_tfdevice.errors.out_of_memory import OutOfMemory, Resident, read_oom
from pytest_tfdevice.model import Device, DeviceError
from pytest_tfdevice.units import tensor_bytes

MAX_RESIDENTS = 20


def find_oom(error: BaseException | None) -> BaseException | None:
    """The ``ResourceExhaustedError`` in an error's chain of causes; None where there is none."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if any(kind.__name__ == "ResourceExhaustedError" for kind in type(error).__mro__):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def describe_oom(error: BaseException, measured: dict[Device, Any]) -> OutOfMemory:
    """What the error says, with what holds memory now.

    ``measured`` are the ``GpuMemory`` of each GPU.
    """
    import dataclasses

    told = read_oom(str(error))
    found = measured.get(told.device) if told.device is not None else None
    current = memory.read().get(told.device, (None, 0))[0] if told.device is not None else None
    return dataclasses.replace(
        told,
        in_use=current,
        limit=found.limit if found is not None else None,
        peak=found.peak if found is not None else None,
        residents=tuple(largest(told.device)),
    )


def largest(device: Device | None) -> list[Resident]:
    """The largest residents of ``device``, or of every GPU."""
    found = [r for r in _residents() if device is None or r.device == device]
    found.sort(key=lambda r: (-r.nbytes, r.name))
    return found[:MAX_RESIDENTS]


def _residents() -> Iterator[Resident]:
    import tensorflow as tf

    tensor_class = private_memory.eager_tensor_class()
    # Not isinstance: it would ask objects for their __class__, and proxies then do things.
    for found in gc.get_objects():
        kind = type(found)
        if issubclass(kind, tensor_class):
            resident = _resident("eager tensor", found, found.backing_device)
        elif issubclass(kind, tf.Variable) and hasattr(found, "handle"):
            resident = _resident(f"variable {found.name}", found, found.device)
        else:
            continue
        if resident is not None:
            yield resident


def _resident(name: str, found: Any, device: str) -> Resident | None:
    if "GPU" not in device:
        return None
    try:
        dtype, shape = signatures.dtype_name(found.dtype), tuple(found.shape.as_list())
        size = tensor_bytes(dtype, shape)
        where = Device.parse(device)
    except (ValueError, AttributeError, TypeError, DeviceError):
        return None
    return Resident(name, dtype, shape, size, where) if size else None
