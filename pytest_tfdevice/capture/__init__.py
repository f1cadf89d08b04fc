"""A running TensorFlow process → a Record.  Knows no pytest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pytest_tfdevice.model import DeviceSpec, Record


class Watch:
    """A window in the hands of its user; ``record`` is there once it is closed."""

    def __init__(self) -> None:
        self._record: Record | None = None

    @property
    def record(self) -> Record:
        """What was seen.

        Raises:
            RuntimeError: the window is still open.
        """
        if self._record is None:
            raise RuntimeError("the window is still open: its record is complete when it closes")
        return self._record


@contextlib.contextmanager
def watch(target: DeviceSpec | None = None) -> Iterator[Watch]:
    """Watches what the calling thread runs on TensorFlow inside the ``with`` block."""
    from pytest_tfdevice.capture.window import Window

    handle = Watch()
    window = Window(target)
    window.open()
    try:
        yield handle
    finally:
        handle._record = window.close()
