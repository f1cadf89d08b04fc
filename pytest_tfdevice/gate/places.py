"""Where baselines stand.  Asked in every run, and so without anything that takes time to load."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FOLDER = "__placements__"
SUFFIX = ".json"


def place_of(module: Path, folder: Path | None, root: Path) -> Path:
    """The file of a test module: in a folder beside it, or, below ``folder``, where the module is
    below ``root``."""
    name = module.stem + SUFFIX
    if folder is None:
        return module.parent / FOLDER / name
    try:
        return folder / module.parent.relative_to(root) / name
    except ValueError:
        return folder / name


def has_places(modules: Iterable[str], folder: Path | None, root: Path) -> bool:
    """True where there is a folder of baselines for any of the test modules."""
    return any(
        parent.is_dir() for parent in {place_of(Path(m), folder, root).parent for m in modules}
    )
