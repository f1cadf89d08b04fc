"""What a test ran, as the properties of its case in a JUnit file: few, short and plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pytest_tfdevice.reports.words import cut, escape

if TYPE_CHECKING:
    from pytest_tfdevice.baseline.compare import Change
    from pytest_tfdevice.results import TestResult
    from pytest_tfdevice.verdict import Offender

Property = tuple[str, "str | int"]

PREFIX = "tfdevice_"
MAX_LISTED = 5
MAX_LENGTH = 200


def of_result(result: TestResult, offenders: Iterable[Offender]) -> Iterator[Property]:
    """What a watched test came to; ``offenders`` are those of all its verdicts."""
    yield _property("outcome", result.outcome)
    if result.summary:
        yield _property("summary", result.summary)
    devices = ", ".join(f"{device}: {n}" for device, n in sorted(result.devices.items()))
    yield _property("devices", devices or "none")
    if result.outcome != "watched":
        yield _property("counting", result.counting)
        yield _property("on_target", result.on_target)
    if result.peak is not None:
        yield _property("gpu_peak_bytes", result.peak)
    if result.transfers is not None:
        yield _property("transfers", result.transfers)
        yield _property("transfer_bytes", result.transfer_bytes)
    yield from _listed("offender", map(_offender, offenders))
    if result.tensorflow:
        yield _property("tensorflow", result.tensorflow)
        yield _property("simulated", "true" if result.simulated else "false")


def of_baseline(state: str, changes: Sequence[Change]) -> Iterator[Property]:
    """What came of a comparison with a baseline, and what moved."""
    from pytest_tfdevice.reports.changes import line

    yield _property("baseline", state)
    moved = [change for change in changes if change.is_regression or change.kind == "gained"]
    yield from _listed("move", (" ".join(line(change).split()) for change in moved))


def _offender(offender: Offender) -> str:
    placement = offender.placement
    device = placement.device if placement.device is not None else "a device that isn't known"
    text = f"{placement.path} ({placement.type}) on {device}: {offender.reason.code}"
    return f"{text}, {placement.source}" if placement.source is not None else text


def _listed(name: str, texts: Iterable[str]) -> Iterator[Property]:
    """How many there are, and the first of them, numbered: names of properties are often keys."""
    found = list(dict.fromkeys(texts))
    if found:
        yield _property(f"{name}s", len(found))
    for number, text in enumerate(found[:MAX_LISTED], 1):
        yield _property(f"{name}_{number}", text)


def _property(name: str, value: str | int) -> Property:
    """A name is anybody's text, and not every character may stand in XML."""
    return PREFIX + name, cut(escape(value), MAX_LENGTH) if isinstance(value, str) else value
