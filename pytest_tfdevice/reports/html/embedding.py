"""Data, scripts and styles inside an HTML page, so that no text can end what it stands in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
"""Outside of strings JSON has none of these, so that they may be escaped anywhere."""

_ENDS = re.compile(r"</(script|style)|<!--|]]>", re.IGNORECASE)


def embedded_json(data: Any) -> str:
    """JSON that can stand in a ``<script type="application/json">``.

    It is ASCII: no character of it can end the element, start a comment, be a line end to one
    reader and not to another, or be lost to an encoding.
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.translate(_MARKUP)


def embedded_code(text: str) -> str:
    """A script or style of our own, unchanged.

    Raises:
        ValueError: it has what would end the element that it stands in.
    """
    found = _ENDS.search(text)
    if found:
        raise ValueError(f"{found[0]!r} can't stand in a script or style of a page")
    return text


def content_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """A Content-Security-Policy under which these scripts and styles run, and nothing else does.

    Whatever an op is called, a page under it loads nothing, sends nothing, and runs nothing that
    didn't come with the package.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
