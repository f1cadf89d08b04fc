"""What a run remembers of each watched test: small enough to travel from worker to controller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tfdevice.gate.checks import Compared
    from pytest_tfdevice.limits import LimitVerdict
    from pytest_tfdevice.model import Record
    from pytest_tfdevice.verdict import Verdict

LOST = "tfdevice_lost"
"""Attribute of pytest's report of a test whose process died, and with it what was watched."""


@dataclass(frozen=True)
class TestResult:
    """One watched test.

    Attributes:
        nodeid: the test.
        outcome: ``passed``, ``failed``, ``error``, ``expected`` for a failure that a test marked
            ``xfail`` owes, or ``watched`` where nothing judged it.
        devices: how many ops were seen on each device, by short name.
        counting, on_target: of what counts, all and those on the target; over all verdicts.
        summary: the conclusion of the first verdict that isn't a pass, else of the first.
        tensorflow: version.
        simulated: True where the GPUs were simulated.
        problems: what the capture could not see.
        used_allow, unused_allow: patterns of ``allow`` that excused something here, or nothing.
        notes: how many remarks there are that changed no verdict.
        left: True where what counts left its device.
        over: True where a limit on memory or transfers was exceeded.
        peak: the most bytes held at once on a GPU, the fullest of them; None where none was
            measured.  ``taken``: without what was there before.
        transfers, transfer_bytes: tensors that crossed between host and GPUs in a step, those of
            one element aside, and their bytes as far as known; None where they weren't watched.
        graphs: how many were written for TensorBoard.
        graphs_lost: a sentence where some were not; empty where all were.
    """

    __test__ = False  # no test class, although pytest would collect the name

    nodeid: str
    outcome: str
    devices: Mapping[str, int]
    counting: int = 0
    on_target: int = 0
    summary: str = ""
    tensorflow: str = ""
    simulated: bool = False
    problems: tuple[str, ...] = ()
    used_allow: tuple[str, ...] = ()
    unused_allow: tuple[str, ...] = ()
    notes: int = 0
    left: bool = False
    over: bool = False
    peak: int | None = None
    taken: int = 0
    transfers: int | None = None
    transfer_bytes: int = 0
    graphs: int = 0
    graphs_lost: str = ""

    @classmethod
    def of(
        cls,
        nodeid: str,
        record: Record,
        verdicts: Sequence[Verdict],
        limits: Sequence[LimitVerdict] = (),
        notes: int = 0,
    ) -> TestResult:
        """Sums a record, its verdicts and its limits up; ``notes`` are remarks beside theirs."""
        everything: list[Verdict | LimitVerdict] = [*verdicts, *limits]
        worst = next((v for v in everything if not v.passed), next(iter(everything), None))
        outcomes = {v.outcome for v in everything}
        outcome = next((o for o in ("failed", "error", "passed") if o in outcomes), "watched")
        patterns = {p for v in verdicts for p in v.rule.allow}
        unused = {
            p
            for p in patterns
            if all(p in v.unused_allow or p not in v.rule.allow for v in verdicts)
        }
        return cls(
            nodeid=nodeid,
            outcome=outcome,
            devices=dict(Counter(str(p.device) for p in record.placements)),
            counting=sum(v.counting for v in verdicts),
            on_target=sum(v.on_target for v in verdicts),
            summary=worst.summary if worst is not None else "",
            tensorflow=record.tensorflow,
            simulated=record.simulated,
            problems=record.problems,
            used_allow=tuple(sorted(map(str, patterns - unused))),
            unused_allow=tuple(sorted(map(str, unused))),
            notes=notes + (sum(len(v.notes) for v in verdicts) if verdicts else len(record.notes)),
            left=any(v.outcome == "failed" for v in verdicts),
            over=any(v.outcome == "failed" for v in limits),
            **_taken(record),
        )

    def with_baselines(self, compared: list[Compared]) -> TestResult:
        """The result where comparisons with baselines are all that judged the test."""
        if self.outcome != "watched" or not compared:
            return self
        lost = sum(one.lost for one in compared)
        if lost:
            operations = f"{lost} operations are" if lost > 1 else "1 operation is"
            summary = f"{operations} off the device, and not so in the baseline"
            return replace(self, outcome="failed", left=True, summary=summary)
        if any(one.action == "missing" for one in compared):
            return replace(self, outcome="error", summary="there is no baseline to compare it with")
        return replace(self, outcome="passed")

    def to_json(self, xfail: bool = False) -> dict[str, Any]:
        """Plain data, for pytest-xdist; of a test that is marked ``xfail`` or not."""
        expected = xfail and self.outcome in ("failed", "error")
        return asdict(self) | ({"outcome": "expected"} if expected else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TestResult:
        """The inverse of :meth:`to_json`."""
        lists = ("problems", "used_allow", "unused_allow")
        return cls(**{**data, **{name: tuple(data[name]) for name in lists}})


@dataclass(frozen=True)
class RunResults:
    """What a run came to: for ``pytest_tfdevice_report``.

    ``stale_allow``: entries of ``allow`` that excused nothing in the whole run, each with the tests
    that have it, as text.
    """

    tests: tuple[TestResult, ...]
    stale_allow: tuple[str, ...] = ()


def _taken(record: Record) -> dict[str, Any]:
    """What a test took of the GPUs; asked of the record's parts only where there are any."""
    found: dict[str, Any] = {}
    if record.memory:
        fullest = max(record.memory, key=lambda m: m.peak)
        found |= {"peak": fullest.peak, "taken": fullest.taken}
    if record.saw_something:
        from pytest_tfdevice.transfers import TransferLimit, judge_transfers

        verdict = judge_transfers(record.transfers, TransferLimit())
        found |= {"transfers": verdict.count, "transfer_bytes": verdict.nbytes}
    return found
