"""The folder that keeps compiled libraries.

A library from here is loaded into the user's process, so only the user, or root, may be able to put
one there: the folder is made with mode 0700, and it and the library must be the user's or root's.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_tfdevice.simulator.errors import SimulatorError

CACHE_VARIABLE = "PYTEST_TFDEVICE_CACHE"

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """Where compiled libraries are kept: ``simulator`` in ``$PYTEST_TFDEVICE_CACHE``, else in
    ``pytest-tfdevice`` under ``$XDG_CACHE_HOME`` or ``~/.cache``.  It need not exist.

    Raises:
        SimulatorError: none of these is set and the user has no home.
    """
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute() / "simulator"
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg and Path(xdg).is_absolute():  # a relative one is to be ignored, says its specification
        return Path(xdg) / "pytest-tfdevice" / "simulator"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise SimulatorError(
            f"no place to keep the compiled library: there is no home folder. Set {CACHE_VARIABLE} "
            "to a folder that you may write to."
        ) from error
    return home / ".cache" / "pytest-tfdevice" / "simulator"


def prepare(folder: Path) -> None:
    """Makes the folder where it isn't there, and checks that this user, and only this user, may
    write to it.

    Raises:
        SimulatorError: it can't be made or written to, isn't a folder, or others may have written
            to it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_folder(folder)
        status = folder.lstat()
        if status.st_mode & 0o077 and status.st_uid == os.geteuid():
            folder.chmod(0o700)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(f"no permission to write to {folder}")
    except OSError as error:
        raise SimulatorError(
            f"the folder for the compiled library can't be used: {error}. Set {CACHE_VARIABLE} to "
            "a folder that you may write to."
        ) from error


def check_folder(folder: Path) -> None:
    """Checks that what is in the folder may be trusted.  It may be one that can't be written to: a
    container image can hold a library that root has built.

    Raises:
        SimulatorError: it isn't a folder, or others may have written to it.
        OSError: it isn't there.
    """
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise SimulatorError(
            f"{folder} is a link or no folder. Remove it, or set {CACHE_VARIABLE} to a folder that "
            "you may write to."
        )
    _check_owner(folder, status)


def check_library(library: Path) -> None:
    """Checks that a compiled library is a plain file that only its user may have written.

    Raises:
        SimulatorError: it isn't.
    """
    status = library.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise SimulatorError(f"{library} is no plain file; remove it")
    _check_owner(library, status)


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (os.geteuid(), 0):
        raise SimulatorError(
            f"{path} belongs to another user (uid {status.st_uid}), so what is in it isn't to be "
            f"trusted. Remove it, or set {CACHE_VARIABLE} to a folder of your own."
        )
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise SimulatorError(
            f"{path} may be written to by other users (mode {stat.S_IMODE(status.st_mode):04o}), "
            f"so what is in it isn't to be trusted. Remove it, or set {CACHE_VARIABLE} to a folder "
            "of your own."
        )


@contextlib.contextmanager
def exclusive(lock_file: Path, waiting: Callable[[], object]) -> Iterator[None]:
    """Keeps other processes of this user out, so that only one of them compiles.

    ``waiting`` is called where another one is inside.  On a file system without locks all go in at
    once, which costs time but does no harm: libraries are put in place by renaming.
    """
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            pass  # no locks here
        yield
    finally:
        os.close(descriptor)
