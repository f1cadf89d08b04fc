"""A run → what there is to complain of, each with the line of code that it is about.

What annotations and SARIF show: offenders of one line, device and reason are one finding, however
many tests run that line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from pytest_tfdevice.baseline import entries
from pytest_tfdevice.baseline.compare import Change
from pytest_tfdevice.baseline.names import scope_of, type_of
from pytest_tfdevice.model import Placement, SourceLine
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.reports.changes import conclusion, line
from pytest_tfdevice.reports.words import count, cut, escape
from pytest_tfdevice.serial.run_report import RunReport, TestReport

Level = Literal["error", "note"]
"""``error``: a test fails for it; ``note``: none does."""

MAX_TYPES = 4
MAX_NAME = 80
MAX_TEXT = 500
MAX_TESTS = 3
MAX_CHANGES = 5


@dataclass(frozen=True)
class Finding:
    """One thing to complain of.

    Attributes:
        rule: the reason's code, or one of ``OTHER_RULES`` in ``rule_texts``.
        title, details: what is wrong in a line; why, and how to mend it.
        source: the line that it is about; of an op that has none, that of the test.
        is_own: ``source`` is the op's.
        tests: node ids.
        types: op types, sorted; part of what tells a finding from another.
        device: where the ops are.
    """

    rule: str
    level: Level
    title: str
    details: tuple[str, ...]
    source: SourceLine | None
    is_own: bool
    tests: tuple[str, ...]
    types: tuple[str, ...] = ()
    device: str = ""

    @property
    def where(self) -> str:
        """``in test_a, test_b and 3 more tests``."""
        shown = ", ".join(cut(escape(test), MAX_NAME * 2) for test in self.tests[:MAX_TESTS])
        more = len(self.tests) - MAX_TESTS
        return f"in {shown}" + (f" and {count(more, 'more test')}" if more > 0 else "")


@dataclass(frozen=True)
class Offence:
    """Offenders of one line, device and reason; ``reason`` is that of the first."""

    source: SourceLine | None
    device: str
    reason: Reason
    placements: tuple[Placement, ...]

    @property
    def types(self) -> Counter[str]:
        """How many there are of each type."""
        return Counter(name_of(placement) for placement in self.placements)

    @property
    def names(self) -> str:
        """``MatMul ×3, Relu``."""
        some = self.types.most_common(MAX_TYPES)
        shown = [f"{name} ×{n}" if n > 1 else name for name, n in some]
        more = len(self.types) - len(some)
        return ", ".join(shown) + (f" and {count(more, 'more type')}" if more > 0 else "")


def findings(report: RunReport) -> list[Finding]:
    """Errors first, in each the ones of most operations first."""
    merged: dict[tuple[object, ...], Finding] = {}
    weights: Counter[tuple[object, ...]] = Counter()
    for test in report.tests:
        for weight, found in _of_test(test):
            tests = () if found.is_own else found.tests
            key = (found.rule, found.source, found.is_own, found.device, found.types, tests)
            weights[key] += weight
            known = merged.get(key)
            merged[key] = found if known is None else _both(known, found)
    order = sorted(merged, key=lambda key: (merged[key].level != "error", -weights[key]))
    return [merged[key] for key in order]


def offences(test: TestReport) -> list[Offence]:
    """The offenders of a test, the largest group first, causes before effects."""
    groups: dict[tuple[object, ...], list[tuple[Placement, Reason]]] = {}
    for placement, reason in test.offenders():
        key = (placement.source, device_of(placement), reason.code)
        groups.setdefault(key, []).append((placement, reason))
    found = [
        Offence(
            rows[0][0].source, device_of(rows[0][0]), rows[0][1], tuple(place for place, _ in rows)
        )
        for rows in groups.values()
    ]
    return sorted(found, key=lambda o: (-len(o.placements), o.reason.code == "colocated"))


def device_of(placement: Placement) -> str:
    """``CPU:0``."""
    return str(placement.device) if placement.device is not None else "an unknown device"


def name_of(placement: Placement) -> str:
    """The op's type, else its name; never long, never with control characters."""
    if placement.is_unit:
        return f"compiled function {cut(escape(placement.unit or ''), MAX_NAME)}"
    return cut(escape(placement.type or placement.op), MAX_NAME)


