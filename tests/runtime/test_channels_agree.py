"""The structured channel and the placement log tell the same of the same programs.

The log is the placer's, before TensorFlow optimises a graph; the structured channel tells what ran.
So they agree where they speak of the same op, and

* what only the log has, an optimiser removed: it is in no graph that ran;
* what only the structure has, an optimiser made: it is in no graph that was written.
"""

from __future__ import annotations

from typing import Any

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()

PROGRAMS = [
    "cond", "eager", "function", "gradients", "keras_fit", "nested", "session", "while_loop",
]  # fmt: skip


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("channels")


def devices(placements: list[list[str]]) -> dict[tuple[str, str], set[str]]:
    """Devices by name and type: eager ops of one type share a name."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, op_type, device in placements:
        found.setdefault((name, op_type), set()).add(device)
    return found


def sides(told: Told, program: str) -> tuple[dict[Any, set[str]], dict[Any, set[str]]]:
    return devices(told[program]["text"]), devices(told[program]["structured"])


def is_written(name: str, op_type: str, written: set[tuple[str, str]]) -> bool:
    """True for a node as written, or as inlined from a function: then its path has a front."""
    parts = name.split("/")
    return any(("/".join(parts[i:]), op_type) in written for i in range(len(parts)))


def test_every_program_is_here(told: Told) -> None:
    assert told["programs"] == PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_saw_it(told: Told, program: str) -> None:
    text, structured = sides(told, program)
    assert len(text.keys() & structured.keys()) >= 3


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_agree_on_devices(told: Told, program: str) -> None:
    text, structured = sides(told, program)
    differ = {
        key: (text[key], structured[key])
        for key in text.keys() & structured.keys()
        if text[key] != structured[key]
    }
    assert differ == {}


@pytest.mark.parametrize("program", PROGRAMS)
def test_both_devices_are_in_play(told: Told, program: str) -> None:
    """Agreement on one device alone would show little; a fit's pipeline is on the CPU."""
    text, structured = sides(told, program)
    agreed = set().union(*(text[key] for key in text.keys() & structured.keys()))
    assert agreed == {"CPU:0", "GPU:0"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_only_the_log_has_did_not_run(told: Told, program: str) -> None:
    text, structured = sides(told, program)
    ran = {tuple(node) for node in told[program]["ran"]}
    assert (text.keys() - structured.keys()) & ran == set()


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_only_the_structure_has_was_not_written(told: Told, program: str) -> None:
    text, structured = sides(told, program)
    written = {tuple(node) for node in told[program]["written"]}
    extra = structured.keys() - text.keys()
    assert {key for key in extra if is_written(*key, written)} == set()


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_only_the_structure_has_did_run(told: Told, program: str) -> None:
    text, structured = sides(told, program)
    ran = {tuple(node) for node in told[program]["ran"]}
    assert structured.keys() - text.keys() <= ran


@pytest.mark.parametrize("program", PROGRAMS)
def test_neither_has_a_problem(told: Told, program: str) -> None:
    assert told[program]["problems"] == []
