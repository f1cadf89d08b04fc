"""The private names of TensorFlow that measuring memory and seeing copies needs.

As in ``private``: each is looked up when it is used, and its absence is a sentence.  Seen on 2.12
to 2.21.
"""

from __future__ import annotations

import os
from typing import Any

from pytest_tfdevice.capture.private import MissingPrivate, _attribute, _lookup, eager_context

_TFE = "tensorflow.python.pywrap_tfe"
_SESSION = "tensorflow.python.client.pywrap_tf_session"
_PURPOSE = "to measure GPU memory"


def context_handle() -> Any:
    """The handle of the process's own eager context, which has been initialised."""
    return _attribute(eager_context(), "_context_handle", _PURPOSE, "Context")


def device_memory_limits(handle: Any) -> dict[str, int]:
    """Bytes that the allocator of each GPU may take, by device name, in TensorFlow's order.

    ``handle`` is that of an initialised eager context.
    """
    devices = _lookup(_TFE, "TFE_ContextListDevices", _PURPOSE)(handle)
    count = _lookup(_TFE, "TF_DeviceListCount", _PURPOSE)(devices)
    name = _lookup(_TFE, "TF_DeviceListName", _PURPOSE)
    memory = _lookup(_SESSION, "TF_DeviceListMemoryBytes", _PURPOSE)
    names = [str(name(devices, number)) for number in range(count)]
    return {n: int(memory(devices, i)) for i, n in enumerate(names) if "/device:GPU:" in n}


def memory_info(handle: Any, device: str) -> tuple[int, int]:
    """Bytes in use and their peak since the last reset."""
    found = _lookup(_TFE, "TFE_GetMemoryInfo", _PURPOSE)(handle, device)
    return int(found["current"]), int(found["peak"])


def reset_memory_stats(handle: Any, device: str) -> None:
    """Begins a new peak."""
    _lookup(_TFE, "TFE_ResetMemoryStats", _PURPOSE)(handle, device)


def new_context(config: Any) -> Any:
    """The handle of an eager context beside the process's own, for devices that a Session made.

    It has the same allocators, and goes with its last reference.  It must not be made where
    nothing has initialised the GPUs: it would.
    """
    small = type(config)()
    small.CopyFrom(config)
    small.intra_op_parallelism_threads = small.inter_op_parallelism_threads = 1
    options = _lookup(_TFE, "TFE_NewContextOptions", _PURPOSE)()
    try:
        _lookup(_TFE, "TFE_ContextOptionsSetConfig", _PURPOSE)(options, small.SerializeToString())
        return _lookup(_TFE, "TFE_NewContext", _PURPOSE)(options)
    finally:
        _lookup(_TFE, "TFE_DeleteContextOptions", _PURPOSE)(options)


def growth(configured: bool | None) -> bool | None:
    """Whether memory grows as needed: the environment goes before what the code configured."""
    forced = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH", "").strip().lower()
    if forced in ("true", "1"):
        return True
    if forced in ("false", "0"):
        return False
    return configured


def eager_tensor_class() -> Any:
    """The Python base of eager tensors, whose methods read and copy them."""
    path = "_EagerTensorBase"
    module = "tensorflow.python.framework.ops"
    for name in ("_numpy", "_copy_nograd"):
        _lookup(module, f"{path}.{name}", "to see tensors that are read")
    return _lookup(module, path, "to see tensors that are read")


def constant_module() -> Any:
    """The module whose ``convert_to_eager_tensor`` makes tensors of host values."""
    module = "tensorflow.python.framework.constant_op"
    _lookup(module, "convert_to_eager_tensor", "to see host values that go to a GPU")
    import importlib

    return importlib.import_module(module)


def probe() -> list[str]:
    """Tries every name; what is missing, one message each.  Initialises no device."""
    names = [
        *((_TFE, n) for n in (
            "TFE_ContextListDevices", "TF_DeviceListCount", "TF_DeviceListName",
            "TFE_GetMemoryInfo", "TFE_ResetMemoryStats", "TFE_NewContextOptions",
            "TFE_ContextOptionsSetConfig", "TFE_NewContext", "TFE_DeleteContextOptions",
        )),
        (_SESSION, "TF_DeviceListMemoryBytes"),
    ]  # fmt: skip
    checks = [lambda m=m, n=n: _lookup(m, n, _PURPOSE) for m, n in names]
    missing = []
    for check in (*checks, context_handle, eager_tensor_class, constant_module):
        try:
            check()
        except MissingPrivate as error:
            missing.append(str(error))
    return missing
