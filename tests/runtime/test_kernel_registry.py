"""The kernels that TensorFlow sees with a simulated GPU are those of the CUDA-enabled wheel."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)


@pytest.fixture(scope="module")
def seen() -> Results:
    return run_script("kernel_registry")


def cannot_be_simulated(op: str) -> bool:
    """Ops for NVIDIA's own libraries: NCCL, TensorRT (its ops exist only in that wheel), and two
    copies by CUDA streams."""
    return "Nccl" in op or op.startswith("_CopyFrom") or "TRT" in op or op == "GetCalibrationDataOp"


def test_nothing_is_missing(seen: Results) -> None:
    compared = seen["compared"]
    assert compared["table"] > 5000
    assert [op for op in compared["missing"] if not cannot_be_simulated(op)] == []


def test_the_cuda_enabled_wheel_misses_nothing_at_all(seen: Results) -> None:
    if not seen["compared"]["cuda_build"]:
        pytest.skip("the installed TensorFlow is the CPU-only wheel")
    assert seen["compared"]["missing"] == []


def test_nothing_is_there_that_a_gpu_machine_lacks(seen: Results) -> None:
    # Kernels of TensorFlow's own tests, which the tables leave out.
    assert set(seen["compared"]["extra"]) <= {"DevicePlacementOp", "SleepOp"}


def test_looking_up_a_kernel_finds_the_same(seen: Results) -> None:
    found = seen["same_answers"]
    assert found["asked"] > 5000
    assert [op for op in found["wrong"] if not cannot_be_simulated(op)] == []


def test_the_live_registry_is_what_tensorflow_tells_of_an_op(seen: Results) -> None:
    found = seen["tensorflow_agrees"]
    assert found["MatMul"][0] > 0
    assert found["StringJoin"] == [0, 0]
    for op, (tensorflows, ours) in found.items():
        assert tensorflows == ours, op
