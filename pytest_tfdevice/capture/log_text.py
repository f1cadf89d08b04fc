"""From captured output to placements, and to what of it is the user's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from pytest_tfdevice.model import Placement
from pytest_tfdevice.placement_log import parse, split_output


def user_output(captured: bytes) -> bytes:
    """What is left of one stream without the placement log, byte for byte."""
    return split_output(captured)[1]


def placements_of(stdout: bytes, stderr: bytes) -> tuple[Placement, ...]:
    """The placements that the two streams of one stretch tell.

    The placer writes each line to both, except that a log level of 1 or more silences its copy on
    stderr; lines on executed ops go to stderr only.  So stderr, where it has lines, has them all
    in order, and stdout is what remains at other levels.
    """
    return merge(parse(stderr), parse(stdout))


def merge(*lists: Iterable[Placement]) -> tuple[Placement, ...]:
    """One list in order of first appearance; what several tell is told once.

    An op's ``count`` is the highest of those told: the lists are views of the same run.
    """
    found: dict[tuple[object, ...], Placement] = {}
    for placement in (p for each in lists for p in each):
        key = (placement.op, placement.type, placement.device, placement.kind)
        known = found.get(key)
        if known is None:
            found[key] = placement
        elif placement.count > known.count:
            found[key] = dataclasses.replace(known, count=placement.count)
    return tuple(found.values())
