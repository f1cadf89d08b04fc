"""Fused nodes are listed as the operations that were written: the same on either device, with and
without oneDNN."""

from __future__ import annotations

from collections import Counter

import pytest
from tf_process import needs_tensorflow, run

needs_tensorflow()

SCRIPT = """
simulated = os.environ.get("SIMULATED") == "1"
if simulated:
    have_simulated()
import tensorflow as tf
from pytest_tfdevice.watching import watch

kernel = tf.Variable(tf.ones((3, 3, 3, 4)))
bias = tf.Variable(tf.ones((4,)))
weights = tf.Variable(tf.ones((4, 5)))

@tf.function
def step(x):
    with tf.name_scope("conv"):
        x = tf.nn.leaky_relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias))
    with tf.name_scope("swish"):
        x = x * tf.sigmoid(x)
    with tf.name_scope("dense"):
        x = tf.nn.gelu(tf.nn.bias_add(tf.matmul(tf.reshape(x, (-1, 4)), weights), tf.ones((5,))))
    with tf.name_scope("unary"):
        return tf.exp(tf.sqrt(tf.tanh(x)))

def seen():
    with watch() as record:
        step(tf.ones((1, 8, 8, 3)))
    return sorted([p.path, p.type, str(p.device)] for p in record
                  if p.origin == "function" and p.type != "Const"
                  and not p.op.endswith("LayoutOptimizer"))

facts["cold"] = seen()
facts["warm"] = seen()
"""


@pytest.fixture(scope="module")
def on_cpu():
    return {
        onednn: run(SCRIPT, level=2, env={"TF_ENABLE_ONEDNN_OPTS": onednn}) for onednn in ("0", "1")
    }


def types(found) -> Counter[str]:
    return Counter(kind for _, kind, _ in found)


def test_no_fused_type_is_left(on_cpu) -> None:
    for facts in on_cpu.values():
        found = types(facts["cold"])
        assert not [kind for kind in found if kind.startswith("_")]
        for kind in ("Conv2D", "LeakyRelu", "MatMul", "Sigmoid", "Tanh", "Sqrt", "Exp"):
            assert found[kind] == 1, kind
        assert found["BiasAdd"] == 2


def test_onednn_makes_no_difference(on_cpu) -> None:
    assert on_cpu["0"]["cold"] == on_cpu["1"]["cold"]


def test_a_second_call_makes_none_either(on_cpu) -> None:
    for facts in on_cpu.values():
        assert facts["warm"] == facts["cold"]


def test_the_gpu_makes_none_but_the_device(on_cpu) -> None:
    facts = run(SCRIPT, level=2, env={"SIMULATED": "1"})
    if not facts["simulated"]:
        pytest.skip(facts["not_simulated"])
    elsewhere = [[name, kind, "CPU:0"] for name, kind, device in facts["cold"]]
    assert {device for _, _, device in facts["cold"]} == {"GPU:0"}
    assert elsewhere == on_cpu["1"]["cold"]
