"""tf.functions: cold and warm, nested, with control flow, gradients, dataset loops, compiled."""

import contextlib
import gc
import threading

from telling import fact, record, simulate, tell

from pytest_tfdevice import watch

simulate()

import tensorflow as tf  # noqa: E402

x = tf.random.uniform([4, 4])
v = tf.Variable(x)


def not_inlined(function):
    """A tf.function that stays a call in the graph of its callers."""
    from tensorflow.python.eager.polymorphic_function import attributes

    attributes.POLYMORPHIC_FUNCTION_ALLOWLIST |= {"_noinline"}
    return tf.function(function, experimental_attributes={"_noinline": True})


@tf.function
def plain(a):
    b = tf.math.sinh(a)  # free
    with tf.device("/CPU:0"):  # pin
        b = tf.math.cosh(b)  # pinned
    return tf.linalg.matmul(b, a)  # product


@fact
def cold():
    with watch() as w:
        plain(x)
    return record(w)


@fact
def warm():
    with watch() as w:
        plain(x)
        plain(x)
    return record(w)


@fact
def warm_but_unused():
    """What ran before the window and not in it isn't in its record."""
    with watch() as w:
        tf.math.sinh(x)
    return record(w)


@fact
def named_op():
    @tf.function
    def f(a):
        with tf.name_scope("block"):
            return tf.math.sinh(a, name="wave")

    with watch() as w:
        f(x)
    return record(w)


@fact
def nested():
    @tf.function
    def inner(a):
        with tf.device("/CPU:0"):  # inner pin
            return tf.math.asinh(a)  # inner op

    @tf.function
    def middle(a):
        return inner(a) + 1.0

    @tf.function
    def outer(a):
        return tf.math.tanh(middle(a))

    with watch() as w:
        outer(x)
    return record(w)


@fact
def called_under_scope():
    @tf.function
    def f(a):
        return tf.math.asinh(a)  # in scope

    with watch() as w, tf.device("/CPU:0"):  # scope of call
        f(x)
    return record(w)


@fact
def nested_call_under_scope():
    @tf.function
    def inner(a):
        return tf.math.asinh(a)

    @tf.function
    def outer(a):
        with tf.device("/CPU:0"):  # scope of inner call
            return inner(a)

    with watch() as w:
        outer(x)
    return record(w)


@fact
def same_name():
    """Two functions of one name, one with its op pinned."""

    def make(device):
        @tf.function
        def step(a):
            with tf.device(device):
                return tf.math.acosh(a + 1.0)

        return step

    on_gpu, on_cpu = make("/GPU:0"), make("/CPU:0")
    with watch() as w:
        on_gpu(x)
        on_cpu(x)
    return record(w)


@fact
def several_between_calls():
    """One call that instantiates many functions that aren't inlined, then another call."""

    @not_inlined
    def inner(a):
        with tf.device("/CPU:0"):  # pin of inner
            return tf.math.erf(tf.math.tanh(a))  # of inner

    @tf.function
    def first(a):
        return inner(a) * 2.0

    @tf.function
    def second(a):
        with tf.device("/CPU:0"):  # pin of second
            return tf.math.erfc(a)  # of second

    with watch() as w:
        first(x)
        second(x)
    return record(w)


@fact
def composed():
    """Ops in a row that an optimiser makes one of, which it names after the last."""

    @tf.function
    def f(a):
        with tf.device("/CPU:0"):  # pin of row
            b = tf.math.tanh(tf.math.sinh(tf.math.cosh(a)))  # row
        return tf.linalg.matmul(b, b)

    with watch() as w:
        f(x)
    return record(w)


@fact
def gradient():
    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            with tf.device("/CPU:0"):  # forward pin
                y = tf.math.tanh(v)  # forward op
            loss = tf.reduce_sum(tf.linalg.matmul(y, a))
        return tape.gradient(loss, v)

    with watch() as w:
        f(x)
    return record(w)


@fact
def eager_tape():
    """A tape around a function: its forward and backward functions are made by TensorFlow."""

    @tf.function
    def f(a):
        with tf.device("/CPU:0"):  # taped pin
            b = tf.math.tanh(a)  # taped op
        return tf.linalg.matmul(b, b)

    with watch() as w:
        with tf.GradientTape() as tape:
            y = f(v)
        tape.gradient(y, v)
    return record(w)


