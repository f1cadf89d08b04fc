"""Every private name of TensorFlow that this project uses, and nothing else.

TensorFlow promises nothing about these.  Each stands in one function here, which looks it up when
called and raises :class:`MissingPrivate` where it is gone, so that a new TensorFlow fails with a
sentence and never with a wrong answer.  Each docstring names the versions it was seen on.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

_AUTOGRAPH = "tensorflow.python.autograph.impl.api"
_EAGER = "tensorflow.python.eager.context"
_EXECUTE = "tensorflow.python.eager.execute"
_OPS = "tensorflow.python.framework.ops"
_SESSION = "tensorflow.python.client.session"


class MissingPrivate(RuntimeError):
    """A private name that this project needs isn't in the installed TensorFlow."""

    def __init__(self, name: str, purpose: str) -> None:
        version = getattr(sys.modules.get("tensorflow"), "__version__", "of unknown version")
        super().__init__(
            f"TensorFlow {version} has no {name}, which pytest-tfdevice needs {purpose}. "
            "It was written against TensorFlow 2.12 to 2.21."
        )


def _lookup(module: str, path: str, purpose: str) -> Any:
    """The attribute ``path`` (dotted) of a module.

    Raises:
        MissingPrivate: the module or the attribute isn't there.
    """
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise MissingPrivate(f"{module}.{path}", purpose) from error
    return found


def _module(name: str, purpose: str, *paths: str) -> Any:
    """A module, once each of its attributes ``paths`` has been looked up."""
    for path in paths:
        _lookup(name, path, purpose)
    return importlib.import_module(name)


def _attribute(owner: Any, path: str, purpose: str, label: str) -> Any:
    """The attribute ``path`` (dotted) of an object that messages call ``label``."""
    try:
        for part in path.split("."):
            owner = getattr(owner, part)
    except AttributeError as error:
        raise MissingPrivate(f"{label}.{path}", purpose) from error
    return owner


def registered_kernels() -> Sequence[Any]:
    """``KernelDef`` protos of every kernel.  Seen on 2.12 to 2.21."""
    purpose = "to list the registered kernels"
    get = _lookup("tensorflow.python.framework.kernels", "get_all_registered_kernels", purpose)
    kernels: Sequence[Any] = get().kernel
    return kernels


def eager_context_exists() -> bool:
    """True once TensorFlow has initialised its devices in this process.  Seen on 2.12 to 2.21.

    Asking doesn't initialise them.
    """
    purpose = "to tell whether TensorFlow's devices are initialised"
    context = _lookup(_EAGER, "context_safe", purpose)()
    return context is not None and context_is_initialized(context)


def reinitialize_physical_devices() -> None:
    """Makes TensorFlow's Python side list its devices anew.  Seen on 2.12 to 2.21.

    TensorFlow does so itself after loading a pluggable device's library.  Does nothing where the
    list hasn't been made yet.
    """
    purpose = "to have a new device listed"
    context = _lookup(_EAGER, "context_safe", purpose)()
    if context is not None:
        _attribute(context, "reinitialize_physical_devices", purpose, "Context")()


def hide_pluggable_gpus() -> None:
    """Has TensorFlow's Python side take a GPU for one that isn't from a plugin.

    Keras 2 switches ``jit_compile`` off where there is a pluggable device; with an NVIDIA GPU it
    doesn't.  Only Python asks (the context for its list, ``DeviceSpec`` for its types), seen on
    2.12 to 2.21.
    """
    path, name = "tensorflow.python.pywrap_tfe", "TF_ListPluggablePhysicalDevices"
    original = _lookup(path, name, "to have a simulated GPU taken for a real one")

    def without_gpus() -> list[bytes]:
        return [device for device in original() if b":GPU:" not in device]

    setattr(importlib.import_module(path), name, without_gpus)


# --- the eager context -----------------------------------------------------------------------


def eager_context() -> Any:
    """The process' eager context, made if need be, not initialised (no device is touched).

    Seen on 2.12 to 2.21.
    """
    return _lookup(_EAGER, "context", "to reach the eager runtime")()


def context_is_initialized(context: Any) -> bool:
    """Whether TensorFlow's devices have been made already.  Seen on 2.12 to 2.21."""
    purpose = "to know whether TensorFlow's devices are initialised"
    return _attribute(context, "_context_handle", purpose, "Context") is not None


def context_pointer(context: Any) -> int:
    """Address of the ``TFE_Context`` inside the capsule that an initialised context holds.

    The capsule has no name.  Seen on 2.12 to 2.21.
    """
    purpose = "to switch placement logging"
    capsule = _attribute(context, "_context_handle", purpose, "Context")
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        address = get(capsule, None)
    except ValueError as error:  # not a capsule, or one with a name
        raise MissingPrivate("capsule in Context._context_handle", purpose) from error
    return int(address)


def log_flag(context: Any) -> bool | None:
    """What Python was last told about placement logging; None where it was never told.

    Seen on 2.12 to 2.21.
    """
    purpose = "to switch placement logging"
    value = _attribute(context, "_log_device_placement", purpose, "Context")
    return None if value is None else bool(value)


