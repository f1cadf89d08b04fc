"""Suites of pytest whose records come from a placement log, so that a run takes no TensorFlow.

What such a test ran is what ``log.txt`` beside it says; a changed log is a changed model.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pytest_tfdevice.plugin

ROOT = Path(pytest_tfdevice.plugin.__file__).resolve().parents[1]
"""Holds the package that is tested: the installed one, not necessarily this checkout's."""
ENVIRONMENT = "placement log"
NOT_INHERITED = ("PYTEST_", "CI", "GITHUB_", "TF_", "CUDA_VISIBLE_DEVICES")

SUITE = """
from pathlib import Path
import pytest

@pytest.fixture
def check(placement, placement_baseline, request):
    text = Path(__file__).with_name("log.txt").read_text()
    def check(name=None):
        lines = [line for line in text.splitlines() if line.startswith(request.node.name + "/")]
        placement_baseline.check(placement.parse("\\n".join(lines)), name)
    return check

def test_a(check):
    check()

def test_b(check):
    check()
"""

LOG = """
test_a/dense/MatMul MatMul GPU:0
test_a/dense/Relu Relu GPU:0
test_a/head/ResizeBicubic ResizeBicubic CPU:0
test_b/MatMul MatMul GPU:0
"""


@dataclass(frozen=True)
class Run:
    """A run of pytest."""

    status: int
    output: str

    @property
    def said(self) -> str:
        """The output on one line: a message may be wrapped anywhere."""
        return " ".join(self.output.split())

    @property
    def tests(self) -> dict[str, str]:
        """Outcome by node id."""
        found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL) (\S+)", self.output, re.MULTILINE)
        return {nodeid: outcome.lower() for outcome, nodeid in found}

    @property
    def section(self) -> list[str]:
        """The lines of the plugin's section at the end; empty where there is none."""
        found = re.search(
            r"^=+ placement baselines =+\n(.*?)^=", self.output, re.MULTILINE | re.DOTALL
        )
        return found[1].splitlines() if found else []


class Suite:
    """A folder with tests."""

    def __init__(self, folder: Path, files: Mapping[str, str] | None = None, log: str = LOG):
        self.folder = folder
        self.write("pytest.ini", "[pytest]\n")
        for name, text in (files or {"test_m.py": SUITE}).items():
            self.write(name, text)
        self.log(log)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def log(self, text: str, folder: str = ".") -> None:
        """``NAME TYPE DEVICE`` a line."""
        rows = (line.split() for line in text.strip().splitlines())
        lines = [
            f"{name}: ({kind}): /job:localhost/replica:0/task:0/device:{device}"
            for name, kind, device in rows
        ]
        self.write(f"{folder}/log.txt", "\n".join(lines))

    def run(
        self,
        *args: str,
        cwd: str = ".",
        env: Mapping[str, str] | None = None,
        timeout: int = 300,
        in_fork: bool = True,
    ) -> Run:
        """Runs pytest in a process of its own: a fork of this one, in which pytest is loaded
        already, or, where that won't do, a fresh one."""
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(NOT_INHERITED)}
        variables = {
            **inherited,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **(env or {}),
        }
        words = ["-p", "no:cacheprovider", "-rA", *args]
        if in_fork and not any(arg.startswith("-n") for arg in args):
            return _forked(words, self.folder / cwd, variables, timeout)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            env=variables,
            cwd=self.folder / cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
        return Run(done.returncode, done.stdout)

    # ------------------------------------------------------------------ the baseline
    @property
    def file(self) -> Path:
        return self.folder / "__placements__" / "test_m.json"

    @property
    def text(self) -> str:
        return self.file.read_text()

    @property
    def tests(self) -> dict[str, Any]:
        """What the baseline holds, by test."""
        found: dict[str, Any] = json.loads(self.text)["tests"]
        return found

    def devices(self, test: str, environment: str = ENVIRONMENT) -> dict[str, str]:
        """Device by ``scope/type``."""
        return {
            f"{op['scope']}/{op['type']}": op["device"]
            for op in self.tests[test][environment]["operations"]
        }

    def only_files(self) -> list[str]:
        """What is in the folder of baselines: no temporary file must be left."""
        return sorted(path.name for path in self.file.parent.iterdir())


def _forked(args: list[str], cwd: Path, env: Mapping[str, str], timeout: int) -> Run:
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            status = 70
            try:
                signal.alarm(timeout)
                for descriptor in (1, 2):
                    os.dup2(output.fileno(), descriptor)
                sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
                sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
                sys.dont_write_bytecode = True
                os.environ.clear()
                os.environ.update(env)
                os.chdir(cwd)
                status = int(pytest.main(args))
                sys.stdout.flush()
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        output.seek(0)
        return Run(os.waitstatus_to_exitcode(ended), output.read().decode(errors="replace"))


BROKEN_TENSORFLOW = {
    "tensorflow/__init__.py": "raise ImportError('libtensorflow is a stub here')\n"
}
"""A TensorFlow that can't be imported."""
