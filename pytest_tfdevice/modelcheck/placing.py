"""Where the ops of a function or graph go: what the placer says, as placements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import expansion, funcgraphs, graphs, private
from pytest_tfdevice.capture.placer import (
    CannotPlace,
    ends,
    inlinable,
    place_call,
    place_graph,
    source,
)
from pytest_tfdevice.model import Device, DeviceSpec, Placement

__all__ = ["CannotPlace", "of_function", "of_graph"]

Lookup = Callable[[str], Any]
Handles = Mapping[str, Any]
"""The variables that a function is called with, by the name of the argument."""


@dataclass(frozen=True)
class _Shapes:
    """An op of a loaded graph: it has shapes, and its stack is the loader's, which says nothing."""

    outputs: tuple[Any, ...]


def of_function(
    function: Any, target: DeviceSpec, device: Device, *, has_lines: bool
) -> tuple[Placement, ...]:
    """The ops of a ``ConcreteFunction``, and of all that it calls.

    ``device``: where the function is taken to be called, which matters for a compiled one only.

    Raises:
        CannotPlace: the placer refused.
    """
    definition = function.function_def
    name = definition.signature.name
    graph_def = function.graph.as_graph_def(add_shapes=True)
    library = {found.signature.name: found for found in graph_def.library.function}
    library[name] = definition
    cleaned: dict[str, Any] = {}

    def lookup(called: str) -> Any:
        if called not in cleaned:
            cleaned[called] = inlinable(library.get(called) or _registered(called))
        return cleaned[called]

    def find_op(inside: str | None, op: Any) -> Any:
        graph = function.graph if inside == name else funcgraphs.FUNC_GRAPHS.get(inside or "")
        found = funcgraphs.find_op(graph, _name(op)) if graph is not None else None
        return found if found is None or has_lines else _Shapes(tuple(found.outputs))

    if expansion.is_compiled(definition):
        return tuple(graphs.compiled_unit(name, device, lookup, find_op))
    arguments = [arg.name for arg in definition.signature.input_arg]
    captured = function.captured_inputs
    first = len(arguments) - len(captured)
    handles = dict(zip(arguments[first:], map(_handle, captured), strict=True))
    written = expansion.Expansion(lookup(name).node_def, name, lookup)
    reader = graphs.GraphReader(
        written=written, find_op=find_op, lookup=lookup, target=target, origin="function"
    )
    nodes = place_call(name, [handles.get(argument) for argument in arguments], "", lookup)
    return tuple(reader.read(_with_calls(nodes, written, lookup, handles)))


def of_graph(graph_def: Any, target: DeviceSpec) -> tuple[Placement, ...]:
    """The ops of a ``GraphDef``, as a v1 Session with soft placement places them.

    Raises:
        CannotPlace: the graph can't be imported, or the placer refused.
    """
    graph, nodes = place_graph(graph_def, ends(graph_def))
    library = {f.signature.name: inlinable(f) for f in graph_def.library.function}

    def find_op(inside: str | None, op: Any) -> Any:
        found = funcgraphs.find_op(graph, _name(op)) if inside is None else None
        return None if found is None else _Shapes(tuple(found.outputs))

    written = expansion.Expansion(graph_def.node, None, library.get)
    reader = graphs.GraphReader(
        written=written, find_op=find_op, lookup=library.get, target=target, origin="session"
    )
    return tuple(reader.read(_with_calls(nodes, written, library.get, {})))


def _with_calls(
    nodes: Iterable[Any], written: expansion.Expansion, lookup: Lookup, handles: Handles
) -> Iterator[Any]:
    """The nodes, and those of the functions that they call and that were not inlined.

    TensorFlow keeps some as they are (a ``While`` that isn't lowered, as in a frozen graph; the
    body of a loop over a dataset); the runtime places such a function when it first calls it.
    """
    for node in nodes:
        yield node
        if expansion.is_compiled(node) or not _is_placed_freely(node):
            continue
        for branch, called in expansion.called_functions(node):
            definition = lookup(called)
            if definition is None or expansion.is_compiled(definition):
                continue
            prefix = f"{node.name}/{branch}/" if branch else f"{node.name}/"
            given = _handles_of_call(node, definition, written, handles)
            inner = place_call(called, given, "", lookup)
            for one in inner:
                one.name = prefix + one.name
            yield from _with_calls(inner, written, lookup, handles)


def _is_placed_freely(node: Any) -> bool:
    """False for what has a ``tf.data`` function, which is on the CPU: but a loop's body isn't."""
    if node.op == "ScanDataset":
        return "use_default_device" in node.attr and not node.attr["use_default_device"].b
    return node.op == "ReduceDataset" or not node.op.endswith(("Dataset", "DatasetV2"))


def _handles_of_call(
    node: Any, definition: Any, written: expansion.Expansion, handles: Handles
) -> list[Any]:
    """For each argument of a called function its variable, where it is one.

    Raises:
        CannotPlace: which variable it is can't be told.
    """
    import tensorflow as tf

    asked = written.find(node.name)
    arguments = definition.signature.input_arg
    inputs = [name for name in asked.node.input if not name.startswith("^")] if asked else []
    found: list[Any] = []
    # Whatever an op takes besides what it hands on (a condition, a dataset) comes before that.
    for offset, argument in enumerate(arguments, start=len(inputs) - len(arguments)):
        handle = None
        if argument.type == tf.resource.as_datatype_enum:
            given = source(inputs[offset]) if 0 <= offset < len(inputs) else ""
            if given not in handles:
                raise CannotPlace(f"which variable {node.name} is called with can't be told")
            handle = handles[given]
        found.append(handle)
    return found


def _name(op: Any) -> str:
    """Of a node, or already one."""
    return str(getattr(op, "name", op))


def _registered(name: str) -> Any:
    try:
        return private.eager_context().get_function_def(name)
    except Exception:  # errors_impl.NotFoundError
        return None


def _handle(tensor: Any) -> Any:
    """A node with the device and dtype of a captured variable; None for anything else."""
    import tensorflow as tf

    if tensor.dtype != tf.resource:
        return None
    node = tf.compat.v1.NodeDef(device=getattr(tensor, "device", "") or "")
    data = private.handle_data(tensor)
    for shape_and_type in data.shape_and_type if data is not None and data.is_set else ():
        node.attr["_handle_dtypes"].list.type.append(shape_and_type.dtype)
    return node
