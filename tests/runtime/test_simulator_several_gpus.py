"""Several simulated GPUs, logical GPUs, and XLA's auto-clustering."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)


@pytest.fixture(scope="module")
def two() -> Results:
    return run_script("two_gpus")


@pytest.fixture(scope="module")
def logical() -> Results:
    return run_script("logical_gpus")


def test_both_are_listed(two: Results) -> None:
    assert two["listed"] == ["/device:GPU:0", "/device:GPU:1"]


def test_copies_between_them(two: Results) -> None:
    assert two["copies"] == [["GPU:0", "GPU:0"], ["GPU:1", "GPU:1"], [2.0, 2.0, 2.0]]


def test_a_function_on_both(two: Results) -> None:
    assert two["function_on_both"][1] == [3.0, 3.0]


def test_each_has_its_own_memory(two: Results) -> None:
    grown, unchanged = two["memory_of_each"]
    assert 2**20 <= grown < 2**20 + 4096
    assert unchanged == 0


def test_mirrored_all_reduce(two: Results) -> None:
    results, _, variables = two["mirrored_all_reduce"]
    assert results == [3.0, 3.0]
    assert variables == ["GPU:0", "GPU:1"]


@pytest.mark.parametrize(
    ("reduction", "result"),
    [("sum", [4.0, 7.0]), ("min", [1.0, 2.0]), ("max", [3.0, 5.0]), ("prod", [3.0, 10.0])],
)
def test_nccl_all_reduce(two: Results, reduction: str, result: list[float]) -> None:
    assert two["nccl_all_reduce"][reduction] == [result, result]


def test_mirrored_training(two: Results) -> None:
    replicas, losses = two["mirrored_training"]
    assert replicas == 2
    assert losses[-1] < losses[0]


def test_logical_gpus_have_their_limits(logical: Results) -> None:
    assert logical["listed"] == ["/device:GPU:0", "/device:GPU:1"]
    found = logical["limits_in_force"]
    assert "by allocator GPU_0_bfc" in found["GPU:0"]
    assert found["GPU:1"] == ["GPU:1", "GPU:1"]


def test_auto_clustering_runs_uncompiled() -> None:
    device, difference = run_script("auto_clustering", env={"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"})[
        "clustered"
    ]
    assert device == "GPU:0"
    assert difference < 1e-4
