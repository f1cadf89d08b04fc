"""Kernel entries and the tables of them that ship with the package.

A table holds what the CUDA-enabled wheel of one TensorFlow minor version registers for GPU
(devices ``GPU`` and ``DEFAULT``; the latter serve every device type).  It is a gzipped text of
tab-separated lines, so that it can be read here without TensorFlow, and by the simulated GPU's C++
without a parser of its own kind::

    # pytest-tfdevice kernel table 1
    # tensorflow 2.21.0
    GPU <tab> AddV2 <tab> label <tab> priority <tab> T=float32,float64 <tab> x,y <tab> cuda

The columns are device type, op type, label, priority, dtype constraints (``ATTR=dtype,…`` joined by
``;``), arguments kept in host memory, and ``cuda`` where only the CUDA-enabled wheel has the kernel
or ``host`` where the CPU-only wheel registers it for that device type too.  A few kernels are
constrained by an attribute that is no dtype; its values are written ``int:-1``, ``bool:true`` or
``str:NHWC``.

The tables are made by ``tools/make_kernel_tables.py``.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_tfdevice.kernels.dtypes import dtype_order

FORMAT_LINE = "# pytest-tfdevice kernel table 1"
_VERSION_PREFIX = "# tensorflow "
_COLUMNS = 7


class TableError(ValueError):
    """A text that isn't a kernel table of the format that is read here."""


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """One registered kernel.

    ``constraints``: for each dtype attribute the dtypes that it serves; an attribute that isn't
    named is free.  ``host_args``: inputs and outputs that it keeps in host memory.
    ``cuda_only``: in a table, True where the CPU-only wheel lacks it; False for an entry of the
    live registry, which doesn't tell.
    """

    op: str
    device_type: str
    constraints: tuple[tuple[str, tuple[str, ...]], ...] = ()
    host_args: tuple[str, ...] = ()
    label: str = ""
    priority: int = 0
    cuda_only: bool = True

    @property
    def key(self) -> tuple[object, ...]:
        """What it is apart from its device type, its priority and where it was found."""
        return self.op, self.label, self.constraints, self.host_args

    def serves(self, dtypes: dict[str, str]) -> bool:
        """True where the kernel takes these dtype attributes (those not given are free).

        The dtypes of a list attribute are joined by commas: ``{"Tin": "float32,int32"}``.
        """
        return all(
            attr not in dtypes or all(dtype in allowed for dtype in dtypes[attr].split(","))
            for attr, allowed in self.constraints
        )


def int_value(value: int) -> str:
    """An allowed value of an attribute of type int."""
    return f"int:{value}"


def bool_value(value: int) -> str:
    """An allowed value of an attribute of type bool."""
    return f"bool:{'true' if value else 'false'}"


def text_value(value: str) -> str:
    """An allowed value of an attribute of type string."""
    return f"str:{value}"


def make_entry(
    op: str,
    device_type: str,
    constraints: Iterable[tuple[str, Iterable[str]]],
    host_args: Iterable[str],
    label: str,
    priority: int,
    cuda_only: bool,
) -> KernelEntry:
    """A ``KernelEntry`` in canonical order, so that equal kernels compare equal."""
    return KernelEntry(
        op=op,
        device_type=device_type,
        constraints=tuple(
            sorted((attr, tuple(sorted(set(d), key=dtype_order))) for attr, d in constraints)
        ),
        host_args=tuple(sorted(set(host_args))),
        label=label,
        priority=priority,
        cuda_only=cuda_only,
    )


def format_entry(entry: KernelEntry) -> str:
    """The entry's line in a table, without a line end."""
    return "\t".join(
        (
            entry.device_type,
            entry.op,
            entry.label,
            str(entry.priority),
            ";".join(f"{attr}={','.join(allowed)}" for attr, allowed in entry.constraints),
            ",".join(entry.host_args),
            "cuda" if entry.cuda_only else "host",
        )
    )


def parse_entry(line: str) -> KernelEntry:
    """Reads a table's line.

    Raises:
        TableError: it has not the seven columns of one.
    """
    columns = line.split("\t")
    if len(columns) != _COLUMNS or columns[6] not in ("cuda", "host"):
        raise TableError(f"not a line of a kernel table: {line!r}")
    device_type, op, label, priority, constraints, host_args, origin = columns
    pairs = [part.partition("=") for part in constraints.split(";") if part]
    try:
        number = int(priority)
    except ValueError:
        raise TableError(f"priority {priority!r} is no number, in {line!r}") from None
    return KernelEntry(
        op=op,
        device_type=device_type,
        constraints=tuple((attr, tuple(allowed.split(","))) for attr, _, allowed in pairs),
        host_args=tuple(host_args.split(",")) if host_args else (),
        label=label,
        priority=number,
        cuda_only=origin == "cuda",
    )


def format_table(version: str, entries: Iterable[KernelEntry]) -> str:
    """A whole table as text: sorted, exact duplicates dropped."""
    lines = sorted({format_entry(entry) for entry in entries})
    return "\n".join((FORMAT_LINE, _VERSION_PREFIX + version, *lines)) + "\n"


def parse_table(text: str) -> tuple[str, tuple[KernelEntry, ...]]:
    """The TensorFlow version and the entries of a table.

    Raises:
        TableError: it isn't a table of this format.
    """
    head, *lines = text.splitlines() or [""]
    if head != FORMAT_LINE:
        raise TableError(f"a kernel table begins with {FORMAT_LINE!r}, this text with {head!r}")
    if not lines or not lines[0].startswith(_VERSION_PREFIX):
        raise TableError("the kernel table doesn't name its TensorFlow version")
    version = lines[0].removeprefix(_VERSION_PREFIX).strip()
    return version, tuple(
        parse_entry(line) for line in lines[1:] if line and not line.startswith("#")
    )


def compress(text: str) -> bytes:
    """The bytes of a table's file; equal texts give equal bytes (no time stamp in them)."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def decompress(data: bytes) -> str:
    """The text of a table's file.

    Raises:
        TableError: the file is damaged.
    """
    try:
        return gzip.decompress(data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TableError(f"the kernel table's file is damaged: {error}") from error
