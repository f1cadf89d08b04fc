"""What a run leaves behind for reports and comparisons, as versioned JSON
(``schemas/report-1.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_tfdevice.classify import Class
from pytest_tfdevice.memory import GpuMemory
from pytest_tfdevice.model import Device, DeviceInfo, Placement, SourceLine
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.serial import documents
from pytest_tfdevice.serial.codec import Codec, FormatError
from pytest_tfdevice.serial.records import DEVICE, _body
from pytest_tfdevice.transfers import Transfer
from pytest_tfdevice.verdict import Outcome

if TYPE_CHECKING:
    from pytest_tfdevice.baseline.compare import Change

KIND = "report"
VERSION = 1
ITEMS_ON_LINES = 4
"""How deep the text of a report has a line for each field or item: to a test's placements."""


def _empty() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, order=True)
class Operation:
    """Operations of one scope and type on one device.

    ``reason``: why they aren't on the device that they should be on, as code or by hand.
    ``counts``: False for what a verdict leaves out.
    """

    scope: str
    type: str
    device: str
    count: int = 1
    reason: str = ""
    counts: bool = True


@dataclass(frozen=True)
class Transfers:
    """Tensors that crossed between host and device."""

    count: int = 0
    bytes: int | None = None


@dataclass(frozen=True)
class Judgement:
    """What the rules of a test say of a placement.

    Attributes:
        kind: its class, and ``why`` a phrase that says how that is known.
        counts: it is among what must be on the target; an allowed one is not.
        on_target: it is there, and not in name only.
        allowed: the pattern of ``allow=`` that excused it.
        reason: why it is elsewhere, of what counts or was allowed.
    """

    kind: Class
    why: str = ""
    counts: bool = False
    on_target: bool = True
    allowed: str = ""
    reason: Reason | None = None

    @property
    def offends(self) -> bool:
        """It counts, and isn't where it must be."""
        return self.counts and not self.on_target


@dataclass(frozen=True)
class Check:
    """A marker, as written, that judged a test, and its verdict in one line."""

    kind: Literal["placement", "memory", "transfers"]
    marker: str
    outcome: Outcome
    summary: str = ""


@dataclass(frozen=True)
class BaselineCheck:
    """A comparison with a baseline.

    ``file`` holds it, under ``test`` and ``environment``.  ``missing``: there was none, where one
    had to be.  ``changes``: what is different, the worst first.
    """

    action: Literal["checked", "created", "updated", "missing"]
    file: str
    test: str
    environment: str
    changes: tuple[Change, ...] = ()

    @property
    def passed(self) -> bool:
        """What was recorded anew is what is meant, whatever moved."""
        if self.action == "checked":
            return not any(change.is_regression for change in self.changes)
        return self.action != "missing"


