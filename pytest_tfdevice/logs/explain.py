"""A placement log → what is on the CPU, and why, as far as the log and a kernel table tell.

A log holds names, types and devices of ops, and no dtypes, shapes or requests.  So much can be
known only as "may be"; what is certain and what isn't is kept apart.  Nothing here knows TensorFlow
or pytest, and memory is bounded on a log of any length: ops are counted by scope, type and device,
and after ``MAX_GROUPS`` of those by type and device only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pytest_tfdevice.classify import Class, classify
from pytest_tfdevice.errors.placement import Failure, readable
from pytest_tfdevice.logs.facts import LogFacts
from pytest_tfdevice.logs.reasons import KernelChoice, LogReasons
from pytest_tfdevice.model import Device, DeviceSpec, OpSignature, Placement
from pytest_tfdevice.placement_log import is_pseudo
from pytest_tfdevice.reason import Reason

MAX_GROUPS = 20_000
MAX_NAMES = 4
OTHER_SCOPES = "…"


_MKL = re.compile(r"^_Mkl(?:Native|Eager)?(?=[A-Z])")
_NUMBER = re.compile(r"_\d+$")
_HOSTS = frozenset({"CPU", "XLA_CPU", "XLA_GPU"})
"""Device types that are no accelerator: XLA_GPU only ever took what XLA compiled (1.9 to 2.3)."""


@dataclass(frozen=True, slots=True)
class LogGroup:
    """Ops of one type in one scope on one device.

    ``guessed``: the log has no types, and the type was read from the names.  ``certain``: the
    reason is known; otherwise it is the likeliest, and the evidence says what is missing.
    """

    scope: str
    type: str
    device: str
    count: int
    names: tuple[str, ...]
    kind: Class
    reason: Reason | None = None
    certain: bool = False
    guessed: bool = False


@dataclass(frozen=True)
class LogExplanation:
    """What a log says of where TensorFlow ran.

    Attributes:
        devices: ops that may count, by device.
        groups: those on the CPU, the largest group first.
        set_apart: ops that don't count, by class and then by type, wherever they are.
        functions: calls of functions: readable name and device, and how many lines tell of it.
        accelerator: type of the devices that work was meant to be on; None where the log shows
            none, and then ``no_gpu`` says what is known of that.
        failures: what could not be placed, with its reason.
        notes: remarks.
    """

    facts: LogFacts
    kernels: KernelChoice
    accelerator: str | None
    devices: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[LogGroup, ...] = ()
    set_apart: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    functions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    no_gpu: str = ""
    failures: tuple[tuple[Failure, Reason], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def on_cpu(self) -> int:
        """Ops on the CPU that may count."""
        return sum(group.count for group in self.groups)

    @property
    def total(self) -> int:
        return sum(self.devices.values())


@dataclass(slots=True)
class _Tally:
    count: int = 0
    names: list[str] = field(default_factory=list)


_Key = tuple[str, str, str, bool, "tuple[str, str] | int | None"]
"""Scope, type, device, whether the type is a guess, and what the log says of the op besides."""


def explain_log(
    placements: Iterable[Placement],
    facts: LogFacts,
    signatures: Mapping[str, OpSignature],
    kernels: Callable[[], KernelChoice],
) -> LogExplanation:
    """Reads ``placements`` to their end; ``facts`` may be filled meanwhile.

    ``kernels`` is asked at the end: the choice depends on what the log turned out to be.
    """
    collected = _Collector(facts, signatures)
    for placement in placements:
        collected.add(placement)
    return collected.explanation(kernels())


class _Collector:
    def __init__(self, facts: LogFacts, signatures: Mapping[str, OpSignature]) -> None:
        self.facts = facts
        self.signatures = signatures
        self._tallies: dict[_Key, _Tally] = {}
        self._eager: dict[tuple[str, str], bool] = {}
        self._functions: Counter[tuple[str, str]] = Counter()
        self._types: Counter[str] = Counter()
        self._untyped = 0
        self._known_failures = 0
        self._members: dict[str, int] = {}

    def add(self, placement: Placement) -> None:
        """Counts one placement."""
        if is_pseudo(placement) or placement.device is None:
            return
        op, op_type = placement.op, placement.type
        if placement.kind == "executed":
            plain = _MKL.sub("", op)
            if plain not in self.signatures:
                self._functions[readable(op), placement.device.short] += 1
                return
            op = op_type = plain
        guessed = False
        if op_type is None:
            self._untyped += 1
            op_type = self._guess(op)
            guessed = bool(op_type)
        elif _MKL.match(op_type):
            # oneDNN's name for an op that the log has under its own name, too.
            plain = _MKL.sub("", op_type)
            if op != op_type:
                return
            op = op_type = plain
        device = placement.device
        self._types[device.type] += 1
        if op == op_type:
            if (op, device.short) in self._eager:
                return
            self._eager[op, device.short] = True
        placed = replace(placement, op=op, type=op_type or None)
        self._count((placed.scope, op_type or "", device.short, guessed, self._mark(op)), op)

    def _count(self, key: _Key, op: str) -> None:
        if key not in self._tallies and len(self._tallies) >= MAX_GROUPS:
            key = (OTHER_SCOPES, *key[1:])
        tally = self._tallies.setdefault(key, _Tally())
        tally.count += 1
        if len(tally.names) < MAX_NAMES:
            tally.names.append(op.rpartition("/")[2] or op)

    def _guess(self, op: str) -> str:
        """The type that a name was made from ("MatMul_1"), where it is one."""
        last = _NUMBER.sub("", op.rpartition("/")[2])
        return last if last in self.signatures else ""

    def _mark(self, op: str) -> tuple[str, str] | int | None:
        """What the log says of an op: whom it follows, or the failure whose group it is in."""
        if op in self.facts.follows:
            return self.facts.follows[op]
        failures = self.facts.failures
        for index in range(self._known_failures, len(failures)):
            for member in failures[index].members:
                self._members.setdefault(member.op, index)
        self._known_failures = len(failures)
        return self._members.get(op)

    def explanation(self, kernels: KernelChoice) -> LogExplanation:
        """The sum of it all."""
        accelerator = self._accelerator()
        why = LogReasons(self.facts, kernels, accelerator, self.signatures)
        devices: Counter[str] = Counter()
        apart: dict[str, Counter[str]] = {}
        groups: list[LogGroup] = []
        target = DeviceSpec(type=accelerator or "GPU")
        for key, tally in self._tallies.items():
            scope, op_type, device, guessed, mark = key
            kind = self._kind(op_type, device, target)
            if kind != "counts":
                apart.setdefault(kind, Counter())[op_type] += tally.count
                continue
            devices[device] += tally.count
            if Device.parse(device).type not in _HOSTS:
                continue
            reason, certain = why.reason(op_type, mark) if accelerator else (None, False)
            names = tuple(tally.names)
            groups.append(
                LogGroup(scope, op_type, device, tally.count, names, kind, reason, certain, guessed)
            )
        # Scopes that differ only in what marks their ops are told apart by the reason.
        groups.sort(key=lambda g: (-g.count, g.scope, g.type))
        return LogExplanation(
            facts=self.facts,
            kernels=kernels,
            accelerator=accelerator,
            devices=dict(devices.most_common()),
            groups=tuple(groups),
            set_apart={kind: dict(found.most_common()) for kind, found in apart.items()},
            functions=dict(self._functions),
            no_gpu="" if accelerator else self._no_gpu(),
            failures=tuple((f, why.failure(f)) for f in self.facts.failures),
            notes=tuple(self._notes(apart)),
        )

    def _kind(self, op_type: str, device: str, target: DeviceSpec) -> Class:
        """The class of an op of which only the type is known, and maybe not even that."""
        placement = Placement(op_type, op_type or None, Device.parse(device))
        return classify(placement, self.signatures.get(op_type), target).kind

    def _accelerator(self) -> str | None:
        if self._types["GPU"] or self.facts.gpus:
            return "GPU"
        others = [t for t, _ in self._types.most_common() if t not in _HOSTS]
        if others:
            return others[0]
        for failure in self.facts.failures:
            if any("GPU" in devices for _, devices in failure.types):
                return "GPU"
            if any(
                name.upper().rpartition("/")[2].startswith(("DEVICE:GPU", "GPU"))
                for name in failure.available
            ):
                return "GPU"
        return None

    def _no_gpu(self) -> str:
        causes = list(self.facts.causes)
        if causes:
            return f"the program had no GPU: {'; '.join(causes[:3])}"
        if any(f.problem == "no-device" and f.available for f in self.facts.failures):
            return "the program had no GPU: an error in the log lists its devices"
        if self.facts.no_devices:
            return 'the program had no GPU: its Session says "no known devices"'
        if any(t.startswith("XLA_GPU") for t in self._types):
            return "the program had no GPU, only XLA_GPU: CUDA's libraries did not load"
        return (
            "nothing in the log names a GPU: either the program had none, or what it said about "
            "its devices is not in the log"
        )

    def _notes(self, apart: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
        if self._untyped:
            yield (
                "the log names no op types, as TensorFlow did before 0.12: those shown with a ? "
                "are read from the ops' names"
            )
        host = apart.get("host", {})
        if any(op_type.endswith(("Dataset", "DatasetV2")) for op_type in host):
            yield (
                "the functions of a tf.data pipeline (map, filter) are in a log like any other "
                "operation, and always on the CPU: they belong there"
            )
        if self._functions and not self._tallies:
            yield (
                "functions were called, but none of their operations is in the log: XLA compiled "
                "them, or they were first called before logging began"
            )
        elif self.facts.compiled:
            yield "XLA compiled functions in this program; their operations are not in the log"
        if self.facts.follows:
            shown = [
                f"{op} follows {other} on {device}"
                for op, (other, device) in list(self.facts.follows.items())[:3]
            ]
            more = ", …" if len(self.facts.follows) > 3 else ""
            yield f"TensorFlow ignored what tf.device asked for: {', '.join(shown)}{more}"
        if self.facts.lost_failures:
            yield f"{self.facts.lost_failures} more messages about what could not be placed"
