"""From a Python stack to the user's line, and to the line that opened a ``tf.device`` scope.

TensorFlow keeps the file of a scope for graph ops only, and there it names its own ``tf.device``
wrapper instead of the caller (2.12 to 2.21: ``framework/ops.py``).  So the scope is found in the
source: the innermost frame whose current line stands inside a ``with …device(…)`` block opened it.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from types import FrameType

from pytest_tfdevice.capture import private
from pytest_tfdevice.model import SourceLine

_PARSING = threading.Lock()
"""Two threads that parse at once make CPython 3.11 raise a SystemError (gh-106905)."""

Frame = tuple[str, int, str]
"""File, line, function; stacks are ordered innermost first."""

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "tensorflow_estimator")


@cache
def _is_third_party(file: str) -> bool:
    return f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file


@lru_cache(maxsize=4096)
def is_framework(file: str) -> bool:
    """True for the files of TensorFlow and Keras."""
    if f"{os.sep}site-packages{os.sep}" in file:
        top = file.rpartition(f"{os.sep}site-packages{os.sep}")[2].split(os.sep, 1)[0]
        return top in _FRAMEWORKS
    for name in _FRAMEWORKS:
        module = sys.modules.get(name)
        home = getattr(module, "__file__", None)
        if home and file.startswith(os.path.dirname(home) + os.sep):
            return True
    return False


@lru_cache(maxsize=4096)
def _is_plumbing(file: str) -> bool:
    """Files that are never the user's line: TensorFlow, Keras, this package, Python's own."""
    return (
        is_framework(file)
        or file.startswith(_OWN)
        or file.startswith("<")
        or (file.startswith(_STDLIB) and not _is_third_party(file))
    )


def live_frames(frame: FrameType | None, limit: int = 80) -> tuple[Frame, ...]:
    """The running stack from ``frame`` outwards."""
    found: list[Frame] = []
    while frame is not None and len(found) < limit:
        code = frame.f_code
        found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return tuple(found)


def running_line(frame: FrameType | None) -> SourceLine | None:
    """The line that the innermost running frame of the user's own code stands at."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not _is_plumbing(file):
            found = _written((file, frame.f_lineno, frame.f_code.co_name))
            if found[0] == file or not _is_plumbing(found[0]):
                return SourceLine(*found)
        frame = frame.f_back
    return None


def _written(frame: Frame) -> Frame:
    """Where a line was written: AutoGraph runs a copy of the user's code from a temporary file."""
    if not os.path.basename(frame[0]).startswith("__autograph_generated_file"):
        return frame
    return private.autograph_origin(frame[0], frame[1]) or frame


def user_line(frames: Iterable[Frame]) -> SourceLine | None:
    """The user's line in a stack: innermost outside installed packages, else innermost in one."""
    fallback: Frame | None = None
    for frame in map(_written, frames):
        if _is_plumbing(frame[0]):
            continue
        if not _is_third_party(frame[0]):
            return SourceLine(*frame)
        fallback = fallback or frame
    return SourceLine(*fallback) if fallback else None


def scope_opener(frames: Iterable[Frame]) -> SourceLine | None:
    """The line of the ``with tf.device(…)`` that was in force, or None where none is to be seen."""
    for file, line, function in map(_written, frames):
        if file.startswith(_OWN):
            continue
        opened = max(
            (start for start, first, last in _device_blocks(file) if first <= line <= last),
            default=None,
        )
        if opened is not None:
            return SourceLine(file, opened, function)
    return None


@lru_cache(maxsize=512)
def _device_blocks(file: str) -> tuple[tuple[int, int, int], ...]:
    """Line of each ``with`` that opens a device scope in ``file``, and its body's lines."""
    text = "".join(linecache.getlines(file))
    if "device" not in text or "with " not in text:
        return ()
    try:
        with _PARSING:
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return ()
    return tuple(_with_device(tree))


def _with_device(tree: ast.AST) -> Iterator[tuple[int, int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith) and any(
            _opens_device(item.context_expr) for item in node.items
        ):
            yield node.lineno, node.body[0].lineno, node.end_lineno or node.lineno


def _opens_device(call: ast.expr) -> bool:
    """True for ``tf.device(…)``, ``graph.device(…)``; not for ``device(None)``."""
    if not isinstance(call, ast.Call):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    clears = bool(call.args) and isinstance(call.args[0], ast.Constant) and not call.args[0].value
    return name in ("device", "device_v2", "device_scope") and not clears
