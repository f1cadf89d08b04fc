"""The window around the body of a test, which waits for TensorFlow where it has to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_tfdevice._import_hooks import after_import

if TYPE_CHECKING:
    from pytest_tfdevice.capture.graph_log import GraphLog
    from pytest_tfdevice.capture.memory_window import MemoryWindow
    from pytest_tfdevice.capture.window import Window
    from pytest_tfdevice.model import Record
    from pytest_tfdevice.patterns import Rule


class LateWindow:
    """A window that opens now, or with ``wait`` as soon as TensorFlow has been imported.

    ``graphs`` are those that ran, with ``keep_graphs``.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        wait: bool = False,
        memory_only: bool = False,
        keep_graphs: bool = False,
    ) -> None:
        self.graphs: GraphLog | None = None
        self._keep_graphs = keep_graphs
        self._memory_only = memory_only
        self._target = rules[0].target if rules else None
        self._window: Window | MemoryWindow | None = None
        self._hook: Any = None
        if wait and "tensorflow" not in sys.modules:
            self._hook = after_import("tensorflow", self._open)
        else:
            self._open()

    def _open(self, _: object = None) -> None:
        from pytest_tfdevice.capture.output import flush_c_stdio

        flush_c_stdio()
        window = self._made()
        window.open()
        self._window = window

    def _made(self) -> Window | MemoryWindow:
        if self._memory_only:
            from pytest_tfdevice.capture.memory_window import MemoryWindow

            return MemoryWindow()
        from pytest_tfdevice.capture.graph_log import GraphLog
        from pytest_tfdevice.capture.window import Window

        if self._keep_graphs:
            self.graphs = GraphLog()
        return Window(self._target, self.graphs)

    def close(self, *, leftovers: bool = False) -> Record | None:
        """What was seen; None where TensorFlow was never imported."""
        if self._hook is not None:
            self._hook.remove()
        if self._window is None:
            return None
        from pytest_tfdevice.capture.output import flush_c_stdio

        # What the test's own logging Session printed stands in C's buffer: with the test it
        # belongs to, pytest shows it there; left alone, it would come out at the end of the run.
        flush_c_stdio()
        return self._window.close(leftovers=leftovers)
