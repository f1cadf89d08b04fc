"""Keras models on a simulated GPU."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)


@pytest.fixture(scope="module")
def seen() -> Results:
    return run_script("keras_models")


def test_a_convolutional_network_trains_on_it(seen: Results) -> None:
    found = seen["convolutional_network"]
    assert found["convolutions"] == ["GPU:0"]
    assert found["nodes"]["GPU:0"] > 100
    assert found["computed_on_cpu"] == [], "there are the pipeline and the arguments"
    assert found["difference"] < 1e-5, "the same weights give the same predictions on the CPU"
    assert found["memory"] > 2**10


def test_default_compilation_trains(seen: Results) -> None:
    losses = seen["default_compilation"]
    assert losses[-1] < losses[0]


def test_mixed_precision_trains(seen: Results) -> None:
    assert seen["mixed_precision"] > 0


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_recurrent_layers_compute_what_keras_own_loop_does(seen: Results, kind: str) -> None:
    found = {name: value for name, value in seen["recurrent_layers"].items() if kind in name}
    assert len(found) == 4
    assert {device for device, _ in found.values()} == {"GPU:0"}
    assert {name: d for name, (_, d) in found.items() if d > 1e-4} == {}


def test_recurrent_layers_use_the_cudnn_op(seen: Results) -> None:
    found = seen["recurrent_kernel_is_used"]
    # CudnnRNN in Keras 2, CudnnRNNV3 in Keras 3.
    assert found in (["CudnnRNN GPU:0"], ["CudnnRNNV3 GPU:0"])


def test_a_recurrent_model_trains(seen: Results) -> None:
    losses = seen["recurrent_training"]
    assert losses[-1] < losses[0]


def test_optimizers_update_on_it(seen: Results) -> None:
    found = seen["optimizers"]
    assert len(found) == 6
    assert {device for device, _ in found.values()} == {"GPU:0"}
    assert all(value < 1 for _, value in found.values()), found
