"""The HTML report without a browser: what is embedded comes out again, and nothing else gets in."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hostile_reports import HOSTILE, hostile_report
from hypothesis import given
from hypothesis import strategies as st
from random_records import REPORTS

from pytest_tfdevice.model import (
    Device,
    DeviceInfo,
    DeviceScope,
    DeviceSpec,
    Placement,
    SourceLine,
    TensorInfo,
)
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.reports.html import columns, data, embedding, page
from pytest_tfdevice.reports.html.columns import COUNTS, OFF, Row
from pytest_tfdevice.reports.html.rows import rows
from pytest_tfdevice.serial.run_report import (
    Check,
    Judgement,
    Operation,
    RunReport,
    TestReport,
)
from pytest_tfdevice.transfers import Transfer

CPU, GPU = Device.parse("CPU:0"), Device.parse("GPU:0")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class Reader(HTMLParser):
    """The scripts and styles of a page, and the elements beside them, as a browser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.data: dict[str, Any] = {}
        self.code: list[tuple[str, str]] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: tuple[str, dict[str, str | None]] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def handle_data(self, text: str) -> None:
        if self._open is None:
            return
        tag, attributes = self._open
        if attributes.get("type") == "application/json":
            self.data[attributes["id"] or ""] = json.loads(text)
        else:
            self.code.append((tag, text))

    @property
    def policy(self) -> str:
        return next(
            str(attributes["content"])
            for tag, attributes in self.elements
            if attributes.get("http-equiv") == "Content-Security-Policy"
        )


def report(*tests: TestReport) -> RunReport:
    gpu = DeviceInfo(GPU, "Simulated GPU", 16 * 2**30, (8, 0), True)
    return RunReport("2.21.0", "3.13.5", devices=(DeviceInfo(CPU), gpu), tests=tests)


def hostile(text: str) -> RunReport:
    """A report that says ``text`` wherever somebody else's text can stand."""
    found = hostile_report(text)
    crossing = Transfer(text, text, (2,), GPU, CPU, consumers=(text,), line=SourceLine(text, 1))
    full = replace(found.tests[0], target=text, memory={text: 1}, crossings=(crossing,))
    summed = TestReport(text, "failed", operations=(Operation(text, text, text, 1, text),))
    return replace(found, tests=(full, summed))


# --- embedding ------------------------------------------------------------------------------


@given(JSON)
def test_json_comes_out_as_it_went_in(value: Any) -> None:
    assert json.loads(embedding.embedded_json(value)) == value


@given(JSON)
def test_json_has_no_markup_and_no_line_end_of_javascript(value: Any) -> None:
    text = embedding.embedded_json(value)
    assert text.isascii()
    assert not set(text) & set("<>&\n\r")


@pytest.mark.parametrize("end", ["</script>", "</SCRIPT ", "</style", "<!-- x"])
def test_code_that_would_end_its_element_is_refused(end: str) -> None:
    with pytest.raises(ValueError, match="can't stand in a script"):
        embedding.embedded_code(f"let a = '{end}'")


# --- the page -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_adds_no_element(text: str) -> None:
    plain, found = Reader(page(hostile("plain"))), Reader(page(hostile(text)))
    assert found.elements == plain.elements
    assert found.code == plain.code
    assert set(found.data) == {"run", "test-0", "test-1"}


@given(REPORTS)
def test_a_page_is_made_of_any_report(random: RunReport) -> None:
    text = page(random)
    text.encode("utf-8")
    found = Reader(text)
    assert len(found.data) == 1 + len(random.tests)
    assert len(found.data["run"]["tests"]) == len(random.tests)


