"""The marker ``on_gpu``: each argument, met and not met, on two simulated GPUs."""

from __future__ import annotations

import pytest
from pytest_process import Run, needs_simulator, one_line, run_simulated

needs_simulator()

SUITE = """
import pytest
import tensorflow as tf

on_gpu = pytest.mark.on_gpu

def product(device=None):
    with tf.device(device):
        x = tf.random.uniform([4, 4])
        return tf.matmul(x, x)

@on_gpu
def test_good():
    product()

@on_gpu
def test_on_cpu():
    product("/CPU:0")           # the line that asked

@on_gpu("MatMul")
def test_ops_seen():
    product()

@on_gpu("Conv2D", "MatMul")
def test_ops_not_seen():
    product()

@on_gpu("MatMul")
def test_ops_elsewhere():
    product("/CPU:0")

@on_gpu("name:block/product", "Mat*")
def test_ops_by_name():
    @tf.function
    def f(x):
        with tf.name_scope("block"):
            return tf.matmul(x, x, name="product")
    f(tf.ones([2, 2]))

@on_gpu(index=1)
def test_index_good():
    product("/GPU:1")

@on_gpu(index=1)
def test_index_other():
    product("/GPU:0")

@on_gpu(index=7)
def test_index_absent():
    raise AssertionError("must have been skipped")

@on_gpu(allow="MatMul")
def test_allow_type():
    x = product()
    with tf.device("/CPU:0"):
        tf.matmul(x, x)

@on_gpu(allow=["reason:requested-elsewhere"])
def test_allow_reason():
    product("/CPU:0")

@on_gpu(allow=["name:elsewhere/*"])
def test_allow_name():
    @tf.function
    def f(x):
        with tf.name_scope("elsewhere"), tf.device("/CPU:0"):
            y = tf.matmul(x, x)
        return tf.nn.relu(y)
    f(tf.ones([2, 2]))

@on_gpu(allow=["Conv2D"])
def test_allow_other():
    product("/CPU:0")

def int_product():
    return tf.matmul(tf.ones([2, 2], tf.int32), tf.ones([2, 2], tf.int32))

@on_gpu
def test_int_matmul():
    product()
    int_product()

@on_gpu
def test_shape_work():
    product()
    with tf.device("/CPU:0"):
        tf.range(3) + 1

@on_gpu(strict=True)
def test_strict():
    product()
    with tf.device("/CPU:0"):
        tf.range(3) + 1

@on_gpu(min_ratio=0.6)
def test_ratio_enough():
    for _ in range(3):
        x = product()
    tf.nn.relu(x)
    with tf.device("/CPU:0"):
        tf.exp(x)

@on_gpu(min_ratio=0.9)
def test_ratio_too_little():
    x = product()
    with tf.device("/CPU:0"):
        tf.exp(x)

@on_gpu(min_ratio=0.0)
def test_ratio_none():
    product("/CPU:0")

@on_gpu
def test_no_kernel():
    product()
    tf.raw_ops.UnravelIndex(indices=[3, 5], dims=[4, 4])

@on_gpu
def test_gpu_not_there():
    product("/GPU:5")
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(tmp_path_factory.mktemp("on_gpu"), SUITE, "-rs", gpus="2:1 GiB")


@pytest.mark.parametrize(
    "name",
    [
        "test_good",
        "test_ops_seen",
        "test_ops_by_name",
        "test_index_good",
        "test_allow_type",
        "test_allow_reason",
        "test_allow_name",
        "test_shape_work",
        "test_ratio_enough",
        "test_ratio_none",
        "test_gpu_not_there",
    ],
)
def test_passes(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name].text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "test_on_cpu",
            [
                "2 of 2 operations that count ran on the CPU",
                "0 % of what counts was on GPU",
                "judged by on_gpu()",
                "2 simulated GPUs",
                "requested-elsewhere",
                "MatMul",
                "tf.device asked for CPU:0 at test_it.py:7",
                "test_it.py:9",
                "take it out of that tf.device",
            ],
        ),
        ("test_ops_not_seen", ["Conv2D was not seen"]),
        ("test_ops_elsewhere", ["MatMul was seen on CPU:0 only"]),
        ("test_index_other", ["ran on GPU:0", "judged by on_gpu(index=1)", "GPU:1"]),
        ("test_allow_other", ["requested-elsewhere", "judged by on_gpu(allow=['Conv2D'])"]),
        (
            "test_int_matmul",
            [
                "1 of 4 operations",
                "75 %",
                "dtype",
                "MatMul has no GPU kernel for T=int32",
                "cast int32 to",
            ],
        ),
        ("test_strict", ["operations that count ran on the CPU", "requested-elsewhere"]),
        ("test_ratio_too_little", ["66.7 %", "90 % is wanted", "Exp"]),
        ("test_no_kernel", ["no-kernel", "no GPU kernel for UnravelIndex", 'allow="UnravelIndex"']),
    ],
)
def test_fails_and_says_why(run: Run, name: str, says: list[str]) -> None:
    test = run[name]
    assert test.outcome == "failed"
    for text in says:
        assert text in test.said, test.text


def test_a_pass_with_a_note_says_so(run: Run) -> None:
    test = run["test_gpu_not_there"]
    assert test.outcome == "passed"
    assert "2 operations asked for GPU:5 and ran on GPU:0" in one_line(test.placement)
    assert "passed with a note: -rP shows it" in run.summary


def test_a_missing_op_is_the_only_complaint(run: Run) -> None:
    assert "Conv2D was not seen; all 2 operations that count ran on GPU:0" in (
        run["test_ops_not_seen"].said
    )


def test_an_index_implies_so_many_gpus(run: Run) -> None:
    test = run["test_index_absent"]
    assert test.outcome == "skipped"
    assert "needs 8 GPUs, this process has 2" in test.said


def test_the_failure_has_no_traceback_of_the_plugin(run: Run) -> None:
    assert "testwatch.py" not in run["test_on_cpu"].text
    assert "plugin.py" not in run["test_on_cpu"].text


def test_it_is_readable_at_100_columns(run: Run) -> None:
    for test in run.tests.values():
        if test.outcome == "failed":
            assert max(map(len, test.text.splitlines())) <= 100


def test_the_summary(run: Run) -> None:
    judged = sum(test.result is not None for test in run.tests.values())
    failed = sum(test.outcome == "failed" for test in run.tests.values())
    assert f"{failed} of {judged} judged tests left the device" in run.summary
    assert "the GPU is simulated" in run.summary
    assert "test_it.py::test_on_cpu" in run.summary
    assert "on GPU:0" in run.summary
    assert "test_good" not in run.summary
    assert run.status == pytest.ExitCode.TESTS_FAILED
