"""From a function's name to its Python graph, which keeps what the runtime's graphs have lost:
source lines, shapes, and the requests of nodes that were inlined.

TensorFlow keeps no such map, so the living functions are looked for among the objects that the
garbage collector knows: about 0.07 s for 300,000 objects, once for a window that called a function
not met before.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

from pytest_tfdevice.capture import private, stack
from pytest_tfdevice.capture.stack import Frame

_FUNCTION_TYPES = ("AtomicFunction", "_EagerDefinedFunction")
"""What holds a function's name and graph: the first from TensorFlow 2.14, the second before."""


class FuncGraphs:
    """Python graphs by function name, remembered from window to window while they live."""

    def __init__(self) -> None:
        self._known: dict[str, weakref.ReferenceType[Any]] = {}
        self._absent: set[str] = set()

    def get(self, name: str) -> Any:
        """The ``FuncGraph`` of the function ``name``; None where it has no Python side."""
        found = self._known.get(name)
        graph = found() if found is not None else None
        if graph is None and name not in self._absent:
            self._scan()
            found = self._known.get(name)
            graph = found() if found is not None else None
            if graph is None:
                self._absent.add(name)
        return graph

    def name_of(self, ops: set[str]) -> str | None:
        """The one living function that has all these ops; None for none, or for several."""
        self._scan()
        found = {}
        for name, reference in self._known.items():
            graph = reference()
            if graph is not None and all(find_op(graph, op) is not None for op in ops):
                found[id(graph)] = name
        return next(iter(found.values())) if len(found) == 1 else None

    def forget_absent(self) -> None:
        """Looks again, in the next window, for functions that weren't found in this one."""
        self._absent.clear()

    def _scan(self) -> None:
        graph_type = private.func_graph_class()
        by_graph_name: dict[str, Any] = {}
        for item in gc.get_objects():
            kind = type(item)
            if kind.__name__ in _FUNCTION_TYPES:
                graph = getattr(item, "graph", None)
                name = getattr(item, "name", None)
                if isinstance(name, bytes):
                    name = name.decode()
                if isinstance(graph, graph_type) and isinstance(name, str):
                    self._known[name] = weakref.ref(graph)
            elif isinstance(kind, type) and issubclass(kind, graph_type):
                by_graph_name[item.name] = item
        for name, graph in by_graph_name.items():
            self._known.setdefault(name, weakref.ref(graph))


FUNC_GRAPHS = FuncGraphs()


def find_op(graph: Any, name: str) -> Any:
    """The op ``name`` of a ``tf.Graph``, or None."""
    try:
        return graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        return None


def op_frames(op: Any) -> tuple[Frame, ...]:
    """The stack that created a graph's op, innermost first."""
    try:
        frames = [(f.filename, f.lineno, f.name) for f in op.traceback]
    except (AttributeError, ValueError, TypeError):
        return ()
    if any(stack.is_generated(file) for file, _, _ in frames):
        lines = _written_lines()
        frames = [lines.get(frame[:2], frame) for frame in frames]
    return tuple(reversed(frames))


def _written_lines() -> dict[tuple[str, int], Frame]:
    """From file and line of AutoGraph's rewritten code to the lines as they were written.

    TensorFlow does this itself, but not in the threads of a strategy's replicas (2.12 to 2.21).
    """
    found: dict[tuple[str, int], Frame] = {}
    for factory in private.autograph_factories():
        for generated, origin in (factory.source_map or {}).items():
            where = origin.loc
            line = (where.filename, where.lineno, origin.function_name or "")
            found[generated.filename, generated.lineno] = line
    return found


def op_shapes(op: Any) -> tuple[tuple[int | None, ...] | None, ...]:
    """Shapes of a graph op's outputs; empty where TensorFlow has dismantled the graph (2.12)."""
    try:
        return tuple(_dims(tensor.shape) for tensor in op.outputs)
    except AttributeError:
        return ()


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())
