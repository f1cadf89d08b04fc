"""What TensorFlow could not place, as text: op by op with reason, line and mend."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pytest_tfdevice.errors.placement import Failure
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.reports.words import count, wrapped

MAX_FAILURES = 8


def not_placed(found: Sequence[tuple[Failure, Reason]]) -> list[str]:
    """One paragraph for each failure, blank lines between them."""
    lines: list[str] = []
    for failure, reason in found[:MAX_FAILURES]:
        what = f"could not place {failure.name}"
        if failure.wanted and failure.problem != "warned":
            what += f" on {_short(failure.wanted)}"
        if failure.problem == "warned":
            what = "warned that it could not keep a colocation group together as asked"
        lines += ["", *wrapped(f"TensorFlow {what}: {reason.code}", "  ")]
        lines += wrapped(f"why:   {reason.evidence}", "    ", "           ")
        if failure.source is not None:
            lines += wrapped(f"line:  {failure.source}", "    ", "           ")
        lines += wrapped(f"mend:  {reason.mend}", "    ", "           ")
    if len(found) > MAX_FAILURES:
        more = len(found) - MAX_FAILURES
        lines += ["", f"  … and {count(more, 'more message')} of what could not be placed"]
    return lines[1:]


def section(found: Sequence[tuple[Failure, Reason]]) -> str:
    """The same for the report of a failed test; "" for none."""
    return textwrap.dedent("\n".join(not_placed(found)))


def _short(device: str) -> str:
    return device.replace("/job:localhost/replica:0/task:0", "").replace("/device:", "")
