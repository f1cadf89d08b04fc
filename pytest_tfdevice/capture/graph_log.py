"""The graphs that a window saw run, with the devices that their nodes were given.

A record holds none: they are kept only where somebody asks for them, for TensorBoard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_tfdevice.capture import bodies, expansion, sessions
from pytest_tfdevice.capture.partitions import Partitions

MAX_ATTRIBUTE = 1024
"""Bytes of an attribute of a node.  TensorBoard's graph page shows none that is larger
(``limit_attr_size`` in its ``process_graph.py``)."""
MAX_GRAPHS = 100
MAX_BYTES = 64 * 2**20
"""Of one test's graphs together, values that were left out not counted."""
MAX_RUNS = 10
"""Traced runs of one graph that are kept, the first ones."""

LEFT_OUT = "_left_out"
"""The attribute that says which others of its node were left out, and how large they were."""
SESSION = "Session.run"

Lookup = Callable[[str], Any]


@dataclass
class WatchedGraph:
    """A graph that ran, as TensorBoard shows it.

    Attributes:
        name: of the function, or ``Session.run``; a number is added where a test has several.
        graph: a ``GraphDef``, serialised.
        devices: how many of its nodes are on each device, by full name; empty for nodes without.
        runs: ``RunMetadata`` of runs that were traced, serialised.
        traced: how many were traced in all.
        values_left_out: how many attributes were too large, and ``bytes_left_out`` their bytes.
    """

    name: str
    graph: bytes
    devices: Counter[str]
    values_left_out: int
    bytes_left_out: int
    runs: list[bytes] = field(default_factory=list)
    traced: int = 0


class GraphTaker(Protocol):
    """What a window tells of the graphs that it saw run."""

    def function(self, name: str, nodes: Iterable[Any], lookup: Lookup) -> None: ...
    def unit(self, function: str, device: str, lookup: Lookup) -> None: ...
    def session(self, run: sessions.SessionRun) -> None: ...


class NoGraphs:
    """Keeps none."""

    def function(self, name: str, nodes: Iterable[Any], lookup: Lookup) -> None:
        """A function's graph; ``lookup`` gives the definitions of those that it calls."""

    def unit(self, function: str, device: str, lookup: Lookup) -> None:
        """A compiled function that was called on ``device``."""

    def session(self, run: sessions.SessionRun) -> None:
        """A run of a v1 Session."""


