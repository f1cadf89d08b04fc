"""Every private name of TensorFlow that this project uses, and nothing else.

Each is taken by a function of its own that says what it is for and raises :class:`MissingPrivate`
with the version and the name where a TensorFlow lacks it.  :func:`probe` tries them all; a test
runs it on every supported version.  Seen on 2.12.1, 2.15.1, 2.18.1 and 2.21.0.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class MissingPrivate(RuntimeError):
    """This TensorFlow lacks a private name that the capture rests on."""


def _take(module: str, path: str, purpose: str) -> Any:
    """The object ``path`` (dotted) of TensorFlow's ``module``.

    Raises:
        MissingPrivate: it isn't there.
    """
    try:
        found: Any = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        import tensorflow as tf

        raise MissingPrivate(
            f"TensorFlow {tf.__version__} has no {module}.{path}, which pytest-tfdevice needs "
            f"{purpose}. Supported are TensorFlow 2.12 to 2.21; please report this version."
        ) from error
    return found


_EAGER = "tensorflow.python.eager.context"


def eager_context() -> Any:
    """The process's eager context object, made if need be but **not** initialised."""
    return _take(_EAGER, "context", "to watch eager code")()


def is_initialised(context: Any) -> bool:
    """True once the context has created its devices."""
    if not hasattr(context, "_context_handle"):
        _take(_EAGER, "Context._context_handle", "to see whether devices exist")
    return context._context_handle is not None


def check_context() -> None:
    """Probes the methods of the eager context that the capture calls."""
    for name, purpose in (
        ("ensure_initialized", "to start watching when TensorFlow starts"),
        ("enable_graph_collection", "to see what is inside functions"),
        ("disable_graph_collection", "to stop watching"),
        ("export_run_metadata", "to read the graphs that ran"),
        ("clear_kernel_cache", "to see inside functions that ran before"),
        ("get_function_def", "to see inside compiled functions"),
        ("add_op_callback", "to see eager ops"),
        ("remove_op_callback", "to stop watching eager ops"),
        ("device_name", "to know the tf.device scope in force"),
    ):
        _take(_EAGER, f"Context.{name}", purpose)


def eager_mode() -> Any:
    """A context manager that runs ops eagerly whatever graph is being built."""
    return _take(_EAGER, "eager_mode", "to run an op of its own")()


def session_config() -> Any:
    """A copy of the ``ConfigProto`` that describes the eager context's devices."""
    _take(_EAGER, "Context.config", "to ask the placer")
    config = eager_context().config
    copy = type(config)()
    copy.CopyFrom(config)
    return copy


def use_callbacks(on: bool) -> None:
    """Makes the eager executor call op callbacks, or not.

    ``op_callbacks.add_op_callback`` does the same, but only when called in eager mode, and its
    removal switches the callbacks of every other thread off (2.12 to 2.21).
    """
    module = importlib.import_module("tensorflow.python.eager.execute")
    for name in ("execute", "quick_execute", "execute_with_callbacks"):
        _take("tensorflow.python.eager.execute", name, "to see eager ops")
    module.__dict__["execute"] = module.execute_with_callbacks if on else module.quick_execute


def executes_with_callbacks() -> bool:
    """True while the eager executor calls op callbacks."""
    module = importlib.import_module("tensorflow.python.eager.execute")
    _take("tensorflow.python.eager.execute", "execute_with_callbacks", "to see eager ops")
    return bool(module.execute is module.execute_with_callbacks)


def func_graph_class() -> Any:
    """``FuncGraph``: the Python side of a function, which keeps source lines and shapes."""
    return _take("tensorflow.python.framework.func_graph", "FuncGraph", "to name source lines")


def op_def(op_type: str) -> Any:
    """The ``OpDef`` of a registered op type, or None for a type that isn't registered."""
    get = _take("tensorflow.python.framework.op_def_registry", "get", "to know an op's signature")
    return get(op_type)


def session_class() -> Any:
    """``BaseSession``: what every ``tf.compat.v1`` Session in the process is made of."""
    found = _take("tensorflow.python.client.session", "BaseSession", "to watch v1 Sessions")
    for name in ("_call_tf_sessionrun", "_make_callable_from_options", "_call_tf_sessionprun"):
        _take("tensorflow.python.client.session", f"BaseSession.{name}", "to watch v1 Sessions")
    _take("tensorflow.python.client.session", "BaseSession._Callable", "to watch v1 callables")
    return found


def session_buffers() -> Any:
    """The binding's functions for ``RunOptions`` and ``RunMetadata`` buffers."""
    module = importlib.import_module("tensorflow.python.client.pywrap_tf_session")
    for name in (
        "TF_NewBuffer",
        "TF_NewBufferFromString",
        "TF_GetBuffer",
        "TF_DeleteBuffer",
        "TF_OperationName",
    ):
        _take("tensorflow.python.client.pywrap_tf_session", name, "to watch v1 Sessions")
    return module


def tracing_graphs() -> bool:
    """True while the user's own ``tf.summary.trace_on(graph=True)`` collects graphs."""
    state = _take("tensorflow.python.ops.summary_ops_v2", "__dict__", "to leave tf.summary alone")
    trace = state.get("_current_trace_context")
    return bool(trace is not None and getattr(trace, "graph", False))


def probe() -> list[str]:
    """Tries every name; what is missing, one message each."""
    checks: tuple[Callable[[], object], ...] = (
        eager_context,
        lambda: is_initialised(eager_context()),
        check_context,
        eager_mode,
        lambda: _take(_EAGER, "Context.config", "to ask the placer"),
        executes_with_callbacks,
        func_graph_class,
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
