"""The record shapes that TensorFlow has printed since 0.5, found in one line of text.

====== ================================================ ========================================
shape  text                                             printed by
====== ================================================ ========================================
P1     ``NAME: (TYPE): DEVICE``                         0.12 and later, stdout, no header
P2     ``HEADER NAME: (TYPE): DEVICE``                  1.15 and later, stderr
P3     ``HEADER NAME: (TYPE)DEVICE``                    0.12 to 1.14, stderr
P4     ``NAME: DEVICE`` with or without HEADER          0.5 to 0.11, and the guides of 1.x
P5     ``HEADER NAME(TYPE) placed on: DEVICE``          2.x with the placer's VLOG on
E1     ``HEADER Executing op X in device DEVICE``       1.14 and later, stderr
E2     ``Executing op X in device DEVICE``              the same under IPython, through sys.stdout
====== ================================================ ========================================

DEVICE is ``/job:J/replica:R/task:T/gpu:N`` up to 1.3, ``…/device:GPU:N`` from 1.4 on.

The search hangs on the device: it is the one part that no other text has, whatever a shell, a CI
system or a mail program wrote in front of the record.  From there the record is read backwards, so
what stands before it never needs to be understood.  All work is linear in the length of the line:
no pattern has two ways to match the same text, and no two devices look at the same characters.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Literal

from pytest_tfdevice.model import Kind

MAX_RECORD = 16_384
"""The longest record that is recognised, in characters."""

NAME_CHARS = string.ascii_letters + string.digits + "_./>-"
"""What node names are made of (``_VALID_OP_NAME_REGEX`` in TensorFlow's ops.py)."""

Shape = Literal["typed", "untyped", "untyped-bare", "vlog", "executed"]

_DEVICE = re.compile(
    r"/job:[A-Za-z0-9_.\-]+/replica:[0-9]{1,9}/task:[0-9]{1,9}"
    r"/(?:device:(?=[A-Za-z])|(?!device:))[A-Za-z][A-Za-z0-9_\-]*:([0-9]+)"
)
# Functions can be called after a lambda: "__inference_<lambda>_12".
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.<>/\-]*")
_DATE = re.compile(r"-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:")
_CUT_DEVICE = re.compile(
    r"/(?:job|replica|device|task|task:[0-9]+/(?:device:)?[A-Za-z][A-Za-z0-9_\-]*):\Z"
)
_OLD_PLACER = re.compile(r"simple_placer\.cc:[0-9]+\] ?\Z")
_EXECUTING = "Executing op "
_IN_DEVICE = " in device "
_PLACED_ON = ") placed on: "


@dataclass(frozen=True, slots=True)
class Found:
    """A record in a line: ``line[start:end]`` holds it without its log header."""

    start: int
    end: int
    op: str
    type: str | None
    device: str
    kind: Kind
    shape: Shape


@dataclass(frozen=True, slots=True)
class Scan:
    """What a line holds.

    Attributes:
        found: its records, in order.
        orphan: where the line's first device ends, if nothing in the line says what is on it.
    """

    found: tuple[Found, ...]
    orphan: int | None = None


NOTHING = Scan(())


def scan(line: str, ended: bool = True, whole: bool = True) -> Scan:
    """Finds the records in a line.

    Args:
        line: text without line ends.
        ended: a line end followed.  Without one, ``GPU:1`` at the very end may be the rest of
            ``GPU:12`` and is left out; indices have no leading zeros, so ``GPU:0`` is whole.
        whole: the line begins where ``line`` begins and ends where it ends.
    """
    found: list[Found] = []
    orphan = None
    low = 0
    first = True
    for match in _DEVICE.finditer(line):
        start = match.start()
        end = _end_of_index(line, match)
        record = None
        if end is not None and (ended or _is_closed(line, match, end)):
            record = _record(line, max(low, start - MAX_RECORD), start, end, whole)
        if record is not None:
            found.append(record)
        elif first:
            orphan = match.end()
        first = False
        low = end if end is not None else match.end()
    return Scan(tuple(found), orphan) if not first else NOTHING


