"""Captures what a process writes to its descriptors 1 and 2, C stdio included.

TensorFlow's placer prints every graph placement with a plain ``printf`` (descriptor 1) and logs it
to descriptor 2.  ``printf`` output waits in C's own buffer, which Python's ``flush`` doesn't reach,
so that without flushing it a capture gets nothing of its own stretch and, later, all that was left
over from earlier ones.  Hence: flush C stdio before the descriptors are switched (what was waiting
goes where it belonged) and again before they are switched back.

Temporary files take the output, not pipes: nobody has to read them while the code runs, so nothing
can block on a full pipe while it holds the interpreter lock.

Python's ``sys.stdout`` and ``sys.stderr`` objects are left alone.  Where they write to descriptors
1 and 2 (a script, ``pytest -s``) their text is captured with the rest and given back with it, in
order.  Where something else stands there (pytest's own capture, ``capsys``, a notebook) their text
takes its usual way at once.  Order is kept within each stream, not between the two.

Threads: descriptors belong to the whole process, so a capture sees what every thread writes
meanwhile.  A capture that opens while another is in force, in whatever thread, shares its files: it
sees what is written from then on, as the other does, and never waits for it, so threads that need
each other (a queue's producer and consumer) can't block one another.  Shared files are given back
once the last capture that reads them has ended, by the rule of the one that opened them.  A
subprocess started inside a capture inherits the files: what it writes after the end is lost.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import BinaryIO, TextIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

STDOUT, STDERR = 1, 2

CUT_OFF = (
    "descriptor 1 or 2 was pointed elsewhere while its output was captured, so that the placement "
    "log may be incomplete; was another capture started inside, and not ended?"
)

GiveBack = Callable[[bytes], bytes]
"""Of what was captured on one descriptor, the part that is written on to where it was bound."""


def give_back_all(captured: bytes) -> bytes:
    """Gives back every byte: the capture is a mere listener."""
    return captured


def flush_c_stdio() -> None:
    """Flushes every output stream of C's stdio (``fflush(NULL)``)."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    library.fflush(None)


def flush_all() -> None:
    """Flushes Python's standard streams, then C's.

    A stream that is closed, or whose descriptor is, keeps what it holds.
    """
    for stream in {id(s): s for s in _python_streams()}.values():
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    flush_c_stdio()


def _python_streams() -> Iterator[TextIO]:
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        stream = getattr(sys, name, None)
        if stream is not None:
            yield stream


def _duplicate(fd: int) -> int | None:
    """A private copy of ``fd`` above the standard descriptors; None where ``fd`` is closed."""
    try:
        if fcntl is not None:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, STDERR + 1)
        return os.dup(fd)
    except OSError:
        return None


def _same_file(first: int, second: int) -> bool:
    try:
        return os.path.sameopenfile(first, second)
    except OSError:
        return False


