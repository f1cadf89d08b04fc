"""Graphs that TensorFlow ran → placements.

A graph comes in two states: as it was written (which device each node asked for, dtypes,
colocation) and as it ran (where each node is).  Nodes that an optimiser folded away did not run and
are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_tfdevice.capture import expansion, funcgraphs, fusion, signatures, stack
from pytest_tfdevice.model import (
    Device,
    DeviceError,
    DeviceScope,
    DeviceSpec,
    HostContext,
    Origin,
    Placement,
    SourceLine,
    TensorInfo,
)

PSEUDO_TYPES = frozenset(
    {"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "_Send", "_Recv", "_HostSend", "_HostRecv"}
)
"""Arguments and results of a graph, and the seams between its partitions: no ops."""

_MKL = re.compile(r"^_+Mkl(?:Native|Eager)?(?=[A-Z])")


_KEPT = frozenset({"Const", "Identity", "NoOp", "Snapshot"})
"""What an optimiser leaves of an op that it did away with: that op didn't run."""


def _is_private(ran: Any, written: Any) -> bool:
    """True for ``_FusedBatchNormEx`` and the like in place of an op that has a public type."""
    return bool(ran.op.startswith("_") and not written.op.startswith("_"))


def _rewrites(ran: Any, written: Any) -> bool:
    """True where an optimiser put an op to the same effect in the place of another: ``x / 2`` runs
    as a ``Mul`` (``arithmetic_optimizer.cc``; not where oneDNN has fused it away before)."""
    inputs = [sum(not name.startswith("^") for name in node.input) for node in (ran, written)]
    return ran.op not in _KEPT and ran.op != written.op and inputs[0] == inputs[1] > 0


def plain_type(op_type: str) -> str:
    """``"MatMul"`` for ``"_MklMatMul"``: oneDNN renames op types on CPUs (2.12 to 2.21).

    An error of an eager op calls it ``__MklMatMul``.
    """
    return _MKL.sub("", op_type)


FindOp = Callable[[str | None, Any], Any]
"""From a node's function (None for the graph itself) and the node to its Python op, or None."""


@dataclass(frozen=True, slots=True)
class Called:
    """The call that ran a graph: the ``tf.device`` in force then, the user's line, and whether
    that was inside a ``py_function``."""

    request: DeviceScope | None = None
    source: SourceLine | None = None
    host_context: HostContext | None = None


_UNKNOWN = Called()


@dataclass(frozen=True)
class GraphReader:
    """Reads the nodes of one graph that ran.

    ``written`` are the nodes as they were written; ``find_op`` leads from a node's function and
    name to its Python op, or None; ``calls`` tells of the calls that ran it, by function.  Lines
    and shapes cost time, so that they are read only for nodes off ``target``, and shapes also where
    a verdict may rest on them.
    """

    written: expansion.Expansion
    find_op: FindOp
    lookup: Callable[[str], Any]
    target: DeviceSpec
    origin: Origin
    calls: Mapping[str | None, Called] = field(default_factory=dict)

    def read(self, nodes: Iterable[Any]) -> Iterator[Placement]:
        """The placements of ``nodes`` as they ran: compiled units followed by what is in them, and
        fused nodes as those that were written."""
        nodes = [node for node in nodes if node.op not in PSEUDO_TYPES]
        survived = {expansion.plain_name(node.name) for node in nodes}
        for node in nodes:
            base = fusion.base_of(node)
            parts = fusion.parts(node, self.written, survived) if base is not None else ()
            if base is not None:
                for name, written in parts:
                    yield self._placed(node, name, written, written.node.op)
                if not parts:
                    yield self._placed(node, node.name, self.written.find(node.name), base)
                continue
            placement = self.placement(node)
            if expansion.is_compiled(node):
                function = expansion.called_function(node) or node.op
                yield from compiled_unit(
                    function, placement.device, self.lookup, self.find_op, name=node.name,
                    called=Called(placement.request, placement.source, placement.host_context),
                )  # fmt: skip
            else:
                yield placement

    def placement(self, node: Any) -> Placement:
        """One node that ran, under the type that it was written with where an optimiser gave it a
        private one (``_FusedBatchNormEx``)."""
        written = self.written.find(node.name)
        op_type = node.op
        if written is not None and (
            _is_private(node, written.node) or _rewrites(node, written.node)
        ):
            op_type = written.node.op
        return self._placed(node, node.name, written, plain_type(op_type))

    def _placed(
        self, node: Any, name: str, written: expansion.Requested | None, op_type: str
    ) -> Placement:
        """``node`` as the op ``name``, which is itself or what was fused into it."""
        called = self._called(written)
        device = parse_device(node.device)
        described = written.node if written is not None and written.node.op == op_type else node
        inputs, outputs = signatures.tensor_dtypes(op_type, described.attr)
        op = self._python_op(written)
        off_target = device is None or not self.target.matches(device)
        request = self._request(written, op, called, device) if off_target else _asked(written)
        return Placement(
            op=name,
            type=op_type,
            device=device,
            origin=self.origin,
            inputs=tuple(TensorInfo(dtype) for dtype in inputs),
            outputs=_outputs(outputs, node, op, off_target),
            dtypes=signatures.node_dtypes(op_type, described.attr),
            request=request,
            source=self._source(op, called) if off_target else None,
            function=expansion.readable(written.function) if written and written.function else None,
            colocated_with=_colocated_with(written.node if written else node, inputs),
            host_context=called.host_context,
        )

    def _python_op(self, written: expansion.Requested | None) -> Any:
        return self.find_op(written.function, written.node) if written is not None else None

    def _called(self, written: expansion.Requested | None) -> Called:
        """The call that led to a node; for one that an optimiser made, if there was but one."""
        if written is not None:
            return self.calls.get(written.root, _UNKNOWN)
        return next(iter(self.calls.values())) if len(self.calls) == 1 else _UNKNOWN

    def _source(self, op: Any, called: Called) -> SourceLine | None:
        """Where the op was created; where nobody knows (a restored function), where it was run."""
        return (stack.user_line(funcgraphs.op_frames(op)) if op else None) or called.source

    def _request(
        self, written: expansion.Requested | None, op: Any, called: Called, device: Device | None
    ) -> DeviceScope | None:
        """What an op off the target asked for, and where."""
        asked = _asked(written)
        if asked is not None:
            return _with_opener(asked, funcgraphs.op_frames(op) if op is not None else ())
        # A scope around the call is obeyed where the function itself asks for nothing; it is no
        # promise for the ops that have no kernel there.
        outer = called.request
        obeyed = outer is not None and device is not None and outer.spec.matches(device)
        return outer if obeyed else None


