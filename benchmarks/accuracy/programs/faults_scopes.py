"""More of ``tf.device``: data, metrics, variables, Sessions, strategies, two devices, threads."""

from __future__ import annotations

import tempfile
import threading

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Planted, Step, fault
from benchmarks.accuracy.programs.clean_layers import KL, fit, paired
from benchmarks.accuracy.programs.clean_training import mirrored
from benchmarks.accuracy.programs.faults_requested import REQUESTED, OnCpu, pinned

v1 = tf.compat.v1


@fault("preprocessing", pinned("ResizeBilinear"), pinned("Square"))
def preprocessing_pinned() -> Step:
    """Squaring and resizing of images pinned to the CPU in front of the model."""
    layer = KL.Conv2D(2, 3)

    @tf.function
    def step(images: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            images = tf.image.resize(tf.square(images), [6, 6])
        return layer(images)

    return lambda: step(tf.ones([1, 8, 8, 3]))


@fault(
    "preprocessing",
    pinned("RandomUniform"),
    pinned("RealDiv"),
    *(pinned(kind, sure=False) for kind in ("Cast", "Mul", "Sub", "AddV2")),
)
def augmentation_eager_pinned() -> Step:
    """S18 of the public reports: an image made on the CPU, then a product on the GPU."""

    def step() -> None:
        with tf.device("/CPU:0"):
            image = tf.random.uniform([8, 8, 3]) / 255.0
        tf.reshape(image, [1, -1]) @ tf.ones([192, 10])

    return step


@fault("metric", pinned("Sum"))
def metric_pinned() -> Step:
    """A metric's update under a CPU scope."""
    total = tf.Variable(0.0)

    @tf.function
    def step(x: tf.Tensor) -> None:
        y = x @ x
        with tf.device("/CPU:0"):
            mean = tf.reduce_sum(y)
        total.assign_add(mean)

    return lambda: step(tf.ones([2, 2]))


VARIABLE_ON_CPU = (
    pinned("VarHandleOp", sure=False),
    Planted("ReadVariableOp", "colocated", sure=False),
    pinned("AssignVariableOp", sure=False),
)


@fault("variable", *VARIABLE_ON_CPU, Planted("AssignSubVariableOp", "colocated"))
def variable_on_cpu() -> Step:
    """The weights were made under a CPU scope: reads and updates follow them."""
    with tf.device("/CPU:0"):
        weight = tf.Variable(np.ones((3, 2), "f"))

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x @ weight)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))

    return lambda: step(tf.ones([2, 3]))


@fault("embeddings", *VARIABLE_ON_CPU, Planted("ResourceGather", "colocated"))
def embedding_table_on_cpu() -> Step:
    """An embedding table kept in host memory: the lookup runs there, too."""
    with tf.device("/CPU:0"):
        table = tf.Variable(np.ones((10, 4), "f"))
    call = tf.function(lambda ids: tf.nn.embedding_lookup(table, ids) @ tf.ones([4, 2]))
    return lambda: call(tf.constant([1, 2]))


@fault("optimizer", *VARIABLE_ON_CPU, Planted("ResourceApplyAdam", "colocated"))
def raw_optimizer_on_cpu_variable() -> Step:
    """S32: a fused optimiser update follows its variable."""
    with tf.device("/CPU:0"):
        weight, m, v = (tf.Variable(np.ones((2, 2), "f")) for _ in range(3))

    @tf.function
    def step(gradient: tf.Tensor) -> None:
        tf.raw_ops.ResourceApplyAdam(
            var=weight.handle, m=m.handle, v=v.handle, beta1_power=0.9, beta2_power=0.9, lr=0.1,
            beta1=0.9, beta2=0.9, epsilon=1e-7, grad=gradient,
        )  # fmt: skip

    return lambda: step(tf.ones([2, 2]) @ tf.ones([2, 2]))


@fault("one of thousands", pinned("Sin", "*needle*"))
def one_of_two_thousand() -> Step:
    """2,000 ops on the GPU and one on the CPU."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        for number in range(1000):
            x = tf.tanh(x + 1.0)
            if number == 617:
                with tf.device("/CPU:0"):
                    x = tf.sin(x, name="needle")
        return x

    return lambda: step(tf.ones([2, 2]))


@fault("one of thousands", Planted("Sin", REQUESTED))
def one_layer_of_mobilenet() -> Step:
    """MobileNetV2 with a pinned layer behind it, eagerly."""
    model = tf.keras.applications.MobileNetV2(
        weights=None, input_shape=(32, 32, 3), alpha=0.35, include_top=False
    )
    layer = OnCpu()
    return lambda: layer(model(tf.ones([1, 32, 32, 3]), training=False))


@fault("two devices", pinned("MatMul", "*second*"), on="GPU:0")
def on_the_other_gpu() -> Step:
    """The rule is for GPU:0, and one product is on GPU:1."""

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        y = tf.matmul(x, x, name="first")
        with tf.device("/GPU:1"):
            y = tf.matmul(y, y, name="second")
        return y

    return lambda: step(tf.ones([2, 2]))


@fault("two devices", pinned("Exp"), on="GPU:1")
def left_on_the_first_gpu() -> Step:
    """The rule is for GPU:1, and one op asks for GPU:0, eagerly."""

    def step() -> None:
        with tf.device("/GPU:1"):
            x = tf.ones([2, 2]) @ tf.ones([2, 2])
        with tf.device("/GPU:0"):
            y = tf.exp(x)
        with tf.device("/GPU:1"):
            y @ y

    return step


@fault("two devices", pinned("Sin"), pinned("MatMul"))
def pinned_in_replica() -> Step:
    """MirroredStrategy on two GPUs, with a pinned op in the replica's function."""
    strategy = mirrored()

    with strategy.scope():
        weight = tf.Variable(np.ones((2, 2), "f"))

    @tf.function
    def step() -> object:
        def replica() -> tf.Tensor:
            with tf.device("/CPU:0"):
                return tf.sin(weight @ weight)

        return strategy.run(replica)

    return step


