"""The difference between two runs or baselines, as text and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_tfdevice.baseline.amounts import Amount
from pytest_tfdevice.baseline.compare import Change
from pytest_tfdevice.baseline.diff import Diff, TestDiff
from pytest_tfdevice.reports.changes import line
from pytest_tfdevice.reports.markdown_text import code, plain
from pytest_tfdevice.reports.words import count, escape, percent
from pytest_tfdevice.units import format_size

MAX_ROWS = 100
"""Of all tables together: a comment on a pull request holds 65,536 characters."""
TITLES = (
    ("lost", "left the device"),
    ("new-off", "new, and off the device"),
    ("gained", "came to the device"),
    ("moved", "moved between devices"),
    ("new", "new"),
    ("gone", "gone"),
)


def conclusion(found: Diff) -> str:
    """One line: what left, what came, and what grew."""
    totals = {kind: _total(found, kind) for kind, _ in TITLES}
    if not found.compared:
        return "no test is in both files"
    parts = [f"{totals[kind]:,} {title}" for kind, title in TITLES if totals[kind]]
    tests = count(found.compared, "test")
    moved = (
        f"operations in {tests}: {'; '.join(parts)}" if parts else f"no operation moved in {tests}"
    )
    grown = sum(any(amount.is_regression for amount in test.amounts) for test in found.tests)
    return f"{moved}; {count(grown, 'test')} took more of the GPU" if grown else moved


def text(found: Diff) -> str:
    """For a terminal."""
    lines = [conclusion(found)]
    for test in found.tests:
        lines += ["", escape(_head(test))]
        for kind, title in TITLES:
            some = [change for change in test.changes if change.kind == kind]
            if some:
                lines.append(f"  {title}:")
                lines += [f"    {escape(line(change))}" for change in some]
        lines += [f"  {escape(_amount(amount, found))}" for amount in test.amounts]
    rest = _rest(found)
    return "\n".join([*lines, *([""] if rest else []), *map(escape, rest)]) + "\n"


def markdown(found: Diff) -> str:
    """For a comment on a pull request."""
    mark = "❌" if found.is_regression else "✅"
    lines = [f"### {mark} Placement: {plain(conclusion(found))}", ""]
    rows = MAX_ROWS
    for test in found.tests:
        lines += [f"**{plain(_head(test))}**", "", *_table(test.changes, rows)]
        rows = max(rows - len(test.changes), 0)
        for amount in test.amounts:
            bad = "❌ " if amount.is_regression else ""
            lines.append(f"- {bad}{plain(_amount(amount, found))}")
        lines += [""] if test.amounts else []
    lines += [f"- {plain(rest)}" for rest in _rest(found)]
    return "\n".join(lines).rstrip() + "\n"


def _total(found: Diff, kind: str) -> int:
    return sum(c.count for test in found.tests for c in test.changes if c.kind == kind)


def _head(test: TestDiff) -> str:
    where = f"{test.before} → {test.environment}" if test.before else test.environment
    return f"{test.test} ({where})"


def _table(changes: Sequence[Change], rows: int) -> list[str]:
    """A table of changes, of so many rows at most, and the blank line after it."""
    lines = []
    if changes and rows:
        lines += ["| | scope | operation | | before | now | reason |", "|-|-|-|-:|-|-|-|"]
        lines += [*(_row(change) for change in changes[:rows]), ""]
    if len(changes) > rows:
        lines += [f"… and {count(len(changes) - rows, 'more change')}", ""]
    return lines


def _row(change: Change) -> str:
    mark = {"lost": "❌", "new-off": "❌", "gained": "✅"}.get(change.kind, "")
    cells: Sequence[str] = (
        mark,
        code(change.scope),
        code(change.type),
        str(change.count),
        plain(change.before or "—"),
        plain(change.after or "gone"),
        plain(change.reason),
    )
    return f"| {' | '.join(cells)} |"


def _amount(amount: Amount, found: Diff) -> str:
    if amount.unit == "bytes":
        before, after = format_size(amount.before), format_size(amount.after)
    else:
        before, after = f"{amount.before:,}", f"{amount.after:,}"
    text = f"{amount.what}: {before} → {after}"
    if not amount.is_regression or found.max_growth is None:
        return text
    grown = f"{percent(amount.growth)} more, " if amount.before else ""
    return f"{text} ({grown}{percent(found.max_growth)} is allowed)"


def _rest(found: Diff) -> list[str]:
    return [
        *(f"only in the old file: {test}" for test in found.only_old),
        *(f"only in the new file: {test}" for test in found.only_new),
        *found.notes,
    ]