def _asked(written: expansion.Requested | None) -> DeviceScope | None:
    spec = parse_request(written.device) if written is not None else None
    return DeviceScope(spec) if spec is not None else None


def compiled_unit(
    function: str,
    device: Device | None,
    lookup: Callable[[str], Any],
    find_op: FindOp,
    *,
    name: str | None = None,
    called: Called = _UNKNOWN,
    raised: bool = False,
) -> Iterator[Placement]:
    """A compiled function as one unit on one device, and then the ops in it.

    XLA ignores ``tf.device`` inside a unit (tensorflow#124880), so its ops are where the unit is.
    """
    readable = expansion.readable(function)
    found = lookup(function)
    inside = (
        expansion.Expansion(found.node_def, function, lookup, into_compiled=True)
        if found is not None
        else ()
    )
    ops = tuple(_inside_unit(inside, readable, device, find_op))
    yield Placement(
        op=name or readable,
        type=readable,
        device=device,
        kind="executed",
        origin="function",
        request=called.request,
        source=called.source,
        function=readable,
        unit=readable,
        contents=len(ops),
        host_context=called.host_context,
        raised=raised,
    )
    yield from ops


def _inside_unit(
    nodes: Iterable[tuple[str, expansion.Requested]],
    unit: str,
    device: Device | None,
    find_op: FindOp,
) -> Iterator[Placement]:
    for name, written in nodes:
        node = written.node
        if node.op in PSEUDO_TYPES:
            continue
        request = _asked(written)
        pinned = request is not None and device is not None and not request.spec.matches(device)
        op = find_op(written.function, node) if pinned else None
        frames = funcgraphs.op_frames(op) if op is not None else ()
        inputs, outputs = signatures.tensor_dtypes(node.op, node.attr)
        yield Placement(
            op=name,
            type=node.op,
            device=device,
            origin="compiled",
            inputs=tuple(TensorInfo(dtype) for dtype in inputs),
            outputs=tuple(TensorInfo(dtype) for dtype in outputs),
            dtypes=signatures.node_dtypes(node.op, node.attr),
            request=_with_opener(request, frames),
            source=stack.user_line(frames),
            function=expansion.readable(written.function or unit),
            unit=unit,
        )


def _with_opener(
    request: DeviceScope | None, frames: tuple[stack.Frame, ...]
) -> DeviceScope | None:
    source = stack.scope_opener(frames)
    if request is None or source is None:
        return request
    return DeviceScope(request.spec, source, stack.is_framework(source.file))


def parse_request(device: str) -> DeviceSpec | None:
    """What a node or a scope asks for; None where that is no particular kind of device.

    TensorFlow completes a request to the full name of the process; that isn't what was asked for.
    """
    try:
        spec = DeviceSpec.parse(device)
    except DeviceError:
        return None
    if spec.type is None:
        return None
    return DeviceSpec(type=spec.type, index=spec.index) if spec.job == "localhost" else spec


def parse_device(name: str) -> Device | None:
    """The device of a node; None for one that has none."""
    if not name:
        return None
    try:
        return Device.parse(name)
    except DeviceError:
        return None


_FLOATING = ("float", "bfloat", "double", "half", "complex", "q")


def _outputs(
    dtypes: tuple[str, ...], node: Any, op: Any, off_target: bool
) -> tuple[TensorInfo, ...]:
    if not off_target and all(dtype.startswith(_FLOATING) for dtype in dtypes):
        return tuple(TensorInfo(dtype) for dtype in dtypes)
    shapes: tuple[tuple[int | None, ...] | None, ...] = ()
    if op is not None:
        shapes = funcgraphs.op_shapes(op)
    elif "_output_shapes" in node.attr:
        shapes = tuple(
            None
            if shape.unknown_rank
            else tuple(d.size if d.size >= 0 else None for d in shape.dim)
            for shape in node.attr["_output_shapes"].list.shape
        )
    if len(shapes) != len(dtypes):
        return tuple(TensorInfo(dtype) for dtype in dtypes)
    return tuple(TensorInfo(*pair) for pair in zip(dtypes, shapes, strict=True))


def _colocated_with(node: Any, inputs: tuple[str, ...]) -> tuple[str, ...]:
    """Explicit constraints, and the resources that the op reads or writes: it follows them."""
    named = [
        loc.decode().removeprefix("loc:@")
        for loc in (node.attr["_class"].list.s if "_class" in node.attr else ())
    ]
    data = [name.split(":")[0] for name in node.input if not name.startswith("^")]
    named += [name for name, dtype in zip(data, inputs, strict=False) if dtype == "resource"]
    return tuple(name for name in dict.fromkeys(named) if name != node.name)
