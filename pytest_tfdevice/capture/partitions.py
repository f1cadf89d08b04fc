"""The partitions of a graph that ran → the tensors that cross between them.

TensorFlow cuts a graph into one partition for each device, and puts a send and a receive where an
edge is cut.  Whether bytes go over the bus depends on the memory on both sides: ``_HostSend`` and
``_HostRecv`` keep a tensor in host memory although they are on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import signatures
from pytest_tfdevice.capture.copies import NEVER_ON_DEVICE
from pytest_tfdevice.model import Device, plain_path
from pytest_tfdevice.transfers import Transfer

Shape = tuple[int | None, ...] | None

_SENDS = ("_Send", "_HostSend")
_RECEIVES = ("_Recv", "_HostRecv")
_FEED = re.compile(r"_arg_(?P<name>.+)_(?P<index>\d+)_\d+")
_NUMBER = re.compile(r"(/_\d+)+$")
_MAX_NODES = 20_000
"""Shapes aren't inferred in larger graphs."""


@dataclass(frozen=True)
class Crossing:
    """A tensor between two memories, by node names of the graph; ``output`` of the producer."""

    producer: str
    output: int
    dtype: str
    source: Device
    target: Device
    consumers: tuple[str, ...]
    in_loop: bool


class Partitions:
    """The partition graphs of one function or Session run."""

    def __init__(self, graphs: Iterable[Any]) -> None:
        self._graphs = [list(graph.node) for graph in graphs]
        self._nodes = {node.name: node for nodes in self._graphs for node in nodes}
        self._sent = {
            _edge(node): node for nodes in self._graphs for node in nodes if node.op in _SENDS
        }

    def crossings(self) -> list[Crossing]:
        """In the order of the receives."""
        found = []
        for nodes in self._graphs:
            received = [node for node in nodes if node.op in _RECEIVES]
            if not received:
                continue
            users = _users(nodes, {node.name for node in received})
            for node in received:
                crossing = self._crossing(node, users.get(node.name, ()))
                if crossing is not None:
                    found.append(crossing)
        return found

    def _crossing(self, receive: Any, consumers: tuple[Any, ...]) -> Crossing | None:
        send = self._sent.get(_edge(receive))
        if send is None:
            return None
        source, target = _memory(send), _memory(receive)
        dtype = signatures.dtype_name(send.attr["T"].type)
        if source == target or (source.type == target.type == "CPU") or dtype in NEVER_ON_DEVICE:
            return None
        producer, output = _split(send.input[0])
        if self._is_signal(producer):
            return None
        loops = self._depths()
        return Crossing(
            producer=producer,
            output=output,
            dtype=dtype,
            source=source,
            target=target,
            consumers=tuple(
                "the caller" if c.op == "_Retval" else readable_name(c.name) for c in consumers
            ),
            in_loop=loops.get(send.name, 0) > 0 or loops.get(receive.name, 0) > 0,
        )

    def _is_signal(self, producer: str) -> bool:
        """True for the empty constant that stands for a control edge."""
        node = self._nodes.get(producer)
        if node is None or node.op != "Const":
            return False
        return any(d.size == 0 for d in node.attr["value"].tensor.tensor_shape.dim)

    def _depths(self) -> dict[str, int]:
        """In how many loops each node is."""
        if not hasattr(self, "_depth"):
            self._depth: dict[str, int] = {}
            for nodes in self._graphs:
                self._depth.update(_loop_depths(nodes))
        return self._depth

    def joined(self) -> dict[str, Any]:
        """The nodes of all partitions as one graph again: what is received comes from its send."""
        origin = {}
        for nodes in self._graphs:
            for node in nodes:
                if node.op in _RECEIVES and _edge(node) in self._sent:
                    origin[node.name] = self._sent[_edge(node)].input[0]
        joined = {}
        for nodes in self._graphs:
            for node in nodes:
                if node.op in _SENDS or node.name in origin:
                    continue
                copy = type(node)()
                copy.CopyFrom(node)
                del copy.input[:]
                for name in node.input:
                    data, control = name.lstrip("^").split(":")[0], name.startswith("^")
                    if data in origin:
                        name = origin[data]
                        if control:
                            name = "^" + name.split(":")[0].lstrip("^")
                    copy.input.append(name)
                joined[copy.name] = copy
        return joined


