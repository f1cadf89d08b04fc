"""Control flow, metrics, arrays of every kind, and TensorFlow 1: all of it clean."""

from __future__ import annotations

import tempfile

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Step, clean

v1 = tf.compat.v1


@clean("control flow", ops=("Exp", "Neg"))
def cond_case_and_switch() -> Step:
    """tf.cond, tf.case and switch_case on tensors, both branches present."""

    @tf.function
    def step(x: tf.Tensor, which: tf.Tensor) -> tf.Tensor:
        y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.exp(x), lambda: -x)
        z = tf.switch_case(which, [lambda: tf.exp(y), lambda: -y])
        return tf.case([(tf.reduce_max(z) > 9.0, lambda: z * 2.0)], default=lambda: -z)

    return lambda: step(tf.ones([2, 2]), tf.constant(1))


@clean("control flow", ops=("MatMul",))
def while_with_tensor_array() -> Step:
    """A loop that writes a TensorArray, breaks and continues."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        for i in tf.range(5):
            if i == 1:
                continue
            if tf.reduce_sum(x) > 1e6:
                break
            x = x @ x
            rows = rows.write(rows.size(), x)
        return rows.stack()

    return lambda: step(tf.eye(2))


@clean("control flow", ops=("Mul",))
def map_scan_foldl() -> Step:
    """map_fn, scan and foldl."""

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (
            tf.map_fn(lambda row: row * 2.0, x),
            tf.scan(lambda a, row: a + row, x),
            tf.foldl(lambda a, row: a * row, x),
        )

    return lambda: step(tf.ones([3, 2]))


@clean("control flow", ops=("ArgMin",))
def map_fn_to_int64() -> Step:
    """map_fn with an integer result, from tensorflow issue 24659."""
    codes = tf.constant([1.0, 2.0, 3.0])

    @tf.function
    def find(values: tf.Tensor) -> tf.Tensor:
        return tf.map_fn(
            lambda v: tf.argmin(tf.abs(codes - v)), values, fn_output_signature=tf.int64
        )

    return lambda: find(tf.constant([2.0, 3.0]))


@clean("control flow")
def nested_functions_with_state() -> Step:
    """Functions that call functions, one of them from Python's own recursion."""
    total = tf.Variable(0.0)

    @tf.function
    def add(x: tf.Tensor) -> tf.Tensor:
        total.assign_add(tf.reduce_sum(x))
        return total * x

    @tf.function
    def outer(x: tf.Tensor) -> tf.Tensor:
        return add(add(x)) + add(x)

    return lambda: outer(tf.ones([2]))


@clean("control flow", ops=("MatMul",))
def beam_search() -> Step:
    """Decoding step by step: top_k, gather, integer ids of rank 2 that grow, concatenation."""

    @tf.function
    def decode(logits: tf.Tensor) -> tf.Tensor:
        ids = tf.zeros([2, 1], tf.int64)
        state = logits
        for _ in tf.range(3):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(ids, tf.TensorShape([2, None]))]
            )
            state = tf.nn.softmax(state @ state)
            best = tf.argmax(state, axis=-1)
            ids = tf.concat([ids, best[:, tf.newaxis]], axis=1)
        return ids

    return lambda: decode(tf.eye(2))


@clean("metrics")
def classification_metrics() -> Step:
    """Accuracies, precision, recall, AUC, top k, confusion matrix's IoU."""
    kinds = tf.keras.metrics
    metrics = [
        kinds.SparseCategoricalAccuracy(),
        kinds.SparseTopKCategoricalAccuracy(2),
        kinds.CategoricalCrossentropy(),
    ]
    binary = [kinds.AUC(num_thresholds=9), kinds.Precision(), kinds.Recall()]

    @tf.function
    def update(labels: tf.Tensor, scores: tf.Tensor) -> list[tf.Tensor]:
        for metric in metrics[:2]:
            metric.update_state(labels, scores)
        metrics[2].update_state(tf.one_hot(labels, 3), scores)
        for metric in binary:
            metric.update_state(tf.cast(labels > 0, tf.float32), scores[:, 0])
        return [metric.result() for metric in (*metrics, *binary)]

    return lambda: update(tf.constant([0, 2]), tf.nn.softmax(tf.ones([2, 3])))


@clean("metrics")
def regression_metrics() -> Step:
    """Means and errors, eagerly, and their reset."""
    kinds = tf.keras.metrics
    metrics = [kinds.MeanSquaredError(), kinds.RootMeanSquaredError(), kinds.CosineSimilarity()]

    def step() -> None:
        for metric in metrics:
            metric.update_state(tf.ones([2, 3]), tf.zeros([2, 3]))
            metric.result()
            (getattr(metric, "reset_state", None) or metric.reset_states)()

    return step


