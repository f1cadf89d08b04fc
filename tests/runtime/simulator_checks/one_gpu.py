"""One simulated GPU of 512 MiB: operations, functions, variables, memory, compiled functions."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from checks import check, devices_by_node, run, short, where

from pytest_tfdevice import simulator

progress: list[str] = []
simulation = simulator.load(memory="512 MiB", progress=progress.append)

import tensorflow as tf  # noqa: E402


@check
def simulation_facts() -> Any:
    again = simulator.load(1, 512 * 2**20)
    return {
        "same": again is simulation and simulator.loaded() is simulation,
        "count": simulation.count,
        "memory": simulation.memory,
        "tensorflow": simulation.tensorflow == tf.__version__,
        "added": simulation.stats.added,
        "seconds": simulation.stats.seconds,
        "text": str(simulation),
    }


@check
def loading_with_other_arguments() -> Any:
    errors = []
    for arguments in ((2, "512 MiB"), (1, "1 GiB")):
        try:
            simulator.load(*arguments)
        except simulator.SimulatorError as error:
            errors.append(str(error))
    return errors


@check
def listed() -> Any:
    [gpu] = tf.config.list_physical_devices("GPU")
    details = tf.config.experimental.get_device_details(gpu)
    return [gpu.name, details["device_name"], list(details["compute_capability"])]


@check
def growth() -> Any:
    [gpu] = tf.config.list_physical_devices("GPU")
    before = tf.config.experimental.get_memory_growth(gpu)
    tf.config.experimental.set_memory_growth(gpu, True)
    return [before, tf.config.experimental.get_memory_growth(gpu)]


@check
def is_simulated() -> Any:
    logical = tf.config.list_logical_devices()
    return {
        "logical": {d.name: simulator.is_simulated(d) for d in logical},
        "physical": [simulator.is_simulated(d) for d in tf.config.list_physical_devices("GPU")],
        "names": {
            name: simulator.is_simulated(name)
            for name in (
                "GPU:0",
                "/device:GPU:0",
                "/job:localhost/replica:0/task:0/device:GPU:0",
                "/job:worker/task:1/device:GPU:0",
                "CPU:0",
                "nonsense!",
            )
        },
    }


@check
def matmul() -> Any:
    x = np.random.default_rng(0).normal(size=(8, 8)).astype("f")
    y = tf.constant(x) @ tf.constant(x)
    return [where(y), float(np.abs(y.numpy() - x @ x).max())]


@check
def copies() -> Any:
    with tf.device("CPU:0"):
        on_cpu = tf.random.normal([4])
    on_gpu = on_cpu.gpu() if hasattr(on_cpu, "gpu") else tf.identity(on_cpu)
    back = on_gpu.cpu()
    same = bool(np.array_equal(on_cpu.numpy(), on_gpu.numpy()))
    return [where(on_cpu), where(on_gpu), where(back), same]


@check
def host_memory_rules() -> Any:
    """On the GPU in name only: int32 results, and shapes."""
    x = tf.random.normal([3, 4])
    return {
        "float": where(x + 1),
        "int32": where(tf.constant([1, 2]) + 1),
        "shape": where(tf.shape(x)),
        "range": where(tf.range(10)),
    }


@check
def variables() -> Any:
    v = tf.Variable(tf.ones([3]))
    v.assign_add([1.0, 2.0, 3.0])
    counter = tf.Variable([1, 2, 3])
    return {"float": [short(v.device), v.numpy().tolist()], "int32": short(counter.device)}


@check
def gradients() -> Any:
    x = tf.Variable(tf.ones([3]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x * x)
    gradient = tape.gradient(loss, x)
    return [where(gradient), gradient.numpy().tolist()]


@check
def strings() -> Any:
    with tf.device("/GPU:0"):
        joined = tf.strings.join([tf.constant(["a"]), tf.constant(["b"])])
    return [where(joined), joined.numpy()[0].decode()]


@check
def hash_table() -> Any:
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=0
    )
    return table.lookup(tf.constant(["b", "c"])).numpy().tolist()


@check
def function() -> Any:
    v = tf.Variable(tf.ones([4, 4]))

    @tf.function
    def step(x: Any) -> Any:
        y = tf.matmul(x, v, name="the_matmul")
        v.assign_add(y)
        return tf.nn.relu(y) * tf.cast(tf.shape(y)[0], tf.float32)

    from tensorflow.python.eager import context

    context.context().enable_graph_collection()
    result = step(tf.ones([4, 4]))
    metadata = context.context().export_run_metadata()
    context.context().disable_graph_collection()
    return [where(result), float(result[0, 0]), devices_by_node(metadata).get("the_matmul")]


@check
def control_flow() -> Any:
    @tf.function
    def loop(x: Any) -> Any:
        array = tf.TensorArray(tf.float32, 3)
        for i in tf.range(3):
            array = array.write(i, x * tf.cast(i, tf.float32))
        if tf.reduce_sum(x) > 0:
            x = -x
        return array.stack(), x

    stacked, negated = loop(tf.ones([2]))
    return [where(stacked), stacked.numpy().tolist(), negated.numpy().tolist()]


@check
def compiled() -> Any:
    @tf.function(jit_compile=True)
    def f(x: Any) -> Any:
        return tf.nn.relu(x @ x)

    on_gpu = f(tf.ones([4, 4]))
    with tf.device("CPU:0"):
        on_cpu = f(tf.ones([4, 4]))

    @tf.function
    def outer(x: Any) -> Any:
        return f(x) + 1.0

    nested = outer(tf.ones([4, 4]))
    return {
        "gpu": [short(on_gpu.device), float(on_gpu[0, 0])],
        "cpu": [short(on_cpu.device), float(on_cpu[0, 0])],
        "nested": [short(nested.device), float(nested[0, 0])],
    }


@check
def compiled_without_gpu_kernel() -> Any:
    """An int32 MatMul has no GPU kernel, but XLA would compile it for one."""
    result = tf.function(lambda x: x @ x, jit_compile=True)(tf.constant([[1, 2], [3, 4]]))
    return [short(result.device), result.numpy().tolist()]


@check
def saved_and_restored() -> Any:
    class Scale(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.factor = tf.Variable([2.0, 3.0])

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def __call__(self, x: Any) -> Any:
            return x * self.factor

    module = Scale()
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(module=module).save(f"{folder}/checkpoint")
        module.factor.assign([0.0, 0.0])
        tf.train.Checkpoint(module=module).restore(path)
        tf.saved_model.save(module, f"{folder}/model")
        loaded = tf.saved_model.load(f"{folder}/model")
        result = loaded(tf.ones([2]))
    return [short(module.factor.device), where(result), result.numpy().tolist()]


@check
def data_pipeline() -> Any:
    dataset = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32) * 2).batch(4)
    [first, _] = list(dataset)
    prefetched = dataset.apply(tf.data.experimental.prefetch_to_device("/GPU:0"))
    return [short(next(iter(prefetched)).device), (first + 1).numpy().tolist()]


@check
def many_ops() -> Any:
    """Name of an op to the device of its result, for ops with odd kernels."""
    x = tf.random.normal([5, 5])
    spd = x @ tf.transpose(x) + 5 * tf.eye(5)
    image = tf.random.normal([1, 4, 4, 3])
    ops: dict[str, Any] = {
        "cholesky": lambda: tf.linalg.cholesky(spd),
        "svd": lambda: tf.linalg.svd(spd)[0],
        "inverse": lambda: tf.linalg.inv(spd),
        "fft": lambda: tf.signal.fft(tf.cast(x, tf.complex64)),
        "top_k": lambda: tf.math.top_k(x, 2)[0],
        "where": lambda: tf.where(x > 0),
        "segment_sum": lambda: tf.math.unsorted_segment_sum(x, [0, 0, 1, 1, 1], 2),
        "scatter": lambda: tf.tensor_scatter_nd_update(x, [[0]], [tf.zeros(5)]),
        "einsum": lambda: tf.einsum("ij,jk->ik", x, x),
        "resize": lambda: tf.image.resize(image, [8, 8]),
        "cumsum": lambda: tf.cumsum(x),
        "py_function": lambda: tf.py_function(lambda a: a + 1, [x], tf.float32),
        "map_fn": lambda: tf.map_fn(lambda row: row * 2, x),
        "softmax": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 2, 3, 0, 1], x),
        "sparse": lambda: tf.sparse.sparse_dense_matmul(tf.sparse.from_dense(tf.eye(5)), x),
        "crop": lambda: tf.image.crop_and_resize(image, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2]),
        "half": lambda: tf.cast(x, tf.float16) @ tf.cast(x, tf.float16),
        "random": lambda: tf.random.stateless_normal([2], [1, 2]),
    }
    found = {}
    for name, op in ops.items():
        result = op()
        result.numpy()
        found[name] = short(result.device)
    return found


@check
def unimplemented_only_when_run() -> Any:
    """CudnnRNNCanonicalToParams has a GPU kernel, and no CPU kernel that could compute it."""

    @tf.function
    def guarded(x: Any, run_it: Any) -> Any:
        with tf.device("/GPU:0"):
            return tf.cond(
                run_it,
                lambda: tf.raw_ops.CudnnRNNCanonicalToParams(
                    num_layers=1,
                    num_units=2,
                    input_size=2,
                    weights=[x] * 2,
                    biases=[x] * 2,
                    rnn_mode="rnn_relu",
                ),
                lambda: tf.reshape(x, [-1]),
            )

    x = tf.ones([2, 2])
    fine = guarded(x, tf.constant(False)).numpy().tolist()
    try:
        guarded(x, tf.constant(True))
    except tf.errors.UnimplementedError as error:
        return [fine, error.message]
    return [fine, "ran"]


@check
def memory() -> Any:
    info = tf.config.experimental.get_memory_info
    before = info("GPU:0")["current"]
    kept = tf.zeros([1024, 1024])
    while_kept = info("GPU:0")["current"]
    gone = tf.zeros([4, 1024, 1024])
    del gone
    peak = info("GPU:0")["peak"]
    tf.config.experimental.reset_memory_stats("GPU:0")
    after = info("GPU:0")
    del kept
    return {
        "kept": while_kept - before,
        "peak": peak - before,
        "reset": after["peak"] == after["current"],
    }


@check
def out_of_memory() -> Any:
    try:
        tf.zeros([256, 1024, 1024])
    except tf.errors.ResourceExhaustedError as error:
        return [error.message, float(tf.reduce_sum(tf.ones([10])))]
    return ["no error", 0.0]


@check
def soft_placement_off() -> Any:
    tf.config.set_soft_device_placement(False)
    try:
        with tf.device("/GPU:0"):
            joined = tf.strings.join(["a", "b"])
        return ["ran", short(joined.device)]
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError) as error:
        return [type(error).__name__, str(error)]
    finally:
        tf.config.set_soft_device_placement(True)


run()
