"""``gpu_memory(isolated=True)`` on a simulated GPU: limits, verdicts, baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_process import Run, needs_simulator, run_pytest, run_simulated

needs_simulator()

MIB = 2**20

SUITE = """
import pytest

gpu_memory = pytest.mark.gpu_memory

def limit_of_a_session(fraction):
    import tensorflow as tf
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = fraction
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        session.run(tf.random.normal([4]))
        devices = session.list_devices()
    print(*(d.memory_limit_bytes for d in devices if d.device_type == "GPU"), "in force")

@gpu_memory("8 MiB")
def test_of_the_run(): limit_of_a_session(0.9)

@gpu_memory("8 MiB", isolated=True)
def test_of_its_own(): limit_of_a_session(0.5)

@gpu_memory("8 MiB", isolated=True)
def test_too_much():
    import tensorflow as tf
    tf.zeros([4 * 2**20])

@pytest.mark.on_gpu
@pytest.mark.placement_baseline
@gpu_memory(isolated=True)
def test_compared():
    import tensorflow as tf
    tf.exp(tf.zeros([2, 2]))

@pytest.mark.on_gpu
@pytest.mark.xfail(strict=True)
@gpu_memory(isolated=True)
def test_expected():
    import tensorflow as tf
    with tf.device("/CPU:0"):
        tf.exp(tf.zeros([2, 2]))

@pytest.mark.requires_gpu(2)
@gpu_memory(isolated=True)
def test_needs_more(): raise AssertionError("must not run")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("isolated")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_simulated(folder, SUITE, "-rP", gpus="1:256 MiB", env={"CI": None})


@pytest.mark.parametrize(("name", "fraction"), [("test_of_the_run", 0.9), ("test_of_its_own", 0.5)])
def test_each_has_its_own_fraction_in_force(run: Run, name: str, fraction: float) -> None:
    test = run[name]
    assert test.outcome == "passed", test.text
    limit = int(dict(test.sections)["Captured stdout call"].split(" in force")[0])
    assert limit == int(fraction * 256 * MIB)
    assert "not in force" not in test.said


def test_verdicts_are_as_for_any_test(run: Run) -> None:
    assert run["test_too_much"].outcome == "failed"
    assert "peak of GPU:0's allocator 16 MiB" in run["test_too_much"].said
    assert "judged by gpu_memory('8 MiB', isolated=True)" in run["test_too_much"].said
    assert run["test_compared"].outcome == "passed"
    assert run["test_expected"].outcome == "xfailed"
    assert run["test_needs_more"].outcome == "skipped"
    assert "needs 2 GPUs, this process has 1" in run["test_needs_more"].said


def test_results_are_in_the_summary(run: Run) -> None:
    assert "1 of 4 judged tests exceeded a limit" in run.summary
    assert "1 test failed as expected (xfail)" in run.summary
    table = run.stdout.split("peak GPU memory   of this test")[1]
    for name in ("test_too_much", "test_compared", "test_of_its_own"):
        assert f"test_it.py::{name}" in table


def test_its_baseline_is_written_by_the_run(run: Run, folder: Path) -> None:
    assert "test_it.json: 1 entry created; commit it" in run.said
    written = json.loads((folder / "__placements__" / "test_it.json").read_text())
    assert list(written["tests"]) == ["test_compared"]


def test_hooks_of_the_run_are_called_once_and_tensorflow_is_not_imported(tmp_path: Path) -> None:
    conftest = """
    def pytest_tfdevice_report(report):
        with open("reports.txt", "a") as file:
            print(*(test.nodeid for test in report.tests), file=file)
    """
    suite = """
    import pytest

    @pytest.mark.gpu_memory("8 MiB", isolated=True)
    def test_one():
        import tensorflow as tf
        tf.zeros([4])
    """
    run = run_simulated(tmp_path, {"conftest.py": conftest, "test_it.py": suite}, gpus="1:64 MiB")
    assert (tmp_path / "reports.txt").read_text() == "test_it.py::test_one\n"
    assert run.modules == []


def test_no_process_is_started_to_skip_a_test_where_tensorflow_is_there(tmp_path: Path) -> None:
    suite = """
    import os, pytest
    import tensorflow

    with open("pids.txt", "a") as file:
        print(os.getpid(), file=file)

    @pytest.mark.gpu_memory(isolated=True)
    def test_one(): raise AssertionError("must not run")
    """
    run = run_pytest(tmp_path, suite, env={"CUDA_VISIBLE_DEVICES": "-1"})
    assert run["test_one"].outcome == "skipped"
    assert "needs 1 GPU, this process has none" in run["test_one"].said
    assert len((tmp_path / "pids.txt").read_text().split()) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("isolated='yes'", "isolated='yes' is neither True nor False"),
        ("isolated=1", "isolated=1 is neither True nor False"),
        ("'1 GiB', isolated=None", "isolated=None is neither True nor False"),
        ("isolated=False", "it limits nothing"),
        ("index=0, isolated=True", "it limits nothing"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: str, text: str) -> None:
    suite = f"import pytest\n@pytest.mark.gpu_memory({arguments})\ndef test_it(): pass\n"
    run = run_pytest(tmp_path, suite)
    assert run.status == pytest.ExitCode.USAGE_ERROR
    assert "test_it.py::test_it: marker gpu_memory(" in run.stderr
    assert text in run.stderr
