"""The summary after the run."""

from __future__ import annotations

from typing import Any

from pytest_tfdevice.reports.terminal import write_summary
from pytest_tfdevice.results import TestResult


class Lines(list[str]):
    def section(self, title: str, sep: str = "=", **markup: bool) -> None:
        self.append(title)

    def write_line(self, line: str, **markup: bool) -> None:
        self.append(line)


def result(name: str, outcome: str, **extra: Any) -> TestResult:
    facts = {"devices": {"GPU:0": 10, "CPU:0": 2}, "tensorflow": "2.21.0", "simulated": True}
    return TestResult(f"test_it.py::{name}", outcome, **{**facts, **extra})


def summary(*results: TestResult) -> list[str]:
    lines = Lines()
    write_summary(lines, results)
    return lines


def test_a_run_that_watched_nothing_has_none():
    assert summary() == []


def test_the_conclusion_comes_first_and_the_worst_test_before_others():
    lines = summary(
        result("test_good", "passed", counting=10, on_target=10),
        result("test_bad", "failed", counting=10, on_target=9),
        result("test_worse", "failed", counting=10, on_target=5),
    )
    assert lines == [
        "where TensorFlow ran",
        "2 of 3 judged tests left the device",
        "operations seen: 30 on GPU:0, 6 on CPU:0",
        "TensorFlow 2.21.0; the GPU is simulated",
        "      5 off,   50 % on  test_it.py::test_worse",
        "      1 off,   90 % on  test_it.py::test_bad",
    ]


def test_a_test_that_failed_with_nothing_off_its_device_says_for_what():
    missing = result("test_op", "failed", counting=10, on_target=10, summary="Conv2D was not seen")
    blind = result("test_silent", "error", devices={}, summary="nothing ran on TensorFlow")
    lines = summary(missing, blind)
    for name, why in (("test_op", missing.summary), ("test_silent", blind.summary)):
        line = next(i for i, text in enumerate(lines) if text.endswith(f"::{name}"))
        assert lines[line + 1].strip() == why
        assert lines[line + 1].index(why) == lines[line].index("test_it.py")


def test_long_names_are_cut_to_the_width():
    long = "x" * 300
    lines = summary(
        result(long, "failed", counting=2, on_target=1),
        result(long, "error", summary="why " * 100),
    )
    assert max(map(len, lines)) == 100
    assert sum("…" in line for line in lines) == 3
