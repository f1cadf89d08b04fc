"""How long operations took on each device.  Knows neither TensorFlow nor pytest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_tfdevice.model import Device

WHAT = "the op time of Sessions"
"""Only they tell: nothing public gives the times of eager ops and functions without a profile."""


@dataclass(frozen=True, slots=True)
class OpTime:
    """What ran on one device in the runs of Sessions that were timed, each as it first ran.

    Attributes:
        device: where.
        ops: how many operations ran, one in a loop as often as it did.
        seconds: what they took together, on several threads at once or not; None where that
            wasn't measured: on a real GPU an operation has run long before its kernels have.
    """

    device: Device
    ops: int
    seconds: float | None = None


def shares(times: Sequence[OpTime]) -> dict[Device, float]:
    """Of the whole, 0 to 1, by device, the largest first; empty where a part wasn't measured."""
    seconds = {found.device: found.seconds or 0.0 for found in times}
    whole = sum(seconds.values())
    if not whole or any(found.seconds is None for found in times):
        return {}
    ordered = sorted(seconds, key=lambda device: -seconds[device])
    return {device: seconds[device] / whole for device in ordered}


def sentence(times: Sequence[OpTime]) -> str:
    """The share of the device that took most; empty where nothing was timed."""
    for device, share in shares(times).items():
        return f"{percent(share)} of {WHAT} was spent on {device}"
    missing = [str(found.device) for found in times if found.seconds is None]
    return f"{WHAT} on {', '.join(missing)} was not measured" if missing else ""


def table_line(times: Sequence[OpTime]) -> str:
    """Every device's share and time; empty where nothing was timed."""
    found = shares(times)
    if not found:
        return sentence(times)
    seconds = {time.device: time.seconds or 0.0 for time in times}
    parts = (
        f"{device} {percent(share)} ({seconds[device] * 1000:.3g} ms)"
        for device, share in found.items()
    )
    return f"{WHAT}, each as it first ran: {', '.join(parts)}"


def percent(share: float) -> str:
    """At most one decimal; never 0 % of something, nor 100 % of what is less than all."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    if 0.999 < share < 1:
        return "more than 99.9 %"
    return f"{share * 100:.1f}".removesuffix(".0") + " %"
