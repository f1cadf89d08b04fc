"""``--tfdevice-require``: a run that was promised GPUs and has fewer ends at its start."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest
from gate_process import BROKEN_TENSORFLOW, ROOT, Suite

TESTS = {"test_m.py": "def test_it(): print('it ran')\n"}
needs_tensorflow = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)


def path_of(suite: Suite) -> str:
    """What is in the suite's folder goes before what is installed."""
    return os.pathsep.join([str(suite.folder), str(ROOT)])


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path, TESTS)


@pytest.fixture
def broken(tmp_path: Path) -> Suite:
    """With a TensorFlow that can't be imported."""
    return Suite(tmp_path, {**TESTS, **BROKEN_TENSORFLOW})


@pytest.mark.parametrize("jobs", [(), ("-n2",)], ids=["alone", "xdist"])
@pytest.mark.parametrize("promise", ["gpu:1", "any:2"])
def test_it_ends_before_any_test_and_says_why(
    broken: Suite, promise: str, jobs: tuple[str, ...]
) -> None:
    run = broken.run(
        "--tfdevice-require", promise, *jobs, env={"PYTHONPATH": path_of(broken)}, in_fork=False
    )
    assert run.status == 4
    assert run.tests == {}
    wanted = "1 GPU" if promise == "gpu:1" else "2 GPUs"
    assert f"--tfdevice-require {promise}: this run was promised {wanted} and has none" in run.said
    assert "libtensorflow is a stub here" in run.said
    assert "mend it:" in run.said


def test_tests_may_be_listed_without(broken: Suite) -> None:
    run = broken.run(
        "--tfdevice-require",
        "gpu:1",
        "--collect-only",
        env={"PYTHONPATH": path_of(broken)},
        in_fork=False,
    )
    assert run.status == 0
    assert "test_it" in run.output


def test_the_ini_key_promises_too(broken: Suite) -> None:
    broken.write("pytest.ini", "[pytest]\ntfdevice_require = gpu:3\n")
    assert broken.run(env={"PYTHONPATH": path_of(broken)}, in_fork=False).status == 4


def test_without_a_promise_tensorflow_is_left_alone(broken: Suite) -> None:
    broken.write("tensorflow/__init__.py", "print('TensorFlow was imported')\n")
    run = broken.run(env={"PYTHONPATH": path_of(broken)}, in_fork=False)
    assert run.status == 0
    assert "TensorFlow was imported" not in run.output


@pytest.mark.parametrize(
    "value", ["gpu", "gpu:0", "2", "cpu:1", "gpu:-1", "gpu:x", "any:", "gpu:²"]
)
def test_what_is_no_promise_is_a_usage_error(suite: Suite, value: str) -> None:
    run = suite.run(f"--tfdevice-require={value}")
    assert run.status == 4
    assert "is neither gpu:N, for real GPUs, nor any:N" in run.said


@needs_tensorflow
def test_simulated_gpus_keep_any_promise_but_that_of_real_ones(tmp_path: Path) -> None:
    from pytest_tfdevice.simulator import errors, loading, toolchain

    try:
        loading.check_platform()
        toolchain.find_compiler()
    except errors.SimulatorError as error:
        pytest.skip(str(error))
    suite = Suite(tmp_path, TESTS)
    simulate = ("--tfdevice-simulate", "1")
    kept = suite.run("--tfdevice-require", "any:1", *simulate, in_fork=False)
    assert (kept.status, kept.tests) == (0, {"test_m.py::test_it": "passed"})
    few = suite.run("--tfdevice-require", "any:2", *simulate, in_fork=False)
    assert few.status == 4
    assert "promised 2 GPUs and has 1" in few.said
    unreal = suite.run("--tfdevice-require", "gpu:1", *simulate, in_fork=False)
    assert unreal.status == 4
    assert "promised 1 GPU, and the 1 that it has is simulated" in unreal.said


@needs_tensorflow
def test_a_machine_without_a_gpu_says_what_is_missing(suite: Suite) -> None:
    run = suite.run(
        "--tfdevice-require", "gpu:1", in_fork=False, env={"CUDA_VISIBLE_DEVICES": "-1"}
    )
    assert run.status == 4
    assert "because:" in run.said
    assert "mend it:" in run.said
