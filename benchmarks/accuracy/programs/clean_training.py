"""Training loops, optimisers, precision, strategies, saving: all of it clean."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from benchmarks.accuracy.program import Step, clean
from benchmarks.accuracy.programs.clean_layers import KL, fit, paired

OPT = tf.keras.optimizers


def _optimizer_step(optimizer: object) -> Step:
    """A dense layer and an embedding, trained by ``optimizer`` in a tf.function."""
    model = tf.keras.Sequential([KL.Input((2,)), KL.Embedding(8, 3), KL.Flatten(), KL.Dense(2)])
    ids = tf.constant([[1, 2], [3, 1]])
    model(ids)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(ids, training=True) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(paired(tape.gradient(loss, weights), weights))
        return loss

    return step


@clean("optimizers")
def sgd_with_momentum() -> Step:
    """SGD, Nesterov momentum, clipped gradients."""
    return _optimizer_step(OPT.SGD(0.1, momentum=0.9, nesterov=True, clipnorm=1.0))


@clean("optimizers")
def adam_with_ema() -> Step:
    """Adam with AMSGrad and an exponential moving average of the weights."""
    return _optimizer_step(OPT.Adam(amsgrad=True, use_ema=True, ema_overwrite_frequency=1))


@clean("optimizers")
def adamw() -> Step:
    """AdamW with a cosine schedule."""
    return _optimizer_step(OPT.AdamW(OPT.schedules.CosineDecay(0.1, 10), weight_decay=0.01))


@clean("optimizers")
def rmsprop_centered() -> Step:
    """RMSprop, centred, with momentum."""
    return _optimizer_step(OPT.RMSprop(centered=True, momentum=0.5))


@clean("optimizers")
def adagrad_adadelta_adamax() -> Step:
    """Three of the adaptive ones."""
    steps = [_optimizer_step(o) for o in (OPT.Adagrad(), OPT.Adadelta(), OPT.Adamax())]
    return lambda: [step() for step in steps]


@clean("optimizers")
def nadam_ftrl() -> Step:
    """Nadam, whose schedule is a product that it keeps, and FTRL."""
    steps = [_optimizer_step(o) for o in (OPT.Nadam(), OPT.Ftrl())]
    return lambda: [step() for step in steps]


@clean("optimizers")
def adafactor_lion() -> Step:
    """Adafactor, with its factored second moments, and Lion."""
    kinds = [getattr(OPT, name, None) for name in ("Adafactor", "Lion")]
    if kinds[1] is None:
        kinds[1] = getattr(getattr(OPT, "experimental", None), "Lion", None)
    steps = [_optimizer_step(kind()) for kind in kinds if kind is not None]
    return lambda: [step() for step in steps]


@clean("optimizers")
def legacy_adam(jit: bool | None) -> Step:
    """Keras' optimiser by name, through fit, with steps run several at a time."""
    model = tf.keras.Sequential([KL.Dense(2)])
    x = np.ones((8, 3), "f")
    return fit(model, x, np.ones((8, 2), "f"), jit, optimizer="adam", steps_per_execution=2)


@clean("custom loop")
def loop_over_dataset_in_function() -> Step:
    """``for x in dataset`` inside a tf.function: the body becomes a dataset's function."""
    layer = KL.Dense(2)
    layer.build((None, 3))
    optimizer = OPT.SGD(0.1)
    optimizer.build(layer.trainable_variables)
    data = tf.data.Dataset.from_tensor_slices(np.ones((6, 3), "f")).batch(2)

    @tf.function
    def epoch() -> tf.Tensor:
        total = 0.0
        for x in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(layer(x) ** 2)
            weights = layer.trainable_variables
            optimizer.apply_gradients(paired(tape.gradient(loss, weights), weights))
            total += loss
        return total

    return epoch


@clean("custom loop")
def eager_loop() -> Step:
    """GradientTape without any function, second derivatives among it."""
    weight = tf.Variable(tf.ones([3, 2]))

    def step() -> None:
        x = tf.random.normal([4, 3])
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = tf.reduce_sum(tf.tanh(x @ weight))
            slope = inner.gradient(loss, weight)
            penalty = tf.reduce_sum(slope**2)
        weight.assign_sub(0.1 * outer.gradient(penalty, weight))

    return step


