"""The signatures of TensorFlow's ops as shipped with the package: no TensorFlow is needed.

A gzipped text with one op a line, tab-separated: type, ``stateful`` or nothing, inputs, outputs,
attributes.  An argument is ``name:T`` (attribute T gives its dtype), ``name:@float32`` (a fixed
dtype), with ``*`` behind it for a list; an attribute is ``name:type``.  Ops of every supported
TensorFlow are in it; what changed between versions stands as in the newest.  It is made by
``tools/make_op_table.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from pytest_tfdevice.kernels.table import TableError, decompress
from pytest_tfdevice.model import ArgSpec, OpSignature

FORMAT_LINE = "# pytest-tfdevice op table 1"
FILE: Any = resources.files(__package__).joinpath("tables").joinpath("ops.txt.gz")


@lru_cache(maxsize=1)
def shipped_signatures() -> Mapping[str, OpSignature]:
    """By op type."""
    return parse_table(decompress(FILE.read_bytes()))


def parse_table(text: str) -> Mapping[str, OpSignature]:
    """Reads a table.

    Raises:
        TableError: it isn't one.
    """
    head, *lines = text.splitlines() or [""]
    if head != FORMAT_LINE:
        raise TableError(f"an op table begins with {FORMAT_LINE!r}, this text with {head!r}")
    found = (_parse(line) for line in lines)
    return MappingProxyType({signature.type: signature for signature in found})


def format_table(signatures: Iterable[OpSignature]) -> str:
    """A whole table as text, sorted by type."""
    lines = [_format(s) for s in sorted(signatures, key=lambda s: s.type)]
    return "\n".join((FORMAT_LINE, *lines)) + "\n"


def _parse(line: str) -> OpSignature:
    columns = line.split("\t")
    if len(columns) != 5:
        raise TableError(f"not a line of an op table: {line!r}")
    op, stateful, inputs, outputs, attrs = columns
    return OpSignature(
        type=op,
        stateful=stateful == "stateful",
        inputs=tuple(_parse_arg(text) for text in inputs.split()),
        outputs=tuple(_parse_arg(text) for text in outputs.split()),
        attrs=tuple((name, kind) for name, _, kind in (a.partition(":") for a in attrs.split())),
    )


def _parse_arg(text: str) -> ArgSpec:
    name, _, kind = text.partition(":")
    plain = kind.removesuffix("*")
    if plain.startswith("@"):
        return ArgSpec(name, dtype=plain[1:], is_list=kind.endswith("*"))
    return ArgSpec(name, attr=plain or None, is_list=kind.endswith("*"))


def _format(signature: OpSignature) -> str:
    return "\t".join(
        (
            signature.type,
            "stateful" if signature.stateful else "",
            " ".join(_format_arg(arg) for arg in signature.inputs),
            " ".join(_format_arg(arg) for arg in signature.outputs),
            " ".join(f"{name}:{kind}" for name, kind in signature.attrs),
        )
    )


def _format_arg(arg: ArgSpec) -> str:
    kind = f"@{arg.dtype}" if arg.dtype else arg.attr or ""
    return f"{arg.name}:{kind}{'*' if arg.is_list else ''}"
