"""What moved since a baseline was recorded, as plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pytest_tfdevice.baseline.compare import Change
from pytest_tfdevice.baseline.entries import offending
from pytest_tfdevice.reports.words import count, cut, escape, wrapped
from pytest_tfdevice.verdict import Offender, Verdict

MAX_CHANGES = 12
MAX_REMARKS = 6
MAX_NAMES = 5


def failure(changes: Sequence[Change], verdict: Verdict, what: str, command: str) -> str:
    """Why a test fails its baseline, the conclusion first; ``what`` names the baseline."""
    bad = [change for change in changes if change.is_regression]
    lines = [*wrapped(f"{conclusion(bad)} since the baseline was recorded", "")]
    lines += wrapped(what, "  ")
    for change in bad[:MAX_CHANGES]:
        lines += ["", *wrapped(line(change), "  "), *_evidence(change, verdict)]
    if len(bad) > MAX_CHANGES:
        lines += ["", f"  … and {count(len(bad) - MAX_CHANGES, 'more change')}"]
    others = _others([change for change in changes if not change.is_regression])
    if others:
        lines += ["", *(text for other in others for text in wrapped(other, "  "))]
    return "\n".join([*lines, "", "  if that is meant, record it:", f"    {escape(command)}"])


def missing(what: str, others: Sequence[str], command: Callable[[str], str]) -> str:
    """Why a test without a baseline fails in CI."""
    lines = wrapped(f"there is no {what}", "")
    if others:
        lines += wrapped(f"it is there for {'; '.join(others)}", "  ")
    lines += ["  in CI none is created; record it and commit the file:"]
    return "\n".join([*lines, f"    {escape(command('create'))}"])


def remarks(changes: Sequence[Change], test: str, command: str) -> list[str]:
    """What the end of the run says of a test that passed: improvements, new and vanished ones."""
    others = _others(changes)
    if not others:
        return []
    lines = [test, *(f"  {other}" for other in others)]
    if any(change.kind == "gained" for change in changes):
        lines.append(f"  record the improvement: {command}")
    return lines


def conclusion(bad: Sequence[Change]) -> str:
    """``2 operations that count left GPU:0; 1 new operation is off it``."""
    lost = [change for change in bad if change.kind == "lost"]
    new = [change for change in bad if change.kind == "new-off"]
    parts = []
    if lost:
        total = sum(change.count for change in lost)
        verb = "counts" if total == 1 else "count"
        left = ", ".join(sorted({change.before for change in lost}))
        parts.append(f"{count(total, 'operation')} that {verb} left {left}")
    if new:
        total = sum(change.count for change in new)
        where = ", ".join(sorted({change.after for change in new}))
        parts.append(
            f"{total} more {'operation is' if total == 1 else 'operations are'} on {where}"
        )
    return "; ".join(parts)


def line(change: Change) -> str:
    """``decoder/dense: MatMul ×2 GPU:0 → CPU:0: dtype``."""
    what = f"{change.scope or '(no scope)'}: {change.type}"
    if change.count > 1:
        what += f" ×{change.count}"
    if change.before and change.after:
        what += f"  {change.before} → {change.after}"
    elif change.after:
        what += f"  new on {change.after}"
    else:
        what += f"  gone from {change.before}"
    return f"{what}: {change.reason}" if change.reason else what


def _evidence(change: Change, verdict: Verdict) -> list[str]:
    placements = {id(p) for p in offending(verdict, change.scope, change.type, change.after)}
    offenders = [o for o in verdict.offenders if id(o.placement) in placements]
    lines = wrapped(f"ops:   {_names(offenders)}", "    ", "           ") if offenders else []
    for label, texts in (
        ("why:  ", (o.reason.evidence for o in offenders)),
        ("line: ", (str(o.placement.source) for o in offenders if o.placement.source)),
        ("mend: ", (o.reason.mend for o in offenders)),
    ):
        for text in list(dict.fromkeys(texts))[:1]:
            lines += wrapped(f"{label} {text}", "    ", "           ")
    return lines


def _names(offenders: Iterable[Offender]) -> str:
    names = list(dict.fromkeys(cut(o.placement.path, 60) for o in offenders))
    more = f", … {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _others(changes: Sequence[Change]) -> list[str]:
    """A line for each kind of change that fails nothing."""
    titles = (
        ("gained", "came to the device"),
        ("moved", "moved"),
        ("new", "new"),
        ("gone", "gone"),
    )
    found = []
    for kind, title in titles:
        some = [change for change in changes if change.kind == kind]
        if some:
            shown = "; ".join(cut(line(change), 120) for change in some[:MAX_REMARKS])
            more = f"; … {len(some) - MAX_REMARKS} more" if len(some) > MAX_REMARKS else ""
            found.append(f"{title}: {shown}{more}")
    return found
