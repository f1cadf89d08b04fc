"""What a test took of the GPU, held against its limits: verdicts and the text that says why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tfdevice.memory import MemoryVerdict, full_but_idle, judge_memory
from pytest_tfdevice.model import Record
from pytest_tfdevice.reports.resources import memory_failure, transfer_failure
from pytest_tfdevice.reports.text import environment
from pytest_tfdevice.transfers import TransferVerdict, judge_transfers
from pytest_tfdevice.verdict import Verdict

if TYPE_CHECKING:
    from pytest_tfdevice.marks import Plan

LimitVerdict = MemoryVerdict | TransferVerdict

NOTHING = "nothing ran on TensorFlow while this test was watched"


@dataclass(frozen=True)
class Limits:
    """The verdicts on a test's limits.

    ``idle`` is a sentence where the GPU's memory was full and the work done elsewhere.
    """

    verdicts: tuple[LimitVerdict, ...] = ()
    idle: str | None = None

    @property
    def failures(self) -> tuple[LimitVerdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    def report(self, record: Record) -> list[str]:
        """A text for each limit that was not kept."""
        where = environment(record)
        return [
            memory_failure(verdict, where)
            if isinstance(verdict, MemoryVerdict)
            else transfer_failure(verdict, where)
            for verdict in self.failures
        ]


def judge_limits(record: Record, plan: Plan, verdicts: Sequence[Verdict]) -> Limits:
    """Judges memory and transfers; ``verdicts`` are those on the placements."""
    problems = record.problems if record.saw_something else (*record.problems, NOTHING)
    found: list[LimitVerdict] = [judge_memory(record.memory, limit) for limit in plan.memory]
    found += [judge_transfers(record.transfers, limit, problems) for limit in plan.transfers]
    return Limits(tuple(found), idle_sentence(record, verdicts))


def idle_sentence(record: Record, verdicts: Iterable[Verdict]) -> str | None:
    """The classic case in a sentence, by what the verdicts on GPUs counted."""
    for verdict in verdicts:
        if verdict.rule.target.type == "GPU":
            return full_but_idle(
                record.memory, verdict.on_target, verdict.counting, record.op_times
            )
    return None