def said(text: str) -> str:
    """A text of which parts are anybody's: on one line, bounded."""
    return cut(escape(text), MAX_TEXT)


def _of_test(test: TestReport) -> Iterator[tuple[int, Finding]]:
    level: Level = "error" if test.outcome in ("failed", "error") else "note"
    fails = any(c.kind == "placement" and c.outcome == "failed" for c in test.checks)
    for offence in offences(test):
        yield (
            len(offence.placements),
            _offending(test, offence, level if fails else "note"),
        )
    if level == "error":
        yield from ((0, found) for found in _others(test))


def _offending(test: TestReport, offence: Offence, level: Level) -> Finding:
    reason = offence.reason
    code = reason.code if reason.root == reason.code else f"{reason.code}, {reason.root}"
    verb = "is" if sum(offence.types.values()) == 1 else "are"
    return Finding(
        rule=reason.code,
        level=level,
        title=f"{offence.names} {verb} on {offence.device}, not on {test.target}: {code}",
        details=(said(reason.evidence), f"mend: {said(reason.mend)}"),
        source=offence.source or test.source,
        is_own=offence.source is not None,
        tests=(test.nodeid,),
        types=tuple(sorted(offence.types)),
        device=offence.device,
    )


def _others(test: TestReport) -> Iterator[Finding]:
    """What a test fails for that is no single operation."""
    here = Finding("", "error", "", (), test.source, False, (test.nodeid,))
    own = False
    for check in test.checks:
        if check.outcome == "failed" and check.kind != "placement":
            rule = "memory-limit" if check.kind == "memory" else "transfer-limit"
            yield replace(here, rule=rule, title=said(check.summary), details=(said(check.marker),))
            own = True
        elif check.outcome == "failed" and not any(True for _ in test.offenders()):
            yield replace(
                here, rule="not-seen", title=said(check.summary), details=(said(check.marker),)
            )
            own = True
    for baseline in test.baselines:
        if baseline.passed:
            continue
        bad = [change for change in baseline.changes if change.is_regression]
        title = f"there is no baseline {baseline.file}, {baseline.test}, {baseline.environment}"
        if bad:
            title = f"{conclusion(bad)} since the baseline was recorded"
        source = next(filter(None, (_source_of(change, test) for change in bad)), None)
        yield replace(
            here,
            rule="baseline",
            title=said(title),
            details=tuple(said(line(change)) for change in bad[:MAX_CHANGES]) or (),
            source=source or test.source,
            is_own=source is not None,
        )
        own = True
    if test.outcome == "error":
        details = tuple(map(said, test.problems))
        yield replace(here, rule="not-judged", title=said(test.summary), details=details)
    elif not own and not any(True for _ in test.offenders()):
        yield replace(here, rule="not-placed", title=said(test.summary))


def _source_of(change: Change, test: TestReport) -> SourceLine | None:
    """A line of the ops that moved."""
    for placement, _ in test.offenders():
        moved = (scope_of(placement), type_of(placement), entries.device_of(placement))
        if moved == (change.scope, change.type, change.after) and placement.source is not None:
            return placement.source
    return None


def _both(known: Finding, found: Finding) -> Finding:
    level = "error" if "error" in (known.level, found.level) else known.level
    tests = tuple(dict.fromkeys([*known.tests, *found.tests]))
    title = found.title if found.level == "error" and known.level != "error" else known.title
    return replace(known, level=level, tests=tests, title=title)


def worth_telling(found: Iterable[Finding]) -> list[Finding]:
    """Those that a test fails for."""
    return [one for one in found if one.level == "error"]
