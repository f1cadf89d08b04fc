"""What GitHub Actions gets of a run: annotations, and the job summary.

Variables are those that the runner sets: https://docs.github.com/actions/reference/variables-reference
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfdevice.outputs.files import shown
from pytest_tfdevice.reports.words import escape

if TYPE_CHECKING:
    from pytest_tfdevice.model import SourceLine
    from pytest_tfdevice.serial.run_report import RunReport

SUMMARY_LIMIT = 1024 * 1024
"""Bytes of a step's job summary; GitHub shows nothing of one that is larger."""
LEAST = 2000
"""Bytes without which nothing is worth saying."""

ANNOTATING = ("pytest_github_actions_annotate_failures", "pytest-github-actions-annotate-failures")
"""Names of the plugin that annotates each failed test at the test's own line."""


@dataclass(frozen=True)
class Workspace:
    """Where the repository lies, and the root of the run, from which files are named."""

    root: Path
    folder: Path | None

    @classmethod
    def of(cls, root: Path, environment: Mapping[str, str]) -> Workspace:
        """As the runner says."""
        folder = environment.get("GITHUB_WORKSPACE")
        return cls(root, Path(folder) if folder else None)

    def file_of(self, source: SourceLine) -> str:
        """From the workspace, with slashes; empty for a file that isn't in it."""
        path = self.root / source.file
        if self.folder is None:
            return source.file.replace(os.sep, "/") if not os.path.isabs(source.file) else ""
        with contextlib.suppress(ValueError):
            return path.relative_to(self.folder).as_posix()
        with contextlib.suppress(ValueError, OSError):  # also for a name that is none
            return path.resolve().relative_to(self.folder.resolve()).as_posix()
        return ""


def commands(report: RunReport, workspace: Workspace, *, with_tests: bool) -> list[str]:
    """A line of output for each annotation."""
    from pytest_tfdevice.reports.findings import findings, worth_telling
    from pytest_tfdevice.reports.github import annotated

    found = worth_telling(findings(report))
    return list(map(str, annotated(found, workspace.file_of, with_tests=with_tests)))


def tell(lines: list[str]) -> None:
    """Prints commands, each on a line of its own whatever stands on the current one."""
    if not lines:
        return
    text = "\n" + "\n".join(lines) + "\n"
    stream = sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def summarise(report: RunReport, environment: Mapping[str, str]) -> str:
    """Adds to the job summary; a line for the end of the run where that can't be."""
    from pytest_tfdevice.reports.markdown import page

    name = environment.get("GITHUB_STEP_SUMMARY")
    if not name:
        return "no job summary: GITHUB_STEP_SUMMARY is not set"
    path = Path(name)
    try:
        used = path.stat().st_size if path.exists() else 0
        room = SUMMARY_LIMIT - used - 1
        if room < LEAST:
            return f"no job summary: {shown(path)} has {used:,} bytes, of 1 MiB that GitHub shows"
        with open(path, "ab") as file:
            file.write(("\n" if used else "").encode() + page(report, room).encode("utf-8"))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return f"no job summary: can't write {escape(name)}: {why}"
    return ""
