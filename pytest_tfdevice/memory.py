"""GPU memory: what a test took, and whether that is within its limits.

This module knows neither TensorFlow nor pytest.  All amounts are bytes of one GPU's allocator, as
``tf.config.experimental.get_memory_info`` gives them: what tensors take, not what was reserved.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_tfdevice.model import Device
from pytest_tfdevice.op_times import OpTime, percent, sentence
from pytest_tfdevice.units import format_size, parse_size
from pytest_tfdevice.verdict import Outcome


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """The memory of one GPU while it was watched.

    Attributes:
        device: the GPU.
        before: held when the watch began.
        peak: the most that was held at once; what was held before is part of it.
        after: held when the watch ended.
        left: held after a garbage collection at the end; None where none was made.
        limit: what the allocator may take, None where that isn't known.
        total: what the device has; of a logical device what it is limited to; None if unknown.
        is_logical: True for a part of a GPU (``LogicalDeviceConfiguration``).
        growth: True where memory is reserved as it is needed, False where all of ``limit`` is
            reserved at once, None where that isn't known.
        process: what the driver (NVML) says that this process holds, None where it isn't asked.
        utilisation: share, 0 to 1, of the last sampling period in which the GPU was busy (NVML).
    """

    device: Device
    before: int
    peak: int
    after: int
    left: int | None = None
    limit: int | None = None
    total: int | None = None
    is_logical: bool = False
    growth: bool | None = None
    process: int | None = None
    utilisation: float | None = None

    @property
    def taken(self) -> int:
        """The most that was held beyond what was there before."""
        return self.peak - self.before

    @property
    def grown(self) -> int | None:
        """What is still held beyond what was there before; None where it wasn't measured."""
        return None if self.left is None else self.left - self.before

    @property
    def reserved(self) -> int | None:
        """What TensorFlow has set aside, in use or not; None where that isn't known.

        Without memory growth the allocator takes its whole limit at once.
        """
        if self.process is not None:
            return self.process
        return self.limit if self.growth is False else None

    @property
    def reserved_share(self) -> float | None:
        """Of the total, 0 to 1."""
        if self.reserved is None or not self.total:
            return None
        return min(self.reserved / self.total, 1.0)

    @property
    def peak_share(self) -> float | None:
        """Of the total, 0 to 1 (more with unified memory)."""
        return self.peak / self.total if self.total else None

    def __str__(self) -> str:
        return (
            f"{format_size(self.before)} before, peak {format_size(self.peak)}, "
            f"this test {format_size(self.taken)}"
        )


class LimitError(ValueError):
    """Limits that can't be kept or broken."""


@dataclass(frozen=True)
class MemoryLimit:
    """What a test may take.

    Attributes:
        max_bytes: the peak, None for no limit.
        max_fraction: the peak as a share of the device's total, None for no limit.
        max_growth: what may be left beyond what was there before, None for no limit.
        index: the GPU that is meant, None for each of them.
        marker: the marker as written, for messages.
    """

    max_bytes: int | None = None
    max_fraction: float | None = None
    max_growth: int | None = None
    index: int | None = None
    marker: str = "gpu_memory"

    def __post_init__(self) -> None:
        fraction = self.max_fraction
        if fraction is not None and not (0 < fraction <= 1):  # also for NaN
            raise LimitError(
                f"max_fraction={fraction!r} is no share of a GPU's memory: above 0, at most 1"
            )

    @property
    def limits_peak(self) -> bool:
        return self.max_bytes is not None or self.max_fraction is not None


def memory_limit(max_bytes: Any, max_fraction: Any, index: Any, max_growth: Any) -> MemoryLimit:
    """The arguments of the marker, checked.

    Raises:
        LimitError, SizeError: one is wrong; the message says which.
    """
    if max_bytes is None and max_fraction is None and max_growth is None:
        raise LimitError(
            "it limits nothing: give max_bytes, max_fraction, max_growth or isolated=True"
        )
    if index is not None and (not isinstance(index, int) or isinstance(index, bool) or index < 0):
        raise LimitError(f"index={index!r} is no GPU number: a whole number from 0 up")
    if max_fraction is not None and (
        isinstance(max_fraction, bool) or not isinstance(max_fraction, int | float)
    ):
        raise LimitError(f"max_fraction={max_fraction!r} is no share of a GPU's memory, as 0.5 is")
    return MemoryLimit(
        max_bytes=None if max_bytes is None else parse_size(max_bytes),
        max_fraction=max_fraction,
        max_growth=None if max_growth is None else parse_size(max_growth),
        index=index,
    )


def merge_limits(
    marks: Sequence[tuple[MemoryLimit, str]], default_fraction: float | None
) -> tuple[MemoryLimit, ...]:
    """One limit for each GPU that a marker names; of a limit given twice the nearest holds.

    Args:
        marks: limits and the markers as written, the nearest first.
        default_fraction: for a test whose markers limit no peak.
    """
    merged: dict[int | None, MemoryLimit] = {}
    for limit, text in marks:
        near = merged.get(limit.index)
        if near is None:
            merged[limit.index] = replace(limit, marker=text)
            continue
        merged[limit.index] = replace(
            near,
            marker=near.marker if text == near.marker else f"{near.marker} + {text}",
            **{
                name: getattr(limit, name)
                for name in ("max_bytes", "max_fraction", "max_growth")
                if getattr(near, name) is None
            },
        )
    found = list(merged.values())
    if default_fraction is not None and not any(limit.limits_peak for limit in found):
        option = "--tfdevice-gpu-memory-fraction"
        found.append(MemoryLimit(max_fraction=default_fraction, marker=option))
    return tuple(found)


