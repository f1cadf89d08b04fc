"""The summary after the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from pytest_tfdevice.reports.words import WIDTH, count, cut, escape, percent
from pytest_tfdevice.results import TestResult
from pytest_tfdevice.units import format_size

MAX_TESTS = 10


class Reporter(Protocol):
    """What is used of pytest's ``TerminalReporter``."""

    def section(self, title: str, sep: str = "=", **markup: bool) -> None: ...
    def write_line(self, line: str, **markup: bool) -> None: ...


def write_summary(
    reporter: Reporter,
    results: Sequence[TestResult],
    stale_allow: Sequence[str] = (),
    top: int = MAX_TESTS,
) -> None:
    """Tests watched, ops on each device, simulated or real, and the tests that lost most.

    ``top`` tests that took most of the GPU's memory, or moved most, are listed.
    """
    if not results:
        return
    reporter.section("where TensorFlow ran")
    reporter.write_line(conclusion(results), **_markup(results))
    lines = [*totals(results), *worst(results), *stale(stale_allow), *taken(results, top)]
    for line in lines:
        reporter.write_line(line)


def write_graphs(reporter: Reporter, results: Sequence[TestResult], logdir: str) -> None:
    """What was written for TensorBoard to the folder ``logdir``, and what was not."""
    having = [result for result in results if result.graphs]
    graphs = count(sum(result.graphs for result in having), "graph")
    line = f"{graphs} of {count(len(having), 'test')} written: tensorboard --logdir {logdir}"
    if not having:
        line = f"no test ran a function or a Session: no graph was written to {logdir}"
    lost = [result for result in results if result.graphs_lost]
    reporter.write_line(escape(line))
    for result in lost[:MAX_TESTS]:
        reporter.write_line(escape(f"  graphs of {result.nodeid}: {result.graphs_lost}"))
    if len(lost) > MAX_TESTS:
        reporter.write_line(f"  … and of {count(len(lost) - MAX_TESTS, 'more test')}")


def stale(entries: Sequence[str]) -> list[str]:
    """Entries of ``allow`` that may go."""
    if not entries:
        return []
    lines = ["allow entries that excused nothing in this run, and can be removed:"]
    lines += [f"  {cut(escape(entry), WIDTH - 2)}" for entry in entries[:MAX_TESTS]]
    if len(entries) > MAX_TESTS:
        lines.append(f"  … and {len(entries) - MAX_TESTS} more")
    return lines


def conclusion(results: Sequence[TestResult]) -> str:
    """``2 of 5 tests left the device``; ``5 tests watched``."""
    outcomes = Counter(result.outcome for result in results)
    judged = len(results) - outcomes["watched"] - outcomes["expected"]
    if not judged and not outcomes["expected"]:
        return f"{count(len(results), 'test')} watched, none judged"
    failed = [result for result in results if result.outcome == "failed"]
    over = sum(result.over for result in failed)
    lost = sum(result.left or not result.over for result in failed)
    blind = outcomes["error"]
    text = f"{lost} of {count(judged, 'judged test')} left the device"
    if over and not lost:
        text = f"{over} of {count(judged, 'judged test')} exceeded a limit"
    elif over:
        text += f", {over} exceeded a limit"
    elif not lost:
        kept = judged - blind
        text = f"{count(kept, 'judged test')} kept to the device" if kept else "no test passed"
    if blind:
        text += f"; {count(blind, 'test')} could not be judged"
    if outcomes["expected"]:
        text += f"; {count(outcomes['expected'], 'test')} failed as expected (xfail)"
    if outcomes["watched"]:
        text += f"; {outcomes['watched']} more watched only"
    return text


def totals(results: Sequence[TestResult]) -> list[str]:
    """Ops on each device over all tests, and on what TensorFlow."""
    devices: Counter[str] = Counter()
    for result in results:
        devices.update(result.devices)
    shown = ", ".join(f"{number:,} on {device}" for device, number in devices.most_common())
    versions = sorted({result.tensorflow for result in results if result.tensorflow})
    kinds = {result.simulated for result in results if any("GPU" in d for d in result.devices)}
    kind = {
        frozenset({True}): "the GPU is simulated",
        frozenset({False}): "the GPU is real",
    }.get(frozenset(kinds), "no operation was on a GPU" if not kinds else "GPUs of both kinds")
    lines = [f"operations seen: {shown or 'none'}"]
    if versions:
        lines.append(f"TensorFlow {', '.join(versions)}; {kind}")
    noted = sum(result.outcome == "passed" and result.notes > 0 for result in results)
    if noted:
        lines.append(f"{count(noted, 'test')} passed with a note: -rP shows it")
    return lines


def worst(results: Sequence[TestResult]) -> list[str]:
    """The tests with the most counting ops off the device, the worst first."""
    bad = [r for r in results if r.outcome in ("failed", "error")]
    bad.sort(key=lambda r: (r.on_target - r.counting, r.nodeid))
    lines = []
    for result in bad[:MAX_TESTS]:
        off = result.counting - result.on_target
        share = f"{percent(result.on_target / result.counting)}" if result.counting else "-"
        head = f"  {off:>5} off, {share:>6} on  " if result.counting else "    nothing to judge  "
        if result.left and not off:
            head = "      left its baseline  "
        elif result.over and not off:
            head = "        over a limit  "
        lines.append(head + cut(escape(result.nodeid), WIDTH - len(head), keep_end=True))
        if off == 0:  # it failed for something else
            lines.append(" " * len(head) + cut(escape(result.summary), WIDTH - len(head)))
    if len(bad) > MAX_TESTS:
        lines.append(f"  … and {count(len(bad) - MAX_TESTS, 'more test')}")
    return lines


def taken(results: Sequence[TestResult], top: int) -> list[str]:
    """Peak GPU memory and transfers of the ``top`` tests, those that took most first."""
    rows = [r for r in results if r.peak or r.transfers]
    rows.sort(key=lambda r: (-(r.peak or 0), -r.transfer_bytes, -(r.transfers or 0), r.nodeid))
    if not rows or not top:
        return []
    lines = ["", "   peak GPU memory   of this test   transfers per step   test"]
    for result in rows[:top]:
        peak, own, moved = "-", "-", "-"
        if result.peak is not None:
            peak, own = format_size(result.peak), format_size(result.taken)
        if result.transfers is not None:
            moved = f"{result.transfers}"
            moved += f", {format_size(result.transfer_bytes)}" if result.transfers else ""
        head = f"  {peak:>16}  {own:>13}  {moved:>19}   "
        lines.append(head + cut(escape(result.nodeid), WIDTH - len(head), keep_end=True))
    if len(rows) > top:
        lines.append(f"  … and {count(len(rows) - top, 'more test')} (--tfdevice-top)")
    return lines


def _markup(results: Sequence[TestResult]) -> dict[str, bool]:
    outcomes = {result.outcome for result in results}
    if outcomes & {"failed", "error"}:
        return {"red": True, "bold": True}
    return {"green": True} if "passed" in outcomes else {}


def write_lines(
    reporter: Reporter, lines: Sequence[str], title: str = "placement baselines"
) -> None:
    """A section of its own, if there is anything to say."""
    if not lines:
        return
    reporter.section(title)
    for line in lines:
        bad = line.startswith(("stale:", "error:"))
        reporter.write_line(escape(line), **({"red": True} if bad else {}))
