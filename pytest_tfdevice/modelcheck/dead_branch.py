"""Places a graph, or a function, in the branch of a small graph that is never taken.

A v1 Session places the whole of what it is asked for before it runs any of it, and tells where each
node is.  Here all ops hang on the dead side of a ``Switch``, so that none of their kernels is
called.  Optimisers are off: they would remove the branch (TensorFlow 2.12 to 2.21).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytest_tfdevice.capture import expansion, private
from pytest_tfdevice.capture.channels import CHANNELS

OWN = "pytest_tfdevice"
_CALL = f"{OWN}/body"

KEEP_APART = ("_noinline", "api_implements", "api_preferred_device")
"""Attributes for which TensorFlow leaves a call as it is: ``tf.function``'s own, and that of Keras'
RNNs up to Keras 2.15, which lets an optimiser choose between two implementations."""


TIMEOUT = 120_000
"""Milliseconds after which a graph that does run after all is given up."""


class CannotPlace(RuntimeError):
    """The placer would not take it; the message is TensorFlow's."""


def inlinable(definition: Any) -> Any:
    """A function without the attributes that keep its ops out of the graph that is placed."""
    if definition is None or not any(attr in definition.attr for attr in KEEP_APART):
        return definition
    copy = type(definition)()
    copy.CopyFrom(definition)
    for attr in KEEP_APART:
        copy.attr.pop(attr, None)
    return copy


def place_call(name: str, handles: Sequence[Any], lookup: Callable[[str], Any]) -> list[Any]:
    """The nodes of the function ``name`` where the placer puts them, named as in the function.

    ``handles``: for each argument that is a variable a ``NodeDef`` with its device and, in
    ``_handle_dtypes``, its dtype; None for others.  ``lookup`` gives a ``FunctionDef`` by name.

    Raises:
        CannotPlace: the placer refused.
    """
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    signature = lookup(name).signature
    arguments = [
        _argument(graph, f"{OWN}/argument_{index}", arg, handles[index])
        for index, arg in enumerate(signature.input_arg)
    ]
    call = _node(graph, _CALL, "StatefulPartitionedCall", *arguments)
    call.attr["Tin"].list.type.extend(arg.type for arg in signature.input_arg)
    call.attr["Tout"].list.type.extend(arg.type for arg in signature.output_arg)
    call.attr["f"].func.name = name
    if signature.output_arg:
        results = [f"{_CALL}:{index}" for index in range(len(signature.output_arg))]
        used = _node(graph, f"{OWN}/used", "IdentityN", *results)
        used.attr["T"].list.type.extend(arg.type for arg in signature.output_arg)
    _add_functions(graph, name, lookup, set())
    placed = []
    for node in place_graph(graph)[1]:
        if node.name.startswith(f"{_CALL}/"):
            node.name = node.name[len(_CALL) + 1 :]
            placed.append(node)
    return placed


def place_graph(graph_def: Any) -> tuple[Any, list[Any]]:
    """The imported graph, and its nodes where the placer puts them.

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
            with tf.compat.v1.Session(graph=graph, config=_config()) as session:
                session.run(
                    f"{OWN}/done:0",
                    {f"{OWN}/run:0": False},
                    options=options,
                    run_metadata=metadata,
                )
    except (tf.errors.OpError, ValueError, TypeError, KeyError) as error:
        raise CannotPlace(str(error)) from error
    return graph, [node for part in metadata.partition_graphs for node in part.node]


def _config() -> Any:
    """The process's own devices, soft placement on, optimisers off."""
    config = private.session_config()
    config.allow_soft_placement = True
    config.log_device_placement = False
    config.operation_timeout_in_ms = TIMEOUT
    options = config.graph_options
    options.rewrite_options.disable_meta_optimizer = True
    options.rewrite_options.min_graph_nodes = -1
    options.optimizer_options.opt_level = -1
    options.optimizer_options.do_function_inlining = True
    return config


def _dead(graph_def: Any) -> Any:
    """The graph behind a Switch that isn't taken, and a node that waits for all its ends."""
    import tensorflow as tf

    dead = tf.compat.v1.GraphDef()
    dead.CopyFrom(graph_def)
    library = [inlinable(function) for function in graph_def.library.function]
    del dead.library.function[:]
    dead.library.function.extend(library)
    frames = _frames(dead.node)
    used = {source(name) for node in dead.node for name in node.input}
    # What is in a loop of TensorFlow 1, and used by nothing, can't be waited for from outside.
    ends = [f"^{n.name}" for n in dead.node if n.name not in used and not frames.get(n.name)]
    for node in dead.node:
        # What is inlined for a call hangs on the call's control inputs where it has no others.
        calls = any(True for _ in expansion.called_functions(node))
        if not node.input or (calls and not frames.get(node.name)):
            node.input.append(f"^{OWN}/dead")
    _node(dead, f"{OWN}/run", "Placeholder", dtype=tf.bool)
    _node(dead, f"{OWN}/switch", "Switch", f"{OWN}/run", f"{OWN}/run", T=tf.bool)
    _node(dead, f"{OWN}/dead", "Identity", f"{OWN}/switch:1", T=tf.bool)
    _node(dead, f"{OWN}/alive", "Identity", f"{OWN}/switch", T=tf.bool)
    _node(dead, f"{OWN}/ran", "Identity", f"{OWN}/dead", *ends, T=tf.bool)
    _node(dead, f"{OWN}/done", "Merge", f"{OWN}/ran", f"{OWN}/alive", T=tf.bool, N=2)
    return dead


def _frames(nodes: Any) -> dict[str, tuple[str, ...]]:
    """For each node the loops of TensorFlow 1 that it is in, outermost first."""
    readers: dict[str, list[Any]] = {}
    for node in nodes:
        for name in node.input:
            readers.setdefault(source(name), []).append(node)
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


def source(name: str) -> str:
    """The node of an input: ``"loop/Less"`` of ``"^loop/Less"`` and ``"loop/Less:0"``."""
    return name.lstrip("^").split(":")[0]


def _argument(graph: Any, name: str, arg: Any, handle: Any) -> str:
    """A stand-in for an argument, which never makes a value; a variable's is on its device."""
    import tensorflow as tf

    dtypes = list(handle.attr["_handle_dtypes"].list.type) if handle is not None else []
    if arg.type == tf.resource.as_datatype_enum and len(dtypes) == 1:
        node = _node(graph, name, "VarHandleOp")
        node.attr["dtype"].type = dtypes[0]
        node.attr["shape"].shape.unknown_rank = True
        node.attr["shared_name"].s = name.encode()
        node.device = handle.device
        return name
    node = _node(graph, name, "Placeholder")
    node.attr["dtype"].type = arg.type
    node.attr["shape"].shape.unknown_rank = True
    node.device = "/device:CPU:0"
    return name


def _node(graph: Any, name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    node = graph.node.add(name=name, op=op)
    node.input.extend(inputs)
    for key, value in attrs.items():
        if isinstance(value, int):
            node.attr[key].i = value
        else:
            node.attr[key].type = value.as_datatype_enum
    return node


def _add_functions(graph: Any, name: str, lookup: Callable[[str], Any], known: set[str]) -> None:
    definition = lookup(name)
    if definition is None or name in known:
        return
    known.add(name)
    graph.library.function.add().CopyFrom(definition)
    for node in definition.node_def:
        for _, called in expansion.called_functions(node):
            _add_functions(graph, called, lookup, known)
