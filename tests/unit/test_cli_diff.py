"""``pytest-tfdevice diff``: what it prints, and its exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_tfdevice.baseline import files
from pytest_tfdevice.baseline.entries import Entry
from pytest_tfdevice.cli import main
from pytest_tfdevice.model import Device, DeviceInfo
from pytest_tfdevice.serial.run_report import Operation, RunReport, TestReport, Transfers

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


# ------------------------------------------------------------------- memory and transfers

MIB = 2**20
BEFORE = {"memory": {"GPU:0": 100 * MIB}, "transfers": Transfers(20, 1000)}


def run_of(path: Path, tensorflow: str = "2.21.0", **taken: Any) -> str:
    """The report of a run with one test, on one GPU."""
    gpu = DeviceInfo(Device("localhost", 0, 0, "GPU", 0), "NVIDIA H200")
    test = TestReport("t.py::test_x", "passed", operations=(Operation("", "MatMul", "GPU:0"),))
    RunReport(tensorflow, devices=(gpu,), tests=(replace(test, **{**BEFORE, **taken}),)).write(path)
    return str(path)


@pytest.fixture
def before(tmp_path: Path) -> str:
    return run_of(tmp_path / "before.json")


@pytest.mark.parametrize(
    ("taken", "said"),
    [
        ({"memory": {"GPU:0": 111 * MIB}}, "memory on GPU:0: 100 MiB → 111 MiB (11 % more"),
        ({"transfers": Transfers(23, 1000)}, "transfers: 20 → 23 (15 % more"),
        ({"transfers": Transfers(20, 2000)}, "transfers: 1000 B → 2 KiB (100 % more"),
    ],
)
def test_more_than_ten_percent_more_is_a_regression(
    before: str, tmp_path: Path, taken: dict[str, Any], said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    after = run_of(tmp_path / "after.json", **taken)
    assert main(["diff", before, after]) == 1
    out = capsys.readouterr().out
    assert out.startswith("no operation moved in 1 test; 1 test took more of the GPU\n")
    assert f"  {said}, 10 % is allowed)\n" in out
    assert main(["diff", before, after, "--format", "markdown"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("### ❌ ")
    assert "\n- ❌ " in out
    assert main(["diff", before, after, "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["regression"] is True
    assert [amount["is_regression"] for amount in data["tests"][0]["amounts"]] == [True]
    assert main(["diff", after, before]) == 0


@pytest.mark.parametrize(
    "taken",
    [
        {"memory": {"GPU:0": 110 * MIB}},
        {"transfers": Transfers(22, 1100)},
        {"memory": {"GPU:0": 1}, "transfers": Transfers(0, 0)},
    ],
)
def test_up_to_ten_percent_more_is_told_only(
    before: str, tmp_path: Path, taken: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    after = run_of(tmp_path / "after.json", **taken)
    assert main(["diff", before, after]) == 0
    out = capsys.readouterr().out
    assert out.startswith("no operation moved in 1 test\n")
    assert " → " in out
    assert "allowed" not in out


def test_the_first_transfer_is_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    none = run_of(tmp_path / "none.json", transfers=Transfers(0, 0))
    one = run_of(tmp_path / "one.json", transfers=Transfers(1, 64))
    assert main(["diff", none, one, "--max-growth", "1000"]) == 1
    assert "  transfers: 0 → 1 (1000 % is allowed)\n" in capsys.readouterr().out


def test_a_mebibyte_of_memory_is_noise(tmp_path: Path) -> None:
    little = run_of(tmp_path / "little.json", memory={"GPU:0": 100})
    noisy = run_of(tmp_path / "noisy.json", memory={"GPU:0": 100 + MIB})
    more = run_of(tmp_path / "more.json", memory={"GPU:0": 101 + MIB})
    assert main(["diff", little, noisy]) == 0
    assert main(["diff", little, more]) == 1


@pytest.mark.parametrize(("allowed", "code"), [("0", 1), ("4.9%", 1), ("5", 0), ("off", 0)])
def test_how_much_more_is_allowed_can_be_said(
    before: str, tmp_path: Path, allowed: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    after = run_of(tmp_path / "after.json", memory={"GPU:0": 105 * MIB})
    assert main(["diff", before, after, "--max-growth", allowed]) == code
    assert "memory on GPU:0: 100 MiB → 105 MiB" in capsys.readouterr().out


@pytest.mark.parametrize("allowed", ["-1", "much", "nan", "inf", ""])
def test_what_is_no_percentage_is_exit_code_2(
    before: str, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", before, before, f"--max-growth={allowed}"]) == 2
    said = capsys.readouterr().err
    assert f"--max-growth {allowed}: neither a percentage from 0 up nor off" in said


def test_of_another_environment_memory_is_told_and_not_judged(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = run_of(tmp_path / "after.json", "2.20.0", memory={"GPU:0": 500 * MIB})
    assert main(["diff", before, after]) == 0
    out = capsys.readouterr().out
    assert "(NVIDIA H200, TensorFlow 2.21 → NVIDIA H200, TensorFlow 2.20)" in out
    assert "memory on GPU:0: 100 MiB → 500 MiB\n" in out


def test_what_one_report_does_not_have_is_not_compared(before: str, tmp_path: Path) -> None:
    after = run_of(tmp_path / "after.json", memory={"GPU:1": 500 * MIB}, transfers=None)
    assert main(["diff", before, after]) == 0
    unsized = run_of(tmp_path / "unsized.json", transfers=Transfers(20, None))
    assert main(["diff", unsized, before]) == 0
