"""Graph collection's entries → the graphs in them.

``RunMetadata.function_graphs`` has an entry for each eager op and function that was instantiated
*and ran to its end*.  What was instantiated and did not end before the next one did is in that
one's entry, its nodes before or behind (2.12 to 2.21): an op that raised comes before, the eager
ops of a ``py_function`` come behind the function that called it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_tfdevice.capture.graphs import PSEUDO_TYPES, plain_type

SENTINEL_TYPE = "StringJoin"
SENTINEL_NAME = "pytest_tfdevice_sentinel_"


def is_sentinel(node: Any) -> bool:
    """True for the node of an op that was run by this package."""
    return bool(
        node.op == SENTINEL_TYPE
        and node.attr["separator"].s.decode(errors="replace").startswith(SENTINEL_NAME)
    )


@dataclass(frozen=True, slots=True)
class EagerNode:
    """An eager op: its node as it ran, its arguments and results, and whether other ops' nodes
    come behind it."""

    type: str
    node: Any
    beside: Sequence[Any]
    followed: bool


@dataclass(slots=True, eq=False)
class FunctionGraph:
    """The graph of a function, as it was written and as it ran.

    ``library`` are the functions that the graph as written calls, ``ran_library`` those of the one
    that ran, to which optimisers may have given other names.  ``written`` has more than one part
    where another function's graph is in the same entry; what ran is told apart by the names then.
    ``partitions``: what ran on each device, with the sends and receives between them.  ``claimed``:
    the parts whose call a window saw.
    """

    written: list[Sequence[Any]]
    ran: Sequence[Any]
    library: dict[str, Any]
    partitions: Sequence[Any] = ()
    ran_library: Sequence[Any] = ()
    claimed: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Entry:
    """What one entry holds; every window gets the same object.

    ``partitions`` are those of eager ops, where an op's result goes to another memory.
    """

    eager: list[EagerNode] = field(default_factory=list)
    partitions: Sequence[Any] = ()
    functions: list[FunctionGraph] = field(default_factory=list)
    sentinel: bool = False


def read(graphs: Any) -> Entry:
    """Takes an entry of ``function_graphs`` apart."""
    written = [_Segment(nodes) for nodes in _split(graphs.pre_optimization_graph.node)]
    entry = Entry(sentinel=any(segment.is_sentinel for segment in written))
    ran = list(graphs.post_optimization_graph.node)
    first = next((i for i, s in enumerate(written) if not s.is_eager), len(written))
    last = max((i for i, s in enumerate(written) if not s.is_eager), default=first - 1)
    before = written[:first]
    behind = written[last + 1 :]
    head = sum(len(segment.nodes) for segment in before)
    tail = len(ran) - sum(len(segment.nodes) for segment in behind)
    entry.eager += _eager(before, ran[:head], more=last + 1 < len(written) or first <= last)
    entry.eager += _eager(behind, ran[tail:], more=False)
    if first > last and len(entry.eager) == 1:
        entry.partitions = list(graphs.partition_graphs)
    if first <= last:
        entry.functions.append(
            FunctionGraph(
                [segment.nodes for segment in written[first : last + 1]],
                ran[head:tail],
                {f.signature.name: f for f in graphs.pre_optimization_graph.library.function},
                list(graphs.partition_graphs),
                graphs.post_optimization_graph.library.function,
            )
        )
    return entry


class _Segment:
    """The nodes of one graph, as they were written."""

    def __init__(self, nodes: list[Any]) -> None:
        self.nodes = nodes
        work = [node for node in nodes if node.op not in PSEUDO_TYPES]
        self.is_eager = len(work) == 1 and _is_eager_op(work[0], nodes)
        self.is_sentinel = self.is_eager and is_sentinel(work[0])


def _is_eager_op(node: Any, nodes: Sequence[Any]) -> bool:
    """An eager op's node has its type's name, and the device that the runtime chose for it."""
    return (
        node.name.split("_pytest_")[0] == node.op
        and (node.device.startswith("/job:") or not node.device)
        and not any("_user_specified_name" in n.attr for n in nodes)
    )


def _split(nodes: Sequence[Any]) -> Iterator[list[Any]]:
    """Each graph's nodes: its arguments come first, its results last."""
    found: list[Any] = []
    for node in nodes:
        if found and _begins(node, found):
            yield found
            found = []
        found.append(node)
    if found:
        yield found


def _begins(node: Any, before: list[Any]) -> bool:
    last = before[-1]
    if node.op in ("_Arg", "_DeviceArg"):
        return last.op not in ("_Arg", "_DeviceArg")
    if node.op in ("_Retval", "_DeviceRetval"):
        return False
    if last.op in ("_Retval", "_DeviceRetval"):
        return True
    # An eager op without results, and then one without arguments.
    return bool(
        last.op not in PSEUDO_TYPES
        and _is_placed_op(last)
        and _is_placed_op(node)
        and all(n.op in PSEUDO_TYPES for n in before[:-1])
    )


def _is_placed_op(node: Any) -> bool:
    return bool(node.name == node.op and "/device:" in node.device)


def _eager(segments: list[_Segment], ran: Sequence[Any], *, more: bool) -> Iterator[EagerNode]:
    """The eager ops of neighbouring segments, by the nodes that ran: as many, in their order."""
    done = 0
    for number, segment in enumerate(segments):
        nodes = ran[done : done + len(segment.nodes)]
        done += len(segment.nodes)
        followed = more or number + 1 < len(segments)
        for node in nodes:
            if node.op not in PSEUDO_TYPES and node.op != "_EagerConst" and not is_sentinel(node):
                yield EagerNode(plain_type(node.op), node, nodes, followed)
