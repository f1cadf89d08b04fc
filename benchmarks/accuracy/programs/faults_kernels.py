"""Ops without a GPU kernel, or without one for the dtype.

``tensorflow.python.framework.kernels`` says so: for ``no-kernel`` the registry of the CUDA wheel
holds neither a GPU nor a DEFAULT kernel of the op, for ``dtype`` only such that take other dtypes.
The benchmark's ``--oracle`` asks it again for each.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Planted, Step, fault
from benchmarks.accuracy.programs.clean_layers import KL, fit

v1 = tf.compat.v1


def soft_placement() -> v1.ConfigProto:
    """As the reports have it; with logging where that is on, which a config switches off."""
    logging = tf.debugging.get_log_device_placement()
    return v1.ConfigProto(allow_soft_placement=True, log_device_placement=logging)


def missing(type: str, name: str = "*", **more: object) -> Planted:
    return Planted(type, "no-kernel", name, **more)


def dtype(type: str, name: str = "*", **more: object) -> Planted:
    return Planted(type, "dtype", name, **more)


@fault("forward", missing("ResizeBicubic"))
def bicubic_resize_eager() -> Step:
    """S17: bilinear has a GPU kernel, bicubic none."""
    image = tf.ones([1, 8, 8, 3])
    return lambda: tf.image.resize(image, [4, 4], method="bicubic")


@fault("forward", missing("ScaleAndTranslate"))
def antialias_resize_in_function() -> Step:
    """S17: nor has antialiasing."""
    step = tf.function(lambda x: tf.image.resize(x, [4, 4], antialias=True) + 1.0)
    return lambda: step(tf.ones([1, 8, 8, 3]))


@fault("backward", missing("ResizeBicubic"), missing("ResizeBicubicGrad"))
def bicubic_gradient() -> Step:
    """Forward and backward of a bicubic upsampling in a super-resolution model."""
    layer = KL.Conv2D(1, 3, padding="same")

    @tf.function
    def step(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            y = tf.image.resize(layer(x), [16, 16], method="bicubic")
            loss = tf.reduce_mean(y**2)
        return tape.gradient(loss, layer.trainable_variables)

    return lambda: step(tf.ones([1, 8, 8, 1]))


@fault("preprocessing", missing("RaggedTensorToTensor"))
def text_vectorization_in_model() -> Step:
    """TextVectorization inside the model pads its ragged ids with an op that has no GPU kernel:
    Keras' guide says to put it into tf.data instead."""
    vectorize = KL.TextVectorization(output_sequence_length=4)
    vectorize.adapt(tf.constant(["a b c", "b c"]))
    embedding, dense = KL.Embedding(8, 3), KL.Dense(1)

    @tf.function
    def score(lines: tf.Tensor) -> tf.Tensor:
        return dense(tf.reduce_mean(embedding(vectorize(lines)), axis=1))

    return lambda: score(tf.constant(["a b", "c"]))


@fault("forward", missing("RaggedTensorToTensor"))
def ragged_to_dense() -> Step:
    """Features of a ragged batch, padded inside the step."""

    @tf.function
    def step(values: tf.Tensor) -> tf.Tensor:
        rows = tf.RaggedTensor.from_row_lengths(values * 2.0, [2, 0, 3])
        return tf.exp(rows.to_tensor(0.0))

    return lambda: step(tf.ones([5]))


@fault("forward", missing("CombinedNonMaxSuppression"))
def combined_nms() -> Step:
    """S11: the batched non-maximum suppression of detection models."""

    @tf.function
    def step(boxes: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
        found = tf.image.combined_non_max_suppression(boxes, scores, 3, 3)
        return found.nmsed_boxes * 2.0

    return lambda: step(tf.ones([1, 4, 1, 4]), tf.ones([1, 4, 2]))


@fault("forward", missing("CTCGreedyDecoder"))
def ctc_greedy_decoder() -> Step:
    """A decoder of speech models; "Decode" in its name makes it no input."""
    step = tf.function(lambda x: tf.nn.ctc_greedy_decoder(tf.exp(x), [3, 3])[1])
    return lambda: step(tf.ones([3, 2, 4]))


@fault("loss", missing("CTCLoss"))
def ctc_loss_of_v1() -> Step:
    """The CTC loss on sparse labels, and so its gradient, inside a training step."""
    weight = tf.Variable(np.ones((4, 4), "f"))
    labels = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2]), [2, 1])

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            logits = tf.einsum("tbi,ij->tbj", x, weight)
            loss = tf.reduce_mean(v1.nn.ctc_loss(labels, logits, [3, 3]))
        weight.assign_sub(tape.gradient(loss, weight))

    return lambda: step(tf.ones([3, 2, 4]))


@fault("forward", missing("FractionalMaxPool"), missing("FractionalMaxPoolGrad"))
def fractional_pooling() -> Step:
    """A pooling that no GPU kernel was ever written for, with its gradient."""
    kernel = tf.Variable(np.ones((3, 3, 1, 1), "f"))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            y = tf.nn.conv2d(x, kernel, 1, "SAME")
            pooled = tf.nn.fractional_max_pool(y, [1.0, 1.4, 1.4, 1.0], seed=1)[0]
            loss = tf.reduce_sum(pooled)
        return tape.gradient(loss, kernel)

    return lambda: step(tf.ones([1, 8, 8, 1]))


@fault("forward", missing("RandomGamma"))
def gamma_noise() -> Step:
    """Gamma noise drawn eagerly in the middle of a step."""
    return lambda: tf.random.gamma([2, 3], 1.0) @ tf.ones([3, 2])


@fault("forward", missing("RandomPoissonV2"))
def poisson_noise_in_function() -> Step:
    """Poisson noise in a tf.function."""
    step = tf.function(lambda x: x + tf.random.poisson([2], x))
    return lambda: step(tf.ones([3]))


