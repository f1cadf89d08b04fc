"""Asks TensorFlow's placer where the ops of a function or graph go, and runs none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import dataset_bodies, expansion, funcgraphs, graphs, private
from pytest_tfdevice.capture.channels import CHANNELS
from pytest_tfdevice.model import Device, DeviceSpec, Placement


class CannotPlace(RuntimeError):
    """The placer would not take it; the message is TensorFlow's."""


@dataclass(frozen=True)
class _Shapes:
    """An op of a loaded graph: it has shapes, and its stack is the loader's, which says nothing."""

    outputs: tuple[Any, ...]


def place_function(
    function: Any, target: DeviceSpec, device: Device, *, has_lines: bool
) -> tuple[Placement, ...]:
    """The ops of a ``ConcreteFunction``, its nested functions and its loops over datasets.

    ``device``: where the function is taken to be called, which matters for a compiled one only.

    Raises:
        CannotPlace: the placer refused, or there is no graph.
    """
    definition = function.function_def
    name = definition.signature.name
    graph_def = function.graph.as_graph_def(add_shapes=True)
    library = {found.signature.name: found for found in graph_def.library.function}
    library[name] = definition
    cleaned: dict[str, Any] = {}

    def lookup(called: str) -> Any:
        if called not in cleaned:
            cleaned[called] = _inlinable(library.get(called) or _registered(called))
        return cleaned[called]

    def find_op(inside: str | None, op: str) -> Any:
        graph = function.graph if inside == name else funcgraphs.FUNC_GRAPHS.get(inside or "")
        found = funcgraphs.find_op(graph, op) if graph is not None else None
        return found if found is None or has_lines else _Shapes(tuple(found.outputs))

    if expansion.is_compiled(definition):
        return tuple(graphs.compiled_unit(name, device, lookup, find_op))
    handles = [None] * len(definition.signature.input_arg)
    captured = function.captured_inputs
    for offset, tensor in enumerate(reversed(captured), start=1):
        handles[-offset] = _handle(tensor)
    body = dataset_bodies.DatasetBody(name, name, tuple(handles))
    return tuple(_placed(body, lookup, find_op, target))


def _placed(
    body: dataset_bodies.DatasetBody,
    lookup: Callable[[str], Any],
    find_op: Callable[[str | None, str], Any],
    target: DeviceSpec,
) -> Iterator[Placement]:
    definition = lookup(body.function)
    written = expansion.Expansion(definition.node_def, body.function, lookup)
    reader = graphs.GraphReader(
        written=written, find_op=find_op, lookup=lookup, target=target, origin="function"
    )
    arguments = [arg.name for arg in definition.signature.input_arg]
    known = dict(zip(arguments, body.handles, strict=True))
    nodes = tuple(_with_calls(_ask(body, lookup), written, lookup, known))
    yield from reader.read(nodes)
    for inner in dataset_bodies.find(written, _Nodes(nodes), lookup):
        yield from _placed(inner, lookup, find_op, target)


def _ask(body: dataset_bodies.DatasetBody, lookup: Callable[[str], Any]) -> tuple[Any, ...]:
    try:
        return dataset_bodies.place(body, lookup).nodes
    except dataset_bodies.CannotPlace as error:
        raise CannotPlace(str(error.__cause__ or error)) from error


def _with_calls(
    nodes: Iterable[Any],
    written: expansion.Expansion,
    lookup: Callable[[str], Any],
    handles: Mapping[str, Any],
) -> Iterator[Any]:
    """The nodes, and those of the functions that they call and that were not inlined.

    TensorFlow keeps some as they are (a ``While`` that isn't lowered, as in a frozen graph); the
    runtime places such a function when it first calls it.
    """
    for node in nodes:
        yield node
        if node.op.endswith("Dataset") or expansion.is_compiled(node):
            continue
        for branch, called in expansion.called_functions(node):
            definition = lookup(called)
            if definition is None or expansion.is_compiled(definition):
                continue
            inner = dataset_bodies.DatasetBody(
                node.name, called, _handles_of_call(node, definition, written, handles)
            )
            prefix = f"{node.name}/{branch}/" if branch else f"{node.name}/"
            renamed = (_renamed(n, prefix + n.name) for n in _ask(inner, lookup))
            yield from _with_calls(renamed, written, lookup, handles)


def _handles_of_call(
    node: Any, definition: Any, written: expansion.Expansion, handles: Mapping[str, Any]
) -> tuple[Any, ...]:
    """For each argument of a called function its variable, where it is one.

    Raises:
        CannotPlace: which variable it is can't be told.
    """
    import tensorflow as tf

    asked = written.find(node.name)
    arguments = definition.signature.input_arg
    inputs = [name for name in asked.node.input if not name.startswith("^")] if asked else []
    found: list[Any] = []
    # An If and a Case have their condition before what they hand on.
    for offset, argument in enumerate(arguments, start=len(inputs) - len(arguments)):
        handle = None
        if argument.type == tf.resource.as_datatype_enum:
            source = _source(inputs[offset]) if 0 <= offset < len(inputs) else ""
            if source not in handles:
                raise CannotPlace(f"which variable {node.name} is called with can't be told")
            handle = handles[source]
        found.append(handle)
    return tuple(found)


def _renamed(node: Any, name: str) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    copy.name = name
    return copy


@dataclass(frozen=True)
class _Nodes:
    node: tuple[Any, ...]


