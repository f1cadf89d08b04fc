"""Small pieces of text: plurals, cuts, and op names that can't harm a terminal."""

from __future__ import annotations

import re
import textwrap

_COMMAND = re.compile(
    r"::(?=(?:add-mask|add-matcher|remove-matcher|debug|echo|end-?group|error|group|notice|warning"
    r"|save-state|set-env|set-output|add-path|stop-commands|internal-[\w-]+)(?:\s|::|$))"
    r"|##(?=\[)",
    re.IGNORECASE,
)
"""What GitHub Actions takes for a command: the first at the beginning of a line, and a line that is
wrapped may begin anywhere; the second wherever it stands (``ActionCommand.cs`` of the runner)."""


def count(number: int, noun: str) -> str:
    """``"1 operation"``, ``"1,204 operations"``."""
    plural = noun if number == 1 else f"{noun}s"
    return f"{number:,} {plural}"


def cut(text: str, width: int, *, keep_end: bool = False) -> str:
    """At most ``width`` characters, with an ellipsis for what is left out."""
    if len(text) <= width:
        return text
    return "…" + text[-(width - 1) :] if keep_end else text[: width - 1] + "…"


def escape(text: str) -> str:
    """Control characters as ``\\x1b``: an op's name is anybody's text.

    A command to GitHub Actions becomes none.
    """
    return _COMMAND.sub(lambda found: _hex(found[0][0]) + found[0][1:], printable(text))


def printable(text: str) -> str:
    """Control characters as ``\\x1b``, and nothing else: for what no runner reads as commands."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def _hex(character: str) -> str:
    return f"\\x{ord(character):02x}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def percent(share: float) -> str:
    """``"99.3 %"``; never rounded to 100 % or 0 % where it isn't."""
    text = f"{share * 100:.1f}"
    if text == "100.0" and share < 1:
        text = "99.9"
    if text == "0.0" and share > 0:
        text = "0.1"
    return f"{text.removesuffix('.0')} %"


WIDTH = 100
"""Columns of a report."""


def wrapped(text: str, indent: str, hanging: str | None = None) -> list[str]:
    """``text``, escaped, on lines of at most ``WIDTH``.

    Lines after the first begin with ``hanging``, by default ``indent`` and two more spaces.
    """
    return textwrap.wrap(
        escape(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=hanging if hanging is not None else indent + "  ",
        break_on_hyphens=False,
    )
