"""A record and its verdict → the operations that a baseline keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_tfdevice.baseline import names
from pytest_tfdevice.model import Placement, Record
from pytest_tfdevice.reason import REASON_CODES
from pytest_tfdevice.serial.run_report import Operation
from pytest_tfdevice.verdict import Verdict

SIMULATED = "simulated GPU"
NO_GPU = "no GPU"
LOG = "placement log"
DEFAULT_TARGET = "GPU"
UNKNOWN = "unknown"


@dataclass(frozen=True, order=True)
class Environment:
    """What an entry holds for: the class of device, and TensorFlow's minor version."""

    device: str
    tensorflow: str

    @classmethod
    def of(cls, record: Record) -> Environment:
        """Where a record was made."""
        if not record.tensorflow:
            return cls(LOG, "")
        gpus = [info for info in record.devices if info.device.type == "GPU"]
        if any(info.simulated for info in gpus):
            device = SIMULATED
        elif gpus:
            device = " + ".join(sorted({info.description or "GPU" for info in gpus}))
        else:
            device = NO_GPU
        return cls(device, minor(record.tensorflow))

    @property
    def key(self) -> str:
        """As it stands in a file: ``"simulated GPU, TensorFlow 2.21"``."""
        return f"{self.device}, TensorFlow {self.tensorflow}" if self.tensorflow else self.device


@dataclass(frozen=True)
class Entry:
    """The operations that count of one test in one environment, sorted.

    ``target``: the device that they are meant to be on.
    """

    operations: tuple[Operation, ...] = ()
    target: str = DEFAULT_TARGET


def minor(version: str) -> str:
    """``"2.21"`` for ``"2.21.0"``."""
    return ".".join(version.split(".")[:2])


def observe(verdict: Verdict) -> Entry:
    """What a baseline keeps of a record that was judged by a plain rule.

    An operation is counted once however often it ran, was traced or was written: run counts, loops
    and new traces make no difference.  Eager ops have no names, so that each type counts once for
    each device.
    """
    reasons = {id(o.placement): o.reason.code for o in verdict.offenders}
    seen: dict[tuple[str, str, str], set[tuple[str, str]]] = defaultdict(set)
    why: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for judged in verdict.judged:
        placement = judged.placement
        if not judged.counts or names.by_optimiser(placement):
            continue
        key = (names.scope_of(placement), names.type_of(placement), device_of(placement))
        seen[key].add(_identity(placement))
        if id(placement) in reasons:
            why[key].add(reasons[id(placement)])
    operations = (
        Operation(*key, count=len(found), reason=", ".join(sorted(why[key])))
        for key, found in seen.items()
    )
    return Entry(tuple(sorted(operations)), str(verdict.rule.target))


def offending(verdict: Verdict, scope: str, op_type: str, device: str) -> list[Placement]:
    """The placements off their device behind an operation of :func:`observe`."""
    return [
        o.placement
        for o in verdict.offenders
        if (names.scope_of(o.placement), names.type_of(o.placement)) == (scope, op_type)
        and device_of(o.placement) == device
    ]


def device_of(placement: Placement) -> str:
    """``"GPU:0"``."""
    return str(placement.device) if placement.device is not None else UNKNOWN


def by_hand(reason: str) -> bool:
    """True for a reason that somebody wrote, rather than the codes that are found."""
    return bool(reason) and any(part not in REASON_CODES for part in reason.split(", "))


def keep_reasons(new: Entry, *old: Entry | None) -> Entry:
    """``new`` with the reasons that were written by hand, the first of ``old`` going before."""
    written: dict[tuple[str, str, str], str] = {}
    for entry in old:
        for op in entry.operations if entry is not None else ():
            if by_hand(op.reason):
                written.setdefault((op.scope, op.type, op.device), op.reason)
    return Entry(tuple(_with_reason(op, written) for op in new.operations), new.target)


def _with_reason(op: Operation, written: dict[tuple[str, str, str], str]) -> Operation:
    reason = written.get((op.scope, op.type, op.device), op.reason)
    return Operation(op.scope, op.type, op.device, op.count, reason, op.counts)


def _identity(placement: Placement) -> tuple[str, str]:
    if placement.origin == "eager":
        return "", placement.op
    return names.plain_function(placement.function or ""), placement.path


def doubles(operations: Iterable[Operation]) -> list[Operation]:
    """Operations of one scope, type and device that are given more than once."""
    known: set[tuple[str, str, str]] = set()
    found = []
    for op in operations:
        if (op.scope, op.type, op.device) in known:
            found.append(op)
        known.add((op.scope, op.type, op.device))
    return found
