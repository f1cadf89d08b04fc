"""Graphs and Sessions of TensorFlow 1 on a simulated GPU of 200 MiB, used to a quarter."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from checks import Output, check, devices_by_node, run, short

from pytest_tfdevice import simulator

simulator.load(memory="200 MiB")

import tensorflow as tf  # noqa: E402

tf1 = tf.compat.v1


def config(soft: bool = True, log: bool = False) -> Any:
    return tf1.ConfigProto(
        allow_soft_placement=soft,
        log_device_placement=log,
        gpu_options=tf1.GPUOptions(per_process_gpu_memory_fraction=0.25),
    )


def traced(session: Any, fetches: Any, feed: Any = None) -> tuple[Any, dict[str, str]]:
    metadata = tf1.RunMetadata()
    options = tf1.RunOptions(trace_level=3, output_partition_graphs=True)
    result = session.run(fetches, feed, options=options, run_metadata=metadata)
    return result, devices_by_node(metadata)


def placements(text: str) -> dict[str, str]:
    return {name: short(dev) for name, dev in re.findall(r"(\S+): \(\w+\): (/job\S+)", text)}


@check
def fraction_and_memory_limit() -> Any:
    """First, because the first Session decides the limit for the process."""
    with tf.Graph().as_default():
        with tf.device("/GPU:0"):
            n = tf1.placeholder(tf.int32, [])
            total = tf.reduce_sum(tf.random.uniform([n, 1024, 256]))
        with tf1.Session(config=config()) as session:
            [limit] = [d.memory_limit_bytes for d in session.list_devices() if "GPU" in d.name]
            small = float(session.run(total, {n: 20}))
            try:
                session.run(total, {n: 60})
                message = "no error"
            except tf.errors.ResourceExhaustedError as error:
                message = error.message
    return {"limit": limit, "small": small, "message": message}


@check
def session_and_its_log() -> Any:
    with tf.Graph().as_default():
        with tf.device("/GPU:0"):
            a = tf1.placeholder(tf.float32, [2, 3], name="a")
            b = tf1.placeholder(tf.float32, [3, 2], name="b")
            c = tf.add(tf.matmul(a, b, name="mm"), 1.0, name="add")
        with Output() as output, tf1.Session(config=config(log=True)) as session:
            result, nodes = traced(session, c, {a: np.ones((2, 3)), b: np.ones((3, 2))})
    return {"result": result.tolist(), "trace": nodes, "log": placements(output.text)}


@check
def int32_variable() -> Any:
    """It has no GPU kernel: on the CPU with soft placement, an error without."""
    found: dict[str, Any] = {}
    for soft in (True, False):
        with tf.Graph().as_default():
            with tf.device("/GPU:0"):
                zeros = tf1.zeros_initializer()
                v = tf1.get_variable("v", [2], tf.int32, zeros, use_resource=False)
                w = tf1.get_variable("w", [2], tf.float32, zeros, use_resource=False)
                update = tf1.assign_add(v, [1, 2])
            try:
                with tf1.Session(config=config(soft)) as session:
                    session.run(tf1.global_variables_initializer())
                    (result, _), nodes = traced(session, [update, w])
                found[str(soft)] = [result.tolist(), nodes["v"], nodes["w"]]
            except tf.errors.InvalidArgumentError as error:
                found[str(soft)] = error.message
    return found


@check
def while_loops() -> Any:
    found = {}
    for version in (1, 2):
        if version == 1:
            tf1.disable_control_flow_v2()
        with tf.Graph().as_default():
            with tf.device("/GPU:0"):
                x = tf1.placeholder(tf.float32, [2, 2])
                _, y = tf.while_loop(
                    lambda i, a: i < 5,
                    lambda i, a: (i + 1, tf.matmul(a, a) * 0.5 + 0.1),
                    [tf.constant(0), x],
                )
                gradient = tf.gradients(tf.reduce_sum(y), x)[0]
            with tf1.Session(config=config()) as session:
                start = np.full((2, 2), 0.3, "f")
                (result, slope), _ = traced(session, [y, gradient], {x: start})
        wanted = start
        for _ in range(5):
            wanted = wanted @ wanted * np.float32(0.5) + np.float32(0.1)
        found[f"v{version}"] = [float(np.abs(result - wanted).max()), bool(np.all(slope > 0))]
        tf1.enable_control_flow_v2()
    return found


@check
def optimizers() -> Any:
    with tf.Graph().as_default():
        with tf.device("/GPU:0"):
            v = tf1.get_variable("v", [4], initializer=tf1.ones_initializer(), use_resource=False)
            loss = tf.reduce_sum(v * v)
            steps = [
                tf1.train.AdamOptimizer(0.1).minimize(loss),
                tf1.train.MomentumOptimizer(0.1, 0.9).minimize(loss),
            ]
        with tf1.Session(config=config()) as session:
            session.run(tf1.global_variables_initializer())
            _, nodes = traced(session, steps)
            smaller = bool(np.all(session.run(v) < 1))
    return [smaller, sorted({d for name, d in nodes.items() if "Apply" in name})]


@check
def iterator() -> Any:
    with tf.Graph().as_default():
        dataset = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32)).batch(2)
        values = tf1.data.make_initializable_iterator(dataset)
        with tf.device("/GPU:0"):
            doubled = values.get_next() * 2
        with tf1.Session(config=config()) as session:
            session.run(values.initializer)
            return [session.run(doubled).tolist(), session.run(doubled).tolist()]


@check
def grpc_server() -> Any:
    server = tf1.train.Server.create_local_server()
    with tf.Graph().as_default():
        with tf.device("/job:localhost/task:0/device:GPU:0"):
            v = tf1.get_variable("v", [3], use_resource=True, initializer=tf1.ones_initializer())
            y = tf.reduce_sum(v * 2 + 1)
        with tf1.Session(server.target) as session:
            session.run(tf1.global_variables_initializer())
            kinds = sorted(d.device_type for d in session.list_devices())
            return [float(session.run(y)), "GPU" in kinds]


run()
