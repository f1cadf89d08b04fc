"""TensorFlow's own placement log of a stretch of code, at every log level and capture mode."""

from __future__ import annotations

import contextlib
from types import TracebackType

from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.log_text import placements_of, user_output
from pytest_tfdevice.capture.logging_switch import placement_logging
from pytest_tfdevice.capture.output import OutputCapture
from pytest_tfdevice.model import Placement

SILENT = (
    "TensorFlow wrote no placement log while it was switched on: nothing ran, or the log went "
    "elsewhere (to another process, or to a log listener as in a notebook)"
)


class PlacementLog:
    """A context manager that switches placement logging on and reads what it says.

    The user's own output appears when the block ends, without the log.

    What it sees and what not: functions that ran before print their bodies again, because the
    kernel cache is cleared at the start (``clear_cache=False`` leaves it: a known function then
    shows as one call).  Every distinct eager op, dtype and device is seen at every log level; at
    ``TF_CPP_MIN_LOG_LEVEL`` 1 or more ``kind`` "executed" is missing, and with it compiled
    (``jit_compile=True``) calls, of which TensorFlow prints nothing else.  Function bodies first
    run by another thread may be missing: see ``logging_switch``.

    After the block: ``placements``, ``stdout`` and ``stderr`` as captured, and ``problems``, which
    isn't empty where the log can't be relied on.  Silence is a problem.

    Raises:
        MissingPrivate: this TensorFlow lacks a name that is needed; nothing has been changed.
    """

    def __init__(self, *, clear_cache: bool = True) -> None:
        self.placements: tuple[Placement, ...] = ()
        self.problems: tuple[str, ...] = ()
        self.stdout = b""
        self.stderr = b""
        self._clear_cache = clear_cache
        self._capture: OutputCapture | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> PlacementLog:
        with contextlib.ExitStack() as stack:
            # The switch first: its probe isn't to be found in this log.
            stack.enter_context(placement_logging(give_back=user_output))
            if self._clear_cache:
                private.clear_kernel_cache(private.eager_context())
            self._capture = stack.enter_context(OutputCapture(user_output))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        capture = self._capture
        if capture is None:
            raise RuntimeError("this log isn't running")
        self._capture = None
        self._stack.close()
        self.stdout, self.stderr = capture.stdout, capture.stderr
        self.placements = placements_of(self.stdout, self.stderr)
        problems = [capture.problem] if capture.problem else []
        if not self.placements:
            problems.append(SILENT)
        self.problems = tuple(problems)
