"""What crosses between devices in small programs, as a window tells it, and as their partition
graphs show it: each program runs again outside of any window, with TensorFlow's own graph
collection, and the sends and receives between different memories are counted there."""

from __future__ import annotations

import os

from telling import fact, simulate, tag, tell

simulate(2)

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

from pytest_tfdevice import watch  # noqa: E402

tf1 = tf.compat.v1
F32 = np.float32
with tf.device("/GPU:0"):
    ON_GPU = tf.ones([64, 32])
with tf.device("/CPU:0"):
    ON_CPU = tf.ones([64, 32])


def crossings(record):
    return [
        [t.tensor, t.direction, t.nbytes, t.in_loop, t.count, t.runs, t.cause, t.producer,
         list(t.consumers), t.function]
        for t in record.transfers
    ]  # fmt: skip


def by_hand(graphs):
    """Receives whose send is in another memory, without those that only carry a signal."""
    found = 0
    for graph in graphs:
        nodes = [node for part in graph.partition_graphs for node in part.node]
        ends = {}
        for node in nodes:
            if node.op in ("_Send", "_HostSend", "_Recv", "_HostRecv"):
                sends = node.op.endswith("Send")
                device = node.attr["send_device" if sends else "recv_device"].s.decode()
                memory = "host" if node.op.startswith("_Host") or "CPU" in device else device
                ends.setdefault(node.attr["tensor_name"].s, {})[sends] = (memory, node)
        for pair in ends.values():
            (source, send), (target, _) = pair[True], pair[False]
            made = next(n for n in nodes if n.name == send.input[0].split(":")[0])
            signal = made.op == "Const" and made.attr["value"].tensor.tensor_shape.dim[:1] and (
                made.attr["value"].tensor.tensor_shape.dim[0].size == 0
            )  # fmt: skip
            found += source != target and not signal
    return found


def both(program, steps=1):
    """What a window tells of ``steps`` runs, and the number that the partition graphs show."""
    program()
    with watch() as seen:
        for _ in range(steps):
            program()
    told = crossings(seen.record)
    context.context().clear_kernel_cache()
    context.context().enable_graph_collection()
    program()
    metadata = context.context().export_run_metadata()
    context.context().disable_graph_collection()
    return {
        "told": told,
        "by hand": by_hand(metadata.function_graphs),
        "problems": list(seen.record.problems),
    }


@tf.function
def on_gpu(x):
    return tf.matmul(x, x, transpose_b=True)


@tf.function
def detour(x):
    y = tf.exp(x, name="there")
    with tf.device("/CPU:0"):
        z = tf.sin(y, name="host")
    return tf.add(y, z, name="back")


@tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
def loop(x):
    for _ in tf.range(5):
        with tf.device("/CPU:0"):
            y = tf.sin(x, name="host")
        x = tf.cos(y, name="back")
    return x


@tf.function
def nested_loops(x):
    for _ in tf.range(2):
        for _ in tf.range(2):
            with tf.device("/CPU:0"):
                x = tf.sin(x, name="inner")
            x = tf.cos(x)
    return x


@tf.function
def after_loop(x):
    for _ in tf.range(2):
        x = tf.cos(x)
    with tf.device("/CPU:0"):
        return tf.sin(x, name="host")


@tf.function
def branch(x):
    if tf.reduce_sum(x) > 0:
        with tf.device("/CPU:0"):
            y = tf.sin(x, name="host")
        x = tf.cos(y)
    return x


@tf.function
def shapes(x, n):
    return tf.reshape(x, [n, -1]) * 2.0


@tf.function
def signal(x):
    with tf.device("/CPU:0"):
        printed = tf.print("step", output_stream=f"file://{os.devnull}")
    with tf.control_dependencies([printed]):
        return tf.cos(x)


@tf.function
def integers(x):
    i = tf.cast(x, tf.int32, name="to_int")
    product = tf.matmul(i, i, transpose_b=True, name="product")
    return tf.cast(product, tf.float32, name="to_float")


@tf.function
def python(x):
    y = tf.py_function(lambda t: t.numpy() + 1, [tf.exp(x, name="there")], tf.float32)
    return tf.cos(tf.ensure_shape(y, x.shape), name="back")


@tf.function
def two_gpus(x):
    with tf.device("/GPU:0"):
        y = tf.exp(x, name="first")
    with tf.device("/GPU:1"):
        return tf.cos(y, name="second")


@tf.function
def three_gpu_hops(x):
    with tf.device("/GPU:1"):
        y = tf.exp(x, name="there")
    with tf.device("/CPU:0"):
        z = tf.sin(y, name="host")
    with tf.device("/GPU:0"):
        return tf.cos(z, name="back")


