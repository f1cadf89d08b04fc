"""``--tfdevice-report``: what is written, where, and when a run does not go well.

The suites take their records from placement logs, so that a run costs no TensorFlow; what a report
holds of a real one is in ``test_report_content.py``.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from gate_process import ENVIRONMENT, LOG, SUITE, Run, Suite
from pytest_process import run_pytest

from pytest_tfdevice.cli import main

MOVED = LOG.replace("test_a/dense/MatMul MatMul GPU:0", "test_a/dense/MatMul MatMul CPU:0")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def report(suite: Suite, name: str = "r.json") -> dict[str, Any]:
    """What was written, once it has been held against the published schema."""
    data: dict[str, Any] = json.loads((suite.folder / name).read_text())
    text = resources.files("pytest_tfdevice").joinpath("schemas/report-1.json").read_text()
    pytest.importorskip("jsonschema").Draft202012Validator(json.loads(text)).validate(data)
    return data


def reported(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {test["nodeid"]: test for test in data.get("tests", [])}


def written(done: Run) -> list[str]:
    """The files that the end of the run names."""
    return [
        line.removeprefix("report: ")
        for line in done.output.splitlines()
        if line.startswith("report: ")
    ]


def test_the_file_holds_the_tests_and_the_end_of_the_run_names_it(suite: Suite) -> None:
    done = suite.run("--tfdevice-report", "out/deep/r.json")
    assert done.status == 0
    assert written(done) == ["out/deep/r.json"]
    data = report(suite, "out/deep/r.json")
    assert (data["ran"], data["exit_status"], data.get("ended", "")) == (2, 0, "")
    assert data["python"] == ".".join(map(str, sys.version_info[:3]))
    found = reported(data)
    assert list(found) == ["test_m.py::test_a", "test_m.py::test_b"]
    first = found["test_m.py::test_a"]
    assert (first["outcome"], first["pytest_outcome"]) == ("passed", "passed")
    assert {p["op"]: p["device"][-5:] for p in first["placements"]} == {
        "test_a/dense/MatMul": "GPU:0",
        "test_a/dense/Relu": "GPU:0",
        "test_a/head/ResizeBicubic": "CPU:0",
    }
    off = [
        p["op"]
        for p, number in zip(first["placements"], first["judged"], strict=True)
        if not first["judgements"][number].get("on_target", True)
    ]
    assert off == ["test_a/head/ResizeBicubic"]
    assert (first["counting"], first["on_target"]) == (3, 2)
    assert first["source"] == {"file": "test_m.py", "line": 13, "function": "test_a"}
    (baseline,) = first["baselines"]
    assert baseline == {
        "action": "created",
        "file": "__placements__/test_m.json",
        "test": "test_a",
        "environment": ENVIRONMENT,
    }


def test_several_files_each_by_its_ending(suite: Suite) -> None:
    names = ["r.json", "R.MD", "r.sarif"]
    done = suite.run(*(f"--tfdevice-report={name}" for name in (*names, "./r.json")))
    assert written(done) == names, "a file that is named twice is written once"
    assert (suite.folder / "R.MD").read_text().startswith("### ✅ Where TensorFlow ran: ")
    assert json.loads((suite.folder / "r.sarif").read_text())["version"] == "2.1.0"
    assert report(suite)["ran"] == 2


def test_in_the_ini_file_names_are_relative_to_that(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntfdevice_report =\n    a/r.json\n    r.md\n")
    suite.write("sub/test_m.py", SUITE)
    suite.log(LOG, "sub")
    suite.run(cwd="sub")
    assert (suite.folder / "a/r.json").exists()
    assert (suite.folder / "r.md").exists()


def test_the_command_line_goes_before_the_ini_file(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntfdevice_report = ini.json\n")
    done = suite.run("--tfdevice-report", "line.json", "-v")
    assert written(done) == ["line.json"]
    assert not (suite.folder / "ini.json").exists()
    assert "tfdevice: report=" in done.output


def test_without_the_option_nothing_is_written(suite: Suite) -> None:
    assert written(suite.run()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("r.xml", "'r.xml': its ending '.xml' is none of .json, .md, .html, .sarif"),
        ("report", "'report': it has no ending; known are .json, .md, .html, .sarif"),
        ("test_m.py/r.json", "test_m.py is no folder"),
        ("folder.json", "folder.json is a folder"),
    ],
)
def test_what_can_not_be_written_is_said_before_the_tests(
    suite: Suite, name: str, why: str
) -> None:
    (suite.folder / "folder.json").mkdir()
    done = suite.run("--tfdevice-report", name)
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "--tfdevice-report (ini: tfdevice_report)" in done.said
    assert why in done.said
    assert "passed" not in done.said
    assert "Traceback" not in done.output


def test_a_folder_that_goes_away_fails_the_run_and_costs_no_other_file(suite: Suite) -> None:
    suite.write("test_n.py", "from pathlib import Path\ndef test_x(): Path('out').write_text('')\n")
    done = suite.run("--tfdevice-report=out/r.json", "--tfdevice-report=r.md")
    assert done.status == pytest.ExitCode.TESTS_FAILED
    assert "can't write" in done.said
    assert "out/r.json" in done.said
    assert written(done) == ["r.md"]


def test_a_run_without_a_terminal_says_on_stderr_what_it_could_not_write(tmp_path: Path) -> None:
    test = "from pathlib import Path\ndef test_x(): Path('out').write_text('')\n"
    args = ("-p", "no:terminal", "--tfdevice-report=out/r.json", "--tfdevice-report=r.json")
    done = run_pytest(tmp_path, test, *args)
    assert done.status == pytest.ExitCode.TESTS_FAILED
    assert done.stdout == ""
    assert "tfdevice: error: can't write" in done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["ran"] == 1


def test_a_list_of_tests_has_no_report(suite: Suite) -> None:
    done = suite.run("--tfdevice-report", "r.json", "--collect-only", "-q")
    assert done.status == 0
    assert not (suite.folder / "r.json").exists()


def test_a_run_without_a_watched_test_says_so(suite: Suite) -> None:
    suite.write("test_m.py", "def test_x(): pass\n")
    suite.run("--tfdevice-report=r.json", "--tfdevice-report=r.md")
    assert (reported(report(suite)), report(suite)["ran"]) == ({}, 1)
    text = (suite.folder / "r.md").read_text()
    assert "no test was watched" in text
    assert "1 test ran" in text


@pytest.mark.parametrize(
    ("body", "args", "status", "ended"),
    [
        ("raise KeyboardInterrupt", (), 2, "KeyboardInterrupt"),
        ("pytest.exit('enough')", (), 2, "enough"),
        ("assert 0", ("-x",), 1, "stopping after 1 failures"),
        ("assert 0", ("--maxfail=1",), 1, "stopping after 1 failures"),
    ],
)
def test_a_run_that_is_cut_short_leaves_what_there_is_and_says_so(
    suite: Suite, body: str, args: tuple[str, ...], status: int, ended: str
) -> None:
    suite.write("test_n.py", f"import pytest\ndef test_x():\n    {body}\ndef test_y(): pass\n")
    done = suite.run("--tfdevice-report=r.json", "--tfdevice-report=r.md", *args)
    assert done.status == status
    data = report(suite)
    assert (data["ended"], data["exit_status"]) == (ended, status)
    assert len(reported(data)) == 2
    assert f"ended early ({ended})" in (suite.folder / "r.md").read_text()


def test_a_run_whose_collection_fails_says_so(suite: Suite) -> None:
    suite.write("test_n.py", "import nonesuch\n")
    done = suite.run("--tfdevice-report", "r.json")
    assert done.status == 2
    assert report(suite)["ended"] == "1 error during collection"


def test_what_left_its_device_since_the_baseline(suite: Suite) -> None:
    suite.run()
    suite.log(MOVED)
    done = suite.run("--tfdevice-report=r.json", "--tfdevice-report=r.md")
    assert done.status == 1
    assert written(done) == ["r.json", "r.md"]
    first = reported(report(suite))["test_m.py::test_a"]
    assert (first["outcome"], first["pytest_outcome"]) == ("failed", "failed")
    (baseline,) = first["baselines"]
    assert baseline["action"] == "checked"
    (change,) = baseline["changes"]
    assert {**change, "reason": ""} == {
        "kind": "lost", "scope": "test_a/dense", "type": "MatMul", "count": 1,
        "before": "GPU:0", "after": "CPU:0", "reason": "",
    }  # fmt: skip
    assert "1 operation that counts left GPU:0" in first["text"]
    text = (suite.folder / "r.md").read_text()
    assert "1 of 2 judged tests failed against the baseline" in text.splitlines()[0]
    assert "❌ <code>test\\_a/dense: MatMul" in text


def test_a_baseline_that_is_missing_in_ci(suite: Suite) -> None:
    suite.run("--tfdevice-report", "r.json", env={"CI": "true"})
    found = reported(report(suite))
    assert {test["outcome"] for test in found.values()} == {"failed"}
    assert {b["action"] for test in found.values() for b in test["baselines"]} == {"missing"}


def test_two_reports_can_be_compared(suite: Suite, capsys: pytest.CaptureFixture[str]) -> None:
    suite.run("--tfdevice-report", "old.json")
    suite.log(MOVED)
    suite.run("--tfdevice-report", "new.json", "--tfdevice-baseline", "off")
    suite.run("--tfdevice-report", "new.json", "--tfdevice-baseline", "update")
    old, new = (str(suite.folder / name) for name in ("old.json", "new.json"))
    assert main(["diff", old, new]) == 1
    said = capsys.readouterr().out
    assert "1 left the device" in said
    assert "test_m.py::test_a" in said
    assert main(["diff", old, old]) == 0


def test_an_old_report_is_replaced(suite: Suite) -> None:
    (suite.folder / "r.json").write_text("old")
    suite.run("--tfdevice-report", "r.json")
    assert len(reported(report(suite))) == 2


RETRIED = """
import pytest
from pathlib import Path