@dataclass(frozen=True)
class TestReport:
    """One watched test.

    Files are named from the root of the run where they are below it.

    Attributes:
        nodeid: the test.
        outcome: ``passed``, ``failed``, ``error`` where it could not be judged, ``expected`` for a
            failure that a test marked ``xfail`` owes, or ``watched`` where nothing judged it.
        pytest_outcome: what became of the test itself, ``passed``, ``failed`` or ``skipped``
            (xfail); empty where that isn't known.
        summary: the verdict in one line.
        text: why the test fails, as on the terminal.
        source: where the test is defined.
        target: the device meant.
        counting, on_target: of what counts, all and those on the target.
        devices: how many operations were seen on each device.
        operations: aggregated; sorted.
        placements: in full, where they were asked for.
        judgements: the different ones, over all rules of the test; ``judged`` has for each
            placement the number of its own, or is empty where nothing is said.
        checks: each marker that judged the test.
        baselines: each comparison with a baseline.
        memory: peak bytes by device, where they were measured; ``gpu_memory`` in full.
        transfers: where they were counted; ``crossings`` in full.
    """

    __test__ = False

    nodeid: str
    outcome: str
    pytest_outcome: str = ""
    summary: str = ""
    text: str = ""
    source: SourceLine | None = None
    target: str = "GPU"
    counting: int = 0
    on_target: int = 0
    devices: Mapping[str, int] = field(default_factory=_empty)
    operations: tuple[Operation, ...] = ()
    placements: tuple[Placement, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    judged: tuple[int, ...] = ()
    checks: tuple[Check, ...] = ()
    baselines: tuple[BaselineCheck, ...] = ()
    memory: Mapping[str, int] = field(default_factory=_empty)
    gpu_memory: tuple[GpuMemory, ...] = ()
    transfers: Transfers | None = None
    crossings: tuple[Transfer, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: ``judged`` doesn't fit the placements and judgements.
        """
        if self.judged and len(self.judged) != len(self.placements):
            raise ValueError(f"{len(self.judged)} judged of {len(self.placements)} placements")
        if self.judged and not 0 <= min(self.judged) <= max(self.judged) < len(self.judgements):
            raise ValueError("judged names a judgement that isn't there")

    def rows(self) -> Iterator[tuple[Placement, Judgement | None]]:
        """Each placement with what is said of it; None where nothing is."""
        if not self.judged:
            yield from ((placement, None) for placement in self.placements)
            return
        for placement, number in zip(self.placements, self.judged, strict=True):
            yield placement, self.judgements[number]

    def offenders(self) -> Iterator[tuple[Placement, Reason]]:
        """What counts and is elsewhere, in order of first appearance."""
        for placement, judgement in self.rows():
            if judgement is not None and judgement.offends and judgement.reason is not None:
                yield placement, judgement.reason


@dataclass(frozen=True)
class SkippedTest:
    """A marked test that was skipped, and why."""

    nodeid: str
    reason: str = ""


@dataclass(frozen=True)
class RunReport:
    """A run: on what it ran, and its watched tests, by node id.

    Attributes:
        tensorflow, python, plugin: versions; of TensorFlow empty where no test needed it.
        root: where the root of the run is in the repository: ``"services/model"``; empty where it
            is its root, or there is none.
        devices: what TensorFlow had.
        tests: the watched ones.
        skipped: marked tests that were skipped.
        ran: how many tests ran at all; None where that isn't known.
        stale_allow: entries of ``allow`` that excused nothing in the whole run.
        ended: why the run ended before its last test; empty where it did not.
        exit_status: of pytest; None where that isn't known.
    """

    tensorflow: str = ""
    python: str = ""
    plugin: str = ""
    root: str = ""
    devices: tuple[DeviceInfo, ...] = ()
    tests: tuple[TestReport, ...] = ()
    skipped: tuple[SkippedTest, ...] = ()
    ran: int | None = None
    stale_allow: tuple[str, ...] = ()
    ended: str = ""
    exit_status: int | None = None

    @property
    def simulated(self) -> bool:
        """True where the GPUs were simulated ones."""
        return any(info.simulated for info in self.devices)

    def to_json(self) -> dict[str, Any]:
        """A document."""
        return {**documents.envelope(KIND, VERSION), **_codec().encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], name: str = "report") -> RunReport:
        """The inverse of :meth:`to_json`.

        Raises:
            FileError: the version isn't known, or it is no report.
        """
        documents.check(dict(data), KIND, VERSION, name)
        try:
            return _codec().decode(cls, _body(data))
        except FormatError as error:
            raise documents.FileError(f"{name}: {error}") from None

    def write(self, path: Path) -> None:
        """Writes the document, whole or not at all.

        Raises:
            FileError: it can't be written.
        """
        documents.write(path, self.to_text())

    def to_text(self) -> str:
        """The document as it is written to a file: a line for each placement."""
        return f"{_laid_out(self.to_json(), ITEMS_ON_LINES, '')}\n"


@cache
def _codec() -> Codec:
    from pytest_tfdevice.baseline.compare import Change  # which imports this module

    return Codec({Device: DEVICE}, forward=(Change,))


def _laid_out(value: Any, levels: int, indent: str) -> str:
    """JSON with a line for each field and item of the first levels."""
    if not (levels and value and isinstance(value, list | dict)):
        return json.dumps(value)
    if isinstance(value, list) and not any(isinstance(item, list | dict) for item in value):
        return json.dumps(value)
    inner = f"{indent} "
    if isinstance(value, dict):
        items = [
            f"{json.dumps(key)}: {_laid_out(item, levels - 1, inner)}"
            for key, item in value.items()
        ]
    else:
        items = [_laid_out(item, levels - 1, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{closing}"
