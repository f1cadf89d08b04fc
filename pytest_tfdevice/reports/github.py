"""Findings as commands to GitHub Actions, which shows them at the lines of code.

A command is a line of output.  What it may contain is escaped as the runner reads it back, so that
no name can end it and begin another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pytest_tfdevice.model import SourceLine
from pytest_tfdevice.reports.findings import Finding, said
from pytest_tfdevice.reports.words import count, cut, escape

MAX_ERRORS = 10
"""GitHub shows as many of a step, and drops the rest without a word."""
MAX_TITLE = 200
MAX_FILE = 4096
MAX_MESSAGE = 2000

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


@dataclass(frozen=True)
class Annotation:
    """A remark at a line; without ``file`` at the run as a whole."""

    command: str
    title: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """The command, one line."""
        found = {"file": self.file, "line": str(self.line), "title": cut(self.title, MAX_TITLE)}
        if not self.file:
            found = {"title": found["title"]}
        properties = ",".join(f"{name}={escaped(text, _PROPERTY)}" for name, text in found.items())
        return f"::{self.command} {properties}::{escaped(cut(self.message, MAX_MESSAGE), _DATA)}"


def annotated(
    found: Iterable[Finding], file_of: Callable[[SourceLine], str], *, with_tests: bool
) -> list[Annotation]:
    """At most ``MAX_ERRORS`` errors, and a notice that counts the rest.

    Args:
        found: the findings that a test fails for, the worst first.
        file_of: names a file from the root of the workspace; empty for one outside of it.
        with_tests: also those that are at the line of a test, not of an op.
    """
    wanted = [one for one in found if one.is_own or with_tests]
    shown = [_annotation(one, file_of) for one in wanted[:MAX_ERRORS]]
    more = len(wanted) - len(shown)
    if more > 0:
        text = f"{count(more, 'more finding')} of pytest-tfdevice: see the job summary"
        shown.append(Annotation("notice", "pytest-tfdevice", text))
    return shown


def escaped(text: str, table: dict[str, str]) -> str:
    """A text as the runner reads it back."""
    return "".join(table.get(character, character) for character in text)


def _annotation(finding: Finding, file_of: Callable[[SourceLine], str]) -> Annotation:
    lines = [*finding.details, finding.where]
    file, line = "", 0
    if finding.source is not None:
        file, line = cut(escape(file_of(finding.source)), MAX_FILE), finding.source.line
        if not file:
            lines.insert(0, said(f"at {finding.source}"))
    return Annotation("error", finding.title, "\n".join(lines), file, line)
