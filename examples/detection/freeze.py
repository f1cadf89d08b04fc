"""Builds a small two-stage detector, and freezes it: ``python freeze.py OUT.pb``.

As object detection graphs of TensorFlow 1 are built: features from a backbone, proposals from a
first head, non-maximum suppression, a crop of the features for each proposal, and a second head
that scores the crops.  Training happened elsewhere; here the weights are random.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1

SIZE, STRIDE, CHANNELS, PROPOSALS, CROP, CLASSES = 64, 4, 16, 8, 5, 3


def build_graph(integer_masks: bool = False) -> None:
    """Adds the detector to the default graph: ``images`` → ``boxes``, ``scores``.

    ``integer_masks`` is the refactor that goes wrong: crops are weighted by an int32 mask.
    """
    images = v1.placeholder(tf.float32, [1, SIZE, SIZE, 3], name="images")
    with v1.variable_scope("backbone"):
        features = images
        for number in range(2):
            features = tf.nn.relu(_conv(features, CHANNELS, f"conv{number}", stride=2))
    with v1.variable_scope("proposals"):
        objectness = tf.reshape(_conv(features, 1, "objectness"), [-1])
        offsets = tf.tanh(tf.reshape(_conv(features, 4, "offsets"), [-1, 4]))
        anchor_count = v1.get_variable("anchor_count", initializer=(SIZE // STRIDE) ** 2)
        boxes = tf.reshape(tf.constant(_anchors()) + offsets * 0.05, [anchor_count, 4])
        chosen = tf.image.non_max_suppression(boxes, objectness, PROPOSALS, iou_threshold=0.5)
        boxes = tf.gather(boxes, chosen)
    with v1.variable_scope("second_stage"):
        crops = tf.image.crop_and_resize(
            features, boxes, tf.zeros_like(chosen), [CROP, CROP], name="crops"
        )
        pooled = _masked_mean(tf.reshape(crops, [-1, CROP * CROP, CHANNELS]), integer_masks)
        weights = v1.get_variable("weights", [CHANNELS, CLASSES])
        scores = tf.nn.softmax(tf.matmul(pooled, weights), name="probabilities")
    tf.identity(boxes, name="boxes")
    tf.identity(scores, name="scores")


def _conv(inputs: tf.Tensor, channels: int, name: str, stride: int = 1) -> tf.Tensor:
    with v1.variable_scope(name):
        kernel = v1.get_variable("kernel", [3, 3, inputs.shape[-1], channels])
        return tf.nn.conv2d(inputs, kernel, stride, "SAME", name="conv")


def _masked_mean(crops: tf.Tensor, integer_masks: bool) -> tf.Tensor:
    """The mean of the positions of a crop where anything was found."""
    found = tf.reduce_max(crops, axis=-1, keepdims=True) > 0
    if integer_masks:
        mask = tf.cast(found, tf.int32)
        steps = tf.cast(crops * 255, tf.int32)
        total = tf.cast(tf.matmul(mask, steps, transpose_a=True, name="masked_sum"), tf.float32)
        total /= 255
    else:
        mask = tf.cast(found, tf.float32)
        total = tf.matmul(mask, crops, transpose_a=True, name="masked_sum")
    count = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1)
    return tf.squeeze(total, axis=1) / tf.maximum(count, 1.0)


def _anchors() -> np.ndarray:
    """One box of a quarter of the image around each position of the features."""
    centres = (np.arange(SIZE // STRIDE) + 0.5) * STRIDE / SIZE
    y, x = np.meshgrid(centres, centres, indexing="ij")
    boxes = np.stack([y - 0.125, x - 0.125, y + 0.125, x + 0.125], axis=-1)
    return boxes.reshape(-1, 4).astype(np.float32)


def freeze(path: Path, integer_masks: bool = False) -> None:
    """Writes the graph, its variables turned into constants, to ``path``."""
    with tf.Graph().as_default() as graph:
        build_graph(integer_masks)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            frozen = v1.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), ["boxes", "scores"]
            )
    path.write_bytes(frozen.SerializeToString())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--integer-masks", action="store_true")
    arguments = parser.parse_args()
    freeze(arguments.out, arguments.integer_masks)