def set_log_flag(context: Any, value: bool | None) -> None:
    """Sets what new functions and Sessions read.  Seen on 2.12 to 2.21.

    The public property would call the wrong C function: see ``logging_switch``.
    """
    log_flag(context)
    context._log_device_placement = value


def forget_function_options(context: Any) -> None:
    """Clears this thread's options for functions, which hold a copy of the logging flag.

    TensorFlow makes them again when it next needs them.  Seen on 2.12 to 2.21.
    """
    purpose = "to switch placement logging of functions"
    _attribute(context, "_thread_local_data.function_call_options", purpose, "Context")
    context._thread_local_data.function_call_options = None


def clear_kernel_cache(context: Any) -> None:
    """Makes the next call of each function instantiate it again.  Seen on 2.12 to 2.21."""
    purpose = "to see the bodies of functions that have run before"
    _attribute(context, "clear_kernel_cache", purpose, "Context")()


@functools.cache
def c_library() -> ctypes.CDLL:
    """The library, already in the process, that exports TensorFlow's C functions.

    Seen on 2.12 to 2.21 on Linux; on other systems never tried.
    """
    purpose = "to call TensorFlow's C functions"
    folder = os.path.dirname(os.path.abspath(str(_lookup("tensorflow", "__file__", purpose))))
    names = {
        "darwin": ["libtensorflow_cc.2.dylib"],
        "win32": ["python/_pywrap_tensorflow_common.dll", "python/_pywrap_tensorflow_internal.pyd"],
    }.get(sys.platform, ["libtensorflow_cc.so.2"])
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return ctypes.CDLL(path)
    raise MissingPrivate(f"file {' or '.join(names)}", purpose)


def c_function(name: str, purpose: str, result: Any, *arguments: Any) -> Any:
    """An exported C function, with its types set."""
    found = _attribute(c_library(), name, purpose, "the C library")
    found.restype, found.argtypes = result, list(arguments)
    return found


def set_c_logging(context: Any, enabled: bool) -> None:
    """``TFE_ContextSetLogDevicePlacement`` of C, which does what its Python binding doesn't.

    Switches the log lines of eager ops and function calls in every thread, at once; ``context``
    must be initialised.  Seen on 2.12 to 2.21.

    Raises:
        MissingPrivate: a name isn't there.
        RuntimeError: TensorFlow refused.
    """
    purpose = "to switch placement logging"
    pointer = ctypes.c_void_p
    switch = c_function(
        "TFE_ContextSetLogDevicePlacement", purpose, None, pointer, ctypes.c_ubyte, pointer
    )
    new_status = c_function("TF_NewStatus", purpose, pointer)
    delete_status = c_function("TF_DeleteStatus", purpose, None, pointer)
    get_code = c_function("TF_GetCode", purpose, ctypes.c_int, pointer)
    status = new_status()
    try:
        switch(context_pointer(context), int(enabled), status)
        code = get_code(status)
    finally:
        delete_status(status)
    if code:
        raise RuntimeError(f"TensorFlow refused to switch placement logging (code {code})")


# --- watching --------------------------------------------------------------------------------


def check_context() -> None:
    """Probes the methods of the eager context that the capture calls."""
    for purpose, names in (
        ("to see inside functions", "enable_graph_collection disable_graph_collection"),
        ("to see inside functions", "export_run_metadata clear_kernel_cache get_function_def"),
        ("to see eager ops", "op_callbacks device_name"),
        ("to start watching when TensorFlow starts", "ensure_initialized"),
    ):
        _module(_EAGER, purpose, *(f"Context.{name}" for name in names.split()))


def eager_mode() -> Any:
    """A context manager that runs ops eagerly whatever graph is being built."""
    return _lookup(_EAGER, "eager_mode", "to run an op of its own")()


def session_config() -> Any:
    """A copy of the ``ConfigProto`` that describes the eager context's devices."""
    _lookup(_EAGER, "Context.config", "to ask the placer")
    config = eager_context().config
    copy = type(config)()
    copy.CopyFrom(config)
    return copy


def handle_data(tensor: Any) -> Any:
    """What a resource tensor says of the variable behind it: dtype and shape; None for nothing.

    Seen on 2.12 to 2.21.
    """
    return getattr(tensor, "_handle_data", None)


def execute_with_callbacks() -> Callable[..., Any]:
    """The eager executor that calls op callbacks.  Seen on 2.12 to 2.21."""
    found: Callable[..., Any] = _lookup(_EXECUTE, "execute_with_callbacks", "to see eager ops")
    return found


def use_callbacks(executor: bool | Callable[..., Any]) -> None:
    """Makes the eager executor call op callbacks, or not; or puts another in its place.

    ``op_callbacks.add_op_callback`` does the same, but only when called in eager mode, and its
    removal switches the callbacks of every other thread off (2.12 to 2.21).
    """
    module = _module(_EXECUTE, "to see eager ops", "quick_execute", "execute_with_callbacks")
    if isinstance(executor, bool):
        executor = module.execute_with_callbacks if executor else module.quick_execute
    module.__dict__["execute"] = executor


