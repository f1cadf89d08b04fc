"""The private names of pytest that running a test elsewhere needs.  Seen on 8 and 9."""

from __future__ import annotations

from pathlib import Path

import pytest

_FACTORY = "_tmp_path_factory"


def base_of_temporary_folders(config: pytest.Config) -> Path | None:
    """Where the run's ``tmp_path`` folders are; None where pytest no longer tells.

    Public is only a fixture, which needs a test.  pytest-xdist takes the same way.
    """
    factory = getattr(config, _FACTORY, None)
    return None if factory is None else Path(factory.getbasetemp())


def probe(config: pytest.Config) -> list[str]:
    """What is missing, one message each."""
    return [] if hasattr(config, _FACTORY) else [f"pytest.Config has no {_FACTORY}"]
