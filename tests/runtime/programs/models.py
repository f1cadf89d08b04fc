"""Whole models as they are used: judged as ``on_gpu`` would, and with a layer moved."""

import statistics
import time

from telling import fact, facts, simulate, tag, tell

from pytest_tfdevice import watch
from pytest_tfdevice.kernels.current import gpu_kernels
from pytest_tfdevice.model import DeviceSpec
from pytest_tfdevice.patterns import Rule
from pytest_tfdevice.rules import judge

simulate()

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

keras = tf.keras
images = tf.random.uniform([1, 64, 64, 3])


def judged(watched):
    rule = Rule(DeviceSpec.parse("GPU"), (), (), False, None, marker="on_gpu")
    verdict = judge(watched.record, rule, gpu_kernels())
    return {
        "passed": verdict.passed,
        "counting": verdict.counting,
        "problems": list(verdict.problems),
        "offenders": [
            [
                o.placement.path,
                o.placement.type,
                o.reason.root,
                tag(o.placement.request.source) if o.placement.request else None,
            ]
            for o in verdict.offenders
        ],
    }


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def overhead(name, cold, warm):
    """Seconds of a step with and without a watch, first and later; told, not judged."""
    plain_cold = seconds(lambda: cold()(images))
    with watch():
        watched_cold = seconds(lambda: cold()(images))
    plain = statistics.median(seconds(lambda: warm(images)) for _ in range(5))
    with watch():
        warm(images)
        watched = statistics.median(seconds(lambda: warm(images)) for _ in range(5))
    whole = time.perf_counter()
    with watch():
        first = seconds(lambda: warm(images))
    facts[f"overhead {name}"] = {
        "cold": plain_cold,
        "cold watched": watched_cold,
        "warm": plain,
        "warm watched": watched,
        "first warm step of a window": first,
        "window around one warm step": time.perf_counter() - whole,
    }


class OnCpu(keras.layers.Layer):
    """The layer that was moved."""

    def __init__(self, layer, **arguments):
        super().__init__(**arguments)
        self.layer = layer

    def build(self, shape):
        self.layer.build(shape)  # its variables stay where variables go
        super().build(shape)

    def call(self, values):
        with tf.device("/CPU:0"):  # the move
            return self.layer(values)


def forward(net):
    return tf.function(lambda a: net(a, training=False))


def moved(build):
    """The model, followed by a block of two layers of which one was moved."""
    net = build()
    inputs = keras.Input([64, 64, 3])
    values = net(inputs)
    values = OnCpu(keras.layers.Dense(8, name="inside"), name="moved_layer")(values)
    return keras.Model(inputs, keras.layers.Dense(4)(values))


def resnet():
    return keras.applications.ResNet50(
        weights=None, include_top=False, pooling="avg", input_shape=(64, 64, 3)
    )


def mobilenet():
    return keras.applications.MobileNetV2(
        weights=None, include_top=False, pooling="avg", input_shape=(64, 64, 3)
    )


@fact
def resnet_forward():
    net = resnet()
    step = forward(net)
    with watch() as w:
        step(images)
    overhead("ResNet50", lambda: forward(net), step)
    return judged(w)


@fact
def mobilenet_forward():
    step = forward(mobilenet())
    with watch() as w:
        step(images)
    return judged(w)


@fact
def resnet_moved():
    step = forward(moved(resnet))
    with watch() as w:
        step(images)
    return judged(w)


@fact
def mobilenet_moved():
    step = forward(moved(mobilenet))
    with watch() as w:
        step(images)
    return judged(w)


def classifier(*, move, **arguments):
    layers = [
        keras.Input([32, 32, 3]),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.BatchNormalization(),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dropout(0.5),
    ]
    if move:
        layers.append(OnCpu(keras.layers.Dense(8, name="inside"), name="moved_layer"))
    net = keras.Sequential([*layers, keras.layers.Dense(10)])
    net.compile(
        "adam",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **arguments,
    )
    return net


def fit(net):
    pictures = np.random.rand(32, 32, 32, 3).astype("float32")
    labels = np.random.randint(0, 10, 32)
    with watch() as w:
        net.fit(pictures, labels, batch_size=16, epochs=1, verbose=0)
    return judged(w)


@fact
def fit_default():
    return fit(classifier(move=False))


@fact
def fit_moved():
    return fit(classifier(move=True, jit_compile=False))


tell()
