"""What ops of Sessions took on each device: one sleeps on the CPU for a time that is known."""

from __future__ import annotations

import time

from telling import fact, simulate, tell

from pytest_tfdevice import watch

simulate()

import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
SLEEP = 0.2


def nap(x):
    time.sleep(SLEEP)
    return x


def build():
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/GPU:0"):
            warm = tf.exp(tf.ones([4, 4]), name="warm")
        with tf.device("/CPU:0"):
            slow = tf.numpy_function(nap, [warm], tf.float32, name="slow")
    return graph, warm, slow


def told(watched):
    return {
        "times": {t.device.short: (t.ops, t.seconds) for t in watched.record.op_times},
        "text": " ".join(str(watched).split()),
    }


def run(times):
    graph, _, slow = build()
    with watch() as watched, v1.Session(graph=graph) as session:
        for _ in range(times):
            session.run(slow)
    return told(watched)


@fact
def once():
    return run(1)


@fact
def thrice():
    return run(3)


@fact
def two_fetches():
    graph, warm, slow = build()
    with watch() as watched, v1.Session(graph=graph) as session:
        session.run(slow)
        session.run(warm)
    return told(watched)


@fact
def users_trace():
    graph, _, slow = build()
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    with watch() as watched, v1.Session(graph=graph) as session:
        session.run(slow, options=options, run_metadata=metadata)
    return told(watched) | {"theirs": len(metadata.step_stats.dev_stats)}


@fact
def not_of_sessions():
    with watch() as watched:
        tf.function(lambda x: tf.exp(x))(tf.ones([4]))
    return told(watched)


tell()
