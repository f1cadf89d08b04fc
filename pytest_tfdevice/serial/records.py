"""Records and verdicts ⇄ versioned JSON (``schemas/record-1.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pytest_tfdevice.memory import GpuMemory
from pytest_tfdevice.model import Device, Placement, Record
from pytest_tfdevice.op_times import OpTime
from pytest_tfdevice.serial import documents
from pytest_tfdevice.serial.codec import Codec, FormatError, Special
from pytest_tfdevice.transfers import Transfer
from pytest_tfdevice.verdict import Verdict

KIND = "record"
VERSION = 1

DEVICE = Special(lambda device: device.canonical, lambda text: _device(text))
CODEC = Codec({Device: DEVICE}, forward=(GpuMemory, OpTime, Transfer))


def record_to_json(record: Record) -> dict[str, Any]:
    """A document of its own."""
    plain = Record(**{name: getattr(record, name) for name in Record.__dataclass_fields__})
    return {**documents.envelope(KIND, VERSION), **CODEC.encode(plain)}


def record_from_json(data: Mapping[str, Any], name: str = "record") -> Record:
    """The inverse of :func:`record_to_json`.

    Raises:
        FileError: the version isn't known, or it is no record.
    """
    documents.check(dict(data), KIND, VERSION, name)
    try:
        return CODEC.decode(Record, _body(data))
    except FormatError as error:
        raise documents.FileError(f"{name}: {error}") from None


def verdict_to_json(verdict: Verdict, record: Record) -> dict[str, Any]:
    """A verdict; its placements are given by their number in ``record``."""
    numbers = {id(p): n for n, p in reversed(list(enumerate(record.placements)))}
    by_value = {p: n for n, p in reversed(list(enumerate(record.placements)))}

    def number(placement: Placement) -> int:
        found = numbers.get(id(placement))
        return found if found is not None else by_value[placement]

    codec = Codec({Device: DEVICE, Placement: Special(number, lambda n: n)})
    encoded: dict[str, Any] = codec.encode(verdict)
    return encoded


def verdict_from_json(data: Mapping[str, Any], record: Record) -> Verdict:
    """The inverse of :func:`verdict_to_json`.

    Raises:
        FormatError: it is no verdict on ``record``.
    """

    def placement(number: Any) -> Placement:
        if not isinstance(number, int) or not 0 <= number < len(record.placements):
            raise FormatError(f"there is no placement {number!r} in the record")
        return record.placements[number]

    codec = Codec({Device: DEVICE, Placement: Special(lambda p: p, placement)})
    return codec.decode(Verdict, dict(data))


def dumps(data: Mapping[str, Any]) -> str:
    """One field or list item a line, as it is written to a file."""
    return json.dumps(data, indent=1, ensure_ascii=True) + "\n"


def _body(data: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in ("format", "version")}


def _device(text: Any) -> Device:
    if not isinstance(text, str):
        raise FormatError(f"{text!r} is no device")
    return _parsed(text)


_parsed = lru_cache(maxsize=1024)(Device.parse)
"""There are many placements, and few devices."""
