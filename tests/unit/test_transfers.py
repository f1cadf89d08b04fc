"""Limits on what crosses between devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_tfdevice.model import Device, SourceLine
from pytest_tfdevice.reports.resources import transfer_failure
from pytest_tfdevice.transfers import (
    Transfer,
    TransferLimit,
    TransferLimitError,
    judge_transfers,
    merge_limits,
    transfer_limit,
)

CPU, GPU, GPU1 = (Device.parse(name) for name in ("CPU:0", "GPU:0", "GPU:1"))
UP = Transfer("x:0", "float32", (10, 10), CPU, GPU, "x", ("block/MatMul",), function="step")
DOWN = Transfer("block/y:0", "float32", (5, 10), GPU, CPU, "block/y", ("host",), function="step")
ACROSS = Transfer("z:0", "float32", (100, 10), GPU, GPU1, "z", ("w",), function="step")
SCALAR = Transfer("lr:0", "float32", (), CPU, GPU, "lr", ("block/Mul",), function="step")
READ = Transfer("result", "float32", (4,), GPU, CPU, cause="read", line=SourceLine("t.py", 7))


def judged(*transfers: Transfer, **limits: object) -> str:
    return judge_transfers(transfers, TransferLimit(**limits)).outcome  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"max_count": 3}, "passed"),
        ({"max_count": 2}, "failed"),
        ({"max_bytes": 616}, "passed"),
        ({"max_bytes": 615}, "failed"),
        ({"max_count": 9, "max_bytes": 0}, "failed"),
        ({"max_count": 4, "scalars": True}, "passed"),
        ({"max_count": 3, "scalars": True}, "failed"),
        ({"max_count": 1, "directions": ("to_device",)}, "passed"),
        ({"max_count": 0, "directions": ("to_device",)}, "failed"),
        ({"max_count": 1, "directions": ("between_devices",)}, "passed"),
        ({"max_count": 0, "directions": ("between_devices",)}, "failed"),
        ({"max_count": 0, "scope": ("other/*",)}, "passed"),
        ({"max_count": 1, "scope": ("block/*",)}, "failed"),  # as producer, and as consumer
        ({"max_count": 2, "scope": ("step",)}, "passed"),
    ],
)
def test_limits(limits: dict[str, object], outcome: str) -> None:
    assert judged(UP, DOWN, ACROSS, SCALAR, READ, **limits) == outcome


@pytest.mark.parametrize(
    ("count", "runs", "total", "times"),
    [(5, 5, False, 1), (5, 5, True, 5), (6, 5, False, 2), (3, 1, False, 3), (1, 4, False, 1)],
)
def test_a_crossing_of_each_step_is_one(count: int, runs: int, total: bool, times: int) -> None:
    often = replace(UP, count=count, runs=runs)
    verdict = judge_transfers([often], TransferLimit(max_count=0, total=total))
    assert (verdict.count, verdict.nbytes) == (times, times * 400)


def test_an_unknown_size_keeps_bytes_from_being_judged() -> None:
    unsized = replace(UP, shape=(None, 10))
    assert judged(unsized, max_bytes=10**6) == "error"
    assert judged(unsized, max_count=1) == "passed"
    assert judged(unsized, DOWN, max_bytes=100) == "failed"  # by what is known
    text = judge_transfers([unsized], TransferLimit(max_bytes=9)).summary
    assert "the size of x:0 isn't known" in text


def test_problems_keep_a_limit_from_being_kept() -> None:
    verdict = judge_transfers([], TransferLimit(max_count=0), ["the channel was cut"])
    assert (verdict.outcome, verdict.summary) == ("error", "the channel was cut")


@pytest.mark.parametrize(
    ("shape", "scalar"),
    [((), True), ((1, 1), True), ((0,), True), ((2,), False), ((None,), False), (None, False)],
)
def test_scalars_have_at_most_one_element(shape: tuple[int, ...] | None, scalar: bool) -> None:
    assert replace(UP, shape=shape).is_scalar is scalar


def test_the_report_names_each_crossing_the_largest_first() -> None:
    looped = replace(DOWN, in_loop=True, count=3, runs=3)
    verdict = judge_transfers([READ, looped, UP, SCALAR], TransferLimit(max_count=1, marker="mark"))
    assert transfer_failure(verdict, "TensorFlow 2.21.0").splitlines() == [
        "3 tensors crossed between host and device in a step, 616 B; max_count is 1",
        "  judged by mark; TensorFlow 2.21.0",
        "    CPU:0 → GPU:0  x:0  float32[10, 10], 400 B, for block/MatMul, in step",
        "    GPU:0 → CPU:0  block/y:0  float32[5, 10], 200 B, for host, in step (3 runs), in each "
        "iteration",
        "      of a loop",
        "    GPU:0 → CPU:0  result  float32[4], 16 B, read as a result (.numpy()), at t.py:7",
        "  not counted: 1 other crossing (scalars, other directions or other scopes)",
    ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "it limits nothing"),
        ({"max_count": -1}, "-1"),
        ({"max_count": 1.5}, "1.5"),
        ({"max_count": True}, "True"),
        ({"max_bytes": "lots"}, "lots"),
        ({"max_count": 1, "direction": "up"}, "'up' is none of to_device, to_host"),
        ({"max_count": 1, "direction": ()}, "no direction"),
        ({"max_count": 1, "direction": 3}, "3 is none of"),
        ({"max_count": 1, "scope": ""}, "is no pattern"),
        ({"max_count": 1, "scope": [7]}, "7 is no pattern"),
        ({"max_count": 1, "scalars": "yes"}, "scalars='yes'"),
        ({"max_count": 1, "total": 1}, "total=1"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], text: str) -> None:
    defaults = {
        "max_count": None, "max_bytes": None, "direction": "to_host", "scope": (),
        "scalars": False, "total": False,
    }  # fmt: skip
    with pytest.raises(ValueError, match=text):
        transfer_limit(**(defaults | arguments))


def test_wrong_arguments_are_the_markers_own_error() -> None:
    assert issubclass(TransferLimitError, ValueError)


def test_limits_of_one_choice_merge_and_the_nearest_wins() -> None:
    near, far = TransferLimit(max_count=1), TransferLimit(max_count=2, max_bytes=3)
    other = TransferLimit(max_count=4, directions=("to_host",))
    found = merge_limits([(near, "near"), (far, "far"), (other, "other")])
    assert [(m.max_count, m.max_bytes, m.marker) for m in found] == [
        (1, 3, "near + far"),
        (4, None, "other"),
    ]
