"""Control flow in tf.functions: while, cond, case, and loops over datasets."""

from telling import fact, record, simulate, tell

from pytest_tfdevice import watch

simulate()

import tensorflow as tf  # noqa: E402

x = tf.random.uniform([4, 4])
v = tf.Variable(x)


@fact
def while_loop():
    @tf.function
    def f(a):
        i = tf.constant(0)
        while i < 3:
            with tf.device("/CPU:0"):  # pin in body
                a = tf.math.sinh(a)  # in body
            a = tf.math.tanh(a)
            i += 1
        return a

    with watch() as w:
        f(x)
    return record(w)


@fact
def while_gradient():
    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            b = a
            for _ in tf.range(3):
                with tf.device("/CPU:0"):  # pin in loop
                    b = tf.math.sinh(b)  # in loop
        return tape.gradient(b, a)

    with watch() as w:
        f(x)
    return record(w)


@fact
def cond():
    @tf.function
    def f(a):
        if tf.reduce_sum(a) > 0:
            with tf.device("/CPU:0"):  # pin in then
                a = tf.math.sinh(a)  # in then
        else:
            a = tf.math.cosh(a)
        return a

    with watch() as w:
        f(x)
    return record(w)


@fact
def cond_gradient():
    @tf.function
    def f(a):
        with tf.GradientTape() as tape:
            tape.watch(a)
            if tf.reduce_sum(a) > 0:
                with tf.device("/CPU:0"):  # pin in branch
                    b = tf.math.sinh(a)  # in branch
            else:
                b = tf.math.cosh(a)
        return tape.gradient(b, a)

    with watch() as w:
        f(x)
    return record(w)


@fact
def switch_case():
    def pinned():
        with tf.device("/CPU:0"):  # pin in case
            return tf.math.cosh(x)  # in case

    @tf.function
    def f(i):
        return tf.switch_case(i, [lambda: tf.math.sinh(x), pinned, lambda: tf.math.tanh(x)])

    with watch() as w:
        f(tf.constant(1))
    return record(w)


@fact
def case():
    @tf.function
    def f(a):
        return tf.case(
            [
                (tf.reduce_sum(a) > 1e6, lambda: tf.math.sinh(a)),
                (tf.reduce_sum(a) > 1e5, lambda: tf.math.tanh(a)),
            ],
            default=lambda: tf.math.cosh(a),
        )

    with watch() as w:
        f(x)
    return record(w)


@fact
def while_in_cond():
    @tf.function
    def f(a):
        if tf.reduce_sum(a) > 0:
            for _ in tf.range(2):
                with tf.device("/CPU:0"):  # deep pin
                    a = tf.math.sinh(a)  # deep op
        return a

    with watch() as w:
        f(x)
    return record(w)


@fact
def dataset_loop():
    data = tf.data.Dataset.from_tensor_slices(x)

    @tf.function
    def f():
        total = tf.zeros([4])
        for row in data:
            with tf.device("/CPU:0"):  # pin in data loop
                row = tf.math.sinh(row)  # in data loop
            total += tf.math.tanh(row) * v[0]
        return total

    with watch() as w:
        f()
    return record(w)


@fact
def dataset_reduce():
    data = tf.data.Dataset.from_tensor_slices(x)

    @tf.function
    def f():
        return data.reduce(tf.zeros([4]), lambda s, row: s + tf.math.sinh(row))

    with watch() as w:
        f()
    return record(w)


@fact
def iterator_loop():
    data = iter(tf.data.Dataset.from_tensor_slices(x).repeat())

    @tf.function
    def f():
        total = tf.zeros([4])
        for _ in tf.range(2):
            total += tf.math.sinh(next(data))
        return total

    with watch() as w:
        f()
    return record(w)


@fact
def map_fn():
    @tf.function
    def f(a):
        def one(row):
            with tf.device("/CPU:0"):  # pin in map_fn
                return tf.math.sinh(row)  # in map_fn

        return tf.map_fn(one, a)

    with watch() as w:
        f(x)
    return record(w)


tell()
