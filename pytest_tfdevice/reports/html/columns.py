"""The operations of a test as columns of numbers, with each text once: small, and quick to filter.

The page's ``scripts/operations.js`` reads what is written here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pytest_tfdevice.reports.words import printable

COUNTS, OFF = 1, 2
"""Bits of the column ``flags``: it counts; it isn't on the device that is meant."""

TEXTS = (
    "scope",
    "name",
    "type",
    "device",
    "reason",
    "evidence",
    "mend",
    "standing",
    "file",
    "function",
    "tensors",
    "request",
)
NUMBERS = ("line", "runs", "weight", "flags")


@dataclass(frozen=True)
class Row:
    """A line of the table of operations.

    Attributes:
        reason: a code, with ``evidence`` and how to ``mend`` it.
        standing: whether it counts, and how that is known.
        tensors: dtypes and shapes of inputs and outputs.
        request: the ``tf.device`` in force, and where it was opened.
        runs: how often it was seen to run.
        weight: how many operations it stands for.
    """

    scope: str = ""
    name: str = ""
    type: str = ""
    device: str = ""
    reason: str = ""
    evidence: str = ""
    mend: str = ""
    standing: str = ""
    file: str = ""
    function: str = ""
    tensors: str = ""
    request: str = ""
    line: int = 0
    runs: int = 1
    weight: int = 1
    counts: bool = True
    off: bool = False

    @property
    def flags(self) -> int:
        return COUNTS * self.counts + OFF * self.off


@dataclass
class Texts:
    """Each text once; the empty one is number 0."""

    numbers: dict[str, int] = field(default_factory=lambda: {"": 0})

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    @property
    def shown(self) -> list[str]:
        """The texts in order, control characters escaped."""
        return [printable(text) for text in self.numbers]


def columns(rows: Iterable[Row]) -> dict[str, Any]:
    """``texts``, and for each of ``TEXTS`` and ``NUMBERS`` a list with a number for each row."""
    texts = Texts()
    found: dict[str, Any] = {name: [] for name in (*TEXTS, *NUMBERS)}
    for row in rows:
        for name in TEXTS:
            found[name].append(texts.number(getattr(row, name)))
        for name in NUMBERS:
            found[name].append(getattr(row, name))
    return {"texts": texts.shown, **found}
