"""The Markdown report: what it says, how long it gets, and that names stay text."""

from __future__ import annotations

from html.parser import HTMLParser
from types import MappingProxyType

import pytest
from hostile_reports import CPU, GPU, HOSTILE, hostile_report, offending
from hypothesis import given, settings
from random_records import REPORTS

from pytest_tfdevice.baseline.compare import Change
from pytest_tfdevice.model import DeviceInfo, Placement, SourceLine
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.reports.markdown import COMMENT_LIMIT, page
from pytest_tfdevice.serial.run_report import (
    BaselineCheck,
    Check,
    RunReport,
    SkippedTest,
    TestReport,
)

OURS = {
    *("h3", "h4", "p", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"),
    *("code", "pre", "strong", "details", "summary"),
}
"""The elements that a page is made of."""

WHY = Reason("dtype", "MatMul has no GPU kernel for T=int32", "cast int32 to float32")
MATMUL = Placement("a/MatMul", "MatMul", CPU, source=SourceLine("model.py", 12, "call"))


class Rendered(HTMLParser):
    """A page as a reader sees it."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: list[str] = []
        self.text = ""
        self.loose = ""
        """Text in which GitHub looks for links, mentions and emoji."""
        self.open: list[str] = []
        reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark")
        self.feed(reader.enable(["table", "strikethrough"]).render(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes += [name for name, _ in attrs if name != "style"]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if not {"code", "pre"} & set(self.open):
            self.loose += data


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    text = page(hostile_report(name))
    shown = Rendered(text)
    assert shown.elements <= OURS
    assert (shown.attributes, shown.open) == ([], [])
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert "##[" not in text
    assert all(c.isprintable() or c == "\n" for c in text)
    assert len(text.encode("utf-8")) <= COMMENT_LIMIT


def test_a_name_is_shown_as_it_stands() -> None:
    name = "a|b`c`*d*_e_[f](g)~h~ <i>&amp;</i> \\{x}$y$"
    assert name in Rendered(page(hostile_report(name))).text


def test_github_makes_no_link_mention_or_emoji_of_a_name() -> None:
    shown = Rendered(page(hostile_report(HOSTILE[9]))).loose
    for linked in ("@octocat", "#1", "GH-2", ":tada:", "https://", "www.evil"):
        assert linked not in shown
    assert "octocat" in shown


@given(REPORTS)
@settings(deadline=None, max_examples=60)
def test_any_run_has_a_page_within_its_limit(report: RunReport) -> None:
    for limit in (1_000, 4_000, COMMENT_LIMIT):
        text = page(report, limit)
        assert len(text.encode("utf-8")) <= limit
        assert text.startswith("### ")
    assert Rendered(text).elements <= OURS


def test_the_conclusion_comes_first_then_a_row_for_each_test_then_why() -> None:
    good = TestReport("t.py::test_good", "passed", counting=4, on_target=4, target="GPU")
    bad = offending(MATMUL, MATMUL, reason=WHY)
    report = RunReport("2.21.0", "3.13.0", devices=(DeviceInfo(GPU, simulated=True),),
                       tests=(good, bad))  # fmt: skip
    text = page(report)
    lines = text.splitlines()
    assert lines[0] == "### ❌ Where TensorFlow ran: 1 of 2 judged tests left the device"
    assert lines[2] == "TensorFlow 2.21.0, Python 3.13.0, 1 simulated GPU"
    rows = [line for line in lines if line.startswith("| ")]
    assert [row.split("|")[1].strip() for row in rows] == ["", "❌", "✅"]
    assert [row.split("|")[3].strip() for row in rows[1:]] == ["0 %", "100 %"]
    assert [row.split("|")[4].strip() for row in rows[1:]] == ["2", "0"]
    shown = Rendered(text).text
    for part in ("2 operations on CPU:0: dtype", "MatMul ×2", WHY.evidence, WHY.mend,
                 "model.py:12 in call"):  # fmt: skip
        assert part in shown


def test_changes_since_the_baseline_are_told_the_regressions_first() -> None:
    changes = (
        Change("gained", "a", "Relu", 1, "CPU:0", "GPU:0"),
        Change("lost", "b", "MatMul", 3, "GPU:0", "CPU:0", "dtype"),
    )
    checks = (BaselineCheck("checked", "b.json", "test_x", "simulated GPU", changes),)
    test = TestReport("t.py::test_x", "failed", baselines=checks)
    shown = Rendered(page(RunReport(tests=(test,)))).text
    assert "1 of 1 judged test failed against the baseline" in shown
    assert shown.index("b: MatMul ×3  GPU:0 → CPU:0: dtype") < shown.index("a: Relu")


def test_a_baseline_that_is_missing_is_told() -> None:
    checks = (BaselineCheck("missing", "b.json", "test_x", "simulated GPU"),)
    test = TestReport("t.py::test_x", "failed", baselines=checks)
    assert "there is no baseline b.json, test_x" in Rendered(page(RunReport(tests=(test,)))).text


def test_limits_that_were_exceeded_are_told() -> None:
    check = Check("memory", "gpu_memory('1 KiB')", "failed", "peak of GPU:0 is 2 KiB")
    test = TestReport("t.py::test_x", "failed", checks=(check,),
                      memory=MappingProxyType({"GPU:0": 2048}))  # fmt: skip
    shown = Rendered(page(RunReport(tests=(test,)))).text
    assert "1 of 1 judged test exceeded a limit" in shown
    assert "gpu_memory('1 KiB'): peak of GPU:0 is 2 KiB" in shown


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (RunReport(ran=3), ["no test was watched", "3 tests ran; none was both marked and run"]),
        (RunReport(ended="KeyboardInterrupt"), ["The run ended early (KeyboardInterrupt)"]),
        (RunReport(exit_status=3), ["pytest had an internal error"]),
        (RunReport(exit_status=4), ["pytest was used wrongly"]),
        (RunReport(skipped=(SkippedTest("t.py::x", "no GPU"),)),
         ["1 marked test skipped", "t.py::x: no GPU"]),
        (RunReport(tests=(TestReport("t.py::x", "watched"),)), ["1 test watched, none judged"]),
        (RunReport(tests=(TestReport("t.py::x", "error", summary="the capture is dead"),)),
         ["1 test could not be judged", "the capture is dead"]),
        (RunReport(tests=(TestReport("t.py::x", "expected"),)), ["failed as expected (xfail)"]),
        (RunReport(stale_allow=("Bincount",)), ["excused nothing (1)", "Bincount"]),
    ],
)  # fmt: skip
def test_what_a_reader_must_not_miss(report: RunReport, said: list[str]) -> None:
    shown = Rendered(page(report)).text
    assert all(part in shown for part in said), shown


def test_a_run_without_a_watched_test_is_no_success() -> None:
    assert page(RunReport(ran=3)).startswith("### ⚠️")
    assert page(RunReport(tests=(TestReport("a", "passed"),), ended="x")).startswith("### ⚠️")
    assert page(RunReport(tests=(TestReport("a", "passed"),))).startswith("### ✅")


def test_where_there_is_room_the_failure_is_told_as_on_the_terminal() -> None:
    tests = [
        offending(MATMUL, reason=WHY, nodeid=f"t.py::test_{n}", text=f"text {n}\n  <b> line")
        for n in range(3)
    ]
    shown = Rendered(page(RunReport(tests=tuple(tests)))).text
    assert all(f"text {n}\n  <b> line" in shown for n in range(3))


def test_reasons_go_before_what_the_terminal_said() -> None:
    tests = tuple(
        offending(MATMUL, reason=WHY, nodeid=f"t.py::test_{n}", text="<" * 8_000) for n in range(40)
    )
    text = page(RunReport(tests=tests))
    assert sum(line.startswith("#### ") for line in text.splitlines()) == 40
    assert "<pre>" not in text
    assert "left out" not in text


def test_a_page_of_many_tests_is_cut_and_says_so() -> None:
    tests = tuple(
        offending(MATMUL, reason=WHY, nodeid=f"t.py::test_{n:04}", text="why " * 500)
        for n in range(2000)
    )
    text = page(RunReport(tests=tests))
    assert len(text.encode("utf-8")) <= COMMENT_LIMIT
    assert len(text.encode("utf-8")) > COMMENT_LIMIT * 0.9
    shown = Rendered(text)
    assert "2000 of 2,000 judged tests left the device" in shown.text
    rows = sum(line.startswith("| ❌") for line in text.splitlines())
    told = sum(line.startswith("#### ") for line in text.splitlines())
    assert f"{2000 - told:,} more tests; {2000 - rows:,} rows of the table" in shown.text
    assert shown.open == []