@clean("custom loop")
def gradient_accumulation() -> Step:
    """Gradients kept in variables and applied at every second step; a step counter decides."""
    weight = tf.Variable(tf.ones([3, 2]))
    kept = tf.Variable(tf.zeros([3, 2]), trainable=False)
    counter = tf.Variable(0, dtype=tf.int64, trainable=False)

    @tf.function
    def step(x: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x @ weight)
        kept.assign_add(tape.gradient(loss, weight))
        counter.assign_add(1)
        if counter % 2 == 0:
            weight.assign_sub(kept * 0.1)
            kept.assign(tf.zeros_like(kept))

    def run() -> None:
        for _ in range(2):
            step(tf.ones([4, 3]))

    return run


@clean("custom loop")
def while_loop_of_steps() -> Step:
    """``tf.range`` steps inside one tf.function."""
    weight = tf.Variable(tf.ones([3, 3]))

    @tf.function
    def steps(x: tf.Tensor) -> tf.Tensor:
        for _ in tf.range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.nn.relu(x @ weight))
            weight.assign_sub(tape.gradient(loss, weight))
        return loss

    return lambda: steps(tf.ones([2, 3]))


@clean("custom loop")
def custom_gradient_and_recompute() -> Step:
    """A gradient of one's own, and one that is computed again to save memory."""

    @tf.custom_gradient
    def clipped(x: tf.Tensor) -> tuple[tf.Tensor, object]:
        return tf.exp(x), lambda upstream: tf.clip_by_value(upstream, -1.0, 1.0)

    layer = KL.Dense(3)
    layer.build((None, 3))
    again = tf.recompute_grad(lambda x: tf.nn.relu(layer(x)))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(again(clipped(x)))
        return tape.gradient(y, x)

    return lambda: step(tf.ones([2, 3]))


@clean("custom loop")
def jacobian_and_vectorized_map() -> Step:
    """A Jacobian by pfor, and vectorized_map."""
    weight = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def step(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            y = tf.tanh(x @ weight)
        rows = tf.vectorized_map(lambda row: tf.linalg.normalize(row)[0], x)
        return tape.jacobian(y, weight), rows

    return lambda: step(tf.ones([2, 3]))


@contextlib.contextmanager
def _policy(name: str) -> Iterator[None]:
    before = tf.keras.mixed_precision.global_policy()
    tf.keras.mixed_precision.set_global_policy(name)
    try:
        yield
    finally:
        tf.keras.mixed_precision.set_global_policy(before)


@clean("mixed precision")
def mixed_float16_training(jit: bool | None) -> Step:
    """float16 with loss scaling, which counts good steps and tests for infinities."""
    with _policy("mixed_float16"):
        model = tf.keras.Sequential([KL.Dense(4, "relu"), KL.Dense(1, dtype="float32")])
        return fit(model, np.ones((4, 3), "f"), np.ones((4, 1), "f"), jit, optimizer="adam")


@clean("mixed precision")
def mixed_bfloat16_conv() -> Step:
    """bfloat16 convolution, eagerly.  Without ReLU, which 2.12 has no GPU kernel for."""
    with _policy("mixed_bfloat16"):
        model = tf.keras.Sequential([KL.Conv2D(4, 3), KL.GlobalAveragePooling2D()])
    return lambda: model(tf.ones([1, 8, 8, 3]), training=True)


@clean("mixed precision")
def loss_scaling_by_hand() -> Step:
    """Half precision, scaled up and down again in a custom loop."""
    weight = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            y = tf.cast(x, tf.float16) @ tf.cast(weight, tf.float16)
            loss = tf.reduce_mean(tf.cast(y, tf.float32)) * 128.0
        gradient = tape.gradient(loss, weight) / 128.0
        good = tf.reduce_all(tf.math.is_finite(gradient))
        weight.assign_sub(tf.where(good, gradient, tf.zeros_like(gradient)))
        return loss

    return lambda: step(tf.ones([2, 3]))


@functools.cache
def mirrored() -> tf.distribute.Strategy:
    """One for the process: two would share the keys of their collective ops, and the second one's
    tensors be taken for the first one's (TensorFlow 2.12 to 2.21, on CPUs as well)."""
    return tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])