@fault("linear algebra", missing("Eig"))
def general_eigenvalues() -> Step:
    """Eigenvalues of a matrix that isn't symmetric."""
    step = tf.function(lambda a: tf.linalg.eigvals(a @ a))
    return lambda: step(tf.eye(3))


@fault("metric", missing("NthElement"))
def median_metric() -> Step:
    """A metric on the median, whose op is on the CPU only."""
    median = tf.Variable(0.0)

    @tf.function
    def step(x: tf.Tensor) -> None:
        middle = tf.raw_ops.NthElement(input=tf.exp(x), n=1)
        median.assign(tf.reduce_mean(middle))

    return lambda: step(tf.ones([2, 3]))


@fault("v1 session", missing("ResizeBicubic", "resize*"))
def v1_bicubic() -> Step:
    """A frozen graph with a bicubic resize in front."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [1, 8, 8, 1])
        small = v1.image.resize_bicubic(x, [4, 4], name="resize")
        y = tf.nn.conv2d(small, tf.ones([2, 2, 1, 1]), 1, "SAME")
        session = v1.Session(graph=graph)
    return lambda: session.run(y, {x: np.ones((1, 8, 8, 1))})


@fault("one of thousands", missing("ResizeArea"))
def area_resize_behind_resnet() -> Step:
    """A thumbnail beside ResNet50's forward pass, in one tf.function."""
    model = tf.keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=3)

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return model(x, training=False), tf.image.resize(x, [4, 4], method="area")

    return lambda: step(tf.ones([1, 32, 32, 3]))


@fault("eager", dtype("MatMul"))
def int32_matmul_eager() -> Step:
    """S28: int32 has no product on the GPU."""
    ones = tf.ones([4, 4], tf.int32)
    return lambda: tf.matmul(ones, ones)


@fault("attention", dtype("BatchMatMulV2"))
def int32_mask_in_attention() -> Step:
    """The mask was cast to int32 in a refactoring, and is multiplied as it is."""

    @tf.function
    def step(ids: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        valid = tf.cast(tf.not_equal(ids, 0), tf.int32)[:, :, tf.newaxis]
        mask = tf.matmul(valid, valid, transpose_b=True)
        scores = tf.matmul(x, x, transpose_b=True) + (1.0 - tf.cast(mask, tf.float32)) * -1e9
        return tf.nn.softmax(scores) @ x

    return lambda: step(tf.constant([[1, 2, 0], [3, 0, 0]]), tf.ones([2, 3, 4]))


@fault("forward", dtype("MatMul"), compiled=())
def int32_product_in_fit(jit: bool | None) -> Step:
    """A layer that counts common tokens by an int32 product; XLA compiles it."""

    class Overlap(KL.Layer):
        def call(self, x: tf.Tensor) -> tf.Tensor:
            bits = tf.cast(x > 0.0, tf.int32)
            return x + tf.cast(tf.matmul(bits, bits, transpose_b=True), tf.float32)[:, :1]

    model = tf.keras.Sequential([KL.Dense(3), Overlap(), KL.Dense(1)])
    return fit(model, np.ones((4, 3), "f"), np.ones((4, 1), "f"), jit)


@fault("v1 session", dtype("MatMul", "prod"))
def v1_int32_matmul() -> Step:
    """S28 as it was reported: under a GPU scope, with soft placement."""
    with tf.Graph().as_default() as graph:
        with tf.device("/device:GPU:0"):
            a = v1.placeholder(tf.int32, [4, 4])
            product = tf.matmul(a, a, name="prod")
        session = v1.Session(graph=graph, config=soft_placement())
    return lambda: session.run(product, {a: np.ones((4, 4), np.int32)})


@fault("preprocessing", dtype("ResizeBilinear"))
def uint8_image_resized() -> Step:
    """uint8 pictures are resized before they are made floats: only floats have a GPU kernel."""

    @tf.function
    def step(pictures: tf.Tensor) -> tf.Tensor:
        return tf.image.resize(pictures, [4, 4]) / 255.0

    return lambda: step(tf.ones([1, 8, 8, 3], tf.uint8))


@fault("forward", dtype("MirrorPad"))
def int32_reflect_padding() -> Step:
    """Ids of rank 2 padded by reflection."""
    step = tf.function(lambda ids: tf.pad(ids, [[0, 0], [1, 1]], mode="REFLECT"))
    return lambda: step(tf.ones([2, 3], tf.int32))


@fault("forward", dtype("MatrixBandPart"))
def int64_band_part() -> Step:
    """A causal mask made of int64: only floats and booleans have that kernel."""

    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def step(x: tf.Tensor) -> tf.Tensor:
        size = tf.shape(x)[0]
        mask = tf.linalg.band_part(tf.fill([size, size], tf.constant(1, tf.int64)), -1, 0)
        return x * tf.cast(mask, tf.float32)

    return lambda: step(tf.ones([3, 3]))


@fault("metric", dtype("ArgMax"))
def argmax_of_int64() -> Step:
    """Votes counted in int64 and decided by argmax: rank 2 goes in, rank 1 comes out."""

    @tf.function
    def step(votes: tf.Tensor) -> tf.Tensor:
        return tf.argmax(votes, axis=2)

    return lambda: step(tf.ones([2, 2, 3], tf.int64))


OLDEST = ((2, 12), (2, 12))


@fault("forward", dtype("Relu"), versions=OLDEST)
def bfloat16_relu() -> Step:
    """2.12 registers no bfloat16 kernel of Relu for GPUs; the versions after it do."""
    layer = KL.ReLU(dtype="bfloat16")
    return lambda: layer(tf.cast(tf.ones([2, 2]), tf.bfloat16))
