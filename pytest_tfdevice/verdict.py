"""What a rule says of a record, and the one line that sums it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pytest_tfdevice.classify import Class
from pytest_tfdevice.model import Placement
from pytest_tfdevice.patterns import Pattern, Rule
from pytest_tfdevice.reason import Reason

Outcome = Literal["passed", "failed", "error"]


@dataclass(frozen=True, slots=True)
class Judged:
    """A placement as the rule sees it.

    ``counts``: it is among what must be on the target (an allowed one no longer is).
    """

    placement: Placement
    kind: Class
    why: str
    counts: bool
    on_target: bool


@dataclass(frozen=True, slots=True)
class Offender:
    """An operation that counts and isn't where it must be."""

    placement: Placement
    kind: Class
    why: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Allowed:
    """An operation off its device that a pattern excuses."""

    placement: Placement
    pattern: Pattern
    reason: Reason


@dataclass(frozen=True, slots=True)
class MissingOp:
    """A pattern of ``ops=`` that isn't met: never ``seen``, or on ``elsewhere`` only."""

    pattern: Pattern
    seen: int = 0
    elsewhere: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.seen:
            return f"{self.pattern} was not seen"
        return f"{self.pattern} was seen on {', '.join(self.elsewhere)} only"


@dataclass(frozen=True)
class Verdict:
    """What ``rule`` says of a record.

    Attributes:
        counting: how many operations count, allowed ones left out.
        on_target: how many of them are on the target.
        offenders: the others, in order of first appearance, those of unknown device included.
        allowed: what ``allow=`` excused.
        framework: what TensorFlow or Keras put on the CPU on purpose; listed, not counted.
        in_name_only: on the target, with every tensor in host memory; offenders under ``strict``.
        unused_allow: patterns of ``allow=`` that excused nothing.
        missing_ops: patterns of ``ops=`` that aren't met.
        notes: remarks that change no verdict.
        problems: why nothing can be said, or not all.  With a problem nothing passes.
        judged: every placement with its class.
    """

    rule: Rule
    counting: int = 0
    on_target: int = 0
    offenders: tuple[Offender, ...] = ()
    allowed: tuple[Allowed, ...] = ()
    framework: tuple[Placement, ...] = ()
    in_name_only: tuple[Placement, ...] = ()
    unused_allow: tuple[Pattern, ...] = ()
    missing_ops: tuple[MissingOp, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    judged: tuple[Judged, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Share of what counts that is on the target, 0 to 1; None where nothing counts."""
        return self.on_target / self.counting if self.counting else None

    @property
    def outcome(self) -> Outcome:
        """``failed`` where an operation is known to be elsewhere, else ``error`` with a problem."""
        if self.missing_ops or self._too_many_elsewhere:
            return "failed"
        return "error" if self.problems else "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def _too_many_elsewhere(self) -> bool:
        """Operations of unknown device don't fail a test; they keep it from passing."""
        known = [o for o in self.offenders if o.placement.device is not None]
        if self.rule.min_ratio is None or not self.counting:
            return bool(known)
        return (self.counting - len(known)) / self.counting < self.rule.min_ratio

    @property
    def summary(self) -> str:
        """One line: the count, the share, and what else is wrong."""
        parts = [self._count(), *(str(missing) for missing in self.missing_ops)]
        if not self.offenders:
            parts = [*parts[1:], parts[0]]  # what the test fails for comes first
        if self.outcome == "error":
            parts.extend(self.problems)
        return "; ".join(part for part in parts if part)

    def _count(self) -> str:
        off = len(self.offenders)
        if not self.judged and self.problems:
            return ""
        if not self.counting:
            return "nothing that counts ran"
        if not off:
            if self.counting == 1:
                return f"the one operation that counts ran on {self._where()}"
            return f"all {self.counting} operations that count ran on {self._where()}"
        verb = "counts" if self.counting == 1 else "count"
        noun = "operation" if self.counting == 1 else "operations"
        share = _percent(self.ratio or 0.0)
        line = (
            f"{off} of {self.counting} {noun} that {verb} {self._elsewhere()}; "
            f"{share} of what counts was on {self._where()}"
        )
        if self.rule.min_ratio is not None:
            line += f", {_percent(self.rule.min_ratio)} is wanted"
        return line

    def _elsewhere(self) -> str:
        """Where the offenders are: "ran on the CPU"."""
        devices = [offender.placement.device for offender in self.offenders]
        known = {device for device in devices if device is not None}
        if len(known) == 0:
            return "ran on a device that isn't known"
        if any(self.rule.target.matches(device) for device in known):
            return f"ran elsewhere, or on {self._where()} in name only"
        if None in devices:
            return f"aren't known to have run on {self._where()}"
        if len(known) > 1:
            return f"ran on {', '.join(sorted(device.short for device in known))}"
        device = known.pop()
        return "ran on the CPU" if device.short == "CPU:0" else f"ran on {device.short}"

    def _where(self) -> str:
        """The target; the very device, where all that are on it are on the same."""
        found = {j.placement.device for j in self.judged if j.counts and j.on_target} - {None}
        if len(found) == 1:
            return str(found.pop())
        return str(self.rule.target)


def _percent(share: float) -> str:
    """``99.3 %``; never rounded up to 100 nor down to 0."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    tenths = min(max(round(share * 1000), 1), 999)
    return f"{tenths / 10:g} %"