def transfers(
    partitions: Iterable[Any],
    function: str | None,
    static_shape: Callable[[str, int], Shape],
    argument_shape: Callable[[Any], Shape],
) -> list[Transfer]:
    """What crosses between the partitions of a graph, in one run.

    Args:
        function: readable name of the function, or "Session.run".
        static_shape: of an output of a node, as far as the Python side knows it.
        argument_shape: of an ``_Arg`` node, as it was given.
    """
    parts = Partitions(partitions)
    crossings = parts.crossings()
    shapes = {(c.producer, c.output): static_shape(c.producer, c.output) for c in crossings}
    open_ones = [key for key, shape in shapes.items() if shape is None or None in shape]
    if open_ones:
        inferred = infer_shapes(parts.joined(), open_ones, argument_shape)
        shapes.update({key: shape for key, shape in inferred.items() if shape is not None})
    return [
        Transfer(
            tensor=f"{readable_name(c.producer)}:{c.output}",
            dtype=c.dtype,
            shape=shapes[c.producer, c.output],
            source=c.source,
            target=c.target,
            producer=readable_name(c.producer),
            consumers=tuple(dict.fromkeys(c.consumers)),
            function=function,
            in_loop=c.in_loop,
        )
        for c in crossings
    ]


def infer_shapes(
    nodes: Mapping[str, Any],
    wanted: Iterable[tuple[str, int]],
    argument_shape: Callable[[Any], Shape],
) -> dict[tuple[str, int], Shape]:
    """Shapes of outputs, from those of the arguments, by TensorFlow's own shape functions.

    In a loop they are those of the first iteration.  Empty where TensorFlow refuses the graph.
    """
    import tensorflow as tf

    wanted = list(wanted)
    needed = _ancestors(nodes, {name for name, _ in wanted})
    if len(needed) > _MAX_NODES:
        return {}
    # The runtime's names ("_cloopwhile/…", "_arg_x_0_0") are none that a graph may be built with.
    plain = {name: f"n{number}" for number, name in enumerate(needed)}
    graph = tf.compat.v1.GraphDef()
    for name in needed:
        node = graph.node.add()
        node.CopyFrom(nodes[name])
        node.name = plain[name]
        if node.op == "_Arg":
            _make_placeholder(node, argument_shape(nodes[name]))
        elif _is(node, "Enter"):
            _make_identity(node)
        node.device = ""
        for attr in ("_class", "_output_shapes"):
            node.attr.pop(attr, None)
        inputs = [_renamed(i, plain) for i in _inputs(node, nodes)]
        del node.input[:]
        node.input.extend(i for i in inputs if i)
    try:
        with tf.Graph().as_default() as imported:
            tf.compat.v1.import_graph_def(graph, name="")
        return {
            (name, output): _dims(imported.get_tensor_by_name(f"{plain[name]}:{output}").shape)
            for name, output in wanted
        }
    except Exception:  # an op that can't be imported, a function whose body isn't there
        return {}


def readable_name(name: str) -> str:
    """``"x"`` for the feed ``"_arg_x_0_0"``, ``"while/body/input"`` for what lowering made."""
    fed = _FEED.fullmatch(name)
    if fed:
        return fed["name"]
    return _NUMBER.sub("", plain_path(name.removeprefix("Func/")))


def feed_name(node: Any) -> str | None:
    """The tensor that an ``_Arg`` of a Session's graph feeds: ``"x:0"``."""
    fed = _FEED.fullmatch(node.name)
    return f"{fed['name']}:{fed['index']}" if fed else None


