"""What a run leaves behind: the record, its file, and how it travels."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hostile_reports import CPU, GPU, HOSTILE, hostile_report, offending
from hypothesis import given, settings
from random_records import REPORTS

from pytest_tfdevice.model import DeviceInfo, DeviceScope, DeviceSpec, Placement, SourceLine
from pytest_tfdevice.outputs import files, writers
from pytest_tfdevice.outputs.parcel import joined, pack, unpack
from pytest_tfdevice.outputs.paths import Shortener, in_repository
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.serial.documents import FileError
from pytest_tfdevice.serial.run_report import Judgement, RunReport, TestReport

WHY = Reason("dtype", "why", "mend")
OFF = Judgement("counts", counts=True, on_target=False, reason=WHY)
ON = Judgement("counts", counts=True)
ALLOWED = Judgement("counts", counts=False, on_target=False, allowed="Relu", reason=WHY)


def placement(name: str) -> Placement:
    return Placement(name, "MatMul", CPU)


# ------------------------------------------------------------------------ the record
def test_each_placement_has_its_judgement() -> None:
    placements = tuple(map(placement, "abc"))
    test = TestReport("t", "failed", placements=placements, judgements=(ON, OFF, ALLOWED),
                      judged=(1, 0, 2))  # fmt: skip
    assert [(p.op, j) for p, j in test.rows()] == [("a", OFF), ("b", ON), ("c", ALLOWED)]
    assert [(p.op, reason) for p, reason in test.offenders()] == [("a", WHY)]


def test_of_placements_that_nobody_judged_nothing_is_said() -> None:
    test = TestReport("t", "watched", placements=(placement("a"),))
    assert list(test.rows()) == [(placement("a"), None)]
    assert list(test.offenders()) == []


@pytest.mark.parametrize("judged", [[0], [0, 1], [0, -1]])
def test_judgements_that_do_not_fit_are_refused(judged: list[int]) -> None:
    data = RunReport(
        tests=(
            TestReport("t", "failed", placements=(placement("a"), placement("b")),
                       judgements=(ON,), judged=(0, 0)),
        )
    ).to_json()  # fmt: skip
    data["tests"][0]["judged"] = judged
    with pytest.raises(FileError, match=r"r\.json: \$\.tests\[0\]: .*judge"):
        RunReport.from_json(data, "r.json")


def test_a_report_of_before_there_was_more_in_it_can_still_be_read() -> None:
    data = {
        "format": "pytest-tfdevice report",
        "version": 1,
        "tensorflow": "2.21.0",
        "devices": [{"device": GPU.canonical, "simulated": True}],
        "tests": [
            {
                "nodeid": "t.py::test_x",
                "outcome": "passed",
                "operations": [{"scope": "a", "type": "MatMul", "device": "GPU:0", "count": 2}],
                "memory": {"GPU:0": 4},
                "transfers": {"count": 1},
            }
        ],
    }
    report = RunReport.from_json(data)
    assert report.tests[0].operations[0].count == 2
    assert report.ran is None


# -------------------------------------------------------------------------- the file
def test_a_file_has_a_line_for_each_placement() -> None:
    test = offending(*map(placement, "abc"), reason=WHY)
    lines = RunReport(tests=(test,)).to_text().splitlines()
    for name in "abc":
        (line,) = [line for line in lines if f'"op": "{name}"' in line]
        assert json.loads(line.strip().rstrip(","))["type"] == "MatMul"


@given(REPORTS)
@settings(deadline=None, max_examples=50)
def test_the_text_is_the_document(report: RunReport) -> None:
    text = report.to_text()
    assert json.loads(text) == json.loads(json.dumps(report.to_json()))
    assert text.isascii()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_come_back_the_same(name: str, tmp_path: Path) -> None:
    report = hostile_report(name)
    path = tmp_path / "r.json"
    report.write(path)
    assert RunReport.from_json(json.loads(path.read_text("ascii"))) == report


# ------------------------------------------------------------------- from test to run
@given(REPORTS)
@settings(deadline=None, max_examples=50)
def test_a_parcel_is_text_and_brings_back_what_was_packed(report: RunReport) -> None:
    parcel = pack(report)
    assert parcel.isascii()
    assert unpack(parcel) == report


def test_a_parcel_of_a_large_model_is_small() -> None:
    placements = (
        Placement(f"model/block_{n // 50}/dense_{n}/MatMul", "MatMul", GPU) for n in range(50_000)
    )
    report = RunReport(tests=(TestReport("t", "passed", placements=tuple(placements)),))
    assert len(pack(report)) < len(report.to_text()) / 5


def test_parts_are_joined_by_node_id() -> None:
    parts = [
        RunReport("2.21.0", devices=(DeviceInfo(GPU, "one"),), tests=(TestReport("b", "passed"),)),
        RunReport(tests=(TestReport("a", "failed"), TestReport("c", "passed"))),
        RunReport("2.21.0", devices=(DeviceInfo(CPU),), tests=(TestReport("a", "passed"),)),
    ]
    whole = joined(parts, RunReport(python="3.13", ran=7))
    assert [(test.nodeid, test.outcome) for test in whole.tests] == [
        ("a", "passed"),
        ("b", "passed"),
        ("c", "passed"),
    ]
    assert [info.device for info in whole.devices] == [CPU, GPU]
    assert (whole.tensorflow, whole.python, whole.ran) == ("2.21.0", "3.13", 7)


def test_files_below_the_root_are_named_from_there() -> None:
    short = Shortener(Path("/w/project"))
    inside = SourceLine("/w/project/a/m.py", 3, "f")
    assert short.line(inside) == SourceLine("a/m.py", 3, "f")
    assert short.line(SourceLine("/w/projects/m.py", 3)) == SourceLine("/w/projects/m.py", 3)
    scope = DeviceScope(DeviceSpec(type="CPU"), inside)
    moved = short.placement(Placement("a", "b", CPU, source=inside, request=scope))
    assert moved.source == SourceLine("a/m.py", 3, "f")
    assert moved.request == DeviceScope(DeviceSpec(type="CPU"), SourceLine("a/m.py", 3, "f"))
    reason = Reason("colocated", "at /w/project/x.py:1", "see /w/project/y.py",
                    Reason("dtype", "/w/project/z.py", ""))  # fmt: skip
    assert short.reason(reason) == Reason(
        "colocated", "at x.py:1", "see y.py", Reason("dtype", "z.py", "")
    )


def test_below_the_root_of_the_file_system_names_stay_as_they_are() -> None:
    short = Shortener(Path("/"))
    assert short.text("tf.device at /app/m.py:3") == "tf.device at /app/m.py:3"
    assert short.line(SourceLine("/app/m.py", 3)) == SourceLine("/app/m.py", 3)


def test_the_place_of_a_folder_in_its_repository(tmp_path: Path) -> None:
    folder = tmp_path / "services" / "model"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert in_repository(folder) == "services/model"
    assert in_repository(tmp_path) == ""


# ------------------------------------------------------------------------- the writers
def test_an_ending_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"'a\.xml': its ending '\.xml' is none of \.json, \.md"):
        writers.check_ending("a.xml")
    with pytest.raises(ValueError, match=r"'report': it has no ending; known are \.json, \.md"):
        writers.check_ending("report")
    writers.check_ending("deep/folder/R.JSON")


def test_a_file_that_fails_does_not_keep_the_others_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.md").mkdir()
    monkeypatch.setitem(writers.WRITERS, ".broken", "json:dumps")
    names = ("folder.md", "a.broken", "b.json")
    found = files.write_all([tmp_path / name for name in names], RunReport())
    assert [one.line.partition(": ")[0] for one in found] == ["error", "error", "report"]
    assert "can't write" in found[0].line
    assert "can't make a.broken: TypeError" in found[1].line
    assert found[2].line == "report: b.json"
    assert sorted(os.listdir()) == ["b.json", "folder.md"]


def test_what_keeps_a_file_from_being_written_is_known_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    assert files.obstacle(tmp_path / "new" / "folders" / "r.json") == ""
    assert "is a folder" in files.obstacle(tmp_path)
    assert "is no folder" in files.obstacle(tmp_path / "file" / "r.json")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # as for anybody but root
    assert "write-protected" in files.obstacle(tmp_path / "file")
    assert str(tmp_path) in files.obstacle(tmp_path / "r.json")
