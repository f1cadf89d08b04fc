"""A function that the watched code lets go of keeps its lines until the record is made."""

from __future__ import annotations

from tf_process import needs_tensorflow, run

needs_tensorflow()

STEP = """\
import tensorflow as tf

def at_once():
    @tf.function
    def body(x):
        with tf.device("/CPU:0"):
            return tf.exp(x)
    body(tf.ones([2]))

def in_a_cycle():  # as a Keras model has many: only the collector frees it
    @tf.function
    def body(x):
        with tf.device("/CPU:0"):
            return tf.cos(x)
    body.itself = body
    body(tf.ones([2]))

def nested():
    @tf.function
    def inner(x):
        with tf.device("/CPU:0"):
            return tf.sin(x)
    @tf.function
    def body(x):
        return inner(x)
    body(tf.ones([2]))
"""

SCRIPT = f"""
    import gc
    import pytest_tfdevice
    from pytest_tfdevice.capture.channels import CHANNELS

    have_simulated()
    open("step.py", "w").write({STEP!r})  # code without a file has no lines
    import step

    close = CHANNELS.close
    def closing(window):
        gc.set_threshold(1)  # from here on, any object may be what sets the collector off
        close(window)
    CHANNELS.close = closing

    with pytest_tfdevice.watch() as record:
        step.at_once()
        step.in_a_cycle()
        step.nested()
    for kind in ("Exp", "Cos", "Sin"):
        facts[kind] = [p.source and p.source.line for p in record.of_type(kind)]
"""


def test_lines_of_functions_that_are_gone():
    facts = run(SCRIPT)
    assert (facts["Exp"], facts["Cos"], facts["Sin"]) == ([7], [14], [22])
