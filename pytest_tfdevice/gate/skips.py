"""``--tfdevice-expected-skips``: marked tests may skip only where a file lists them.

A line is a node id, or a pattern with ``*`` and ``?``; a ``#`` at the beginning of a line or after
a space begins a comment.  Square brackets are meant as they stand: they are the parameters of a
test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_tfdevice.gate.collected import Collected, tail

_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True)
class Line:
    """A line that names tests: with its number, for messages."""

    text: str
    number: int

    def matches(self, nodeid: str) -> bool:
        """True for a test that the line names."""
        if self.text == nodeid:
            return True
        parts = re.split(r"([*?])", self.text)
        wild = {"*": ".*", "?": "."}
        pattern = "".join(wild.get(part, re.escape(part)) for part in parts)
        return re.fullmatch(pattern, nodeid, re.DOTALL) is not None

    @property
    def is_pattern(self) -> bool:
        return "*" in self.text or "?" in self.text


@dataclass
class ExpectedSkips:
    """The list, and what became of the tests on it."""

    path: Path
    lines: tuple[Line, ...]
    _skipped: set[str] = field(default_factory=set)
    _ran: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, path: Path) -> ExpectedSkips:
        """The list in a file.

        Raises:
            pytest.UsageError: it can't be read.
        """
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise pytest.UsageError(
                f"--tfdevice-expected-skips: can't read {path}: {why}"
            ) from None
        found = (
            Line(_COMMENT.sub("", line).strip(), number)
            for number, line in enumerate(text.split("\n"), 1)
        )
        return cls(path, tuple(line for line in found if line.text))

    def lists(self, nodeid: str) -> bool:
        """True for a test that may skip."""
        return any(line.matches(nodeid) for line in self.lines)

    def judge(self, report: pytest.TestReport, nodeid: str) -> None:
        """Makes a failure of the skip of a marked test that isn't listed."""
        if not report.skipped or hasattr(report, "wasxfail") or self.lists(nodeid):
            return
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = (
            f"skipped, and {self.path} does not list it ({reason}); let it run, or add the line\n"
            f"{nodeid}"
        )

    def add(self, report: pytest.TestReport, nodeid: str) -> None:
        """What became of a marked test, by its report."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.add(nodeid)
        elif report.when == "call":
            self._ran.add(nodeid)

    def stale(self, collected: Collected) -> list[str]:
        """What is wrong with the list, a line for each of its lines: that a test on it ran, or that
        there is no such test."""
        found = []
        for line in self.lines:
            if any(line.matches(nodeid) for nodeid in self._skipped):
                continue
            ran = sorted(nodeid for nodeid in self._ran if line.matches(nodeid))
            at = f"stale: {self.path}:{line.number}: {line.text}"
            if ran:
                which = "" if ran == [line.text] else f" ({', '.join(ran[:3])})"
                found.append(f"{at} is listed as an expected skip, and ran{which}")
            elif self._is_unknown(line, collected):
                found.append(f"{at} is listed as an expected skip, and there is no such test")
        return found

    def _is_unknown(self, line: Line, collected: Collected) -> bool:
        """True for the id of a test that its module, which is known in whole, doesn't have."""
        if line.is_pattern or "::" not in line.text:
            return False
        file = line.text.partition("::")[0]
        return any(
            module.whole and tail(line.text) not in module.tests
            for name, module in collected.modules.items()
            if Path(name).as_posix().endswith(f"/{file}")
        )
