"""The structured channels of this process, shared by every open window.

Op callbacks tell each eager op and function call of the thread that registered them; graph
collection tells every function and eager op that any thread instantiates; v1 Sessions tell through
their run metadata.  Windows open and close in any order, nested and in several threads:

* what a thread does goes to every window of that thread, innermost and outer alike;
* what a thread without a window does goes to every open window;
* graph collection can't tell threads apart, so every open window gets every graph, and a window
  sorts out those that another thread's window has seen run.

TensorFlow's devices are never initialised from here: a test may still configure them, and a v1
Session's memory fraction only counts when it is the first to create them.  Until the process's
eager context initialises itself, graph collection waits for it.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any, Literal, Protocol

from pytest_tfdevice.capture import private, sessions
from pytest_tfdevice.capture.copies import CopyPatch

SENTINEL_TYPE = "StringJoin"
_SENTINEL_NAME = "pytest_tfdevice_sentinel_"


class Sink(Protocol):
    """What a window takes from the channels; ``thread`` is the one that it watches."""

    thread: int

    def on_op(self, op_type: str, inputs: Any, attrs: Any, outputs: Any, scope: str) -> None: ...
    def on_graphs(self, metadata: Any) -> None: ...
    def on_copy(
        self, cause: Literal["value", "read", "copy"], tensor: Any, target: str
    ) -> None: ...
    def on_session_run(self, run: sessions.SessionRun) -> None: ...
    def on_problem(self, what: str) -> None: ...


def is_sentinel(node: Any) -> bool:
    """True for the node of an op that was run from here."""
    return bool(
        node.op == SENTINEL_TYPE
        and node.attr["separator"].s.decode(errors="replace").startswith(_SENTINEL_NAME)
    )


class Channels:
    """Switches the channels on with the first window and off with the last."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._local = threading.local()
        self._serial = itertools.count()
        self._sinks: list[Sink] = []
        self._threads: dict[int, int] = {}
        self._context: Any = None
        self._collecting = False
        self._user_collects = False
        self._sessions: sessions.SessionPatch | None = None
        self._copies = CopyPatch(self._copy, self._is_silent)

    # ------------------------------------------------------------------ windows
    def open(self, sink: Sink) -> None:
        """Begins to feed ``sink``; functions that ran before will be seen again."""
        with self._lock:
            context = private.eager_context()
            if context is not self._context:
                self._leave_context()
                self._enter_context(context)
            if not self._sinks:
                self._sessions = sessions.SessionPatch(
                    self._session_run, self._problem, self._is_silent
                )
                self._sessions.install()
                self._copies.install()
            elif self._sessions is not None:
                self._sessions.forget()
            if self._collecting:
                self._flush()
                context.clear_kernel_cache()
            self._sinks.append(sink)
            self._add_callback(sink.thread)

    def close(self, sink: Sink) -> None:
        """Feeds ``sink`` what is left, and takes it off.  Tells it where a channel was cut."""
        with self._lock:
            if sink not in self._sinks:
                return
            try:
                self._check_alive(sink)
            finally:
                self._sinks.remove(sink)
                self._remove_callback(sink.thread)
                if not self._sinks:
                    self._leave_context()
                    if self._sessions is not None:
                        self._sessions.remove()
                    self._sessions = None
                    self._copies.remove()

    def _check_alive(self, sink: Sink) -> None:
        context = private.eager_context()
        if context is not self._context:
            sink.on_problem(
                "TensorFlow's eager context was replaced while this was watched, so what ran "
                "afterwards was not seen"
            )
            return
        if self._callback not in context.op_callbacks and sink.thread == threading.get_ident():
            sink.on_problem(
                "the op callbacks were cleared while this was watched (clear_op_callbacks?), so "
                "eager ops that ran afterwards were not seen"
            )
        if self._collecting and not self._flush():
            sink.on_problem(
                "TensorFlow's graph collection was switched off while this was watched, so what "
                "ran inside functions was not seen"
            )

    def collect(self) -> None:
        """Hands out the graphs that were instantiated until now."""
        with self._lock:
            if self._collecting:
                self._export()

    # ------------------------------------------------------- the eager context
    def _enter_context(self, context: Any) -> None:
        self._context = context
        self._user_collects = private.context_is_initialized(context) and private.tracing_graphs()
        if private.context_is_initialized(context):
            self._start_collection()
            return
        initialise = context.ensure_initialized

        def ensure_initialized() -> None:
            initialise()
            with self._lock:
                context.__dict__.pop("ensure_initialized", None)
                if context is self._context and not self._collecting:
                    self._start_collection()

        context.ensure_initialized = ensure_initialized

    def _start_collection(self) -> None:
        context = self._context
        type(context).enable_graph_collection(context)
        self._collecting = True
        context.enable_graph_collection = self._user_enable
        context.disable_graph_collection = self._user_disable
        context.export_run_metadata = self._user_export

    def _leave_context(self) -> None:
        context, self._context = self._context, None
        if context is None:
            return
        for name in (
            "ensure_initialized",
            "enable_graph_collection",
            "disable_graph_collection",
            "export_run_metadata",
        ):
            context.__dict__.pop(name, None)
        if self._collecting and not self._user_collects:
            context.disable_graph_collection()
        self._collecting = False

    # The user's own tracing (tf.summary.trace_on) shares the one collection of the context: it is
    # answered from here, so that neither takes the other's graphs nor switches it off.
    def _user_enable(self) -> None:
        self._user_collects = True

    def _user_disable(self) -> None:
        self._user_collects = False

    def _user_export(self) -> Any:
        with self._lock:
            return self._export()

    def _export(self) -> Any:
        metadata = type(self._context).export_run_metadata(self._context)
        if metadata is not None and metadata.function_graphs:
            for sink in self._sinks:
                sink.on_graphs(metadata)
        return metadata

    def _flush(self) -> bool:
        """Hands out all that was instantiated; False where the collection turns out to be dead.

        An op that raised leaves its graph to the next op that is instantiated (2.12 to 2.21), so
        an op that was never run before comes last: its graph brings that one along, and shows
        that the collection is alive.
        """
        import tensorflow as tf

        token = f"{_SENTINEL_NAME}{next(self._serial)}"
        with self.silent(), private.eager_mode(), tf.device("/CPU:0"):
            tf.raw_ops.StringJoin(inputs=[""], separator=token)
        metadata = self._export()
        return metadata is not None and any(
            is_sentinel(node)
            for graphs in metadata.function_graphs
            for node in graphs.post_optimization_graph.node
        )

    # ------------------------------------------------------------ op callbacks
    def _callback(
        self,
        op_type: Any,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: Any = None,
        graph: Any = None,
    ) -> None:
        if graph is not None or self._is_silent():
            return
        me = threading.get_ident()
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        scope = self._context.device_name if self._context is not None else ""
        for sink in tuple(self._sinks):
            if sink.thread == me:
                try:
                    sink.on_op(name, inputs, attrs, outputs, scope)
                except Exception as error:  # must never break the op that was watched
                    sink.on_problem(f"{name} could not be recorded: {error!r}")

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """What the calling thread runs inside is this package's own: no window sees it."""
        self._local.silent = True
        try:
            yield
        finally:
            self._local.silent = False

    def _is_silent(self) -> bool:
        return bool(getattr(self._local, "silent", False))

    def _add_callback(self, thread: int) -> None:
        self._threads[thread] = self._threads.get(thread, 0) + 1
        self._context.add_op_callback(self._callback)
        private.use_callbacks(True)

    def _remove_callback(self, thread: int) -> None:
        context = private.eager_context()
        self._threads[thread] -= 1
        if not self._threads[thread]:
            del self._threads[thread]
            if self._callback in context.op_callbacks:
                context.remove_op_callback(self._callback)
        private.use_callbacks(bool(self._threads or context.op_callbacks))

    # ------------------------------------------------------------- v1 Sessions
    def _receivers(self) -> tuple[Sink, ...]:
        me = threading.get_ident()
        mine = tuple(sink for sink in self._sinks if sink.thread == me)
        return mine or tuple(self._sinks)

    def _session_run(self, run: sessions.SessionRun) -> None:
        for sink in self._receivers():
            sink.on_session_run(run)

    def _copy(self, cause: Literal["value", "read", "copy"], tensor: Any, target: str) -> None:
        me = threading.get_ident()
        for sink in tuple(self._sinks):
            if sink.thread == me:
                sink.on_copy(cause, tensor, target)

    def _problem(self, what: str) -> None:
        for sink in self._receivers():
            sink.on_problem(what)


CHANNELS = Channels()
"""The one instance: TensorFlow's context and Session class are the process's, too."""