class _Descriptor:
    """One descriptor that points to a temporary file for a while."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._was = _duplicate(fd)
        try:
            self._file = self._open()
            try:
                os.dup2(self._file.fileno(), fd)
            except OSError:
                self._file.close()
                raise
        except OSError:
            if self._was is not None:
                os.close(self._was)
            raise

    @staticmethod
    def _open() -> BinaryIO:
        # With descriptor 1 or 2 closed, a new file would get that very number: take a copy.
        with tempfile.TemporaryFile(buffering=0) as made:
            copy = _duplicate(made.fileno())
        if copy is None:
            raise OSError("no descriptor left for a temporary file")
        if fcntl is not None:
            # Whoever opens /dev/stdout anew has a position of their own: let them append too.
            flags = fcntl.fcntl(copy, fcntl.F_GETFL)
            fcntl.fcntl(copy, fcntl.F_SETFL, flags | os.O_APPEND)
        return os.fdopen(copy, "w+b", buffering=0)

    @property
    def in_force(self) -> bool:
        """False where somebody else has pointed the descriptor elsewhere meanwhile."""
        return _same_file(self._fd, self._file.fileno())

    def size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def read(self, start: int) -> bytes:
        """What was written from byte ``start`` on."""
        # A handle of its own: seeking on the shared one would move the writers' position.
        if hasattr(os, "pread"):
            chunks = []
            while chunk := os.pread(self._file.fileno(), 1 << 20, start):
                chunks.append(chunk)
                start += len(chunk)
            return b"".join(chunks)
        self._file.seek(start)
        return self._file.read()

    def restore(self) -> None:
        """Points the descriptor to where it pointed; closes it where it was closed.

        Where somebody else has pointed it elsewhere since, it is theirs, and stays so.
        """
        if self.in_force:
            if self._was is None:
                os.close(self._fd)
            else:
                os.dup2(self._was, self._fd)
        if self._was is not None:
            os.close(self._was)

    def close(self) -> None:
        self._file.close()


class _Redirect:
    """Descriptors 1 and 2 in temporary files, and the number of captures that read them."""

    def __init__(self, give_back: GiveBack) -> None:
        self.users = 0
        self._give_back = give_back
        self.out = _Descriptor(STDOUT)
        try:
            self.err = _Descriptor(STDERR)
        except BaseException:
            self.out.restore()
            self.out.close()
            raise

    @property
    def in_force(self) -> bool:
        return self.out.in_force and self.err.in_force

    def end(self) -> None:
        """Points the descriptors back, and writes on what isn't the captures' own."""
        try:
            self.out.restore()
        finally:
            self.err.restore()
        try:
            self._return(self.out, STDOUT)
        finally:
            self._return(self.err, STDERR)

    def _return(self, stream: _Descriptor, fd: int) -> None:
        part = data = stream.read(0)
        try:
            part = self._give_back(data)
        finally:  # where that failed: everything, rather than lose what the user wrote
            stream.close()
            _write(fd, part)


def _write(fd: int, data: bytes) -> None:
    """Writes all of ``data``; what nobody can take any more (a closed pipe) is dropped."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # some CI runners hand out a non-blocking stdout
            select.select([], [fd], [])
        except OSError:
            return


_lock = threading.RLock()
_redirects: list[_Redirect] = []


class OutputCapture:
    """A context manager that captures descriptors 1 and 2.

    ``give_back`` says which part of the captured bytes goes on to where it was bound when the
    capture ends; all of it by default.  The same on an exception, ``KeyboardInterrupt`` included.

    After the block, ``stdout`` and ``stderr`` hold what was written, and ``problem`` says what cut
    the capture off, if anything did.  For threads see the module.

    Raises:
        OSError: no temporary file could be made.  Nothing has been changed then.
        RuntimeError: the same object is used twice at a time.
    """

    def __init__(self, give_back: GiveBack = give_back_all) -> None:
        self.stdout = b""
        self.stderr = b""
        self.problem: str | None = None
        self._give_back = give_back
        self._redirect: _Redirect | None = None
        self._start = (0, 0)

    def __enter__(self) -> OutputCapture:
        if self._redirect is not None:
            raise RuntimeError("this capture is already running")
        with _lock:
            flush_all()
            top = _redirects[-1] if _redirects else None
            if top is None or not top.in_force:  # none, or pytest's capture stands on top of it
                top = _Redirect(self._give_back)
                _redirects.append(top)
            top.users += 1
            self._redirect = top
            self._start = (top.out.size(), top.err.size())
        self.stdout = self.stderr = b""
        self.problem = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        redirect, self._redirect = self._redirect, None
        if redirect is None:
            raise RuntimeError("this capture isn't running")
        with _lock:
            try:
                flush_all()
                self.stdout = redirect.out.read(self._start[0])
                self.stderr = redirect.err.read(self._start[1])
                if not redirect.in_force:
                    self.problem = CUT_OFF
            finally:
                redirect.users -= 1
                while _redirects and not _redirects[-1].users:
                    _redirects.pop().end()
