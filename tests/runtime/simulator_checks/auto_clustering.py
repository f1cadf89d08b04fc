"""XLA's auto-clustering on a simulated GPU (TF_XLA_FLAGS is set by the caller)."""

from __future__ import annotations

from typing import Any

import numpy as np
from checks import check, run, short

from pytest_tfdevice import simulator

simulator.load()

import tensorflow as tf  # noqa: E402


@check
def clustered() -> Any:
    @tf.function
    def f(x: Any) -> Any:
        for _ in range(4):
            x = tf.nn.relu(x @ x) * 0.1 + tf.sin(x)
        return x

    for _ in range(3):  # clusters are compiled from the second call on
        result = f(tf.ones([8, 8]))
    wanted = np.ones((8, 8))
    for _ in range(4):
        wanted = np.maximum(wanted @ wanted, 0) * 0.1 + np.sin(wanted)
    relative = np.abs(result.numpy() / wanted - 1).max()
    return [short(result.device), float(relative)]


run()
