"""Colocation, host memory, GPUs that aren't there, what optimisers move, and compiled functions."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Planted, Step, clean, fault
from benchmarks.accuracy.programs.clean_layers import KL, fit
from benchmarks.accuracy.programs.faults_kernels import soft_placement

v1 = tf.compat.v1


@fault(
    "colocated",
    Planted("VarHandleOp", "requested-elsewhere", sure=False),
    Planted("AssignVariableOp", "requested-elsewhere", sure=False),
    Planted("AssignAddVariableOp", "colocated"),
)
def eager_update_of_cpu_variable() -> Step:
    """assign_add, eagerly, on a variable that was made on the CPU."""
    with tf.device("/CPU:0"):
        total = tf.Variable(np.ones((2, 2), "f"))
    return lambda: total.assign_add(tf.ones([2, 2]) @ tf.ones([2, 2]))


@fault("colocated", Planted("Exp", "colocated", "tied"), Planted("Sin", "requested-elsewhere"))
def v1_colocate_with() -> Step:
    """colocate_with ties an op to one that was pinned."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2])
        with tf.device("/CPU:0"):
            pinned = tf.sin(x, name="pinned")
        first = tf.cos(x, name="first")
        with v1.colocate_with(pinned):
            tied = tf.exp(first, name="tied")
        both = tf.add(tied, pinned)
        session = v1.Session(graph=graph)
    return lambda: session.run(both, {x: [1.0, 2.0]})


INITIAL_VALUE = tuple(
    Planted(kind, "colocated", "*/Initializer/*", sure=False)
    for kind in ("RandomUniform", "Mul", "AddV2")
)


@fault(
    "colocated",
    Planted("VariableV2", "colocated"),
    Planted("Assign", "colocated", sure=False),
    Planted("ApplyAdagradDA", "no-kernel"),
    *INITIAL_VALUE,
)
def v1_optimizer_without_kernel() -> Step:
    """AdagradDA has no GPU kernel, so that the reference variables that it updates are pulled to
    the CPU with it: the placer joins an op and its reference inputs into one group."""
    with tf.Graph().as_default() as graph:
        count = v1.train.get_or_create_global_step()
        weight = v1.get_variable("weight", [2, 2], use_resource=False)
        loss = tf.reduce_mean(tf.matmul(weight, weight))
        train = v1.train.AdagradDAOptimizer(0.1, count).minimize(loss, count)
        session = v1.Session(graph=graph)
        session.run(v1.global_variables_initializer())
    return lambda: session.run(train)


@fault(
    "optimizer",
    Planted("ResourceApplyAdagradDA", "no-kernel"),
    *INITIAL_VALUE,
    Planted("AssignVariableOp", "colocated", sure=False),
    Planted("ReadVariableOp", "colocated", sure=False),
    Planted("VarHandleOp", "colocated", sure=False),
)
def resource_optimizer_without_kernel() -> Step:
    """The same with resource variables in a Session."""
    with tf.Graph().as_default() as graph:
        count = v1.train.get_or_create_global_step()
        weight = v1.get_variable("weight", [2, 2], use_resource=True)
        loss = tf.reduce_mean(tf.matmul(weight, weight))
        train = v1.train.AdagradDAOptimizer(0.1, count).minimize(loss, count)
        session = v1.Session(graph=graph)
        session.run(v1.global_variables_initializer())
    return lambda: session.run(train)


@fault(
    "v1 session",
    Planted("VariableV2", "dtype", "counter"),
    Planted("Assign", "dtype", sure=False),
    Planted("AssignAdd", "dtype"),
)
def v1_int32_variable_on_gpu() -> Step:
    """S01: an int32 reference variable under a GPU scope; its request isn't honoured."""
    with tf.Graph().as_default() as graph:
        with tf.device("/device:GPU:0"):
            counter = v1.get_variable(
                "counter", [2], tf.int32, v1.zeros_initializer(), use_resource=False
            )
            bump = v1.assign_add(counter, [1, 1])
        session = v1.Session(graph=graph, config=soft_placement())
        session.run(v1.global_variables_initializer())
    return lambda: session.run(bump)


@fault(
    "eager",
    Planted("VarHandleOp", "dtype"),
    Planted("AssignVariableOp", "colocated", sure=False),
    Planted("ReadVariableOp", "colocated", sure=False),
    warm=False,
)
def int32_variable_on_gpu() -> Step:
    """``tf.Variable(42)`` under /GPU:0: its handle has no int32 kernel for the GPU."""

    def step() -> None:
        with tf.device("/GPU:0"):
            tf.Variable(42)

    return step