@fact
def integer_ranks():
    @tf.function
    def f(a):
        with tf.device("/CPU:0"):  # pin of integers
            mask = tf.cast(a > 0.5, tf.int32)
            table = tf.bitwise.invert(mask)  # matrix of integers
            count = tf.bitwise.invert(tf.reduce_sum(table))  # single integer
        return tf.cast(table, tf.float32) + tf.cast(count, tf.float32)

    with watch() as w:
        f(x)
    return record(w)


@fact
def compiled():
    @tf.function(jit_compile=True)
    def unit(a):
        with tf.device("/CPU:0"):  # pin in unit
            a = tf.math.sinh(a)  # in unit
        return tf.linalg.matmul(a, a)

    with watch() as w:
        unit(x)
    with watch() as again:
        unit(x)
    with watch() as on_cpu, tf.device("/CPU:0"):  # unit on cpu
        unit(x)
    return {"cold": record(w), "warm": record(again), "on cpu": record(on_cpu)}


@fact
def compiled_nested():
    @tf.function(jit_compile=True)
    def unit(a):
        return tf.math.sinh(a)

    @tf.function
    def outer(a):
        return tf.math.tanh(unit(a))

    with watch() as w:
        outer(x)
    return record(w)


@fact
def compiled_in_thread():
    @tf.function(jit_compile=True)
    def unit(a):
        return tf.math.sinh(a)

    with watch() as w:
        worker = threading.Thread(target=lambda: unit(x))
        worker.start()
        worker.join()
    return record(w)


@fact
def error_in_function():
    @tf.function
    def f(a):
        b = tf.math.sinh(a)
        tf.debugging.Assert(tf.reduce_sum(b) < 0, [b])
        return b

    with watch() as w, contextlib.suppress(tf.errors.InvalidArgumentError):
        f(x)
    with watch() as after:
        tf.math.tanh(x)
    return {"own": record(w), "after": record(after)}


@fact
def saved_model():
    class Net(tf.Module):
        def __init__(self):
            self.w = tf.Variable(x)

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
        def __call__(self, a):
            with tf.device("/CPU:0"):  # pin in saved
                a = tf.math.sinh(a)  # saved op
            return tf.linalg.matmul(a, self.w)

    net = Net()
    tf.saved_model.save(net, "net", signatures=net.__call__)
    loaded = tf.saved_model.load("net")
    with watch() as w:
        loaded(x)  # call of loaded
    with watch() as by_signature:
        loaded.signatures["serving_default"](tf.constant(x.numpy()))  # signature of loaded
    return {"call": record(w), "signature": record(by_signature)}


@fact
def graph_function():
    """A wrapped v1 function, as tf.compat.v1.wrap_function makes one of a frozen graph."""

    def build(a):
        with tf.device("/CPU:0"):  # pin in wrapped
            b = tf.math.sinh(a)  # wrapped op
        return tf.linalg.matmul(b, b)

    wrapped = tf.compat.v1.wrap_function(build, [tf.TensorSpec([4, 4], tf.float32)])
    with watch() as w:
        wrapped(x)
    return record(w)


@fact
def custom_gradient():
    @tf.custom_gradient
    def op(a):
        def grad(upstream):
            with tf.device("/CPU:0"):  # pin in grad
                return upstream * tf.math.cosh(a)  # in grad

        return tf.math.sinh(a), grad

    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            y = op(a)
        return tape.gradient(y, a)

    with watch() as w:
        f(x)
    return record(w)


@fact
def dead_function():
    """A function that is gone before the window closes keeps its lines."""
    with watch() as w:

        @tf.function
        def f(a):
            with tf.device("/CPU:0"):  # pin in dead
                return tf.math.sinh(a)  # dead op

        f(x)
        del f
        gc.collect()
    return record(w)


@fact
def relaxed_shapes():
    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)])
    def f(a):
        return tf.math.sinh(a)

    with watch() as w:
        f(x)
        f(x[0])
    return record(w)


@fact
def pin_to_host():
    """What the optimiser moves to the CPU after it was placed."""
    tf.config.optimizer.set_experimental_options({"pin_to_host_optimization": True})

    @tf.function
    def f(a):
        n = tf.shape(a)[0]
        return tf.reshape(a, [n * 2, -1]) + tf.cast(tf.range(n * 2)[:, None], tf.float32)

    with watch() as w:
        f(x)
    tf.config.optimizer.set_experimental_options({"pin_to_host_optimization": False})
    return record(w)


tell()
