"""Ten models, each with the function that is watched: its inference, and a step of its training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf

MODELS: dict[str, int] = {
    "VGG16": 32,
    "ResNet50": 32,
    "InceptionV3": 75,
    "Xception": 71,
    "MobileNetV2": 32,
    "MobileNetV3Small": 32,
    "DenseNet121": 32,
    "EfficientNetV2B0": 32,
    "NASNetMobile": 32,
    "ConvNeXtTiny": 32,
}
"""Pixels of an image's side: the least that the model takes, or 32."""

TRAINED = ("VGG16", "ResNet50", "MobileNetV3Small")
"""Those whose step of training is watched too: three, since tracing one takes up to a minute.
ConvNeXt's could not be run: TensorFlow has no gradient of grouped convolutions on a CPU, and so
none on a simulated GPU."""

Step = Callable[[], Any]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "model" in metafunc.fixturenames:
        trained = metafunc.function.__name__ == "test_train"
        metafunc.parametrize("model", TRAINED if trained else MODELS, indirect=True)


@pytest.fixture
def device() -> str | None:
    """The scope in which models are made and called; None for TensorFlow's choice, the GPU."""
    return None


@pytest.fixture
def model(request: pytest.FixtureRequest, device: str | None) -> Any:
    """Made before the watch begins: its variables are no part of the baseline."""
    size = MODELS[request.param]
    with tf.device(device):
        return getattr(keras.applications, request.param)(
            weights=None, include_top=False, pooling="avg", input_shape=(size, size, 3)
        )


@pytest.fixture
def forward(model: Any, device: str | None) -> Step:
    images = tf.ones([1, *model.input_shape[1:]])
    call = tf.function(lambda x: model(x, training=False), jit_compile=False)

    def forward() -> Any:
        with tf.device(device):
            return call(images)

    return forward


@pytest.fixture
def train(model: Any) -> Step:
    images = tf.ones([2, *model.input_shape[1:]])
    optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=False)
    def train_step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return lambda: train_step(images)