def _make_placeholder(node: Any, shape: Shape) -> None:
    dtype = node.attr["T"].type
    node.op = "Placeholder"
    for attr in list(node.attr):
        del node.attr[attr]
    node.attr["dtype"].type = dtype
    if shape is None:
        node.attr["shape"].shape.unknown_rank = True
        return
    for size in shape:
        node.attr["shape"].shape.dim.add().size = -1 if size is None else size
    node.attr["shape"].shape.SetInParent()


def _inputs(node: Any, nodes: Mapping[str, Any]) -> list[str]:
    """A node's inputs, without what comes back from the iteration before."""
    if node.op == "Placeholder":
        return []
    inputs = list(node.input)
    if not _is(node, "Merge"):
        return inputs
    sources = {name: nodes.get(name.split(":")[0]) for name in inputs}
    kept = [n for n in inputs if sources[n] is None or not _is(sources[n], "NextIteration")]
    node.attr["N"].i = sum(not name.startswith("^") for name in kept)
    return kept


def _renamed(name: str, names: Mapping[str, str]) -> str | None:
    """An input's name under new node names; None where its node isn't in the graph."""
    node, colon, output = name.lstrip("^").partition(":")
    if node not in names:
        return None
    return f"{'^' if name.startswith('^') else ''}{names[node]}{colon}{output}"


def _make_identity(node: Any) -> None:
    """What enters a loop has any shape to TensorFlow, since later iterations might change it."""
    dtype = node.attr["T"].type
    node.op = "Identity"
    for attr in list(node.attr):
        del node.attr[attr]
    node.attr["T"].type = dtype


def _ancestors(nodes: Mapping[str, Any], roots: set[str]) -> list[str]:
    seen: set[str] = set()
    waiting = [name for name in roots if name in nodes]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        inputs = (i.lstrip("^").split(":")[0] for i in nodes[name].input)
        waiting += [i for i in inputs if i in nodes]
    return sorted(seen)


def _users(nodes: list[Any], names: set[str]) -> dict[str, tuple[Any, ...]]:
    found: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.input:
            plain = name.split(":")[0]
            if plain in names:
                found.setdefault(plain, []).append(node)
    return {name: tuple(users) for name, users in found.items()}


def _loop_depths(nodes: list[Any]) -> dict[str, int]:
    """An ``Enter`` leads into a loop, an ``Exit`` out of it; all else is where its inputs are."""
    users: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.input:
            users.setdefault(name.lstrip("^").split(":")[0], []).append(node)
    depths = {node.name: 1 if _is(node, "Enter") else 0 for node in nodes if not node.input}
    waiting = [node.name for node in nodes if not node.input]
    while waiting:
        name = waiting.pop()
        for user in users.get(name, ()):
            if user.name not in depths:
                step = 1 if _is(user, "Enter") else -1 if _is(user, "Exit") else 0
                depths[user.name] = depths[name] + step
                waiting.append(user.name)
    return depths


def _is(node: Any, kind: str) -> bool:
    return bool(node.op in (kind, f"Ref{kind}"))


def _edge(node: Any) -> tuple[str, str, str]:
    attr = node.attr
    return (
        attr["send_device"].s.decode(),
        attr["recv_device"].s.decode(),
        attr["tensor_name"].s.decode(),
    )


def _memory(node: Any) -> Device:
    """The device whose memory a send or receive has its tensor in."""
    which = "send_device" if node.op in _SENDS else "recv_device"
    device = Device.parse(node.attr[which].s.decode())
    if node.op.startswith("_Host"):
        return Device(device.job, device.replica, device.task, "CPU", 0)
    return device


def _split(name: str) -> tuple[str, int]:
    node, _, output = name.partition(":")
    return node, int(output or 0)


def _dims(shape: Any) -> Shape:
    return None if shape.rank is None else tuple(shape.as_list())