@clean("metrics")
def mean_iou() -> Step:
    """A segmentation metric: a confusion matrix of integer labels."""
    metric = tf.keras.metrics.MeanIoU(num_classes=3)

    def step() -> None:
        metric.update_state(tf.constant([[0, 1, 2]]), tf.constant([[0, 2, 2]]))
        metric.result()

    return step


@clean("fused", ops=("Conv2D", "BiasAdd", "Relu", "MatMul"))
def convolution_bias_and_relu() -> Step:
    """What Grappler fuses goes by the names that the user knows, for ``ops=`` too."""
    conv = tf.keras.layers.Conv2D(4, 3, activation="relu")
    dense = tf.keras.layers.Dense(4, activation="relu")
    call = tf.function(lambda x: dense(conv(x)))
    return lambda: call(tf.ones([1, 8, 8, 3]))


@clean("sparse", ops=("SparseTensorDenseMatMul",))
def sparse_matmul() -> Step:
    """A sparse matrix times a dense one, and back to dense."""

    @tf.function
    def step(indices: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
        matrix = tf.SparseTensor(indices, values, [3, 3])
        return tf.sparse.sparse_dense_matmul(matrix, tf.eye(3)) + 1.0

    indices = tf.constant([[0, 1], [2, 2]], tf.int64)
    return lambda: step(indices, tf.constant([1.0, 2.0]))


@clean("sparse", ops=("ScatterNd", "GatherNd"))
def gather_and_scatter() -> Step:
    """Gathers, scatters, segments and dynamic partitions."""

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (
            tf.scatter_nd([[0], [2]], x[:2], [4, 3]),
            tf.gather_nd(x, [[0, 1], [1, 2]]),
            tf.math.unsorted_segment_sum(x, [0, 1, 0], 2),
            tf.math.segment_mean(x, [0, 0, 1]),
            tf.tensor_scatter_nd_add(x, [[0]], x[:1]),
            tf.boolean_mask(x, [True, False, True]),
        )

    return lambda: step(tf.ones([3, 3]))


@clean("ragged", ops=("Mul",))
def ragged_arithmetic() -> Step:
    """A ragged batch: arithmetic, means of rows, squares."""

    @tf.function
    def step(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tf.RaggedTensor.from_row_lengths(values, [2, 0, 3]) * 2.0
        return tf.reduce_mean(rows, axis=1), tf.square(rows).flat_values

    return lambda: step(tf.ones([5]))


@clean("linear algebra")
def decompositions() -> Step:
    """Cholesky, QR, SVD, eigenvalues, solving, determinants."""

    @tf.function
    def step(a: tf.Tensor) -> tuple[object, ...]:
        return (
            tf.linalg.cholesky(a),
            tf.linalg.qr(a),
            tf.linalg.svd(a),
            tf.linalg.eigh(a),
            tf.linalg.solve(a, a),
            tf.linalg.triangular_solve(a, a),
            tf.linalg.inv(a),
            tf.linalg.slogdet(a),
        )

    return lambda: step(tf.eye(3) * 2.0)


@clean("linear algebra", ops=("Einsum",))
def einsum_and_norms() -> Step:
    """Contractions, norms, band parts, diagonals, Kronecker products."""

    @tf.function
    def step(a: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (
            tf.einsum("bij,bjk->bik", a, a),
            tf.norm(a, axis=-1),
            tf.linalg.band_part(a, 0, -1),
            tf.linalg.diag_part(a),
            tf.cumsum(a, axis=1),
            tf.tensordot(a, a, [[2], [1]]),
        )

    return lambda: step(tf.ones([2, 3, 3]))


@clean("signal", ops=("FFT", "RFFT", "IRFFT"))
def fourier() -> Step:
    """FFTs in one to three dimensions."""

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, ...]:
        z = tf.cast(x, tf.complex64)
        return (
            tf.signal.irfft(tf.signal.rfft(x)),
            tf.signal.ifft2d(tf.signal.fft2d(z)),
            tf.abs(tf.signal.fft(z)),
        )

    return lambda: step(tf.ones([4, 8]))


@clean("signal")
def spectrogram() -> Step:
    """Mel spectrograms and MFCCs, as audio models compute them."""

    @tf.function
    def step(wave: tf.Tensor) -> tf.Tensor:
        power = tf.abs(tf.signal.stft(wave, 64, 32))
        weights = tf.signal.linear_to_mel_weight_matrix(8, power.shape[-1], 8000)
        return tf.signal.mfccs_from_log_mel_spectrograms(tf.math.log(power @ weights + 1e-6))

    return lambda: step(tf.ones([1, 256]))


@clean("probability")
def random_numbers() -> Step:
    """Stateful, stateless and generator-made random numbers, and dropout by hand."""
    generator = tf.random.Generator.from_seed(1)

    @tf.function
    def step() -> tuple[tf.Tensor, ...]:
        return (
            tf.random.normal([2, 3]),
            tf.random.uniform([2, 3]),
            tf.random.truncated_normal([2]),
            tf.random.stateless_normal([2, 3], [1, 2]),
            generator.normal([2, 3]),
            tf.nn.dropout(tf.ones([4]), 0.5),
        )

    return lambda: step()


def _session(graph: tf.Graph, *fetches: object, feed: dict | None = None) -> Step:
    session = v1.Session(graph=graph)
    with graph.as_default():
        session.run(v1.global_variables_initializer())
    return lambda: [session.run(fetch, feed) for fetch in fetches]


@clean("v1 session", ops=("MatMul",))
def v1_graph_and_optimizer() -> Step:
    """Placeholders, get_variable, Momentum."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3])
        weight = v1.get_variable("weight", [3, 2])
        loss = tf.reduce_mean(tf.matmul(x, weight) ** 2)
        train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        return _session(graph, train, loss, feed={x: np.ones((2, 3), "f")})


@clean("v1 session", ops=("Conv2D",))
def v1_adam_with_global_step() -> Step:
    """Reference variables, a global step and a decaying learning rate."""
    with tf.Graph().as_default() as graph:
        count = v1.train.get_or_create_global_step()
        kernel = v1.get_variable("kernel", [3, 3, 1, 2], use_resource=False)
        y = tf.nn.relu(tf.nn.conv2d(tf.ones([1, 8, 8, 1]), kernel, 1, "SAME"))
        rate = v1.train.exponential_decay(0.1, count, 10, 0.9)
        train = v1.train.AdamOptimizer(rate).minimize(tf.reduce_mean(y), count)
        return _session(graph, train)


@clean("v1 session", ops=("MatMul",))
def v1_saver_and_summaries() -> Step:
    """A Saver, merged summaries, an assertion and a print in the same graph."""
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default() as graph:
        weight = v1.get_variable("weight", [3, 3])
        y = tf.matmul(weight, weight)
        checked = v1.assert_greater(tf.reduce_sum(y * 0.0 + 1.0), 0.0)
        with tf.control_dependencies([checked]):
            y = v1.Print(y, [tf.shape(y), y], "y")
        v1.summary.scalar("mean", tf.reduce_mean(y))
        v1.summary.histogram("weights", weight)
        merged = v1.summary.merge_all()
        saver = v1.train.Saver()
        session = v1.Session(graph=graph)
        session.run(v1.global_variables_initializer())

    def step() -> None:
        session.run([y, merged])
        with graph.as_default():
            saver.save(session, f"{folder}/model")
            saver.restore(session, f"{folder}/model")

    return step


@clean("v1 session", ops=("MatMul",))
def v1_while_and_cond() -> Step:
    """Control flow of TensorFlow 1, by Switch and Merge."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 2])
        y = v1.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, tf.matmul(a, a)), [0, x])[1]
        z = v1.cond(tf.reduce_sum(y) > 0.0, lambda: tf.exp(y), lambda: -y)
        return _session(graph, z, feed={x: np.eye(2, dtype="f")})


@clean("v1 session", ops=("MatMul",))
def v1_iterator() -> Step:
    """A dataset with an initialisable iterator, in a Session."""
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.from_tensor_slices(np.ones((8, 3), "f")).batch(2).repeat()
        iterator = v1.data.make_initializable_iterator(data)
        y = tf.matmul(iterator.get_next(), tf.ones([3, 2]))
        session = v1.Session(graph=graph)
        session.run(iterator.initializer)
    return lambda: session.run(y)


@clean("v1 session", ops=("Conv2D",))
def v1_frozen_graph() -> Step:
    """A frozen graph imported and run under GPU:0, as detection models are served."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [1, 8, 8, 1], name="image")
        y = tf.nn.relu(tf.nn.conv2d(x, tf.ones([3, 3, 1, 2]), 1, "SAME"), name="features")
        tf.argmax(tf.reduce_mean(y, [1, 2]), 1, name="classes")
        frozen = graph.as_graph_def()
    with tf.Graph().as_default() as served:
        tf.import_graph_def(frozen, name="")
        session = v1.Session(graph=served, config=v1.ConfigProto(allow_soft_placement=True))
    image = np.ones((1, 8, 8, 1), "f")
    return lambda: session.run(["features:0", "classes:0"], {"image:0": image})
