"""The placement log: text of any TensorFlow since 0.5 → which op is on which device.

Knows neither TensorFlow nor pytest, needs no special log level, and never raises on what a log
holds.  Time is linear in the input.  Memory is bounded on a stream of any length: by a block of a
line (``text.BLOCK``), the longest record (``shapes.MAX_RECORD``) and the digests of the last
records (``reader.DISTINCT``), some 70 MB at most.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TextIO, overload

from pytest_tfdevice.model import Placement
from pytest_tfdevice.placement_log.reader import Reader
from pytest_tfdevice.placement_log.split import split_text

__all__ = ["PSEUDO_TYPES", "blocks", "is_pseudo", "parse", "parse_stream", "split_output"]

PSEUDO_TYPES = frozenset({"_Arg", "_Retval", "_DeviceArg", "_DeviceRetval"})
"""Nodes for a function's arguments and results: TensorFlow places them, they compute nothing."""

_READ_SIZE = 1 << 18


def is_pseudo(placement: Placement) -> bool:
    """True for a function's argument or result."""
    return placement.type in PSEUDO_TYPES


def parse(text: str | bytes) -> list[Placement]:
    """Every placement in ``text``, in order of first appearance, without exact duplicates.

    Function arguments and results are included; see `is_pseudo`.  A record whose end is missing
    isn't reported.
    """
    chunks = (text[i : i + _READ_SIZE] for i in range(0, len(text), _READ_SIZE))
    # The list holds every distinct record anyway: remembering them all takes no other order of it.
    return list(Reader(distinct=sys.maxsize).read(chunks))


def parse_stream(source: BinaryIO | TextIO | Iterable[str | bytes]) -> Iterator[Placement]:
    """Placements of a log of any length, as they come.

    A record that returns after more than ``reader.DISTINCT`` others may be reported again.

    Args:
        source: a file, or text or bytes in pieces that are cut anywhere (a file's lines, with
            their line ends, are such pieces).  Bytes are read as UTF-8.

    Raises:
        OSError: what reading ``source`` raised.
    """
    return Reader().read(blocks(source))


def blocks(source: BinaryIO | TextIO | Iterable[str | bytes]) -> Iterator[str | bytes]:
    """What a file holds, in pieces; or the pieces themselves."""
    # read1 hands over what a pipe has, so that a log can be followed while it is written.
    read: Callable[[int], str | bytes] | None
    read = getattr(source, "read1", getattr(source, "read", None))
    if read is None:
        assert isinstance(source, Iterable)
        yield from source
        return
    while block := read(_READ_SIZE):
        yield block


@overload
def split_output(text: str) -> tuple[list[Placement], str]: ...
@overload
def split_output(text: bytes) -> tuple[list[Placement], bytes]: ...
def split_output(text: str | bytes) -> tuple[list[Placement], str | bytes]:
    """Parts a captured output into its placements and all that isn't placement logging.

    The rest is unchanged, byte for byte and in order.  Exact on what TensorFlow 2.12 to 2.21
    prints; other text stays in the rest.
    """
    if isinstance(text, str):
        logged, rest = split_text(text)
        return parse(logged), rest
    logged, rest = split_text(text.decode("utf-8", "surrogateescape"))
    return parse(logged), rest.encode("utf-8", "surrogateescape")
