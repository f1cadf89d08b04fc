"""Patterns that pick operations, and the rule that one marker makes of them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pytest_tfdevice.model import DeviceSpec, Placement
from pytest_tfdevice.reason import REASON_CODES

_TYPE = re.compile(r"[A-Za-z0-9_>.*?\[\]!\-]+")
"""Op types are identifiers, with ``>`` after a namespace ("Addons>Relu"); plus shell patterns."""


class RuleError(ValueError):
    """An argument that makes no rule."""


class PatternError(RuleError):
    """A text that is no pattern for operations."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Picks operations by op type ("MatMul", "Sparse*"), by name ("name:block1/*") or, where they
    are off their device, by reason ("reason:dtype").

    Types and names are shell patterns (``*``, ``?``, ``[…]``), in which ``*`` also takes slashes,
    and upper and lower case differ.
    """

    by: Literal["type", "name", "reason"]
    glob: str

    @classmethod
    def parse(cls, text: str) -> Pattern:
        """Reads a pattern.

        Raises:
            PatternError: ``text`` isn't one; the message says what is wrong with it.
        """
        if not isinstance(text, str):
            raise PatternError(f"{text!r} is no pattern: a string such as 'MatMul' is wanted")
        if not text.strip():
            raise PatternError("an empty pattern picks nothing; '*' picks every operation")
        if text != text.strip():
            raise PatternError(f"pattern {text!r} begins or ends with a space")
        prefix, colon, rest = text.partition(":")
        if not colon:
            return cls("type", _checked_type(text))
        if not rest:
            raise PatternError(f"pattern {text!r} has nothing after its colon")
        if prefix == "reason":
            if rest not in REASON_CODES:
                raise PatternError(
                    f"pattern {text!r} names no reason; the reasons are {', '.join(REASON_CODES)}"
                )
            return cls("reason", rest)
        if prefix == "type":
            return cls("type", _checked_type(rest))
        if prefix == "name":
            return cls("name", _balanced(rest, text))
        raise PatternError(
            f"pattern {text!r} begins with {prefix!r}; what may stand before a colon is name, "
            "type or reason"
        )

    def matches(self, placement: Placement, reason: str | None = None) -> bool:
        """True for an operation that the pattern picks; ``reason`` is its reason's code, if any.

        A compiled function goes by its own name too, and a ``_FusedConv2D``, which the optimiser
        makes of a ``Conv2D`` and what follows it, is a ``Conv2D`` still.
        """
        if self.by == "reason":
            return reason == self.glob
        if self.by == "type":
            types = {placement.type, (placement.type or "").removeprefix("_Fused")} - {None, ""}
            return any(fnmatch.fnmatchcase(str(name), self.glob) for name in types)
        names = {placement.op, placement.path, placement.unit if placement.is_unit else None}
        return any(name is not None and fnmatch.fnmatchcase(name, self.glob) for name in names)

    def __str__(self) -> str:
        return self.glob if self.by == "type" else f"{self.by}:{self.glob}"


@dataclass(frozen=True, slots=True)
class Rule:
    """What one marker, or one call of ``assert_on_gpu``, demands.

    Attributes:
        target: the device, or kind of device, that what counts must be on.
        ops: operations that must have been seen, and on the target.
        allow: operations that may be elsewhere.
        strict: everything but structural nodes counts, and what is on the target in name only
            fails.
        min_ratio: share of what counts, 0 to 1, that must be on the target; None for all of it.
        marker: the rule as the user wrote it, for messages.

    Raises:
        RuleError: ``min_ratio`` is no share, or ``ops`` picks by reason.
    """

    target: DeviceSpec
    ops: tuple[Pattern, ...] = ()
    allow: tuple[Pattern, ...] = ()
    strict: bool = False
    min_ratio: float | None = None
    marker: str = ""

    def __post_init__(self) -> None:
        if self.min_ratio is not None and not 0 <= self.min_ratio <= 1:
            raise RuleError(f"min_ratio={self.min_ratio!r} is no share: it goes from 0 to 1")
        for pattern in self.ops:
            if pattern.by == "reason":
                raise RuleError(
                    f"{str(pattern)!r} can't be required: an operation on its device has no reason "
                    "to be elsewhere; it belongs in allow="
                )


def parse_patterns(texts: Iterable[str]) -> tuple[Pattern, ...]:
    """Reads several patterns.

    Raises:
        PatternError: one of them isn't a pattern, or a single string was given for several.
    """
    if isinstance(texts, str):
        texts = (texts,)
    return tuple(Pattern.parse(text) for text in texts)


def _checked_type(text: str) -> str:
    if "/" in text:
        raise PatternError(f"{text!r} is no op type; write 'name:{text}' to pick by name")
    if _TYPE.fullmatch(text) is None:
        raise PatternError(f"{text!r} is no op type: such as 'MatMul', 'Sparse*' or '[AB]*'")
    return _balanced(text, text)


def _balanced(glob: str, text: str) -> str:
    """A ``[`` without its ``]`` would be taken as it stands, and match nothing that was meant."""
    rest = glob
    while "[" in rest:
        rest = rest[rest.index("[") + 1 :]
        # The first character of a set, after an optional "!", may itself be a "]".
        end = rest.find("]", 2 if rest.startswith("!") else 1)
        if end < 0:
            raise PatternError(f"pattern {text!r} has a '[' without its ']'")
        rest = rest[end + 1 :]
    return glob