@fault("v1 session", pinned("MatMul", "pinned"))
def v1_op_pinned() -> Step:
    """A Session's graph with one pinned op."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 2])
        y = tf.matmul(x, x, name="free")
        with tf.device("/CPU:0"):
            y = tf.matmul(y, y, name="pinned")
        z = tf.exp(y)
        session = v1.Session(graph=graph)
    return lambda: session.run(z, {x: np.eye(2)})


@fault("v1 session", pinned("MatMul"))
def v1_device_function() -> Step:
    """A device function, as distributed TensorFlow 1 code has them."""

    def choose(op: tf.Operation) -> str:
        return "/device:CPU:0" if op.type == "MatMul" else ""

    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 2])
        with graph.device(choose):
            z = tf.exp(tf.matmul(x, x))
        session = v1.Session(graph=graph)
    return lambda: session.run(z, {x: np.eye(2)})


@fault(
    "v1 session",
    pinned("VariableV2", "weight"),
    Planted("VariableV2", "colocated", "weight/Momentum"),
    pinned("Assign", "weight/Assign", sure=False),
    Planted("Assign", "colocated", "weight/Momentum/*", sure=False),
    *(
        Planted(kind, "colocated", "*/Initializer/*", sure=False)
        for kind in ("RandomUniform", "Mul", "AddV2")
    ),
    Planted("ApplyMomentum", "colocated"),
)
def v1_variable_pinned() -> Step:
    """A reference variable on the CPU, and the optimiser's slot and update that follow it."""
    with tf.Graph().as_default() as graph:
        with tf.device("/CPU:0"):
            weight = v1.get_variable("weight", [2, 2], use_resource=False)
        loss = tf.reduce_mean(tf.matmul(weight, weight))
        train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        session = v1.Session(graph=graph)
        session.run(v1.global_variables_initializer())
    return lambda: session.run(train)


@fault("saving", Planted("MatMul", REQUESTED), Planted("Exp", REQUESTED))
def saved_model_pinned() -> Step:
    """The pin came with a SavedModel; its source line is gone."""

    class Module(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([2, 2], tf.float32)])
        def __call__(self, x: tf.Tensor) -> tf.Tensor:
            with tf.device("/CPU:0"):
                return tf.exp(x) @ x

    folder = tempfile.mkdtemp()
    tf.saved_model.save(Module(), folder)
    loaded = tf.saved_model.load(folder)
    return lambda: loaded(tf.ones([2, 2]))


@fault("threads", pinned("MatMul"), pinned("Exp"))
def function_in_thread() -> Step:
    """A function with a pinned op, called from a worker thread of the test."""

    @tf.function
    def inner(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/CPU:0"):
            return tf.exp(x) @ x

    def step() -> None:
        worker = threading.Thread(target=lambda: inner(tf.ones([2, 2])))
        worker.start()
        worker.join()

    return step


@fault("raising", pinned("MatMul"))
def op_that_raised() -> Step:
    """A pinned op that fails was placed all the same."""
    x = tf.ones([2, 3])

    def step() -> None:
        tf.exp(tf.ones([2]))
        try:
            with tf.device("/CPU:0"):
                tf.matmul(x, x)
        except tf.errors.InvalidArgumentError:
            pass

    return step


ANYTHING_ON_CPU = (
    Planted("*", REQUESTED, sure=False),
    Planted("*", "colocated", sure=False),
)


@fault(
    "forward",
    pinned("MatMul"),
    Planted("_update_step_xla", "xla", sure=False),  # Keras 2 compiles its optimisers' updates
    *ANYTHING_ON_CPU,
    compiled=(Planted("*", "xla"), *ANYTHING_ON_CPU),
)
def fit_under_cpu_scope(jit: bool | None) -> Step:
    """A model and all of its fit under a CPU scope; compiled, its step is one unit there."""
    with tf.device("/CPU:0"):
        model = tf.keras.Sequential([KL.Dense(4), KL.Dense(1)])
        train = fit(model, np.ones((4, 3), "f"), np.ones((4, 1), "f"), jit)

    def step() -> None:
        with tf.device("/CPU:0"):
            train()

    return step


@fault("function", pinned("MatMul"), pinned("Exp"))
def function_moved_after_it_was_warm() -> Step:
    """A function that ran on the GPU before is called under a CPU scope."""

    @tf.function
    def forward(x: tf.Tensor) -> tf.Tensor:
        return tf.exp(x) @ x

    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    forward(x)

    def step() -> None:
        forward(x)
        with tf.device("/CPU:0"):
            forward(x)

    return step


@fault("optimizer", pinned("Mul"), *ANYTHING_ON_CPU)
def apply_gradients_on_cpu() -> Step:
    """The optimiser's own arithmetic under a CPU scope; its variables are on the GPU.

    Uncompiled: Keras 2 compiles an update by default, and XLA then refuses the variables.
    """
    layer = KL.Dense(2)
    layer.build((None, 3))
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    optimizer.jit_compile = False
    optimizer.build(layer.trainable_variables)

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x) ** 2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        with tf.device("/CPU:0"):
            scaled = [gradient * 0.5 for gradient in gradients]
            optimizer.apply_gradients(paired(scaled, layer.trainable_variables))

    return lambda: step(tf.ones([2, 3]))
