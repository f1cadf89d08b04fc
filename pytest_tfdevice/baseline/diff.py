"""Two reports, or two baselines, or one of each → what is different, test by test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_tfdevice.baseline import amounts
from pytest_tfdevice.baseline.amounts import Amount
from pytest_tfdevice.baseline.compare import Change, compare
from pytest_tfdevice.baseline.entries import (
    NO_GPU,
    SIMULATED,
    Entry,
    Environment,
    minor,
)
from pytest_tfdevice.baseline.files import BaselineFile
from pytest_tfdevice.serial import documents
from pytest_tfdevice.serial.documents import FileError
from pytest_tfdevice.serial.run_report import RunReport, TestReport


@dataclass(frozen=True)
class Side:
    """What one file says of a test in one environment; ``report`` where it is a report."""

    entry: Entry
    report: TestReport | None = None


@dataclass(frozen=True)
class TestDiff:
    """What is different for one test.

    ``environment`` is that of the new file; ``before`` that of the old one, where it is another.
    """

    __test__ = False

    test: str
    environment: str
    before: str = ""
    changes: tuple[Change, ...] = ()
    amounts: tuple[Amount, ...] = ()


@dataclass(frozen=True)
class Diff:
    """The difference between two files.

    ``compared`` tells how many tests both have, ``max_growth`` by which share memory and transfers
    may grow (None where they weren't judged).
    """

    tests: tuple[TestDiff, ...] = ()
    compared: int = 0
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())
    max_growth: float | None = None

    @property
    def is_regression(self) -> bool:
        """True where an operation that counts left its device, or is new and off it, or where
        memory or transfers grew by more than is allowed."""
        return any(
            any(change.is_regression for change in test.changes)
            or any(amount.is_regression for amount in test.amounts)
            for test in self.tests
        )


Sides = Mapping[str, Mapping[str, Side]]


def read(path: str) -> Sides:
    """What a report or a baseline says: by test, by environment.

    Raises:
        FileError: it is neither, or can't be read.
    """
    data = documents.read(path)
    kind = documents.kind_of(data)
    if kind == "report":
        return _of_report(RunReport.from_json(data, path))
    if kind == "baseline":
        text = Path(path).read_text(encoding="utf-8-sig")
        return _of_baseline(BaselineFile.from_json(data, path, text))
    raise FileError(f"{path}: neither a report nor a baseline of pytest-tfdevice")


def diff(old: Sides, new: Sides, max_growth: float | None = None) -> Diff:
    """What is different in ``new``.

    Memory and transfers are judged by ``max_growth``, a share, between runs of one environment:
    what another GPU or TensorFlow takes says nothing of the model.
    """
    old, new = _same_names(old, new)
    tests: list[TestDiff] = []
    compared = 0
    notes: list[str] = []
    for test in sorted(set(old) & set(new)):
        pairs = list(_pairs(old[test], new[test]))
        compared += bool(pairs)
        if not pairs:
            notes.append(
                f"{test} was not compared: {', '.join(sorted(old[test]))} before, "
                f"{', '.join(sorted(new[test]))} now"
            )
        for before, after in pairs:
            was, now = old[test][before], new[test][after]
            changes = compare(was.entry, now.entry)
            figures = tuple(_amounts(was, now, max_growth if before == after else None))
            if changes or figures:
                same = "" if before == after else before
                tests.append(TestDiff(test, after, same, changes, figures))
    return Diff(
        tuple(tests),
        compared,
        tuple(sorted(set(old) - set(new))),
        tuple(sorted(set(new) - set(old))),
        tuple(notes),
        max_growth,
    )


def to_json(found: Diff) -> dict[str, Any]:
    """Plain data."""
    from pytest_tfdevice.serial.codec import Codec

    encoded: dict[str, Any] = Codec().encode(found)
    return {
        **documents.envelope("diff", 1),
        "regression": found.is_regression,
        **encoded,
    }


def _of_report(report: RunReport) -> Sides:
    gpus = {info.description or "GPU" for info in report.devices if info.device.type == "GPU"}
    device = SIMULATED if report.simulated else " + ".join(sorted(gpus)) or NO_GPU
    environment = Environment(device, minor(report.tensorflow)).key
    return {
        test.nodeid: {environment: Side(Entry(test.operations, test.target), test)}
        for test in report.tests
    }


def _of_baseline(stored: BaselineFile) -> Sides:
    return {
        test: {key: Side(entry) for key, entry in found.items()}
        for test, found in stored.tests.items()
    }


def _same_names(old: Sides, new: Sides) -> tuple[Sides, Sides]:
    """A report names tests with their module, a baseline without: without it, where only one has
    it and nothing is lost by that."""
    with_module = [all("::" in test and ".py" in test for test in side) for side in (old, new)]
    if with_module[0] == with_module[1]:
        return old, new
    shortened = []
    for side, long in zip((old, new), with_module, strict=True):
        short = {test.partition("::")[2]: found for test, found in side.items()} if long else side
        if len(short) != len(side):
            return old, new
        shortened.append(short)
    return shortened[0], shortened[1]


def _pairs(old: Mapping[str, Side], new: Mapping[str, Side]) -> list[tuple[str, str]]:
    """The environments to compare: those that both have, else the one that each has."""
    common = sorted(set(old) & set(new))
    if common:
        return [(key, key) for key in common]
    if len(old) == len(new) == 1:
        return [(next(iter(old)), next(iter(new)))]
    return []


def _amounts(old: Side, new: Side, max_growth: float | None) -> list[Amount]:
    """Memory and transfers, where both files have them; None doesn't judge them."""
    if old.report is None or new.report is None:
        return []
    found = amounts.changed(old.report, new.report)
    return found if max_growth is None else [amounts.judged(one, max_growth) for one in found]
