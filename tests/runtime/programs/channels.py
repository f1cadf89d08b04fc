"""The same programs through the structured channel and through TensorFlow's own placement log."""

from telling import fact, facts, simulate, tell

from pytest_tfdevice import watch
from pytest_tfdevice.capture.log_window import PlacementLog

simulate()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context as tf_context  # noqa: E402

v1 = tf.compat.v1
x = tf.random.uniform([4, 4])
weights = tf.Variable(x)
PSEUDO = ("_Arg", "_Retval", "_DeviceArg", "_DeviceRetval", "_Send", "_Recv", "_EagerConst")


def ignore(_):
    """What a program gives, where it is of no interest."""


def plain(op_type):
    """oneDNN's names of ops are the CPU kernels' own."""
    for prefix in ("_MklNative", "_MklEager", "_Mkl"):
        op_type = op_type.removeprefix(prefix)
    return op_type


def written_nodes(graph):
    yield from graph.node
    for function in graph.library.function:
        yield from function.node_def


def both(program, graph_of_session=None):
    """Runs ``program`` once, under both channels, beside TensorFlow's own account of the graphs."""
    context = tf_context.context()
    with PlacementLog() as log, watch() as w:
        context.enable_graph_collection()
        partitions = program()
        collected = context.export_run_metadata()
        context.disable_graph_collection()
    graphs = collected.function_graphs
    ran = [n for g in graphs for n in g.post_optimization_graph.node]
    written = [n for g in graphs for n in written_nodes(g.pre_optimization_graph)]
    for partition in partitions or ():
        ran += partition.node
    if graph_of_session is not None:
        written += written_nodes(graph_of_session.as_graph_def())
    calls = {n.name: n.op for n in ran}
    return {
        "text": [
            [p.op, plain(p.type), p.device.short]
            for p in log.placements
            if p.kind == "placed" and p.type not in PSEUDO and p.type != "StringJoin"
        ],
        "structured": [
            # A compiled unit is a call in the graph, and named by its function in a record.
            [p.op, calls.get(p.op, p.type) if p.is_unit else p.type, p.device.short]
            for p in w.record.placements
            if p.origin != "compiled"
        ],
        "ran": sorted({(n.name, plain(n.op)) for n in ran}),
        "written": sorted({(n.name, plain(n.op)) for n in written}),
        "problems": [*log.problems, *w.record.problems],
    }


@fact
def eager():
    def program():
        y = tf.linalg.matmul(x, tf.math.tanh(x))
        with tf.device("/CPU:0"):
            y = tf.math.cosh(y)
        ints = tf.cast(x * 4.0, tf.int32)
        tf.linalg.matmul(ints, ints)
        weights.assign_add(y)

    return both(program)


@fact
def function():
    @tf.function
    def f(a):
        with tf.device("/CPU:0"):
            b = tf.math.cosh(a)
        c = tf.linalg.matmul(b, a) + 1.0
        return tf.nn.relu(c) * tf.math.sinh(tf.constant([2.0]))

    return both(lambda: ignore(f(x)))


@fact
def nested():
    @tf.function
    def inner(a):
        with tf.device("/CPU:0"):
            return tf.math.asinh(a)

    @tf.function
    def outer(a):
        return inner(a) + inner(tf.math.tanh(a))

    return both(lambda: ignore(outer(x)))


@fact
def gradients():
    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            with tf.device("/CPU:0"):
                y = tf.math.tanh(weights)
            loss = tf.reduce_sum(tf.linalg.matmul(y, a))
        weights.assign_sub(tape.gradient(loss, weights) * 0.1)
        return loss

    return both(lambda: ignore(f(x)))


@fact
def while_loop():
    @tf.function
    def f(a):
        for _ in tf.range(3):
            with tf.device("/CPU:0"):
                a = tf.math.sinh(a)
            a = tf.math.tanh(a)
        return a

    return both(lambda: ignore(f(x)))


@fact
def cond():
    @tf.function
    def f(a):
        if tf.reduce_sum(a) > 0:
            with tf.device("/CPU:0"):
                a = tf.math.sinh(a)
        else:
            a = tf.math.cosh(a)
        return a

    return both(lambda: ignore(f(x)))


@fact
def keras_fit():
    net = tf.keras.Sequential(
        [
            tf.keras.Input([8]),
            tf.keras.layers.Dense(4, activation="tanh"),
            tf.keras.layers.Dense(1),
        ]
    )
    net.compile("sgd", "mse", jit_compile=False)
    data = np.random.rand(16, 8).astype("float32")
    return both(lambda: ignore(net.fit(data, data[:, :1], batch_size=8, verbose=0)))


@fact
def session():
    graph = tf.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.float32, [4, 4], name="a")
        free = tf.math.sinh(a, name="free")
        with tf.device("/CPU:0"):
            pinned = tf.math.cosh(free, name="pinned")
        out = tf.linalg.matmul(pinned, a, name="out")
        tf.math.tan(a, name="unused")

    def program():
        config = v1.ConfigProto(log_device_placement=True, allow_soft_placement=True)
        asked = v1.RunMetadata()
        with v1.Session(graph=graph, config=config) as opened:
            options = v1.RunOptions(output_partition_graphs=True)
            opened.run(out, {a: x.numpy()}, options=options, run_metadata=asked)
        return asked.partition_graphs

    return both(program, graph)


facts["programs"] = sorted(facts)
tell()
