"""On a real TensorFlow: running what can't be traced, the shipped op table, and live messages."""

from __future__ import annotations

import pytest
from tf_process import Facts, needs_tensorflow, run

from pytest_tfdevice.errors.placement import find_failures
from pytest_tfdevice.errors.reasons import Known, reason_of
from pytest_tfdevice.kernels import for_version
from pytest_tfdevice.kernels.ops import shipped_signatures
from pytest_tfdevice.versions import installed_tensorflow

TEST_OPS = {"KernelLabel", "TestAttr", "TestStringOutput"}
"""Ops of TensorFlow's own tests, which its Python side carries along."""

needs_tensorflow()

SCRIPT = """
have_simulated()
if facts["simulated"]:
    import tempfile
    import tensorflow as tf
    import pytest_tfdevice
    from pytest_tfdevice.capture import private
    from pytest_tfdevice.capture.signatures import signature
    from pytest_tfdevice.kernels import registered
    from pytest_tfdevice.kernels.ops import shipped_signatures
    from pytest_tfdevice.model import DeviceSpec
    from pytest_tfdevice.modelcheck import ModelError, check, running
    from pytest_tfdevice.modelcheck.loading import Signature

    def cant_trace():
        raise RuntimeError("no graph of it")

    def checked(call, *specs):
        try:
            record, ran = check._record(Signature("eager", cant_trace, specs=specs, call=call))
        except ModelError as error:
            return str(error)
        return [ran, sorted({p.type for p in record if str(p.device) == "GPU:0"})]

    open_ended = tf.TensorSpec([None, None])
    facts["third size"] = checked(lambda v: tf.matmul(v[0], tf.ones([8, 3])), open_ended)
    facts["no size"] = checked(lambda v: tf.matmul(v[0], tf.ones([7, 3])), open_ended)
    facts["strings"] = checked(
        lambda v: tf.strings.to_number(v[0]) * tf.cast(v[1], tf.float32),
        tf.TensorSpec([None], tf.string), tf.TensorSpec([], tf.int64))
    facts["values"] = [
        running.example(tf.TensorSpec([None, 2], dtype), 3).numpy().tolist() == [[one] * 2] * 3
        for dtype, one in ((tf.float16, 1.0), (tf.int64, 1), (tf.bool, True), (tf.string, b"1"))
    ]

    shipped = shipped_signatures()
    types = {k.op for k in registered().all}
    differ = [t for t in sorted(types) if (s := signature(t)) is not None and shipped.get(t) != s]
    facts["registered"], facts["differ"] = len(types), differ

    class Pinned(tf.Module):
        def __init__(self):
            self.w = tf.Variable(tf.ones([4, 3]))
        @tf.function(input_signature=[tf.TensorSpec([None, 4])])
        def serve(self, v):
            with tf.device("/CPU:0"):
                return tf.matmul(v, self.w, name="pinned_mm")
    folder = tempfile.mkdtemp()
    tf.saved_model.save(Pinned(), folder)
    loaded = tf.saved_model.load(folder)
    with pytest_tfdevice.watch() as record:
        loaded.serve(tf.ones([2, 4]))
    verdict = record.verdict("GPU")
    facts["pin of a loaded model"] = [
        verdict.outcome, [[o.placement.type, o.reason.code] for o in verdict.offenders]]

    tf.config.set_soft_device_placement(False)
    def said(program):
        try:
            program()
        except tf.errors.OpError as error:
            return str(error)
    @tf.function
    def step(v):
        with tf.device("/GPU:0"):
            return tf.matmul(v, v, name="prod")
    def eager():
        with tf.device("/GPU:0"):
            tf.raw_ops.ResizeBicubic(images=tf.ones([1, 4, 4, 1]), size=[2, 2])
    def absent():
        with tf.device("/GPU:7"):
            tf.sin(tf.ones([2]))
    def session():
        tf1 = tf.compat.v1
        with tf.Graph().as_default():
            with tf.device("/device:GPU:0"):
                counter = tf1.get_variable("counter", [2], tf.int32, tf1.zeros_initializer(),
                                           use_resource=False)
            with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=False)) as run:
                run.run(counter.initializer)
    ints = tf.constant([[1, 2], [3, 4]])
    facts["said"] = {name: said(program) for name, program in {
        "function": lambda: step(ints), "eager": eager, "absent": absent, "session": session,
    }.items()}
"""


@pytest.fixture(scope="module")
def facts() -> Facts:
    found = run(SCRIPT, level=3)
    if not found["simulated"]:
        pytest.skip(found["not_simulated"])
    return found


def test_an_unknown_dimension_takes_the_next_size_on_a_shape_error(facts: Facts) -> None:
    ran, on_gpu = facts["third size"]
    assert ran
    assert "MatMul" in on_gpu


def test_no_size_that_fits_is_said_with_the_last_error(facts: Facts) -> None:
    assert facts["no size"].startswith("eager can't be run on inputs made from its signature")
    assert "224" in facts["no size"]


def test_strings_and_integers_are_made_up(facts: Facts) -> None:
    assert facts["strings"][0]
    assert "Mul" in facts["strings"][1]
    assert facts["values"] == [True] * 4


def test_the_shipped_op_table_is_what_is_registered(facts: Facts) -> None:
    assert facts["registered"] > 900
    differ = set(facts["differ"]) - TEST_OPS
    assert differ <= set(shipped_signatures())
    # What changed between releases stands as in the newest: older ones lack a few attributes.
    assert len(differ) < (1 if (installed_tensorflow() or "").startswith("2.21") else 120)


def test_a_pin_of_a_loaded_model_counts(facts: Facts) -> None:
    assert facts["pin of a loaded model"] == ["failed", [["MatMul", "requested-elsewhere"]]]


@pytest.mark.parametrize(
    ("name", "op", "code"),
    [
        ("function", "prod (MatMul)", "dtype"),
        ("eager", "ResizeBicubic", "no-kernel"),
        ("absent", "an operation", "no-gpu"),
        ("session", "counter (VariableV2)", "dtype"),
    ],
)
def test_what_this_tensorflow_says_it_cannot_place(
    facts: Facts, name: str, op: str, code: str
) -> None:
    (failure,) = find_failures(facts["said"][name])
    version = installed_tensorflow() or ""
    reason = reason_of(failure, Known(for_version(version), version))
    assert (failure.name, reason.code) == (op, code)
