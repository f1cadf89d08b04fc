"""Baseline files: one for each test module, one operation a line, sorted
(``schemas/baseline-1.json``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_tfdevice.baseline.entries import DEFAULT_TARGET, Entry, doubles
from pytest_tfdevice.serial import documents
from pytest_tfdevice.serial.codec import Codec, FormatError
from pytest_tfdevice.serial.documents import FileError
from pytest_tfdevice.serial.run_report import Operation

KIND = "baseline"
VERSION = 1

_CODEC = Codec()

Tests = Mapping[str, Mapping[str, Entry]]


@dataclass(frozen=True)
class BaselineFile:
    """What a file holds: for each test, and each environment's key, an entry."""

    tests: Tests = field(default_factory=dict)

    def get(self, test: str, environment: str) -> Entry | None:
        """The entry of a test, None where there is none."""
        return self.tests.get(test, {}).get(environment)

    def others(self, test: str, environment: str) -> list[Entry]:
        """The entries of a test for other environments."""
        return [e for key, e in sorted(self.tests.get(test, {}).items()) if key != environment]

    def with_entries(self, entries: Mapping[tuple[str, str], Entry | None]) -> BaselineFile:
        """A copy in which some entries, by test and environment, are others; None removes one."""
        tests = {test: dict(found) for test, found in self.tests.items()}
        for (test, environment), entry in entries.items():
            if entry is not None:
                tests.setdefault(test, {})[environment] = entry
            elif test in tests:
                tests[test].pop(environment, None)
        return BaselineFile({test: found for test, found in tests.items() if found})

    def to_text(self) -> str:
        """The file: sorted, one operation a line, so that a change is a line of a diff."""
        head = documents.envelope(KIND, VERSION)
        lines = ["{", *(f"  {_json(key)}: {_json(value)}," for key, value in head.items())]
        lines.append('  "tests": {')
        lines += _members((_test(t, found) for t, found in sorted(self.tests.items())))
        return "\n".join([*lines, "  }", "}", ""])

    @classmethod
    def from_json(cls, data: dict[str, Any], name: str, text: str = "") -> BaselineFile:
        """What is in a document.

        Raises:
            FileError: it is no baseline, or of a version that isn't known.
        """
        documents.check(data, KIND, VERSION, name, text)
        try:
            return cls(_tests(data))
        except FormatError as error:
            raise FileError(f"{name}: {error}") from None


def read(path: Path) -> BaselineFile:
    """The baseline in a file; an empty one where there is no file.

    Raises:
        FileError: it can't be read, or can't be trusted; the message names the file and the line.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return BaselineFile()
    except OSError as error:
        raise FileError(f"can't read {path}: {error.strerror}") from None
    data = documents.parse(raw, str(path))
    return BaselineFile.from_json(data, str(path), raw.decode("utf-8-sig"))


def change(path: Path, entries: Mapping[tuple[str, str], Entry | None]) -> bool:
    """Puts entries into the file as it stands now, and says whether that changed it.

    A file that would be left empty is removed.

    Raises:
        FileError: the file can't be read or written; it is as it was.
    """
    old = read(path)
    new = old.with_entries(entries)
    if not new.tests:
        if path.exists():
            try:
                path.unlink()
            except OSError as error:
                raise FileError(f"can't remove {path}: {error.strerror}") from None
            return True
        return False
    text = new.to_text()
    if path.exists() and path.read_bytes() == text.encode():
        return False
    documents.write(path, text)
    return True


def _test(test: str, entries: Mapping[str, Entry]) -> list[str]:
    inner = _members([_entry(key, entry) for key, entry in sorted(entries.items())])
    return [f"    {_json(test)}: {{", *inner, "    }"]


def _entry(key: str, entry: Entry) -> list[str]:
    lines = [f"      {_json(key)}: {{"]
    if entry.target != DEFAULT_TARGET:
        lines.append(f'        "target": {_json(entry.target)},')
    lines.append('        "operations": [')
    lines += _members([[f"          {_json(_operation(op))}"] for op in entry.operations])
    return [*lines, "        ]", "      }"]


def _operation(op: Operation) -> dict[str, Any]:
    """With its count even where that is 1: a line of a file is read by people."""
    encoded: dict[str, Any] = _CODEC.encode(op)
    counted = {"scope": op.scope, "type": op.type, "device": op.device, "count": op.count}
    return counted | encoded


def _members(blocks: Any) -> list[str]:
    """The lines of several members, with commas between them."""
    lines: list[str] = []
    for block in blocks:
        if lines:
            lines[-1] += ","
        lines += block
    return lines


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def _tests(data: dict[str, Any]) -> Tests:
    unknown = sorted(set(data) - {"format", "version", "tests"})
    if unknown:
        raise FormatError(f"$: unknown field {unknown[0]!r}")
    tests = data.get("tests")
    if not isinstance(tests, dict):
        raise FormatError("$.tests: an object is wanted")
    return {test: _entries(found, test) for test, found in tests.items()}


def _entries(data: Any, test: str) -> dict[str, Entry]:
    if not isinstance(data, dict):
        raise FormatError(f"{test}: an object is wanted")
    found = {key: _CODEC.decode(Entry, value, f"{test}, {key}") for key, value in data.items()}
    for key, entry in found.items():
        for op in doubles(entry.operations):
            raise FormatError(
                f"{test}, {key}: {op.type} in {op.scope!r} on {op.device} stands there twice; "
                "a merge may have left both"
            )
        for op in entry.operations:
            if op.count < 1:
                raise FormatError(f"{test}, {key}: {op.type} in {op.scope!r} has count {op.count}")
    return found
