"""Text in which GitHub's Markdown, and HTML, find nothing to do."""

from __future__ import annotations

import re

from pytest_tfdevice.reports.words import escape

_GAP = "&#8203;"
"""A space without width.  What GitHub makes links, mentions and emoji of is looked for after
Markdown has been read, so that a backslash is no help; not in ``<code>`` and ``<pre>``."""

_MARKUP = re.compile(r"[&<>\\`*_{}\[\]|~!$#@]")
_LINKING = re.compile(
    r"(?<=[@#])|(?<=:)(?=//|(?!\d\d?:)[\w+-]+:)|(?<=\bwww)(?=\.)|(?<=\bGH-)", re.IGNORECASE
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def plain(words: str) -> str:
    """Words as they stand."""
    return _GAP.join(map(_marked, _LINKING.split(escape(words))))


def code(words: str) -> str:
    """The same, in a monospaced font."""
    return f"<code>{_marked(escape(words))}</code>" if words else ""


def _marked(words: str) -> str:
    return _MARKUP.sub(lambda found: _ENTITIES.get(found[0], rf"\{found[0]}"), words)


def block(text: str) -> str:
    """Lines as they stand, in a monospaced font."""
    lines = "\n".join(html(escape(line)) for line in text.split("\n"))
    return f"<pre>\n{lines}\n</pre>"


def html(words: str) -> str:
    """The same for HTML alone."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
