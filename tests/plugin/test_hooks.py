"""From outside: the hooks for other plugins, stale allow entries, and errors of hard placement.

One run of pytest with TensorFlow costs seconds, so each test makes as much as it can of one.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("needs TensorFlow", allow_module_level=True)

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "custom_host_op"


def run(folder: Path, *arguments: str, **env: str) -> str:
    """What pytest prints in ``folder``, with one simulated GPU."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "ignore"]
    done = subprocess.run(
        [*command, "--tfdevice-simulate", "1", *arguments],
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "g++" in done.stderr + done.stdout and "simulate" in done.stderr:
        pytest.skip("no compiler for the simulated GPU")
    return done.stdout + done.stderr


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def test_the_example_says_what_is_host_work(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example")
    dashboard = tmp_path / "dashboard.jsonl"
    xml = tmp_path / "junit.xml"
    out = run(tmp_path / "example", f"--junitxml={xml}", RANKING_DASHBOARD=str(dashboard))
    assert "1 passed" in out
    (line,) = dashboard.read_text().splitlines()
    assert list(json.loads(line).values()) == ["passed"]
    assert '<property name="lookups" value="1"' in xml.read_text()


def test_without_the_hook_the_example_fails(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example")
    (tmp_path / "example" / "conftest.py").unlink()
    out = run(tmp_path / "example")
    assert "1 failed" in out
    assert "DenseBincount" in out


def test_host_work_of_a_hook_counts_under_strict(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "example")
    out = run(tmp_path / "example", "--tfdevice-strict")
    assert "1 failed" in out
    assert "DenseBincount" in out


STALE = """
import pytest
import tensorflow as tf

def work():
    return tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]))

@pytest.mark.on_gpu(allow=["ResizeBicubic", "Cholesky", "name:shared"])
def test_needs_one_of_three():
    work()
    tf.image.resize(tf.ones([1, 4, 4, 1]), [2, 2], method="bicubic")

@pytest.mark.on_gpu(allow=["name:shared", "Svd"])
def test_needs_none():
    work()

@pytest.mark.on_gpu(allow=["Svd"])
def test_is_skipped():
    pytest.skip("not here")

@pytest.mark.on_gpu(allow=["Qr"])
def test_is_cut_short():
    work()
    raise ValueError
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_stale_allow_entries(tmp_path: Path, workers: tuple[str, ...]) -> None:
    if workers and importlib.util.find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    write(tmp_path, test_stale=STALE)
    out = run(tmp_path, *workers, "--tfdevice-allow", "Lu", "--tfdevice-allow", "reason:no-kernel")
    summary = out[out.index("allow entries that excused nothing") :].split("====")[0]
    entries = summary.split("peak GPU memory")[0].splitlines()[1:]
    assert [line.split()[0] for line in entries if line.strip()] == [*("Cholesky", "name:shared")]
    assert "name:shared (test_stale.py::test_needs_none and 1 more)" in summary
    assert "2 passed" in out


def test_entries_are_not_stale_where_some_tests_were_left_out(tmp_path: Path) -> None:
    write(tmp_path, test_stale=STALE)
    out = run(tmp_path, "-k", "none")
    assert "1 passed" in out
    assert "allow entries" not in out


HARD = """
import pytest
import tensorflow as tf

@pytest.fixture(autouse=True)
def hard():
    tf.config.set_soft_device_placement(False)
    yield
    tf.config.set_soft_device_placement(True)

def product():
    @tf.function
    def step(x):
        with tf.device("/GPU:0"):
            return tf.matmul(x, x, name="prod")
    return step(tf.ones([2, 2], tf.int32))

@pytest.mark.on_gpu
def test_dtype():
    product()

@pytest.mark.on_gpu
def test_kernel():
    with tf.device("/GPU:0"):
        tf.image.resize(tf.ones([1, 4, 4, 1]), [2, 2], method="bicubic")

@pytest.mark.on_gpu
def test_device():
    with tf.device("/GPU:7"):
        tf.sin(tf.ones([2]))

@pytest.mark.on_gpu
def test_cause():
    try:
        product()
    except tf.errors.InvalidArgumentError as error:
        raise RuntimeError("the step failed") from error

@pytest.mark.on_gpu
def test_caught():
    with pytest.raises(tf.errors.InvalidArgumentError):
        product()

@pytest.mark.requires_gpu
def test_not_watched():
    product()
"""


def test_errors_of_hard_placement_become_the_report(tmp_path: Path) -> None:
    write(tmp_path, test_hard=HARD)
    out = run(tmp_path)
    assert "5 failed, 1 passed" in out
    sections = out.split("what TensorFlow could not place (tfdevice)")[1:]
    heads = sorted(part.splitlines()[1] for part in sections)
    assert heads == [
        "TensorFlow could not place ResizeBicubic on GPU:0: no-kernel",
        "TensorFlow could not place an operation on GPU:7: no-gpu",
        "TensorFlow could not place prod (MatMul) on GPU:0: dtype",
        "TensorFlow could not place prod (MatMul) on GPU:0: dtype",
    ]
    assert "why:   MatMul has no GPU kernel for T=int32; it has for T: bfloat16" in out
    assert "there is only GPU:0" in out
    assert "4 of 5 judged tests left the device" in out
