"""A random layer of each of ten keras.applications models on the CPU: is it caught, and named?

Run with ``python -m benchmarks.accuracy.mutations``.  A draw puts one layer's computation under
``tf.device("/CPU:0")`` in a model on the simulated GPU, and runs the forward pass once as an
uncompiled tf.function.  Three things are checked: the verdict fails; the layer is named, and no
other op is reported; the reason is ``requested-elsewhere``.  Before the draws the model is run as
it is, and has to pass.

A layer that does nothing when it predicts (an input, dropout) can't be drawn.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import importlib.metadata
import os
import random
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.accuracy.judging import log
from benchmarks.accuracy.processes import Stopwatch, in_child

MODELS = {
    "MobileNet": 64,
    "MobileNetV2": 64,
    "MobileNetV3Small": 64,
    "EfficientNetB0": 64,
    "EfficientNetV2B0": 64,
    "ResNet50": 64,
    "DenseNet121": 64,
    "NASNetMobile": 64,
    "Xception": 96,
    "InceptionV3": 139,
}
"""Ten models, and the height and width of the images.

Large enough that no feature map is a single pixel: TensorFlow drops a mean over one pixel, and then
nothing of a pooling layer is left to be on the CPU.
"""

IDLE = ("InputLayer", "Dropout", "SpatialDropout2D")
"""Layers that compute nothing when a model predicts."""

LIMIT = 3000.0


@dataclass(frozen=True)
class Draw:
    """A layer that was put on the CPU, and what is wrong with what was said of it."""

    model: str
    layer: str
    kind: str
    wrong: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.mutations", description=__doc__
    )
    parser.add_argument("--draws", type=int, default=100, help="in all (default 100)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    watch = Stopwatch()
    from pytest_tfdevice import simulator

    simulator.load(memory="4 GiB", progress=log)
    import tensorflow as tf

    gc.freeze()
    caught = count = 0
    for number, model in enumerate(MODELS):
        share = given.draws // len(MODELS) + (number < given.draws % len(MODELS))
        seed = f"{given.seed} {model}"
        work = functools.partial(_draws, model, share, seed)
        result = in_child(work, LIMIT)
        right = sum(not draw.wrong for draw in result.found)
        print(f"{model:20} {right}/{share} caught and named", flush=True)
        for draw in result.found:
            if draw.wrong:
                print(f"        {draw.layer} ({draw.kind}): {draw.wrong}")
        if result.died:
            print(f"        the process {result.died}")
        caught, count = caught + right, count + share
    keras = importlib.metadata.version("keras")
    print(f"\nTensorFlow {tf.__version__}, Keras {keras}, {watch.seconds:.0f} s")
    print(f"mutations {caught}/{count}")
    return 0 if caught == count else 1


def _draws(name: str, count: int, seed: str) -> Iterator[Draw]:
    import tensorflow as tf

    size = MODELS[name]
    build = getattr(tf.keras.applications, name)
    model = build(weights=None, include_top=False, input_shape=(size, size, 3))
    image = tf.ones([1, size, size, 3])
    layers = [layer for layer in model.layers if type(layer).__name__ not in IDLE]
    untouched = _offenders(model, image)
    if untouched:
        raise AssertionError(f"{name} as it is does not pass: {untouched}")
    for layer in random.Random(seed).sample(layers, count):
        with _on_cpu(layer):
            found = _offenders(model, image)
        yield Draw(name, layer.name, type(layer).__name__, _wrong(layer.name, found))


def _offenders(model: Any, image: Any) -> list[tuple[str, str]]:
    """Path and reason of what is reported of one forward pass."""
    import tensorflow as tf

    import pytest_tfdevice

    forward = tf.function(lambda x: model(x, training=False), jit_compile=False)
    with pytest_tfdevice.watch() as watch:
        forward(image)
    verdict = watch.record.verdict("GPU")
    if verdict.problems or verdict.counting < len(model.layers) / 2:
        raise AssertionError(f"too little was seen: {verdict.summary}")
    return [(o.placement.path, o.reason.code) for o in verdict.offenders]


def _wrong(layer: str, found: Iterable[tuple[str, str]]) -> str:
    """Keras numbers a layer's scope when it is entered again: ``conv1_2`` of ``conv1``."""
    named = re.compile(rf"(^|/){re.escape(layer)}(_\d+)?(/|$)")
    found = list(found)
    if not found:
        return "not caught"
    if strange := [path for path, _ in found if not named.search(path)]:
        return f"others were reported: {strange}"
    if reasons := {reason for _, reason in found} - {"requested-elsewhere"}:
        return f"reasons {reasons}"
    return ""


@contextlib.contextmanager
def _on_cpu(layer: Any) -> Iterator[None]:
    """The layer's computation under a CPU scope."""
    import tensorflow as tf

    original = layer.call

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        with tf.device("/CPU:0"):
            return original(*args, **kwargs)

    layer.call = call
    try:
        yield
    finally:
        layer.call = original


if __name__ == "__main__":
    sys.exit(main())