TRIES = []

@pytest.mark.flaky(reruns=2)
def test_a(placement, placement_baseline):
    TRIES.append(1)
    device = "GPU" if len(TRIES) > 1 else "CPU"
    log = f"a/X: (MatMul): /job:localhost/replica:0/task:0/device:{device}:0"
    placement_baseline.check(placement.parse(log))
    assert len(TRIES) > 1
"""


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_rerunfailures") is None, reason="needs pytest-rerunfailures"
)
def test_of_a_test_that_is_tried_again_the_last_try_is_told(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"test_m.py": RETRIED})
    done = suite.run("--tfdevice-report", "r.json")
    assert done.status == 0, done.output
    (test,) = reported(report(suite)).values()
    assert test["pytest_outcome"] == "passed"
    assert test["devices"] == {"GPU:0": 1}
    assert len(test["baselines"]) == 1
    assert report(suite)["ran"] == 1


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_the_workers_of_xdist_make_the_same_report(suite: Suite) -> None:
    suite.write("test_n.py", "def test_x(): pass\n")
    args = ("--tfdevice-baseline", "update")
    suite.run("--tfdevice-report", "one.json", *args)
    done = suite.run("--tfdevice-report", "two.json", *args, "-n", "2")
    assert written(done) == ["two.json"]
    one, two = report(suite, "one.json"), report(suite, "two.json")
    assert len(reported(one)) == 2
    assert one == two


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_a_test_that_killed_its_worker_is_no_success(suite: Suite) -> None:
    suite.write("test_n.py", "import os\ndef test_x(): os._exit(3)\n")
    suite.run("--tfdevice-report", "r.json", "-n", "1")
    test = reported(report(suite))["test_n.py::test_x"]
    assert test["outcome"] == "error"
    assert "it was not watched: worker 'gw0' crashed" in test["summary"]


UNSHAPED = """
import pytest
from pytest_tfdevice.model import Device, Placement, Record, TensorInfo

def test_x(placement_baseline):
    class Odd: pass
    outputs = (TensorInfo("float32", (Odd(),)),)
    odd = Placement("a", "MatMul", Device.parse("GPU:0"), outputs=outputs)
    placement_baseline.check(Record((odd,)))
"""


def test_a_record_that_can_not_be_reported_does_not_break_the_run(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"test_m.py": UNSHAPED})
    suite.write("test_n.py", "def test_y(): pass\n")
    done = suite.run("--tfdevice-report", "r.json")
    assert done.status == 0, done.output
    (test,) = reported(report(suite)).values()
    assert test["outcome"] == "error"
    assert "its report could not be made: TypeError" in test["summary"]


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_an_interrupt_in_a_worker_is_told_by_the_controller(suite: Suite) -> None:
    suite.write("test_n.py", "def test_x():\n    raise KeyboardInterrupt\n")
    suite.run("--tfdevice-report", "r.json", "-n", "1")
    data = report(suite)
    assert data["ended"]
    assert data["exit_status"] == 2
