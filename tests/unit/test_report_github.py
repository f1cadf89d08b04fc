"""Commands to GitHub Actions: what they say, and that no name can make one of its own."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hostile_reports import CPU, HOSTILE, hostile_report, offending
from hypothesis import given, settings
from random_records import REPORTS

from pytest_tfdevice.model import Placement, SourceLine
from pytest_tfdevice.outputs.github import SUMMARY_LIMIT, Workspace, commands, summarise, tell
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.reports.text import table
from pytest_tfdevice.reports.words import escape
from pytest_tfdevice.serial.run_report import Check, RunReport, TestReport

WHY = Reason("dtype", "MatMul has no GPU kernel for T=int32", "cast int32 to float32")
PLAIN = Workspace(Path("/w/project"), Path("/w"))
PROPERTIES = re.compile(r"::(error|notice) ((?:[a-z]+=[^:,\r\n]*,?)+)::([^\r\n]*)")
"""A command: nothing in a property ends it, nothing in the message ends the line."""


def matmul(line: int, file: str = "model.py") -> Placement:
    return Placement("a", "MatMul", CPU, source=SourceLine(file, line, "call"))


def test_an_annotation_is_at_the_line_of_the_op_in_the_workspace() -> None:
    report = RunReport(tests=(offending(matmul(12), matmul(12), reason=WHY),))
    assert commands(report, PLAIN, with_tests=True) == [
        "::error file=project/model.py,line=12,"
        "title=MatMul ×2 are on CPU%3A0%2C not on GPU%3A dtype::"
        "MatMul has no GPU kernel for T=int32%0Amend: cast int32 to float32"
        "%0Ain tests/test_a.py::test_step"
    ]


def test_a_line_that_many_tests_run_is_annotated_once() -> None:
    tests = [offending(matmul(12), reason=WHY, nodeid=f"t.py::test_{n}") for n in range(6)]
    (command,) = commands(RunReport(tests=tuple(tests)), PLAIN, with_tests=True)
    assert command.endswith("%0Ain t.py::test_0, t.py::test_1, t.py::test_2 and 3 more tests")


def test_percent_signs_are_escaped_once() -> None:
    why = Reason("dtype", "100 % of it", "50%25")
    (command,) = commands(RunReport(tests=(offending(matmul(1), reason=why),)), PLAIN,
                          with_tests=True)  # fmt: skip
    assert "100 %25 of it" in command
    assert "50%2525" in command


def test_an_op_without_a_line_is_annotated_at_its_test() -> None:
    op = Placement("a", "MatMul", CPU)
    report = RunReport(tests=(offending(op, reason=WHY),))
    (command,) = commands(report, PLAIN, with_tests=True)
    assert command.startswith("::error file=project/tests/test_a.py,line=7,")
    assert commands(report, PLAIN, with_tests=False) == []


def test_a_file_outside_the_workspace_is_named_in_the_message_only() -> None:
    report = RunReport(tests=(offending(matmul(3, "/opt/lib/layer.py"), reason=WHY),))
    (command,) = commands(report, PLAIN, with_tests=True)
    assert command.startswith("::error title=")
    assert "::at /opt/lib/layer.py:3%0A" in command


def test_at_most_ten_errors_and_a_count_of_the_rest() -> None:
    tests = tuple(
        offending(*[matmul(n)] * (n + 1), reason=WHY, nodeid=f"t.py::test_{n}") for n in range(14)
    )
    found = commands(RunReport(tests=tests), PLAIN, with_tests=True)
    assert [line.startswith("::error ") for line in found] == [True] * 10 + [False]
    assert "line=13," in found[0], "what is most comes first"
    assert found[-1] == (
        "::notice title=pytest-tfdevice::4 more findings of pytest-tfdevice: see the job summary"
    )


@pytest.mark.parametrize("outcome", ["passed", "watched", "expected"])
def test_what_fails_nothing_is_not_annotated(outcome: str) -> None:
    test = offending(matmul(1), reason=WHY, outcome=outcome, checks=())
    assert commands(RunReport(tests=(test,)), PLAIN, with_tests=True) == []


def test_limits_and_tests_that_could_not_be_judged_are_at_the_test() -> None:
    source = SourceLine("t.py", 4, "test_x")
    limit = Check("memory", "gpu_memory('1 KiB')", "failed", "peak of GPU:0 is 2 KiB")
    tests = (
        TestReport("t.py::test_x", "failed", source=source, checks=(limit,)),
        TestReport("t.py::test_y", "error", source=source, summary="the capture is dead"),
    )
    found = commands(RunReport(tests=tests), PLAIN, with_tests=True)
    assert [line.partition("title=")[2].partition("::")[0] for line in found] == [
        "peak of GPU%3A0 is 2 KiB",
        "the capture is dead",
    ]
    assert all("file=project/t.py,line=4," in line for line in found)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_can_make_a_command(name: str) -> None:
    found = commands(hostile_report(name), PLAIN, with_tests=True)
    assert found
    for line in found:
        assert PROPERTIES.fullmatch(line), line
        assert "##[" not in line
        assert line.isprintable()
        assert len(line) < 12_000


@given(REPORTS)
@settings(deadline=None, max_examples=100)
def test_every_annotation_is_one_command(report: RunReport) -> None:
    for line in commands(report, PLAIN, with_tests=True):
        assert PROPERTIES.fullmatch(line), line


@pytest.mark.parametrize(
    "name", ["::error::x", "a ::stop-commands::t", "##[add-mask]x", "::Error file=a::x"]
)
def test_no_name_makes_a_command_on_the_terminal(name: str) -> None:
    """Where a line is wrapped a name may come to stand at its beginning."""
    from pytest_tfdevice.model import Record

    for text in (escape(name), table(Record((Placement(name, name, CPU),)))):
        assert "##[" not in text
        assert not re.search(r"::(error|stop-commands)", text, re.IGNORECASE)


@pytest.mark.parametrize("text", ["tests/test_a.py::test_error", "std::vector", "# [x]", "a::b"])
def test_what_is_no_command_stays_as_it_is(text: str) -> None:
    assert escape(text) == text


# ------------------------------------------------------------------- the job summary
def summary_to(path: Path, report: RunReport | None = None) -> str:
    report = report or RunReport(tests=(offending(matmul(1), reason=WHY),))
    return summarise(report, {"GITHUB_STEP_SUMMARY": str(path)})


def test_the_summary_is_added_to_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    assert summary_to(path) == ""
    assert path.read_text().startswith("before\n\n### ❌ Where TensorFlow ran: 1 of 1")


def test_a_summary_that_is_nearly_full_is_kept_below_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * (SUMMARY_LIMIT - 5_000))
    tests = tuple(
        offending(matmul(1), reason=WHY, nodeid=f"t.py::test_{n}", text="y" * 900)
        for n in range(500)
    )
    assert summary_to(path, RunReport(tests=tests)) == ""
    assert SUMMARY_LIMIT - 3_000 < path.stat().st_size <= SUMMARY_LIMIT
    assert "left out" in path.read_text()


def test_a_summary_that_is_full_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_bytes(b"x" * (SUMMARY_LIMIT - 100))
    said = summary_to(path)
    assert "no job summary" in said
    assert "1,048,476 bytes, of 1 MiB" in said
    assert path.stat().st_size == SUMMARY_LIMIT - 100


@pytest.mark.parametrize("variable", [{}, {"GITHUB_STEP_SUMMARY": ""}])
def test_a_summary_without_a_file_is_said(variable: dict[str, str]) -> None:
    assert summarise(RunReport(), variable) == "no job summary: GITHUB_STEP_SUMMARY is not set"


def test_a_summary_that_can_not_be_written_is_said(tmp_path: Path) -> None:
    assert "Is a directory" in summary_to(tmp_path)
    assert "No such file or directory" in summary_to(tmp_path / "none" / "summary.md")
    assert "no job summary" in summarise(RunReport(), {"GITHUB_STEP_SUMMARY": "a\0::error::b"})


def test_commands_are_told_on_lines_of_their_own_in_any_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    tell(["::error title=MatMul ×2::a", "::notice title=b::c"])
    assert raw.getvalue() == b"\n::error title=MatMul \\xd72::a\n::notice title=b::c\n"
    tell([])
    assert raw.getvalue().count(b"\n") == 3


def test_a_stream_that_is_closed_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.close()
    monkeypatch.setattr("sys.stdout", stream)
    tell(["::error title=a::b"])


def test_a_workspace_behind_a_link_is_the_same_workspace(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    workspace = Workspace(real / "p", tmp_path / "link")
    assert workspace.file_of(SourceLine("m.py", 1)) == "p/m.py"
