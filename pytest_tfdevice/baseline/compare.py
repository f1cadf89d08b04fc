"""Two lists of operations → what moved, came and went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pytest_tfdevice.baseline.entries import DEFAULT_TARGET, UNKNOWN, Entry
from pytest_tfdevice.model import Device, DeviceError, DeviceSpec
from pytest_tfdevice.serial.run_report import Operation

Kind = Literal["lost", "new-off", "gained", "moved", "new", "gone"]
"""``lost``: left the target; ``new-off``: new, and off it; ``gained``: came to it; ``moved``: from
one device to another that is as good; ``new``: new on it; ``gone``: no longer there."""

REGRESSIONS: tuple[Kind, ...] = ("lost", "new-off")


@dataclass(frozen=True)
class Change:
    """``count`` operations of one scope and type; ``before`` or ``after`` is empty for none."""

    kind: Kind
    scope: str
    type: str
    count: int
    before: str = ""
    after: str = ""
    reason: str = ""

    @property
    def is_regression(self) -> bool:
        return self.kind in REGRESSIONS


def compare(old: Entry, new: Entry) -> tuple[Change, ...]:
    """What is different in ``new``, the worst first; only operations that count are looked at."""
    target = DeviceSpec.parse(new.target or DEFAULT_TARGET)
    before, after = _by_device(old.operations), _by_device(new.operations)
    reasons = {(op.scope, op.type, op.device): op.reason for op in new.operations}
    found: list[Change] = []
    for scope, op_type in sorted(set(before) | set(after)):
        changes = _pair(
            before.get((scope, op_type), Counter()), after.get((scope, op_type), Counter()), target
        )
        for (source, goal), count in changes.items():
            found.append(
                Change(
                    _kind(source, goal, target),
                    scope,
                    op_type,
                    count,
                    source,
                    goal,
                    reasons.get((scope, op_type, goal), ""),
                )
            )
    order = {kind: n for n, kind in enumerate(("lost", "new-off", "gained", "moved", "new"))}
    return tuple(sorted(found, key=lambda c: (order.get(c.kind, 9), c.scope, c.type, c.after)))


def on(device: str, target: DeviceSpec) -> bool:
    """True for a device, by short name, that is the target; never for one that isn't known."""
    if device in ("", UNKNOWN):
        return False
    try:
        return target.matches(Device.parse(device))
    except DeviceError:
        return False


def _by_device(operations: Iterable[Operation]) -> dict[tuple[str, str], Counter[str]]:
    found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for op in operations:
        if op.counts:
            found[op.scope, op.type][op.device] += op.count
    return found


def _pair(
    before: Counter[str], after: Counter[str], target: DeviceSpec
) -> dict[tuple[str, str], int]:
    """How many went from where to where.

    What is no longer on one device and what is now on another are paired; moves off the target and
    onto it are found before others.
    """
    less, more = before - after, after - before
    sources = sorted(less, key=lambda device: (not on(device, target), device))
    goals = sorted(more, key=lambda device: (on(device, target), device))
    pairs: dict[tuple[str, str], int] = {}
    while sources and goals:
        source, goal = sources[0], goals[0]
        count = min(less[source], more[goal])
        pairs[source, goal] = count
        less[source] -= count
        more[goal] -= count
        sources = sources[not less[source] :]
        goals = goals[not more[goal] :]
    pairs |= {(device, ""): less[device] for device in sources}
    pairs |= {("", device): more[device] for device in goals}
    return pairs


def _kind(source: str, goal: str, target: DeviceSpec) -> Kind:
    if not goal:
        return "gone"
    if not source:
        return "new" if on(goal, target) else "new-off"
    was, now = on(source, target), on(goal, target)
    if was == now:
        return "moved"
    return "gained" if now else "lost"
