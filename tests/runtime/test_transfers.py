"""What crosses between devices, held against the sends and receives of partition graphs."""

from __future__ import annotations

from typing import Any

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()

FLOATS = 64 * 32 * 4


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("transfers")


def in_graphs(found: dict[str, Any]) -> list[list[Any]]:
    """Tensor, direction, bytes, whether in a loop: of what crosses in graphs, sorted."""
    assert found["problems"] == []
    return sorted(t[:4] for t in found["told"] if t[6] == "graph")


LOOP = "while/body/while"

# Read by hand from the partition graphs of each program.
EXPECTED: dict[str, list[list[Any]]] = {
    "on_gpu": [],
    "argument": [["x:0", "to_device", FLOATS, False]],
    "detour": [
        ["host:0", "to_device", FLOATS, False],
        ["there:0", "to_host", FLOATS, False],
    ],
    "loop": [
        ["while/body/input:0", "to_host", FLOATS, True],
        [f"{LOOP}/host:0", "to_device", FLOATS, True],
    ],
    "nested_loops": [
        [f"{LOOP}/while/body/input:0", "to_host", FLOATS, True],
        [f"{LOOP}/while/body/while/while/inner:0", "to_device", FLOATS, True],
    ],
    "after_loop": [["while/exit:0", "to_host", FLOATS, False]],
    "branch": [
        ["Greater:0", "to_host", 1, False],
        ["cond/then/cond/host:0", "to_device", FLOATS, False],
        ["cond/then/input:0", "to_host", FLOATS, False],
    ],
    "shapes": [],
    "signal": [],
    "integers": [
        ["product:0", "to_device", 64 * 64 * 4, False],
        ["to_int:0", "to_host", FLOATS, False],
    ],
    "python": [],
    "two_gpus": [["first:0", "between_devices", FLOATS, False]],
    "three_gpu_hops": [
        ["host:0", "to_device", FLOATS, False],
        ["there:0", "to_host", FLOATS, False],
        ["x:0", "between_devices", FLOATS, False],
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_crosses_in_a_function(told: Told, name: str) -> None:
    found = told["functions"][name]
    assert in_graphs(found) == EXPECTED[name]
    assert found["by hand"] == len(EXPECTED[name])


@pytest.mark.parametrize(("name", "steps"), [("argument", 3), ("detour", 4), ("loop", 1)])
def test_steps_are_counted(told: Told, name: str, steps: int) -> None:
    found = told["functions"][name]["told"]
    assert {(count, runs) for _, _, _, _, count, runs, *_ in found} == {(steps, steps)}


def test_producer_consumer_and_function_are_named(told: Told) -> None:
    found = {t[0]: t[7:] for t in told["functions"]["detour"]["told"]}
    assert found == {
        "there:0": ["there", ["host"], "detour"],
        "host:0": ["host", ["back"], "detour"],
    }


def test_a_py_function_reads_and_makes_values(told: Told) -> None:
    found = [[t[6], *t[1:3]] for t in told["functions"]["python"]["told"]]
    assert found == [["read", "to_host", FLOATS], ["value", "to_device", FLOATS]]


def test_a_keras_fit(told: Told) -> None:
    found = told["keras_fit"]
    batches = [t for t in in_graphs(found) if t[0].startswith("IteratorGetNext")]
    assert batches == [
        ["IteratorGetNext:0", "to_device", 8 * 4 * 4, False],
        ["IteratorGetNext:1", "to_device", 8 * 2 * 4, False],
    ]
    assert {tuple(t[4:6]) for t in found["told"] if t[0].startswith("Iterator")} == {(4, 4)}
    assert found["by hand"] == len(in_graphs(found))


def test_a_session(told: Told) -> None:
    found = told["session"]
    assert in_graphs(found) == [
        ["back:0", "to_host", 160, False],
        ["host:0", "to_device", 160, False],
        ["there:0", "to_host", 160, False],
        ["there:0", "to_host", 160, False],
        ["x:0", "to_device", 160, False],
        ["x:0", "to_device", 160, False],
    ]
    # The run of `w`, three times, and that of `y`, once, which only fetches what is on the way.
    assert found["by hand"] == len([t for t in found["told"] if t[4] == 3]) == 4
    assert [t[0] for t in found["told"] if t[4] == 1] == ["x:0", "there:0"]


def test_a_loop_of_a_session(told: Told) -> None:
    found = told["session_loop"]
    assert in_graphs(found) == [
        ["while/body/host:0", "to_device", 36, True],
        ["while/body/input:0", "to_host", 36, True],
    ]
    assert found["by hand"] == 2


@pytest.mark.parametrize(
    ("case", "copies"),
    [
        ("nothing", []),
        ("same device", []),
        # The second op takes the copy that the first one had made.
        ("operand", [["operand", "to_device", "float32", FLOATS, 1, 1, None]]),
        ("to host", [["operand", "to_host", "float32", FLOATS, 1, 1, None]]),
        # Kernels take these in host memory.
        ("shape argument", []),
        ("axis", []),
        ("indices", [["operand", "to_device", "int32", 12, 1, 1, None]]),
        ("value", [["value", "to_device", "float32", 36, 1, 1, None]]),
        ("constant on host", []),
        ("read", [["read", "to_host", "float32", FLOATS, 1, 1, None]]),
        ("read scalar", [["read", "to_host", "float32", 4, 1, 1, None]]),
        ("read on host", []),
        ("copied by hand", [["copy", "to_host", "float32", FLOATS, 1, 1, None]]),
        ("compiled", [["operand", "to_device", "float32", FLOATS, 2, 2, "<lambda>"]]),
        (
            "steps",
            [
                ["value", "to_device", "float32", 16, 5, 5, "on_gpu"],
                ["read", "to_host", "float32", 16, 5, 5, "on_gpu"],
            ],
        ),
    ],
)
def test_copies_outside_of_graphs(told: Told, case: str, copies: list[list[Any]]) -> None:
    assert told["eager"][case] == copies


def test_the_line_of_a_copy_is_the_users(told: Told) -> None:
    assert told["lines"] == ["read here"]


def test_methods_are_given_back(told: Told) -> None:
    assert told["nothing_is_left_behind"] == [
        "tensorflow.python.framework.ops",
        "tensorflow.python.framework.ops",
        "tensorflow.python.framework.constant_op",
        "tensorflow.python.client.session",
        False,
    ]
