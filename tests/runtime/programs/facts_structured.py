"""What the structured channel rests on, asked of TensorFlow alone: no window is open."""

import contextlib
import threading

from telling import fact, simulate, tell

simulate(count=2)

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context as tf_context  # noqa: E402
from tensorflow.python.framework import op_callbacks  # noqa: E402

context = tf_context.context()
x = tf.random.uniform([4, 4])
nan = tf.constant([float("nan")])
v1 = tf.compat.v1


class Collected:
    """Graph collection around a stretch."""

    def __enter__(self):
        context.enable_graph_collection()
        return self

    def __exit__(self, *_):
        self.graphs = context.export_run_metadata().function_graphs
        context.disable_graph_collection()

    def types(self, which="post_optimization_graph"):
        return sorted(
            {n.op for g in self.graphs for n in getattr(g, which).node if not n.op.startswith("_")}
        )


def device(node):
    return node.device.rpartition("device:")[2]


@fact
def clearing_the_cache():
    f = tf.function(lambda a: tf.math.sinh(a))
    f(x)
    with Collected() as warm:
        f(x)
    context.clear_kernel_cache()
    with Collected() as cleared:
        f(x)
    return {"warm": warm.types(), "cleared": cleared.types()}


@fact
def collection():
    @tf.function
    def f(a):
        with tf.device("/CPU:0"):
            b = tf.math.sinh(a)
        return tf.math.tanh(b)

    with Collected() as c:
        f(x)
        tf.math.cosh(x)
    first = c.graphs[0]
    sinh = next(n for n in first.pre_optimization_graph.node if n.op == "Sinh")
    return {
        "entries": len(c.graphs),
        "fields": sorted(field.name for field in first.DESCRIPTOR.fields),
        "requested": sinh.device,
        "dtype": tf.as_dtype(sinh.attr["T"].type).name,
        "assigned": {n.op: device(n) for n in first.post_optimization_graph.node},
        "between": sorted(
            {n.op for p in first.partition_graphs for n in p.node if n.op in ("_Send", "_Recv")}
        ),
    }


@fact
def compiled():
    @tf.function(jit_compile=True)
    def unit(a):
        return tf.math.sinh(a)

    with Collected() as c:
        y = unit(x)
    name = unit.get_concrete_function(x).name
    name = name.decode() if isinstance(name, bytes) else name
    body = context.get_function_def(name)
    return {
        "collected": "Sinh" in c.types(),
        "body": "Sinh" in {n.op for n in body.node_def},
        "marked": body.attr["_XlaMustCompile"].b,
        "device": y.device.rpartition("device:")[2],
    }


@fact
def run_metadata():
    graph = tf.Graph()
    with graph.as_default(), tf.device("/CPU:0"):
        a = v1.placeholder(tf.float32, [2])
        out = tf.math.sinh(a, name="s")
    options = v1.RunOptions(output_partition_graphs=True, trace_level=v1.RunOptions.FULL_TRACE)
    asked = v1.RunMetadata()
    with v1.Session(graph=graph) as session:
        session.run(out, {a: [1.0, 2.0]}, options=options, run_metadata=asked)
        try:
            bad = v1.RunMetadata()
            with graph.as_default():
                raises = tf.debugging.check_numerics(tf.constant([float("nan")]), "bad")
            session.run(raises, options=options, run_metadata=bad)
        except tf.errors.InvalidArgumentError:
            pass
    return {
        "devices": {
            n.name: device(n) for p in asked.partition_graphs for n in p.node if n.name == "s"
        },
        "step stats": len(asked.step_stats.dev_stats) > 0,
        "graphs of a run that raised": len(bad.partition_graphs),
    }


@fact
def optimised():
    @tf.function
    def f(a):
        with tf.device("/CPU:0"):
            b = tf.math.tanh(tf.math.sinh(tf.math.cosh(a)))
        return b

    with Collected() as c:
        f(x)
    before = [n.name for n in c.graphs[0].pre_optimization_graph.node if n.op != "NoOp"]
    after = [n.name for n in c.graphs[0].post_optimization_graph.node]
    return {
        "Cosh written": "Cosh" in before,
        "Cosh ran": "Cosh" in after,
        "made": [name for name in after if name not in before and "RetVal" not in name],
    }


