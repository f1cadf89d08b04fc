"""A small ranker of documents, as a team would keep it next to its training script."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

WORDS, WIDTH, PADDING = 1000, 16, 0
TABLE_DEVICE = "/CPU:0"  # the real table is larger than a GPU


class Ranker(tf.Module):
    """Scores documents; each is a row of word numbers, filled up with ``PADDING``."""

    def __init__(self) -> None:
        super().__init__(name="ranker")
        random = np.random.default_rng(0)
        with tf.device(TABLE_DEVICE):
            self.table = tf.Variable(random.normal(size=(WORDS, WIDTH)), dtype=tf.float32)
        self.kernel = tf.Variable(random.normal(size=(WIDTH, 1)), dtype=tf.float32)

    @tf.function(jit_compile=False)
    def scores(self, words: tf.Tensor) -> tf.Tensor:
        """One score for each document."""
        features = self.features(words)
        with tf.name_scope("head"):
            return tf.matmul(features, self.kernel)

    @tf.function(jit_compile=False)
    def train_head(self, features: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        """One step of gradient descent on the head; gives the loss."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(features, self.kernel) - wanted) ** 2)
        self.kernel.assign_sub(0.01 * tape.gradient(loss, self.kernel))
        return loss

    def features(self, words: tf.Tensor) -> tf.Tensor:
        """The mean of what each word of a document sees of the others."""
        with tf.name_scope("embedding"), tf.device(TABLE_DEVICE):
            vectors = tf.gather(self.table, words)
        with tf.name_scope("mask"):
            mask = tf.cast(words != PADDING, tf.float32)
            visible = tf.matmul(mask[:, :, None], mask[:, None, :])
        with tf.name_scope("attention"):
            likeness = tf.matmul(vectors, vectors, transpose_b=True)
            weights = tf.nn.softmax(likeness + (visible - 1.0) * 1e9)
            return tf.reduce_mean(tf.matmul(weights, vectors), axis=1)
