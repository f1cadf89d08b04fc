"""A run without marked tests imports neither TensorFlow nor NumPy, whatever the options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pytest_process import HERE, ROOT, run_pytest

PLAIN = """
import sys

def test_plain():
    assert "tensorflow" not in sys.modules
    assert "numpy" not in sys.modules
"""


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--tfdevice-simulate", "1"],
        ["--tfdevice-watch"],
        ["--tfdevice-enforce", "--tfdevice-strict", "--tfdevice-allow", "Where"],
        ["--tfdevice-simulate", "2", "--tfdevice-enforce", "--tfdevice-watch"],
        ["--collect-only"],
    ],
)
def test_nothing_is_imported(tmp_path: Path, args: list[str]) -> None:
    done = run_pytest(tmp_path, PLAIN, *args)
    assert done.status == 0, done.output
    assert done.modules == []
    assert done.summary == ""


def test_collecting_and_deselecting_marked_tests_imports_nothing(tmp_path: Path) -> None:
    suite = PLAIN + "\nimport pytest\n@pytest.mark.on_gpu\ndef test_marked(): pass\n"
    for args in (["--collect-only"], ["-m", "not on_gpu"], ["-k", "plain"]):
        assert run_pytest(tmp_path, suite, *args).modules == []


@pytest.mark.parametrize("name", ["pytest_tfdevice", "pytest_tfdevice.plugin"])
def test_importing_it_is_light(name: str) -> None:
    heavy = ("tensorflow", "numpy", "keras", "pytest_tfdevice.simulator")
    code = (
        f"import sys; before = set(sys.modules); import {name}; "
        f"print([n for n in {heavy!r} if n in sys.modules and n not in before])"
    )
    command = [
        sys.executable,
        "-c",
        code if name == "pytest_tfdevice" else f"import pytest; {code}",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_package_needs_no_pytest() -> None:
    code = "import sys, pytest_tfdevice; print('pytest' in sys.modules, '_pytest' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
    assert HERE.is_dir()