class GraphLog(NoGraphs):
    """Keeps the graphs of one test, within bounds.

    ``dropped``: how many didn't fit.
    """

    def __init__(self, max_graphs: int = MAX_GRAPHS, max_bytes: int = MAX_BYTES) -> None:
        self.graphs: list[WatchedGraph] = []
        self.dropped = 0
        self._max_graphs = max_graphs
        self._room = max_bytes
        self._names: Counter[str] = Counter()
        self._sessions: dict[Hashable, WatchedGraph] = {}
        self._units: set[tuple[str, str]] = set()

    def function(self, name: str, nodes: Iterable[Any], lookup: Lookup) -> None:
        self._keep(expansion.readable(name), nodes, lookup)

    def unit(self, function: str, device: str, lookup: Lookup) -> None:
        """The body of a compiled function, as it was written: no graph of what ran is ever
        collected.  What is in it is where it was called.
        """
        definition = lookup(function)
        if (function, device) in self._units or definition is None:
            return
        self._units.add((function, device))
        unit = _new_graph()
        for argument in definition.signature.input_arg:
            unit.node.add(name=argument.name, op="_Arg").attr["T"].type = argument.type
        for node in definition.node_def:
            unit.node.add().CopyFrom(node)
        for result, tensor in definition.ret.items():
            unit.node.add(name=f"{result}_retval", op="_Retval", input=[tensor])
        self._keep(expansion.readable(function), unit.node, lookup, device)

    def session(self, run: sessions.SessionRun) -> None:
        key = (id(run.session), run.key)
        if run.partitions:
            library = {f.signature.name: f for f in run.graph_def.library.function}
            nodes = Partitions(run.partitions).joined().values()
            graph = self._keep(SESSION, nodes, library.get)
            if graph is not None:
                self._sessions[key] = graph
        if run.metadata is not None and key in self._sessions:
            self._trace(self._sessions[key], _traced(run.metadata))

    def _trace(self, graph: WatchedGraph, metadata: bytes) -> None:
        if not metadata:
            return
        graph.traced += 1
        if len(graph.runs) < MAX_RUNS and self._fits(len(metadata)):
            graph.runs.append(metadata)

    def _keep(
        self, name: str, nodes: Iterable[Any], lookup: Lookup, device: str = ""
    ) -> WatchedGraph | None:
        """Keeps a graph, and what it calls; all of it is on ``device`` where one is given."""
        if len(self.graphs) >= self._max_graphs:
            self.dropped += 1
            return None
        trimmer = _Trimmer()
        graph = _new_graph()
        for node in nodes:
            trimmer.copy(node, graph.node.add())
        for definition in _called(graph.node, lookup):
            into = graph.library.function.add()
            into.signature.CopyFrom(definition.signature)
            into.ret.update(definition.ret)
            for node in definition.node_def:
                trimmer.copy(node, into.node_def.add())
        if device:
            _place(graph.node, device)
            _place((n for f in graph.library.function for n in f.node_def), device)
        _place_units(graph)
        data = graph.SerializeToString()
        if not self._fits(len(data)):
            self.dropped += 1
            return None
        self._names[name] += 1
        number = self._names[name]
        kept = WatchedGraph(
            name if number == 1 else f"{name}_{number}",
            data,
            _devices(graph),
            trimmer.values,
            trimmer.bytes,
        )
        self.graphs.append(kept)
        return kept

    def _fits(self, size: int) -> bool:
        if size > self._room:
            return False
        self._room -= size
        return True


class _Trimmer:
    """Copies nodes without what is too large to be shown, and counts that."""

    def __init__(self) -> None:
        self.values = 0
        self.bytes = 0

    def copy(self, node: Any, into: Any) -> None:
        """Copies ``node`` to ``into``; of a large tensor dtype and shape stay."""
        into.name, into.op, into.device = node.name, node.op, node.device
        into.input.extend(node.input)
        left_out = []
        for name, value in node.attr.items():
            size = value.ByteSize()
            if size <= MAX_ATTRIBUTE:
                into.attr[name].CopyFrom(value)
                continue
            if value.HasField("tensor"):
                into.attr[name].tensor.dtype = value.tensor.dtype
                into.attr[name].tensor.tensor_shape.CopyFrom(value.tensor.tensor_shape)
            left_out.append(f"{name}: {size:,} bytes")
            self.values += 1
            self.bytes += size
        if left_out:
            into.attr[LEFT_OUT].s = "; ".join(sorted(left_out)).encode()


def _new_graph() -> Any:
    import tensorflow as tf

    return tf.compat.v1.GraphDef()


def _called(nodes: Iterable[Any], lookup: Lookup) -> Sequence[Any]:
    """The definitions of the functions that nodes call, and of those that these call."""
    found: dict[str, Any] = {}
    for node in nodes:
        for _, name in expansion.called_functions(node):
            bodies.definitions(name, lookup, found)
    return list(found.values())


def _place_units(graph: Any) -> None:
    """What is in a compiled function is where the function was called."""
    library = {f.signature.name: f for f in graph.library.function}
    for node in graph.node:
        if expansion.is_compiled(node):
            for definition in _called([node], library.get):
                _place(library[definition.signature.name].node_def, node.device)


def _place(nodes: Iterable[Any], device: str) -> None:
    for node in nodes:
        node.device = device


def _devices(graph: Any) -> Counter[str]:
    found = Counter(node.device for node in graph.node)
    for function in graph.library.function:
        found.update(node.device for node in function.node_def if node.device)
    return found


def _traced(metadata: Any) -> bytes:
    """A run's statistics without its graphs; empty where it has none."""
    if not metadata.step_stats.dev_stats:
        return b""
    traced = type(metadata)()
    traced.step_stats.CopyFrom(metadata.step_stats)
    return bytes(traced.SerializeToString())
