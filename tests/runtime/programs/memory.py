"""GPU memory as a meter measures it, next to ``get_memory_info`` taken by hand.

Arguments: number of GPUs, the memory of each, and what is to initialise them: ``eager``,
``session``, ``unwatched``, ``logical``, ``growth``, ``user_session`` or ``nothing``.
"""

from __future__ import annotations

import sys

from telling import fact, facts, tell

count, size, first = int(sys.argv[2]), sys.argv[3], sys.argv[4]
from pytest_tfdevice import simulator  # noqa: E402

try:
    simulator.load(count, size)
except simulator.SimulatorError as error:
    facts["not simulated"] = str(error)
    tell()
    sys.exit(0)

import tensorflow as tf  # noqa: E402

from pytest_tfdevice import watch  # noqa: E402
from pytest_tfdevice.capture import private  # noqa: E402
from pytest_tfdevice.capture.memory import MemoryMeter  # noqa: E402

tf1 = tf.compat.v1
MIB = 2**20


def told(found):
    return {
        m.device.short: {
            "before": m.before, "peak": m.peak, "after": m.after, "left": m.left,
            "limit": m.limit, "total": m.total, "growth": m.growth, "logical": m.is_logical,
            "reserved": m.reserved,
        }
        for m in found
    }  # fmt: skip


def by_hand():
    return {
        f"GPU:{number}": tf.config.experimental.get_memory_info(f"GPU:{number}")
        for number in range(len(tf.config.list_logical_devices("GPU")))
    }


def session(fraction=None, growth=False):
    config = tf1.ConfigProto()
    if fraction is not None:
        config.gpu_options.per_process_gpu_memory_fraction = fraction
    config.gpu_options.allow_growth = growth
    graph = tf.Graph()
    with graph.as_default():
        total = tf.reduce_sum(tf.random.normal([MIB]))
    with tf1.Session(graph=graph, config=config) as running:
        running.run(total)


def measured(work):
    meter = MemoryMeter()
    meter.start()
    kept = work()
    found = meter.measure()
    exists = private.eager_context_exists()
    found = meter.with_leftovers(found)
    notes = list(meter.notes)
    meter.close()
    del kept
    return {"told": told(found), "notes": notes, "initialised": exists}


@fact
def nothing():
    return measured(lambda: None)


if first == "session":

    @fact
    def first_session():
        return measured(lambda: session(0.5, growth=True))

    @fact
    def second_session():
        return measured(lambda: session(0.9))

elif first == "unwatched":
    session(0.25)

    @fact
    def closed_before():
        return measured(lambda: session(0.5))

elif first == "logical":
    gpu = tf.config.list_physical_devices("GPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration(memory_limit=m) for m in (64, 32)]
    tf.config.set_logical_device_configuration(gpu, parts)
elif first == "growth":
    tf.config.experimental.set_memory_growth(tf.config.list_physical_devices("GPU")[0], True)
if first == "nothing":
    tell()
    sys.exit(0)

with tf.device("/GPU:0"):
    resident = tf.ones([3, MIB // 4])


@fact
def eager():
    facts["resident"] = by_hand()
    meter = MemoryMeter()
    meter.start()
    with tf.device(f"/GPU:{count - 1}"):
        kept = tf.zeros([MIB])
        passing = kept + 1.0
        hand_peak = by_hand()
        del passing
    hand = by_hand()
    found = told(meter.measure())
    meter.close()
    del kept
    return {"told": found, "peak": hand_peak, "by hand": hand}


@fact
def nested():
    """An inner meter begins a new peak; the outer one keeps its own."""
    outer, inner = MemoryMeter(), MemoryMeter()
    outer.start()
    with tf.device("/GPU:0"):
        tf.zeros([2 * MIB])
        inner.start()
        tf.zeros([MIB])
        found = told(inner.measure()), told(outer.measure())
    inner.close()
    outer.close()
    return found


@fact
def user_resets():
    meter = MemoryMeter()
    meter.start()
    with tf.device("/GPU:0"):
        tf.zeros([2 * MIB])
        tf.config.experimental.reset_memory_stats("GPU:0")
        found = told(meter.measure()), tf.config.experimental.get_memory_info("GPU:0")
    meter.close()
    return found


@fact
def leak():
    kept = []
    meter = MemoryMeter()
    meter.start()

    def cycle():
        holder = [tf.zeros([2 * MIB])]
        holder.append(holder)

    with tf.device("/GPU:0"):
        cycle()
        kept.append(tf.zeros([MIB]))
    found = told(meter.with_leftovers(meter.measure()))
    meter.close()
    return found


@fact
def in_a_record():
    with watch() as seen, tf.device("/GPU:0"):
        tf.zeros([MIB])
    return {"told": told(seen.record.memory), "text": str(seen)}


tell()
