"""Whether a GPU memory fraction that was asked for is the one in force.  Knows no TensorFlow.

``per_process_gpu_memory_fraction`` acts only on the first initialisation of a GPU in a process:
what a later Session asks for is dropped without a word.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_tfdevice.model import Device

TOLERANCE = 0.02
"""Of the total: the driver's total and TensorFlow's differ a little."""

UNIFIED = (
    "memory_fraction {asked:g} is above 1: it turns on unified memory, which swaps GPU memory to "
    "the host instead of failing when it is full, and is slow then"
)

_first: dict[str, tuple[float | None, int]] = {}
"""By GPU: the fraction that the first Session here asked for, and the limit it got."""


def fraction_notes(
    asked: float | None,
    limits: Mapping[str, int],
    totals: Mapping[str, int],
    first: dict[str, tuple[float | None, int]] = _first,
    set_by: str = "",
) -> tuple[str, ...]:
    """What a reader should know of the fraction that was asked for; empty where it is in force.

    Args:
        asked: the fraction, None where none was asked for.
        limits: bytes in force, by canonical device name of each GPU.
        totals: bytes that each GPU has, by short name ("GPU:0"), where known.
        first: what the first Session of the process asked for and got; added to.
        set_by: what initialised the GPUs, where that is known.
    """
    notes = []
    for name, limit in limits.items():
        earlier = first.setdefault(name, (asked, limit))
        if asked is None:
            continue
        total = totals.get(Device.parse(name).short)
        note = _note(Device.parse(name).short, asked, limit, total, earlier, set_by)
        if note:
            notes.append(note)
    if asked is not None and asked > 1:
        notes.append(UNIFIED.format(asked=asked))
    if asked is not None and not limits:
        notes.append(f"memory_fraction {asked:g} has no effect: this process has no GPU")
    return tuple(notes)


def _note(
    name: str,
    asked: float,
    limit: int,
    total: int | None,
    earlier: tuple[float | None, int],
    set_by: str,
) -> str | None:
    why = "it acts only on the first initialisation of a GPU in a process"
    if total:
        in_force = limit / total
        if abs(in_force - asked) <= TOLERANCE:
            return None
        return (
            f"memory_fraction {asked:g} is not in force on {name}: the limit is {limit} bytes, "
            f"{in_force:.3g} of {total}{f', set by {set_by}' if set_by else ''}; {why}"
        )
    first_asked, first_limit = earlier
    if first_asked != asked and first_limit == limit:
        before = "no fraction" if first_asked is None else f"{first_asked:g}"
        return (
            f"memory_fraction {asked:g} is not in force on {name}: the limit is still the "
            f"{limit} bytes of the first Session, which asked for {before}; {why}"
        )
    return (
        f"whether memory_fraction {asked:g} is in force on {name} can't be told: the limit is "
        f"{limit} bytes, of how many isn't known"
    )
