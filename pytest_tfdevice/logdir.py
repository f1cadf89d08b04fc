"""Where the event files of ``--tfdevice-logdir`` go: a folder, TensorBoard's *run*, for each graph.

``DIR/tests/test_m.py/TestX/test_y[1]/train_step/events.out.tfevents.…tfdevice``.  What an earlier
run of pytest wrote for a test is replaced; a test that is run again in the same one, as
pytest-rerunfailures does, has a folder of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import tempfile
import time
from collections import Counter
from pathlib import Path

SUFFIX = ".tfdevice"
MAX_NAME = 150
"""Bytes of a folder's name; file systems take 255."""

_UNSAFE = re.compile(r"[^\w.+=,@()\[\]<>-]")


class LogdirError(ValueError):
    """A folder that can't be written to."""


def check(folder: Path) -> None:
    """Tries whether files can be written to ``folder``, and leaves nothing there.

    Raises:
        LogdirError: they can't; the message says why.
    """
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise LogdirError(f"{folder} can't be written to: {error.strerror or error}") from None


def safe_path(nodeid: str) -> Path:
    """A relative path for a test, which no other test has.

    Parts of the node id become folders; parameters stay one part.  Where characters have to be
    replaced, or a name to be cut, a part of the node id's hash is added.
    """
    test, bracket, parameters = nodeid.partition("[")
    parts = [part for part in re.split(r"::|/", test) if part] or ["test"]
    parts[-1] += bracket + parameters
    return Path(*(_safe(part) for part in parts))


def _safe(part: str) -> str:
    name = _UNSAFE.sub("_", part)
    whole = os.fsencode(part)
    if name == part and part not in (".", "..") and len(whole) <= MAX_NAME:
        return name
    short = os.fsencode(name)[:MAX_NAME].decode(errors="ignore").strip(".")
    return f"{short}-{hashlib.sha256(whole).hexdigest()[:8]}"


class Logdir:
    """The folder of one run of pytest, in one process.

    ``run`` is the same in every worker of pytest-xdist; ``worker`` is this one.
    """

    def __init__(self, folder: Path, run: str, worker: str) -> None:
        self._folder = folder
        self._run = run
        self._worker = worker
        self._tries: Counter[str] = Counter()

    def begin(self, nodeid: str) -> Path:
        """The folder for a test that was run; what earlier runs of pytest wrote there is removed.

        Raises:
            OSError: it can't be removed.
        """
        folder = self._folder / safe_path(nodeid)
        self._tries[nodeid] += 1
        if self._tries[nodeid] > 1:
            return folder.with_name(f"{folder.name}~{self._tries[nodeid]}")
        if folder.parent.is_dir():
            tries = re.compile(re.escape(folder.name) + r"(~\d+)?")
            for found in folder.parent.iterdir():
                if tries.fullmatch(found.name) and found.is_dir():
                    self._clear(found)
        return folder

    def file(self, folder: Path, graph: str) -> Path:
        """The event file of a graph; TensorBoard reads those with ``tfevents`` in their names."""
        stamp = f"{int(time.time()):010d}.{socket.gethostname()}.{self._run}.{self._worker}"
        return folder / _safe(graph) / f"events.out.tfevents.{stamp}{SUFFIX}"

    def _clear(self, folder: Path) -> None:
        """Removes our own event files of other runs, and folders that are empty then."""
        for run in folder.iterdir():
            if not run.is_dir():
                continue
            for path in run.iterdir():
                ours = path.name.startswith("events.out.tfevents.") and path.suffix == SUFFIX
                if ours and path.name.split(".")[-3] != self._run:
                    path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not empty
                run.rmdir()
        with contextlib.suppress(OSError):
            folder.rmdir()
