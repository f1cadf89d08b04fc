"""The marker ``placement_baseline``, on a simulated GPU."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from gate_process import Run, Suite

SUITE = """
import os
import pytest

@pytest.mark.placement_baseline
def test_alone():
    import tensorflow as tf
    with tf.device(os.environ.get("DEVICE", "/GPU:0")):
        tf.matmul(tf.ones((2, 2)), tf.ones((2, 2)))

@pytest.mark.on_gpu
@pytest.mark.placement_baseline("named")
def test_with_on_gpu():
    import tensorflow as tf
    tf.tanh(tf.ones((2, 2)))

@pytest.mark.on_device("CPU:0")
@pytest.mark.placement_baseline
def test_on_cpu():
    import tensorflow as tf
    with tf.device("/CPU:0"):
        tf.tanh(tf.ones((2, 2)))
"""
SIMULATE = ("--tfdevice-simulate", "1")


def needs_simulator() -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow")
    from pytest_tfdevice.simulator import errors, loading, toolchain

    try:
        loading.check_platform()
        toolchain.find_compiler()
    except errors.SimulatorError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    needs_simulator()
    return Suite(tmp_path_factory.mktemp("suite"), {"test_m.py": SUITE})


@pytest.fixture(scope="module")
def created(suite: Suite) -> Run:
    return suite.run(*SIMULATE, in_fork=False)


@pytest.fixture(scope="module")
def moved(suite: Suite, created: Run) -> Run:
    return suite.run(*SIMULATE, env={"DEVICE": "/CPU:0", "CI": "1"}, in_fork=False)


def test_baselines_are_created(suite: Suite, created: Run) -> None:
    assert created.status == 0
    assert set(suite.tests) == {"test_alone", "test_with_on_gpu#named", "test_on_cpu"}
    (environment,) = suite.tests["test_alone"]
    assert environment.startswith("simulated GPU, TensorFlow 2.")
    assert suite.devices("test_alone", environment)["/MatMul"] == "GPU:0"
    assert suite.tests["test_on_cpu"][environment]["target"] == "CPU:0"


def test_a_baseline_judges_a_test(created: Run) -> None:
    """As much as ``on_gpu`` does: such a test is none that was only watched."""
    assert "3 judged tests kept to the device" in created.said
    assert "watched only" not in created.said


def test_a_test_that_left_its_baseline_left_the_device(moved: Run) -> None:
    assert "1 of 3 judged tests left the device" in moved.said
    assert "left its baseline test_m.py::test_alone" in " ".join(moved.said.split())
    # The Fill that both ones() run, and the MatMul.
    assert "2 operations are off the device, and not so in the baseline" in moved.said
    assert "watched only" not in moved.said


def test_without_the_baseline_that_must_be_there_nothing_is_judged(
    suite: Suite, created: Run, tmp_path: Path
) -> None:
    found = suite.run(
        *SIMULATE, "-k", "test_alone", "--tfdevice-baseline-dir", str(tmp_path), env={"CI": "1"},
        in_fork=False,
    )  # fmt: skip
    assert "1 test could not be judged" in found.said
    assert "there is no baseline" in found.said.partition("where TensorFlow ran")[2]


def test_an_operation_that_moved_is_named_with_its_reason(suite: Suite, moved: Run) -> None:
    assert moved.tests["test_m.py::test_alone"] == "failed"
    assert "(no scope): MatMul GPU:0 → CPU:0: requested-elsewhere" in moved.said
    assert "line: " in moved.said
    assert (
        "pytest test_m.py::test_alone --tfdevice-baseline update --tfdevice-simulate" in moved.said
    )


def test_the_others_pass(moved: Run) -> None:
    assert moved.tests["test_m.py::test_with_on_gpu"] == "passed"
    assert moved.tests["test_m.py::test_on_cpu"] == "passed"


def test_without_a_gpu_the_test_skips_and_its_entry_stays(suite: Suite, created: Run) -> None:
    before = suite.text
    run = suite.run("-k", "alone or on_gpu", in_fork=False, env={"CUDA_VISIBLE_DEVICES": "-1"})
    assert run.status == 0
    assert "2 skipped" in run.said
    assert suite.text == before


@pytest.mark.parametrize("argument", ["''", "3", "'a#b'", "nmae='x'"])
def test_wrong_arguments_are_a_usage_error(tmp_path: Path, argument: str) -> None:
    text = f"import pytest\n@pytest.mark.placement_baseline({argument})\ndef test_it(): pass\n"
    run = Suite(tmp_path, {"test_m.py": text}).run()
    assert run.status == 4
    assert "test_m.py::test_it: marker placement_baseline(" in run.said


def test_off_makes_the_marker_do_nothing(tmp_path: Path) -> None:
    text = "import pytest\n@pytest.mark.placement_baseline\ndef test_it(): pass\n"
    run = Suite(tmp_path, {"test_m.py": text}).run("--tfdevice-baseline", "off")
    assert run.tests == {"test_m.py::test_it": "passed"}
