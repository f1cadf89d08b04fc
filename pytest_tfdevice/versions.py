"""The TensorFlow versions that this package supports, in one place."""

from __future__ import annotations

import contextlib
import importlib.metadata
import re

SUPPORTED = ((2, 12), (2, 21))
"""First and last supported (major, minor) of TensorFlow."""


def parse(version: str) -> tuple[int, int]:
    """Major and minor of a TensorFlow version such as ``"2.21.0-rc1"``.

    Raises:
        ValueError: ``version`` doesn't begin with two numbers.
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"{version!r} is no version of TensorFlow")
    return int(match[1]), int(match[2])


def is_supported(version: str) -> bool:
    """Whether ``version`` lies in the supported range; False for what is no version."""
    try:
        return SUPPORTED[0] <= parse(version) <= SUPPORTED[1]
    except ValueError:
        return False


def supported_range() -> str:
    """``"2.12 to 2.21"``."""
    return " to ".join(f"{major}.{minor}" for major, minor in SUPPORTED)


def own_version() -> str:
    """That of this package; empty where it isn't installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("pytest-tfdevice")
    return ""


DISTRIBUTIONS = ("tensorflow", "tensorflow-cpu", "tf-nightly", "tensorflow-intel")
"""Wheels that bring the package ``tensorflow``."""


def installed_tensorflow() -> str | None:
    """The version of the installed TensorFlow, which isn't imported; None without a known wheel."""
    for name in DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return None
