"""Whether a memory fraction that was asked for is in force."""

from __future__ import annotations

from pytest_tfdevice.capture.fraction import fraction_notes

GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
GIB = 2**30


def test_in_force() -> None:
    assert fraction_notes(0.5, {GPU: 8 * GIB}, {"GPU:0": 16 * GIB}, {}) == ()


def test_a_small_difference_is_the_drivers() -> None:
    assert fraction_notes(0.5, {GPU: 8 * GIB - 200 * 2**20}, {"GPU:0": 16 * GIB}, {}) == ()


def test_not_in_force() -> None:
    (note,) = fraction_notes(0.25, {GPU: 8 * GIB}, {"GPU:0": 16 * GIB}, {})
    assert "0.25 is not in force on GPU:0" in note
    assert f"{8 * GIB} bytes, 0.5 of {16 * GIB}" in note


def test_nothing_asked_nothing_said() -> None:
    assert fraction_notes(None, {GPU: 8 * GIB}, {"GPU:0": 16 * GIB}, {}) == ()


def test_unknown_total_a_later_session_is_found_out_by_the_first() -> None:
    first: dict[str, tuple[float | None, int]] = {}
    fraction_notes(0.5, {GPU: 8 * GIB}, {}, first)
    (note,) = fraction_notes(0.25, {GPU: 8 * GIB}, {}, first)
    assert "0.25 is not in force on GPU:0" in note
    assert "which asked for 0.5" in note


def test_unknown_total_after_a_session_that_asked_for_nothing() -> None:
    first: dict[str, tuple[float | None, int]] = {}
    fraction_notes(None, {GPU: 15 * GIB}, {}, first)
    (note,) = fraction_notes(0.25, {GPU: 15 * GIB}, {}, first)
    assert "which asked for no fraction" in note


def test_unknown_total_is_no_success() -> None:
    (note,) = fraction_notes(0.5, {GPU: 8 * GIB}, {}, {})
    assert "can't be told" in note


def test_above_one_is_unified_memory() -> None:
    (note,) = fraction_notes(1.5, {GPU: 24 * GIB}, {"GPU:0": 16 * GIB}, {})
    assert "unified memory" in note


def test_without_a_gpu_it_has_no_effect() -> None:
    (note,) = fraction_notes(0.5, {}, {}, {})
    assert "no effect" in note


def test_each_gpu_is_judged() -> None:
    other = GPU.replace("GPU:0", "GPU:1")
    (note,) = fraction_notes(
        0.5, {GPU: 8 * GIB, other: 15 * GIB}, {"GPU:0": 16 * GIB, "GPU:1": 16 * GIB}, {}
    )
    assert "on GPU:1" in note
