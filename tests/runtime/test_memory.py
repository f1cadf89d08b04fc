"""GPU memory: the figures are those of ``get_memory_info``, and nothing is initialised for them."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()

MIB = 2**20
TENSOR = 4 * MIB


@pytest.fixture(scope="module", params=[(1, "64 MiB"), (1, "1 GiB"), (2, "256 MiB")])
def eager(request: pytest.FixtureRequest) -> tuple[Told, int, int]:
    count, size = request.param
    number, unit = size.split()
    told = run_program("memory", str(count), size, "eager")
    return told, count, int(number) * {"MiB": MIB, "GiB": 1024 * MIB}[unit]


def test_figures_are_those_taken_by_hand(eager: tuple[Told, int, int]) -> None:
    told, count, size = eager
    found = told["eager"]
    assert set(found["told"]) == {f"GPU:{number}" for number in range(count)}
    for name, figures in found["told"].items():
        assert figures["before"] == told["resident"][name]["current"]
        assert figures["peak"] == found["peak"][name]["peak"]
        assert figures["after"] == found["by hand"][name]["current"]
        assert figures["total"] == figures["limit"] == figures["reserved"] == size
        assert figures["growth"] is False
    busy = found["told"][f"GPU:{count - 1}"]
    assert busy["peak"] - busy["before"] >= 2 * TENSOR
    assert TENSOR <= busy["after"] - busy["before"] < 2 * TENSOR


def test_meters_nest(eager: tuple[Told, int, int]) -> None:
    inner, outer = (found["GPU:0"] for found in eager[0]["nested"])
    assert TENSOR <= inner["peak"] - inner["before"] < 2 * TENSOR
    assert 2 * TENSOR <= outer["peak"] - outer["before"] < 3 * TENSOR


def test_the_users_own_reset_hides_nothing(eager: tuple[Told, int, int]) -> None:
    told, by_hand = eager[0]["user_resets"]
    assert told["GPU:0"]["peak"] - told["GPU:0"]["before"] >= 2 * TENSOR
    assert by_hand["peak"] < told["GPU:0"]["peak"]


def test_what_is_left_is_counted_after_a_collection(eager: tuple[Told, int, int]) -> None:
    found = eager[0]["leak"]["GPU:0"]
    assert found["after"] - found["before"] >= 3 * TENSOR  # with the tensor in a cycle
    assert found["left"] - found["before"] == TENSOR


def test_a_record_has_the_memory(eager: tuple[Told, int, int]) -> None:
    found = eager[0]["in_a_record"]
    figures = found["told"]["GPU:0"]
    assert figures["peak"] - figures["before"] == TENSOR
    assert "GPU:0: 3 MiB before, peak 7 MiB, this test 4 MiB" in found["text"]


def test_nothing_is_initialised_to_measure() -> None:
    told = run_program("memory", "1", "64 MiB", "nothing")
    assert told["nothing"] == {"told": {}, "notes": [], "initialised": False}


def test_sessions_are_measured_and_the_eager_runtime_left_alone() -> None:
    told = run_program("memory", "1", "256 MiB", "session")
    first = told["first_session"]
    assert first["initialised"] is False
    assert first["notes"] == []
    figures = first["told"]["GPU:0"]
    assert figures["before"] == 0
    assert figures["peak"] >= TENSOR
    assert (figures["limit"], figures["total"]) == (128 * MIB, 256 * MIB)
    assert (figures["growth"], figures["reserved"]) == (True, None)
    second = told["second_session"]
    assert second["initialised"] is False
    # What the first one asked for stays in force: its limit and its growth.
    assert second["told"]["GPU:0"]["limit"] == 128 * MIB
    assert second["told"]["GPU:0"]["growth"] is True
    (note,) = second["notes"]
    assert "memory_fraction 0.9 is not in force on GPU:0" in note
    assert f"{128 * MIB} bytes, 0.5 of {256 * MIB}, set by the first Session at" in note
    assert "which asked for 0.5" in note
    assert told["eager"]["told"]["GPU:0"]["limit"] == 128 * MIB


def test_a_session_before_anything_was_watched() -> None:
    told = run_program("memory", "1", "256 MiB", "unwatched")
    found = told["closed_before"]
    assert found["told"]["GPU:0"]["limit"] == 64 * MIB
    (note,) = found["notes"]
    assert "memory_fraction 0.5 is not in force on GPU:0" in note
    assert "set by what came first and was not watched" in note


def test_logical_devices_have_their_own_limits() -> None:
    told = run_program("memory", "1", "256 MiB", "logical")
    found = told["eager"]["told"]
    assert {name: (m["limit"], m["total"], m["logical"]) for name, m in found.items()} == {
        "GPU:0": (64 * MIB, 64 * MIB, True),
        "GPU:1": (32 * MIB, 32 * MIB, True),
    }


def test_memory_growth_reserves_nothing_beforehand() -> None:
    figures = run_program("memory", "1", "256 MiB", "growth")["eager"]["told"]["GPU:0"]
    assert (figures["growth"], figures["reserved"], figures["limit"]) == (True, None, 256 * MIB)
