"""A watched test that is expected to fail, skips, raises, or is stopped; fixtures around it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """
import pytest, tensorflow as tf

on_gpu = pytest.mark.on_gpu

def bad():
    with tf.device("/CPU:0"):
        return tf.exp([[1.0]])

@pytest.mark.xfail(reason="known", strict=True)
@on_gpu
def test_xfail():
    bad()

@pytest.mark.xfail(reason="mended", strict=True)
@on_gpu
def test_xfail_strict_passes():
    tf.exp([[1.0]])

@pytest.mark.xfail(raises=ValueError)
@on_gpu
def test_xfail_of_another_kind():
    bad()

@on_gpu
def test_xfail_in_body():
    bad()
    pytest.xfail("in the body")

@on_gpu
def test_skip_in_body():
    bad()
    pytest.skip("in the body")

@pytest.mark.skip(reason="by mark")
@on_gpu
def test_skip_mark():
    raise AssertionError("must not run")

@on_gpu
def test_raises():
    bad()
    raise RuntimeError("its own failure")

@on_gpu
def test_raises_on_gpu():
    tf.exp([[1.0]])
    assert 1 == 2, "its own failure"

@on_gpu
def test_raises_at_once():
    raise RuntimeError("its own failure")

@on_gpu
def test_op_raises():
    with tf.device("/CPU:0"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.linalg.inv([[0.0, 0.0], [0.0, 0.0]])

@pytest.fixture
def made():
    yield bad()
    bad()

@pytest.fixture(autouse=True)
def around():
    bad()
    yield
    bad()

@on_gpu
def test_fixtures(made):
    tf.exp(made)

@pytest.fixture
def broken(made):
    raise RuntimeError("in the fixture")

@on_gpu
def test_fixture_raises(broken):
    tf.exp([[1.0]])

@pytest.fixture
def broken_at_the_end():
    yield
    raise RuntimeError("in the teardown")

@on_gpu
def test_teardown_raises(broken_at_the_end):
    tf.exp([[1.0]])

@on_gpu
def test_fails():
    bad()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("outcomes")
    return run_simulated(folder, SUITE, f"--junitxml={folder / 'junit.xml'}")


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("test_xfail", "xfailed"),
        ("test_xfail_strict_passes", "failed"),
        ("test_xfail_of_another_kind", "failed"),
        ("test_xfail_in_body", "xfailed"),
        ("test_skip_in_body", "skipped"),
        ("test_skip_mark", "skipped"),
        ("test_raises", "failed"),
        ("test_raises_on_gpu", "failed"),
        ("test_op_raises", "failed"),
        ("test_fixtures", "passed"),
        ("test_fixture_raises", "error"),
        ("test_teardown_raises", "error"),
        ("test_fails", "failed"),
    ],
)
def test_outcome(run: Run, name: str, outcome: str) -> None:
    found = run[name]
    assert found.outcome == outcome, found.text


def test_the_original_failure_is_kept_and_the_placement_added(run: Run) -> None:
    test = run["test_raises"]
    assert "RuntimeError: its own failure" in test.text
    assert "requested-elsewhere" not in test.text
    assert "1 of 1 operation that counts ran on the CPU" in test.placement
    assert "test_it.py:7" in test.placement
    assert "requested-elsewhere" in run.stdout


def test_a_failure_on_the_gpu_gets_no_section(run: Run) -> None:
    assert "its own failure" in run["test_raises_on_gpu"].text
    assert run["test_raises_on_gpu"].placement == ""


def test_a_test_that_failed_before_anything_ran(run: Run) -> None:
    assert "its own failure" in run["test_raises_at_once"].text


def test_a_placement_failure_is_the_failure_not_a_section(run: Run) -> None:
    assert run["test_fails"].placement == ""
    assert run.stdout.count("1 of 1 operation that counts ran on the CPU") >= 1


def test_an_op_that_raised_is_judged(run: Run) -> None:
    assert "MatrixInverse" in run["test_op_raises"].said


def test_skipped_tests_are_not_in_the_summary(run: Run) -> None:
    for name in ("test_skip_in_body", "test_skip_mark", "test_fixture_raises"):
        assert run[name].result is None
        assert name not in run.summary


def test_expected_failures_are_not_among_the_lost(run: Run) -> None:
    assert "2 tests failed as expected (xfail)" in run.summary
    assert "test_xfail " not in run.summary


def test_the_report_reaches_junit(run: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    xml = next(tmp_path_factory.getbasetemp().glob("outcomes*/junit.xml")).read_text()
    assert "1 of 1 operation that counts ran on the CPU" in xml


STOPPED = """
import os, pytest, tensorflow as tf
from pytest_tfdevice.capture import private

@pytest.fixture(autouse=True, scope="session")
def state():
    from tensorflow.python.client import session
    before = [private.executes_with_callbacks(), vars(session.BaseSession)["_call_tf_sessionrun"]]
    yield
    after = [private.executes_with_callbacks(), vars(session.BaseSession)["_call_tf_sessionrun"]]
    print("STATE KEPT", before == after, len(private.eager_context().op_callbacks))

@pytest.mark.on_gpu
def test_stopped(placement):
    with placement.capture():
        with tf.device("/CPU:0"):
            tf.exp([[1.0]])
        STOP

def test_never():
    raise AssertionError("must not run")
"""


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        ("raise KeyboardInterrupt", 2),
        ("pytest.exit('enough', returncode=42)", 42),
        ("pytest.exit('enough')", 2),
    ],
)
def test_stopping_the_run(tmp_path: Path, stop: str, status: int) -> None:
    done = run_simulated(tmp_path, STOPPED.replace("STOP\n", f"{stop}\n"), "-s")
    assert done.status == status
    assert "STATE KEPT True 0" in done.stdout
    assert "INTERNALERROR" not in done.output
    assert "must not run" not in done.output


def test_maxfail_and_stepwise(tmp_path: Path) -> None:
    done = run_simulated(tmp_path, SUITE, "-x", "-k", "test_fails or test_fixtures or test_raises")
    assert done.status == pytest.ExitCode.TESTS_FAILED
    assert len([t for t in done.tests.values() if t.outcome == "failed"]) == 1


RERUN = """
import pytest, tensorflow as tf

TRIES = []

@pytest.mark.flaky(reruns=2)
@pytest.mark.on_gpu
def test_flaky():
    TRIES.append(1)
    with tf.device("/CPU:0" if len(TRIES) < 2 else "/GPU:0"):
        tf.exp([[1.0]])
"""


def test_a_test_that_is_run_again_counts_once(tmp_path: Path) -> None:
    pytest.importorskip("pytest_rerunfailures")
    done = run_simulated(tmp_path, RERUN)
    assert done.status == 0, done.output
    assert "1 rerun" in done.stdout
    assert "1 judged test kept to the device" in done.summary
