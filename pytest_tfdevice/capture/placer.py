"""Asking TensorFlow's placer where ops would go, without running them.

The ops are put in the dead branch of a small graph, ``if run: …``, which a Session of its own
places and then runs with ``run`` False: no kernel of theirs is called.  Optimisers are switched
off, since they would remove the branch, so what is told is the placer's own choice (2.12 to 2.21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytest_tfdevice.capture import expansion, private

_OWN = "pytest_tfdevice"
_RUN, _SWITCH, _DEAD, _ALIVE, _RAN, _DONE = (
    f"{_OWN}/{name}" for name in ("run", "switch", "dead", "alive", "ran", "done")
)
_CALL = f"{_OWN}/body"


class CannotPlace(RuntimeError):
    """The placer refused; the message is its first line."""


def place_call(
    function: str,
    carried: Sequence[Any],
    device: str,
    lookup: Callable[[str], Any],
) -> list[Any]:
    """The nodes of a function as the placer puts them, each named as in the function.

    ``carried``: for each argument the node that gives it, or None; ``device``: where ops go that
    ask for nothing, empty where the placer is free.

    Raises:
        CannotPlace: see there.
    """
    graph = _graph()
    definition = lookup(function)
    arguments = [
        _argument(graph, index, arg, carried[index])
        for index, arg in enumerate(definition.signature.input_arg)
    ]
    call = _node(graph, _CALL, "StatefulPartitionedCall", *arguments, f"^{_DEAD}")
    call.attr["Tin"].list.type.extend(arg.type for arg in definition.signature.input_arg)
    call.attr["Tout"].list.type.extend(arg.type for arg in definition.signature.output_arg)
    call.attr["f"].func.name = function
    # The graph is pruned to what is fetched: results and side effects both have to be used.
    results = [f"{_CALL}:{index}" for index in range(len(definition.signature.output_arg))]
    used = _node(graph, f"{_OWN}/used", "IdentityN", *results) if results else call
    if results:
        used.attr["T"].list.type.extend(arg.type for arg in definition.signature.output_arg)
    _finish(graph, dict.fromkeys((_CALL, used.name)))
    _add_functions(graph, function, device, lookup, set())
    placed = []
    for node in _placed(graph):
        if node.name.startswith(f"{_CALL}/"):
            node.name = node.name[len(_CALL) + 1 :]
            placed.append(node)
    return placed


def place_graph(graph_def: Any, wanted: Iterable[str], fed: Iterable[str]) -> list[Any]:
    """The nodes of a graph that the ops ``wanted`` need, as the placer puts them.

    ``fed`` are the ops whose values are given.

    Raises:
        CannotPlace: see there.
    """
    graph = _graph()
    given = frozenset(fed)
    by_name = {node.name: node for node in graph_def.node}
    names = list(dict.fromkeys(name for name in wanted if name in by_name))
    _finish(graph, names)
    needed: set[str] = set()
    while names:
        name = names.pop()
        if name in needed or name not in by_name:
            continue
        needed.add(name)
        node = graph.node.add()
        node.CopyFrom(by_name[name])
        if name in given:
            del node.input[:]
        if not node.input:
            node.input.append(f"^{_DEAD}")
        names += [_op_name(source) for source in node.input]
    graph.library.CopyFrom(graph_def.library)
    graph.versions.CopyFrom(graph_def.versions)
    return [node for node in _placed(graph) if not node.name.startswith(f"{_OWN}/")]


def _op_name(tensor: str) -> str:
    return tensor.removeprefix("^").split(":")[0]


def _graph() -> Any:
    """``if run:`` as a graph of Switch and Merge; control inputs from ``_DEAD`` are the branch."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    _node(graph, _RUN, "Placeholder", dtype=tf.bool)
    _node(graph, _SWITCH, "Switch", _RUN, _RUN, T=tf.bool)
    _node(graph, _DEAD, "Identity", f"{_SWITCH}:1", T=tf.bool)
    _node(graph, _ALIVE, "Identity", _SWITCH, T=tf.bool)
    return graph


def _finish(graph: Any, wanted: Iterable[str]) -> None:
    import tensorflow as tf

    _node(graph, _RAN, "Identity", _DEAD, *(f"^{name}" for name in wanted), T=tf.bool)
    _node(graph, _DONE, "Merge", _RAN, _ALIVE, T=tf.bool, N=2)


def _placed(graph_def: Any) -> list[Any]:
    import tensorflow as tf

    from pytest_tfdevice.capture.channels import CHANNELS  # which needs this module

    graph = tf.Graph()
    options = tf.compat.v1.RunOptions(output_partition_graphs=True)
    metadata = tf.compat.v1.RunMetadata()
    try:
        with CHANNELS.silent(), graph.as_default():
            tf.graph_util.import_graph_def(graph_def, name="")
            with tf.compat.v1.Session(graph=graph, config=_config()) as session:
                session.run(
                    f"{_DONE}:0", {f"{_RUN}:0": False}, options=options, run_metadata=metadata
                )
    except (tf.errors.OpError, ValueError) as error:
        raise CannotPlace(str(error).strip().splitlines()[0]) from error
    nodes = []
    for partition in metadata.partition_graphs:
        for node in partition.node:
            copy = type(node)()
            copy.CopyFrom(node)
            nodes.append(copy)
    return nodes


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


def _argument(graph: Any, index: int, arg: Any, carried: Any) -> str:
    """A stand-in for an argument; it is in the dead branch and never makes a value."""
    import tensorflow as tf

    name = f"{_OWN}/argument_{index}"
    dtypes = _handle_dtypes(carried) if arg.type == tf.resource.as_datatype_enum else []
    if len(dtypes) == 1:
        node = _node(graph, name, "VarHandleOp", f"^{_DEAD}")
        node.attr["dtype"].type = dtypes[0]
        node.attr["shared_name"].s = name.encode()
    else:
        node = _node(graph, name, "Placeholder", f"^{_DEAD}")
        node.attr["dtype"].type = arg.type
    node.attr["shape"].shape.unknown_rank = True
    node.device = carried.device if carried is not None else "/device:CPU:0"
    return name


def _handle_dtypes(carried: Any) -> list[int]:
    """The dtype of the variable whose handle a node gives, in a list; empty where none is."""
    if carried is None:
        return []
    if carried.op == "VarHandleOp":
        return [carried.attr["dtype"].type]
    return list(carried.attr["_handle_dtypes"].list.type)


def _node(graph: Any, name: str, op: str, *inputs: str, **attrs: Any) -> Any:
    node = graph.node.add(name=name, op=op)
    node.input.extend(inputs)
    for key, value in attrs.items():
        if isinstance(value, int):
            node.attr[key].i = value
        else:
            node.attr[key].type = value.as_datatype_enum
    return node


def _add_functions(
    graph: Any, name: str, device: str, lookup: Callable[[str], Any], known: set[str]
) -> None:
    definition = lookup(name)
    if definition is None or name in known:
        return
    known.add(name)
    added = graph.library.function.add()
    added.CopyFrom(definition)
    added.attr["_noinline"].b = False
    for node in added.node_def:
        if device and not node.device:
            node.device = device
        for _, called in expansion.called_functions(node):
            _add_functions(graph, called, device, lookup, known)