@clean("strategy")
def mirrored_fit() -> Step:
    """MirroredStrategy on two GPUs, through fit."""
    strategy = mirrored()
    with strategy.scope():
        model = tf.keras.Sequential([KL.Dense(4), KL.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)
    x, y = np.ones((4, 3), "f"), np.ones((4, 1), "f")
    return lambda: model.fit(x, y, batch_size=4, verbose=0)


@clean("strategy")
def mirrored_custom_loop() -> Step:
    """strategy.run and strategy.reduce on two GPUs: the sum is made on the CPU by TensorFlow."""
    strategy = mirrored()
    with strategy.scope():
        weight = tf.Variable(tf.ones([3, 2]))

    @tf.function
    def step() -> tf.Tensor:
        def replica() -> tf.Tensor:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.ones([2, 3]) @ weight)
            gradient = tape.gradient(loss, weight)
            context = tf.distribute.get_replica_context()
            weight.assign_sub(context.all_reduce("sum", gradient))
            return loss

        losses = strategy.run(replica)
        return strategy.reduce("sum", losses, axis=None)

    return step


@clean("strategy")
def two_gpus_by_hand() -> Step:
    """Model parallelism: halves on two devices, copies between them."""
    with tf.device("/GPU:0"):
        first = tf.Variable(tf.ones([3, 4]))
    with tf.device("/GPU:1"):
        second = tf.Variable(tf.ones([4, 2]))

    @tf.function
    def step(x: tf.Tensor) -> tf.Tensor:
        with tf.device("/GPU:0"):
            hidden = tf.nn.relu(x @ first)
        with tf.device("/GPU:1"):
            return hidden @ second

    return lambda: step(tf.ones([2, 3]))


@clean("strategy", on="GPU:0")
def one_device_strategy() -> Step:
    """OneDeviceStrategy for the first GPU."""
    strategy = tf.distribute.OneDeviceStrategy("/gpu:0")
    with strategy.scope():
        weight = tf.Variable(tf.ones([3, 2]))
    step = tf.function(lambda: strategy.run(lambda: tf.ones([2, 3]) @ weight))
    return lambda: step()


@clean("saving")
def checkpoint() -> Step:
    """Weights and optimiser saved and restored; strings and files stay on the host."""
    layer = KL.Dense(2)
    layer.build((None, 3))
    optimizer = OPT.Adam()
    optimizer.build(layer.trainable_variables)
    saved = tf.train.Checkpoint(layer=layer, optimizer=optimizer)
    folder = tempfile.mkdtemp()

    def run() -> None:
        path = saved.save(f"{folder}/ckpt")
        saved.restore(path)

    return run


@clean("saving")
def checkpoint_manager() -> Step:
    """A checkpoint manager with a step counter."""
    weight, count = tf.Variable(tf.ones([3])), tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(weight=weight, count=count), tempfile.mkdtemp(), max_to_keep=1
    )

    def run() -> None:
        count.assign_add(1)
        manager.save()

    return run


@clean("saving")
def saved_model() -> Step:
    """A module exported, loaded and called through its signature."""

    class Module(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(tf.ones([3, 2]))

        @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"y": tf.nn.softmax(x @ self.weight)}

    folder = tempfile.mkdtemp()
    tf.saved_model.save(Module(), folder)
    loaded = tf.saved_model.load(folder)
    call = loaded.signatures["serving_default"]
    return lambda: call(tf.ones([2, 3]))


@clean("saving")
def keras_file() -> Step:
    """A Keras model written to a file, read and called."""
    model = tf.keras.Sequential([KL.Input((3,)), KL.Dense(2)])
    path = f"{tempfile.mkdtemp()}/model.keras"

    def run() -> None:
        model.save(path)
        tf.keras.models.load_model(path)(tf.ones([2, 3]))

    return run


@clean("saving")
def save_and_load_weights() -> Step:
    """Weights as an HDF5 file, and by get_weights and set_weights."""
    model = tf.keras.Sequential([KL.Input((3,)), KL.Dense(2), KL.BatchNormalization()])
    path = f"{tempfile.mkdtemp()}/model.weights.h5"

    def run() -> None:
        model.save_weights(path)
        model.load_weights(path)
        model.set_weights(model.get_weights())

    return run
