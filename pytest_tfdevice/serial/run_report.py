"""What a run leaves behind for reports and comparisons, as versioned JSON
(``schemas/report-1.json``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_tfdevice.model import DeviceInfo, Placement
from pytest_tfdevice.serial import documents
from pytest_tfdevice.serial.codec import FormatError
from pytest_tfdevice.serial.records import CODEC, _body, dumps

KIND = "report"
VERSION = 1


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
class TestReport:
    """One watched test.

    Attributes:
        nodeid: the test.
        outcome: ``passed``, ``failed``, ``error``, or ``watched`` where nothing judged it.
        summary: the verdict in one line.
        target: the device meant.
        counting, on_target: of what counts, all and those on the target.
        devices: how many operations were seen on each device.
        operations: aggregated; sorted.
        placements: in full, where they were asked for.
        memory: peak bytes by device, where they were measured.
        transfers: where they were counted.
    """

    __test__ = False

    nodeid: str
    outcome: str
    summary: str = ""
    target: str = "GPU"
    counting: int = 0
    on_target: int = 0
    devices: Mapping[str, int] = field(default_factory=_empty)
    operations: tuple[Operation, ...] = ()
    placements: tuple[Placement, ...] = ()
    memory: Mapping[str, int] = field(default_factory=_empty)
    transfers: Transfers | None = None
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunReport:
    """A run: on what it ran, and its watched tests, by node id."""

    tensorflow: str = ""
    python: str = ""
    devices: tuple[DeviceInfo, ...] = ()
    tests: tuple[TestReport, ...] = ()

    @property
    def simulated(self) -> bool:
        """True where the GPUs were simulated ones."""
        return any(info.simulated for info in self.devices)

    def to_json(self) -> dict[str, Any]:
        """A document."""
        return {**documents.envelope(KIND, VERSION), **CODEC.encode(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], name: str = "report") -> RunReport:
        """The inverse of :meth:`to_json`.

        Raises:
            FileError: the version isn't known, or it is no report.
        """
        documents.check(dict(data), KIND, VERSION, name)
        try:
            return CODEC.decode(cls, _body(data))
        except FormatError as error:
            raise documents.FileError(f"{name}: {error}") from None

    def write(self, path: Path) -> None:
        """Writes the document, whole or not at all.

        Raises:
            FileError: it can't be written.
        """
        documents.write(path, dumps(self.to_json()))
