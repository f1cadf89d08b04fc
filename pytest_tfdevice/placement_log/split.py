"""A captured output → its placement records, and everything else byte for byte.

Made for what a logging session captured itself, each stream for itself and flushed: shapes P1, P2,
P5, E1 and E2 as TensorFlow 2.12 to 2.21 prints them, and the device mapping that a Session prints
with them.  Nothing is repaired here: what isn't exactly such a line is the user's.
"""

from __future__ import annotations

import io
import re

from pytest_tfdevice.placement_log.shapes import Found, scan

MAX_HEADER = 512
"""The longest log header, in characters."""

_HEADER = re.compile(
    r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}: I "  # to 2.20
    r"|I[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2,20}\.[0-9]{6} {1,9}[0-9]{1,9} )"  # absl, 2.21
    r"[^\s\]]{1,256}:[0-9]{1,6}\] \Z"
)
_MAPPING = "Device mapping:"
_NO_DEVICES = "Device mapping: no known devices."
_ROW = re.compile(r"/job:[^\s/]+/replica:[0-9]+/task:[0-9]+/device:[A-Za-z0-9_\-]+:[0-9]+ -> ")


def split_text(text: str) -> tuple[str, str]:
    """Parts ``text`` into placement logging and the rest, each whole and in its order.

    A record may follow text of the user's that has no line end yet; the user's part stays.
    """
    logged: list[str] = []
    rest: list[str] = []
    in_mapping = False
    for line in io.StringIO(text, newline="\n"):
        bare = line.removesuffix("\n").removesuffix("\r")
        if in_mapping:
            row = _ROW.match(bare) is not None
            in_mapping = row
            if row or not bare:  # The rows end with a line end of their own: one blank line more.
                logged.append(line)
                continue
        start = _record_start(bare, ended=line.endswith("\n"))
        if start is None:
            start = _mapping_start(bare)
            in_mapping = start is not None and bare.endswith(_MAPPING)
        if start is None:
            rest.append(line)
        else:
            rest.append(line[:start])
            logged.append(line[start:])
    return "".join(logged), "".join(rest)


def _record_start(line: str, ended: bool) -> int | None:
    """Where the record that ends ``line`` begins, header included; None where none does."""
    if "/job:" not in line:
        return None
    found = scan(line, ended).found
    if not found or line[found[-1].start :] != _printed(found[-1]):
        return None
    start = found[-1].start
    header = _header_start(line, start)
    if header is None and found[-1].shape == "vlog":
        return None
    return start if header is None else header


def _printed(record: Found) -> str | None:
    """The record as these versions print it; None for the shapes of earlier ones."""
    if record.shape == "typed":
        return f"{record.op}: ({record.type}): {record.device}"
    if record.shape == "vlog":
        return f"{record.op}({record.type}) placed on: {record.device}"
    if record.shape == "executed":
        return f"Executing op {record.op} in device {record.device}"
    return None


def _mapping_start(line: str) -> int | None:
    for message in (_MAPPING, _NO_DEVICES):
        if line.endswith(message):
            return _header_start(line, len(line) - len(message))
    return None


def _header_start(line: str, end: int) -> int | None:
    """Where the log header that ends at ``end`` begins."""
    low = max(0, end - MAX_HEADER)
    match = _HEADER.search(line[low:end])
    return low + match.start() if match else None
