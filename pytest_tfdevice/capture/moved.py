"""Which ops an optimiser moved to the CPU after they had been placed.

``pin_to_host_optimization`` does that, for small integers and what hangs on them, where the user
switched it on; it is off by default (2.12 to 2.21).  Graph collection tells where an op ended, so
the placer is asked where it had put it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pytest_tfdevice.capture import bodies, expansion, graphs, placer, private
from pytest_tfdevice.model import DeviceSpec, Placement

_ON = (1, 3)
"""``RewriterConfig.Toggle``: ON and AGGRESSIVE; the default is off for this optimiser."""


def is_possible() -> bool:
    """True where that optimiser is switched on."""
    options = private.session_config().graph_options.rewrite_options
    return options.pin_to_host_optimization in _ON


def arguments(ran: Iterable[Any], count: int) -> tuple[Any, ...]:
    """The nodes of a function's arguments, by their numbers."""
    found: list[Any] = [None] * count
    for node in ran:
        if node.op == "_Arg" and node.attr["index"].i < count:
            found[node.attr["index"].i] = bodies.copied(node)
    return tuple(found)


def placed_before(
    function: str,
    carried: tuple[Any, ...],
    lookup: Callable[[str], Any],
    placements: Iterable[Placement],
    target: DeviceSpec,
) -> Iterator[Placement]:
    """The placements of a function's ops, with ``placed_on`` where the placer had chosen another.

    What asks for a device isn't moved, and what can't be asked about stays as it is.
    """
    try:
        nodes = placer.place_call(function, carried, "", lookup)
    except placer.CannotPlace:
        nodes = []
    chosen = {expansion.plain_name(n.name): graphs.parse_device(n.device) for n in nodes}
    for placement in placements:
        device = placement.device
        before = chosen.get(expansion.plain_name(placement.op))
        stays = device is None or target.matches(device) or placement.request is not None
        if stays or before is None or before == device:
            yield placement
        else:
            yield dataclasses.replace(placement, placed_on=before)
