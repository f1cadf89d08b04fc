"""``--tfdevice-logdir`` where nothing is watched, or where nothing can be written."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pytest_process import run_pytest

PLAIN = "def test_plain(): pass\n"
HAS_XDIST = importlib.util.find_spec("xdist") is not None


def test_without_watched_tests_nothing_is_made(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, PLAIN, "--tfdevice-logdir", "tb")
    assert done.status == 0, done.output
    assert done.modules == []
    assert done.summary == ""
    assert not (tmp_path / "tb").exists()


def test_the_header_names_the_folder(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, PLAIN, "--tfdevice-logdir", "tb")
    assert done.header == f"tfdevice: logdir={tmp_path / 'tb'}"


def test_in_the_ini_file_it_is_relative_to_that(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "test_it.py").write_text(PLAIN)
    done = run_pytest(tmp_path, {}, "--rootdir=sub", "sub", ini="tfdevice_logdir = traces")
    assert done.header == f"tfdevice: logdir={tmp_path / 'traces'}"


def test_the_command_line_goes_before_the_ini_file(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, PLAIN, "--tfdevice-logdir=mine", ini="tfdevice_logdir = traces")
    assert done.header == f"tfdevice: logdir={tmp_path / 'mine'}"


def test_an_empty_value_switches_it_off(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, PLAIN, "--tfdevice-logdir=", ini="tfdevice_logdir = traces")
    assert done.header == ""


@pytest.mark.parametrize("workers", [[], ["-n2"]] if HAS_XDIST else [[]])
def test_a_folder_that_cannot_be_written_to_ends_the_run(
    tmp_path: Path, workers: list[str]
) -> None:
    (tmp_path / "file").write_text("")
    done = run_pytest(tmp_path, PLAIN, "--tfdevice-logdir=file/traces", *workers)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "--tfdevice-logdir (ini: tfdevice_logdir): " in done.said
    assert f"{tmp_path / 'file' / 'traces'} can't be written to: Not a directory" in done.said
    assert "Traceback" not in done.output
    assert done.tests == {}
