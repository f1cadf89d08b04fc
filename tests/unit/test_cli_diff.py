"""``pytest-tfdevice diff``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_tfdevice.baseline import files
from pytest_tfdevice.baseline.entries import Entry
from pytest_tfdevice.cli import main
from pytest_tfdevice.serial.run_report import Operation

KEY = "test_x", "NVIDIA H200, TensorFlow 2.21"


def written(path: Path, device: str, test: str = "test_x") -> str:
    entry = Entry((Operation("dense", "MatMul", device), Operation("dense", "Relu", "GPU:0")))
    files.change(path, {(test, KEY[1]): entry})
    return str(path)


@pytest.fixture
def gpu(tmp_path: Path) -> str:
    return written(tmp_path / "gpu.json", "GPU:0")


@pytest.fixture
def cpu(tmp_path: Path) -> str:
    return written(tmp_path / "cpu.json", "CPU:0")


def test_a_regression_is_exit_code_1(
    gpu: str, cpu: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", gpu, cpu]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "operations in 1 test: 1 left the device"
    assert "    dense: MatMul  GPU:0 → CPU:0" in out.splitlines()
    assert "Relu" not in out


def test_an_improvement_is_none(gpu: str, cpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", cpu, gpu]) == 0
    assert "1 came to the device" in capsys.readouterr().out


def test_no_difference(gpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", gpu, gpu]) == 0
    assert capsys.readouterr().out == "no operation moved in 1 test\n"


def test_json_is_data(gpu: str, cpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", gpu, cpu, "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["regression"] is True
    assert data["tests"][0]["changes"][0]["kind"] == "lost"


def test_markdown_has_a_table(gpu: str, cpu: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", gpu, cpu, "--format", "markdown"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("### ❌ Placement: operations in 1 test: 1 left the device")
    assert "| ❌ | <code>dense</code> | <code>MatMul</code> | 1 | GPU:0 | CPU:0 |  |" in out


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "pytest-tfdevice record"}'])
def test_what_is_neither_is_exit_code_2(
    gpu: str, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    for pair in ([gpu, str(bad)], [str(bad), gpu]):
        assert main(["diff", *pair]) == 2
        assert "bad.json" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_exit_code_2(
    gpu: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", gpu, "nothing.json"]) == 2
    assert "can't read nothing.json: No such file" in capsys.readouterr().err


def test_files_without_a_common_test_are_no_success(
    gpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = written(tmp_path / "other.json", "GPU:0", "test_other")
    assert main(["diff", gpu, other]) == 2
    assert "there is nothing to compare" in capsys.readouterr().err
