"""The ending of a report's name → what writes it.

Config imports this to check an ending: writers are imported when they are used.
"""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_tfdevice.serial.run_report import RunReport

WRITERS = {
    ".json": "pytest_tfdevice.reports.json:page",
    ".md": "pytest_tfdevice.reports.markdown:page",
    ".html": "pytest_tfdevice.reports.html:page",
    ".sarif": "pytest_tfdevice.reports.sarif:page",
}
"""Each a function that takes the :class:`RunReport` and returns the text of the file."""


def check_ending(name: str) -> None:
    """
    Raises:
        ValueError: no writer is known for the ending of a file's name.
    """
    ending = PurePath(name).suffix.lower()
    if ending not in WRITERS:
        what = f"its ending {ending!r} is none of" if ending else "it has no ending; known are"
        raise ValueError(f"{name!r}: {what} {', '.join(WRITERS)}")


def page(name: str, report: RunReport) -> str:
    """The text of the file of that name."""
    module, _, function = WRITERS[PurePath(name).suffix.lower()].partition(":")
    text: str = getattr(importlib.import_module(module), function)(report)
    return text
