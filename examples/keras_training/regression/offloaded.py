"""The regression: a layer that was moved to the CPU to save GPU memory, and forgotten there."""

import tensorflow as tf
from model import Head


class OffloadedHead(Head):
    """The head, which used to be large."""

    def call(self, features):
        with tf.device("/CPU:0"):
            return super().call(features)
