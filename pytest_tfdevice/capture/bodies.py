"""Functions that ran and that no graph of TensorFlow's tells of → where their ops are.

* The body of ``for x in dataset`` inside a ``tf.function``, and that of ``Dataset.reduce``, is the
  function of a ``ScanDataset`` or ``ReduceDataset`` op.  Both leave the placer free, unlike the
  rest of ``tf.data`` (a GPU's memory statistics show that the bodies run there), but no graph of
  them is ever collected.
* A function that isn't inlined stays a call in the graph: in v1 Sessions, or where its author
  forbade it.

So the placer is asked (TensorFlow 2.12 to 2.21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import expansion, placer

_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})


class CannotPlace(RuntimeError):
    """The placer would not take a body."""


@dataclass(frozen=True)
class Body:
    """A function that a node runs.

    ``carried``: for each argument of the function, the node of the graph that gives it, where that
    is known.  ``device``: where ops go that ask for nothing; empty where the placer is free.
    ``prefix``: what the names of its ops begin with, as if it were inlined.
    """

    op: str
    function: str
    carried: tuple[Any, ...]
    device: str = ""
    prefix: str = ""


def find(nodes: Iterable[Any], lookup: Callable[[str], Any]) -> Iterator[Body]:
    """The bodies that the nodes of a graph that ran stand for."""
    nodes = list(nodes)
    found = [node for node in nodes if _has_placed_body(node) or node.op in _CALLS]
    if not found:
        return
    by_name = {node.name: node for node in nodes}
    for node in found:
        function = expansion.called_function(node)
        definition = lookup(function) if function else None
        if function is None or definition is None:
            continue
        inputs = [_source(name) for name in node.input if not name.startswith("^")]
        arguments = len(definition.signature.input_arg)
        if node.op in _CALLS:
            if expansion.is_compiled(node) or expansion.is_compiled(definition):
                continue
            carried = [copied(by_name.get(name)) for name in inputs[:arguments]]
            carried += [None] * (arguments - len(carried))
            yield Body(node.name, function, tuple(carried), node.device, f"{node.name}/")
            continue
        # The op takes (input_dataset, initial_state…, other_arguments…), its function
        # (state…, element…, other_arguments…): counted from the end, they line up.
        carried = [None] * arguments
        for offset in range(1, len(node.attr["Targuments"].list.type) + 1):
            source = inputs[-offset] if offset <= len(inputs) else ""
            carried[-offset] = copied(by_name.get(source))
        yield Body(node.name, function, tuple(carried))


def _has_placed_body(node: Any) -> bool:
    """True for ops whose function the placer is free to place.

    ``ReduceDataset`` always leaves it free; ``ScanDataset`` does where AutoGraph made it from a
    loop (``use_default_device=False``), while ``Dataset.scan`` keeps it on the pipeline's CPU.
    """
    if node.op == "ScanDataset":
        return "use_default_device" in node.attr and not node.attr["use_default_device"].b
    return bool(node.op == "ReduceDataset")


def definitions(function: str, lookup: Callable[[str], Any], found: dict[str, Any]) -> None:
    """Adds copies of a function's definition, and of those that it calls, to ``found``."""
    definition = lookup(function)
    if definition is None or function in found:
        return
    found[function] = copied(definition)
    for node in definition.node_def:
        for _, called in expansion.called_functions(node):
            definitions(called, lookup, found)


def place(body: Body, lookup: Callable[[str], Any]) -> list[Any]:
    """Asks TensorFlow's placer where the ops of a body go.

    They come under the names that inlining would give them.

    Raises:
        CannotPlace: the placer refused; the message says which body and why.
    """
    try:
        nodes = placer.place_call(body.function, body.carried, body.device, lookup)
    except placer.CannotPlace as error:
        why = str(error).strip().partition("\n")[0]
        raise CannotPlace(
            f"the function {expansion.readable(body.function)} that {body.op} runs could not be "
            f"examined: {why}"
        ) from error
    for node in nodes:
        node.name = body.prefix + node.name
    return nodes


def _source(tensor: str) -> str:
    return tensor.split(":")[0]


def copied(message: Any) -> Any:
    """A message of its own: a part of a graph would keep all of the graph in memory."""
    if message is None:
        return None
    copy = type(message)()
    copy.CopyFrom(message)
    return copy
