"""Runs programs in processes of their own.

One process imports TensorFlow and loads the simulated GPU, and nothing else, so that its eager
context doesn't exist yet and it has no threads; each child that it forks is then as a fresh one,
without the seconds of an import.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Result:
    """What a child handed back until it ended; ``died`` says how, where it didn't end well."""

    found: list[Any]
    died: str


def in_child(work: Callable[[], Iterable[Any]], limit: float, output: str = os.devnull) -> Result:
    """Runs ``work`` in a forked child of at most ``limit`` seconds, and collects what it yields."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(work, writer, output)
    os.close(writer)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, limit)
    found = []
    with os.fdopen(reader, "rb") as pipe:
        while True:
            try:
                found.append(pickle.load(pipe))
            except EOFError:
                break
            except pickle.UnpicklingError:
                break
    _, status = os.waitpid(child, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    code = os.waitstatus_to_exitcode(status)
    return Result(found, "" if code == 0 else _why(code, limit))


def _why(code: int, limit: float) -> str:
    if code == -signal.SIGKILL:
        return f"was killed, or took longer than {limit:.0f} s"
    return f"ended with {code}"


def _child(work: Callable[[], Iterable[Any]], writer: int, output: str) -> None:
    code = 1
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        with os.fdopen(writer, "wb") as pipe:
            for item in work():
                pickle.dump(item, pipe)
                pipe.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start
