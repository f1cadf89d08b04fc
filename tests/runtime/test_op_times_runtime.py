"""The share of op time on each device, from the run metadata of v1 Sessions."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()

SLEEP = 0.2


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("op_times")


@pytest.mark.parametrize("name", ["once", "thrice", "two_fetches", "users_trace"])
def test_an_op_that_sleeps_takes_its_time_on_its_device(told: Told, name: str) -> None:
    times = told[name]["times"]
    assert set(times) == {"CPU:0", "GPU:0"}
    assert times["CPU:0"][1] >= SLEEP
    assert 0 < times["GPU:0"][1] < SLEEP
    assert "the op time of Sessions, each as it first ran: CPU:0 " in told[name]["text"]


def test_each_is_timed_once(told: Told) -> None:
    once = {device: ops for device, (ops, _) in told["once"]["times"].items()}
    assert {device: ops for device, (ops, _) in told["thrice"]["times"].items()} == once
    more = {device: ops for device, (ops, _) in told["two_fetches"]["times"].items()}
    assert more["GPU:0"] > once["GPU:0"]
    assert more["CPU:0"] == once["CPU:0"]


def test_the_users_own_trace_is_theirs(told: Told) -> None:
    assert told["users_trace"]["theirs"] >= 2


def test_nothing_is_said_of_what_is_not_measured(told: Told) -> None:
    assert told["not_of_sessions"]["times"] == {}
    assert "op time" not in told["not_of_sessions"]["text"]
