"""v1 Sessions, wherever they are opened: each run hands its partition graphs on.

``RunOptions(output_partition_graphs=True)`` makes a run return the graphs that it executed, with
the device of each node.  It is asked for once for each combination of Session, fetches and graph
version, since turning a graph into a message costs more than many steps.  The same run is timed
(``RunOptions.SOFTWARE_TRACE``).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pytest_tfdevice.capture import placer, private, stack
from pytest_tfdevice.model import SourceLine


@dataclass(frozen=True)
class SessionRun:
    """A run of a Session.

    ``partitions`` are the graphs that it executed, with the devices of their nodes; None where the
    same run was handed on before.  ``graph_def`` is the Session's graph, ``source`` the user's line
    that ran it, ``problem`` a sentence where what it ran could not be seen.  ``key`` is the same
    for runs of the same; ``feeds`` are the shapes of what was fed, by tensor name.  ``metadata`` is
    the run's ``RunMetadata``, with the times of its ops where it was the first of its kind, or
    where the user had it traced; None where there is none.
    """

    session: Any
    partitions: tuple[Any, ...] | None
    graph_def: Any = None
    source: SourceLine | None = None
    problem: str = ""
    key: Hashable = None
    feeds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    metadata: Any = None


class SessionPatch:
    """Stands between ``BaseSession`` and the runtime while a window is open.

    ``on_run`` gets every run, ``on_problem`` a sentence for each run that can't be seen; runs of
    this package's own, where ``is_own`` says so, are left alone.
    """

    def __init__(
        self,
        on_run: Callable[[SessionRun], None],
        on_problem: Callable[[str], None],
        is_own: Callable[[], bool],
    ) -> None:
        self._on_run = on_run
        self._on_problem = on_problem
        self._is_own = is_own
        self._seen: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()
        self._tracing: weakref.WeakSet[Any] = weakref.WeakSet()
        self._originals: dict[tuple[Any, str], Any] = {}
        self._graph_defs: weakref.WeakKeyDictionary[Any, tuple[int, Any]] = (
            weakref.WeakKeyDictionary()
        )

    def install(self) -> None:
        """Takes the class's methods over."""
        session = private.session_class()
        self._replace(session, "_call_tf_sessionrun", self._run)
        self._replace(session, "_call_tf_sessionprun", self._partial_run)
        self._replace(session, "_make_callable_from_options", self._make_callable)
        self._replace(session._Callable, "__call__", self._call)

    def remove(self) -> None:
        """Gives the class its own methods back."""
        for (owner, name), original in self._originals.items():
            setattr(owner, name, original)
        self._originals.clear()

    def forget(self) -> None:
        """Asks for graphs again that were handed on before: a new window hasn't seen them."""
        self._seen.clear()

    def _replace(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        original = owner.__dict__[name]
        self._originals[owner, name] = original

        def replacement(instance: Any, *args: Any, **kwargs: Any) -> Any:
            if self._is_own():
                return original(instance, *args, **kwargs)
            return method(original, instance, *args, **kwargs)

        setattr(owner, name, replacement)

    def _is_new(self, session: Any, key: Hashable) -> bool:
        seen = self._seen.setdefault(session, set())
        if key in seen:
            return False
        seen.add(key)
        return True

    def _run(
        self,
        original: Any,
        session: Any,
        options: Any,
        feeds: Any,
        fetches: Any,
        targets: Any,
        metadata: Any,
    ) -> Any:
        names = [
            sorted(_output_name(key) for key in feeds),
            [_output_name(fetch) for fetch in fetches],
            [_output_name(target) for target in targets],
        ]
        key = _key(session, *names)
        buffers = private.session_buffers()
        if not self._is_new(session, key):
            result = original(session, options, feeds, fetches, targets, metadata)
            filled = _filled(buffers, metadata) if metadata is not None else None
            self._on_run(SessionRun(session, None, key=key, metadata=filled))
            return result
        asked = _with_graphs_and_times(buffers, options)
        own = None if metadata is not None else buffers.TF_NewBuffer()
        try:
            result = original(
                session, asked, feeds, fetches, targets, metadata if own is None else own
            )
            filled = _filled(buffers, metadata if own is None else own)
            fed = {
                _output_name(name): tuple(value.shape)
                for name, value in feeds.items()
                if hasattr(value, "shape")
            }
            self._told(session, filled.partition_graphs, key, fed, filled)
            return result
        except Exception:
            self._raised(session, names[1] + names[2], names[0])
            raise
        finally:
            buffers.TF_DeleteBuffer(asked)
            if own is not None:
                buffers.TF_DeleteBuffer(own)

    def _partial_run(self, original: Any, session: Any, *args: Any) -> Any:
        self._on_problem(
            "Session.partial_run was called; TensorFlow gives no placements for partial runs, so "
            "what they ran was not seen. Use Session.run in this test"
        )
        self._on_run(SessionRun(session, None))
        return original(session, *args)

    def _told(
        self,
        session: Any,
        partitions: Iterable[Any],
        key: Hashable = None,
        feeds: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
        metadata: Any = None,
    ) -> None:
        graph_def, line = self._graph_def(session.graph), _user_line()
        run = SessionRun(session, tuple(partitions), graph_def, line, "", key, feeds, metadata)
        self._on_run(run)

    def _raised(self, session: Any, wanted: list[str], fed: list[str]) -> None:
        """TensorFlow gives no graphs of a run that raised: its placer is asked instead."""
        wanted, fed = ([name.split(":")[0] for name in names] for names in (wanted, fed))
        try:
            if session.sess_str:
                raise placer.CannotPlace("it ran on another TensorFlow server")
            graph_def = self._graph_def(session.graph)
            _, nodes = placer.place_graph(graph_def, wanted, fed)
        except Exception as error:  # the user's own error is what has to be raised
            why = str(error).strip().partition("\n")[0] or repr(error)
            problem = f"a Session run raised an error, and what it ran can't be told: {why}"
            self._on_run(SessionRun(session, None, problem=problem))
        else:
            partition = type(graph_def)(node=nodes)
            self._told(session, (partition,))

    def _graph_def(self, graph: Any) -> Any:
        known = self._graph_defs.get(graph)
        if known is None or known[0] != graph.version:
            known = (graph.version, graph.as_graph_def())
            self._graph_defs[graph] = known
        return known[1]

    def _make_callable(self, original: Any, session: Any, callable_options: Any) -> Any:
        asked = type(callable_options)()
        asked.CopyFrom(callable_options)
        asked.run_options.output_partition_graphs = True
        made = original(session, asked)
        self._tracing.add(made)
        return made

    def _call(self, original: Any, made: Any, *args: Any, **kwargs: Any) -> Any:
        import tensorflow as tf

        session = made._session
        if made not in self._tracing:
            self._on_problem(
                "a Session callable ran that was made before the watch began, so what it ran was "
                "not seen. Make the callable inside the watched code"
            )
            return original(made, *args, **kwargs)
        key = _key(session, id(made))
        if not self._is_new(session, key):
            result = original(made, *args, **kwargs)
            self._on_run(SessionRun(session, None, key=key, metadata=kwargs.get("run_metadata")))
            return result
        metadata = kwargs.pop("run_metadata", None)
        if metadata is None:
            # A message with nothing in it counts as False, and is then not filled.
            metadata = tf.compat.v1.RunMetadata()
        result = original(made, *args, run_metadata=_Truthy(metadata), **kwargs)
        self._told(session, metadata.partition_graphs, key, metadata=metadata)
        return result


def _user_line() -> SourceLine | None:
    return stack.running_line(sys._getframe(1))


class _Truthy:
    """A message that is filled by ``ParseFromString`` though it is still empty."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def ParseFromString(self, data: bytes) -> None:
        self._message.ParseFromString(data)


def _key(session: Any, *what: Any) -> Hashable:
    return (session.graph.version, *(str(part) for part in what))


def _output_name(output: Any) -> str:
    """A key for a tensor or op as the binding takes it (``TF_Output``, ``TF_Operation``)."""
    name = private.session_buffers().TF_OperationName(getattr(output, "oper", output))
    return f"{name}:{getattr(output, 'index', '')}"


def _with_graphs_and_times(buffers: Any, options: Any) -> Any:
    import tensorflow as tf

    asked = tf.compat.v1.RunOptions()
    if options is not None:
        asked.ParseFromString(bytes(buffers.TF_GetBuffer(options)))
    asked.output_partition_graphs = True
    # Levels are ordered: a user's own hardware trace stays one.
    asked.trace_level = max(asked.trace_level, tf.compat.v1.RunOptions.SOFTWARE_TRACE)
    return buffers.TF_NewBufferFromString(asked.SerializeToString())


def _filled(buffers: Any, metadata: Any) -> Any:
    """The ``RunMetadata`` in a buffer of the binding's."""
    import tensorflow as tf

    filled = tf.compat.v1.RunMetadata()
    filled.ParseFromString(bytes(buffers.TF_GetBuffer(metadata)))
    return filled
