"""Tests of the ranking step.  ``pytest --tfdevice-simulate 1`` runs them without a GPU."""

from __future__ import annotations

import pytest


@pytest.mark.on_gpu("MatMul")
def test_ranking_runs_on_the_gpu():
    import tensorflow as tf

    scores = tf.matmul(tf.ones([4, 8]), tf.ones([8, 3]))
    with tf.device("/CPU:0"):
        tf.raw_ops.DenseBincount(
            input=tf.constant([[1, 2], [1, 0]]),
            size=4,
            weights=tf.constant([[1.0, 1.0], [1.0, 1.0]]),
        )
    assert scores.shape == (4, 3)
