"""The markers ``requires_gpu`` and ``on_device``, on two simulated GPUs."""

from __future__ import annotations

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """
import pytest, tensorflow as tf

requires_gpu = pytest.mark.requires_gpu
on_device = pytest.mark.on_device

def product(device=None):
    with tf.device(device):
        x = tf.random.uniform([4, 4])
        return tf.matmul(x, x)

@requires_gpu
def test_one(): pass

@requires_gpu(2, memory="1 GiB")
def test_two_of_1_gib(): pass

@requires_gpu(3)
def test_three(): pass

@requires_gpu(memory="2 GiB")
def test_larger(): pass

@requires_gpu(memory=2**30 + 1)
def test_a_byte_larger(): pass

@requires_gpu(memory=2**30)
def test_exactly(): pass

@requires_gpu(compute_capability=7.0)
def test_capability(): pass

@requires_gpu
def test_checks_nothing():
    product("/CPU:0")

@on_device("CPU:0")
def test_cpu_good():
    product("/CPU:0")

@on_device("cpu", "MatMul")
def test_cpu_bad():
    product()

@on_device("/device:GPU:1")
def test_gpu_1_good():
    product("/GPU:1")

@on_device("GPU:1")
def test_gpu_1_bad():
    product("/GPU:0")

@on_device("/job:localhost/replica:0/task:0/device:GPU:0", "MatMul")
def test_in_full():
    product()

@on_device("/job:worker/task:1/device:GPU:0")
def test_another_job():
    product()

@on_device("GPU:2")
def test_third():
    raise AssertionError("must have been skipped")

@on_device("TPU:0")
def test_tpu():
    product()

@on_device("GPU:0")
@on_device("GPU:1")
def test_both():
    product("/GPU:0")
    product("/GPU:1")

@on_device("GPU:0", min_ratio=0.5)
@on_device("GPU:1", "MatMul", min_ratio=0.5)
def test_half_each():
    product("/GPU:0")
    product("/GPU:1")

@on_device("CPU", allow=["name:*", "MatMul"], strict=False)
def test_allowed():
    product()
    with tf.device("/CPU:0"):
        tf.exp([1.0])
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(tmp_path_factory.mktemp("others"), SUITE, gpus="2:1 GiB")


@pytest.mark.parametrize(
    "name",
    [
        "test_one",
        "test_two_of_1_gib",
        "test_exactly",
        "test_checks_nothing",
        "test_cpu_good",
        "test_gpu_1_good",
        "test_in_full",
        "test_half_each",
        "test_allowed",
    ],
)
def test_passes(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name].text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("test_three", "needs 3 GPUs, this process has 2"),
        ("test_larger", "needs 1 GPU with 2 GiB of memory: GPU:0 has 1 GiB; GPU:1 has 1 GiB"),
        ("test_a_byte_larger", "GPU:0 has 1 GiB"),
        ("test_capability", "compute capability 7.0: GPU:0 is simulated and has none"),
        ("test_third", "needs 3 GPUs, this process has 2"),
    ],
)
def test_skips_and_says_why(run: Run, name: str, says: str) -> None:
    assert run[name].outcome == "skipped"
    assert says in run[name].said


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("test_cpu_bad", ["ran on GPU:0", "MatMul was seen on GPU:0 only", "on_device('cpu'"]),
        ("test_gpu_1_bad", ["ran on GPU:0", "tf.device asked for GPU:0 at test_it.py:7"]),
        ("test_another_job", ["no-gpu", "/job:worker/task:1/device:GPU:0"]),
        ("test_tpu", ["no-gpu", "TPU:0", "TensorFlow has no TPU"]),
        ("test_both", ["judged by on_device('GPU:0')", "judged by on_device('GPU:1')"]),
    ],
)
def test_fails_and_says_why(run: Run, name: str, says: list[str]) -> None:
    assert run[name].outcome == "failed"
    for text in says:
        assert text in run[name].said, run[name].text


def test_requires_gpu_alone_watches_nothing(run: Run) -> None:
    assert run["test_checks_nothing"].result is None
    assert "test_checks_nothing" not in run.summary
