"""From a function's name to its Python graph, which keeps what the runtime's graphs have lost:
source lines, shapes, and the requests of nodes that were inlined.

TensorFlow keeps no such map, so the living functions are looked for among the objects that the
garbage collector knows: about 0.07 s for 300,000 objects, once for a window that called a function
not met before.
"""

from __future__ import annotations

import gc
import weakref
from types import FrameType
from typing import Any

from pytest_tfdevice.capture import private
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


def running(frame: FrameType | None, limit: int = 40) -> list[Any]:
    """The functions of TensorFlow that are being called in this stack.

    Whoever keeps them keeps their graphs, too: a ``tf.function`` that a test defines for itself is
    gone when the test returns.
    """
    found = []
    while frame is not None and limit:
        owner = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames else None
        if type(owner).__name__ in (*_FUNCTION_TYPES, "ConcreteFunction"):
            found.append(owner)
        frame, limit = frame.f_back, limit - 1
    return found


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
    return tuple(reversed(frames))


def op_shapes(op: Any) -> tuple[tuple[int | None, ...] | None, ...]:
    """Shapes of a graph op's outputs; empty where TensorFlow has dismantled the graph (2.12)."""
    try:
        return tuple(_dims(tensor.shape) for tensor in op.outputs)
    except AttributeError:
        return ()


def _dims(shape: Any) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())
