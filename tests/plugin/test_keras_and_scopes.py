"""The main job on a Keras model: healthy with default settings, caught when a layer is moved."""

from __future__ import annotations

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """
import numpy as np
import pytest
import tensorflow as tf

on_gpu = pytest.mark.on_gpu
X = np.random.rand(32, 8).astype("float32")
Y = np.random.randint(0, 3, 32)

class Pinned(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__(name="pinned_head")
        self.dense = tf.keras.layers.Dense(3)

    def build(self, shape):
        self.dense.build(shape)    # its variables are not under the tf.device
        self.built = True

    def call(self, x):
        with tf.device("/CPU:0"):
            return self.dense(x)

def model(*layers):
    made = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(16, activation="relu"),
                                *layers])
    return made

def compiled(made, **options):
    made.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), **options)
    return made

@on_gpu
def test_fit_with_defaults():
    compiled(model(tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(3)),
             metrics=["accuracy"]).fit(X, Y, epochs=1, batch_size=16, verbose=0,
                                       validation_data=(X, Y))

@on_gpu
def test_predict_and_evaluate():
    made = compiled(model(tf.keras.layers.Dense(3)))
    made.evaluate(X, Y, verbose=0)
    made.predict(X, verbose=0)

@on_gpu
def test_fit_pinned():
    compiled(model(Pinned()), jit_compile=False).fit(X, Y, epochs=1, verbose=0)

@on_gpu
def test_fit_pinned_compiled():
    compiled(model(Pinned()), jit_compile=True).fit(X, Y, epochs=1, verbose=0)

@on_gpu
def test_forward_pinned():
    made = model(Pinned())
    tf.function(made)(X)

@on_gpu
def test_eager_pinned():
    model(Pinned())(X[:2])

@on_gpu
def test_gradient_pinned():
    made = model(Pinned())
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(made(x) ** 2)
        return tape.gradient(loss, made.trainable_variables)
    step(X)

@on_gpu
def test_int_variable():
    with tf.device("/gpu:0"):
        step = tf.Variable(tf.zeros([4, 4], tf.int32))
        step.assign_add(tf.ones([4, 4], tf.int32))
    tf.exp([[1.0]])

@on_gpu
def test_v1_int_variable():
    with tf.Graph().as_default():
        with tf.device("/gpu:0"):
            counter = tf.compat.v1.get_variable("counter", [4, 4], tf.int32,
                tf.compat.v1.zeros_initializer(), use_resource=False)
        config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
        with tf.compat.v1.Session(config=config) as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(counter)

@on_gpu
def test_pinned_inside_a_compiled_step():
    @tf.function(jit_compile=True)
    def step(x):
        with tf.device("/CPU:0"):
            x = tf.matmul(x, x)
        return tf.exp(x)
    step(tf.random.uniform([4, 4]))

@on_gpu
def test_compiled_step_on_the_cpu():
    @tf.function(jit_compile=True)
    def step(x):
        return tf.exp(tf.matmul(x, x))
    x = tf.random.uniform([4, 4])
    with tf.device("/CPU:0"):
        step(x)

@on_gpu("name:while/*/MatMul", "Mul")
def test_loops_and_branches():
    @tf.function
    def f(x):
        for _ in tf.range(3):
            x = tf.matmul(x, x) if tf.reduce_sum(x) > 0 else x * 2.0
        return x * x
    f(tf.random.uniform([4, 4]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(tmp_path_factory.mktemp("keras"), SUITE)


@pytest.mark.parametrize(
    "name",
    [
        "test_fit_with_defaults",
        "test_predict_and_evaluate",
        "test_fit_pinned_compiled",
        "test_pinned_inside_a_compiled_step",
    ],
)
def test_a_healthy_model_passes_without_an_allow_list(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name].text


@pytest.mark.parametrize(
    "name", ["test_fit_pinned", "test_forward_pinned", "test_gradient_pinned", "test_eager_pinned"]
)
def test_a_pinned_layer_is_named_with_reason_and_line(run: Run, name: str) -> None:
    test = run[name]
    assert test.outcome == "failed"
    assert "requested-elsewhere" in test.said
    assert "tf.device asked for CPU:0 at test_it.py:19" in test.said, test.text
    assert "MatMul" in test.said
    if name != "test_eager_pinned":
        assert "pinned_head" in test.said


@pytest.mark.parametrize("name", ["test_int_variable", "test_v1_int_variable"])
def test_an_int_variable_has_reason_dtype(run: Run, name: str) -> None:
    test = run[name]
    assert test.outcome == "failed"
    assert "dtype" in test.said
    assert "int32" in test.said
    assert "make the variable" in test.said, test.text
    assert "test_it.py:" in test.said


def test_a_pin_that_xla_ignores_is_noted(run: Run) -> None:
    for name in ("test_pinned_inside_a_compiled_step", "test_fit_pinned_compiled"):
        said = run[name].said
        assert "XLA ignores that and runs it on GPU:0" in said, run[name]
        assert "CPU:0" in said


def test_a_compiled_step_on_the_cpu_counts_as_one(run: Run) -> None:
    test = run["test_compiled_step_on_the_cpu"]
    assert test.outcome == "failed"
    assert "xla" in test.said
    assert "compiled function" in test.said
    assert "was called on CPU:0" in test.said


def test_patterns_by_name_reach_into_loops(run: Run) -> None:
    assert run["test_loops_and_branches"].outcome == "passed", run["test_loops_and_branches"].text
