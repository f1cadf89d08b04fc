"""What is different between two reports or baselines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from random_records import REPORTS
from tensorflow_facts import GPU
from test_serial import validate

from pytest_tfdevice.baseline import diff, files
from pytest_tfdevice.baseline.compare import Change, compare
from pytest_tfdevice.baseline.entries import Entry
from pytest_tfdevice.model import DeviceInfo
from pytest_tfdevice.reports import diff as texts
from pytest_tfdevice.serial.run_report import Operation, RunReport, TestReport, Transfers


def op(text: str, reason: str = "") -> Operation:
    """``"dense MatMul GPU:0"``."""
    scope, kind, device = text.split(" ")
    return Operation(scope, kind, device, reason=reason)


def entry(*ops: Operation) -> Entry:
    return Entry(tuple(sorted(ops)))


def baseline(**tests: Entry) -> diff.Sides:
    return {test: {"GPU": diff.Side(found)} for test, found in tests.items()}


def test_what_only_one_file_has_is_named() -> None:
    found = diff.diff(baseline(a=entry(), b=entry()), baseline(b=entry(), c=entry()))
    assert (found.compared, found.only_old, found.only_new) == (1, ("a",), ("c",))
    assert not found.is_regression


def test_another_environment_is_compared_where_there_is_no_doubt() -> None:
    old = {"a": {"TensorFlow 2.15": diff.Side(entry(op("a X GPU:0")))}}
    new = {"a": {"TensorFlow 2.21": diff.Side(entry(op("a X CPU:0")))}}
    found = diff.diff(old, new)
    assert found.is_regression
    assert found.tests[0].before == "TensorFlow 2.15"
    new["a"]["another"] = diff.Side(entry())
    found = diff.diff(old, new)
    assert found.compared == 0
    assert "a was not compared" in found.notes[0]


def run_report(*tests: TestReport) -> RunReport:
    return RunReport("2.21.0", devices=(DeviceInfo(GPU, simulated=True),), tests=tests)


def test_a_report_is_compared_with_a_baseline(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    run_report(TestReport("t/test_a.py::test_x", "passed", operations=(op("a X GPU:0"),))).write(
        old
    )
    key = "test_x", "simulated GPU, TensorFlow 2.21"
    files.change(new, {key: entry(op("a X CPU:0", reason="dtype"))})
    found = diff.diff(diff.read(str(old)), diff.read(str(new)))
    assert found.compared == 1
    assert found.tests[0].changes == (Change("lost", "a", "X", 1, "GPU:0", "CPU:0", "dtype"),)


def test_memory_and_transfers_are_compared_where_both_have_them(tmp_path: Path) -> None:
    old = TestReport("t", "passed", memory={"GPU:0": 2**20}, transfers=Transfers(2, 8))
    new = TestReport("t", "passed", memory={"GPU:0": 2**21, "GPU:1": 1}, transfers=Transfers(5))
    paths = [tmp_path / name for name in ("old.json", "new.json")]
    for path, test in zip(paths, (old, new), strict=True):
        run_report(test).write(path)
    found = diff.diff(*(diff.read(str(path)) for path in paths))
    assert [(a.what, a.before, a.after) for a in found.tests[0].amounts] == [
        ("memory on GPU:0", 2**20, 2**21),
        ("transfers", 2, 5),
    ]
    assert "memory on GPU:0: 1 MiB → 2 MiB" in texts.text(found)
    assert not found.is_regression


def test_what_does_not_count_moves_unheeded() -> None:
    quiet = Operation("a", "Shape", "GPU:0", counts=False)
    moved = Operation("a", "Shape", "CPU:0", counts=False)
    assert compare(Entry((quiet,)), Entry((moved,))) == ()


def reports(*tests: TestReport) -> diff.Sides:
    return {test.nodeid: {"GPU": diff.Side(Entry(test.operations), test)} for test in tests}


@given(REPORTS, REPORTS, st.none() | st.floats(0, 10))
@settings(deadline=None, max_examples=50)
def test_a_difference_keeps_its_schema(
    old: RunReport, new: RunReport, max_growth: float | None
) -> None:
    found = diff.diff(reports(*old.tests), reports(*new.tests), max_growth)
    data = json.loads(json.dumps(diff.to_json(found)))
    validate(data, "diff")
    assert data["regression"] is found.is_regression


def test_a_table_fits_into_a_comment() -> None:
    many = tuple(Operation(f"block_{n:04}/" + "x" * 100, "MatMul", "GPU:0") for n in range(2000))
    moved = tuple(replace(op, device="CPU:0", reason="dtype") for op in many)
    old, new = (baseline(a=Entry(ops), b=Entry(ops)) for ops in (many, moved))
    found = diff.diff(old, new)
    assert len(texts.markdown(found)) < 65_536
    assert "4,000 left the device" in texts.markdown(found)
    assert "… and 1,900 more changes" in texts.markdown(found)
    assert "… and 2,000 more changes" in texts.markdown(found)
    assert texts.text(found).count("block_1999") == 2


HOSTILE = "a|b`c`<script>*x*\n::error::[l](u)\x1b[31m"


def test_hostile_names_stay_text() -> None:
    hostile = Operation(HOSTILE, HOSTILE, "GPU:0")
    found = diff.diff(baseline(), baseline())
    old = {HOSTILE: {"GPU": diff.Side(Entry((hostile,)))}}
    new = {HOSTILE: {"GPU": diff.Side(Entry(()))}}
    found = diff.diff(old, new)
    for text in (texts.text(found), texts.markdown(found)):
        assert "\x1b" not in text
        assert "\n::error" not in text
    rows = [line for line in texts.markdown(found).splitlines() if line.startswith("| ")]
    assert all(row.replace("\\|", "").count("|") == 8 for row in rows)
    assert "<script" not in texts.markdown(found)
    assert "](" not in texts.markdown(found).replace("\\](", "")
