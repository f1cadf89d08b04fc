"""Keras: the Keras that comes with each TensorFlow (2 up to 2.15, 3 from 2.16)."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("keras_models")


def needs_keras_3(told: Told) -> None:
    if told["keras"] < 3:
        pytest.skip("Keras 2 doesn't compile a training step by itself")


@pytest.mark.parametrize(
    "record",
    ["fit_default", "fit_uncompiled", "fit_warm", "fit_dataset", "custom_loop", "mixed_precision",
     "dropout_and_embedding"],
)  # fmt: skip
def test_training_passes(told: Told, record: str) -> None:
    assert told[record]["verdict"]["passed"] is True


@pytest.mark.parametrize("record", ["fit_uncompiled", "fit_warm", "custom_loop"])
def test_forward_and_backward_are_seen(told: Told, record: str) -> None:
    """Two dense layers: two products forward; backward one for each kernel, one for the input."""
    found = told.all(record, type="MatMul")
    assert [op["device"] for op in found] == ["GPU:0"] * 5


@pytest.mark.parametrize("record", ["fit_uncompiled", "fit_warm"])
def test_the_optimizer_is_seen(told: Told, record: str) -> None:
    updates = ("AssignSubVariableOp", "AssignAddVariableOp")  # Keras 3, Keras 2
    found = [
        op
        for op in told[record]["ops"]
        if op["type"] in updates and op["dtypes"] == {"dtype": "float32"}
    ]
    assert {op["device"] for op in found} == {"GPU:0"}


def test_a_fit_as_it_comes_is_one_compiled_step(told: Told) -> None:
    needs_keras_3(told)
    (unit,) = (op for op in told["fit_default"]["ops"] if op["contents"])
    assert (unit["unit"], unit["device"]) == ("one_step_on_data", "GPU:0")


def test_what_is_in_the_step_is_seen(told: Told) -> None:
    needs_keras_3(told)
    assert len(told.all("fit_default", type="MatMul", origin="compiled")) == 5


def test_the_map_of_a_dataset_is_host_work(told: Told) -> None:
    assert told.all("fit_dataset", type="Sqrt", host=None) == []


@pytest.mark.parametrize("record", ["fit_pinned", "eager_model"])
def test_a_layer_on_the_cpu_fails_at_its_line(told: Told, record: str) -> None:
    (offender,) = told[record]["verdict"]["offenders"]
    assert [offender[k] for k in ("type", "reason", "opened", "line")] == [
        "Sinh", "requested-elsewhere", "pin in layer", "layer op",
    ]  # fmt: skip


@pytest.mark.parametrize("record", ["predict", "evaluate"])
def test_predict_and_evaluate_see_it_too(told: Told, record: str) -> None:
    (offender,) = told["predict_and_evaluate"][record]["verdict"]["offenders"]
    assert (offender["type"], offender["opened"]) == ("Sinh", "pin in layer")


def test_the_layer_is_named(told: Told) -> None:
    (offender,) = told["fit_pinned"]["verdict"]["offenders"]
    assert "moved" in offender["path"]


def test_a_pin_in_a_compiled_step_is_a_note(told: Told) -> None:
    (note,) = told["fit_pinned_compiled"]["verdict"]["notes"]
    assert "Sinh asks for CPU:0 at " in note


def test_a_pin_in_a_compiled_step_passes(told: Told) -> None:
    assert told["fit_pinned_compiled"]["verdict"]["passed"] is True


def test_mixed_precision_is_seen_in_its_dtype(told: Told) -> None:
    found = told.all("mixed_precision", type="MatMul")
    assert [op["dtypes"]["T"] for op in found] == ["float16"] * 5


def test_no_check_had_a_problem(told: Told) -> None:
    assert [n for n, v in told.found.items() if isinstance(v, dict) and v.get("problems")] == []
