"""v1 Sessions: the test's own and deep ones, callables, partial runs, growth, functions inside."""

import contextlib
import threading

from telling import fact, facts, record, simulate, tell

from pytest_tfdevice import watch

simulate()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
data = np.ones([4, 4], np.float32)
before = dict(vars(v1.Session.__mro__[1].__mro__[0]))


def build(graph):
    with graph.as_default():
        a = v1.placeholder(tf.float32, [4, 4], name="a")
        free = tf.math.sinh(a, name="free")
        with tf.device("/CPU:0"):  # pin in session
            pinned = tf.math.cosh(free, name="pinned")  # session op
        out = tf.linalg.matmul(pinned, a, name="out")
        unused = tf.math.tan(a, name="unused")
    return a, out, unused


@fact
def own():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w, v1.Session(graph=graph) as session:
        for _ in range(3):
            session.run(out, {a: data})
    return record(w)


@fact
def opened_before():
    graph = tf.Graph()
    a, out, _ = build(graph)
    session = v1.Session(graph=graph)
    session.run(out, {a: data})
    with watch() as w:
        session.run(out, {a: data})
    with watch() as again:
        session.run(out, {a: data})
    return {"first": record(w), "second": record(again)}


@fact
def other_fetches():
    graph = tf.Graph()
    a, out, unused = build(graph)
    with watch() as w, v1.Session(graph=graph) as session:
        session.run(out, {a: data})
        session.run([unused], {a: data})
    return record(w)


@fact
def users_metadata():
    """What the user asks of a run is still answered, and no more than that."""
    graph = tf.Graph()
    a, out, _ = build(graph)
    with v1.Session(graph=graph) as session, watch() as w:
        asked = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
        value = session.run(out, {a: data}, options=options, run_metadata=asked)
    return {
        "value": float(value[0, 0]),
        "expected": float((np.cosh(np.sinh(data)) @ data)[0, 0]),
        "traced": len(asked.step_stats.dev_stats) > 0,
        "options": options.output_partition_graphs,
        "watched": record(w),
    }


class Detector:
    """A model that opens its Session deep in its own code."""

    def __init__(self):
        graph = tf.Graph()
        self.a, self.out, _ = build(graph)
        self.session = v1.Session(graph=graph)

    def detect(self):
        return self.session.run(self.out, feed_dict={self.a: data})


@fact
def deep():
    with watch() as w:
        Detector().detect()
    return record(w)


@fact
def default_session():
    """``Tensor.eval`` and ``Operation.run``."""
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w, v1.Session(graph=graph).as_default():
        out.eval({a: data})
        out.op.run({a: data})
    return record(w)


@fact
def interactive():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w:
        session = v1.InteractiveSession(graph=graph)
        out.eval({a: data})
        session.close()
    return record(w)


@fact
def callable_made_inside():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w, v1.Session(graph=graph) as session:
        call = session.make_callable(out, [a])
        for _ in range(2):
            call(data)
    return record(w)


@fact
def callable_made_before():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with v1.Session(graph=graph) as session:
        call = session.make_callable(out, [a])
        call(data)
        with watch() as w:
            value = call(data)
        after = call(data)
    return {"same": bool((value == after).all()), "watched": record(w)}


@fact
def callable_in_two_windows():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with v1.Session(graph=graph) as session:
        with watch() as first:
            call = session.make_callable(out, [a])
            call(data)
        with watch() as second:
            call(data)
        alone = call(data)
    return {
        "first": record(first),
        "second": record(second),
        "alone": float(alone[0, 0]),
    }


@fact
def partial_run():
    graph = tf.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.float32, [], name="a")
        b = v1.placeholder(tf.float32, [], name="b")
        first = tf.math.sinh(a)
        second = first * b
    with watch() as w, v1.Session(graph=graph) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        session.partial_run(handle, first, {a: 1.0})
        session.partial_run(handle, second, {b: 2.0})
    return record(w)


@fact
def grown():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w, v1.Session(graph=graph) as session:
        session.run(out, {a: data})
        with graph.as_default():
            more = tf.math.tanh(out, name="more")
        session.run(more, {a: data})
    return record(w)


@fact
def monitored():
    graph = tf.Graph()
    with graph.as_default():
        step = v1.train.get_or_create_global_step()
        weights = v1.get_variable("weights", [4, 4], use_resource=True)
        loss = tf.reduce_sum(tf.math.tanh(weights))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        with (
            watch() as w,
            v1.train.MonitoredTrainingSession(
                hooks=[v1.train.StopAtStepHook(last_step=3)]
            ) as session,
        ):
            while not session.should_stop():
                session.run(train)
    return record(w)