def executes_with_callbacks() -> bool:
    """True while the eager executor calls op callbacks."""
    module = _module(_EXECUTE, "to see eager ops", "execute", "quick_execute")
    return bool(module.execute is not module.quick_execute)


def py_function_registry() -> Any:
    """The class whose instance the runtime calls for each ``py_function``.  Seen on 2.12 to 2.21.

    The runtime calls it as ``registry(token, device, args)``.
    """
    purpose = "to see what runs in a py_function"
    return _module("tensorflow.python.ops.script_ops", purpose, "FuncRegistry").FuncRegistry


def op_errors() -> Any:
    """The module whose ``raise_from_not_ok_status(error, name)`` raises for each eager op that
    failed.  Seen on 2.12 to 2.21."""
    purpose = "to see eager ops that raise"
    return _module(_OPS, purpose, "raise_from_not_ok_status")


def functions_of(graph: Any) -> tuple[Any, ...]:
    """The Python functions that a ``tf.Graph`` calls; none for one that TensorFlow has dismantled.

    Seen on 2.12 to 2.21.
    """
    return tuple(getattr(graph, "_functions", {}).values())


def autograph_origin(file: str, line: int) -> tuple[str, int, str] | None:
    """Where a line of a file that AutoGraph generated comes from.  Seen on 2.12 to 2.21.

    TensorFlow translates such lines in the stacks of graph ops itself, but not in the threads of
    a distribution strategy's replicas.
    """
    purpose = "to name source lines"
    transpiler = _lookup(_AUTOGRAPH, "_TRANSPILER", purpose)
    cached = _attribute(transpiler, "_cache._cache", purpose, "autograph's transpiler")
    for factories in tuple(cached.values()):
        for factory in tuple(factories.values()):
            ours = getattr(factory.module, "__file__", None) == file
            for place, origin in factory.source_map.items() if ours else ():
                if place.lineno == line:
                    return origin.loc.filename, origin.loc.lineno, origin.function_name or ""
    return None


def func_graph_class() -> Any:
    """``FuncGraph``: the Python side of a function, which keeps source lines and shapes."""
    return _lookup("tensorflow.python.framework.func_graph", "FuncGraph", "to name source lines")


def op_def(op_type: str) -> Any:
    """The ``OpDef`` of a registered op type, or None for a type that isn't registered."""
    get = _lookup("tensorflow.python.framework.op_def_registry", "get", "to know an op's signature")
    return get(op_type)


def session_class() -> Any:
    """``BaseSession``: what every ``tf.compat.v1`` Session in the process is made of."""
    names = "_call_tf_sessionrun _call_tf_sessionprun _make_callable_from_options _Callable"
    paths = [f"BaseSession.{name}" for name in names.split()]
    return _module(_SESSION, "to watch v1 Sessions", *paths).BaseSession


def session_buffers() -> Any:
    """The binding's functions for ``RunOptions`` and ``RunMetadata`` buffers."""
    names = "TF_NewBuffer TF_NewBufferFromString TF_GetBuffer TF_DeleteBuffer TF_OperationName"
    binding = "tensorflow.python.client.pywrap_tf_session"
    return _module(binding, "to watch v1 Sessions", *names.split())


def tracing_graphs() -> bool:
    """True while the user's own ``tf.summary.trace_on(graph=True)`` collects graphs."""
    state = _lookup("tensorflow.python.ops.summary_ops_v2", "__dict__", "to leave tf.summary alone")
    trace = state.get("_current_trace_context")
    return bool(trace is not None and getattr(trace, "graph", False))


def probe() -> list[str]:
    """Tries every name; what is missing, one message each.  Initialises no device."""
    purpose = "to see what ran"
    checks: tuple[Callable[[], object], ...] = (
        registered_kernels,
        eager_context_exists,
        lambda: context_is_initialized(eager_context()),
        lambda: log_flag(eager_context()),
        lambda: _attribute(
            eager_context(), "_thread_local_data.function_call_options", purpose, "Context"
        ),
        lambda: _attribute(eager_context(), "reinitialize_physical_devices", purpose, "Context"),
        c_library,
        check_context,
        lambda: _module(_EAGER, purpose, "eager_mode", "Context.config"),
        executes_with_callbacks,
        execute_with_callbacks,
        py_function_registry,
        op_errors,
        func_graph_class,
        lambda: _attribute(_lookup(_OPS, "Graph", purpose)(), "_functions", purpose, "Graph"),
        lambda: _lookup(_AUTOGRAPH, "_TRANSPILER._cache", purpose),
        lambda: op_def("MatMul"),
        session_class,
        session_buffers,
        tracing_graphs,
    )
    missing = []
    for check in checks:
        try:
            check()
        except MissingPrivate as error:
            missing.append(str(error))
    return missing
