"""Eager ops, threads and windows within windows; starts before TensorFlow knows its devices."""

import contextlib

from telling import fact, facts, record, simulate, tell

from pytest_tfdevice import watch

simulate()

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context as tf_context  # noqa: E402

facts["started"] = tf_context.context()._context_handle is not None

with watch() as early:
    early_state = tf_context.context()._context_handle is not None
    tf.config.set_soft_device_placement(True)  # may only be called before, or at any time
    early_x = tf.sin(tf.ones([2, 3]))
    early_f = tf.function(lambda v: tf.cos(v))
    early_f(early_x)
facts["early initialised"] = early_state
facts["early"] = record(early)
facts["gpus"] = [d.name for d in tf.config.list_logical_devices("GPU")]

x = tf.random.uniform([4, 4])
halves = tf.cast(x, tf.float16)
ints = tf.ones([4, 4], tf.int32)
nan = tf.constant([float("nan")])


@fact
def scopes():
    with watch() as w:
        tf.sin(x)  # free
        with tf.device("/CPU:0"):  # pin
            tf.cos(x)  # pinned
        for _ in range(3):
            tf.tan(x)  # thrice
        tf.exp(halves)  # halves
        with tf.device("/GPU:0"):  # ask
            tf.linalg.matmul(x, x)  # asked
    return record(w)


@fact
def helper_scope():
    def pinned():
        return tf.device("/CPU:0")

    with watch() as w, pinned():  # helper
        tf.cos(x)  # under helper
    return record(w)


@fact
def stacked_scopes():
    with watch() as w:
        with tf.device("/CPU:0"):  # outer
            with tf.device("/GPU:0"):  # inner
                tf.sin(x)
            tf.cos(x)
        with tf.device("/CPU:0"), tf.device(None):  # cleared
            tf.exp(x)
    return record(w)


@fact
def integers():
    with watch() as w:
        tf.linalg.matmul(ints, ints)
        with tf.device("/GPU:0"):
            tf.add(ints, ints)
    return record(w)


@fact
def int_variable():
    with watch() as w, tf.device("/GPU:0"):  # gpu scope
        v = tf.Variable(42)  # variable
        v.assign_add(1)
    return record(w)


@fact
def absent_gpu():
    with watch() as w, tf.device("/GPU:7"):  # absent
        tf.sin(x)
    return record(w)


@fact
def raises():
    with watch() as w:
        tf.sin(x)
        for wrong in (
            lambda: tf.linalg.matmul(x, tf.ones([3, 3])),  # wrong shapes
            lambda: tf.debugging.check_numerics(nan, "bad"),  # not a number
        ):
            with contextlib.suppress(tf.errors.InvalidArgumentError):
                wrong()
    return record(w)


@fact
def raises_last():
    with watch() as w, contextlib.suppress(tf.errors.InvalidArgumentError), tf.device("/CPU:0"):
        tf.debugging.check_numerics(nan, "bad")  # raising op
    return record(w)


@fact
def raises_again():
    """Seen to raise before, in this window; TensorFlow makes no graph of it a second time."""
    with watch() as w:
        for _ in range(3):
            with contextlib.suppress(tf.errors.InvalidArgumentError):
                tf.debugging.check_numerics(nan, "bad")
    return record(w)


@fact
def after_raise():
    with watch() as w:
        tf.sin(x)
    return record(w)


@fact
def nothing():
    with watch() as w:
        list(range(10))
    return record(w)


@fact
def py_functions():
    def inside(v):
        return tf.math.sinh(v)  # in py_function

    @tf.function
    def f(v):
        a = tf.py_function(inside, [v], tf.float32)
        b = tf.numpy_function(lambda n: n + 1, [v], tf.float32)
        return tf.math.cosh(a + b)

    with watch() as w:
        f(x)
    return record(w)


@fact
def eager_py_function():
    def inside(v):
        return tf.math.sinh(v)  # in eager py_function

    with watch() as w:
        tf.py_function(inside, [x], tf.float32)
        tf.math.cosh(x)
    return record(w)


@fact
def pipelines():
    data = tf.data.Dataset.from_tensor_slices(x)
    with watch() as w:
        mapped = data.map(lambda v: tf.math.rsqrt(v + 1.0)).batch(2)
        for batch in mapped:
            tf.math.reciprocal(batch)
    return record(w)


@fact
def eager_reduce():
    data = tf.data.Dataset.from_tensor_slices(x)
    with watch() as w:
        data.reduce(tf.zeros([4]), lambda s, v: s + tf.math.lgamma(v))
    return record(w)


@fact
def reduce_takes_gpu_memory():
    """What a body allocates shows in the GPU's own statistics, whoever asks."""
    data = tf.data.Dataset.range(2)
    with tf.device("/CPU:0"):
        start = tf.zeros([1_000_000])

    def peak(run):
        tf.config.experimental.reset_memory_stats("GPU:0")
        before = tf.config.experimental.get_memory_info("GPU:0")["current"]
        run()
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] - before

    def step(total, _):
        return total + tf.random.stateless_uniform([1_000_000], [1, 2])

    looped = tf.function(lambda: data.reduce(start, step))
    return {
        "reduce": peak(lambda: data.reduce(start, step)),
        "reduce in function": peak(looped),
        "map": peak(lambda: list(data.map(lambda i: step(tf.zeros([1_000_000]), i)))),
    }


@fact
def eager_reduce_pinned():
    data = tf.data.Dataset.from_tensor_slices(x)

    def step(s, v):
        with tf.device("/CPU:0"):  # pin in reduce
            return s + tf.math.lgamma(v)

    with watch() as w:
        data.reduce(tf.zeros([4]), step)
    return record(w)


@fact
def generator_data():
    def numbers():
        for i in range(3):
            yield float(i)

    data = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.float32))
    with watch() as w:
        for v in data.map(lambda v: tf.math.rint(v)).batch(3):
            tf.math.round(v)
    return record(w)


@fact
def ragged_and_sparse():
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    sparse = tf.sparse.from_dense([[0.0, 1.0], [2.0, 0.0]])
    with watch() as w:
        tf.reduce_sum(ragged * 2.0, axis=1)
        tf.sparse.sparse_dense_matmul(sparse, tf.ones([2, 2]))
    return record(w)


@fact
def eager_gradient():
    v = tf.Variable(x)
    with watch() as w:
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.math.tanh(v))
        tape.gradient(y, v)
    return record(w)


@fact
def no_outputs():
    v = tf.Variable(x)
    with watch() as w:
        v.assign(x + 1.0)
        with tf.device("/CPU:0"):
            u = tf.Variable(x)
            u.assign(x + 2.0)
    return record(w)


tell()
