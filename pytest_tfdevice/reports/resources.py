"""Verdicts on memory and transfers, and what a test took, as plain text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from pytest_tfdevice.errors.out_of_memory import OutOfMemory
from pytest_tfdevice.memory import GpuMemory, MemoryVerdict
from pytest_tfdevice.model import Record
from pytest_tfdevice.op_times import table_line
from pytest_tfdevice.reports.words import count, cut, wrapped
from pytest_tfdevice.transfers import Transfer, TransferLimit, TransferVerdict, judge_transfers
from pytest_tfdevice.units import format_size

MAX_TRANSFERS = 10
MAX_RESIDENTS = 5


def memory_failure(verdict: MemoryVerdict, environment: str) -> str:
    """Why a test exceeds its memory limits: which figure was judged, and against what."""
    lines = _wrap(verdict.summary, "", "  ")
    lines += _wrap(f"judged by {cut(verdict.limit.marker, 60)}; {environment}", "  ")
    for found in verdict.memory:
        lines += _wrap(describe(found), "  ")
    return "\n".join(lines)


def describe(found: GpuMemory) -> str:
    """One GPU's figures, each with what it is a figure of."""
    parts = [f"{found.device}: {found}"]
    if found.left is not None and found.grown is not None:
        parts.append(f"{format_size(found.left)} left after it")
    if found.limit is not None:
        what = "the logical device's limit" if found.is_logical else "limit in force"
        limit = f"{what} {format_size(found.limit)}"
        if found.total and found.total != found.limit:
            limit += f" of {format_size(found.total)}"
        parts.append(limit)
    if found.growth is not None:
        parts.append(
            "memory grows as needed" if found.growth else "all of the limit is reserved at once"
        )
    if found.process is not None:
        parts.append(f"the driver counts {format_size(found.process)} for this process")
    if found.utilisation is not None:
        parts.append(f"busy {found.utilisation:.0%} of the last sampling period")
    return "; ".join(parts)


def transfer_failure(verdict: TransferVerdict, environment: str) -> str:
    """Why a test moves too much: the count, and the crossings, the largest first."""
    lines = _wrap(verdict.summary, "", "  ")
    lines += _wrap(f"judged by {cut(verdict.limit.marker, 60)}; {environment}", "  ")
    lines += transfer_lines(verdict.counted)
    if verdict.passed_over:
        lines += _wrap(
            f"not counted: {count(verdict.passed_over, 'other crossing')} (scalars, other "
            "directions or other scopes)",
            "  ",
        )
    return "\n".join(lines)


def transfer_lines(transfers: Sequence[Transfer]) -> list[str]:
    """A line for each crossing, with the user's line where it is known."""
    lines: list[str] = []
    for transfer in transfers[:MAX_TRANSFERS]:
        at = f", at {transfer.line}" if transfer.line else ""
        lines += _wrap(f"{transfer}{at}", "    ", "      ")
    if len(transfers) > MAX_TRANSFERS:
        lines.append(f"    … and {count(len(transfers) - MAX_TRANSFERS, 'more crossing')}")
    return lines


def remarks(notes: Iterable[str]) -> list[str]:
    """Notes of a test whose placements nobody judged."""
    return ["\n".join(_wrap(f"note: {note}", "", "  ")) for note in notes]


def summary(record: Record, idle: str | None) -> list[str]:
    """Memory and transfers of a record, for ``print``."""
    lines = [line for found in record.memory for line in _wrap(describe(found), "", "  ")]
    if idle:
        lines += _wrap(idle, "", "  ")
    lines += _wrap(table_line(record.op_times), "", "  ")
    traffic = judge_transfers(record.transfers, TransferLimit())
    if traffic.counted:
        lines += [*_wrap(traffic.summary, "", "  "), *transfer_lines(traffic.counted)]
    return lines


def out_of_memory(found: OutOfMemory, limits: Iterable[str]) -> str:
    """The section of a test that ran out of GPU memory."""
    op = found.op or found.op_type or "an operation"
    asked = f"asked for {format_size(found.asked)}" if found.asked is not None else "asked for more"
    tensor = (
        f" ({found.dtype}{list(found.shape)})" if found.dtype and found.shape is not None else ""
    )
    where = f" on {found.device}" if found.device else ""
    lines = _wrap(f"{op} {asked}{tensor}{where}", "", "  ")
    if found.free is not None and found.limit is not None and found.in_use is not None:
        lines += _wrap(
            f"free: {format_size(found.free)} of the {format_size(found.limit)} that TensorFlow "
            f"may take; {format_size(found.in_use)} were held once it had failed"
            + (f", at most {format_size(found.peak)} while it ran" if found.peak else ""),
            "  ",
        )
    if found.residents:
        lines.append("  the largest of what is held:")
        for resident in found.residents[:MAX_RESIDENTS]:
            lines += _wrap(str(resident), "    ", "      ")
    for limit in limits:
        lines += _wrap(f"the test's limit: {limit}", "  ")
    return "\n".join(lines)


def _wrap(text: str, indent: str, hanging: str | None = None) -> list[str]:
    """Wrapped to the width, with files below the working directory named from there."""
    return wrapped(text.replace(os.path.join(os.getcwd(), ""), ""), indent, hanging)
