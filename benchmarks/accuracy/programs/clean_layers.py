"""Layers, models and training as teams write them: all of it belongs on the GPU."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Step, clean

KL = tf.keras.layers
APPS = tf.keras.applications


def _images(count: int = 2, size: int = 32) -> np.ndarray:
    return np.random.default_rng(0).random((count, size, size, 3), dtype=np.float32)


def _sequence(shape: tuple[int, ...] = (2, 5, 3)) -> np.ndarray:
    return np.random.default_rng(0).random(shape, dtype=np.float32)


@tf.autograph.experimental.do_not_convert
def paired(gradients: object, variables: object) -> list[tuple[tf.Tensor, tf.Variable]]:
    """Not converted: AutoGraph's own zip takes no ``strict`` before TensorFlow 2.13."""
    return list(zip(gradients, variables, strict=True))


def fit(model: tf.keras.Model, x: object, y: object, jit: bool | None, **settings: object) -> Step:
    """A compiled model and a step that is one ``fit``; ``jit`` None leaves the default."""
    arguments = {"optimizer": "sgd", "loss": "mse", **settings}
    if jit is not None:
        arguments["jit_compile"] = jit
    model.compile(**arguments)
    return lambda: model.fit(x, y, batch_size=2, epochs=1, verbose=0)


@clean("applications")
def mobilenet_forward() -> Step:
    """MobileNetV2 called eagerly, layer by layer."""
    model = APPS.MobileNetV2(weights=None, input_shape=(32, 32, 3), classes=3, alpha=0.35)
    return lambda: model(_images(1), training=False)


@clean("applications")
def resnet_in_function() -> Step:
    """ResNet50's forward pass as one tf.function."""
    model = APPS.ResNet50(weights=None, input_shape=(32, 32, 3), classes=3)
    call = tf.function(lambda x: model(x, training=False))
    return lambda: call(tf.constant(_images(1)))


@clean("applications")
def efficientnet_predict() -> Step:
    """EfficientNetB0's predict: preprocessing layers inside the model."""
    model = APPS.EfficientNetB0(weights=None, input_shape=(32, 32, 3), classes=3)
    return lambda: model.predict(_images(), verbose=0)


@clean("applications")
def mobilenet_v3_training(jit: bool | None) -> Step:
    """MobileNetV3Small fitted for one batch."""
    model = APPS.MobileNetV3Small(
        weights=None, input_shape=(32, 32, 3), classes=3, minimalistic=True
    )
    return fit(model, _images(), np.array([0, 1]), jit, loss="sparse_categorical_crossentropy")


@clean("layers")
def dense_stack() -> Step:
    """Dense, dropout, batch and layer normalisation, training on."""
    model = tf.keras.Sequential(
        [KL.Dense(8, "relu"), KL.Dropout(0.5), KL.BatchNormalization(), KL.LayerNormalization()]
    )
    return lambda: model(tf.ones([4, 3]), training=True)


@clean("layers")
def convolutions() -> Step:
    """The convolutions and poolings of one to three dimensions."""
    layers = [
        KL.Conv2D(4, 3, padding="same"),
        KL.DepthwiseConv2D(3),
        KL.SeparableConv2D(4, 3),
        KL.Conv2DTranspose(4, 3),
        KL.MaxPooling2D(),
        KL.AveragePooling2D(2),
        KL.UpSampling2D(),
        KL.ZeroPadding2D(),
        KL.Cropping2D(),
        KL.GlobalAveragePooling2D(),
    ]
    model = tf.keras.Sequential(layers)
    deep = KL.Conv3D(2, 2)
    flat = KL.Conv1D(2, 2)
    return lambda: (model(_images()), deep(tf.ones([1, 4, 4, 4, 1])), flat(tf.ones([1, 4, 1])))


@clean("layers")
def channels_first() -> Step:
    """A convolution that exists for GPUs only."""
    layer = KL.Conv2D(4, 3, data_format="channels_first")
    pool = KL.MaxPooling2D(data_format="channels_first")
    return lambda: pool(layer(tf.ones([1, 3, 8, 8])))


@clean("rnn")
def lstm_training(jit: bool | None) -> Step:
    """An LSTM, fitted."""
    model = tf.keras.Sequential([KL.LSTM(4), KL.Dense(1)])
    return fit(model, _sequence(), np.zeros((2, 1), "f"), jit)


@clean("rnn")
def gru_forward() -> Step:
    """A GRU that returns sequences and state."""
    layer = KL.GRU(4, return_sequences=True, return_state=True)
    return lambda: layer(tf.constant(_sequence()))


@clean("rnn")
def bidirectional_lstm() -> Step:
    """A bidirectional LSTM with the gradient of its weights."""
    layer = KL.Bidirectional(KL.LSTM(3, return_sequences=True))

    @tf.function
    def step(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x) ** 2)
        return tape.gradient(loss, layer.trainable_variables)

    return lambda: step(tf.constant(_sequence()))


@clean("rnn")
def masked_lstm(jit: bool | None) -> Step:
    """Token ids, an embedding that masks zeros, an LSTM: the usual text classifier."""
    model = tf.keras.Sequential([KL.Embedding(10, 4, mask_zero=True), KL.LSTM(4), KL.Dense(1)])
    ids = np.array([[1, 2, 3, 0], [4, 5, 0, 0]], np.int32)
    return fit(model, ids, np.zeros((2, 1), "f"), jit)


@clean("rnn")
def plain_rnn_unrolled() -> Step:
    """A cell of one's own in an RNN layer, unrolled."""
    layer = KL.RNN([KL.SimpleRNNCell(3), KL.LSTMCell(3)], unroll=True)
    return lambda: layer(tf.constant(_sequence()))


