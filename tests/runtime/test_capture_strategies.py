"""MirroredStrategy on two simulated GPUs."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("strategies")


def test_there_are_two_gpus(told: Told) -> None:
    assert told["gpus"] == ["/device:GPU:0", "/device:GPU:1"]


@pytest.mark.parametrize(("op", "device"), [("Sinh", "GPU:1"), ("Cosh", "GPU:0")])
def test_the_second_gpu_is_told_from_the_first(told: Told, op: str, device: str) -> None:
    assert told.one("second_gpu", type=op)["device"] == device


def test_any_gpu_will_do_for_gpu(told: Told) -> None:
    assert told["second_gpu"]["on gpu"]["passed"] is True


def test_the_wrong_gpu_fails(told: Told) -> None:
    assert [o["type"] for o in told["second_gpu"]["on gpu 1"]["offenders"]] == ["Cosh"]


@pytest.mark.parametrize("op", ["MatMul", "Tanh", "Sum", "AssignAddVariableOp"])
def test_each_replica_has_its_gpu(told: Told, op: str) -> None:
    found = {o["op"]: o["device"] for o in told.all("mirrored_run", type=op)}
    assert found == {op: "GPU:0", f"replica_1/{op}": "GPU:1"}


@pytest.mark.parametrize("record", ["mirrored_run", "eager_reduce_of_strategy"])
def test_the_reduction_on_the_cpu_is_the_frameworks(told: Told, record: str) -> None:
    assert told[record]["verdict"]["framework"] == ["AddN"]


@pytest.mark.parametrize("record", ["mirrored_run", "eager_reduce_of_strategy"])
def test_mirrored_work_passes(told: Told, record: str) -> None:
    assert told[record]["verdict"]["passed"] is True


@pytest.mark.parametrize("device", ["GPU:0", "GPU:1"])
def test_eager_replicas_are_seen_with_their_line(told: Told, device: str) -> None:
    found = told.one("eager_reduce_of_strategy", type="Sinh", device=device)
    assert found["line"] == "eager replica op"


def test_a_pin_in_a_replica_fails_at_the_line_that_was_written(told: Told) -> None:
    """In a replica's thread TensorFlow names AutoGraph's temporary copy of the code."""
    (offender,) = told["mirrored_pin"]["verdict"]["offenders"]
    assert [offender[k] for k in ("reason", "opened", "line")] == [
        "requested-elsewhere", "pin in replica", "pinned in replica",
    ]  # fmt: skip


def test_no_check_had_a_problem(told: Told) -> None:
    assert [n for n, v in told.found.items() if isinstance(v, dict) and v.get("problems")] == []
