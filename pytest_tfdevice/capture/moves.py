"""Which ops an optimiser moved to another device after the placer had put them on theirs.

Of Grappler's optimisers only one moves ops: ``pin_to_host_optimization``, which takes small
ops to the CPU, and which is off unless the user switches it on (2.12 to 2.21).  Where it is on, the
placer is asked again, without any optimiser, where it would put the ops of a function.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from pytest_tfdevice.capture import dataset_bodies, expansion, graphs
from pytest_tfdevice.model import Device, DeviceSpec, Placement


def with_placed_on(
    placements: list[Placement],
    function: str,
    ran: Any,
    lookup: Callable[[str], Any],
    target: DeviceSpec,
) -> list[Placement]:
    """``placements`` of a function's graph, those that were moved with the placer's choice."""
    elsewhere = [p for p in placements if p.device is not None and not target.matches(p.device)]
    if lookup(function) is None or not elsewhere:
        return placements
    try:
        before = _placed(function, ran, lookup)
    except dataset_bodies.CannotPlace:
        return placements  # the reason then says that it isn't known
    return [
        dataclasses.replace(p, placed_on=found)
        if (found := before.get(expansion.plain_name(p.op))) is not None and found != p.device
        else p
        for p in placements
    ]


def moves_are_on() -> bool:
    """True where the user switched on the optimiser that moves ops."""
    import tensorflow as tf

    options = tf.config.optimizer.get_experimental_options()
    return bool(options.get("pin_to_host_optimization"))


def _placed(function: str, ran: Any, lookup: Callable[[str], Any]) -> dict[str, Device]:
    arguments = sorted(_arguments(ran.node), key=lambda node: node.attr["index"].i)
    body = dataset_bodies.DatasetBody(function, function, tuple(arguments))
    if len(arguments) != len(lookup(function).signature.input_arg):
        raise dataset_bodies.CannotPlace(f"{function}: its arguments are not in its graph")
    found = {}
    for node in dataset_bodies.place(body, lookup).nodes:
        device = graphs.parse_device(node.device)
        if device is not None:
            found[expansion.plain_name(node.name)] = device
    return found


def _arguments(nodes: Iterable[Any]) -> list[Any]:
    return [node for node in nodes if node.op in {"_Arg", "_DeviceArg"}]
