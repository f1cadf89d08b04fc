"""pytest-xdist: workers load the simulator, the controller sums up and never imports TensorFlow."""

from __future__ import annotations

import importlib.util

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()
if importlib.util.find_spec("xdist") is None:
    pytest.skip("needs pytest-xdist", allow_module_level=True)

SUITE = """
import os, pytest, tensorflow as tf

@pytest.mark.on_gpu
@pytest.mark.parametrize("n", range(4))
def test_good(n):
    tf.exp([[1.0]])

@pytest.mark.on_gpu
@pytest.mark.parametrize("n", range(4))
def test_bad(n):
    with tf.device("/CPU:0"):
        tf.exp([[1.0]])

@pytest.mark.on_gpu
def test_raises():
    with tf.device("/CPU:0"):
        tf.exp([[1.0]])
    raise RuntimeError("mine")

@pytest.mark.requires_gpu(3)
def test_skipped():
    pass

@pytest.mark.xfail(strict=True)
@pytest.mark.on_gpu
def test_expected():
    pass

def test_unmarked(tf_devices):
    assert tf_devices.kind == "simulated" and "PYTEST_XDIST_WORKER" in os.environ
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(tmp_path_factory.mktemp("xdist"), SUITE, "-n", "2", gpus="2:1 GiB")


def test_the_controller_never_imports_tensorflow(run: Run) -> None:
    assert run.modules == []


def test_the_workers_have_the_simulated_gpus(run: Run) -> None:
    assert run["test_unmarked"].outcome == "passed", run["test_unmarked"].text
    assert run.header == "tfdevice: simulate=2:1 GiB"


@pytest.mark.parametrize("n", range(4))
def test_outcomes_and_texts_are_whole(run: Run, n: int) -> None:
    assert run[f"test_good[{n}]"].outcome == "passed"
    bad = run[f"test_bad[{n}]"]
    assert bad.outcome == "failed"
    assert "1 of 1 operation that counts ran on the CPU" in bad.said
    assert "tf.device asked for CPU:0 at test_it.py:11" in bad.said
    assert "2 simulated GPUs" in bad.said


def test_sections_and_reasons_travel(run: Run) -> None:
    assert "RuntimeError: mine" in run["test_raises"].text
    assert "requested-elsewhere" in run["test_raises"].placement
    assert "needs 3 GPUs, this process has 2" in run["test_skipped"].said


def test_the_summary_is_over_all_workers(run: Run) -> None:
    assert "5 of 9 judged tests left the device" in run.summary
    assert "1 test failed as expected (xfail)" in run.summary
    assert "4 on GPU:0" in run.summary
    assert "the GPU is simulated" in run.summary
    assert run.stdout.count("where TensorFlow ran =") == 1


def test_a_simulator_that_cannot_be_had_ends_the_run_at_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    env = {"CXX": "no-such-compiler"}
    done = run_simulated(tmp_path_factory.mktemp("none"), SUITE, "-n", "2", env=env)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "there is no such program" in done.said
    assert done.tests == {}
