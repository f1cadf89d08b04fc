"""A window that measures GPU memory and nothing else: no op is told, no function instantiated."""

from __future__ import annotations

import contextlib

from pytest_tfdevice.capture.memory import MemoryMeter
from pytest_tfdevice.devices import visible_devices
from pytest_tfdevice.model import Record


class MemoryWindow:
    """As a ``Window``, for a test of which only the memory is judged."""

    def __init__(self) -> None:
        self._meter = MemoryMeter()

    def open(self) -> None:
        """Begins to measure."""
        self._meter.start()

    def close(self, *, leftovers: bool = False) -> Record:
        """Ends it; with ``leftovers`` also what is held after a garbage collection."""
        import tensorflow as tf

        with contextlib.closing(self._meter) as meter:
            memory, notes = meter.measure(), meter.notes
            if leftovers:
                memory = meter.with_leftovers(memory)
        return Record(
            devices=visible_devices(), tensorflow=tf.__version__, notes=notes, memory=memory
        )
