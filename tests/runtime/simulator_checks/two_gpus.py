"""Two simulated GPUs: copies between them, MirroredStrategy, hiding one of them."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
from checks import check, run, short, where

from pytest_tfdevice import simulator

simulator.load(count=2, memory="1 GiB")

import tensorflow as tf  # noqa: E402

# One for all checks: collectives of a second one in the same process would meet the first one's.
strategy = tf.distribute.MirroredStrategy()


@check
def listed() -> Any:
    return [device.name for device in tf.config.list_logical_devices("GPU")]


@check
def copies() -> Any:
    with tf.device("GPU:0"):
        a = tf.ones([3])
    with tf.device("GPU:1"):
        b = a + 1
    return [where(a), where(b), b.numpy().tolist()]


@check
def function_on_both() -> Any:
    @tf.function
    def f(x: Any) -> Any:
        with tf.device("GPU:0"):
            y = x * 2
        with tf.device("GPU:1"):
            return y + 1

    result = f(tf.ones([2]))
    return [short(result.device), result.numpy().tolist()]


@check
def memory_of_each() -> Any:
    gc.collect()  # what earlier checks left would go meanwhile
    with tf.device("GPU:1"):
        before = tf.config.experimental.get_memory_info("GPU:1")["current"]
        other = tf.config.experimental.get_memory_info("GPU:0")["current"]
        kept = tf.zeros([256, 1024])
        grown = tf.config.experimental.get_memory_info("GPU:1")["current"] - before
        unchanged = tf.config.experimental.get_memory_info("GPU:0")["current"] - other
    del kept
    return [grown, unchanged]


@check
def mirrored_all_reduce() -> Any:
    with strategy.scope():
        v = tf.Variable(1.0)

    @tf.function
    def step() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            number = tf.cast(context.replica_id_in_sync_group + 1, tf.float32)
            return context.all_reduce("sum", number * v)

        return strategy.run(replica)

    results = strategy.experimental_local_results(step())
    return [
        [float(t) for t in results],
        [short(t.device) for t in results],
        [short(t.device) for t in strategy.experimental_local_results(v)],
    ]


@check
def mirrored_training() -> Any:
    with strategy.scope():
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [layers.Input((4,)), layers.Dense(8, activation="relu"), layers.Dense(1)]
        )
        model.compile("sgd", "mse")
    x = np.random.default_rng(0).random((64, 4)).astype("f")
    history = model.fit(x, x.sum(axis=1), epochs=3, batch_size=16, verbose=0).history["loss"]
    return [strategy.num_replicas_in_sync, [float(loss) for loss in history]]


@check
def nccl_all_reduce() -> Any:
    """What MirroredStrategy uses by default up to TF 2.15 or so, here by itself."""

    def reduce(reduction: str, dtype: Any) -> list[list[float]]:
        @tf.function
        def both() -> Any:
            results = []
            for i, values in enumerate(([1, 5], [3, 2])):
                with tf.device(f"GPU:{i}"):
                    results.append(
                        tf.raw_ops.NcclAllReduce(
                            input=tf.cast(tf.constant(values), dtype),
                            reduction=reduction,
                            num_devices=2,
                            shared_name=f"test {reduction} {dtype.name}",
                        )
                    )
            return results

        both()
        return [[float(x) for x in result] for result in both()]

    kinds = [("sum", tf.float32), ("min", tf.float16), ("max", tf.float64), ("prod", tf.int64)]
    return {reduction: reduce(reduction, dtype) for reduction, dtype in kinds}


run()
