"""A function that the watched code lets go of keeps its lines until the record is made."""

from __future__ import annotations

from tf_process import needs_tensorflow, run

needs_tensorflow()

SCRIPT = """
    import gc
    import pytest_tfdevice
    from pytest_tfdevice.capture.channels import CHANNELS
    import tensorflow as tf

    have_simulated()

    def step():
        @tf.function
        def body(x):
            with tf.device("/CPU:0"):
                return tf.exp(x)
        body.itself = body  # a cycle, as a Keras model has many: only the collector frees it
        return body(tf.ones([2]))

    close = CHANNELS.close
    def closing(window):
        gc.set_threshold(1)  # from here on, any object may be what sets the collector off
        close(window)
    CHANNELS.close = closing

    with pytest_tfdevice.watch() as record:
        step()
    facts["enabled"] = gc.isenabled()
    facts["lines"] = [p.source is not None for p in record.of_type("Exp")]
"""


def test_lines_of_a_function_that_is_gone():
    facts = run(SCRIPT)
    assert facts["lines"] == [True]
    assert facts["enabled"]
