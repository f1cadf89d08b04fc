"""Public situations, as short programs: what people asked about in public threads.

Each function is one situation; its name is the situation's number, its docstring the thread.  Those
of TensorFlow 1 build a graph of their own and run it in a Session with soft placement.
"""

from __future__ import annotations

import contextlib
import tempfile

import tensorflow as tf

tf1 = tf.compat.v1


def session(build, *, hard=False):
    """Builds a graph, initialises its variables and runs what ``build`` returns."""
    with tf.Graph().as_default():
        fetches = build()
        config = tf1.ConfigProto(allow_soft_placement=not hard)
        with tf1.Session(config=config) as run:
            run.run(tf1.global_variables_initializer())
            if callable(fetches):
                fetches(run)
            else:
                run.run(fetches)


def s01():
    """tensorflow#8916, #9506: an int32 variable under tf.device GPU."""

    def build():
        with tf.device("/device:GPU:0"):
            counter = tf1.get_variable(
                *("counter", [2], tf.int32, tf1.zeros_initializer()), use_resource=False
            )
            return tf1.assign_add(counter, [1, 1])

    session(build)


def s03():
    """tensorflow#11709, #2314, #5408: embedding lookup and its sparse update."""

    def build():
        with tf.device("/device:GPU:0"):
            table = tf1.get_variable("table", [100, 8])
            ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([3, 5], tf.int64), [2, 1])
            emb = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="sum")
            return tf1.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(emb))

    session(build)


def s05():
    """tensorflow#60883, #13610: a tf.data pipeline on the CPU is no failure."""
    data = tf.data.Dataset.range(8).map(lambda t: tf.cast(t, tf.float32) / 8).batch(4).prefetch(1)
    for x in data:
        tf.matmul(tf.reshape(x, [4, 1]), tf.ones([1, 4]))


def one_shot():
    with tf.device("/device:GPU:0"):
        data = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).repeat()
        return tf1.data.make_one_shot_iterator(data).get_next() * 2


def s06():
    """tensorflow#53026: a one-shot iterator under tf.device GPU."""
    session(one_shot)


def s06_hard():
    """The same with soft placement off raises."""
    session(one_shot, hard=True)


def s07():
    """tensorflow#29761, #3596, serving#477: saving under graph.device."""

    def build():
        with tf.device("/device:GPU:0"):
            tf1.get_variable("w", [2, 2])
            saver = tf1.train.Saver()
        return lambda run: saver.save(run, tempfile.mkdtemp() + "/sit")

    session(build)


def s09():
    """tensorflow#58153: lookup tables have CPU kernels only."""
    keys, values = ["a", "b"], tf.constant([1, 2], tf.int64)
    init = tf.lookup.KeyValueTensorInitializer(keys, values)
    with tf.device("/GPU:0"):
        table = tf.lookup.StaticHashTable(init, default_value=-1)
        tf.one_hot(table.lookup(tf.constant(["a", "z"])), 4)


def s10():
    """tensorflow#31811: numpy_function and py_function."""

    @tf.function
    def step(x):
        a = tf.numpy_function(lambda v: v + 1, [x], tf.float32, name="np_fn")
        b = tf.py_function(lambda v: v * 2, [x], tf.float32, name="py_fn")
        return a + b

    step(tf.ones([3]))


def s11():
    """tensorflow/models#3270: NMS pinned to the CPU, convolutions on the GPU."""
    boxes, scores = tf.random.uniform([20, 4]), tf.random.uniform([20])
    with tf.device("/CPU:0"):
        keep = tf.image.non_max_suppression(boxes, scores, 5, name="nms")
    tf.nn.conv2d(tf.ones([1, 8, 8, 3]), tf.ones([3, 3, 3, 4]), 1, "SAME")
    tf.gather(boxes, keep)


def s14():
    """tensorflow#20405, #46623: channels first."""
    x, k = tf.ones([1, 3, 8, 8]), tf.ones([3, 3, 3, 4])
    with contextlib.suppress(tf.errors.OpError):
        tf.nn.conv2d(x, k, 1, "SAME", data_format="NCHW")


def s17():
    """tensorflow#83877, #39246: bicubic and antialiased resizing have no GPU kernel."""
    img = tf.ones([1, 16, 16, 3])
    tf.image.resize(img, [8, 8])
    tf.image.resize(img, [8, 8], method="bicubic")
    tf.image.resize(img, [8, 8], antialias=True)


def s18():
    """tensorflow#838: preprocessing that is on the CPU on purpose."""
    with tf.device("/CPU:0"):
        img = tf.cast(tf.random.uniform([8, 8, 3], maxval=255), tf.float32) / 255.0
    tf.matmul(tf.reshape(img, [1, -1]), tf.ones([192, 10]))


def s19():
    """tensorflow#514, #544: an embedding on the CPU, and NCE."""

    def build():
        with tf.device("/cpu:0"):
            emb = tf1.get_variable("emb", [50, 8])
            look = tf.nn.embedding_lookup(emb, [1, 2])
        w, b = tf1.get_variable("nce_w", [50, 8]), tf1.get_variable("nce_b", [50])
        labels = tf.constant([[3], [4]], tf.int64)
        loss = tf.reduce_mean(tf.nn.nce_loss(w, b, labels, look, 4, 50))
        return tf1.train.GradientDescentOptimizer(0.1).minimize(loss)

    session(build)


def s21():
    """tensorflow#41881, #21897: each replica's work is on its own GPU."""
    strategy = tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])

    @tf.function
    def step():
        return strategy.run(lambda: v * 2.0)

    step()


def s22():
    """tensorflow#8982, #13075: a Session on a server."""
    server = tf1.train.Server.create_local_server()
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [1])  # a constant would be folded away
        c = tf.add(x, 1.0, name="c")
        with tf1.Session(server.target) as run:
            run.run(c, {x: [1.0]})


def s23():
    """tensorflow#18146: a graph that grows at every step."""
    with tf.Graph().as_default():
        x = tf1.placeholder(tf.float32, [1], name="x")
        with tf1.Session() as run:
            for i in range(3):
                run.run(tf.add(x, float(i)), {x: [0.0]})


def s25():
    """tensorflow#45465, #53424, #42708: logging that is switched on too late prints nothing."""
    tf.square(tf.constant(1.0))


def s28():
    """tensorflow#11499: an int32 matmul is silently on the CPU."""

    def build():
        with tf.device("/device:GPU:0"):
            a = tf1.placeholder(tf.int32, [64, 64])  # ones would be folded away
            prod = tf.matmul(a, a, name="prod")
        return lambda run: run.run(prod, {a: [[1] * 64] * 64})

    session(build)


def s29():
    """tensorflow#24659: map_fn over int64."""
    codes = tf.constant([1.0, 2.0, 3.0])

    @tf.function
    def find(t):
        return tf.map_fn(lambda v: tf.argmin(tf.abs(codes - v)), t, fn_output_signature=tf.int64)

    find(tf.constant([2.0, 3.0]))


def s31():
    """tensorflow#14609: printing in a GPU scope."""
    with tf.device("/GPU:0"):
        tf.print("x =", tf.ones([2]))


def s32():
    """tensorflow#34047: an optimiser's update follows the variable."""
    with tf.device("/CPU:0"):
        v = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.matmul(tf.ones([1, 4]), v))
    grad = tape.gradient(loss, v)
    tf.raw_ops.ResourceApplyGradientDescent(var=v.handle, alpha=0.1, delta=grad)


SITUATIONS = {
    name: value for name, value in globals().items() if name.startswith("s") and name[1:3].isdigit()
}
