"""Runs pytest on a generated suite, in a process of its own, and brings back what became of it.

One import of TensorFlow costs seconds, so a suite has many small tests and is run once, in a
module's fixture; the tests then look at one outcome each.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest

import pytest_tfdevice

HERE = Path(__file__).resolve().parent
ROOT = Path(pytest_tfdevice.__file__).resolve().parents[1]
"""Holds the package that is tested: the installed one, not necessarily this checkout's."""
SECTION = "where TensorFlow ran (tfdevice)"
QUICK = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Leaves out what costs time and changes nothing here: Hypothesis' summary imports all of it."""
_NOT_INHERITED = ("PYTEST_", "GITHUB_", "CUDA_VISIBLE_DEVICES", "TF_")


@dataclass(frozen=True)
class Test:
    """What became of one test."""

    __test__ = False

    outcome: str
    """passed, failed, skipped, xfailed, xpassed, or error for setup and teardown."""
    text: str
    """The failure, or the reason of a skip."""
    sections: tuple[tuple[str, str], ...]
    result: dict[str, Any] | None
    """What the plugin gave the report of the test's body."""

    @property
    def placement(self) -> str:
        """The plugin's own section of the report; empty where there is none."""
        return "\n".join(text for name, text in self.sections if name == SECTION)

    @property
    def said(self) -> str:
        """All that is said of a failure, on one line: a message may be wrapped anywhere."""
        return one_line(f"{self.text}\n{self.placement}")


@dataclass(frozen=True)
class Run:
    """A run of pytest: its exit status and output, and its tests."""

    status: int
    stdout: str
    stderr: str
    log: dict[str, Any]

    @property
    def output(self) -> str:
        return f"{self.stdout}\n{self.stderr}"

    @property
    def said(self) -> str:
        """The output on one line."""
        return one_line(self.output)

    @property
    def summary(self) -> str:
        """The plugin's section at the end of the run; empty where there is none."""
        found = re.search(r"^=+ where TensorFlow ran =+\n(.*?)^(?:=|$(?![\s\S]))", self.stdout, _MS)
        return one_line(found[1]) if found else ""

    @property
    def header(self) -> str:
        """The plugin's line in the header; empty where there is none."""
        found = re.search(r"^tfdevice: (?!compil|the ).*$", self.stdout, re.MULTILINE)
        return found[0] if found else ""

    @property
    def modules(self) -> list[str]:
        """Which of tensorflow, keras and numpy the process had imported in the end."""
        return list(self.log["modules"])

    @cached_property
    def tests(self) -> dict[str, Test]:
        """By the node id without the folder: ``"test_it.py::TestX::test_y[1]"``."""
        found: dict[str, Test] = {}
        for report in self.log["reports"]:
            known = found.get(report["nodeid"])
            if known is None or known.outcome == "passed" or report["when"] == "call":
                found[report["nodeid"]] = _test(report, known)
        return found

    def __getitem__(self, name: str) -> Test:
        """The one test whose node id ends so.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = [t for n, t in self.tests.items() if n == name or n.endswith(f"::{name}")]
        if len(found) != 1:
            raise LookupError(f"{name}: {len(found)} of {list(self.tests)}\n{self.output}")
        return found[0]


_MS = re.MULTILINE | re.DOTALL


def one_line(text: str) -> str:
    """White space as single spaces."""
    return " ".join(text.split())


def run_pytest(
    folder: Path,
    files: Mapping[str, str] | str,
    *args: str,
    ini: str = "",
    env: Mapping[str, str | None] | None = None,
    python_path: Path | None = None,
    timeout: float = 400,
) -> Run:
    """Writes a suite to ``folder`` and runs it.

    Args:
        folder: an empty folder.
        files: text by file name; a single text is ``test_it.py``.
        args: of pytest.
        ini: lines for the ``[pytest]`` section.
        env: environment variables, None unsets; TF_CPP_MIN_LOG_LEVEL is 2 where it isn't given.
        python_path: a folder that goes before all others on the path.
    """
    if isinstance(files, str):
        files = {"test_it.py": files}
    folder.mkdir(parents=True, exist_ok=True)
    lines = textwrap.dedent(ini).strip()
    for name, text in {"pytest.ini": f"[pytest]\n{lines}\n", **files}.items():
        (folder / name).write_text(textwrap.dedent(text).lstrip("\n"))
    log = folder / "outcomes.json"
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(_NOT_INHERITED)}
    path = [str(p) for p in (python_path, folder, HERE, ROOT) if p is not None]
    settings: dict[str, str | None] = {
        **inherited,
        "PYTHONPATH": os.pathsep.join(path),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "OUTCOME_LOG": str(log),
        "COLUMNS": "100",
        **(env or {}),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "outcome_log", *QUICK, *args],
        env={name: value for name, value in settings.items() if value is not None},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    found = {"reports": [], "modules": [], "package": ""}
    if log.exists():
        found = json.loads(log.read_text())
        assert Path(found["package"]).is_relative_to(ROOT), found["package"]
    return Run(done.returncode, done.stdout, done.stderr, found)


def run_simulated(
    folder: Path, files: Mapping[str, str] | str, *args: str, gpus: str = "1:1 GiB", **more: Any
) -> Run:
    """:func:`run_pytest` on simulated GPUs."""
    return run_pytest(folder, files, "--tfdevice-simulate", gpus, *args, **more)


def needs_tensorflow() -> None:
    """Skips the module that calls it where TensorFlow isn't installed."""
    if not _installed("tensorflow"):
        pytest.skip("needs TensorFlow", allow_module_level=True)


def needs_simulator() -> None:
    """Skips the module that calls it where there can be no simulated GPU."""
    needs_tensorflow()
    from pytest_tfdevice.simulator import errors, loading, toolchain

    try:
        loading.check_platform()
        toolchain.find_compiler()
    except errors.SimulatorError as error:
        pytest.skip(str(error), allow_module_level=True)


@cache
def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _test(report: Mapping[str, Any], earlier: Test | None) -> Test:
    outcome = report["outcome"]
    if report["wasxfail"] is not None:
        outcome = {"skipped": "xfailed", "passed": "xpassed"}.get(outcome, outcome)
    elif outcome == "failed" and report["when"] != "call":
        outcome = "error"
    if outcome == "passed" and report["when"] == "teardown" and earlier is not None:
        return earlier
    return Test(
        outcome,
        report["longrepr"],
        tuple((name, text) for name, text in report["sections"]),
        report["tfdevice"],
    )
