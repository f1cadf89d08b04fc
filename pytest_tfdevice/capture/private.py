"""Every private TensorFlow name that this package uses, one function for each, with its probe.

A name that a TensorFlow doesn't have raises MissingPrivate, which names it and the version, rather
than an AttributeError from the depths or, worse, a capture that silently sees nothing.  What is
said of a name was checked on TensorFlow 2.12 to 2.21.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from typing import Any


class MissingPrivate(RuntimeError):
    """This TensorFlow lacks a private name that pytest-tfdevice relies on."""

    def __init__(self, name: str, purpose: str) -> None:
        self.name = name
        version = getattr(sys.modules.get("tensorflow"), "__version__", "of unknown version")
        super().__init__(
            f"TensorFlow {version} has no {name}, which pytest-tfdevice needs to {purpose}; "
            "please report it with the TensorFlow version (supported: 2.12 to 2.21)"
        )


def _module(name: str, purpose: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPrivate(name, purpose) from error


def _attribute(owner: Any, name: str, purpose: str, label: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise MissingPrivate(f"{label}.{name}", purpose) from error


# --- the eager context -----------------------------------------------------------------------


def eager_context() -> Any:
    """``tensorflow.python.eager.context.context()``: the process' eager context, made if need be
    but not initialised (no device is touched)."""
    purpose = "reach the eager runtime"
    module = _module("tensorflow.python.eager.context", purpose)
    return _attribute(module, "context", purpose, module.__name__)()


def context_is_initialized(context: Any) -> bool:
    """``Context._context_handle``: whether the devices have been made already."""
    purpose = "know whether TensorFlow's devices have been initialised"
    return _attribute(context, "_context_handle", purpose, "Context") is not None


def context_pointer(context: Any) -> int:
    """Address of the ``TFE_Context`` inside the capsule ``Context._context_handle``.

    The capsule has no name.  ``context`` must be initialised.
    """
    purpose = "switch placement logging"
    capsule = _attribute(context, "_context_handle", purpose, "Context")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        address = get(capsule, None)
    except ValueError as error:  # not a capsule, or one with a name
        raise MissingPrivate("capsule in Context._context_handle", purpose) from error
    return int(address)


def log_flag(context: Any) -> bool | None:
    """``Context._log_device_placement``: what Python was last told; None where never told."""
    value = _attribute(context, "_log_device_placement", "switch placement logging", "Context")
    return None if value is None else bool(value)


def set_log_flag(context: Any, value: bool | None) -> None:
    """Sets ``Context._log_device_placement``, which new functions and Sessions read.

    The property of that name would call the wrong C function (see ``logging_switch``).
    """
    log_flag(context)
    context._log_device_placement = value


def forget_function_options(context: Any) -> None:
    """Clears ``Context._thread_local_data.function_call_options`` of this thread.

    They hold a copy of the logging flag, and are made again when next needed.
    """
    purpose = "switch placement logging of functions"
    local = _attribute(context, "_thread_local_data", purpose, "Context")
    _attribute(local, "function_call_options", purpose, "Context._thread_local_data")
    local.function_call_options = None


def clear_kernel_cache(context: Any) -> None:
    """``Context.clear_kernel_cache()``: the next call of each function instantiates it again."""
    purpose = "see the bodies of functions that have run before"
    _attribute(context, "clear_kernel_cache", purpose, "Context")()


# --- the C library ---------------------------------------------------------------------------


@functools.cache
def c_library() -> ctypes.CDLL:
    """The library, already in the process, that exports TensorFlow's C functions."""
    purpose = "call TensorFlow's C functions"
    tensorflow = _module("tensorflow", purpose)
    folder = os.path.dirname(os.path.abspath(tensorflow.__file__))
    names = {
        "darwin": ["libtensorflow_cc.2.dylib"],
        "win32": ["python/_pywrap_tensorflow_common.dll", "python/_pywrap_tensorflow_internal.pyd"],
    }.get(sys.platform, ["libtensorflow_cc.so.2"])
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return ctypes.CDLL(path)
    raise MissingPrivate(" or ".join(names), purpose)


def c_function(name: str, result: Any, *arguments: Any) -> Any:
    """An exported C function with its types set."""
    try:
        found = getattr(c_library(), name)
    except AttributeError as error:
        raise MissingPrivate(f"exported C function {name}", "call it") from error
    found.restype, found.argtypes = result, list(arguments)
    return found


def set_c_logging(context: Any, enabled: bool) -> None:
    """``TFE_ContextSetLogDevicePlacement`` of C, which does what its Python binding doesn't.

    Switches the log lines of eager ops and function calls in every thread, at once.

    Raises:
        MissingPrivate: a name isn't there.
        RuntimeError: TensorFlow refused.
    """
    pointer = ctypes.c_void_p
    switch = c_function("TFE_ContextSetLogDevicePlacement", None, pointer, ctypes.c_ubyte, pointer)
    new_status = c_function("TF_NewStatus", pointer)
    delete_status = c_function("TF_DeleteStatus", None, pointer)
    get_code = c_function("TF_GetCode", ctypes.c_int, pointer)
    status = new_status()
    try:
        switch(context_pointer(context), int(enabled), status)
        code = get_code(status)
    finally:
        delete_status(status)
    if code:
        raise RuntimeError(f"TensorFlow refused to switch placement logging (code {code})")
