"""Windows: nested, in threads, beside others who trace, and with asynchronous execution."""

import contextlib
import glob
import pathlib
import threading
import warnings

from telling import fact, record, simulate, tell

from pytest_tfdevice import watch

simulate()

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context as tf_context  # noqa: E402

x = tf.random.uniform([4, 4])
nan = tf.constant([float("nan")])


@fact
def nested_windows():
    with watch() as outer:
        tf.sin(x)
        with watch() as inner:
            tf.cos(x)
        tf.tan(x)
    return {"outer": record(outer), "inner": record(inner)}


@fact
def overlapping_windows():
    """Closed in the order in which they were opened."""
    from pytest_tfdevice.capture.window import Window

    first, second = Window(), Window()
    first.open()
    tf.sin(x)
    second.open()
    tf.cos(x)
    one = first.close()
    tf.tan(x)
    two = second.close()
    return [[p.type for p in one.placements], [p.type for p in two.placements]]


@fact
def window_left_by_error():
    try:
        with watch() as w:
            tf.sin(x)
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    return record(w)


@fact
def thread_without_window():
    f = tf.function(lambda v: tf.math.asinh(v))

    def work():
        tf.math.acosh(x + 1.0)
        f(x)

    with watch() as w:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    return record(w)


@fact
def two_windows_in_two_threads():
    meet = threading.Barrier(2)
    found = {}

    def work(name, op):
        function = tf.function(lambda v: tf.math.square(op(v)))
        meet.wait()
        with watch() as w:
            meet.wait()
            op(x)
            function(x)
            meet.wait()
        found[name] = record(w)

    threads = [
        threading.Thread(target=work, args=("a", tf.math.erf)),
        threading.Thread(target=work, args=("b", tf.math.erfc)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@fact
def thread_with_window_while_main_has_one():
    found = {}

    def work():
        with watch() as w:
            tf.math.log1p(x)
        found["thread"] = record(w)

    with watch() as w:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
        tf.math.expm1(x)
    found["main"] = record(w)
    return found


@fact
def traced():
    """tf.summary.trace_on inside a window: both get the graphs."""
    f = tf.function(lambda v: tf.math.digamma(v))
    with watch() as w, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tf.summary.trace_on(graph=True, profiler=False)
        f(x)
        writer = tf.summary.create_file_writer("traces")
        with writer.as_default():
            tf.summary.trace_export("g", step=0)
        tf.math.sigmoid(x)
        g = tf.function(lambda v: tf.math.softplus(v))
        g(x)
    written = b"".join(pathlib.Path(name).read_bytes() for name in glob.glob("traces/*"))
    return record(w) | {"Digamma in the trace": b"Digamma" in written}


@fact
def traced_around():
    """tf.summary.trace_on around a window: the window neither takes nor ends it."""
    f = tf.function(lambda v: tf.math.lgamma(v))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tf.summary.trace_on(graph=True, profiler=False)
        with watch() as w:
            f(x)
        g = tf.function(lambda v: tf.math.atanh(v * 0.5))
        g(x)
        metadata = tf_context.context().export_run_metadata()
        tf.summary.trace_off()
    types = {n.op for fg in metadata.function_graphs for n in fg.pre_optimization_graph.node}
    return record(w) | {"after": sorted(types & {"Lgamma", "Atanh"})}


@fact
def cut_off():
    """Somebody switches the collection off with the C-level call: that must be told."""
    with watch() as w:
        type(tf_context.context()).disable_graph_collection(tf_context.context())
        tf.sin(x)
    with watch() as again:
        tf.function(lambda v: tf.sin(v))(x)
    return {"cut": record(w), "again": record(again)}


@fact
def callbacks_cleared():
    from tensorflow.python.framework import op_callbacks

    with watch() as w:
        tf.sin(x)
        op_callbacks.clear_op_callbacks()
        tf.cos(x)
    return record(w)


@fact
def own_callback_survives():
    from tensorflow.python.framework import op_callbacks

    seen = []

    def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        seen.append(op_type)

    op_callbacks.add_op_callback(callback)
    with watch() as w:
        tf.sin(x)
    tf.cos(x)
    op_callbacks.remove_op_callback(callback)
    return {"mine": [str(s) for s in seen], "watched": record(w)}


@fact
def left_behind():
    """After every window: callbacks off, collection off, methods and settings as they were."""
    from pytest_tfdevice.capture import private

    context = tf_context.context()
    names = (
        "ensure_initialized",
        "enable_graph_collection",
        "disable_graph_collection",
        "export_run_metadata",
    )
    metadata = context.export_run_metadata()
    tf.sin(tf.ones([7, 7]))
    return {
        "callbacks": len(context.op_callbacks),
        "executes with callbacks": private.executes_with_callbacks(),
        "methods": [n for n in names if n in context.__dict__],
        "collected": len(context.export_run_metadata().function_graphs),
        "soft placement": tf.config.get_soft_device_placement(),
        "first": metadata is not None,
    }


tf.config.experimental.set_synchronous_execution(False)


@fact
def asynchronous():
    f = tf.function(lambda v: tf.math.erfinv(v))
    with watch() as w:
        with tf.device("/CPU:0"):  # async pin
            tf.math.sinh(x)
        tf.math.cosh(x)
        f(x)
    return record(w)


@fact
def asynchronous_error():
    with watch() as w, contextlib.suppress(tf.errors.InvalidArgumentError):
        with tf.device("/CPU:0"):
            y = tf.debugging.check_numerics(nan, "bad")
        y.numpy()
    with watch():
        pass
    still = False
    try:
        tf.sin(x).numpy()
    except tf.errors.InvalidArgumentError:
        still = True
    tf_context.context().clear_executor_errors()
    with watch() as after:
        tf.sin(x)
    with watch() as unread, tf.device("/CPU:0"):
        tf.sin(x)
        tf.debugging.check_numerics(nan, "bad")
    tf_context.context().clear_executor_errors()
    return {
        "own": record(w),
        "after": record(after),
        "unread": record(unread),
        "error stays": still,
    }


tell()
