"""Asking TensorFlow's placer where ops would go, without running them.

The ops are put in the dead branch of a small graph, ``if run: …``, which a v1 Session of its own
places as a whole and then runs with ``run`` False: no kernel of theirs is called.  Optimisers are
switched off, since they would remove the branch, so what is told is the placer's own choice
(TensorFlow 2.12 to 2.21).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_tfdevice.capture import expansion, private

OWN = "pytest_tfdevice"
"""Scope of the nodes that make the branch."""

KEEP_APART = ("_noinline", "api_implements", "api_preferred_device")
"""Attributes for which TensorFlow leaves a call as it is: ``tf.function``'s own, and that of Keras'
RNNs up to Keras 2.15, which lets an optimiser choose between two implementations."""

TIMEOUT = 120_000
"""Milliseconds after which a graph that does run after all is given up."""

_RUN, _SWITCH, _DEAD, _ALIVE, _RAN, _DONE = (
    f"{OWN}/{name}" for name in ("run", "switch", "dead", "alive", "ran", "done")
)
_CALL = f"{OWN}/body"


class CannotPlace(RuntimeError):
    """The placer would not take it; the message is TensorFlow's."""


def place_call(
    function: str,
    carried: Sequence[Any],
    device: str,
    lookup: Callable[[str], Any],
) -> list[Any]:
    """The nodes of a function as the placer puts them, each named as in the function.

    ``carried``: for each argument the node that gives it, with its device and, of a variable, its
    dtype, or None; ``device``: where ops go that ask for nothing, empty where the placer is free;
    ``lookup`` gives a ``FunctionDef`` by name.

    Raises:
        CannotPlace: the placer refused.
    """
    graph = _branch()
    signature = lookup(function).signature
    arguments = [
        _argument(graph, index, arg, carried[index])
        for index, arg in enumerate(signature.input_arg)
    ]
    call = _node(graph, _CALL, "StatefulPartitionedCall", *arguments, f"^{_DEAD}")
    call.attr["Tin"].list.type.extend(arg.type for arg in signature.input_arg)
    call.attr["Tout"].list.type.extend(arg.type for arg in signature.output_arg)
    call.attr["f"].func.name = function
    # The graph is pruned to what is fetched: results and side effects both have to be used.
    results = [f"{_CALL}:{index}" for index in range(len(signature.output_arg))]
    used = _node(graph, f"{OWN}/used", "IdentityN", *results) if results else call
    if results:
        used.attr["T"].list.type.extend(arg.type for arg in signature.output_arg)
    _wait_for(graph, dict.fromkeys((_CALL, used.name)))
    _add_functions(graph, function, device, lookup, set())
    placed = []
    for node in _place(graph)[1]:
        if node.name.startswith(f"{_CALL}/"):
            node.name = node.name[len(_CALL) + 1 :]
            placed.append(node)
    return placed


def place_graph(
    graph_def: Any, wanted: Iterable[str], fed: Iterable[str] = ()
) -> tuple[Any, list[Any]]:
    """What the ops ``wanted`` need of a graph: imported, and its nodes as the placer puts them.

    ``fed`` are the ops whose values are given.

    Raises:
        CannotPlace: the graph can't be imported, or the placer refused.
    """
    graph = _branch()
    given = frozenset(fed)
    loops = _loops(graph_def.node)
    by_name = {node.name: node for node in graph_def.node}
    names = list(dict.fromkeys(name for name in wanted if name in by_name))
    _wait_for(graph, names)
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
        # What is inlined for a call hangs on the call's control inputs where it has no others.
        calls = any(True for _ in expansion.called_functions(node))
        if not node.input or (calls and not loops.get(name)):
            node.input.append(f"^{_DEAD}")
        names += [source(name) for name in node.input]
    graph.library.CopyFrom(graph_def.library)
    del graph.library.function[:]
    graph.library.function.extend(map(inlinable, graph_def.library.function))
    graph.versions.CopyFrom(graph_def.versions)
    imported, nodes = _place(graph)
    return imported, [node for node in nodes if not node.name.startswith(f"{OWN}/")]


def ends(graph_def: Any) -> list[str]:
    """The ops of a graph that no other one uses: what to want of it to have all of it placed."""
    loops = _loops(graph_def.node)
    used = {source(name) for node in graph_def.node for name in node.input}
    # What is in a loop of TensorFlow 1, and used by nothing, can't be waited for from outside.
    return [n.name for n in graph_def.node if n.name not in used and not loops.get(n.name)]


def inlinable(definition: Any) -> Any:
    """A function without the attributes that keep its ops out of the graph that is placed."""
    if definition is None or not any(attr in definition.attr for attr in KEEP_APART):
        return definition
    copy = type(definition)()
    copy.CopyFrom(definition)
    for attr in KEEP_APART:
        copy.attr.pop(attr, None)
    return copy


def source(name: str) -> str:
    """The node of an input: ``"loop/Less"`` of ``"^loop/Less"`` and ``"loop/Less:0"``."""
    return name.removeprefix("^").split(":")[0]


# --- the branch ---------------------------------------------------------------------------------


def _branch() -> Any:
    """``if run:`` as a graph of Switch and Merge; control inputs from ``_DEAD`` are the branch."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    graph.versions.producer = tf.version.GRAPH_DEF_VERSION
    _node(graph, _RUN, "Placeholder", dtype=tf.bool)
    _node(graph, _SWITCH, "Switch", _RUN, _RUN, T=tf.bool)
    _node(graph, _DEAD, "Identity", f"{_SWITCH}:1", T=tf.bool)
    _node(graph, _ALIVE, "Identity", _SWITCH, T=tf.bool)
    return graph


def _wait_for(graph: Any, wanted: Iterable[str]) -> None:
    """Ends the branch once the ops ``wanted`` are done with."""
    import tensorflow as tf

    _node(graph, _RAN, "Identity", _DEAD, *(f"^{name}" for name in wanted), T=tf.bool)
    _node(graph, _DONE, "Merge", _RAN, _ALIVE, T=tf.bool, N=2)


def _place(graph_def: Any) -> tuple[Any, list[Any]]:
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


def _loops(nodes: Any) -> Mapping[str, tuple[str, ...]]:
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


def _argument(graph: Any, index: int, arg: Any, carried: Any) -> str:
    """A stand-in for an argument; it is in the dead branch and never makes a value."""
    import tensorflow as tf

    name = f"{OWN}/argument_{index}"
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
    added.CopyFrom(inlinable(definition))
    for node in added.node_def:
        if device and not node.device:
            node.device = device
        for _, called in expansion.called_functions(node):
            _add_functions(graph, called, device, lookup, known)
