"""A window: what one thread runs on TensorFlow between two moments → a Record."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from pytest_tfdevice.capture import (
    dataset_bodies,
    eager,
    expansion,
    funcgraphs,
    graphs,
    private,
    sessions,
    signatures,
)
from pytest_tfdevice.capture.channels import CHANNELS, is_sentinel
from pytest_tfdevice.capture.memory import MemoryMeter
from pytest_tfdevice.capture.transfers import TransferLog
from pytest_tfdevice.devices import visible_devices
from pytest_tfdevice.model import DeviceSpec, Placement, Record, TensorInfo
from pytest_tfdevice.transfers import Transfer


@dataclass(slots=True)
class _FunctionGraph:
    """A graph from graph collection, and the function that was called just before it came."""

    written: Any
    ran: Any
    partitions: tuple[Any, ...] = ()
    called: str | None = None


class Window:
    """Watches the calling thread from :meth:`open` to :meth:`close`.

    ``target`` is the device that the ops are meant to be on: source lines are looked up for what
    is elsewhere.  A window that is never closed keeps the channels on.
    """

    def __init__(self, target: DeviceSpec | None = None) -> None:
        self.thread = threading.get_ident()
        self._target = target if target is not None else DeviceSpec(type="GPU")
        self._eager = eager.EagerLog()
        self._graphs: list[_FunctionGraph] = []
        self._unclaimed = 0
        self._calls: Counter[str] = Counter()
        self._called: dict[str, tuple[str, str]] = {}
        self._definitions: dict[str, Any] = {}
        self._session_runs: list[sessions.SessionRun] = []
        self._others: list[eager.EagerLog] = []
        self._problems: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._meter = MemoryMeter()
        self._transfers = TransferLog()
        self._crossed: list[Transfer] = []

    def open(self) -> None:
        """Begins to watch."""
        funcgraphs.FUNC_GRAPHS.forget_absent()
        _OPEN.append(self)
        CHANNELS.open(self)
        self._meter.start()

    def close(self, *, leftovers: bool = False) -> Record:
        """Ends the watch and gives what was seen.

        With ``leftovers`` the GPU memory that is still held after a garbage collection, too.
        """
        memory = self._meter.measure()
        notes = self._meter.notes
        record = self._close()
        try:
            if leftovers:
                memory = self._meter.with_leftovers(memory)
        finally:
            self._meter.stop()
        return dataclasses.replace(record, memory=memory, notes=(*notes, *record.notes))

    def _close(self) -> Record:
        try:
            CHANNELS.close(self)
        finally:
            for other in _OPEN:
                if other.thread != self.thread:
                    other._others.append(self._eager)
                    self._others.append(other._eager)
            _OPEN.remove(self)
        record = self._record()
        self._session_runs.clear()  # they keep Sessions, and with them variables, alive
        return record

    # ------------------------------------------------------- what the channels tell
    def on_op(self, op_type: str, inputs: Any, attrs: Any, outputs: Any, scope: str) -> None:
        if signatures.signature(op_type) is None:
            self._on_call(op_type, inputs, outputs, scope)
        else:
            self._eager.add(op_type, inputs, attrs, outputs, scope)
            self._transfers.on_op(op_type, inputs, attrs, outputs)

    def on_copy(self, cause: Literal["value", "read", "copy"], tensor: Any, target: str) -> None:
        self._transfers.on_copy(cause, tensor, target)

    def _on_call(self, function: str, inputs: Any, outputs: Any, scope: str) -> None:
        self._calls[expansion.readable(function)] += 1
        definition = self._definition(function)
        compiled = definition is not None and expansion.is_compiled(definition)
        self._transfers.on_call(function, inputs, outputs, compiled=compiled)
        if function in self._called:
            return
        device = next((t.device for t in outputs or () if hasattr(t, "device")), "")
        self._called[function] = (device, scope)
        CHANNELS.collect()
        for graph in self._graphs[self._unclaimed :]:
            graph.called = function
        self._unclaimed = len(self._graphs)

    def on_graphs(self, metadata: Any) -> None:
        for graph in metadata.function_graphs:
            self._graphs.append(
                _FunctionGraph(
                    graph.pre_optimization_graph,
                    graph.post_optimization_graph,
                    tuple(graph.partition_graphs),
                )
            )

    def on_session_run(self, run: sessions.SessionRun) -> None:
        self._calls["Session.run"] += 1
        if run.raised:
            self._notes["a Session run raised an error; TensorFlow gives no placements for it"] = (
                None
            )
        self._session_runs.append(run)
        self._transfers.on_session_run(run)

    def on_problem(self, what: str) -> None:
        self._problems[what] = None

    # ------------------------------------------------------------------ the record
    def _record(self) -> Record:
        import tensorflow as tf

        found = list(self._from_graphs())
        placements = list(self._eager.placements(self._devices_of()))
        placements += self._units()
        placements += found
        placements += self._from_sessions()
        folded = _fold(placements)
        types = {p.type for p in folded if p.type}
        seen = {t: signatures.signature(t) for t in sorted(types)}
        return Record(
            placements=folded,
            devices=visible_devices(),
            signatures=MappingProxyType({t: s for t, s in seen.items() if s is not None}),
            tensorflow=tf.__version__,
            calls=MappingProxyType(dict(self._calls)),
            notes=tuple(self._notes),
            problems=tuple(self._problems),
            transfers=(*self._transfers.eager(), *self._crossed),
        )

    def _devices_of(self) -> dict[Any, set[str]]:
        """Where graph collection saw each kind of eager op."""
        found: dict[Any, set[str]] = {}
        for graph in self._graphs:
            if _is_eager(graph.written):
                for op_type, node in _eager_nodes(graph):
                    key = (op_type, signatures.node_dtypes(op_type, node.attr))
                    found.setdefault(key, set()).add(node.device)
        return found

    def _from_graphs(self) -> list[Placement]:
        found: list[Placement] = []
        mine = {(k.type, k.dtypes) for log in (self._eager, *self._others) for k in log.ops}
        for graph in self._graphs:
            if _is_eager(graph.written):
                found += self._unclaimed_eager(graph, mine)
            else:
                found += self._function(graph)
        return found

    def _unclaimed_eager(self, graph: _FunctionGraph, mine: set[Any]) -> list[Placement]:
        """Eager ops that no callback told of: they raised, or ran in a thread without a window."""
        raised = any(is_sentinel(node) for node in graph.ran.node)
        found = []
        for op_type, node in _eager_nodes(graph):
            dtypes = signatures.node_dtypes(op_type, node.attr)
            if (op_type, dtypes) in mine and not raised:
                continue
            inputs, outputs = signatures.tensor_dtypes(op_type, node.attr)
            found.append(
                Placement(
                    op=op_type,
                    type=op_type,
                    device=graphs.parse_device(node.device),
                    kind="executed",
                    origin="eager",
                    inputs=tuple(TensorInfo(d) for d in inputs),
                    outputs=tuple(TensorInfo(d) for d in outputs),
                    dtypes=dtypes,
                    raised=raised,
                )
            )
        return found

    def _function(self, graph: _FunctionGraph) -> list[Placement]:
        library = {f.signature.name: f for f in graph.written.library.function}

        def lookup(name: str) -> Any:
            return library.get(name) or self._definition(name)

        name = self._name_of(graph)
        reader = graphs.GraphReader(
            written=expansion.Expansion(graph.written.node, name, lookup),
            find_op=_find_function_op,
            lookup=lookup,
            target=self._target,
            origin="function",
        )
        nodes = [node for node in graph.ran.node if not is_sentinel(node)]
        found = list(reader.read(nodes))
        self._crossed += self._transfers.of_function(
            graph.partitions, name, reader.written, _find_function_op
        )
        for body in dataset_bodies.find(reader.written, graph.ran, lookup):
            try:
                inner = dataset_bodies.place(body, lookup)
            except dataset_bodies.CannotPlace as error:
                self._problems[str(error)] = None
                continue
            found += graphs.GraphReader(
                written=expansion.Expansion(lookup(body.function).node_def, body.function, lookup),
                find_op=_find_function_op,
                lookup=lookup,
                target=self._target,
                origin="function",
            ).read(inner.nodes)
        return found

    def _name_of(self, graph: _FunctionGraph) -> str | None:
        """The function that a graph is the body of: the one called then, if its nodes agree."""
        if graph.called is None:
            return None
        definition = self._definition(graph.called)
        if definition is None:
            return None
        theirs = {node.name for node in definition.node_def}
        ours = {n.name for n in graph.written.node if n.op not in graphs.PSEUDO_TYPES}
        return graph.called if ours and ours <= theirs | {"NoOp"} else None

    def _units(self) -> list[Placement]:
        """Compiled functions that were called directly: no graph of them is ever collected."""
        found: list[Placement] = []
        for function, (device, scope) in self._called.items():
            definition = self._definition(function)
            if definition is not None and expansion.is_compiled(definition):
                found += graphs.compiled_unit(
                    function,
                    graphs.parse_device(device or scope),
                    self._definition,
                    _find_function_op,
                )
        return found

    def _definition(self, function: str) -> Any:
        """A ``FunctionDef`` of the eager context, kept: a function may be gone by the end."""
        if function not in self._definitions:
            context = private.eager_context()
            try:
                found = (
                    context.get_function_def(function)
                    if private.context_is_initialized(context)
                    else None
                )
            except Exception:  # errors_impl.NotFoundError: not, or no longer, registered
                found = None
            self._definitions[function] = found
        return self._definitions[function]

    def _from_sessions(self) -> list[Placement]:
        found: list[Placement] = []
        for run in self._session_runs:
            if run.partitions:
                found += self._from_session(run)
        return found

    def _from_session(self, run: sessions.SessionRun) -> list[Placement]:
        graph = run.session.graph
        graph_def = graph.as_graph_def(add_shapes=True)
        library = {f.signature.name: f for f in graph_def.library.function}

        def find_op(function: str | None, name: str) -> Any:
            return funcgraphs.find_op(graph, name) if function is None else _find_function_op(
                function, name
            )  # fmt: skip

        reader = graphs.GraphReader(
            written=expansion.Expansion(graph_def.node, None, library.get),
            find_op=find_op,
            lookup=library.get,
            target=self._target,
            origin="session",
        )
        self._crossed += self._transfers.of_session(run, reader.written, find_op)
        return [p for part in run.partitions or () for p in reader.read(part.node)]


_OPEN: list[Window] = []


def _find_function_op(function: str | None, name: str) -> Any:
    if function is None:
        return None
    graph = funcgraphs.FUNC_GRAPHS.get(function)
    return funcgraphs.find_op(graph, name) if graph is not None else None


def _is_eager(written: Any) -> bool:
    """True for the graph of eager ops: each node is named as its type, on a full device name."""
    nodes = [n for n in written.node if n.op not in graphs.PSEUDO_TYPES]
    return (
        bool(nodes)
        and all(
            n.name.split("_pytest_")[0] == n.op and (n.device.startswith("/job:") or not n.device)
            for n in nodes
        )
        and not any("_user_specified_name" in n.attr for n in written.node)
    )


def _eager_nodes(graph: _FunctionGraph) -> Iterator[tuple[str, Any]]:
    """The ops of an eager graph, with the type that was asked for."""
    for node in graph.ran.node:
        if node.op in graphs.PSEUDO_TYPES or node.op == "_EagerConst" or is_sentinel(node):
            continue
        yield graphs.plain_type(node.op), node


def _fold(placements: list[Placement]) -> tuple[Placement, ...]:
    """Exact duplicates become one, in order of first appearance; counts add up for eager ops."""
    counts: dict[Placement, int] = {}
    for placement in placements:
        key = dataclasses.replace(placement, count=1)
        if placement.origin == "eager":
            counts[key] = counts.get(key, 0) + placement.count
        else:
            counts.setdefault(key, 1)
    return tuple(
        p if count == 1 else dataclasses.replace(p, count=count) for p, count in counts.items()
    )