@fact
def traceback():
    @tf.function
    def f(a):
        return tf.math.sinh(a)

    graph = f.get_concrete_function(x).graph
    op = next(op for op in graph.get_operations() if op.type == "Sinh")
    return any(frame.filename == __file__ and frame.name == "f" for frame in op.traceback)


@fact
def dataset_loop():
    data = tf.data.Dataset.range(2)

    @tf.function
    def f():
        total = 0.0
        for i in data:
            total += tf.math.sinh(tf.cast(i, tf.float32))
        return total

    with Collected() as c:
        f()
    return {"Sinh": "Sinh" in c.types(), "ReduceDataset": "ReduceDataset" in c.types()}


@fact
def eager_requests():
    with Collected() as c, tf.device("/GPU:7"):
        tf.math.sinh(x)
    with Collected() as variable, tf.device("/GPU:0"):
        tf.Variable(42)
    return {
        "scope 7": [
            device(n) for g in c.graphs for n in g.pre_optimization_graph.node if n.op == "Sinh"
        ],
        "int variable": [
            device(n)
            for g in variable.graphs
            for n in g.pre_optimization_graph.node
            if n.op == "VarHandleOp"
        ],
    }


@fact
def raising():
    with Collected() as c:
        try:
            tf.debugging.check_numerics(nan, "bad")
        except tf.errors.InvalidArgumentError as error:
            message = error.message
    with Collected() as after:
        tf.math.acosh(x)
    return {"own": c.types(), "next": after.types(), "message": message}


@fact
def inlined():
    @tf.function
    def inner(a):
        with tf.device("/CPU:0"):
            return tf.math.sinh(a)

    @tf.function
    def outer(a):
        return tf.math.tanh(inner(a))

    with Collected() as c:
        outer(x)
    graph = c.graphs[0]
    ran = {n.name: device(n) for n in graph.post_optimization_graph.node}
    library = [n for f in graph.pre_optimization_graph.library.function for n in f.node_def]
    return {
        "ran": ran.get("PartitionedCall/Sinh"),
        "written": [n.device for n in library if n.op == "Sinh"],
    }


@fact
def framework_scope():
    strategy = tf.distribute.MirroredStrategy()

    @tf.function
    def f(a):
        each = strategy.run(lambda b: tf.math.sinh(b), (a,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None)

    graph = f.get_concrete_function(x).graph
    op = next(op for op in graph.get_operations() if op.type == "AddN")
    return {
        "device": op.device.rpartition("device:")[2],
        "files": [a.filename.rpartition("tensorflow/")[2] for a in op._device_assignments],
        "opened": any("cross_device_ops" in frame.filename for frame in op.traceback),
    }


@fact
def callbacks():
    seen = []

    def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        name = op_type.decode() if isinstance(op_type, bytes) else op_type
        seen.append((name, context.device_name or "", outputs[0].device if outputs else ""))

    f = tf.function(lambda a: tf.math.tanh(a))
    unit = tf.function(lambda a: tf.math.tanh(a), jit_compile=True)
    f(x), unit(x)
    op_callbacks.add_op_callback(callback)
    with tf.device("/GPU:1"):
        tf.math.sinh(x)
    eager = list(seen)
    seen.clear()
    f(x), unit(x)
    functions = [name for name, *_ in seen]
    seen.clear()
    worker = threading.Thread(target=lambda: tf.math.sinh(x))
    worker.start()
    worker.join()
    in_thread = len(seen)
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        tf.debugging.check_numerics(nan, "bad")
    raised = len(seen) - in_thread
    op_callbacks.remove_op_callback(callback)
    return {
        "eager": eager,
        "functions": functions,
        "in another thread": in_thread,
        "for what raised": raised,
    }


tell()
