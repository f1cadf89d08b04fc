"""Baselines of real models are byte-identical: over runs, warm and cold, with and without oneDNN,
and however many models the process made before."""

from __future__ import annotations

import pytest
from tf_process import Facts, needs_tensorflow, run

needs_tensorflow()

SCRIPT = """
have_simulated()
if facts["simulated"]:
    import keras
    import tensorflow as tf
    from pytest_tfdevice.baseline.entries import Environment, observe
    from pytest_tfdevice.baseline.files import BaselineFile
    from pytest_tfdevice.kernels.current import gpu_kernels
    from pytest_tfdevice.model import DeviceSpec
    from pytest_tfdevice.patterns import Rule
    from pytest_tfdevice.rules import judge
    from pytest_tfdevice.watching import watch

    def baseline(function, *args):
        with watch() as watched:
            function(*args)
        verdict = judge(watched.record, Rule(DeviceSpec(type="GPU")), gpu_kernels())
        assert not verdict.problems, verdict.problems
        key = Environment.of(watched.record).key
        return BaselineFile({"test": {key: observe(verdict)}}).to_text()

    batch = tf.zeros((1, 64, 64, 3))
    for name, arguments in (("MobileNetV2", {"alpha": 0.35}), ("EfficientNetB0", {})):
        for turn in ("first", "second"):
            model = getattr(keras.applications, name)(
                weights=None, include_top=False, input_shape=(64, 64, 3), **arguments)
            forward = tf.function(lambda x: model(x, training=False), jit_compile=False)
            facts[f"{name}, {turn} model, cold"] = baseline(forward, batch)
            facts[f"{name}, {turn} model, warm"] = baseline(forward, batch)

    # A part on the CPU: there oneDNN fuses what the GPU does not.
    dense = keras.layers.Dense(4, activation="gelu")
    @tf.function
    def mixed(x):
        with tf.device("/CPU:0"):
            x = tf.nn.silu(dense(x))
        return tf.matmul(x, x, transpose_b=True)
    mixed(tf.ones((2, 3)))
    facts["mixed, cold"] = baseline(mixed, tf.ones((2, 3)))
    facts["mixed, warm"] = baseline(mixed, tf.ones((2, 3)))
"""


@pytest.fixture(scope="module")
def texts() -> dict[str, Facts]:
    """By TF_ENABLE_ONEDNN_OPTS."""
    found = {o: run(SCRIPT, level=2, env={"TF_ENABLE_ONEDNN_OPTS": o}) for o in ("1", "0")}
    if not found["1"]["simulated"]:
        pytest.skip(found["1"]["not_simulated"])
    return found


@pytest.mark.parametrize("name", ["MobileNetV2", "EfficientNetB0"])
def test_models_are_byte_identical(texts: dict[str, Facts], name: str) -> None:
    variants = {
        f"oneDNN {onednn}, {key}": text
        for onednn, facts in texts.items()
        for key, text in facts.found.items()
        if key.startswith(name)
    }
    assert len(variants) == 8
    assert len(set(variants.values())) == 1, [(k, hash(t)) for k, t in variants.items()]
    assert next(iter(variants.values())).count('"device": "GPU:0"') > 100


def test_a_part_on_the_cpu_is_identical_too(texts: dict[str, Facts]) -> None:
    found = {facts[f"mixed, {state}"] for facts in texts.values() for state in ("cold", "warm")}
    assert len(found) == 1
    text = found.pop()
    assert '"type": "MatMul", "device": "CPU:0"' in text
    assert '"reason": "requested-elsewhere"' in text
    assert "_Fused" not in text
