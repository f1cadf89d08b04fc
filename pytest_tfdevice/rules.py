"""A record and a rule → a verdict.

What counts is decided in :mod:`pytest_tfdevice.classify`, why something is elsewhere in
:mod:`pytest_tfdevice.explain`; here they are put together:

- A compiled (XLA) function counts once, on its device.  Its own operations don't count, but they
  are seen, for ``ops=``.  XLA ignores a ``tf.device`` inside; a note says so.
- ``allow=`` excuses operations that are elsewhere; those leave the count and the ratio.
- An operation whose device isn't known is never taken to be on the target, nor to be elsewhere: the
  test can't pass on it.
- Operations are counted as they stand in the record, once each, however often they ran.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from pytest_tfdevice.classify import Classified, classify, refused
from pytest_tfdevice.explain import Explainer
from pytest_tfdevice.kernels.match import Kernels, in_name_only
from pytest_tfdevice.model import Placement, Record
from pytest_tfdevice.patterns import (
    Pattern,
    PatternError,
    Rule,
    RuleError,
    parse_patterns,
)
from pytest_tfdevice.verdict import Allowed, Judged, MissingOp, Offender, Outcome, Verdict

__all__ = [
    "Allowed",
    "ClassifyHook",
    "Judged",
    "MissingOp",
    "Offender",
    "Outcome",
    "Pattern",
    "PatternError",
    "Rule",
    "RuleError",
    "Verdict",
    "judge",
    "parse_patterns",
]

HookAnswer = Literal["counts", "ignored", "host"]
ClassifyHook = Callable[[Placement], HookAnswer | None]
"""``pytest_tfdevice_classify``: its answer goes before the rule's; None leaves it to the rule."""

NOTHING_RAN = "nothing ran on TensorFlow while this test was watched"


def judge(
    record: Record,
    rule: Rule,
    kernels: Kernels | None = None,
    classify_hook: ClassifyHook | None = None,
) -> Verdict:
    """Says whether ``record`` keeps ``rule``.

    ``kernels`` is for the reasons and for what is on a device in name only; without it they are
    ``unknown`` where kernels decide.  What counts, and so the verdict, needs none, unless
    ``allow=`` picks by reason or ``strict`` is set.
    """
    judged, in_doubt = _classify_all(record, rule, classify_hook)
    explainer = Explainer(record, kernels, rule.target)
    hollow = _in_name_only(judged, record, kernels)
    offenders: list[Offender] = []
    allowed: list[Allowed] = []
    used: set[Pattern] = set()
    final: list[Judged] = []
    for entry in judged:
        fails = not entry.on_target or (rule.strict and id(entry.placement) in hollow)
        if not entry.counts or not fails:
            final.append(entry)
            continue
        reason = explainer.reason(entry.placement)
        excuses = [p for p in rule.allow if p.matches(entry.placement, reason.code)]
        used.update(excuses)
        if excuses:
            allowed.append(Allowed(entry.placement, excuses[0], reason))
        else:
            offenders.append(Offender(entry.placement, entry.kind, entry.why, reason))
        counts = not excuses
        final.append(Judged(entry.placement, entry.kind, entry.why, counts, on_target=False))
    counting = sum(entry.counts for entry in final)
    on_target = sum(entry.counts and entry.on_target for entry in final)
    unknown = [o.placement for o in offenders if o.placement.device is None]
    return Verdict(
        rule=rule,
        counting=counting,
        on_target=on_target,
        offenders=tuple(offenders),
        allowed=tuple(allowed),
        framework=tuple(e.placement for e in judged if e.kind == "framework"),
        in_name_only=tuple(e.placement for e in judged if id(e.placement) in hollow),
        unused_allow=tuple(p for p in dict.fromkeys(rule.allow) if p not in used),
        missing_ops=tuple(_missing_ops(record, rule)),
        notes=(*record.notes, *_notes(record, rule, judged, counting, in_doubt)),
        problems=(
            *_problems(record, rule, on_target / max(counting, 1), unknown),
            *_unchecked(final, rule, kernels),
        ),
        judged=tuple(final),
    )


def _classify_all(
    record: Record, rule: Rule, hook: ClassifyHook | None
) -> tuple[list[Judged], list[Placement]]:
    """Every placement with its class; and those left out although something isn't known."""
    judged, in_doubt = [], []
    for placement in record.placements:
        found = _ask(hook, placement)
        if found is None:
            signature = record.signatures.get(placement.type or "")
            found = classify(placement, signature, rule.target)
        inside = placement.origin == "compiled"
        counts = not inside and _counts(found, rule)
        if found.in_doubt and not counts and not inside:
            in_doubt.append(placement)
        on_target = placement.device is not None and rule.target.matches(placement.device)
        judged.append(Judged(placement, found.kind, found.why, counts, on_target))
    return judged, in_doubt


