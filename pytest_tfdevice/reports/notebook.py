"""A record as HTML for notebooks."""

from __future__ import annotations

from collections import Counter
from html import escape

from pytest_tfdevice.model import Record

LIMIT = 200


def html(record: Record) -> str:
    """A heading with the count on each device, and a table of the ops."""
    devices = Counter(str(p.device) for p in record.placements)
    counts = ", ".join(f"{n} on {escape(d)}" for d, n in devices.most_common()) or "nothing ran"
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td>{escape(text)}</td>"
            for text in (str(p.device), p.type or "", p.op, str(p.source or ""))
        )
        + "</tr>"
        for p in record.placements[:LIMIT]
    )
    more = len(record) - LIMIT
    problems = "".join(f"<p><b>{escape(problem)}</b></p>" for problem in record.problems)
    return (
        f"<p>{len(record)} operations: {counts}"
        f"{' (simulated GPU)' if record.simulated else ''}</p>{problems}"
        "<table><thead><tr><th>device</th><th>type</th><th>name</th><th>line</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>{f'<p>… and {more} more</p>' if more > 0 else ''}"
    )
