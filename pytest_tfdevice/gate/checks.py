"""Compares what a test ran with its baseline, where the test runs: with pytest-xdist, in a worker.

Nothing is written here: what is to be recorded goes with the test's report to where the session is
run (``keeper``).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_tfdevice.config import Settings
from pytest_tfdevice.gate import COMPARED
from pytest_tfdevice.gate.collected import name_of, node_id
from pytest_tfdevice.gate.places import place_of

if TYPE_CHECKING:
    from pytest_tfdevice.baseline.compare import Change
    from pytest_tfdevice.baseline.entries import Entry
    from pytest_tfdevice.baseline.files import BaselineFile
    from pytest_tfdevice.model import Record
    from pytest_tfdevice.verdict import Verdict

Action = Literal["checked", "created", "updated"]


@dataclass(frozen=True)
class Seen:
    """What a test ran, and what is to be done with it.

    ``file`` is where its baseline stands, ``test`` and ``environment`` are its keys there;
    ``remarks`` are for the end of the run.
    """

    action: Action
    file: str
    test: str
    environment: str
    entry: Entry
    remarks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Plain data, for pytest-xdist."""
        from pytest_tfdevice.serial.codec import Codec

        data: dict[str, Any] = Codec().encode(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Seen:
        """The inverse of :meth:`to_json`."""
        from pytest_tfdevice.baseline.entries import Entry
        from pytest_tfdevice.serial.codec import Codec

        entry = Codec().decode(Entry, data["entry"])
        return cls(**{**data, "entry": entry, "remarks": tuple(data.get("remarks", ()))})


@dataclass(frozen=True)
class Compared:
    """A comparison, whatever came of it: for reports.

    ``missing``: there was no baseline, where one had to be.
    """

    action: Action | Literal["missing"]
    file: str
    test: str
    environment: str
    record: Record
    verdict: Verdict
    changes: tuple[Change, ...] = ()

    @property
    def lost(self) -> int:
        """How many operations are off the device and aren't in the baseline; what was recorded anew
        is what is meant."""
        if self.action != "checked":
            return 0
        return sum(change.count for change in self.changes if change.is_regression)


@dataclass
class Checks:
    """The comparison of each test's record."""

    settings: Settings
    root: Path
    _files: dict[Path, BaselineFile] = field(default_factory=dict)

    def check(self, item: pytest.Item, record: Record, name: str | None, on: str) -> Seen:
        """Compares ``record`` and says what is to be recorded.

        Raises:
            pytest.fail.Exception: an operation left its device, there is no baseline where one must
                be, or nothing can be said.
        """
        from pytest_tfdevice.baseline import entries
        from pytest_tfdevice.baseline.compare import compare
        from pytest_tfdevice.reports import changes as texts

        verdict = _judge(item, record, on)
        if verdict.problems:
            _fail(f"can't be compared with a baseline: {'; '.join(verdict.problems)}")
        entry = entries.observe(verdict)
        environment = entries.Environment.of(record).key
        test = key_of(item, name)
        path = self.file_of(item)
        stored = self._read(path)
        old = stored.get(test, environment)
        told = Told(node_id(item), test, environment, _relative(path), self.settings)
        mode = self.settings.baseline

        def note(action: Action | Literal["missing"], *changes: Change) -> None:
            compared = Compared(action, told.file, test, environment, record, verdict, changes)
            item.stash.setdefault(COMPARED, []).append(compared)

        if mode == "update":
            note("updated", *(compare(old, entry) if old is not None else ()))
            return Seen("updated", str(path), test, environment, entry)
        if old is None:
            if mode == "check" and in_ci():
                note("missing")
                _fail(texts.missing(told.what, sorted(stored.tests.get(test, {})), told.command))
            note("created")
            return Seen("created", str(path), test, environment, entry)
        found = compare(old, entry)
        note("checked", *found)
        if any(change.is_regression for change in found):
            _fail(texts.failure(found, verdict, told.what, told.command("update")))
        remarks = tuple(texts.remarks(found, told.test_name, told.command("update")))
        return Seen("checked", str(path), test, environment, entry, remarks)

    def file_of(self, item: pytest.Item) -> Path:
        """Where the baseline of a test stands."""
        return place_of(item.path, self.settings.baseline_dir, self.root)

    def _read(self, path: Path) -> BaselineFile:
        from pytest_tfdevice.baseline import files
        from pytest_tfdevice.serial.documents import FileError

        if path not in self._files:
            try:
                self._files[path] = files.read(path)
            except FileError as error:
                _fail(f"the baseline can't be used: {error}")
        return self._files[path]


@dataclass(frozen=True)
class Told:
    """What a message says of a test and of its baseline."""

    nodeid: str
    test: str
    environment: str
    file: str
    settings: Settings

    @property
    def test_name(self) -> str:
        return self.nodeid

    @property
    def what(self) -> str:
        return f"baseline {self.file}, {self.test}, {self.environment}"

    def command(self, mode: str) -> str:
        """What to run to have the test recorded as it is now."""
        return command(mode, self.settings, self.nodeid)


def command(mode: str, settings: Settings, *arguments: str) -> str:
    """A command line of pytest that records baselines."""
    words = ["pytest", *arguments, "--tfdevice-baseline", mode]
    if settings.simulate is not None:
        words += ["--tfdevice-simulate", str(settings.simulate)]
    return shlex.join(words)


def key_of(item: pytest.Item, name: str | None) -> str:
    """The key of a test in its file: with the name of the check, where it has one."""
    return name_of(item) if name is None else f"{name_of(item)}#{name}"


def in_ci() -> bool:
    """True where the environment variable ``CI`` says so, as all services set it."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


def _judge(item: pytest.Item, record: Record, on: str) -> Verdict:
    from pytest_tfdevice.kernels.current import gpu_kernels
    from pytest_tfdevice.model import DeviceSpec
    from pytest_tfdevice.patterns import Rule
    from pytest_tfdevice.rules import judge

    rule = Rule(DeviceSpec.parse(on), marker="placement_baseline")
    kernels = gpu_kernels() if record.tensorflow else None
    classify: Callable[[Any], Any] = lambda p: item.ihook.pytest_tfdevice_classify(placement=p)  # noqa: E731
    return judge(record, rule, kernels, classify)


def _fail(text: str) -> None:
    __tracebackhide__ = True
    pytest.fail(text, pytrace=False)


def _relative(path: Path) -> str:
    shown = os.path.relpath(path)
    return str(path) if shown.startswith("..") else shown
