"""A ``tf.device`` that names another device: the fault that a refactoring leaves behind.

That it was obeyed is in TensorFlow's placement log and run metadata: the op is on the CPU there.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Planted, Step, fault
from benchmarks.accuracy.programs.clean_layers import KL, fit, paired

OPT = tf.keras.optimizers
REQUESTED = "requested-elsewhere"


def pinned(type: str, name: str = "*", **more: object) -> Planted:
    return Planted(type, REQUESTED, name, line=True, **more)


ON_CPU_LOSS = tuple(pinned(kind) for kind in ("Cosh", "Sub"))


class OnCpu(KL.Layer):
    """A layer whose computation was pinned to the CPU."""

    def call(self, x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            return tf.math.sin(x)


@fault("eager", pinned("MatMul"))
def eager_op_pinned() -> Step:
    """One eager op under a CPU scope."""

    def step() -> None:
        x = tf.ones([2, 2]) * 2.0
        with tf.device("/CPU:0"):
            y = tf.matmul(x, x)
        y + 1.0

    return step


@fault("eager", pinned("Sin"))
def layer_pinned_eagerly() -> Step:
    """A pinned layer in a Sequential model that is called eagerly."""
    model = tf.keras.Sequential([KL.Dense(3), OnCpu(), KL.Dense(2)])
    return lambda: model(tf.ones([2, 3]))


@fault("nested scopes", pinned("Sin"))
def nested_scopes_eager() -> Step:
    """GPU outside, CPU inside, GPU again innermost."""

    def step() -> None:
        with tf.device("/GPU:0"):
            x = tf.cos(tf.ones([2]))
            with tf.device("/CPU:0"):
                y = tf.sin(x)
                with tf.device("/GPU:0"):
                    tf.exp(y)

    return step


@fault("nested scopes", pinned("Sin"))
def nested_scopes_in_function() -> Step:
    """The same in a tf.function, with a name scope between."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/GPU:0"), tf.name_scope("outer"):
            x = tf.cos(x)
            with tf.device("/CPU:0"), tf.name_scope("inner"):
                x = tf.sin(x)
                with tf.device("/GPU:0"):
                    x = tf.exp(x)
        return x

    return lambda: step(tf.ones([2]))


@fault("function", pinned("MatMul", "*pinned_product"))
def function_op_pinned() -> Step:
    """One op of a tf.function under a CPU scope."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        y = tf.nn.relu(x @ x)
        with tf.device("/CPU:0"):
            y = tf.matmul(y, y, name="pinned_product")
        return y @ x

    return lambda: step(tf.ones([2, 2]))


@fault("function", pinned("Sin"))
def inner_function_pinned() -> Step:
    """A pinned op in a function that is called by a function (inlined by the runtime)."""

    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            return tf.sin(x)

    @tf.function
    def outer(x: tf.Tensor) -> tf.Tensor:
        return tf.cos(inner(tf.exp(x)))

    return lambda: outer(tf.ones([2]))


@fault("function", pinned("MatMul"), pinned("Relu"))
def function_called_on_cpu() -> Step:
    """Nothing in the function asks for a device; its call does."""

    @tf.function
    def forward(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(x @ x)

    x = tf.ones([2, 2])

    def step() -> None:
        with tf.device("/CPU:0"):
            forward(x)

    return step


@fault("function", pinned("MatMul"), pinned("Relu"))
def inner_call_on_cpu() -> Step:
    """A function calls another one under a CPU scope."""

    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        return tf.nn.relu(x @ x)

    @tf.function
    def outer(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            y = inner(x)
        return tf.exp(y)

    return lambda: outer(tf.ones([2, 2]))


@fault("control flow", pinned("Sin"))
def while_body_pinned() -> Step:
    """A pinned op in the body of a loop."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        for _ in tf.range(3):
            with tf.device("/CPU:0"):
                x = tf.sin(x)
            x = tf.exp(x)
        return x

    return lambda: step(tf.ones([2]))


@fault("control flow", pinned("Sin"))
def cond_branch_pinned() -> Step:
    """A pinned op in one branch of a condition."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        if tf.reduce_sum(x) > 0.0:
            with tf.device("/CPU:0"):
                return tf.sin(x)
        return tf.exp(x)

    return lambda: step(tf.ones([2]))


@fault("custom loop", pinned("Sin"))
def dataset_loop_body_pinned() -> Step:
    """A pinned op in ``for x in dataset`` inside a tf.function."""
    data = tf.data.Dataset.from_tensor_slices(np.ones((4, 2), "f")).batch(2)

    @tf.function
    def epoch() -> tf.Tensor:
        total = 0.0
        for x in data:
            with tf.device("/CPU:0"):
                y = tf.sin(x)
            total += tf.reduce_sum(tf.exp(y))
        return total

    return epoch


@fault("backward", pinned("Cosh"), pinned("Mul", sure=False))
def custom_gradient_pinned() -> Step:
    """Only the gradient's own computation is pinned."""

    @tf.custom_gradient
    def double(x: tf.Tensor) -> tuple[tf.Tensor, object]:
        def backward(upstream: tf.Tensor) -> tf.Tensor:
            with tf.device("/CPU:0"):
                return upstream * tf.cosh(x)

        return tf.exp(x), backward

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = double(tf.sin(x))
        return tape.gradient(y, x)

    return lambda: step(tf.ones([2]))


