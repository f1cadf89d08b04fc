"""What a test took of the GPU, before and now: memory and transfers, and which growth is too much.

A baseline has none of it, so both sides must be reports.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from pytest_tfdevice.serial.run_report import TestReport

DEFAULT_GROWTH = 0.1
NOISE = 2**20
"""Bytes of memory that are never too much: garbage of earlier tests, and the allocator's rounding,
go in and out of a peak."""


@dataclass(frozen=True)
class Amount:
    """A figure that is another now: ``what`` is ``memory on GPU:0``, in ``unit``.

    ``is_regression``: it grew by more than is allowed.
    """

    what: str
    before: int
    after: int
    unit: str = ""
    is_regression: bool = False

    @property
    def growth(self) -> float:
        """Share of what it was; infinite where that was nothing."""
        return (self.after - self.before) / self.before if self.before else math.inf


def parse_growth(text: str) -> float | None:
    """The share that an amount may grow by, given in percent; None for ``off``.

    Raises:
        ValueError: it is neither.
    """
    if text.strip() == "off":
        return None
    try:
        percent = float(text.strip().removesuffix("%"))
    except ValueError:
        percent = math.nan
    if not 0 <= percent < math.inf:  # also for NaN
        raise ValueError(f"--max-growth {text}: neither a percentage from 0 up nor off")
    return percent / 100


def changed(old: TestReport, new: TestReport) -> list[Amount]:
    """The figures of a test that both reports have, and that differ."""
    found = [
        Amount(f"memory on {device}", old.memory[device], after, "bytes")
        for device, after in sorted(new.memory.items())
        if old.memory.get(device, after) != after
    ]
    was, now = old.transfers, new.transfers
    if was is not None and now is not None:
        if was.count != now.count:
            found.append(Amount("transfers", was.count, now.count))
        if was.bytes is not None and now.bytes is not None and was.bytes != now.bytes:
            found.append(Amount("transfers", was.bytes, now.bytes, "bytes"))
    return found


def judged(amount: Amount, max_growth: float) -> Amount:
    """The amount, with whether it grew by more than a share."""
    is_noise = amount.what.startswith("memory") and amount.after - amount.before <= NOISE
    return replace(amount, is_regression=amount.growth > max_growth and not is_noise)