@dataclass(frozen=True)
class MemoryVerdict:
    """Whether a test kept to its memory limits.

    ``findings`` says for each limit of each GPU that is broken which figure was judged;
    ``kept`` the same for the others; ``problems`` what kept a limit from being judged.
    """

    limit: MemoryLimit
    memory: tuple[GpuMemory, ...]
    findings: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        if self.findings:
            return "failed"
        return "error" if self.problems else "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def summary(self) -> str:
        """The first finding, else what kept a limit from being judged, else what was kept."""
        return "; ".join(self.findings or self.problems or self.kept)


NOTHING_SEEN = (
    "no GPU memory was measured: TensorFlow's GPUs were not initialised while this test ran"
)


def judge_memory(memory: Sequence[GpuMemory], limit: MemoryLimit) -> MemoryVerdict:
    """Holds what was measured against a limit; the limit itself is allowed."""
    findings: list[str] = []
    kept: list[str] = []
    problems: list[str] = []
    meant = [m for m in memory if limit.index is None or m.device.index == limit.index]
    if not meant:
        which = "" if limit.index is None or not memory else f"; there is no GPU:{limit.index}"
        problems.append(NOTHING_SEEN + which)
    for found in meant:
        for broken, text in _judge_peak(found, limit, problems):
            (findings if broken else kept).append(text)
        if limit.max_growth is not None:
            if found.grown is None:
                problems.append(f"what is left on {found.device} was not measured")
                continue
            text = (
                f"{found.device} still held {_exact(found.left or 0)} when the test had ended, "
                f"{_signed(found.grown)} than before it ({format_size(found.before)}); "
                f"max_growth is {_exact(limit.max_growth)}"
            )
            (findings if found.grown > limit.max_growth else kept).append(text)
    return MemoryVerdict(limit, tuple(meant), tuple(findings), tuple(kept), tuple(problems))


def _judge_peak(
    found: GpuMemory, limit: MemoryLimit, problems: list[str]
) -> list[tuple[bool, str]]:
    judged = []
    peak = f"peak of {found.device}'s allocator {_exact(found.peak)} ({found})"
    if limit.max_bytes is not None:
        judged.append(
            (found.peak > limit.max_bytes, f"{peak}; max_bytes is {_exact(limit.max_bytes)}")
        )
    if limit.max_fraction is not None:
        if not found.total:
            problems.append(
                f"how much memory {found.device} has isn't known, so max_fraction="
                f"{limit.max_fraction:g} can't be judged; give max_bytes"
            )
        else:
            allowed = fraction_of(limit.max_fraction, found.total)
            judged.append(
                (
                    found.peak > allowed,
                    f"{peak}; max_fraction={limit.max_fraction:g} of {_of_what(found)} is "
                    f"{_exact(allowed)}",
                )
            )
    return judged


def fraction_of(fraction: float, total: int) -> int:
    """Whole bytes: 0.9 of 10 bytes is 9, although 0.9 is a little less than that in binary."""
    exact = fraction * total
    nearest = round(exact)
    return nearest if math.isclose(exact, nearest, rel_tol=1e-12) else math.floor(exact)


def _of_what(found: GpuMemory) -> str:
    size = format_size(found.total or 0)
    if found.is_logical:
        return f"the {size} that the logical device {found.device} is limited to"
    in_force = ""
    if found.limit is not None and found.total and found.limit < found.total:
        in_force = f", of which TensorFlow may take {format_size(found.limit)},"
    return f"the {size} that {found.device} has{in_force}"


def _exact(size: int) -> str:
    """``"1.5 GiB (1,610,612,737 bytes)"``: rounded alone, a limit missed by a byte looks met."""
    if size < 1024:
        return format_size(size)
    return f"{format_size(size)} ({size:,} bytes)"


def _signed(size: int) -> str:
    return f"{_exact(abs(size))} {'more' if size >= 0 else 'less'}"


# --- full but idle -----------------------------------------------------------------------------

RESERVED_FROM = 0.5
"""Share of a GPU's memory from which on it is called full."""
USED_UP_TO = 0.1
"""Share of a GPU's memory up to which it is called idle."""


def full_but_idle(
    memory: Sequence[GpuMemory], on_gpu: int, counting: int, times: Sequence[OpTime] = ()
) -> str | None:
    """The classic case in one sentence: memory full, and the work done elsewhere; None otherwise.

    Args:
        memory: of each GPU.
        on_gpu: operations that count and ran on a GPU.
        counting: all operations that count.
        times: what operations took on each device, where that was measured.
    """
    if not counting or on_gpu / counting > USED_UP_TO:
        return None
    for found in memory:
        reserved, used = found.reserved_share, found.peak_share
        if reserved is None or used is None or reserved < RESERVED_FROM or used > USED_UP_TO:
            continue
        parts = (
            f"{found.device}'s memory is {percent(reserved)} reserved and {percent(used)} used",
            f"{on_gpu} of {counting} operations that count ran on "
            f"{'it' if len(memory) == 1 else 'a GPU'}",
            sentence(times),
        )
        return "; ".join(part for part in parts if part)
    return None
