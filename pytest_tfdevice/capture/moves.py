"""Which ops an optimiser moved to another device after the placer had put them on theirs.

Of Grappler's optimisers only one moves ops: ``pin_to_host_optimization``, which takes small ops to
the CPU, and which is off unless the user switches it on (2.12 to 2.21).  Where it is on, the placer
is asked again, without any optimiser, where it would put the ops of a function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytest_tfdevice.capture import expansion, graphs, placer
from pytest_tfdevice.model import Device, DeviceSpec, Placement


def moves_are_on() -> bool:
    """True where the user switched on the optimiser that moves ops."""
    import tensorflow as tf

    options = tf.config.optimizer.get_experimental_options()
    return bool(options.get("pin_to_host_optimization"))


def with_placed_on(
    placements: Iterable[Placement],
    function: str,
    ran: Sequence[Any],
    lookup: Callable[[str], Any],
    target: DeviceSpec,
) -> list[Placement]:
    """``placements`` of a function's graph, those that were moved with the placer's choice."""
    placements = list(placements)
    if all(p.device is not None and target.matches(p.device) for p in placements):
        return placements
    before = _placed(function, ran, lookup)
    return [
        dataclasses.replace(p, placed_on=found)
        if (found := before.get(expansion.plain_name(p.op))) is not None and found != p.device
        else p
        for p in placements
    ]


def _placed(function: str, ran: Sequence[Any], lookup: Callable[[str], Any]) -> dict[str, Device]:
    """Where the placer puts the ops of a function, by plain name; empty where it refuses."""
    definition = lookup(function)
    arguments = [node for node in ran if node.op in {"_Arg", "_DeviceArg"}]
    arguments.sort(key=lambda node: node.attr["index"].i)
    if definition is None or len(arguments) != len(definition.signature.input_arg):
        return {}
    try:
        nodes = placer.place_call(function, arguments, "", lookup)
    except placer.CannotPlace:
        return {}  # the reason then says that it isn't known
    found = {}
    for node in nodes:
        device = graphs.parse_device(node.device)
        if device is not None:
            found[expansion.plain_name(node.name)] = device
    return found
