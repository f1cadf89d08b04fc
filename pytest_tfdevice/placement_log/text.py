"""From any input to plain lines: decoding, line ends, and what others did to the text.

Logs arrive through terminals (colours), notebooks and log collectors (JSON), web pages (HTML),
mail and Markdown (escapes), PowerShell (UTF-16).  Each of those rewrites a record in a known way
that is undone here; a line that holds none of their signs passes untouched.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Literal

BLOCK = 1 << 16
"""A line is handled in pieces of this many characters, so that one without an end is bounded."""

_ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # as a terminal gets it
    r"|(?:\\{1,4}(?:x1[bB]|u001[bB]|033|e)|\^\[|#033)\[[0-9;]*[A-Za-z]"  # as text: JSON, syslog
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3}){0,4}m"  # where the escape character itself was dropped
)
_NEWLINE_ESCAPE = re.compile(r"\\{1,4}[nr]|<br ?/?>")
_TAG = re.compile(
    r"</?(?:a|b|code|div|em|font|i|li|p|pre|samp|span|strong|td|tr|tt)(?: [^<>]*)?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#x([0-9a-fA-F]{1,6})|#([0-9]{1,7})|(amp|apos|gt|lt|nbsp|quot));")
_ENTITIES = {"amp": "&", "apos": "'", "gt": ">", "lt": "<", "nbsp": " ", "quot": '"'}
_ESCAPE = re.compile(r"\\{1,4}(?:u00([2-7][0-9a-fA-F])|(t)|([_/*()\[\]<>.:\"'\-]))")


def decode(chunks: Iterable[str | bytes]) -> Iterator[str]:
    """Text of ``chunks``: UTF-8, what isn't becomes U+FFFD.

    NUL characters go: they are half of each ASCII character in UTF-16 (PowerShell's ``>``), and
    the padding that a crash leaves in a log.  Carriage returns end a line as newlines do:
    progress bars end theirs with nothing else.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        text = chunk if isinstance(chunk, str) else decoder.decode(chunk)
        yield text.replace("\0", "").replace("\r", "\n")
    yield decoder.decode(b"", final=True).replace("\0", "").replace("\r", "\n")


Part = Literal["line", "piece", "end"]
"""A line that ended; a piece of one that goes on; what stands behind the last line end."""


def split_lines(chunks: Iterable[str]) -> Iterator[tuple[str, Part]]:
    """Lines without their ends, in pieces where they are long; "end" comes once, last.

    Pieces are cut at multiples of ``BLOCK`` from the line's start, so how the input is chunked
    doesn't matter.
    """
    pending: list[str] = []
    size = 0
    for chunk in chunks:
        parts = chunk.split("\n")
        last = len(parts) - 1
        for index, part in enumerate(parts):
            while size + len(part) >= BLOCK:
                take = BLOCK - size
                yield "".join([*pending, part[:take]]), "piece"
                pending, size, part = [], 0, part[take:]
            if index < last:
                yield ("".join([*pending, part]) if pending else part), "line"
                pending, size = [], 0
            elif part:
                pending.append(part)
                size += len(part)
    yield "".join(pending), "end"


def clean(line: str) -> list[str]:
    """Undoes what was done to a line's text; several lines where it held escaped line ends."""
    if "[" in line:
        line = _ANSI.sub("", line)
    if "\xa0" in line:
        line = line.replace("\xa0", " ")
    if "\\" not in line and "<" not in line and "&" not in line:
        return [line]
    return [_unescape(part) for part in _NEWLINE_ESCAPE.split(line)]


def _unescape(line: str) -> str:
    if "<" in line:
        line = _TAG.sub("", line)
    if "&" in line:
        line = _ENTITY.sub(_entity, line)
    if "\\" in line:
        line = _ESCAPE.sub(_escape, line)
    return line


def _entity(match: re.Match[str]) -> str:
    hexadecimal, decimal, name = match.groups()
    if name:
        return _ENTITIES[name]
    code = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return chr(code) if 32 <= code < 127 else " "


def _escape(match: re.Match[str]) -> str:
    code, tab, character = match.groups()
    if code:
        return chr(int(code, 16))
    return "\t" if tab else str(character)
