"""``--tfdevice-watch``, ``-enforce``, ``-strict`` and ``-allow`` on suites with unmarked tests."""

from __future__ import annotations

import pytest
from pytest_process import Run, needs_simulator, run_pytest, run_simulated

needs_simulator()

EARLY = """
import sys

def test_plain():
    assert 1 + 1 == 2

def test_before_tensorflow():
    assert "tensorflow" not in sys.modules

def test_late_import():
    import tensorflow as tf
    with tf.device("/CPU:0"):
        tf.exp([[1.0]])

def test_imports_only():
    import tensorflow as tf

def test_plain_after():
    assert "tensorflow" in sys.modules
"""
LATER = """
import pytest, tensorflow as tf

def bad():
    with tf.device("/CPU:0"):
        return tf.exp([[1.0]])

def test_good():
    tf.exp([[1.0]])

def test_bad():
    bad()

@pytest.mark.on_gpu(allow=["Exp"])
def test_marked_allows():
    bad()

@pytest.mark.on_gpu
def test_marked_bad():
    bad()

@pytest.mark.on_gpu(strict=False)
def test_marked_not_strict():
    tf.exp([[1.0]])
    with tf.device("/CPU:0"):
        tf.range(3) + 1

@pytest.mark.on_gpu
def test_marked_bookkeeping():
    tf.exp([[1.0]])
    with tf.device("/CPU:0"):
        tf.range(3) + 1

@pytest.mark.on_device("CPU")
def test_cpu():
    bad()

@pytest.mark.requires_gpu
def test_only_requires():
    bad()

def test_datasets():
    for _ in tf.data.Dataset.range(2).map(lambda n: n + 1):
        pass

def test_fails_itself():
    bad()
    raise RuntimeError("mine")
"""
Runs = dict[str, Run]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    def run(name: str, *args: str, ini: str = "", suite: str = LATER) -> Run:
        return run_simulated(tmp_path_factory.mktemp(name), suite, *args, ini=ini)

    return {
        "plain": run("plain"),
        "watch": run("watch", "--tfdevice-watch"),
        "enforce": run("enforce", ini="tfdevice_enforce = true"),
        "lenient": run("lenient", "--tfdevice-enforce", "--tfdevice-allow", "Exp"),
        "watch early": run("watch", "--tfdevice-watch", suite=EARLY),
        "enforce early": run("enforce", "--tfdevice-enforce", suite=EARLY),
        "strict": run("strict", "--tfdevice-strict", ini="tfdevice_allow = name:*Nothing*"),
    }


def outcomes(run: Run) -> dict[str, str]:
    return {name.rpartition("::")[2]: test.outcome for name, test in run.tests.items()}


ALWAYS_FAIL = {"test_marked_bad", "test_fails_itself"}


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("plain", set()),
        ("watch", set()),
        ("enforce", {"test_bad", "test_only_requires"}),
        ("lenient", {"test_marked_bad"}),
        ("strict", {"test_marked_bookkeeping"}),
    ],
)
def test_what_fails(runs: Runs, name: str, more: set[str]) -> None:
    failed = {test for test, outcome in outcomes(runs[name]).items() if outcome != "passed"}
    # With --tfdevice-allow Exp the marked test has nothing left to fail for.
    assert failed == (ALWAYS_FAIL ^ more if name == "lenient" else ALWAYS_FAIL | more)


def test_without_options_only_marked_tests_are_watched(runs: Runs) -> None:
    watched = {name for name, test in runs["plain"].tests.items() if test.result}
    assert {name.rpartition("::")[2] for name in watched} == {
        "test_marked_allows",
        "test_marked_bad",
        "test_marked_not_strict",
        "test_marked_bookkeeping",
        "test_cpu",
    }


def test_watch_reports_where_each_ran_and_judges_none(runs: Runs) -> None:
    run = runs["watch"]
    late = runs["watch early"]["test_late_import"].result
    assert late is not None
    assert late["outcome"] == "watched"
    assert late["devices"]["CPU:0"] >= 1
    good = run["test_good"].result
    assert good is not None
    assert good["devices"]["GPU:0"] >= 1
    assert "more watched only" in run.summary
    assert "on GPU:0" in run.summary
    assert run["test_fails_itself"].placement == ""


@pytest.mark.parametrize("mode", ["watch early", "enforce early"])
@pytest.mark.parametrize(
    "name", ["test_plain", "test_before_tensorflow", "test_plain_after", "test_imports_only"]
)
def test_what_does_not_use_tensorflow_is_left_alone(runs: Runs, mode: str, name: str) -> None:
    assert runs[mode][name].outcome == "passed"
    assert runs[mode][name].result is None


def test_enforce_says_who_judges(runs: Runs) -> None:
    said = runs["enforce"]["test_bad"].said
    assert "judged by --tfdevice-enforce" in said
    assert "requested-elsewhere" in said
    assert "test_it.py:4" in said
    late = runs["enforce early"]["test_late_import"]
    assert late.outcome == "failed"
    assert "test_it.py:11" in late.said
    assert "requested-elsewhere" in runs["enforce"]["test_fails_itself"].placement
    assert "RuntimeError: mine" in runs["enforce"]["test_fails_itself"].text


def test_a_marker_goes_before_enforce(runs: Runs) -> None:
    assert outcomes(runs["enforce"])["test_cpu"] == "passed"
    assert outcomes(runs["enforce"])["test_marked_allows"] == "passed"


def test_allow_is_told(runs: Runs) -> None:
    result = runs["lenient"]["test_bad"].result
    assert result is not None
    assert result["outcome"] == "passed"
    assert result["counting"] == 0


def test_enforce_without_a_gpu_judges_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    done = run_pytest(tmp_path_factory.mktemp("no_gpu"), LATER, "--tfdevice-enforce")
    assert outcomes(done)["test_bad"] == "passed"
    assert outcomes(done)["test_marked_bad"] == "skipped"
    assert outcomes(done)["test_cpu"] == "passed"