@fact
def reference_variables():
    graph = tf.Graph()
    with graph.as_default(), tf.device("/GPU:0"):
        weights = v1.get_variable("weights", [4, 4], use_resource=False)
        count = v1.get_variable(
            "count", initializer=tf.constant([[1]], tf.int32), use_resource=False
        )  # int ref
        use = tf.math.tanh(weights, name="use")
        start = v1.global_variables_initializer()
    with (
        watch() as w,
        v1.Session(graph=graph, config=v1.ConfigProto(allow_soft_placement=True)) as session,
    ):
        session.run(start)
        session.run([use, count])
    return record(w)


@fact
def functions_inside():
    @tf.function
    def inner(a):
        with tf.device("/CPU:0"):  # pin in called
            return tf.math.asinh(a)  # called op

    graph = tf.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.float32, [4, 4], name="a")
        out = tf.math.tanh(inner(a), name="out")
    with watch() as w, v1.Session(graph=graph) as session:
        session.run(out, {a: data})
    return record(w)


@fact
def control_flow():
    graph = tf.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.float32, [4, 4], name="a")

        def body(i, value):
            with tf.device("/CPU:0"):  # pin in v1 loop
                return i + 1, tf.math.sinh(value, name="wave")  # v1 loop op

        _, out = tf.while_loop(lambda i, _: i < 3, body, [0, a])
    with watch() as w, v1.Session(graph=graph) as session:
        session.run(out, {a: data})
    return record(w)


@fact
def frozen():
    """A GraphDef that was written elsewhere: there are no lines of it here."""
    source = tf.Graph()
    build(source)
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(source.as_graph_def(), name="net")
    with watch() as w, v1.Session(graph=graph) as session:
        session.run("net/out:0", {"net/a:0": data})  # run of frozen
    return record(w)


@fact
def failing():
    graph = tf.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.float32, [4, 4], name="a")
        with tf.device("/CPU:0"):  # pin in failing
            wave = tf.math.sinh(a, name="wave")  # failing op
        checked = tf.debugging.check_numerics(wave, "bad", name="checked")
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_sum(a) < 0, [a])]):
            out = tf.identity(checked)
    with (
        watch() as w,
        v1.Session(graph=graph) as session,
        contextlib.suppress(tf.errors.InvalidArgumentError),
    ):
        session.run(out, {a: data})
    return record(w)


@fact
def failing_after_a_function():
    calls = []

    def count():
        calls.append(1)
        return 1.0

    graph = tf.Graph()
    with graph.as_default():
        a = v1.placeholder(tf.float32, [4, 4], name="a")
        counted = tf.function(lambda v: v + tf.py_function(count, [], tf.float32))(a)
        bad = tf.debugging.check_numerics(counted * float("inf") * 0.0, "bad", name="checked")
    with (
        watch() as w,
        v1.Session(graph=graph) as session,
        contextlib.suppress(tf.errors.InvalidArgumentError),
    ):
        session.run(bad, {a: data})
    return record(w) | {"calls": len(calls)}


@fact
def server():
    server = v1.train.Server.create_local_server()
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w, v1.Session(server.target, graph=graph) as session:
        session.run(out, {a: data})
    return record(w)


@fact
def in_a_thread():
    graph = tf.Graph()
    a, out, _ = build(graph)
    with watch() as w, v1.Session(graph=graph) as session:
        worker = threading.Thread(target=lambda: session.run(out, {a: data}))
        worker.start()
        worker.join()
    return record(w)


@fact
def queue_runners():
    graph = tf.Graph()
    with graph.as_default():
        queue = v1.FIFOQueue(8, [tf.float32], shapes=[[4]])
        fill = queue.enqueue([tf.math.sinh(tf.ones([4]), name="filled")])
        out = tf.math.tanh(queue.dequeue(), name="out")
        v1.train.add_queue_runner(v1.train.QueueRunner(queue, [fill]))
        with watch() as w, v1.Session(graph=graph) as session:
            coordinator = v1.train.Coordinator()
            threads = v1.train.start_queue_runners(session, coordinator)
            session.run(out)
            coordinator.request_stop()
            session.run(queue.close(cancel_pending_enqueues=True))
            coordinator.join(threads, ignore_live_threads=True)
    return record(w)


facts["class restored"] = before == dict(vars(v1.Session.__mro__[1].__mro__[0]))

tell()
