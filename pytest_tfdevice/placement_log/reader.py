"""Lines of a log → placements: what has to remember earlier lines.

A record can be torn in three ways, and each must neither be lost nor become an operation that
never was:

* a terminal or a mail program wrapped the line: its end comes at the start of the next line;
* stdout and stderr went into one pipe: C's stdio hands stdout over in blocks of 4096 bytes, so a
  record stops anywhere, a stderr line is pasted on, and the record's end opens the next block,
  maybe a hundred lines later ("d", then "28/y: (Const): …": there is no operation "28/y");
* Python's sys.stdout and C's stdout share a notebook cell: the same, with E2 records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import zip_longest

from pytest_tfdevice.model import Device, DeviceError, Placement
from pytest_tfdevice.placement_log.shapes import MAX_RECORD, NAME_CHARS, NOTHING, Found, Scan, scan
from pytest_tfdevice.placement_log.text import clean, decode, split_lines

DISTINCT = 1 << 18
"""Duplicates are recognised at least this many distinct records apart."""

RECENT = 1024
"""How many records are kept as text, to know them again without parsing."""

MAX_TAIL = 2048
"""How much of a torn record is remembered, in characters."""

MAX_DEVICES = 4096
"""How many spellings of devices are kept parsed."""

TERMINAL = 72
"""The narrowest terminal whose wrapping is recognised inside a name, in columns."""

_HEADER = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]+: [IWEF] "
    r"|[IWEF][0-9]{4} [0-9]{2}:[0-9]{2}:[0-9.]+ +[0-9]+ "
    r"|[IWEF] tensorflow/"
)
_PLACER = re.compile(r"placer\.cc:[0-9]+\] \Z")
_HALF_DEVICE = re.compile(r"/(?:j|jo|job|job:[^\s]*)?\Z")
_HALF_ENDS = ("/", "/j", "/jo", "/job")
_PADDING = " \t=\\"  # what stands before a wrap: blanks, quoted-printable's "=", a shell's "\"


class Seen:
    """Remembers which records came before, in bounded memory.

    Two generations of digests (16 bytes each, about 100 with Python's overhead): when the young
    one is full it becomes the old one and the old one is forgotten.  A record that returns after
    more than ``DISTINCT`` others is reported again.
    """

    def __init__(self, distinct: int = DISTINCT) -> None:
        self._distinct = distinct
        self._young: set[bytes] = set()
        self._old: set[bytes] = set()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __contains__(self, key: str) -> bool:
        digest = _digest(key)
        return digest in self._young or digest in self._old

    def add(self, key: str) -> bool:
        """Notes ``key``; True where it is new."""
        digest = _digest(key)
        if digest in self._young:
            return False
        known = digest in self._old
        self._young.add(digest)
        if len(self._young) >= self._distinct:
            self._old, self._young = self._young, set()
        return not known


def _digest(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class Reader:
    """Turns the lines of one log into placements, each reported once."""

    def __init__(self, distinct: int = DISTINCT) -> None:
        self._seen = Seen(distinct)
        self._devices: dict[str, tuple[Device, str]] = {}
        self._tail = ""  # what the last line holds behind its last record
        self._open = False  # the tail may go on in a line that names no device
        self._fragment = ""  # the start of a name that a pasted line cut off
        self._recent: set[str] = set()  # records that were the whole end of a line
        self._typed = False  # a typed record came: this is TensorFlow 0.12 or later
        self._mapping = False  # a device mapping came: a Session logs its placements

    def read(self, chunks: Iterable[str | bytes]) -> Iterator[Placement]:
        """Placements of a log that comes in chunks of any size."""
        rest = ""  # of a line that is longer than a block
        long = False
        for text, part in split_lines(decode(chunks)):
            if part == "line" and not self._open and not long:
                if "job" not in text:
                    self._pass(text)
                    continue
                if self._is_repeated(text):
                    self._tail = ""
                    continue
            *lines, last = clean(rest + text)
            for line in lines:
                yield from self._line(line, whole=not long)
            if part != "piece":
                # Whatever stands behind the last digit, a tag too, shows that the index is whole.
                ended = part == "line" or not text[-1:].isdigit()
                yield from self._line(last, ended, whole=not long)
                rest, long = "", False
                continue
            found = scan(last, ended=False, whole=False).found
            done = found[-1].end if found else 0
            if done:
                yield from self._line(last[:done], whole=False)
            rest, long = last[done:][-MAX_RECORD:], True

    def _pass(self, line: str) -> None:
        """Most lines: neither a record nor the rest of one."""
        if not line or line.isspace():
            return
        if line.startswith("Device mapping:"):
            self._mapping = True
        self._tail = line
        self._open = _is_open(line)

    def _is_repeated(self, line: str) -> bool:
        """True for a record that came before: TensorFlow prints each one twice."""
        if self._fragment:
            return False
        header = _HEADER.match(line)
        return line[line.find("] ", header.end()) + 2 if header else 0 :] in self._recent

    def _line(self, line: str, ended: bool = True, whole: bool = True) -> Iterator[Placement]:
        if not line or line.isspace():
            return
        result = scan(line, ended, whole) if "/job:" in line else NOTHING
        found = list(result.found)
        across = self._across(line, result, ended)
        if across is not None:
            if found and _starts_line(line, found[0]):
                del found[0]  # It is the end of ``across``: only part of its name.
            found.insert(0, across)
        done = 0
        for record, following in zip_longest(found, found[1:]):
            if _is_cut_index(record, following):
                done = record.end
                continue
            if record is not across:
                lead = line[done : record.start]
                done = record.end
                if not lead.strip(NAME_CHARS) and self._is_rest_of_fragment(lead, record):
                    continue
                if lead:
                    self._note_fragment(lead, record)
            placement = self._accept(record)
            if placement is not None:
                yield placement
        if " -> " in line:
            self._mapping = True
        if across is None and len(found) == 1 and ended:
            self._keep(found[0], line)
        self._remember(line, done, torn=across is None and not found)

    def _keep(self, record: Found, line: str) -> None:
        text = line[record.start :]
        # Whether an untyped one counts depends on what came before it.
        if record.end == len(line) and len(text) <= MAX_TAIL and record.shape != "untyped-bare":
            if len(self._recent) >= RECENT:
                self._recent.clear()
            self._recent.add(text)

    def _across(self, line: str, result: Scan, ended: bool) -> Found | None:
        """A record that began on the line before, where a wrap tore it."""
        tail = self._tail[-MAX_TAIL:].rstrip(_PADDING)
        if not tail:
            return None
        if result.orphan is not None:
            glues: tuple[str, ...] = ("", " ")
        elif self._open and (not result.found or _starts_line(line, result.found[0])):
            glues = ("",)
        else:
            return None
        body = line.lstrip(" \t>|#")
        head = body[: 2 * MAX_TAIL]
        for glue in glues:
            joined = scan(tail + glue + head, ended and head == body, whole=False)
            for record in joined.found:
                if record.start < len(tail) and record.end > len(tail) + len(glue):
                    return record
        return None

    def _remember(self, line: str, done: int, torn: bool) -> None:
        if torn and self._open:
            self._tail = (self._tail + line)[-MAX_TAIL:]
        else:
            self._tail = line[done:]
        self._open = _is_open(self._tail)

    def _note_fragment(self, lead: str, record: Found) -> None:
        """Looks at the text before a record for a name that the record was pasted over."""
        header = _HEADER.search(lead)
        if header is not None:
            lead = lead[: header.start()]
        elif record.shape != "executed":
            return
        if lead and len(lead) <= MAX_TAIL and not lead.strip(NAME_CHARS):
            self._fragment = lead

    def _is_rest_of_fragment(self, lead: str, record: Found) -> bool:
        """True for the end of a torn record, which names an operation that isn't there.

        The whole record is known: TensorFlow prints each one twice.  Where it doesn't (E2), the
        name of an eager op is its type.
        """
        if not self._fragment or record.shape != "typed":
            return False
        op, self._fragment = self._fragment + lead + record.op, ""
        return op == record.type or self._key(record, op) in self._seen

    def _accept(self, record: Found) -> Placement | None:
        if record.shape in ("typed", "vlog"):
            self._typed = True
        elif record.shape == "untyped-bare" and not self._is_untyped_log(record):
            return None
        key = self._key(record, record.op)
        if not key or not self._seen.add(key):
            return None
        device, _ = self._devices[record.device]
        return Placement(record.op, record.type, device, record.kind)

    def _is_untyped_log(self, record: Found) -> bool:
        """Whether a bare ``name: device`` line may be a placement.

        Versions that print no type print none at all, and spell devices ``/gpu:0``.  TensorFlow's
        guides for 1.x show such lines with ``/device:GPU:0``, below a device mapping.
        """
        return not self._typed and ("/device:" not in record.device or self._mapping)

    def _key(self, record: Found, op: str) -> str:
        """What makes two records the same; empty where the device isn't one."""
        known = self._devices.get(record.device)
        if known is None:
            try:
                device = Device.parse(record.device)
            except DeviceError:
                return ""
            if len(self._devices) >= MAX_DEVICES:
                self._devices.clear()
            known = self._devices[record.device] = (device, device.canonical)
        return f"{op}\0{record.type or ''}\0{known[1]}\0{record.kind}"


def _starts_line(line: str, record: Found) -> bool:
    """True where nothing precedes ``record`` but what could be more of its name."""
    return not line[: record.start].strip(NAME_CHARS)


def _is_cut_index(record: Found, following: Found | None) -> bool:
    """True for "…/device:GPU:1" over which "…/device:GPU:12" of the same node was pasted."""
    return (
        following is not None
        and record.shape == "typed"
        and (record.op, record.type) == (following.op, following.type)
        and record.device != following.device
        and following.device.startswith(record.device)
    )


def _is_open(tail: str) -> bool:
    """True where ``tail`` ends inside a record, before or within its device."""
    tail = tail.rstrip(_PADDING)
    if tail.endswith(_HALF_ENDS) or "/job:" in tail[-160:]:
        return _HALF_DEVICE.search(tail[-160:]) is not None
    rest = tail.rstrip(NAME_CHARS)
    if len(rest) == len(tail):
        return False
    if not rest:
        return len(tail) >= TERMINAL
    return rest.endswith("] ") and _PLACER.search(rest[-32:]) is not None