@fact
def functions():
    return {
        "on_gpu": both(lambda: on_gpu(ON_GPU)),
        "argument": both(lambda: on_gpu(ON_CPU), steps=3),
        "detour": both(lambda: detour(ON_GPU), steps=4),
        "loop": both(lambda: loop(ON_GPU)),
        "nested_loops": both(lambda: nested_loops(ON_GPU)),
        "after_loop": both(lambda: after_loop(ON_GPU)),
        "branch": both(lambda: branch(ON_GPU)),
        "shapes": both(lambda: shapes(ON_GPU, tf.constant(8))),
        "signal": both(lambda: signal(ON_GPU)),
        "integers": both(lambda: integers(ON_GPU)),
        "python": both(lambda: python(ON_GPU)),
        "two_gpus": both(lambda: two_gpus(ON_GPU)),
        "three_gpu_hops": both(lambda: three_gpu_hops(ON_GPU)),
    }


@fact
def keras_fit():
    import keras

    model = keras.Sequential([keras.Input([4]), keras.layers.Dense(2)])
    model.compile("sgd", "mse", jit_compile=False)
    data = tf.data.Dataset.from_tensor_slices((np.ones([32, 4], F32), np.ones([32, 2], F32)))
    data = data.batch(8, drop_remainder=True)
    return both(lambda: model.fit(data, epochs=1, verbose=0))


@fact
def session():
    graph = tf.Graph()
    with graph.as_default():
        x = tf1.placeholder(tf.float32, [None, 4], name="x")
        y = tf.exp(x, name="there")
        with tf.device("/CPU:0"):
            z = tf.sin(y, name="host")
        w = tf.cos(z, name="back")
    feeds = {x: np.ones([10, 4], F32)}
    with tf1.Session(graph=graph) as running:
        with watch() as seen:
            for _ in range(3):
                running.run(w, feeds)
            running.run(y, feeds)
        metadata = tf1.RunMetadata()
        asked = tf1.RunOptions(output_partition_graphs=True)
        running.run(w, feeds, options=asked, run_metadata=metadata)

    return {
        "told": crossings(seen.record),
        "by hand": by_hand([metadata]),
        "problems": list(seen.record.problems),
    }


@fact
def session_loop():
    graph = tf.Graph()
    with graph.as_default():
        start = tf.ones([3, 3])

        def body(i, x):
            with tf.device("/CPU:0"):
                y = tf.sin(x, name="host")
            return i + 1, tf.cos(y, name="back")

        _, out = tf1.while_loop(lambda i, x: i < 3, body, [tf.constant(0), start])
    with tf1.Session(graph=graph) as running:
        with watch() as seen:
            running.run(out.op)
        metadata = tf1.RunMetadata()
        asked = tf1.RunOptions(output_partition_graphs=True)
        running.run(out.op, options=asked, run_metadata=metadata)

    return {
        "told": crossings(seen.record),
        "by hand": by_hand([metadata]),
        "problems": list(seen.record.problems),
    }


@fact
def eager():
    """Each copy outside of graphs, by its line's comment."""

    def told(program):
        with watch() as seen:
            program()
        return [
            [t.cause, t.direction, t.dtype, t.nbytes, t.count, t.runs, t.function]
            for t in seen.record.transfers
        ]

    def fresh():
        with tf.device("/CPU:0"):
            return tf.ones([64, 32])

    cold = fresh()
    compiled = tf.function(lambda x: tf.cos(x), jit_compile=True)

    def steps():
        for _ in range(5):
            on_gpu(np.ones([2, 2], F32)).numpy()

    def to_host():
        with tf.device("/CPU:0"):
            tf.sin(ON_GPU)

    return {
        "nothing": told(lambda: tf.exp(ON_GPU)),
        "operand": told(lambda: (tf.exp(cold), tf.sin(cold))),
        "same device": told(lambda: tf.exp(ON_GPU) + ON_GPU),
        "to host": told(to_host),
        "shape argument": told(lambda: tf.reshape(ON_GPU, [32, -1])),
        "axis": told(lambda: tf.reduce_sum(ON_GPU, axis=0)),
        "indices": told(lambda: tf.gather(ON_GPU, [0, 1, 2])),
        "value": told(lambda: tf.constant(np.ones([3, 3], F32))),
        "scalar": told(lambda: ON_GPU * 2.0),
        "read": told(lambda: ON_GPU.numpy()),
        "read scalar": told(lambda: float(tf.reduce_sum(ON_GPU))),
        "read on host": told(lambda: ON_CPU.numpy()),
        "copied by hand": told(lambda: ON_GPU.cpu()),
        "compiled": told(lambda: (compiled(fresh()), compiled(fresh()))),
        "steps": told(steps),
        "constant on host": told(lambda: tf.constant(["text"])),
    }


@fact
def lines():
    with watch() as seen:
        ON_GPU.numpy()  # read here
    return [tag(t.line) for t in seen.record.transfers]


@fact
def nothing_is_left_behind():
    from tensorflow.python.framework import constant_op, ops

    with watch():
        pass
    return [
        ops._EagerTensorBase._numpy.__module__,
        ops._EagerTensorBase._copy_nograd.__module__,
        constant_op.convert_to_eager_tensor.__module__,
        tf1.Session.__mro__[1].__init__.__module__,
        "reset_memory_stats" in context.context().__dict__,
    ]


tell()
