"""Where the ranker runs: the head on the GPU, the rest where it ran when somebody last looked."""

import numpy as np
import pytest
import tensorflow as tf
from ranker import WIDTH, Ranker


@pytest.fixture
def ranker():
    return Ranker()


@pytest.mark.placement_baseline
def test_scores(ranker):
    words = np.array([[3, 14, 15, 0], [9, 26, 0, 0]])
    assert ranker.scores(words).shape == (2, 1)


@pytest.mark.on_gpu("MatMul")
@pytest.mark.placement_baseline
def test_training_the_head(ranker):
    features, wanted = tf.ones([2, WIDTH]), tf.zeros([2, 1])
    before = ranker.train_head(features, wanted)
    assert ranker.train_head(features, wanted) < before
