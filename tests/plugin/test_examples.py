"""The examples, run as their READMEs say: what must pass does, and what is planted is caught."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def execute(*arguments: str, cwd: Path = EXAMPLES) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def reports(output: str) -> dict[str, str]:
    """The failure report of each test, its lines joined so that wrapping doesn't matter."""
    failures = output.split("= FAILURES =")[-1].split("= where TensorFlow ran =")[0]
    parts = re.split(r"^_{3,} (\S+) _{3,}$", failures, flags=re.M)
    return {parts[i]: " ".join(parts[i + 1].split()) for i in range(1, len(parts), 2)}


def line_of(file: str, text: str) -> str:
    lines = (EXAMPLES / file).read_text().splitlines()
    return f"{file}:{next(n for n, line in enumerate(lines, 1) if text in line)}"


@pytest.fixture(scope="module")
def main_job() -> subprocess.CompletedProcess[str]:
    return execute("run.py")


@pytest.fixture(scope="module")
def regressions(main_job: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return reports(main_job.stdout)


def test_the_main_job_succeeds(main_job):
    assert main_job.returncode == 0, main_job.stdout + main_job.stderr
    assert main_job.stdout.splitlines()[-1] == (
        "examples: as expected: 4 healthy tests passed, and 4 planted regressions were caught and "
        "explained"
    )


def test_healthy_models_pass_without_an_allow_list(main_job):
    healthy = main_job.stdout.split("##### 2 of 2")[0]
    assert re.search(r"^=+ 4 passed\b", healthy, flags=re.M)
    assert "4 judged tests kept to the device" in healthy
    assert "the GPU is simulated" in healthy
    healthy_suites = [EXAMPLES / name for name in ("detection", "keras_training")]
    tests = "".join(p.read_text() for suite in healthy_suites for p in suite.glob("test_*.py"))
    assert tests.count("on_gpu") == 4
    assert "allow" not in tests


def test_the_log_of_a_session_stays_with_its_test(main_job):
    """Each test's captured output is left out here: what is shown leaked from C's buffer."""
    assert "device:GPU:0" not in main_job.stdout


def test_integer_masks_are_explained(regressions):
    report = regressions["test_integer_masks"]
    assert re.match(r"1 of \d+ operations that count ran on the CPU", report)
    assert "1 operation in second_stage on CPU:0: dtype masked_sum (BatchMatMulV2)" in report
    assert "has no GPU kernel for T=int32" in report
    # Ops of a frozen graph have no line of their own: where they were run stands for it.
    assert line_of("detection/detector.py", "boxes, scores, _ = self._session.run(") in report
    assert "mend: cast int32 to float" in report


def test_the_integer_counter_is_explained(regressions):
    report = regressions["test_integer_counter"]
    assert re.match(r"3 of \d+ operations that count ran on the CPU", report)
    assert "on CPU:0: dtype frames (VariableV2)" in report
    assert "VariableV2 has no GPU kernel for dtype=int32" in report
    assert line_of("detection/detector.py", "frames = v1.Variable(") in report
    # What writes to a variable has its dtype: a cast before it would be no help.
    assert "mend: make the variable int64" in report
    assert "cast int32" not in report


def test_the_offloaded_layer_is_explained(regressions):
    report = regressions["test_offloaded_head"]
    assert re.match(r"2 of \d+ operations that count ran on the CPU", report)
    assert re.search(r"in sequential\S*/head\S* on CPU:0: requested-elsewhere MatMul,", report)
    opened = line_of("keras_training/regression/offloaded.py", 'tf.device("/CPU:0")')
    assert f"tf.device asked for CPU:0 at {opened}" in report
    assert f"line: {line_of('keras_training/model.py', 'tf.matmul(features')} in call" in report
    assert f"mend: take it out of that tf.device at {opened}" in report


def test_the_main_job_fails_where_a_regression_is_mended_and_a_healthy_model_is_not(tmp_path):
    examples = tmp_path / "examples"
    shutil.copytree(EXAMPLES, examples, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    replace(examples / "keras_training/regression/offloaded.py", '"/CPU:0"', '"/GPU:0"')
    replace(examples / "run.py", 'tf.device("/CPU:0")\'', "tf.device('")
    replace(
        examples / "detection/conftest.py",
        'mktemp("detector"))',
        'mktemp("detector"), "--integer-masks")',
    )
    done = execute(str(examples / "run.py"), cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "examples: NOT as expected"
    assert "examples: test_offloaded_head was not caught" in done.stdout
    assert "examples: test_through_the_service should have passed: 1 of" in done.stdout


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