@fault("backward", pinned("MatMul"), pinned("Fill", sure=False), pinned("*Grad", sure=False),
       pinned("Mul", sure=False), pinned("Tile", sure=False), pinned("Reshape", sure=False),
       pinned("RealDiv", sure=False))  # fmt: skip
def tape_gradient_on_cpu() -> Step:
    """The forward pass is on the GPU, tape.gradient runs under a CPU scope."""
    weight = tf.Variable(tf.ones([3, 2]))

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(tf.ones([2, 3]) @ weight))
        with tf.device("/CPU:0"):
            tape.gradient(loss, weight)

    return step


@fault("optimizer", pinned("Sqrt"))
def gradient_norm_on_cpu() -> Step:
    """Gradients are clipped by their global norm, which was pinned."""
    layer = KL.Dense(2)
    layer.build((None, 3))
    optimizer = OPT.SGD(0.1)
    optimizer.build(layer.trainable_variables)

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x))
        gradients = tape.gradient(loss, layer.trainable_variables)
        total = tf.add_n([tf.reduce_sum(g**2) for g in gradients])
        with tf.device("/CPU:0"):
            norm = tf.sqrt(total)
        gradients = [g / tf.maximum(norm, 1.0) for g in gradients]
        optimizer.apply_gradients(paired(gradients, layer.trainable_variables))

    return lambda: step(tf.ones([2, 3]))


@fault("loss", *ON_CPU_LOSS, compiled=(), note="XLA ignores that")
def loss_pinned(jit: bool | None) -> Step:
    """A loss of one's own with a pinned op, through fit; compiled, XLA ignores the pin."""

    def loss(y: tf.Tensor, predicted: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            distance = tf.math.cosh(y - predicted)
        return tf.reduce_mean(distance)

    model = tf.keras.Sequential([KL.Dense(1)])
    return fit(model, np.ones((4, 3), "f"), np.ones((4, 1), "f"), jit, loss=loss)


@fault("forward", pinned("Sin"), compiled=(), note="XLA ignores that")
def layer_pinned_in_fit(jit: bool | None) -> Step:
    """A pinned layer in fit; compiled, the pin is ignored, and a note says so."""
    model = tf.keras.Sequential([KL.Dense(3), OnCpu(), KL.Dense(1)])
    return fit(model, np.ones((4, 3), "f"), np.ones((4, 1), "f"), jit)


@fault("fused", pinned("MatMul", "*dense*"), pinned("BiasAdd"), pinned("Relu"))
def dense_layer_on_cpu_in_function() -> Step:
    """A whole dense layer with its activation on the CPU: TensorFlow fuses it to one node there,
    an op that exists for the CPU only."""
    layer = KL.Dense(4, activation="relu", name="dense")
    layer.build((None, 4))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        x = tf.exp(x)
        with tf.device("/CPU:0"):
            x = layer(x)
        return tf.exp(x)

    return lambda: step(tf.ones([2, 4]))


@fault(
    "fused",
    *(pinned(kind) for kind in ("Conv2D", "BiasAdd", "Relu")),
    *(pinned(kind, sure=False) for kind in ("Reshape", "Squeeze")),
)
def convolution_on_cpu_in_function() -> Step:
    """The same with a convolution."""
    layer = KL.Conv2D(4, 3, activation="relu")
    layer.build((None, 8, 8, 3))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            x = layer(x)
        return tf.exp(x)

    return lambda: step(tf.ones([1, 8, 8, 3]))


@fault("fused", pinned("Sin"), pinned("Cosh"), pinned("Exp"))
def chain_of_unary_ops_on_cpu() -> Step:
    """Three unary ops in a row become one composition on the CPU."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            y = tf.exp(tf.cosh(tf.sin(x)))
        return y @ x

    return lambda: step(tf.ones([2, 2]))


@fault("fused", pinned("Square", logged="Mul"))
def rewritten_op_on_cpu() -> Step:
    """``x * x`` becomes Square, under a name that an optimiser makes."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"), tf.name_scope("scope"):
            y = x * x
        return tf.exp(y)

    return lambda: step(tf.ones([2, 2]))