def _ask(hook: ClassifyHook | None, placement: Placement) -> Classified | None:
    answer = hook(placement) if hook is not None else None
    if answer is None:
        return None
    return Classified(answer, "says the hook pytest_tfdevice_classify")


def _counts(found: Classified, rule: Rule) -> bool:
    if rule.strict:
        return found.kind not in {"structural", "ignored"}
    return found.kind == "counts"


def _in_name_only(judged: Iterable[Judged], record: Record, kernels: Kernels | None) -> set[int]:
    """Identities of the placements that are on the target, and count, in name only."""
    return {
        id(entry.placement)
        for entry in judged
        if entry.counts
        and entry.on_target
        and in_name_only(
            entry.placement, record.signatures.get(entry.placement.type or ""), kernels
        )
    }


def _missing_ops(record: Record, rule: Rule) -> Iterator[MissingOp]:
    for pattern in rule.ops:
        seen = [p for p in record.placements if pattern.matches(p)]
        devices = [p.device for p in seen]
        if any(device is not None and rule.target.matches(device) for device in devices):
            continue
        where = dict.fromkeys("an unknown device" if d is None else str(d) for d in devices)
        yield MissingOp(pattern, len(seen), tuple(where))


def _problems(record: Record, rule: Rule, share: float, unknown: list[Placement]) -> Iterator[str]:
    yield from record.problems
    if not record.saw_something:
        yield NOTHING_RAN
    # Where the share is reached even without them, nothing hangs on where they ran.
    if unknown and (rule.min_ratio is None or share < rule.min_ratio):
        names = ", ".join(p.op for p in unknown[:3]) + (", …" if len(unknown) > 3 else "")
        yield f"TensorFlow doesn't tell where {_operations(len(unknown))} ran: {names}"


def _unchecked(judged: Iterable[Judged], rule: Rule, kernels: Kernels | None) -> Iterator[str]:
    """``strict`` promises that nothing is on the device in name only; kernels tell, for graphs."""
    if not rule.strict or kernels is not None or rule.target.type == "CPU":
        return
    if any(e.counts and e.on_target and e.placement.origin != "eager" for e in judged):
        yield (
            f"strict: without a table of this TensorFlow's {rule.target.type or 'GPU'} kernels it "
            "can't be told which operations are there in name only"
        )


def _notes(
    record: Record,
    rule: Rule,
    judged: Iterable[Judged],
    counting: int,
    in_doubt: Iterable[Placement],
) -> Iterator[str]:
    if record.saw_something and not counting:
        yield "nothing that counts ran: only structural nodes, host work and bookkeeping"
    yield from _ignored_requests(record.placements)
    yield from _substituted(rule, judged)
    doubtful = [p for p in in_doubt if p.device is None or not rule.target.matches(p.device)]
    if doubtful:
        yield (
            f"{_operations(len(doubtful))} on integers of unknown rank elsewhere "
            f"{'was' if len(doubtful) == 1 else 'were'} taken for bookkeeping"
        )


def _ignored_requests(placements: Iterable[Placement]) -> Iterator[str]:
    """Requests inside compiled functions for another device than the function's."""
    for placement in placements:
        request, device = placement.request, placement.device
        if placement.origin != "compiled" or request is None or device is None:
            continue
        if request.spec.type is None or request.spec.matches(device):
            continue
        source = request.source or placement.source
        yield (
            f"{placement.op} asks for {request.spec}{f' at {source}' if source else ''}, inside "
            f"the compiled function {placement.unit}: XLA ignores that and runs it on {device}"
        )


def _substituted(rule: Rule, judged: Iterable[Judged]) -> Iterator[str]:
    """Requests for one device of the target's type that were met by another one."""
    met_by = Counter(
        (str(entry.placement.request.spec), str(entry.placement.device))
        for entry in judged
        if entry.counts
        and entry.on_target
        and entry.placement.request is not None
        and refused(entry.placement, rule.target)
    )
    for (wanted, got), count in met_by.items():
        yield f"{_operations(count)} asked for {wanted} and ran on {got}"


def _operations(count: int) -> str:
    return "1 operation" if count == 1 else f"{count} operations"
