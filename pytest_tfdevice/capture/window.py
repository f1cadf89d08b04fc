"""A window: what one thread runs on TensorFlow between two moments → a Record."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_tfdevice.capture import (
    bodies,
    eager,
    entries,
    expansion,
    funcgraphs,
    graphs,
    moved,
    sessions,
    signatures,
)
from pytest_tfdevice.capture.calls import CallLog, FunctionCall
from pytest_tfdevice.capture.channels import CHANNELS, RanOp
from pytest_tfdevice.capture.copies import HandCause
from pytest_tfdevice.capture.graph_log import GraphTaker, NoGraphs
from pytest_tfdevice.capture.memory import MemoryMeter
from pytest_tfdevice.capture.step_stats import StepTimes
from pytest_tfdevice.capture.transfers import TransferLog
from pytest_tfdevice.devices import visible_devices
from pytest_tfdevice.model import DeviceSpec, Origin, Placement, Record, TensorInfo


@dataclass(frozen=True, slots=True)
class _EagerSeen:
    """What graph collection tells of an eager op."""

    type: str
    dtypes: tuple[tuple[str, str], ...]
    device: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    followed: bool


class Window:
    """Watches the calling thread from :meth:`open` to :meth:`close`.

    ``target`` is the device that the ops are meant to be on: source lines are looked up for what
    is elsewhere.  ``graphs`` is told of the graphs that ran.  A window that is never closed keeps
    the channels on.

    A function's graph is read when the function has been called, while its Python side is sure to
    be there, and then let go: what is kept grows with the number of different ops, not with the
    size of graphs or the number of steps.
    """

    def __init__(self, target: DeviceSpec | None = None, graphs: GraphTaker | None = None) -> None:
        self.thread = threading.get_ident()
        self._graphs = graphs if graphs is not None else NoGraphs()
        self._target = target if target is not None else DeviceSpec(type="GPU")
        self._eager = eager.EagerLog()
        self._eager_seen: dict[_EagerSeen, None] = {}
        self._calls = CallLog()
        self._unclaimed: list[entries.FunctionGraph] = []
        self._bodies: list[tuple[bodies.Body, dict[str, Any], Origin]] = []
        self._placements: list[Placement] = []
        self._movable: list[tuple[str, Any, dict[str, Any], list[Placement]]] = []
        self._others: list[eager.EagerLog] = []
        self._problems: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        self._transfers = TransferLog()
        self._step_times = StepTimes()
        self._meter = MemoryMeter()

    def open(self) -> None:
        """Begins to watch."""
        funcgraphs.FUNC_GRAPHS.forget_absent()
        CHANNELS.open(self)
        try:
            self._meter.start()
        except BaseException:
            CHANNELS.close(self)
            raise
        _OPEN.append(self)

    def close(self, *, leftovers: bool = False) -> Record:
        """Ends the watch and gives what was seen.

        With ``leftovers`` the GPU memory that is still held after a garbage collection, too.
        """
        with contextlib.closing(self._meter) as meter:
            memory, notes = meter.measure(), meter.notes
            record = self._close()
            if leftovers:
                memory = meter.with_leftovers(memory)
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
        return self._record()

    # ------------------------------------------------------- what the channels tell
    def on_op(self, op: RanOp) -> None:
        if signatures.signature(op.type) is not None:
            self._eager.add(op)
            self._transfers.on_op(op.type, op.inputs, op.attrs, op.outputs)
            return
        self._transfers.on_call(op.type, op.inputs, op.outputs, self._calls.definition(op.type))
        call = self._calls.add(op, sys._getframe(1))
        if call is not None:
            CHANNELS.collect()
            self._claim(call)
            self._unit(call)

    def on_op_raised(self, op_type: str, device: str, scope: str) -> None:
        if signatures.signature(op_type) is not None:
            self._eager.add_raised(op_type, device, scope)

    def on_op_failed(self, op_type: str, device: str) -> None:
        self._eager.mark_failed(op_type, device)

    def on_entry(self, entry: entries.Entry) -> None:
        for op in entry.eager:
            inputs, outputs = signatures.tensor_dtypes(op.type, op.node.attr)
            dtypes = signatures.node_dtypes(op.type, op.node.attr)
            seen = _EagerSeen(op.type, dtypes, op.node.device, inputs, outputs, op.followed)
            self._eager_seen.setdefault(seen)
            self._find_bodies(op.beside, self._calls.definition, "eager")
        self._unclaimed += entry.functions
        self._transfers.of_eager(entry)

    def on_copy(self, cause: HandCause, tensor: Any, target: str) -> None:
        self._transfers.on_copy(cause, tensor, target)

    def on_session_run(self, run: sessions.SessionRun) -> None:
        self._calls.counts["Session.run"] += 1
        if run.problem:
            self._problems[run.problem] = None
        self._transfers.on_session_run(run)
        self._graphs.session(run)
        if run.partitions is not None and run.metadata is not None:
            self._step_times.add(run.metadata.step_stats)
        for part in run.partitions or ():
            self._read_session(run, part)

    def on_problem(self, what: str) -> None:
        self._problems[what] = None

    # ------------------------------------------------------------------- functions
    def _claim(self, call: FunctionCall) -> None:
        """Reads the graphs that the call instantiated."""
        left = []
        for graph in self._unclaimed:
            owners = self._calls.owners(graph.written, call)
            graph.claimed |= {part for part, owner in enumerate(owners) if owner is not None}
            if None in owners:
                left.append(graph)
            else:
                self._read_function(graph, owners)
        self._unclaimed = left

    def _read_function(
        self, graph: entries.FunctionGraph, owners: list[FunctionCall | None]
    ) -> None:
        def lookup(name: str) -> Any:
            return graph.library.get(name) or self._calls.definition(name)

        written = expansion.Expansion((), None, lookup)
        theirs = expansion.Expansion((), None, lookup)
        calls: dict[str | None, graphs.Called] = {}
        for part, (nodes, owner) in enumerate(zip(graph.written, owners, strict=True)):
            if owner is not None:
                written.add(nodes, owner.function)
                calls[owner.function] = owner.called
            elif part in graph.claimed:
                theirs.add(nodes, None)
            else:
                written.add(nodes, None)
        if len(theirs) and not len(written):
            return
        ran = [n for n in graph.ran if written.find(n.name) or not theirs.find(n.name)]
        found = list(self._reader(written, lookup, "function", calls).read(ran))
        if len(owners) == 1 and owners[0] is not None and moved.is_possible():
            self._ask_later(owners[0].function, ran, lookup, found)
        else:
            self._placements += found
        self._find_bodies(ran, lookup, "function")
        called = next((owner.function for owner in owners if owner is not None), None)
        self._transfers.of_function(graph.partitions, called, written, _find_function_op)
        ran_library = {f.signature.name: f for f in graph.ran_library}
        self._graphs.function(called or "function", ran, lambda n: ran_library.get(n) or lookup(n))

    def _ask_later(
        self, function: str, ran: list[Any], lookup: Callable[[str], Any], found: list[Placement]
    ) -> None:
        """An optimiser may have moved what was placed: the placer is asked in the end."""
        library: dict[str, Any] = {}
        bodies.definitions(function, lookup, library)
        if function in library:
            carried = moved.arguments(ran, len(library[function].signature.input_arg))
            self._movable.append((function, carried, library, found))
        else:
            self._placements += found

    def _reader(
        self,
        written: expansion.Expansion,
        lookup: Callable[[str], Any],
        origin: Origin,
        calls: Mapping[str | None, graphs.Called] = MappingProxyType({}),
        find_op: graphs.FindOp | None = None,
    ) -> graphs.GraphReader:
        return graphs.GraphReader(
            written, find_op or _find_function_op, lookup, self._target, origin, calls
        )

    def _unit(self, call: FunctionCall) -> None:
        """Compiled functions that were called directly: no graph of them is ever collected."""
        definition = self._calls.definition(call.function)
        if definition is not None and expansion.is_compiled(definition):
            device = call.device or call.scope or _default_device()
            self._graphs.unit(call.function, device, self._calls.definition)
            self._placements += graphs.compiled_unit(
                call.function,
                graphs.parse_device(device),
                self._calls.definition,
                _find_function_op,
                called=call.called,
                raised=call.raised,
            )

    # ------------------------------------------- functions that no graph tells of
    def _find_bodies(self, nodes: Any, lookup: Callable[[str], Any], origin: Origin) -> None:
        for body in bodies.find(nodes, lookup):
            needed: dict[str, Any] = {}
            bodies.definitions(body.function, lookup, needed)
            if all(body != known for known, *_ in self._bodies):
                self._bodies.append((body, needed, origin))

    def _from_bodies(self) -> Iterator[Placement]:
        for body, library, origin in self._bodies:
            try:
                placed = bodies.place(body, library.get)
            except bodies.CannotPlace as error:
                self._problems[str(error)] = None
                continue
            self._graphs.function(body.function, placed, library.get)
            written = expansion.Expansion(
                library[body.function].node_def, body.function, library.get, prefix=body.prefix
            )
            found: Origin = "session" if origin == "session" else "function"
            yield from self._reader(written, library.get, found).read(placed)

    # -------------------------------------------------------------------- sessions
    def _read_session(self, run: sessions.SessionRun, part: Any) -> None:
        graph = run.session.graph
        library: dict[str, Any] = {f.signature.name: f for f in run.graph_def.library.function}

        def find_op(function: str | None, node: Any) -> Any:
            if function is None:
                return funcgraphs.find_op(graph, node.name)
            return _find_function_op(function, node)

        written = expansion.Expansion(run.graph_def.node, None, library.get)
        calls: dict[str | None, graphs.Called] = {None: graphs.Called(source=run.source)}
        reader = self._reader(written, library.get, "session", calls, find_op)
        self._placements += reader.read(part.node)
        self._find_bodies(part.node, library.get, "session")

    # ------------------------------------------------------------------ the record
    def _record(self) -> Record:
        import tensorflow as tf

        for graph in self._unclaimed:
            self._read_function(graph, self._calls.owners(graph.written))
        self._unclaimed.clear()
        for function, carried, library, found in self._movable:
            self._placements += moved.placed_before(
                function, carried, library.get, found, self._target
            )
        placements = list(self._eager.placements(self._devices_of()))
        placements += self._eager_untold()
        placements += self._placements
        placements += self._from_bodies()
        folded = _fold(placements)
        types = {p.type for p in folded if p.type}
        seen = {t: signatures.signature(t) for t in sorted(types)}
        devices = visible_devices()
        return Record(
            placements=folded,
            devices=devices,
            signatures=MappingProxyType({t: s for t, s in seen.items() if s is not None}),
            tensorflow=tf.__version__,
            calls=MappingProxyType(dict(self._calls.counts)),
            notes=tuple(self._notes),
            problems=tuple(self._problems),
            transfers=tuple(self._transfers.found()),
            op_times=self._step_times.found(devices),
        )

    def _devices_of(self) -> dict[Any, set[str]]:
        """Where graph collection saw each kind of eager op."""
        found: dict[Any, set[str]] = {}
        for seen in self._eager_seen:
            found.setdefault((seen.type, seen.dtypes), set()).add(seen.device)
        return found

    def _eager_untold(self) -> Iterator[Placement]:
        """Eager ops that no callback told of: they raised, or ran in a thread without a window."""
        told = {(k.type, k.dtypes) for log in (self._eager, *self._others) for k in log.ops}
        raised = dict(self._eager.raised)
        for seen in self._eager_seen:
            error = raised.pop((seen.type, seen.device), None) if seen.followed else None
            if error is None and (seen.type, seen.dtypes) in told:
                continue
            yield Placement(
                op=seen.type,
                type=seen.type,
                device=graphs.parse_device(seen.device),
                kind="executed",
                origin="eager",
                inputs=tuple(TensorInfo(d) for d in seen.inputs),
                outputs=tuple(TensorInfo(d) for d in seen.outputs),
                dtypes=seen.dtypes,
                request=error.request if error is not None else None,
                source=error.source if error is not None else None,
                raised=error is not None,
            )
        for error in raised.values():  # instantiated before, so that no graph came of it
            yield Placement(
                op=error.type,
                type=error.type,
                device=graphs.parse_device(error.device),
                kind="executed",
                origin="eager",
                request=error.request,
                source=error.source,
                raised=True,
            )


_OPEN: list[Window] = []


def _default_device() -> str:
    """Where a compiled function is called that has no results and under no scope.

    No kernel narrows the choice and its variables don't count (``SelectDevice`` in eager's
    ``context.cc``; 2.12 to 2.21), so that it is the first of the best devices.
    """
    import tensorflow as tf

    for kind in ("GPU", "CPU"):
        for device in tf.config.list_logical_devices(kind):
            return str(device.name)
    return ""


def _find_function_op(function: str | None, node: Any) -> Any:
    graph = funcgraphs.FUNC_GRAPHS.get(function) if function is not None else None
    return funcgraphs.find_op(graph, node.name, node.op) if graph is not None else None


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
