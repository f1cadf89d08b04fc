"""A run as Markdown: for a comment on a pull request, or a job summary.

GitHub refuses a comment of more than 65,536 characters, and a job summary of more than 1 MiB: a
page has a limit, and says what it leaves out.  What fails comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pytest_tfdevice.reports import run_words
from pytest_tfdevice.reports.changes import line as change_line
from pytest_tfdevice.reports.findings import Offence, offences, said
from pytest_tfdevice.reports.markdown_text import block, code, plain
from pytest_tfdevice.reports.words import count, cut, percent
from pytest_tfdevice.serial.run_report import BaselineCheck, RunReport, TestReport
from pytest_tfdevice.units import format_size

COMMENT_LIMIT = 65_536
"""Of a comment; in bytes here, which are never fewer than its characters."""
RESERVE = 400
"""Bytes kept for saying what is left out."""

MARKS = {"failed": "❌", "error": "⚠️", "expected": "☑️", "passed": "✅", "watched": "👁️"}
ORDER = tuple(MARKS)
MAX_OFFENCES = 20
MAX_CHANGES = 20
MAX_NAME = 200
MAX_LISTED = 50
MAX_TEXT = 8_000


@dataclass
class Page:
    """Blocks of Markdown, as many as there is room for."""

    limit: int
    blocks: list[str] = field(default_factory=list)
    _used: int = 0

    def add(self, text: str, reserve: int = RESERVE) -> bool:
        """Adds a block in whole, if there is room for it."""
        size = len(text.encode("utf-8")) + 2
        if self._used + size > self.limit - reserve:
            return False
        self.blocks.append(text)
        self._used += size
        return True

    def __str__(self) -> str:
        return "\n\n".join(self.blocks) + "\n"


def page(report: RunReport, limit: int = COMMENT_LIMIT) -> str:
    """The page, of at most ``limit`` bytes of UTF-8 (at least 1,000)."""
    made, complete = _made(report, limit)
    if not complete:
        # What the terminal says is said above in other words: more tests are worth more.
        tests = tuple(replace(test, text="") for test in report.tests)
        made, _ = _made(replace(report, tests=tests), limit)
    return str(made)


def _made(report: RunReport, limit: int) -> tuple[Page, bool]:
    """A page, and whether everything is on it."""
    made = Page(limit)
    for text in _head(report):
        made.add(text)
    tests = sorted(report.tests, key=lambda test: (ORDER.index(test.outcome), -_off(test)))
    rows = _table(made, tests)
    telling = [test for test in tests if _tells(test)]
    told = 0
    while told < len(telling) and made.add("\n\n".join(_test(telling[told]))):
        told += 1
    lists = [made.add(text) for text in _lists(report)]
    left_out = []
    if told < len(telling):
        left_out.append(f"what is to be said of {count(len(telling) - told, 'more test')}")
    if rows < len(tests):
        left_out.append(f"{count(len(tests) - rows, 'row')} of the table")
    if not all(lists):
        left_out.append("lists of what else to know")
    if left_out:
        text = f"… left out, to keep to GitHub's limit: {'; '.join(left_out)}. A `.json` or "
        made.add(text + "`.html` report has everything.", reserve=0)
    return made, not left_out


def _head(report: RunReport) -> Iterator[str]:
    bad = any(test.outcome in ("failed", "error") for test in report.tests)
    good = any(test.outcome in ("passed", "expected") for test in report.tests)
    mark = "❌" if bad else "✅" if good and not report.ended else "⚠️"
    yield f"### {mark} Where TensorFlow ran: {plain(run_words.conclusion(report))}"
    facts = [run_words.environment(report)]
    if seen := run_words.totals(report):
        facts.append(f"operations seen: {seen}")
    if report.skipped:
        facts.append(f"{count(len(report.skipped), 'marked test')} skipped")
    if text := "; ".join(fact for fact in facts if fact):
        yield plain(text)
    for remark in run_words.remarks(report):
        yield f"> {plain(remark)}"


def _table(made: Page, tests: Sequence[TestReport]) -> int:
    """A row for each test, in at most half of the page; how many there was room for."""
    if not tests:
        return 0
    head = "| | test | on the device | off | GPU memory, peak | transfers per step |\n"
    head += "|-|-|-:|-:|-:|-:|"
    rows: list[str] = []
    room = made.limit // 2 - len(head.encode("utf-8")) - sum(map(len, made.blocks)) * 2
    for test in tests:
        row = _row(test)
        room -= len(row.encode("utf-8")) + 1
        if room < 0:
            break
        rows.append(row)
    if rows:
        made.add("\n".join([head, *rows]))
    return len(rows)


def _row(test: TestReport) -> str:
    share = percent(test.on_target / test.counting) if test.counting else "—"
    off = f"{_off(test):,}" if test.counting else "—"
    memory = format_size(max(test.memory.values())) if test.memory else "—"
    moved = "—"
    if test.transfers is not None:
        moved = f"{test.transfers.count:,}"
        if test.transfers.count and test.transfers.bytes is not None:
            moved += f", {format_size(test.transfers.bytes)}"
    name = code(cut(test.nodeid, MAX_NAME, keep_end=True))
    cells = (MARKS[test.outcome], name, share, off, memory, moved)
    return f"| {' | '.join(cells)} |"


def _off(test: TestReport) -> int:
    return test.counting - test.on_target


def _tells(test: TestReport) -> bool:
    """True for a test of which there is more to say than its row."""
    changed = any(baseline.changes or not baseline.passed for baseline in test.baselines)
    return test.outcome in ("failed", "error", "expected") or changed


def _test(test: TestReport) -> Iterator[str]:
    name = code(cut(test.nodeid, MAX_NAME, keep_end=True))
    yield f"#### {MARKS[test.outcome]} {name}"
    yield plain(said(test.summary))
    if points := list(_points(test)):
        yield "\n".join(points)
    if test.text:
        text = block(cut(test.text, MAX_TEXT))
        yield f"<details><summary>as on the terminal</summary>\n\n{text}\n\n</details>"


def _points(test: TestReport) -> Iterator[str]:
    """What is wrong, each as an item of a list."""
    found = offences(test)
    yield from map(_offence, found[:MAX_OFFENCES])
    if len(found) > MAX_OFFENCES:
        hidden = sum(len(offence.placements) for offence in found[MAX_OFFENCES:])
        yield f"- … and {count(hidden, 'more operation')}"
    for check in test.checks:
        if check.outcome == "failed" and check.kind != "placement":
            yield f"- {code(said(check.marker))}: {plain(said(check.summary))}"
    for baseline in test.baselines:
        yield from _baseline(baseline)
    for problem in test.problems:
        yield f"- could not be judged: {plain(said(problem))}"


def _offence(offence: Offence) -> str:
    number = count(len(offence.placements), "operation")
    lines = [
        f"- **{number} on {plain(offence.device)}: {plain(offence.reason.code)}** — "
        f"{code(offence.names)}",
        f"  - why: {plain(said(offence.reason.evidence))}",
    ]
    if offence.source is not None:
        inside = f" in {offence.source.function}" if offence.source.function else ""
        lines.append(f"  - line: {code(cut(f'{offence.source}{inside}', MAX_NAME))}")
    lines.append(f"  - mend: {plain(said(offence.reason.mend))}")
    return "\n".join(lines)


def _baseline(baseline: BaselineCheck) -> Iterator[str]:
    what = ", ".join((baseline.file, baseline.test, baseline.environment))
    if baseline.action == "missing":
        yield f"- there is no baseline {code(said(what))}"
    if not baseline.changes:
        return
    ordered = sorted(baseline.changes, key=lambda change: not change.is_regression)
    lines = [
        f"  - {'❌ ' if change.is_regression else ''}{code(said(change_line(change)))}"
        for change in ordered[:MAX_CHANGES]
    ]
    if len(ordered) > MAX_CHANGES:
        lines.append(f"  - … and {count(len(ordered) - MAX_CHANGES, 'more change')}")
    yield "\n".join([f"- since the baseline {code(said(what))}:", *lines])


def _lists(report: RunReport) -> Iterator[str]:
    skipped = (f"{code(said(one.nodeid))}: {plain(said(one.reason))}" for one in report.skipped)
    yield from _folded("skipped", list(skipped))
    stale = [code(said(entry)) for entry in report.stale_allow]
    yield from _folded("entries of allow= that excused nothing", stale)
    notes = {note: None for test in report.tests for note in test.notes}
    yield from _folded("notes", [plain(said(note)) for note in notes])


def _folded(title: str, items: Sequence[str]) -> Iterable[str]:
    """A list that is shown when it is asked for."""
    if not items:
        return
    lines = [f"- {item}" for item in items[:MAX_LISTED]]
    if len(items) > MAX_LISTED:
        lines.append(f"- … and {len(items) - MAX_LISTED} more")
    body = "\n".join(lines)
    yield f"<details><summary>{title} ({len(items)})</summary>\n\n{body}\n\n</details>"
