"""Channels-first layouts on a simulated GPU against channels-last on the CPU: largest difference
of the results and of the gradients, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from checks import check, run, short

from pytest_tfdevice import simulator

simulator.load()

import tensorflow as tf  # noqa: E402

rng = np.random.default_rng(0)
image = tf.constant(rng.normal(size=(2, 6, 9, 7)).astype("f"))
kernel = tf.constant(rng.normal(size=(3, 3, 6, 4)).astype("f"))
volume = tf.constant(rng.normal(size=(1, 2, 5, 6, 7)).astype("f"))


def to_last(x: Any) -> Any:
    return tf.transpose(x, [0, *range(2, len(x.shape)), 1])


def to_first(x: Any) -> Any:
    return tf.transpose(x, [0, len(x.shape) - 1, *range(1, len(x.shape) - 1)])


def difference(
    first: Callable[..., Any], last: Callable[..., Any], *inputs: Any
) -> list[float | str]:
    """Largest difference between ``first(x, …)`` on the GPU and ``last(to_last(x), …)`` on the
    CPU, of the result and of each gradient, and where ``first`` ran."""

    def evaluate(compute: Callable[..., Any]) -> tuple[list[Any], str]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = compute(*inputs)
            loss = tf.reduce_sum(y * tf.cos(y))
        return [y, *tape.gradient(loss, inputs)], short(y.device)

    found, device = evaluate(first)
    with tf.device("CPU:0"):
        wanted, _ = evaluate(lambda x, *more: to_first(last(to_last(x), *more)))
    worst = max(float(tf.reduce_max(tf.abs(a - b))) for a, b in zip(found, wanted, strict=True))
    return [device, worst]


@check
def convolution() -> Any:
    found = {}
    for padding in ("SAME", "VALID", "EXPLICIT"):
        for stride in (1, 2):
            explicit = padding == "EXPLICIT"
            first_pad: Any = [[0, 0], [0, 0], [1, 2], [0, 1]] if explicit else padding
            last_pad: Any = [[0, 0], [1, 2], [0, 1], [0, 0]] if explicit else padding
            found[f"{padding} {stride}"] = difference(
                lambda x, k, s=stride, p=first_pad: tf.nn.conv2d(
                    x, k, [1, 1, s, s], p, data_format="NCHW"
                ),
                lambda x, k, s=stride, p=last_pad: tf.nn.conv2d(x, k, [1, s, s, 1], p),
                image,
                kernel,
            )
    return found


@check
def dilated_convolution() -> Any:
    """Forward only: TensorFlow has no CPU kernel for its gradient, in either layout."""
    y = tf.nn.conv2d(image, kernel, 1, "VALID", data_format="NCHW", dilations=[1, 1, 2, 1])
    with tf.device("CPU:0"):
        wanted = tf.nn.conv2d(to_last(image), kernel, 1, "VALID", dilations=[1, 2, 1, 1])
        worst = float(tf.reduce_max(tf.abs(y - to_first(wanted))))
    return [short(y.device), worst]


@check
def depthwise_convolution() -> Any:
    depthwise = tf.constant(rng.normal(size=(3, 3, 6, 2)).astype("f"))
    return difference(
        lambda x, k: tf.nn.depthwise_conv2d(x, k, [1] * 4, "SAME", data_format="NCHW"),
        lambda x, k: tf.nn.depthwise_conv2d(x, k, [1] * 4, "SAME"),
        image,
        depthwise,
    )


@check
def convolution_3d() -> Any:
    kernel_3d = tf.constant(rng.normal(size=(3, 3, 3, 2, 3)).astype("f"))
    return difference(
        lambda x, k: tf.nn.conv3d(x, k, [1] * 5, "SAME", data_format="NCDHW"),
        lambda x, k: tf.nn.conv3d(x, k, [1] * 5, "SAME"),
        volume,
        kernel_3d,
    )


@check
def pooling() -> Any:
    return {
        pool.__name__: difference(
            lambda x, pool=pool: pool(x, 2, 2, "SAME", data_format="NCHW"),
            lambda x, pool=pool: pool(x, 2, 2, "SAME"),
            image,
        )
        for pool in (tf.nn.max_pool2d, tf.nn.avg_pool2d)
    } | {
        pool.__name__: difference(
            lambda x, pool=pool: pool(x, 2, 2, "SAME", data_format="NCDHW"),
            lambda x, pool=pool: pool(x, 2, 2, "SAME"),
            volume,
        )
        for pool in (tf.nn.max_pool3d, tf.nn.avg_pool3d)
    }


@check
def batch_norm() -> Any:
    scale = tf.constant(rng.uniform(0.5, 1, size=6).astype("f"))
    norm = tf.compat.v1.nn.fused_batch_norm
    found = {}
    for training in (True, False):
        fixed = {} if training else {"mean": scale, "variance": scale + 1}
        arguments: dict[str, Any] = {"is_training": training, **fixed}
        found[f"training={training}"] = difference(
            lambda x, s, a=arguments: norm(x, s, tf.ones([6]), data_format="NCHW", **a)[0],
            lambda x, s, a=arguments: norm(x, s, tf.ones([6]), **a)[0],
            image,
            scale,
        )
    return found


@check
def space_to_depth() -> Any:
    # The order of the depth's parts differs between the layouts, so only there and back is told.
    x = tf.constant(rng.normal(size=(1, 4, 6, 6)).astype("f"))
    deep = tf.nn.space_to_depth(x, 2, data_format="NCHW")
    back = tf.nn.depth_to_space(deep, 2, data_format="NCHW")
    return [short(deep.device), float(tf.reduce_max(tf.abs(back - x)))]


@check
def fused() -> Any:
    """Grappler fuses these into one _FusedConv2D, which is channels-first too."""

    @tf.function
    def layer(x: Any) -> Any:
        y = tf.nn.conv2d(x, kernel, 1, "SAME", data_format="NCHW")
        return tf.nn.relu(tf.nn.bias_add(y, tf.ones([4]), data_format="NCHW"))

    return difference(layer, lambda x: tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") + 1.0), image)


@check
def fused_batch_norm() -> Any:
    """TensorFlow 2.12 to 2.15 make one _FusedBatchNormEx of these, with and without the sum."""
    scale = tf.constant(rng.uniform(0.5, 1, size=6).astype("f"))
    norm = tf.compat.v1.nn.fused_batch_norm
    fixed = {"mean": scale - 1, "variance": scale, "is_training": False}
    found = {}
    for added in (False, True):

        @tf.function
        def layer(x: Any, added: bool = added) -> Any:
            y = norm(x, scale, tf.zeros([6]), data_format="NCHW", **fixed)[0]
            return tf.nn.relu(y + tf.sin(x) if added else y)

        def plain(x: Any, added: bool = added) -> Any:
            y = norm(x, scale, tf.zeros([6]), **fixed)[0]
            return tf.nn.relu(y + tf.sin(x) if added else y)

        found[f"sum={added}"] = difference(layer, plain, image)
    return found


run()
