"""A small image classifier, as a team would keep it next to its training script."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

CLASSES = 4


class Head(tf.keras.layers.Layer):
    """Scores from features."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(
            name="kernel", shape=(shape[-1], CLASSES), initializer="glorot_uniform"
        )

    def call(self, features: tf.Tensor) -> tf.Tensor:
        return tf.nn.log_softmax(tf.matmul(features, self.kernel))


def build(head: type[Head] = Head, **compile_arguments: Any) -> tf.keras.Model:
    """The compiled model."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((16, 16, 3)),
            layers.Conv2D(8, 3, activation="relu", name="stem"),
            layers.BatchNormalization(name="norm"),
            layers.GlobalAveragePooling2D(name="pool"),
            layers.Dense(16, activation="relu", name="features"),
            head(name="head"),
        ]
    )
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        **compile_arguments,
    )
    return model


def samples(count: int = 32) -> tuple[np.ndarray, np.ndarray]:
    """Images and their labels, the same each time."""
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, count)
    images = random.normal(size=(count, 16, 16, 3)) + labels[:, None, None, None]
    return images.astype("float32"), labels
