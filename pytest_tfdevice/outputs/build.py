"""What was watched of a test → its report, where the test ran."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

from pytest_tfdevice.baseline.entries import observe
from pytest_tfdevice.gate.checks import Compared
from pytest_tfdevice.gate.collected import node_id
from pytest_tfdevice.kernels.current import gpu_kernels
from pytest_tfdevice.limits import LimitVerdict
from pytest_tfdevice.memory import MemoryVerdict
from pytest_tfdevice.model import DeviceSpec, Placement, Record, SourceLine
from pytest_tfdevice.outputs.paths import Shortener
from pytest_tfdevice.patterns import Rule
from pytest_tfdevice.results import TestResult
from pytest_tfdevice.rules import judge
from pytest_tfdevice.serial.run_report import (
    BaselineCheck,
    Check,
    Judgement,
    RunReport,
    TestReport,
    Transfers,
)
from pytest_tfdevice.testwatch import Watched
from pytest_tfdevice.verdict import Verdict
from pytest_tfdevice.versions import own_version


@dataclass(frozen=True)
class Seen:
    """What a test ran, and all that was said of it.

    ``verdicts`` are those of its rules, ``plain`` one of a rule without arguments where it has
    none.  ``result`` is what came of it in the end: ops that could not be placed are counted in
    it.  ``text`` is the failure report.
    """

    record: Record
    result: TestResult
    verdicts: tuple[Verdict, ...] = ()
    plain: tuple[Verdict, ...] = ()
    limits: tuple[LimitVerdict, ...] = ()
    compared: tuple[Compared, ...] = ()
    text: str = ""


def watched(
    item: pytest.Item,
    target: str,
    found: Watched,
    result: TestResult,
    compared: Sequence[Compared],
) -> Seen:
    """What a watched test ran."""
    plain = () if found.verdicts else (_plain(item, found.record, target),)
    return Seen(found.record, result, found.verdicts, plain, found.limits, tuple(compared))


def compared_only(item: pytest.Item, compared: Sequence[Compared]) -> Seen:
    """What a test ran that compared records of its own with their baselines."""
    records = [one.record for one in compared]
    everything = replace(
        records[0],
        placements=tuple(p for record in records for p in record.placements),
        notes=tuple(dict.fromkeys(note for record in records for note in record.notes)),
    )
    result = replace(TestResult.of(node_id(item), everything, ()), outcome="passed")
    plain = tuple(one.verdict for one in compared)
    return Seen(everything, result, plain=plain, compared=tuple(compared))


def report_of(item: pytest.Item, seen: Seen, pytest_outcome: str) -> RunReport:
    """A run of one test, to be joined with the others."""
    short = Shortener(item.config.rootpath)
    record, result = seen.record, seen.result
    verdicts = seen.verdicts or seen.plain
    judgements, judged = _judgements(record, verdicts, short)
    said = [judgements[number] for number in judged]
    main = next((v for v in verdicts if not v.passed), verdicts[0])
    baselines = tuple(map(_baseline, seen.compared))
    outcome = result.outcome
    if outcome in ("passed", "watched") and not all(check.passed for check in baselines):
        outcome = "failed"
    refused = result.counting - sum(verdict.counting for verdict in seen.verdicts)
    report = TestReport(
        nodeid=node_id(item),
        outcome=outcome,
        pytest_outcome=pytest_outcome,
        summary=short.text(result.summary or main.summary),
        text=short.text(seen.text),
        source=place_of(item),
        target=str(main.rule.target),
        counting=sum(one.counts for one in said) + refused,
        on_target=sum(one.counts and one.on_target for one in said),
        devices=MappingProxyType(dict(result.devices)),
        operations=observe(_unbent(item, record, main)).operations,
        placements=tuple(map(short.placement, record.placements)),
        judgements=judgements,
        judged=judged,
        checks=tuple(_checks(seen, short)),
        baselines=baselines,
        memory=MappingProxyType({str(m.device): m.peak for m in record.memory}),
        gpu_memory=record.memory,
        transfers=_transfers(result),
        crossings=tuple(map(short.transfer, record.transfers)),
        problems=short.texts(result.problems),
        notes=short.texts(_notes(seen)),
    )
    return replace(empty(), tensorflow=record.tensorflow, devices=record.devices, tests=(report,))


def broken(item: pytest.Item, why: str, pytest_outcome: str) -> RunReport:
    """A test of which nothing can be said, and nobody may take for one that passed."""
    summary = Shortener(item.config.rootpath).text(why)
    report = TestReport(node_id(item), "error", pytest_outcome, summary, source=place_of(item))
    return replace(empty(), tests=(report,))


def empty() -> RunReport:
    """A run without a test, on this Python."""
    return RunReport(python=platform.python_version(), plugin=own_version())


def place_of(item: pytest.Item) -> SourceLine | None:
    """Where a test is defined, from the root of the run."""
    file, line, name = item.location
    return SourceLine(file, line + 1, name) if line is not None else None


def without_the_rest(report: RunReport) -> RunReport:
    """Only the placements that offend: what a summary needs."""
    return replace(report, tests=tuple(map(_offending, report.tests)))


def _offending(test: TestReport) -> TestReport:
    rows = [
        (placement, number)
        for placement, number in zip(test.placements, test.judged, strict=False)
        if test.judgements[number].offends
    ]
    return replace(
        test,
        operations=(),
        crossings=(),
        placements=tuple(placement for placement, _ in rows),
        judged=tuple(number for _, number in rows),
    )


def _plain(item: pytest.Item, record: Record, target: str) -> Verdict:
    """What a rule without arguments says."""
    kernels = gpu_kernels() if record.tensorflow else None

    def classify(placement: Placement) -> Any:
        return item.ihook.pytest_tfdevice_classify(placement=placement)

    return judge(record, Rule(DeviceSpec.parse(target), marker=""), kernels, classify)


def _unbent(item: pytest.Item, record: Record, verdict: Verdict) -> Verdict:
    """The same as baselines keep: ``allow`` and ``strict`` make no difference to them."""
    if not verdict.rule.allow and not verdict.rule.strict:
        return verdict
    return _plain(item, record, str(verdict.rule.target))


def _judgements(
    record: Record, verdicts: Sequence[Verdict], short: Shortener
) -> tuple[tuple[Judgement, ...], tuple[int, ...]]:
    """The different judgements, and for each placement the number of its own: of several rules,
    that of the one that says most against it."""
    found: dict[int, Judgement] = {}
    for verdict in verdicts:
        reasons = {id(o.placement): o.reason for o in verdict.offenders}
        excused = {id(a.placement): a for a in verdict.allowed}
        for one in verdict.judged:
            key = id(one.placement)
            allowed = excused.get(key)
            reason = allowed.reason if allowed is not None else reasons.get(key)
            judgement = Judgement(
                one.kind,
                one.why,
                one.counts,
                one.on_target,
                str(allowed.pattern) if allowed is not None else "",
                short.reason(reason) if reason is not None else None,
            )
            if key not in found or _weight(judgement) > _weight(found[key]):
                found[key] = judgement
    numbers: dict[Judgement, int] = {}
    judged = tuple(numbers.setdefault(found[id(p)], len(numbers)) for p in record.placements)
    return tuple(numbers), judged


def _weight(judgement: Judgement) -> tuple[bool, bool]:
    return judgement.offends, judgement.counts


def _checks(seen: Seen, short: Shortener) -> Iterable[Check]:
    for verdict in seen.verdicts:
        text = short.text(verdict.summary)
        yield Check("placement", verdict.rule.marker, verdict.outcome, text)
    for limit in seen.limits:
        text = short.text(limit.summary)
        if isinstance(limit, MemoryVerdict):
            yield Check("memory", limit.limit.marker, limit.outcome, text)
        else:
            yield Check("transfers", limit.limit.marker, limit.outcome, text)


def _baseline(one: Compared) -> BaselineCheck:
    return BaselineCheck(one.action, one.file, one.test, one.environment, one.changes)


def _notes(seen: Seen) -> tuple[str, ...]:
    notes = (note for verdict in seen.verdicts for note in verdict.notes)
    return tuple(dict.fromkeys([*notes, *seen.record.notes]))  # the record's come with verdicts


def _transfers(result: TestResult) -> Transfers | None:
    if result.transfers is None:
        return None
    return Transfers(result.transfers, result.transfer_bytes)
