"""Files below the root of a run are named from there: a report says the same on every machine."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_tfdevice.model import DeviceScope, Placement, SourceLine
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.transfers import Transfer


def in_repository(root: Path) -> str:
    """Where a folder is in its Git repository; empty where it is its root, or there is none."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            found = root.relative_to(folder).as_posix()
            return "" if found == "." else found
    return ""


@dataclass(frozen=True)
class Shortener:
    """Names files from ``root``; what is shared by many placements is made once."""

    root: Path
    _known: dict[SourceLine, SourceLine] = field(default_factory=dict, compare=False)
    _scopes: dict[DeviceScope, DeviceScope] = field(default_factory=dict, compare=False)

    @property
    def _prefix(self) -> str:
        return os.path.join(str(self.root), "")

    @property
    def _shortens(self) -> bool:
        """Not where the run has the root of the file system for its own."""
        return self.root != self.root.parent

    def text(self, text: str) -> str:
        """A text in which files may be named."""
        return text.replace(self._prefix, "") if self._shortens else text

    def texts(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        """Several of them."""
        return tuple(map(self.text, texts))

    def line(self, line: SourceLine | None) -> SourceLine | None:
        """A line of code."""
        if line is None:
            return None
        if line not in self._known:
            file = line.file.removeprefix(self._prefix) if self._shortens else line.file
            self._known[line] = SourceLine(file.replace(os.sep, "/"), line.line, line.function)
        return self._known[line]

    def reason(self, reason: Reason) -> Reason:
        """A reason and its causes."""
        cause = self.reason(reason.cause) if reason.cause is not None else None
        return Reason(reason.code, self.text(reason.evidence), self.text(reason.mend), cause)

    def placement(self, placement: Placement) -> Placement:
        """A placement, with its own line and that of its ``tf.device``."""
        if placement.source is None and placement.request is None:
            return placement
        return replace(
            placement, source=self.line(placement.source), request=self._scope(placement.request)
        )

    def transfer(self, transfer: Transfer) -> Transfer:
        """A tensor that crossed."""
        return replace(transfer, line=self.line(transfer.line))

    def _scope(self, scope: DeviceScope | None) -> DeviceScope | None:
        if scope is None or scope.source is None:
            return scope
        if scope not in self._scopes:
            self._scopes[scope] = replace(scope, source=self.line(scope.source))
        return self._scopes[scope]