def test_the_policy_lets_the_page_run_its_own_code_and_nothing_else() -> None:
    found = Reader(page(report()))
    hashes = {
        tag: [
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for kind, text in found.code
            if kind == tag
        ]
        for tag in ("script", "style")
    }
    rules = dict(rule.split(" ", 1) for rule in found.policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == hashes["script"]
    assert rules["style-src"].split() == hashes["style"]
    assert "unsafe" not in found.policy


def test_nothing_is_loaded_from_elsewhere() -> None:
    found = Reader(page(report()))
    loading = {"src", "href", "srcset", "action", "data", "poster"}
    loaded = [a[n] for _, a in found.elements for n in loading & set(a)]
    assert [url for url in loaded if not str(url).startswith("#")] == []
    assert "@import" not in page(report())
    assert "url(" not in page(report())


def test_the_conclusion_stands_in_the_page_without_any_script() -> None:
    failed = TestReport(
        "t.py::test_a", "failed", checks=(Check("placement", "on_gpu()", "failed"),)
    )
    text = page(report(failed, TestReport("t.py::test_b", "passed")))
    assert '<h1 id="conclusion">1 of 2 judged tests left the device</h1>' in text


# --- the data -------------------------------------------------------------------------------


def test_the_conclusion_begins_like_a_sentence() -> None:
    assert data.conclusion(report()) == "No test was watched"


def test_what_failed_comes_first_and_each_test_has_its_own_data() -> None:
    tests = [
        TestReport(f"t.py::{o}", o) for o in ("watched", "passed", "expected", "error", "failed")
    ]  # type: ignore[arg-type]
    found = Reader(page(report(*tests))).data
    order = ["t.py::failed", "t.py::error", "t.py::expected", "t.py::passed", "t.py::watched"]
    assert [test["id"] for test in found["run"]["tests"]] == order
    assert [found[f"test-{n}"]["id"] for n in range(5)] == order


def test_a_placement_has_what_is_said_of_it() -> None:
    placement = Placement(
        "block/dense_1/MatMul",
        "MatMul",
        CPU,
        origin="function",
        inputs=(TensorInfo("int32", (8, None)), TensorInfo("int32")),
        outputs=(TensorInfo("int32", ()),),
        request=DeviceScope(DeviceSpec.parse("GPU:0"), SourceLine("m.py", 3)),
        source=SourceLine("m.py", 7),
        function="step",
        count=5,
    )
    reason = Reason("dtype", "no kernel for int32", "cast to float32")
    judgement = Judgement("counts", "asked for a GPU", True, False, reason=reason)
    test = TestReport(
        "t.py::t", "failed", placements=(placement,), judgements=(judgement,), judged=(0,)
    )
    assert list(rows(test)) == [
        Row(
            scope="block/dense_1",
            name="MatMul",
            type="MatMul",
            device="CPU:0",
            reason="dtype",
            evidence="no kernel for int32",
            mend="cast to float32",
            standing="counts (asked for a GPU)",
            file="m.py",
            function="step",
            tensors="int32[8, ?], int32 → int32[]",
            request="GPU:0 at m.py:3",
            line=7,
            runs=5,
            off=True,
        )
    ]


@pytest.mark.parametrize(
    ("judgement", "standing", "flags"),
    [
        (Judgement("counts", "makes float32", counts=True), "counts (makes float32)", COUNTS),
        (Judgement("structural", "constant"), "does not count: structural (constant)", 0),
        (Judgement("counts", on_target=False, allowed="Where"), "allowed by 'Where'", OFF),
        (Judgement("host", on_target=False), "does not count: host", OFF),
    ],
)
def test_the_standing_of_a_placement(judgement: Judgement, standing: str, flags: int) -> None:
    test = TestReport(
        "t", "passed", placements=(Placement("a", "A", CPU),), judgements=(judgement,), judged=(0,)
    )
    (row,) = rows(test)
    assert (row.standing, row.flags) == (standing, flags)


def test_without_placements_the_sums_are_shown() -> None:
    operation = Operation("block/dense", "MatMul", "GPU:0", 12)
    test = TestReport("t.py::t", "passed", operations=(operation,))
    assert list(rows(test)) == [
        Row("block/dense", "", "MatMul", "GPU:0", standing="counts", weight=12)
    ]


def test_off_is_what_is_not_on_the_device_that_is_meant() -> None:
    operations = tuple(Operation("", "MatMul", d) for d in ("CPU:0", "GPU:0", "GPU:1", "unknown"))
    for target, off in (
        ("GPU", [True, False, False, True]),
        ("GPU:1", [True, True, False, True]),
        ("CPU:0", [False, True, True, True]),
    ):
        test = TestReport("t.py::t", "failed", target=target, operations=operations)
        assert [row.off for row in rows(test)] == off


def test_columns_keep_each_text_once() -> None:
    found = columns.columns([Row("a", "b", "b", off=True), Row("a", "c", "b", counts=False)])
    assert found["texts"] == ["", "a", "b", "c"]
    assert (found["scope"], found["name"], found["type"]) == ([1, 1], [2, 3], [2, 2])
    assert found["flags"] == [COUNTS | OFF, 0]


@given(st.text())
def test_no_control_character_reaches_the_reader(text: str) -> None:
    found = Reader(page(hostile(text))).data["test-0"]
    for shown in found["operations"]["texts"]:
        assert shown.isprintable()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", found["summary"])


# --- what others wrote ----------------------------------------------------------------------


def test_what_is_vendored_is_what_was_published_and_has_its_licence() -> None:
    vendor = Path(page.__globals__["HERE"]) / "vendor"
    versions = json.loads((vendor / "VERSIONS.json").read_text(encoding="utf-8"))
    listed = {name: sha for entry in versions.values() for name, sha in entry["sha256"].items()}
    files = {p.name for p in vendor.iterdir()} - {"VERSIONS.json"}
    assert files == set(listed)
    for name, sha in listed.items():
        assert hashlib.sha256((vendor / name).read_bytes()).hexdigest() == sha
    for entry in versions.values():
        assert entry["licence"] in ("ISC", "MIT", "BSD-3-Clause")
        assert any(name.endswith(".LICENSE") for name in entry["sha256"])


def test_the_page_carries_the_licence_of_what_it_carries() -> None:
    assert "Copyright 2010-2026 Mike Bostock" in page(report())
    assert "Permission to use, copy, modify" in page(report())


def test_scripts_never_make_markup_of_text() -> None:
    scripts = Path(page.__globals__["HERE"]) / "scripts"
    for script in scripts.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
