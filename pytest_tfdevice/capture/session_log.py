"""What a v1 Session's placement log has told so far.  Knows no TensorFlow.

When a Session prints (TensorFlow 2.12 to 2.21): the whole graph at its first run; nothing at later
runs, until the graph has grown: then all of it again; the bodies of functions at the first run that
needs them; with ``place_pruned_graph`` each new set of fetches.  So what has to be captured is each
run of a grown graph and each first run of a set of fetches and feeds: a training loop is captured
once, not at every step.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator

from pytest_tfdevice.capture.log_text import merge, placements_of, user_output
from pytest_tfdevice.capture.output import OutputCapture
from pytest_tfdevice.model import Device, Placement

MAX_TEXT = 16 * 2**20
"""Bytes of raw log that are kept; the placements of all of it are."""


class DeadCaptureError(RuntimeError):
    """A Session ran, and its placement log wasn't seen: nothing can be concluded from it."""


class SessionLog:
    """Collects the placement log of one Session.

    ``version`` and ``op_names`` ask the Session's graph: a number that rises as it grows, and the
    names of its ops.  ``whole_graph``: the Session logs every op of the graph when it grows
    (False with ``place_pruned_graph``).  ``remote``: the name of the process that places the
    graph, empty where it is this one.
    """

    def __init__(
        self,
        version: Callable[[], int],
        op_names: Callable[[], set[str]],
        *,
        whole_graph: bool = True,
        remote: str = "",
    ) -> None:
        self._version = version
        self._op_names = op_names
        self._whole_graph = whole_graph
        self._remote = remote
        self._lock = threading.Lock()
        self._seen: set[Hashable] = set()
        self._logged_version = -1
        self._ran = False
        self._text: list[str] = []
        self._text_size = 0
        self._problems: dict[str, None] = {}
        self._placements: tuple[Placement, ...] = ()
        self.growths = 0
        """How often the graph had grown between runs, so that all of it was placed again."""

    @contextlib.contextmanager
    def prepare(self) -> Iterator[None]:
        """Brackets what hands the graph to TensorFlow and runs nothing (making a callable).

        Whether TensorFlow places the graph then, or at the next run, is its own affair.
        """
        capture = OutputCapture(user_output)
        try:
            with capture:
                yield
        finally:
            with self._lock:
                self._add(capture)

    @contextlib.contextmanager
    def run(self, signature: Hashable | None, *, extends: bool = True) -> Iterator[None]:
        """Brackets one run; ``signature`` names its fetches and feeds, None where it can't.

        ``extends``: the run is sure to hand TensorFlow what the graph has grown by.
        Where the run raises, what it printed is kept and given back all the same.
        """
        version = self._version()
        with self._lock:
            grown = version != self._logged_version
            known = not grown and signature is not None and signature in self._seen
        if known:
            yield
            return
        names = self._op_names() if grown and self._whole_graph else set()
        capture = OutputCapture(user_output)
        raised = True
        try:
            with capture:
                yield
            raised = False
        finally:
            with self._lock:
                self._add(capture)
                if not raised:
                    self._ran = True
                    if grown:
                        self._grown(version, names, extends)
                    if signature is not None:
                        self._seen.add(signature)

    def _add(self, capture: OutputCapture) -> None:
        self._placements = merge(self._placements, placements_of(capture.stdout, capture.stderr))
        if capture.problem:
            self._problems[capture.problem] = None
        for data in (capture.stdout, capture.stderr):
            text = data.decode("utf-8", "replace")
            if text and self._text_size + len(text) <= MAX_TEXT:
                self._text.append(text)
                self._text_size += len(text)

    def _grown(self, version: int, names: set[str], sure: bool) -> None:
        """The graph as it was at ``version`` has been told; if ``sure``, it should have been."""
        missing = names - {p.op for p in self._placements}
        if version == self._logged_version or (missing and not sure):
            return  # a run inside this one (some callables are such) was first, or it told nothing
        self.growths += self._logged_version >= 0
        self._logged_version = version
        if missing and self._placements:
            self._problems[_incomplete(missing)] = None

    @property
    def placements(self) -> tuple[Placement, ...]:
        """In order of first appearance, each once; empty only before the first run.

        Raises:
            DeadCaptureError: the Session ran, and logged nothing.
        """
        if self._ran and not self._placements:
            raise DeadCaptureError(self._dead())
        return self._placements

    @property
    def devices_by_op(self) -> dict[str, Device]:
        """The device of each op, by name: the last that was told."""
        return {p.op: p.device for p in self.placements if p.device is not None}

    @property
    def text(self) -> str:
        """What was printed while the log was captured, each run's stdout before its stderr.

        The user's own output of those runs included; at most MAX_TEXT.
        """
        return "".join(self._text)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the log can't be relied on; empty where it can."""
        dead = [self._dead()] if self._ran and not self._placements else []
        return (*dead, *self._problems)

    def _dead(self) -> str:
        text = "the Session ran, and printed no placement log: "
        if self._remote:
            return text + (
                f"its graph is placed by {self._remote}; where that is another process, the log "
                "is in that process' output (parse it with `pytest-tfdevice parse`)"
            )
        return text + (
            "was it opened with log_device_placement=False, or is descriptor 1 of this process "
            "taken by another capture?"
        )


def _incomplete(missing: set[str]) -> str:
    some = ", ".join(sorted(missing)[:3])
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return f"{len(missing)} ops of the graph are missing from its placement log: {some}{more}"
