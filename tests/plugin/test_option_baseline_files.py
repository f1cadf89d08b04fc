"""Baseline files that can't be trusted or written, and runs that go wrong: what was there stays."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gate_process import LOG, SUITE, Suite

UPDATE = ("--tfdevice-baseline", "update")
MOVED = LOG.replace("test_a/dense/MatMul MatMul GPU:0", "test_a/dense/MatMul MatMul CPU:0")
WITHOUT_B = SUITE[: SUITE.index("def test_b")]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two tests, without a baseline."""
    return Suite(tmp_path)


@pytest.fixture
def recorded(suite: Suite) -> Suite:
    """Two tests with a baseline."""
    assert suite.run("--tfdevice-baseline", "create").status == 0
    return suite


# ---------------------------------------------------------------- files not to be trusted


def with_conflict(text: str) -> str:
    lines = text.splitlines(keepends=True)
    lines[7:7] = ["<<<<<<< HEAD\n", "=======\n", ">>>>>>> branch\n"]
    return "".join(lines)


def with_double(text: str) -> str:
    return text.replace('"test_b": {', '"test_a": {')


def with_double_operation(text: str) -> str:
    line = '          {"scope": "test_b", "type": "MatMul", "device": "GPU:0", "count": 1}'
    return text.replace(line, f"{line},\n{line}")


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (with_conflict, r"test_m\.json:8: a merge conflict \(<<<<<<<\) is not settled"),
        (
            lambda text: text.replace('"version": 1', '"version": 7'),
            r"test_m\.json:3: version 7 isn't known, only 1 is; a newer pytest-tfdevice wrote it",
        ),
        (with_double, r"test_m\.json:\d+: 'test_a' stands there twice"),
        (with_double_operation, r"MatMul in 'test_b' on GPU:0 stands there twice"),
        (lambda text: text[:200], r"test_m\.json:\d+: no JSON"),
        (lambda text: "[]", r"a JSON object is wanted"),
        (lambda text: text.replace("baseline", "report", 1), r"no baseline of pytest-tfdevice"),
        (lambda text: text.replace('"count": 1', '"count": "1"'), r"'1' is no int"),
        (lambda text: "", r"test_m\.json:1: no JSON"),
    ],
)
@pytest.mark.parametrize("mode", [(), UPDATE], ids=["check", "update"])
def test_a_file_that_can_not_be_trusted_fails_and_stays(
    recorded: Suite, spoil: object, complaint: str, mode: tuple[str, ...]
) -> None:
    spoilt = spoil(recorded.text)  # type: ignore[operator]
    recorded.file.write_text(spoilt)
    run = recorded.run(*mode)
    assert run.status == 1
    assert run.tests["test_m.py::test_a"] == "failed"
    assert re.search(complaint, run.said)
    assert recorded.text == spoilt
    assert recorded.only_files() == ["test_m.json"]


# ------------------------------------------------------------------ runs that go wrong

LIMIT = """
def test_c(check):
    import resource
    check()
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
"""


def test_a_full_disk_leaves_the_old_file(recorded: Suite) -> None:
    before = recorded.text
    recorded.write("test_m.py", SUITE + LIMIT)
    recorded.log(f"{MOVED}test_c/MatMul MatMul GPU:0\n")
    run = recorded.run(*UPDATE, in_fork=False)
    assert run.status == 1
    assert run.tests["test_m.py::test_c"] == "passed"
    assert "error: can't write" in run.said
    assert "it is as it was" in run.said
    assert recorded.text == before
    assert recorded.only_files() == ["test_m.json"]


def test_a_folder_that_can_not_be_made_fails_the_run(suite: Suite) -> None:
    suite.write("__placements__", "a file")
    run = suite.run()
    assert run.status == 1
    assert "can't read" in run.said or "can't write" in run.said


def test_an_interrupted_run_writes_what_had_passed(recorded: Suite) -> None:
    recorded.log(MOVED)
    interrupted = "def test_b(check):\n    raise KeyboardInterrupt\n"
    recorded.write("test_m.py", WITHOUT_B + interrupted)
    run = recorded.run(*UPDATE)
    assert run.status == 2
    assert recorded.devices("test_a")["test_a/dense/MatMul"] == "CPU:0"
    assert recorded.devices("test_b") == {"test_b/MatMul": "GPU:0"}
    assert recorded.only_files() == ["test_m.json"]


def test_a_worker_that_dies_takes_only_its_own_tests_along(recorded: Suite) -> None:
    recorded.log(MOVED)
    dead = "def test_b(check):\n    import os\n    os._exit(3)\n"
    recorded.write("test_m.py", WITHOUT_B + dead)
    run = recorded.run("-n2", *UPDATE)
    assert run.status == 1
    assert recorded.devices("test_a")["test_a/dense/MatMul"] == "CPU:0"
    assert recorded.devices("test_b") == {"test_b/MatMul": "GPU:0"}


def test_one_check_twice_is_an_error(tmp_path: Path) -> None:
    twice = SUITE.replace("    check()\n\ndef", "    check(); check()\n\ndef")
    suite = Suite(tmp_path, {"test_m.py": twice})
    run = suite.run()
    assert run.tests["test_m.py::test_a"] == "failed"
    assert "test_a was compared with its baseline already: give each check a name" in run.said
