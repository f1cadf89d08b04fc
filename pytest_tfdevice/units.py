"""Sizes in bytes, as people write and read them: "16 GiB", "1.5GB", 512."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_FACTORS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>[A-Za-z]*)\s*", re.ASCII)


class SizeError(ValueError):
    """A text or number that isn't a size."""


def parse_size(value: str | int | float) -> int:
    """A size in bytes.

    ``value`` is a number of bytes, or a text with a unit: powers of 1024 (KiB, MiB, GiB, TiB) or of
    1000 (KB, MB, GB, TB), in any case.  A fraction of a byte is dropped.

    Raises:
        SizeError: it isn't one, or is negative or not finite.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise SizeError(f"{value!r} is no size: give bytes, or a text such as '16 GiB'")
    if not isinstance(value, str):
        if not math.isfinite(value) or value < 0:
            raise SizeError(f"{value!r} is no size: it must be 0 or more bytes")
        return int(value)
    match = _SIZE.fullmatch(value)
    if match is None:
        raise SizeError(
            f"{value!r} is no size: give a number and a unit, such as '16 GiB' or '1.5GB'"
        )
    factor = _FACTORS.get(match["unit"].upper())
    if factor is None:
        raise SizeError(
            f"{value!r} is no size: the unit {match['unit']!r} is none of B, KB, MB, GB, TB "
            "(powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)"
        )
    number = match["number"]
    return int(number) * factor if number.isdigit() else int(float(number) * factor)


def format_size(size: int) -> str:
    """Bytes for people: ``"0 B"``, ``"1.5 KiB"``, ``"16 GiB"``; at most four digits."""
    if size < 0:
        return "-" + format_size(-size)
    amount = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        # 1023.95 would round to "1024": that is the next unit's 1.
        if amount < 1023.95 or (unit == "B" and size < 1024):
            break
        amount /= 1024
    else:
        unit = "TiB"
    text = f"{amount:.1f}" if amount < 1000 else f"{amount:.0f}"
    return f"{text.removesuffix('.0')} {unit}"


ITEM_BITS = {
    "bool": 8, "int4": 4, "uint4": 4, "int8": 8, "uint8": 8, "qint8": 8, "quint8": 8,
    "int16": 16, "uint16": 16, "qint16": 16, "quint16": 16, "float16": 16, "bfloat16": 16,
    "int32": 32, "uint32": 32, "qint32": 32, "float32": 32, "int64": 64, "uint64": 64,
    "float64": 64, "complex64": 64, "complex128": 128, "float8_e5m2": 8, "float8_e4m3fn": 8,
}  # fmt: skip
"""Bits of an element in memory, by dtype; int4 takes a byte in TensorFlow's tensors."""


def tensor_bytes(dtype: str, shape: Sequence[int | None] | None) -> int | None:
    """Bytes of a tensor; None where its shape isn't fully known, or elements have no fixed size."""
    bits = ITEM_BITS.get(dtype)
    if shape is None or bits is None:
        return None
    elements = 1
    for dimension in shape:
        if dimension is None:
            return None
        elements *= dimension
    return elements * max(bits, 8) // 8
