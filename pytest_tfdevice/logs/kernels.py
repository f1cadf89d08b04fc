"""Which kernel table a log is read with: best is the one of the release that wrote the log."""

from __future__ import annotations

import re

from pytest_tfdevice.kernels.shipped import (
    NoTableError,
    for_version,
    minor_version,
    shipped_versions,
)
from pytest_tfdevice.logs.reasons import KernelChoice


def choose_kernels(
    log: str, asked: str | None = None, installed: str | None = None
) -> KernelChoice:
    """The table for a log of the releases ``log`` ("2.18 to 2.21", "" for not known).

    ``asked``: what the user named; ``installed``: the TensorFlow of this environment.  Of the
    releases that the log may be of, the installed one is taken where it is among them, else the
    newest that has a table; a log of none of them is read with the installed one's, or the newest.

    Raises:
        NoTableError: there is no table for ``asked``.
    """
    if asked is not None:
        registry = for_version(asked)
        return KernelChoice(registry, "as asked for", not log or _among(asked, log))
    here = minor_version(installed) if installed and _has_table(installed) else None
    fitting = [version for version in shipped_versions() if log and _among(version, log)]
    if here is not None and here in fitting:
        return KernelChoice(for_version(here), "the installed one, which the log may be of", True)
    if fitting:
        return KernelChoice(for_version(fitting[-1]), "which the log may be of", True)
    if here is not None:
        return KernelChoice(for_version(here), "the installed one")
    newest = shipped_versions()[-1]
    return KernelChoice(for_version(newest), "the newest known here")


def _has_table(version: str) -> bool:
    try:
        return minor_version(version) in shipped_versions()
    except NoTableError:
        return False


def _among(version: str, releases: str) -> bool:
    numbers = [(int(a), int(b)) for a, b in re.findall(r"(\d+)\.(\d+)", releases)]
    minor = minor_version(version).split(".")
    return numbers[0] <= (int(minor[0]), int(minor[1])) <= numbers[-1]
