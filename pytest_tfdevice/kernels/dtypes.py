"""Names of TensorFlow's data types, by their number in ``types.proto``.

The names are those of TensorFlow's Python API ("float32", "half" is "float16").  The numbers are
part of TensorFlow's file formats and never change; a newer TensorFlow only adds to them.
"""

from __future__ import annotations

from types import MappingProxyType

DTYPE_NAMES = MappingProxyType(
    dict(
        enumerate(
            (
                *("float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64"),
                *("int64", "bool", "qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16"),
                *("uint16", "complex128", "float16", "resource", "variant", "uint32", "uint64"),
                *("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz"),
                *("float8_e5m2fnuz", "int4", "uint4", "int2", "uint2", "float4_e2m1fn"),
            ),
            start=1,
        )
    )
)
"""``types.proto`` of TensorFlow 2.21."""

_REF = 100
"""A reference type (variables of TF1) has the number of its base type plus this."""

_ORDER = MappingProxyType({name: number for number, name in DTYPE_NAMES.items()})


def dtype_name(number: int) -> str:
    """The Python name of a ``DataType`` number; ``"dtype_77"`` for one that isn't known here."""
    if number > _REF:
        return dtype_name(number - _REF) + "_ref"
    return DTYPE_NAMES.get(number, f"dtype_{number}")


def dtype_order(name: str) -> tuple[int, str]:
    """Sort key: the order of ``types.proto``, reference types and unknown ones last."""
    return _ORDER.get(name, 1000), name
