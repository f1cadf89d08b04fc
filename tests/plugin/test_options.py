"""Options and ini keys that need no TensorFlow: help, header, precedence, bad values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_process import QUICK, Run, one_line, run_pytest

PLAIN = "def test_plain(): pass\n"
SWITCHES = ("watch", "enforce", "strict")


def run(folder: Path, *args: str, ini: str = "") -> Run:
    return run_pytest(folder, PLAIN, *args, ini=ini)


def test_help_teaches_every_option(pytester: pytest.Pytester) -> None:
    text = one_line(pytester.runpytest(*QUICK, "--help").stdout.str())
    for name, teaches in {
        "--tfdevice-simulate=N[:MEMORY]": "without a GPU",
        "--tfdevice-watch": "report where it ran",
        "--tfdevice-enforce": "as if it were marked on_gpu",
        "--tfdevice-strict": "all but structural nodes count",
        "--tfdevice-allow=PATTERN": "an op type, name:PATTERN or reason:CODE",
        "--tfdevice-logdir=DIR": "tensorboard --logdir DIR",
    }.items():
        assert name in text
        assert teaches in text
        key = name.partition("=")[0].strip("-").replace("-", "_")
        assert re.search(rf"{key} \((string|bool|linelist)\)", text), f"no ini key {key}"
    for name in SWITCHES:
        assert f"--no-tfdevice-{name}" in text


def test_markers_teaches_every_marker(pytester: pytest.Pytester) -> None:
    text = one_line(pytester.runpytest(*QUICK, "--markers").stdout.str())
    assert "@pytest.mark.requires_gpu(count=1, memory=None, compute_capability=None): skip" in text
    assert (
        "@pytest.mark.on_gpu(*ops, index=None, allow=(), strict=False, min_ratio=None): watch"
        in text
    )
    assert (
        "@pytest.mark.on_device(device, *ops, allow=(), strict=False, min_ratio=None): as on_gpu"
        in text
    )
    assert '"name:block1/*"' in text
    assert '"/job:worker/task:1/device:GPU:0"' in text
    assert "Skips where there is no GPU" in text


def test_markers_are_registered(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        pytestmark = [pytest.mark.requires_gpu, pytest.mark.on_gpu, pytest.mark.on_device("CPU")]
        def test_it(): pass
        """
    )
    result = pytester.runpytest(*QUICK, "--strict-markers", "--collect-only")
    assert result.ret == 0
    result.stdout.no_fnmatch_line("*Warning*")


def test_the_header_says_nothing_of_defaults(tmp_path: Path) -> None:
    assert run(tmp_path).header == ""


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["--tfdevice-watch"], "tfdevice: watch"),
        (["--tfdevice-enforce", "--tfdevice-strict"], "tfdevice: enforce, strict"),
        (["--tfdevice-allow", "NonMax*", "--tfdevice-allow", "name:a/*"], "allow=NonMax*,name:a/*"),
        (["--tfdevice-simulate", "2"], "simulate=2:16 GiB"),
        (["--tfdevice-simulate", "1:512 MiB"], "simulate=1:512 MiB"),
        (["--tfdevice-simulate", "0"], ""),
        (["--no-tfdevice-watch"], ""),
    ],
)
def test_the_header_says_what_is_not_default(tmp_path: Path, args: list[str], shown: str) -> None:
    done = run(tmp_path, *args)
    assert done.status == 0, done.output
    assert (shown in done.header) if shown else (done.header == "")


INI = """
tfdevice_simulate = 3:2 GiB
tfdevice_watch = true
tfdevice_enforce = yes
tfdevice_strict = 1
tfdevice_allow =
    Bincount
    reason:dtype
"""


def test_ini_keys_are_read(tmp_path: Path) -> None:
    shown = run(tmp_path, ini=INI).header
    assert shown == (
        "tfdevice: simulate=3:2 GiB, watch, enforce, strict, allow=Bincount,reason:dtype"
    )


def test_the_command_line_goes_before_the_ini_file(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        *("--tfdevice-simulate", "1:1 GiB", "--tfdevice-allow", "Where"),
        *(f"--no-tfdevice-{name}" for name in SWITCHES),
        ini=INI,
    )
    assert done.header == "tfdevice: simulate=1:1 GiB, allow=Where"


def test_zero_switches_the_simulation_of_the_ini_file_off(tmp_path: Path) -> None:
    assert run(tmp_path, "--tfdevice-simulate", "0", ini="tfdevice_simulate = 1").header == ""


def test_options_in_addopts_and_environment(tmp_path: Path) -> None:
    done = run_pytest(
        tmp_path,
        PLAIN,
        ini="addopts = --tfdevice-simulate=1",
        env={"PYTEST_ADDOPTS": "--tfdevice-watch"},
    )
    assert done.header == "tfdevice: simulate=1:16 GiB, watch"


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("simulate", "many", "'many' is not N or N:MEMORY"),
        ("simulate", "-1", "'-1' is not N or N:MEMORY"),
        ("simulate", "65", "65 simulated GPUs are more than the 64 that can be had"),
        ("simulate", "1:", "has no memory after its colon"),
        ("simulate", "1:lots", "lots"),
        ("simulate", "1:-4 GiB", "-4 GiB"),
        ("simulate", "1:0", "0"),
        ("simulate", "1:12 KiB", "12 KiB"),
        ("simulate", "²", "is not N or N:MEMORY"),
        ("allow", "name:", "nothing after its colon"),
        ("allow", "[Ab", "'[' without its ']'"),
        ("allow", "reason:sloth", "names no reason"),
        ("allow", "block1/dense", "name:block1/dense"),
        ("allow", " MatMul", "begins or ends with a space"),
        ("allow", "", "an empty pattern picks nothing"),
    ],
)
def test_a_bad_value_is_a_usage_error(
    pytester: pytest.Pytester, option: str, value: str, why: str
) -> None:
    refused(pytester.runpytest(*QUICK, f"--tfdevice-{option}={value}"), f"--tfdevice-{option}", why)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("simulate", "a few", "'a few' is not N or N:MEMORY"),
        ("allow", "what/ever", "name:what/ever"),
        ("watch", "perhaps", "perhaps"),
        ("enforce", "2", "2"),
        ("strict", "on and off", "on and off"),
    ],
)
def test_a_bad_value_in_the_ini_file_too(
    pytester: pytest.Pytester, key: str, value: str, why: str
) -> None:
    pytester.makeini(f"[pytest]\ntfdevice_{key} = {value}\n")
    refused(pytester.runpytest(*QUICK), f"tfdevice_{key}", why)


def test_values_of_the_wrong_type_in_a_toml_file(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\ntfdevice_watch = 'never'\n")
    refused(pytester.runpytest(*QUICK), "tfdevice_watch", "never")


def refused(result: pytest.RunResult, option: str, why: str) -> None:
    text = one_line(result.stderr.str())
    assert result.ret == pytest.ExitCode.USAGE_ERROR, text
    assert option in text
    assert why in text
    assert "Traceback" not in text


def test_an_unknown_option_is_pytests_own_error(tmp_path: Path) -> None:
    assert run(tmp_path, "--tfdevice-simulated", "1").status == pytest.ExitCode.USAGE_ERROR


def test_the_plugin_can_be_switched_off(tmp_path: Path) -> None:
    assert run(tmp_path, "-p", "no:tfdevice", ini="").status == 0
