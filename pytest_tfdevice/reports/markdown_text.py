"""Text in which GitHub's Markdown, and HTML, find nothing to do."""

from __future__ import annotations

import re

from pytest_tfdevice.reports.words import escape

_GAP = "&#8203;"
"""A space without width.  What GitHub makes links, mentions and emoji of is looked for after
Markdown has been read, so that a backslash is no help."""

_SPECIAL = re.compile(
    r"(?<=:)(?=//|[\w+-]+:)|(?<=\bwww)(?=\.)|(?<=\bGH-)|[&<>#@\\`*_{}\[\]|~!$]", re.IGNORECASE
)
_MADE = {
    "": _GAP,
    "@": f"@{_GAP}",
    "#": rf"\#{_GAP}",
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
}


def plain(words: str) -> str:
    """Words as they stand."""
    return _SPECIAL.sub(lambda found: _MADE.get(found[0], rf"\{found[0]}"), escape(words))


def code(words: str) -> str:
    """The same, in a monospaced font."""
    return f"<code>{plain(words)}</code>" if words else ""


def block(text: str) -> str:
    """Lines as they stand, in a monospaced font."""
    lines = "\n".join(html(escape(line)) for line in text.split("\n"))
    return f"<pre>\n{lines}\n</pre>"


def html(words: str) -> str:
    """The same for HTML alone."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
