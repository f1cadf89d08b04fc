"""TensorFlow 1 graphs and Sessions on a simulated GPU."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)


@pytest.fixture(scope="module")
def seen() -> Results:
    return run_script("sessions")


def test_memory_fraction_is_in_force(seen: Results) -> None:
    found = seen["fraction_and_memory_limit"]
    assert found["limit"] == 50 * 2**20
    assert found["small"] > 0
    assert "OOM when allocating tensor with shape[60,1024,256]" in found["message"]
    assert "by allocator GPU_0_bfc" in found["message"]


def test_result_trace_and_log_agree(seen: Results) -> None:
    found = seen["session_and_its_log"]
    assert found["result"] == [[4.0, 4.0], [4.0, 4.0]]
    for name in ("mm", "add"):
        assert found["trace"][name] == "GPU:0"
        assert found["log"][name] == "GPU:0"


def test_int32_variable_of_the_classic_report(seen: Results) -> None:
    found = seen["int32_variable"]
    assert found["True"] == [[1, 2], "CPU:0", "GPU:0"]
    assert "Cannot assign a device for operation" in found["False"]
    assert "no supported kernel for GPU devices is available" in found["False"]


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_while_loops_and_their_gradients(seen: Results, version: str) -> None:
    difference, slope_is_positive = seen["while_loops"][version]
    assert difference < 1e-5
    assert slope_is_positive


def test_optimizers_of_reference_variables(seen: Results) -> None:
    assert seen["optimizers"] == [True, ["GPU:0"]]


def test_iterator(seen: Results) -> None:
    assert seen["iterator"] == [[0.0, 2.0], [4.0, 6.0]]


def test_session_of_a_server(seen: Results) -> None:
    assert seen["grpc_server"] == [9.0, True]