@clean("attention")
def multi_head_attention(jit: bool | None) -> Step:
    """A transformer block with a causal mask."""
    inputs = KL.Input((4, 8))
    attended = KL.MultiHeadAttention(2, 4)(inputs, inputs, use_causal_mask=True)
    model = tf.keras.Model(inputs, KL.Dense(1)(KL.LayerNormalization()(inputs + attended)))
    return fit(model, _sequence((2, 4, 8)), np.zeros((2, 4, 1), "f"), jit)


@clean("attention")
def attention_with_padding_mask() -> Step:
    """Scaled dot products under a padding mask that was computed from ids."""

    @tf.function
    def step(ids: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        mask = tf.cast(tf.equal(ids, 0), tf.float32)[:, tf.newaxis, :] * -1e9
        scores = tf.matmul(x, x, transpose_b=True) / tf.sqrt(8.0) + mask
        return tf.matmul(tf.nn.softmax(scores), x)

    ids = tf.constant([[1, 2, 0, 0], [3, 0, 0, 0]])
    return lambda: step(ids, tf.constant(_sequence((2, 4, 8))))


@clean("embeddings")
def embedding_training() -> Step:
    """An embedding with its sparse gradient, applied by Adam."""
    table = KL.Embedding(20, 4)
    optimizer = tf.keras.optimizers.Adam()
    ids = tf.constant([[1, 2], [3, 1]])

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(table(ids) ** 2)
        gradients = tape.gradient(loss, table.trainable_variables)
        optimizer.apply_gradients(paired(gradients, table.trainable_variables))
        return loss

    return step


@clean("embeddings")
def embedding_lookup_sparse() -> Step:
    """Bags of ids, combined by their mean."""
    table = tf.Variable(tf.ones([10, 4]))
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([3, 4, 5], tf.int64), [2, 2])
    call = tf.function(lambda: tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean"))
    return lambda: call()


@clean("training")
def functional_model_two_inputs(jit: bool | None) -> Step:
    """Two inputs, two outputs, two losses and weights for them."""
    left, right = KL.Input((3,)), KL.Input((2,))
    joined = KL.Concatenate()([KL.Dense(4)(left), KL.Dense(4)(right)])
    model = tf.keras.Model([left, right], [KL.Dense(1)(joined), KL.Dense(2)(joined)])
    x = [np.ones((2, 3), "f"), np.ones((2, 2), "f")]
    y = [np.ones((2, 1), "f"), np.ones((2, 2), "f")]
    return fit(model, x, y, jit, loss=["mse", "mae"], loss_weights=[1.0, 0.5])


@clean("training")
def subclassed_train_step(jit: bool | None) -> Step:
    """A model with a train_step of its own."""

    class Model(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = KL.Dense(1)

        def call(self, x: tf.Tensor) -> tf.Tensor:
            return self.dense(x)

        def train_step(self, data: tuple[tf.Tensor, tf.Tensor]) -> dict[str, tf.Tensor]:
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            weights = self.trainable_variables
            self.optimizer.apply_gradients(paired(tape.gradient(loss, weights), weights))
            return {"loss": loss}

    return fit(Model(), np.ones((4, 3), "f"), np.ones((4, 1), "f"), jit)


@clean("training")
def fit_with_callbacks_and_metrics(jit: bool | None) -> Step:
    """Validation data, early stopping, a learning-rate schedule, several metrics."""
    model = tf.keras.Sequential([KL.Dense(4, "relu"), KL.Dense(3, "softmax")])
    arguments = {} if jit is None else {"jit_compile": jit}
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    model.compile(
        tf.keras.optimizers.Adam(rate),
        "sparse_categorical_crossentropy",
        metrics=["accuracy", tf.keras.metrics.SparseTopKCategoricalAccuracy(2)],
        **arguments,
    )
    x, y = np.ones((4, 3), "f"), np.array([0, 1, 2, 0])
    stopping = tf.keras.callbacks.EarlyStopping("val_loss")
    return lambda: model.fit(
        x, y, validation_data=(x, y), callbacks=[stopping], epochs=2, verbose=0
    )


@clean("training")
def class_and_sample_weights(jit: bool | None) -> Step:
    """Weights of classes are looked up by label in the input pipeline."""
    model = tf.keras.Sequential([KL.Dense(1, "sigmoid")])
    step_arguments = {"class_weight": {0: 1.0, 1: 3.0}, "verbose": 0}
    model.compile("rmsprop", "binary_crossentropy", **({} if jit is None else {"jit_compile": jit}))
    x, y = np.ones((4, 3), "f"), np.array([[0], [1], [1], [0]])
    return lambda: model.fit(x, y, **step_arguments)


@clean("training")
def gan_of_two_optimizers() -> Step:
    """Two models, two tapes, two optimisers in one step, with random input."""
    maker, judge = KL.Dense(3), KL.Dense(1)
    optimizers = tf.keras.optimizers.Adam(), tf.keras.optimizers.Adam()

    @tf.function
    def step(real: tf.Tensor) -> None:
        noise = tf.random.normal([4, 2])
        with tf.GradientTape() as first, tf.GradientTape() as second:
            fake = judge(maker(noise))
            maker_loss = tf.reduce_mean(tf.nn.softplus(-fake))
            judge_loss = tf.reduce_mean(tf.nn.softplus(fake) + tf.nn.softplus(-judge(real)))
        for tape, loss, part, optimizer in (
            (first, maker_loss, maker, optimizers[0]),
            (second, judge_loss, judge, optimizers[1]),
        ):
            weights = part.trainable_variables
            optimizer.apply_gradients(paired(tape.gradient(loss, weights), weights))

    def run() -> None:
        step(tf.ones([4, 3]))

    return run