def _registered(name: str) -> Any:
    try:
        return private.eager_context().get_function_def(name)
    except Exception:  # errors_impl.NotFoundError
        return None


def _handle(tensor: Any) -> Any:
    """A node that carries a captured variable's device and dtype; None for anything else."""
    import tensorflow as tf

    if tensor.dtype != tf.resource:
        return None
    node = tf.compat.v1.NodeDef(device=getattr(tensor, "device", "") or "")
    data = getattr(tensor, "_handle_data", None)
    for shape_and_type in data.shape_and_type if data is not None and data.is_set else ():
        node.attr["_handle_dtypes"].list.type.append(shape_and_type.dtype)
    return node


KEEP_APART = ("_noinline", "api_implements", "api_preferred_device")
"""Attributes for which TensorFlow leaves a call as it is: ``tf.function``'s own, and that of Keras'
RNNs up to Keras 2.15, which lets an optimiser choose between two implementations."""


def _inlinable(definition: Any) -> Any:
    """A function without the attributes that keep its ops out of the graph that is placed."""
    if definition is None or not any(attr in definition.attr for attr in KEEP_APART):
        return definition
    copy = type(definition)()
    copy.CopyFrom(definition)
    for attr in KEEP_APART:
        copy.attr.pop(attr, None)
    return copy


_OWN = "pytest_tfdevice"


def place_graph(graph_def: Any, target: DeviceSpec) -> tuple[Placement, ...]:
    """The ops of a ``GraphDef``, as a v1 Session with soft placement places them.

    Every op without an input is made to wait for the branch that is never taken, so that all that
    hangs on it is placed and never run.

    Raises:
        CannotPlace: the graph can't be imported, or the placer refused.
    """
    import tensorflow as tf

    graph = tf.Graph()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    try:
        with CHANNELS.silent(), graph.as_default():
            tf.graph_util.import_graph_def(_dead(graph_def), name="")
            config = dataset_bodies._config()
            with tf.compat.v1.Session(graph=graph, config=config) as session:
                session.run(
                    f"{_OWN}/done:0",
                    {f"{_OWN}/run:0": False},
                    options=options,
                    run_metadata=metadata,
                )
    except (tf.errors.OpError, ValueError, TypeError, KeyError) as error:
        raise CannotPlace(str(error)) from error
    library = {f.signature.name: _inlinable(f) for f in graph_def.library.function}

    def find_op(inside: str | None, op: str) -> Any:
        found = funcgraphs.find_op(graph, op) if inside is None else None
        return None if found is None else _Shapes(tuple(found.outputs))

    reader = graphs.GraphReader(
        written=expansion.Expansion(graph_def.node, None, library.get),
        find_op=find_op,
        lookup=library.get,
        target=target,
        origin="session",
    )
    nodes = [
        node
        for partition in metadata.partition_graphs
        for node in partition.node
        if not node.name.startswith(f"{_OWN}/")
    ]
    return tuple(reader.read(_with_calls(nodes, reader.written, reader.lookup, {})))


def _dead(graph_def: Any) -> Any:
    """The graph behind a Switch that isn't taken, and one node that uses all its results."""
    import tensorflow as tf

    dead = tf.compat.v1.GraphDef()
    dead.CopyFrom(graph_def)
    library = [_inlinable(function) for function in graph_def.library.function]
    del dead.library.function[:]
    dead.library.function.extend(library)
    frames = _frames(dead.node)
    used = {_source(name) for node in dead.node for name in node.input}
    # What is in a loop of TensorFlow 1, and used by nothing, can't be waited for from outside.
    ends = [f"^{n.name}" for n in dead.node if n.name not in used and not frames.get(n.name)]
    for node in dead.node:
        if not node.input:
            node.input.append(f"^{_OWN}/dead")
    add = dataset_bodies._node
    add(dead, f"{_OWN}/run", "Placeholder", dtype=tf.bool)
    add(dead, f"{_OWN}/switch", "Switch", f"{_OWN}/run", f"{_OWN}/run", T=tf.bool)
    add(dead, f"{_OWN}/dead", "Identity", f"{_OWN}/switch:1", T=tf.bool)
    add(dead, f"{_OWN}/alive", "Identity", f"{_OWN}/switch", T=tf.bool)
    add(dead, f"{_OWN}/ran", "Identity", f"{_OWN}/dead", *ends, T=tf.bool)
    add(dead, f"{_OWN}/done", "Merge", f"{_OWN}/ran", f"{_OWN}/alive", T=tf.bool, N=2)
    return dead


def _frames(nodes: Any) -> dict[str, tuple[str, ...]]:
    """For each node the loops of TensorFlow 1 that it is in, outermost first."""
    readers: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(_source(name), []).append(node)
    found: dict[str, tuple[str, ...]] = {node.name: () for node in nodes if not node.input}
    waiting = [node for node in nodes if not node.input]
    while waiting:
        node = waiting.pop()
        inside = found[node.name]
        if node.op in ("Enter", "RefEnter"):
            inside = (*inside, node.attr["frame_name"].s.decode())
        elif node.op in ("Exit", "RefExit"):
            inside = inside[:-1]
        for reader in readers.get(node.name, ()):
            if reader.name not in found:
                found[reader.name] = inside
                waiting.append(reader)
    return found


def _source(name: str) -> str:
    """The node of an input: ``"loop/Less"`` of ``"^loop/Less"`` and ``"loop/Less:0"``."""
    return name.lstrip("^").split(":")[0]
