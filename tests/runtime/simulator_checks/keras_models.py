"""Keras on a simulated GPU: training, and recurrent layers against the CPU."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any
from unittest import mock

import numpy as np
from checks import check, computed_on, devices_by_node, run, short

from pytest_tfdevice import simulator

simulator.load()

import tensorflow as tf  # noqa: E402
from tensorflow.python.eager import context  # noqa: E402

layers = tf.keras.layers


@check
def convolutional_network() -> Any:
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential(
        [
            layers.Input((12, 12, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.GlobalAveragePooling2D(),
            layers.Dropout(0.2),
            layers.Dense(3, activation="softmax"),
        ]
    )
    # jit_compile: else the step is one compiled unit and its nodes are not seen.
    model.compile("adam", "sparse_categorical_crossentropy", jit_compile=False)
    x = np.random.default_rng(0).random((32, 12, 12, 1)).astype("f")
    y = np.arange(32) % 3
    context.context().enable_graph_collection()
    losses = model.fit(x, y, epochs=2, batch_size=8, verbose=0).history["loss"]
    metadata = context.context().export_run_metadata()
    nodes = devices_by_node(metadata)
    context.context().disable_graph_collection()
    sample = tf.constant(x[:4])
    on_gpu = model(sample).numpy()
    with tf.device("CPU:0"):
        clone = tf.keras.models.clone_model(model)
        clone.set_weights(model.get_weights())
        on_cpu = clone(sample).numpy()
    convolutions = {device for name, device in nodes.items() if "onv2" in name.lower()}
    return {
        "losses": [float(loss) for loss in losses],
        "nodes": Counter(nodes.values()),
        "computed_on_cpu": computed_on("CPU:0", metadata),
        "convolutions": sorted(convolutions),
        "difference": float(np.abs(on_gpu - on_cpu).max()),
        "memory": tf.config.experimental.get_memory_info("GPU:0")["peak"],
    }


@check
def default_compilation() -> Any:
    model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3), layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).random((16, 4)).astype("f")
    history = model.fit(x, x.sum(axis=1), epochs=3, batch_size=8, verbose=0).history["loss"]
    return [float(loss) for loss in history]


@check
def mixed_precision() -> Any:
    tf.keras.mixed_precision.set_global_policy("mixed_float16")
    try:
        model = tf.keras.Sequential(
            [
                layers.Input((8, 8, 3)),
                layers.Conv2D(4, 3),
                layers.BatchNormalization(),
                layers.ReLU(),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dense(2, dtype="float32"),
            ]
        )
        model.compile("adam", "mse")
        x = np.random.default_rng(0).random((8, 8, 8, 3)).astype("f")
        return float(model.fit(x, np.zeros((8, 2)), verbose=0).history["loss"][0])
    finally:
        tf.keras.mixed_precision.set_global_policy("float32")


def without_cudnn() -> Any:
    """Has Keras compute recurrent layers by its own loop instead of the cuDNN op."""
    keras_3 = sys.modules.get("keras.src.backend.tensorflow.rnn")
    if keras_3 is not None:
        return mock.patch.object(keras_3, "_is_gpu_available", return_value=False)
    return mock.patch.object(tf.config, "list_logical_devices", return_value=[])


def recurrent_difference(kind: str, bidirectional: bool, masked: bool) -> list[Any]:
    """Where the layer ran, and its largest difference to Keras' own loop on the CPU: of the result
    and of all gradients."""
    tf.keras.utils.set_random_seed(1)
    x = tf.random.normal([3, 5, 4])
    mask = tf.sequence_mask([5, 3, 2], 5) if masked else None
    layer = getattr(layers, kind)(6, bias_initializer="random_normal")
    if bidirectional:
        layer = layers.Bidirectional(layer)

    def evaluate() -> tuple[list[Any], str]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=mask)
            loss = tf.reduce_sum(y * tf.cos(y))
        gradients = tape.gradient(loss, [x, *layer.trainable_variables])
        return [t.numpy() for t in (y, *gradients)], short(y.device)

    found, device = evaluate()
    with tf.device("CPU:0"), without_cudnn():
        wanted, _ = evaluate()
    worst = max(float(np.abs(a - b).max()) for a, b in zip(found, wanted, strict=True))
    return [device, worst]


@check
def recurrent_layers() -> Any:
    return {
        f"{kind} bidirectional={bidirectional} masked={masked}": recurrent_difference(
            kind, bidirectional, masked
        )
        for kind in ("LSTM", "GRU")
        for bidirectional in (False, True)
        for masked in (False, True)
    }


@check
def recurrent_kernel_is_used() -> Any:
    """The types of the ops that a traced LSTM and GRU run on the GPU."""
    model = tf.keras.Sequential(
        [layers.Input((5, 4)), layers.LSTM(4, return_sequences=True), layers.GRU(3)]
    )
    step = tf.function(lambda x: model(x, training=True))
    context.context().enable_graph_collection()
    step(tf.ones([2, 5, 4]))
    metadata = context.context().export_run_metadata()
    context.context().disable_graph_collection()
    found = set()
    for function in metadata.function_graphs:
        library = function.pre_optimization_graph.library.function
        for node in function.post_optimization_graph.node:
            # Keras 2 calls a function; an optimiser puts the variant for the device in its place,
            # under a longer name.
            called = node.attr["f"].func.name if "f" in node.attr else ""
            bodies = [f.node_def for f in library if called.startswith(f.signature.name)]
            inner = [n for body in bodies for n in body]
            found |= {f"{n.op} {short(node.device)}" for n in (node, *inner) if "Cudnn" in n.op}
    return sorted(found)


@check
def recurrent_training() -> Any:
    model = tf.keras.Sequential([layers.Input((5, 4)), layers.LSTM(4), layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).random((16, 5, 4)).astype("f")
    history = model.fit(x, np.zeros((16, 1)), epochs=3, verbose=0).history["loss"]
    return [float(loss) for loss in history]


@check
def optimizers() -> Any:
    found = {}
    for name in ("SGD", "Adam", "RMSprop", "Adagrad", "Ftrl", "Nadam"):
        optimizer = getattr(tf.keras.optimizers, name)(0.1)
        variable = tf.Variable(tf.ones([5]))
        optimizer.build([variable])
        optimizer.apply_gradients([(tf.fill([5], 0.5), variable)])
        found[name] = [short(variable.device), float(variable.numpy()[0])]
    return found


run()
