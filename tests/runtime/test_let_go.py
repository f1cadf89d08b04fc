"""A function that the watched code lets go of keeps its lines until the record is made."""

from __future__ import annotations

from tf_process import needs_tensorflow, run

needs_tensorflow()

STEP = """\
import tensorflow as tf

def step():
    @tf.function
    def body(x):
        with tf.device("/CPU:0"):
            return tf.exp(x)
    body.itself = body  # a cycle, as a Keras model has many: only the collector frees it
    return body(tf.ones([2]))
"""

SCRIPT = f"""
    import gc, sys
    import pytest_tfdevice
    from pytest_tfdevice.capture.channels import CHANNELS

    have_simulated()
    open("step.py", "w").write({STEP!r})  # code without a file has no lines
    from step import step

    close = CHANNELS.close
    def closing(window):
        gc.set_threshold(1)  # from here on, any object may be what sets the collector off
        close(window)
    CHANNELS.close = closing

    with pytest_tfdevice.watch() as record:
        step()
    facts["enabled"] = gc.isenabled()
    facts["lines"] = [p.source and p.source.line for p in record.of_type("Exp")]
"""


def test_lines_of_a_function_that_is_gone():
    facts = run(SCRIPT)
    assert facts["lines"] == [7]
    assert facts["enabled"]
