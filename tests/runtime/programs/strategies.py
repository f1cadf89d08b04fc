"""MirroredStrategy on two simulated GPUs."""

from telling import fact, facts, record, simulate, tell, verdict

from pytest_tfdevice import watch

simulate(count=2)

import tensorflow as tf  # noqa: E402

facts["gpus"] = [d.name for d in tf.config.list_logical_devices("GPU")]
strategy = tf.distribute.MirroredStrategy()
x = tf.random.uniform([4, 4])


@fact
def second_gpu():
    with watch() as w:
        with tf.device("/GPU:1"):  # second
            tf.math.sinh(x)
        tf.math.cosh(x)
    return record(w) | {
        "on gpu 1": verdict(w.record, "GPU:1"),
        "on gpu": verdict(w.record, "GPU"),
    }


@fact
def mirrored_run():
    with strategy.scope():
        w0 = tf.Variable(tf.ones([4, 4]))

    @tf.function
    def step(a):
        def replica(b):
            y = tf.linalg.matmul(b, w0)  # replica op
            w0.assign_add(tf.math.tanh(y), read_value=False)
            return tf.reduce_sum(y)

        each = strategy.run(replica, (a,))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None)

    with watch() as w:
        step(x)
    return record(w)


@fact
def eager_reduce_of_strategy():
    def replica(b):
        return tf.math.sinh(b)  # eager replica op

    with watch() as w:
        each = strategy.run(replica, (x,))
        strategy.reduce(tf.distribute.ReduceOp.SUM, each, axis=None)
    return record(w)


@fact
def mirrored_pin():
    @tf.function
    def step(a):
        def replica(b):
            with tf.device("/CPU:0"):  # pin in replica
                return tf.math.sinh(b)  # pinned in replica

        return strategy.run(replica, (a,))

    with watch() as w:
        step(x)
    return record(w)


tell()
