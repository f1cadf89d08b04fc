"""Report files: whether they can be written, and writing them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfdevice.outputs import writers

if TYPE_CHECKING:
    from pytest_tfdevice.serial.run_report import RunReport


@dataclass(frozen=True)
class Written:
    """A report file: written, or ``error`` says why not."""

    path: Path
    error: str = ""

    @property
    def line(self) -> str:
        """For the end of the run."""
        return f"error: {self.error}" if self.error else f"report: {shown(self.path)}"


def obstacle(path: Path) -> str:
    """Why a file can't be written, as far as that can be known before; empty where it can be."""
    if path.is_dir():
        return f"{path} is a folder"
    if path.exists() and not os.access(path, os.W_OK):
        return f"{path} is write-protected"
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not folder.is_dir():
        return f"{folder} is no folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"nothing can be written to the folder {folder}"
    return ""


def write_all(paths: Iterable[Path], report: RunReport) -> list[Written]:
    """Writes each file, whole or not at all; one that fails doesn't keep the others from it."""
    return [_write(path, report) for path in paths]


def _write(path: Path, report: RunReport) -> Written:
    from pytest_tfdevice.serial import documents

    try:
        text = writers.page(path.name, report)
    except Exception as error:  # a fault of the writer, which must not cost the other outputs
        return Written(path, f"can't make {shown(path)}: {type(error).__name__}: {error}")
    try:
        documents.write(path, text)
    except documents.FileError as error:
        return Written(path, str(error))
    return Written(path)


def shown(path: Path) -> str:
    """Relative to the working directory where it is below it."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
