"""Verdicts and records as plain text, at most 100 columns wide, the conclusion first."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pytest_tfdevice.model import Placement, Record, SourceLine
from pytest_tfdevice.reports.words import count, cut, escape, wrapped
from pytest_tfdevice.verdict import Offender, Verdict

MAX_GROUPS = 12
FOLD_ABOVE = 4
"""More groups than this are folded: a whole model put elsewhere has one cause and many scopes."""
MAX_OPS = 5
MAX_LINES = 3
MAX_NOTES = 8


@dataclass(frozen=True)
class Group:
    """Offenders of one scope, or of several with one cause, that share a device and a reason."""

    scopes: tuple[str, ...]
    device: str
    code: str
    offenders: tuple[Offender, ...]


def failure(verdict: Verdict, record: Record) -> str:
    """Why a test fails: the conclusion, then each group of offenders, then what else to know."""
    return "\n".join([*_wrapped(verdict.summary, "", "  "), *details(verdict, record)])


def remarks(verdict: Verdict) -> str:
    """The conclusion and the notes, for a test that passed."""
    return "\n".join([*_wrapped(verdict.summary, "", "  "), *_notes(verdict)])


def details(verdict: Verdict, record: Record) -> list[str]:
    """All but the conclusion."""
    lines = [f"  judged by {escape(cut(verdict.rule.marker, 60))}; {environment(record)}"]
    for problem in verdict.problems if verdict.outcome != "error" else ():
        lines += _wrapped(f"! {problem}", "  ")
    groups = grouped(verdict.offenders)
    for group in groups[:MAX_GROUPS]:
        lines += ["", *_group(group)]
    rest = groups[MAX_GROUPS:]
    if rest:
        hidden = sum(len(group.offenders) for group in rest)
        lines += ["", f"  … and {count(hidden, 'more operation')} in {count(len(rest), 'group')}"]
    lines += _also(verdict)
    return lines


def grouped(offenders: Iterable[Offender]) -> list[Group]:
    """Offenders by scope, device and reason, the largest group first, causes before effects."""

    def key(offender: Offender) -> tuple[str, str, str]:
        placement = offender.placement
        return _scope(placement), _device(placement), offender.reason.code

    ordered = sorted(offenders, key=key)
    groups = [
        Group((scope,), device, code, tuple(found))
        for (scope, device, code), found in groupby(ordered, key)
    ]
    if len(groups) > FOLD_ABOVE:
        groups = _folded(groups)
    return sorted(groups, key=lambda g: (-len(g.offenders), g.code == "colocated", g.scopes))


def _folded(groups: Iterable[Group]) -> list[Group]:
    """Groups whose offenders have the same evidence become one."""
    found: dict[tuple[str, str, frozenset[str]], list[Group]] = {}
    for group in groups:
        evidence = frozenset(o.reason.evidence for o in group.offenders)
        found.setdefault((group.device, group.code, evidence), []).append(group)
    return [
        Group(
            tuple(scope for group in same for scope in group.scopes),
            device,
            code,
            tuple(offender for group in same for offender in group.offenders),
        )
        for (device, code, _), same in found.items()
    ]


def environment(record: Record) -> str:
    """The TensorFlow and the GPUs of a record: real or simulated."""
    gpus = [info for info in record.devices if info.device.type == "GPU"]
    parts = [f"TensorFlow {record.tensorflow}"] if record.tensorflow else []
    if gpus:
        kind = "simulated GPU" if record.simulated else "GPU"
        parts.append(count(len(gpus), kind))
    elif record.devices:
        parts.append("no GPU")
    return ", ".join(parts)


def table(record: Record, limit: int = 40) -> str:
    """A record for ``print``: how much ran on each device, then op by op."""
    devices = Counter(_device(p) for p in record.placements)
    calls = sum(record.calls.values())
    head = f"{count(len(record), 'operation')} seen"
    if devices:
        head += ": " + ", ".join(f"{n} on {d}" for d, n in devices.most_common())
    if calls:
        head += f"; {count(calls, 'call')} of functions or Sessions"
    lines = [head, *(f"! {escape(problem)}" for problem in record.problems)]
    rows = [
        (_device(p), p.type or "", p.op, str(_at(p.source)) if p.source else "")
        for p in record.placements
    ]
    lines += _columns(("device", "type", "name", "line"), rows[:limit])
    if len(rows) > limit:
        lines.append(f"… and {len(rows) - limit} more")
    return "\n".join(lines)


def _group(group: Group) -> list[str]:
    lines = _wrapped(
        f"{count(len(group.offenders), 'operation')} {_where(group)} on {group.device}: "
        f"{group.code}",
        "  ",
    )
    if len(group.scopes) > 1:
        lines += _wrapped(_some(scope or "(none)" for scope in group.scopes), "    ")
    lines += _wrapped(_names(group.offenders), "    ")
    for evidence in _distinct(o.reason.evidence for o in group.offenders):
        lines += _wrapped(f"why:   {evidence}", "    ", "           ")
    for source in _distinct(
        _created(o.placement) for o in group.offenders if o.placement.source is not None
    ):
        lines += _wrapped(f"line:  {source}", "    ", "           ")
    if all(o.placement.source is None and o.placement.origin == "session" for o in group.offenders):
        lines.append("    line:  not on record: ops of an imported graph (a frozen one) have none")
    for mend in _distinct((o.reason.mend for o in group.offenders), limit=1):
        lines += _wrapped(f"mend:  {mend}", "    ", "           ")
    return lines


def _where(group: Group) -> str:
    if len(group.scopes) > 1:
        return f"in {len(group.scopes)} scopes"
    return f"in {group.scopes[0]}" if group.scopes[0] else "outside any scope"


def _names(offenders: Sequence[Offender]) -> str:
    names = Counter(_name(o.placement) for o in offenders)
    shown = [name if n == 1 else f"{name} ×{n}" for name, n in list(names.items())[:MAX_OPS]]
    if len(names) > MAX_OPS:
        shown.append(f"… {len(names) - MAX_OPS} more")
    return ", ".join(shown)


def _name(placement: Placement) -> str:
    last = placement.op.rpartition("/")[2]
    if placement.is_unit:
        return f"compiled function {placement.unit}"
    if placement.type is None or placement.type == last:
        return cut(last, 60)
    return f"{cut(last, 60)} ({placement.type})"


def _created(placement: Placement) -> str:
    assert placement.source is not None
    inside = f" in {placement.source.function}" if placement.source.function else ""
    return f"{_at(placement.source)}{inside}"


def _at(source: SourceLine) -> str:
    """Relative to the working directory where it is below it."""
    relative = os.path.relpath(source.file) if os.path.isabs(source.file) else source.file
    return f"{source.file if relative.startswith('..') else relative}:{source.line}"


def _also(verdict: Verdict) -> list[str]:
    lines: list[str] = []
    if verdict.allowed:
        patterns = Counter(str(a.pattern) for a in verdict.allowed)
        shown = ", ".join(f"{pattern} ({n})" for pattern, n in patterns.items())
        lines += _wrapped(f"allowed elsewhere: {shown}", "  ")
    if verdict.framework:
        lines += _wrapped(
            f"{count(len(verdict.framework), 'operation')} that TensorFlow or Keras put there by a "
            "tf.device of their own: not counted",
            "  ",
        )
    if verdict.in_name_only and not verdict.rule.strict:  # there they are offenders
        lines += _wrapped(
            f"{count(len(verdict.in_name_only), 'operation')} on {verdict.rule.target} in name "
            f"only, all tensors in host memory: "
            f"{_some(p.type or p.op for p in verdict.in_name_only)}",
            "  ",
        )
    lines += _notes(verdict)
    return ["", *lines] if lines else []


def _notes(verdict: Verdict) -> list[str]:
    lines: list[str] = []
    for note in verdict.notes[:MAX_NOTES]:
        lines += _wrapped(f"note: {note}", "  ")
    if len(verdict.notes) > MAX_NOTES:
        lines.append(f"  … and {count(len(verdict.notes) - MAX_NOTES, 'more note')}")
    return lines


def _some(names: Iterable[str]) -> str:
    found = Counter(names).most_common()
    text = ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in found[:MAX_OPS])
    return text + (", …" if len(found) > MAX_OPS else "")


def _distinct(texts: Iterable[str], limit: int = MAX_LINES) -> list[str]:
    found = list(dict.fromkeys(texts))
    if len(found) > limit > 1:
        return [*found[:limit], f"… {len(found) - limit} more"]
    return found[:limit]


def _scope(placement: Placement) -> str:
    return placement.scope or (placement.function or "" if placement.origin == "function" else "")


def _device(placement: Placement) -> str:
    return str(placement.device) if placement.device is not None else "an unknown device"


def _wrapped(text: str, indent: str, hanging: str | None = None) -> list[str]:
    """Wrapped to the width, with files below the working directory named from there."""
    return wrapped(text.replace(os.path.join(os.getcwd(), ""), ""), indent, hanging)


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns, the widest cut so that a line fits."""
    if not rows:
        return []
    limits: list[Callable[[str], str]] = [
        lambda t: cut(t, 24),
        lambda t: cut(t, 22),
        lambda t: cut(t, 34),
        lambda t: cut(t, 14, keep_end=True),
    ]
    cells = [
        [escape(limit(text)) for limit, text in zip(limits, row, strict=True)]
        for row in [heads, *rows]
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
