"""Keras: fit as it comes and uncompiled, a layer on the CPU, training loops, mixed precision."""

from telling import fact, facts, record, simulate, tell

from pytest_tfdevice import watch

simulate()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras = tf.keras
facts["keras"] = int(getattr(keras, "__version__", "2").split(".")[0])
inputs = np.random.rand(32, 8).astype("float32")
labels = np.random.rand(32, 1).astype("float32")


def model(**compile_arguments):
    made = keras.Sequential(
        [keras.Input([8]), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)]
    )
    made.compile("sgd", "mse", **compile_arguments)
    return made


class OnCpu(keras.layers.Layer):
    """A layer that somebody moved."""

    def call(self, values):
        with tf.device("/CPU:0"):  # pin in layer
            return tf.math.sinh(values)  # layer op


def pinned_model(**compile_arguments):
    made = keras.Sequential(
        [
            keras.Input([8]),
            keras.layers.Dense(16),
            OnCpu(name="moved"),
            keras.layers.Dense(1),
        ]
    )
    made.compile("sgd", "mse", **compile_arguments)
    return made


@fact
def fit_default():
    net = model()
    with watch() as w:
        net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


@fact
def fit_warm():
    net = model(jit_compile=False)
    net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    with watch() as w:
        net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


@fact
def fit_uncompiled():
    net = model(jit_compile=False)
    with watch() as w:
        net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


@fact
def fit_dataset():
    net = model(jit_compile=False)
    pairs = tf.data.Dataset.from_tensor_slices((inputs, labels)).map(
        lambda a, b: (tf.math.sqrt(a), b)
    )
    with watch() as w:
        net.fit(pairs.batch(8), epochs=1, verbose=0)
    return record(w)


@fact
def fit_pinned():
    net = pinned_model(jit_compile=False)
    with watch() as w:
        net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


@fact
def fit_pinned_compiled():
    net = pinned_model(jit_compile=True)
    with watch() as w:
        net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


@fact
def predict_and_evaluate():
    net = pinned_model(jit_compile=False)
    with watch() as w:
        net.predict(inputs, verbose=0)
    with watch() as e:
        net.evaluate(inputs, labels, verbose=0)
    return {"predict": record(w), "evaluate": record(e)}


@fact
def custom_loop():
    net = model()
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(net.trainable_variables)

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(net(a, training=True) - b))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))  # noqa: B905
        return loss

    with watch() as w:
        for _ in range(2):
            step(tf.constant(inputs), tf.constant(labels))
    return record(w)


@fact
def eager_model():
    net = pinned_model()
    with watch() as w:
        net(inputs)
    return record(w)


@fact
def mixed_precision():
    keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        net = model(jit_compile=False)
    finally:
        keras.mixed_precision.set_global_policy("float32")
    with watch() as w:
        net.fit(inputs, labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


@fact
def dropout_and_embedding():
    net = keras.Sequential(
        [
            keras.Input([5], dtype="int32"),
            keras.layers.Embedding(10, 4),
            keras.layers.Dropout(0.5),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    net.compile("adam", "mse", metrics=["mae"], jit_compile=False)
    with watch() as w:
        net.fit(np.random.randint(0, 10, [32, 5]), labels, batch_size=8, epochs=1, verbose=0)
    return record(w)


tell()
