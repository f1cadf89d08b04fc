"""The kernel tables that ship with the package.  Reading one needs no TensorFlow."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.kernels.table import decompress, parse_table


class NoTableError(LookupError):
    """There is no kernel table for a version of TensorFlow."""


def minor_version(version: str) -> str:
    """``"2.21"`` of ``"2.21.0"``, ``"2.21.0-rc1"`` or ``"2.21"``.

    Raises:
        NoTableError: ``version`` doesn't begin with two numbers.
    """
    match = re.match(r"(\d+)\.(\d+)(?!\d)", version)
    if match is None:
        raise NoTableError(f"{version!r} is no version of TensorFlow, such as 2.21.0")
    return f"{match[1]}.{match[2]}"


@lru_cache(maxsize=1)
def shipped_versions() -> tuple[str, ...]:
    """Minor versions that have a table, oldest first."""
    names = [file.name for file in resources.files(__package__).joinpath("tables").iterdir()]
    found = [name.removesuffix(".tsv.gz") for name in names if name.endswith(".tsv.gz")]
    return tuple(sorted(found, key=lambda minor: tuple(map(int, minor.split(".")))))


def table_text(version: str) -> str:
    """The text of the table for a TensorFlow version.

    Raises:
        NoTableError: there is none; the message names the versions that have one.
    """
    minor = minor_version(version)
    if minor not in shipped_versions():
        first, last = shipped_versions()[0], shipped_versions()[-1]
        raise NoTableError(
            f"there is no kernel table for TensorFlow {version}: this release of pytest-tfdevice "
            f"knows the GPU kernels of TensorFlow {first} to {last}"
        )
    file = resources.files(__package__).joinpath("tables").joinpath(f"{minor}.tsv.gz")
    return decompress(file.read_bytes())


@lru_cache(maxsize=4)
def for_version(version: str) -> KernelRegistry:
    """What the CUDA-enabled wheel of this minor version registers for GPU, from the shipped table.

    Raises:
        NoTableError: no table for that version.
    """
    full, entries = parse_table(table_text(version))
    return KernelRegistry(full, "table", entries)