def _end_of_index(line: str, match: re.Match[str]) -> int | None:
    """Where the device ends; None where its index was cut off.

    Where a web page or a broken pipe lost the line end, the digits run on into what follows: the
    year of the next header, or a name that begins with a digit.
    """
    start, end = match.span(1)
    if end - start > 1 and line[start] == "0":
        return start + 1
    if end - start >= 4 and _DATE.match(line, end):
        return end - 4 if end - start > 4 else None
    return end if end - start <= 9 else None


def _is_closed(line: str, match: re.Match[str], end: int) -> bool:
    return end < len(line) or line[match.start(1) : end] == "0"


def _record(line: str, low: int, start: int, end: int, whole: bool) -> Found | None:
    """Reads backwards from the device at ``line[start:end]``, not further than ``low``."""
    if line.startswith(" -> ", end):
        return None  # A row of the device mapping: "/job:…/device:GPU:0 -> device: 0, name: …".
    head = line[low:start]
    if head.endswith(_IN_DEVICE):
        return _executed(line, head, low, start, end)
    if head.endswith(_PLACED_ON):
        return _typed(line, head, low, end, len(head) - len(_PLACED_ON), vlog=True)
    for closing in ("): ", ")"):
        if head.endswith(closing):
            return _typed(line, head, low, end, len(head) - len(closing), vlog=False)
    if head.endswith(": "):
        return _untyped(line, head, low, start, end, whole)
    return None


def _executed(line: str, head: str, low: int, start: int, end: int) -> Found | None:
    stop = len(head) - len(_IN_DEVICE)
    at = head.rfind(_EXECUTING, 0, stop)
    op = head[at + len(_EXECUTING) : stop]
    if at < 0 or not op or " " in op or not op.isprintable():
        return None
    return Found(low + at, end, op, None, line[start:end], "executed", "executed")


def _typed(line: str, head: str, low: int, end: int, close: int, *, vlog: bool) -> Found | None:
    opening = head.rfind("(", 0, close)
    type_ = head[opening + 1 : close]
    if opening < 0 or not _TYPE.fullmatch(type_):
        return None
    before = head[:opening]
    if not vlog:
        # Colocation tables have "name (Type) /device": what was asked for, not what happened.
        if not before.endswith(": "):
            return None
        before = before[:-2]
    at = _name_start(before)
    if at is None:
        return None
    shape: Shape = "vlog" if vlog else "typed"
    device = line[low + len(head) : end]
    return Found(low + at, end, before[at:], type_, device, "placed", shape)


def _untyped(line: str, head: str, low: int, start: int, end: int, whole: bool) -> Found | None:
    """``name: device`` is a record behind its header, or where a line holds nothing else.

    Anything else reads like it too: "Using device: /job:…".
    """
    before = head[:-2]
    at = _name_start(before)
    if at is None:
        return None
    shape: Shape = "untyped"
    if not _OLD_PLACER.search(before[max(0, at - 40) : at]):
        if not whole or low or not _is_decoration(before[:at]) or line[end:].strip(" \t\"',)]}"):
            return None
        shape = "untyped-bare"
    return Found(low + at, end, before[at:], None, line[start:end], "placed", shape)


def _is_decoration(prefix: str) -> bool:
    """True for what others put in front of a line of log: blanks, ``> ``, ``svc | ``, ``# ``."""
    prefix = prefix.rstrip()
    return not prefix or prefix.endswith(("]", "|", ">", ")", "#", ">:", '"', "*"))


def _name_start(text: str) -> int | None:
    """Where the node name that ends ``text`` begins; None where there is none.

    Names hold no blanks, so whatever was put in front of a record ends at the last character that
    a name can't have.
    """
    rest = text.rstrip(NAME_CHARS)
    at = len(rest)
    if rest.endswith("<"):  # "<stdout>name": the end of a tag isn't part of the name.
        at = text.find(">", at) + 1 or at
    while at < len(text) and text[at] in ">-":  # A quote mark or a bullet, never a name's start.
        at += 1
    if text.startswith("..", at):  # An elision glued to the name.
        at += len(text) - at - len(text[at:].lstrip("."))
    if at == len(text) or text[at] == "/":
        return None
    # The rest of a record that was cut off inside its type or its device, and pasted over.
    if rest.endswith(": (") or _CUT_DEVICE.search(rest[-96:]):
        return None
    return at
