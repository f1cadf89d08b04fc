"""The main job on models that people use: a healthy one passes, a moved layer fails."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("models", seconds=900)


HEALTHY = ["resnet_forward", "mobilenet_forward", "fit_default"]
PRODUCTS = ("MatMul", "_FusedMatMul")
MOVED = ["resnet_moved", "mobilenet_moved", "fit_moved"]


@pytest.mark.parametrize("model", HEALTHY)
def test_a_healthy_model_passes_without_an_allow_list(told: Told, model: str) -> None:
    assert (told[model]["offenders"], told[model]["passed"]) == ([], True)


@pytest.mark.parametrize(
    ("model", "least"),
    # As many as the model has layers with weights, at the very least.
    [("resnet_forward", 53), ("mobilenet_forward", 52)],
)
def test_a_healthy_model_was_looked_at(told: Told, model: str, least: int) -> None:
    assert told[model]["counting"] >= least


@pytest.mark.parametrize("model", MOVED)
def test_a_moved_layer_fails(told: Told, model: str) -> None:
    assert told[model]["passed"] is False


@pytest.mark.parametrize("model", MOVED)
def test_a_moved_layer_is_named(told: Told, model: str) -> None:
    """Its product, forward; what else fails is of the same layer."""
    forward = [path for path, op, *_ in told[model]["offenders"] if op in PRODUCTS]
    assert any("moved_layer" in path for path in forward)


@pytest.mark.parametrize("model", MOVED)
def test_nothing_but_the_moved_layer_fails(told: Told, model: str) -> None:
    assert [path for path, *_ in told[model]["offenders"] if "moved_layer" not in path] == []


@pytest.mark.parametrize("model", MOVED)
def test_the_reason_is_the_scope(told: Told, model: str) -> None:
    assert {reason for _, _, reason, _ in told[model]["offenders"]} == {"requested-elsewhere"}


@pytest.mark.parametrize("model", MOVED)
def test_the_line_of_the_scope_is_named(told: Told, model: str) -> None:
    lines = {opened for _, op, _, opened in told[model]["offenders"] if op in PRODUCTS}
    assert lines == {"the move"}


@pytest.mark.parametrize("model", [*HEALTHY, *MOVED])
def test_no_model_has_a_problem(told: Told, model: str) -> None:
    assert told[model]["problems"] == []
