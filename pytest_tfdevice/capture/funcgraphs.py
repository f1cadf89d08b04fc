"""From a function's name to its Python graph, which keeps what the runtime's graphs have lost:
source lines, shapes, and the requests of nodes that were inlined.

TensorFlow keeps no such map.  The functions that a window sees called are found on the stack, with
those that they call; only for others, as of a thread that was already running, the living functions
are looked for among the objects that the garbage collector knows (about 0.07 s for 300,000).
"""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any

from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.stack import Frame

_FUNCTION_TYPES = ("AtomicFunction", "_EagerDefinedFunction")
"""What holds a function's name and graph: the first from TensorFlow 2.14, the second before."""

_DEPTH = 12
"""How many frames lie between an op callback and the method of such an object, at most."""


class FuncGraphs:
    """Python graphs by function name, remembered from window to window while they live."""

    def __init__(self) -> None:
        self._known: dict[str, weakref.ReferenceType[Any]] = {}
        self._absent: set[str] = set()

    def get(self, name: str) -> Any:
        """The ``FuncGraph`` of the function ``name``; None where it has no Python side."""
        graph = self._living(name)
        if graph is None and name not in self._absent:
            self._scan()
            graph = self._living(name)
            if graph is None:
                self._absent.add(name)
        return graph

    def learn(self, frame: Any) -> None:
        """Finds the function that is being called from ``frame``, and what it calls, on the stack.

        The object whose method runs the function is a local of one of the innermost frames.
        """
        for _ in range(_DEPTH):
            if frame is None:
                return
            if "self" in frame.f_code.co_varnames:
                function = frame.f_locals.get("self")
                if type(function).__name__ in _FUNCTION_TYPES:
                    self._add(function, set())
                    return
            frame = frame.f_back

    def forget_absent(self) -> None:
        """Looks again, in the next window, for functions that weren't found in this one."""
        self._absent.clear()

    def _living(self, name: str) -> Any:
        found = self._known.get(name)
        return found() if found is not None else None

    def _add(self, function: Any, seen: set[str]) -> None:
        name, graph = _named(function)
        if not name or name in seen or graph is None:
            return
        seen.add(name)
        if self._living(name) is not graph:
            self._known[name] = weakref.ref(graph)
        for called in private.functions_of(graph):
            self._add(called, seen)

    def _scan(self) -> None:
        graph_type = private.func_graph_class()
        by_graph_name: dict[str, Any] = {}
        for item in gc.get_objects():
            kind = type(item)
            if kind.__name__ in _FUNCTION_TYPES:
                name, graph = _named(item)
                if name and graph is not None:
                    self._known[name] = weakref.ref(graph)
            elif isinstance(kind, type) and issubclass(kind, graph_type):
                by_graph_name[item.name] = item
        for name, graph in by_graph_name.items():
            self._known.setdefault(name, weakref.ref(graph))


def _named(function: Any) -> tuple[str, Any]:
    """Name and ``FuncGraph`` of a function object; None for a graph that isn't one."""
    name, graph = getattr(function, "name", ""), getattr(function, "graph", None)
    if isinstance(name, bytes):
        name = name.decode()
    return str(name), graph if isinstance(graph, private.func_graph_class()) else None


FUNC_GRAPHS = FuncGraphs()


def find_op(graph: Any, name: str, op_type: str | None = None) -> Any:
    """The op ``name`` of a ``tf.Graph``, or None.

    In a function an op named as one of the results is called ``NAME_0``: then its plain name is
    tried, for an op of the same type.
    """
    try:
        return graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        pass
    plain = re.sub(r"_\d+$", "", name)
    if plain == name or op_type is None:
        return None
    op = find_op(graph, plain)
    return op if op is not None and op.type == op_type else None


def op_frames(op: Any) -> tuple[Frame, ...]:
    """The stack that created a graph's op, innermost first."""
    try:
        frames = [(f.filename, f.lineno, f.name) for f in op.traceback]
    except (AttributeError, ValueError, TypeError):
        return ()
    return tuple(reversed(frames))


def op_shapes(op: Any) -> tuple[tuple[int | None, ...] | None, ...]:
    """Shapes of a graph op's outputs; empty where TensorFlow has dismantled the graph (2.12)."""
    try:
        return tuple(_dims(tensor.shape) for tensor in op.outputs)
    except AttributeError:
        return ()


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())
