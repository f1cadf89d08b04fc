"""Runs a script in a process of its own and brings back the facts that it found.

One import of TensorFlow costs seconds, so a script makes many checks and stores them in ``facts``,
a dict that comes back as JSON; the tests then assert one fact each.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pytest_tfdevice

# Where the package that is tested lies: the source tree, or tox's site-packages.
ROOT = Path(pytest_tfdevice.__file__).resolve().parents[1]

PRELUDE = """
import json, os, sys
facts = {}
def have_simulated(count=1, memory="1 GiB"):
    from pytest_tfdevice import simulator
    try:
        simulator.load(count, memory)
    except simulator.SimulatorError as error:       # no compiler, another platform
        facts["simulated"] = False
        facts["not_simulated"] = str(error)
    else:
        facts["simulated"] = True
"""

EPILOGUE = """
with open(sys.argv[1], "w") as file:
    json.dump(facts, file)
"""


@dataclass(frozen=True)
class Facts:
    """What a script stored, and what reached its descriptors 1 and 2."""

    found: dict[str, Any]
    stdout: str
    stderr: str

    def __getitem__(self, name: str) -> Any:
        return self.found[name]


def needs_tensorflow() -> None:
    """Skips the module that calls it where TensorFlow isn't installed."""
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("needs TensorFlow", allow_module_level=True)


def run(
    script: str,
    *,
    level: int = 0,
    unbuffered: bool = False,
    env: Mapping[str, str | None] | None = None,
) -> Facts:
    """Runs prelude and ``script``; ``level`` is TF_CPP_MIN_LOG_LEVEL; a None in ``env`` unsets."""
    settings: dict[str, str | None] = dict(os.environ)
    settings |= {
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": str(level),
        "PYTHONUNBUFFERED": "1" if unbuffered else None,
        "CUDA_VISIBLE_DEVICES": None,
        **(env or {}),
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "facts.json"
        # A file, and not -c: before 3.13 Python doesn't know the lines of that, so that no
        # tf.device is found in them.
        program = Path(folder) / "program.py"
        program.write_text(PRELUDE + textwrap.dedent(script) + EPILOGUE, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(program), str(answer)],
            env={name: value for name, value in settings.items() if value is not None},
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return Facts(json.loads(answer.read_text()), done.stdout, done.stderr)


class Told:
    """What a program of ``programs/`` stored; one that it failed to find fails the test."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    def __getitem__(self, name: str) -> Any:
        value = self.found[name]
        if isinstance(value, dict) and "raised in the program" in value:
            pytest.fail(value["raised in the program"])
        return value

    def one(self, name: str, **wanted: Any) -> dict[str, Any]:
        """The only op of the record ``name`` that is as ``wanted``."""
        found = self.all(name, **wanted)
        assert len(found) == 1, f"{len(found)} ops are {wanted} among {self._short(name)}"
        return found[0]

    def all(self, name: str, **wanted: Any) -> list[dict[str, Any]]:
        """The ops of the record ``name`` that are as ``wanted``."""
        told = self[name]["ops"]
        return [op for op in told if all(op[key] == value for key, value in wanted.items())]

    def _short(self, name: str) -> list[tuple[str, str, str]]:
        return [(op["op"], op["type"], op["device"]) for op in self[name]["ops"]]


PROGRAMS = Path(__file__).parent / "programs"


def run_program(
    name: str, *arguments: str, env: Mapping[str, str] | None = None, seconds: int = 600
) -> Told:
    """Runs ``programs/NAME.py`` in a process of its own, in an empty folder."""
    settings = dict(os.environ) | {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    settings.pop("CUDA_VISIBLE_DEVICES", None)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "facts.json"
        done = subprocess.run(
            [sys.executable, str(PROGRAMS / f"{name}.py"), str(answer), *arguments],
            env=settings | dict(env or {}),
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
        found = json.loads(answer.read_text())
        if "not simulated" in found:
            pytest.skip(found["not simulated"])
        return Told(found)
