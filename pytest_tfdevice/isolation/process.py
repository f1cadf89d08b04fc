"""A process that runs one test: its messages, its last output, its end.  Knows no pytest.

A fork of this one won't do: TensorFlow's threads wouldn't be in it, and its GPUs would be
initialised already.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_tfdevice.isolation import wire

POLL = 0.1
"""Seconds between looks at whether the process has ended: its end of the socket may live on in
processes that the test left behind."""
EXIT_GRACE = 60.0
"""Seconds for a process to end once its test has."""
INTERRUPT_GRACE = 3.0
"""Seconds for a process that was interrupted from the keyboard, as this one was, to clean up."""
TAIL = 8192
"""Bytes of output that are shown of a process that died."""

_START = (
    "import sys; sys.path[:] = {path!r}; from pytest_tfdevice.isolation.child import main; "
    "main({descriptor})"
)


class TestProcess:
    """A fresh Python that runs ``job``; as a context manager it never outlives its use.

    ``path`` is its ``sys.path``; with ``swallow`` what it writes outside of pytest's own capture is
    kept for :attr:`output` and not shown.
    """

    __test__ = False

    def __init__(
        self,
        job: Mapping[str, Any],
        *,
        path: Sequence[str],
        env: Mapping[str, str],
        swallow: bool,
    ) -> None:
        self._socket, theirs = socket.socketpair()
        self._captured: list[int] = []
        self._swallowed = tempfile.TemporaryFile() if swallow else None  # noqa: SIM115
        flush_standard_streams()
        with theirs:
            code = _START.format(path=list(path), descriptor=theirs.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-c", code],
                env=dict(env),
                cwd=job["folder"],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL if swallow else None,
                stdout=self._swallowed,
                stderr=self._swallowed,
            )
        with contextlib.suppress(BrokenPipeError):  # it died at once: its status will tell
            wire.send(self._socket, ("job", dict(job)))

    def __enter__(self) -> TestProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._socket.close()
        for descriptor in self._captured:
            os.close(descriptor)
        if self._swallowed is not None:
            self._swallowed.close()

    def messages(self) -> Iterator[wire.Message]:
        """What it tells, until it ends or closes its side."""
        reader = wire.Reader()
        ended = False
        self._socket.settimeout(POLL)
        while True:
            try:
                data, descriptors, *_ = socket.recv_fds(self._socket, 65536, 2)
            except TimeoutError:
                if ended:
                    return
                ended = self._process.poll() is not None
                continue
            except ConnectionResetError:
                return
            self._captured += descriptors
            if not data:
                return
            yield from reader.feed(data)

    def wait(self) -> int | None:
        """Its exit status, negative for a signal; None where it had to be ended."""
        try:
            return self._process.wait(EXIT_GRACE)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def interrupt(self) -> None:
        """Ends it as Ctrl-C would, which a terminal has sent to it already."""
        for _ in range(2):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(INTERRUPT_GRACE)
                return
            self._process.send_signal(signal.SIGINT)
        self.kill()

    def kill(self) -> None:
        """Ends it at once, if it hasn't ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def output(self) -> dict[str, str]:
        """The end of what it wrote last, by "stdout" and "stderr".

        What pytest was capturing in it stands in files that have no name; their descriptors came
        with the first message.  What it wrote outside of that counts as stderr.
        """
        own = [self._swallowed.fileno()] if self._swallowed is not None else []
        found = {
            "stdout": "".join(map(_tail, self._captured[:1])),
            "stderr": "".join(map(_tail, [*self._captured[1:2], *own])),
        }
        return {name: text for name, text in found.items() if text.strip()}


def describe_end(status: int | None) -> str:
    """How a process ended, in words: "died by SIGSEGV"."""
    if status is None:
        return f"had not ended {EXIT_GRACE:.0f} s later, and was killed"
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"died by {signal.Signals(-status).name}"
        return f"died by signal {-status}"
    return f"ended with exit status {status}"


def flush_standard_streams() -> None:
    """So that what was written before comes before what the process writes."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _tail(descriptor: int) -> str:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        return ""
    size = found.st_size
    text = os.pread(descriptor, TAIL, max(size - TAIL, 0)).decode(errors="replace")
    return text if size <= TAIL else f"…{text}"
