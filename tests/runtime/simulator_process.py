"""Runs a script of ``simulator_checks/`` in a fresh process, in which nothing has touched
TensorFlow, and reads what its checks saw."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest_tfdevice

ROOT = Path(pytest_tfdevice.__file__).resolve().parents[1]
"""Holds the package that is tested: the installed one, not necessarily this checkout's."""
SCRIPTS = Path(__file__).parent / "simulator_checks"


class Results(dict[str, Any]):
    """What each check of a script returned; asking for one that raised fails with its traceback."""

    def __getitem__(self, name: str) -> Any:
        result = super().__getitem__(name)
        assert "error" not in result, f"check {name} raised:\n{result['error']}"
        return result["value"]


def run_script(name: str, *arguments: str, env: Mapping[str, str] | None = None) -> Results:
    """Runs ``simulator_checks/NAME.py`` and returns its results."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "results.json"
        done = subprocess.run(
            [sys.executable, str(SCRIPTS / f"{name}.py"), *arguments, str(output)],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(SCRIPTS)]),
                "TF_CPP_MIN_LOG_LEVEL": "2",
                **(env or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=600,
            check=False,
        )
        text = done.stdout.decode(errors="replace")[-6000:]
        assert done.returncode == 0, f"{name}.py exited with {done.returncode}:\n{text}"
        assert output.exists(), f"{name}.py wrote no results:\n{text}"
        return Results(json.loads(output.read_text()))
