"""Where the body of ``for x in dataset`` inside a ``tf.function`` is.

The body becomes the function of a ``ScanDataset`` or ``ReduceDataset`` op.  Both are told not to
prefer the pipeline's own device, so the runtime places them as any other function, but no graph of
them is ever collected (TensorFlow 2.12 to 2.21).  So the placer is asked: the function is called in
the dead branch of a small graph, which is placed and never run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import expansion, private
from pytest_tfdevice.capture.channels import CHANNELS


def _has_placed_body(node: Any) -> bool:
    """True for ops whose function the placer is free to place.

    ``ReduceDataset`` always leaves it free; ``ScanDataset`` does where AutoGraph made it from a
    loop (``use_default_device=False``), while ``Dataset.scan`` keeps it on the pipeline's CPU.
    """
    if node.op == "ScanDataset":
        return "use_default_device" in node.attr and not node.attr["use_default_device"].b
    return bool(node.op == "ReduceDataset")


class CannotPlace(RuntimeError):
    """The placer would not take the body of a dataset loop."""


@dataclass(frozen=True)
class DatasetBody:
    """A loop over a dataset: its op's name and function, and its resource arguments.

    ``handles``: for each argument of the function, the graph argument that carries it, where it
    is a resource whose device is known.
    """

    op: str
    function: str
    handles: tuple[Any, ...]


@dataclass(frozen=True)
class PlacedBody:
    """The nodes of a body with their devices, named from the loop's op on."""

    nodes: tuple[Any, ...]


def find(
    written: expansion.Expansion, ran: Any, lookup: Callable[[str], Any]
) -> Iterator[DatasetBody]:
    """The dataset loops of a function graph that ran."""
    by_name = {node.name: node for node in ran.node}
    for node in ran.node:
        if not _has_placed_body(node):
            continue
        function = expansion.called_function(node)
        definition = lookup(function) if function else None
        if function is None or definition is None:
            continue
        inputs = [name for name in node.input if not name.startswith("^")]
        # The op takes (input_dataset, initial_state…, other_arguments…), its function
        # (state…, element…, other_arguments…): counted from the end, they line up.
        arguments = len(definition.signature.input_arg)
        others = len(node.attr["Targuments"].list.type)
        handles: list[Any] = [None] * arguments
        for offset in range(1, others + 1):
            handles[-offset] = by_name.get(inputs[-offset].split(":")[0])
        yield DatasetBody(node.name, function, tuple(handles))


def place(body: DatasetBody, lookup: Callable[[str], Any]) -> PlacedBody:
    """Asks TensorFlow's placer where the body of a loop goes.

    Raises:
        CannotPlace: the placer refused; the message says which loop and why.
    """
    import tensorflow as tf

    graph = tf.Graph()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    try:
        with CHANNELS.silent(), graph.as_default():
            tf.graph_util.import_graph_def(_dead_call(body, lookup), name="")
            with tf.compat.v1.Session(graph=graph, config=_config()) as session:
                session.run("done:0", {"run:0": False}, options=options, run_metadata=metadata)
    except (tf.errors.OpError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise CannotPlace(
            f"the body of the dataset loop {body.op} ({expansion.readable(body.function)}) could "
            f"not be examined: {reason}"
        ) from error
    nodes = []
    for partition in metadata.partition_graphs:
        for node in partition.node:
            if node.name.startswith(_CALL + "/"):
                renamed = type(node)()
                renamed.CopyFrom(node)
                renamed.name = node.name[len(_CALL) + 1 :]
                nodes.append(renamed)
    return PlacedBody(tuple(nodes))


_CALL = "body"


def _config() -> Any:
    """The process's own devices, without optimisers: they would remove the dead branch."""
    from tensorflow.core.protobuf import rewriter_config_pb2

    config = private.session_config()
    config.allow_soft_placement = True
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.rewrite_options.min_graph_nodes = -1
    config.graph_options.optimizer_options.opt_level = -1
    config.graph_options.optimizer_options.do_function_inlining = True
    config.graph_options.rewrite_options.meta_optimizer_iterations = (
        rewriter_config_pb2.RewriterConfig.ONE
    )
    return config


def _dead_call(body: DatasetBody, lookup: Callable[[str], Any]) -> Any:
    """``if run: body(…)`` as a graph of Switch and Merge, with the functions that it needs."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    definition = lookup(body.function)
    _node(graph, "run", "Placeholder", dtype=tf.bool)
    _node(graph, "switch", "Switch", "run", "run", T=tf.bool)
    _node(graph, "dead", "Identity", "switch:1", T=tf.bool)
    _node(graph, "alive", "Identity", "switch", T=tf.bool)
    arguments = []
    for index, arg in enumerate(definition.signature.input_arg):
        arguments.append(_argument(graph, index, arg, body.handles[index]))
    call = _node(graph, _CALL, "StatefulPartitionedCall", *arguments, "^dead")
    call.attr["Tin"].list.type.extend(arg.type for arg in definition.signature.input_arg)
    call.attr["Tout"].list.type.extend(arg.type for arg in definition.signature.output_arg)
    call.attr["f"].func.name = body.function
    # The graph is pruned to what is fetched: results and side effects both have to be used.
    results = [f"{_CALL}:{index}" for index in range(len(definition.signature.output_arg))]
    used = _node(graph, "used", "IdentityN", *results) if results else call
    used.attr["T"].list.type.extend(arg.type for arg in definition.signature.output_arg)
    _node(graph, "ran", "Identity", "dead", f"^{_CALL}", f"^{used.name}", T=tf.bool)
    _node(graph, "done", "Merge", "ran", "alive", T=tf.bool, N=2)
    _add_functions(graph, body.function, lookup, set())
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    return graph


def _argument(graph: Any, index: int, arg: Any, carried: Any) -> str:
    """A stand-in for an argument; it is in the dead branch and never makes a value."""
    import tensorflow as tf

    name = f"argument_{index}"
    if arg.type == tf.resource.as_datatype_enum and carried is not None:
        dtypes = list(carried.attr["_handle_dtypes"].list.type)
        if len(dtypes) == 1:
            node = _node(graph, name, "VarHandleOp", "^dead")
            node.attr["dtype"].type = dtypes[0]
            node.attr["shape"].shape.unknown_rank = True
            node.attr["shared_name"].s = name.encode()
            node.device = carried.device
            return name
    node = _node(graph, name, "Placeholder", "^dead")
    node.attr["dtype"].type = arg.type
    node.attr["shape"].shape.unknown_rank = True
    node.device = carried.device if carried is not None else "/device:CPU:0"
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
