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
import functools
import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pytest_tfdevice.capture import entries, graphs, private, private_executor, sessions
from pytest_tfdevice.capture.copies import CopyPatch, HandCause
from pytest_tfdevice.capture.interception import FAILED_OP, Interception


class Sink(Protocol):
    """What a window takes from the channels; ``thread`` is the one that it watches."""

    thread: int

    def on_op(self, op: RanOp) -> None: ...
    def on_op_raised(self, op_type: str, device: str, scope: str) -> None: ...
    def on_op_failed(self, op_type: str, device: str) -> None: ...
    def on_entry(self, entry: entries.Entry) -> None: ...
    def on_copy(self, cause: HandCause, tensor: Any, target: str) -> None: ...
    def on_session_run(self, run: sessions.SessionRun) -> None: ...
    def on_problem(self, what: str) -> None: ...


@dataclass(frozen=True, slots=True)
class RanOp:
    """An eager op or function call, as its callback tells it.

    ``scope`` is the ``tf.device`` in force.  ``outputs`` is None where it raised.
    """

    type: str
    inputs: Any
    attrs: tuple[Any, ...]
    outputs: Any
    scope: str
    in_py_function: bool


class Channels:
    """Switches the channels on with the first window and off with the last."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._local = threading.local()
        self._serial = itertools.count()
        self._sinks: list[Sink] = []
        self._context: Any = None
        self._collecting = False
        self._user_collects = False
        self._kept: Any = None
        self._sessions: sessions.SessionPatch | None = None
        self._copies = CopyPatch(self._copy, self._is_silent)
        self._intercepted = Interception(
            self._callback, self._call_raised, self._op_raised, self._is_silent
        )

    # ------------------------------------------------------------------ windows
    def open(self, sink: Sink) -> None:
        """Begins to feed ``sink``; functions that ran before will be seen again.

        Raises:
            MissingPrivate: this TensorFlow lacks a name that is needed; nothing has been changed.
        """
        with self._lock:
            try:
                self._open(private.eager_context())
            except BaseException:
                if not self._sinks:
                    self._switch_off()
                raise
            self._sinks.append(sink)
            self._intercepted.watch_thread()

    def _open(self, context: Any) -> None:
        if context is not self._context:
            self._leave_context()
            self._enter_context(context)
        if not self._sinks:
            self._sessions = sessions.SessionPatch(
                self._session_run, self._problem, self._is_silent
            )
            self._sessions.install()
            self._intercepted.install()
            self._copies.install()
        elif self._sessions is not None:
            self._sessions.forget()
        if self._collecting:
            self._flush()
            context.clear_kernel_cache()

    def _switch_off(self) -> None:
        self._copies.remove()
        self._intercepted.remove()
        self._leave_context()
        if self._sessions is not None:
            self._sessions.remove()
        self._sessions = None

    def close(self, sink: Sink) -> None:
        """Feeds ``sink`` what is left, and takes it off.  Tells it where a channel was cut."""
        with self._lock:
            if sink not in self._sinks:
                return
            try:
                self._check_alive(sink)
            finally:
                self._sinks.remove(sink)
                if not self._sinks:
                    self._switch_off()

    def _check_alive(self, sink: Sink) -> None:
        context = private.eager_context()
        if context is not self._context:
            sink.on_problem(
                "TensorFlow's eager context was replaced while this was watched, so what ran "
                "afterwards was not seen"
            )
            return
        self._tell_failed(sink, private_executor.wait(context))
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
        if self._kept is not None:
            context.export_run_metadata = functools.partial(self._export_kept, context)
        self._collecting = False

    # The user's own tracing (tf.summary.trace_on) shares the one collection of the context: it is
    # answered from here, so that neither takes the other's graphs nor switches it off.
    def _user_enable(self) -> None:
        self._user_collects, self._kept = True, None

    def _user_disable(self) -> None:
        self._user_collects, self._kept = False, None

    def _user_export(self) -> Any:
        with self._lock:
            self._export()
            kept, self._kept = self._kept, None
            return kept

    def _export_kept(self, context: Any) -> Any:
        """The user's first export after the last window: what it took from them, and the rest."""
        with self._lock:
            context.__dict__.pop("export_run_metadata", None)
            kept, self._kept = self._kept, None
            rest = context.export_run_metadata()
            if kept is None or rest is None:
                return rest
            kept.MergeFrom(rest)
            return kept

    def _export(self) -> Any:
        with private_executor.own_executor(self._context):
            metadata = type(self._context).export_run_metadata(self._context)
        if metadata is None:
            return None
        if self._user_collects:
            self._keep(metadata)
        found = [entries.read(graphs) for graphs in metadata.function_graphs]
        for entry in found:
            for sink in tuple(self._sinks):
                sink.on_entry(entry)
        return found

    def _keep(self, metadata: Any) -> None:
        """Keeps for the user what is his: everything but the ops that were run from here."""
        kept = type(metadata)()
        kept.CopyFrom(metadata)
        del kept.function_graphs[:]
        kept.function_graphs.extend(
            g
            for g in metadata.function_graphs
            if not any(entries.is_sentinel(n) for n in g.pre_optimization_graph.node)
        )
        if self._kept is None:
            self._kept = kept
        else:
            self._kept.MergeFrom(kept)

    def _flush(self) -> bool:
        """Hands out all that was instantiated; False where the collection turns out to be dead.

        An op that raised leaves its graph to the next op that is instantiated (2.12 to 2.21), so
        an op that was never run before comes last: its graph brings that one along, and shows
        that the collection is alive.
        """
        import tensorflow as tf

        token = f"{entries.SENTINEL_NAME}{next(self._serial)}"
        with (
            self.silent(),
            private_executor.own_executor(self._context),
            private.eager_mode(),
            tf.device("/CPU:0"),
        ):
            tf.raw_ops.StringJoin(inputs=[""], separator=token)
        found = self._export()
        return found is not None and any(entry.sentinel for entry in found)

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
        if graph is None and not self._is_silent():
            name = op_type.decode() if isinstance(op_type, bytes) else op_type
            self._tell(name, inputs, attrs, outputs)

    def _tell(self, name: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        op = RanOp(name, inputs, attrs, outputs, self._scope(), self._intercepted.in_py_function)
        for sink in self._receivers():
            try:
                sink.on_op(op)
            except Exception as error:  # must never break the op that was watched
                sink.on_problem(f"{name} could not be recorded: {error!r}")

    def _call_raised(self, function: str, inputs: Any) -> None:
        if private.op_def(function) is None:
            self._tell(function, inputs, (), None)

    def _op_raised(self, op_type: str, device: str) -> None:
        for sink in self._receivers():
            try:
                sink.on_op_raised(op_type, device, self._scope())
            except Exception as error:
                sink.on_problem(f"{op_type}, which raised, could not be recorded: {error!r}")

    def _tell_failed(self, sink: Sink, error: Exception | None) -> None:
        """An asynchronous op had its callback before it ran: that it failed shows at the end."""
        found = FAILED_OP.search(str(error)) if error is not None else None
        if found is not None:
            sink.on_op_failed(graphs.plain_type(found["type"]), found["device"])

    def _scope(self) -> str:
        return str(self._context.device_name or "") if self._context is not None else ""

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """What the calling thread runs inside is this package's own: no window sees it.

        Nor does any op callback of the user's.
        """
        callbacks = private.eager_context().op_callbacks
        put_off, callbacks[:] = tuple(callbacks), []
        before = self._is_silent()
        self._local.silent = True
        try:
            yield
        finally:
            self._local.silent = before
            callbacks[:] = put_off

    def _is_silent(self) -> bool:
        return bool(getattr(self._local, "silent", False))

    # ------------------------------------------------------------- v1 Sessions
    def _receivers(self) -> tuple[Sink, ...]:
        me = threading.get_ident()
        mine = tuple(sink for sink in self._sinks if sink.thread == me)
        return mine or tuple(self._sinks)

    def _session_run(self, run: sessions.SessionRun) -> None:
        for sink in self._receivers():
            try:
                sink.on_session_run(run)
            except Exception as error:  # must never break the run that was watched
                sink.on_problem(f"a Session run could not be recorded: {error!r}")

    def _copy(self, cause: HandCause, tensor: Any, target: str) -> None:
        for sink in self._receivers():
            try:
                sink.on_copy(cause, tensor, target)
            except Exception as error:  # must never break the copy that was watched
                sink.on_problem(f"a tensor's copy could not be recorded: {error!r}")

    def _problem(self, what: str) -> None:
        for sink in self._receivers():
            sink.on_problem(what)


CHANNELS = Channels()
"""The one instance: TensorFlow's context and Session class are the process's, too."""