@fault("strict", Planted("AddV2", "host-memory"), strict=True)
def strict_int32_sum() -> Step:
    """On the GPU in name only: the kernel's int32 tensors are all in host memory."""

    @tf.function
    def step(x: tf.Tensor, ids: tf.Tensor, others: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return x @ x, tf.add(ids, others)

    x, ids = tf.ones([2, 2]), tf.cast(tf.ones([2, 2]), tf.int32)
    return lambda: step(x, ids, ids)


@fault("strict", Planted("Mul", "host-memory", "*product*"), strict=True)
def strict_int32_in_session() -> Step:
    """The same in a Session."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 2])
        ids, others = tf.cast(x, tf.int32), tf.cast(tf.exp(x), tf.int32)
        y = tf.cast(tf.multiply(ids, others, name="product"), tf.float32) @ x
        session = v1.Session(graph=graph)
    return lambda: session.run(y, {x: np.ones((2, 2))})


@fault("strict", Planted("AddV2", "host-memory"), strict=True)
def strict_int32_eager() -> Step:
    """And eagerly: the result's backing device is the CPU."""
    ids = tf.cast(tf.ones([2, 2]), tf.int32)
    return lambda: tf.add(ids, ids)


@fault("no gpu", Planted("MatMul", "no-gpu"), on="GPU:7")
def product_on_gpu_seven() -> Step:
    """The rule is for GPU:7, and there are two."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    def step() -> None:
        with tf.device("/GPU:7"):
            tf.matmul(x, x)

    return step


@fault("no gpu", Planted("MatMul", "no-gpu"), on="GPU:5")
def v1_product_on_gpu_five() -> Step:
    """A Session that asks for GPU:5 with soft placement."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 2])
        with tf.device("/device:GPU:5"):
            y = tf.matmul(x, x)
        session = v1.Session(graph=graph, config=soft_placement())
    return lambda: session.run(y, {x: np.eye(2)})


@fault("moved", Planted("RandomUniformInt", "moved"), Planted("MatMul", "moved", sure=False))
def moved_by_an_optimiser() -> Step:
    """The optimiser that takes small ops to the CPU is on.  The placer put the op on the
    GPU (placement log), and it is on the CPU in the optimised graph (run metadata)."""

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return x @ x, tf.random.uniform([2, 2], maxval=4, dtype=tf.int32)

    def run() -> None:
        before = tf.config.optimizer.get_experimental_options()
        tf.config.optimizer.set_experimental_options({"pin_to_host_optimization": True})
        try:
            step(tf.ones([2, 2]))
        finally:
            before.setdefault("pin_to_host_optimization", False)
            tf.config.optimizer.set_experimental_options(before)

    return run


@fault("xla", Planted("step", "xla"))
def compiled_function_on_cpu() -> Step:
    """A jit_compile=True function called under a CPU scope."""

    @tf.function(jit_compile=True)
    def step(x: tf.Tensor) -> tf.Tensor:
        return tf.exp(x @ x)

    x = tf.ones([2, 2])

    def run() -> None:
        with tf.device("/CPU:0"):
            step(x)

    return run


@fault("xla", Planted("inner", "xla"))
def compiled_inside_function_on_cpu() -> Step:
    """A compiled function called by a function, under a CPU scope there."""

    @tf.function(jit_compile=True)
    def inner(x: tf.Tensor) -> tf.Tensor:
        return tf.exp(x @ x)

    @tf.function
    def outer(x: tf.Tensor) -> tf.Tensor:
        y = tf.sin(x)
        with tf.device("/CPU:0"):
            y = inner(y)
        return tf.cos(y)

    return lambda: outer(tf.ones([2, 2]))


@fault(
    "xla",
    Planted("update", "xla"),
    Planted("AssignVariableOp", "requested-elsewhere", sure=False),
)
def compiled_step_without_result_on_cpu() -> Step:
    """A compiled training step that returns nothing, called on the CPU with its variable there."""
    with tf.device("/CPU:0"):
        weight = tf.Variable(np.ones((2, 2), "f"))

    @tf.function(jit_compile=True)
    def update() -> None:
        weight.assign(weight @ weight)

    def run() -> None:
        with tf.device("/CPU:0"):
            update()

    return run


@clean("xla")
def compiled_step_without_result() -> Step:
    """A compiled training step that returns nothing."""
    weight = tf.Variable(np.ones((2, 2), "f"))

    @tf.function(jit_compile=True)
    def update() -> None:
        weight.assign(weight @ weight)

    return lambda: update()


@clean("xla", note="")
def compiled_function_with_pin() -> Step:
    """A pin inside a compiled function is ignored by XLA."""

    @tf.function(jit_compile=True)
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            y = tf.exp(x)
        return y @ x

    return lambda: step(tf.ones([2, 2]))


@clean("xla")
def compiled_and_not() -> Step:
    """A compiled forward pass inside a custom training step, with its gradient."""
    layer = KL.Dense(2)
    layer.build((None, 3))
    forward = tf.function(lambda x: tf.nn.relu(layer(x)), jit_compile=True)

    @tf.function
    def step(x: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(forward(x))
        return tape.gradient(loss, layer.trainable_variables)

    return lambda: step(tf.ones([2, 3]))


@clean("xla")
def predict_and_evaluate(jit: bool | None) -> Step:
    """fit, evaluate and predict of a small classifier."""
    model = tf.keras.Sequential([KL.Dense(4, "relu"), KL.Dense(2)])
    x, y = np.ones((4, 3), "f"), np.ones((4, 2), "f")
    train = fit(model, x, y, jit)

    def step() -> None:
        train()
        model.evaluate(x, y, verbose=0)
        model.predict(x, verbose=0)

    return step
