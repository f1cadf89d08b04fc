"""``gpu_memory(isolated=True)``: a test in a process of its own is like any other.

Without TensorFlow, of which each process would have to be told anew.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from isolated_suite import CONFTEST, SUITE
from pytest_process import Run, one_line, run_pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("isolated")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_pytest(
        folder,
        {"conftest.py": CONFTEST, "test_it.py": SUITE},
        "-rP",
        f"--junitxml={folder / 'junit.xml'}",
        f"--basetemp={folder / 'temporary'}",
        f"--tfdevice-report={folder / 'report.json'}",
    )


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("test_before", "passed"),
        ("test_pass", "passed"),
        ("test_fail", "failed"),
        ("test_xfail", "xfailed"),
        ("test_xpass_strict", "failed"),
        ("test_xpass", "xpassed"),
        ("test_skip", "skipped"),
        ("test_skip_mark", "skipped"),
        ("test_odd[a::b[c]]", "passed"),
        ("test_odd[sp ace/\\xdf\\n]", "passed"),
        ("test_odd[]", "passed"),
        ("test_odd[-k]", "passed"),
        ("test_odd[@file]", "passed"),
        ("test_odd[]]", "passed"),
        ("test_setup_raises", "error"),
        ("test_teardown_raises", "error"),
        ("test_here", "passed"),
        ("test_method", "passed"),
        ("test_method_fails", "failed"),
        ("test_segfault", "failed"),
        ("test_killed", "failed"),
        ("test_leaves", "failed"),
        ("test_leaves_in_setup", "error"),
        ("test_dies_afterwards", "error"),
        ("test_leaves_a_process_behind", "passed"),
        ("test_is_not_waited_for", "passed"),
        ("test_temporary", "passed"),
        ("test_uses_it", "passed"),
        ("test_last", "error"),
    ],
)
def test_outcomes(run: Run, name: str, outcome: str) -> None:
    assert run[name].outcome == outcome, run[name]


def test_output_warnings_and_properties_are_the_tests(run: Run, folder: Path) -> None:
    sections = dict(run["test_pass"].sections)
    assert sections["Captured stdout call"].split("\n")[:2] == ["to stdout", "of a program"]
    assert sections["Captured stderr call"] == "to stderr\n"
    assert "a log line" in sections["Captured log call"]
    assert "set up in" in sections["Captured stdout setup"]
    assert "test_it.py::test_pass" in run.stdout.split("= warnings summary =")[1]
    assert "UserWarning: a warning of its own" in run.said
    assert 'name="odd" value="an odd one"' in (folder / "junit.xml").read_text()


def test_failures_are_pytests_own(run: Run) -> None:
    assert "assert shared == 2" in run["test_fail"].text
    assert dict(run["test_fail"].sections)["Captured stdout call"] == "before it failed\n"
    assert "RuntimeError: in the fixture" in run["test_setup_raises"].text
    assert "RuntimeError: in the teardown" in run["test_teardown_raises"].text
    assert run["test_skip"].text.endswith("not today")
    assert run["test_skip_mark"].text.endswith("by mark")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_segfault", "died by SIGSEGV before the test's body had ended"),
        ("test_killed", "died by SIGKILL before the test's body had ended"),
        ("test_leaves", "ended with exit status 0 before the test's body had ended"),
        ("test_leaves_in_setup", "ended with exit status 3 before its setup had ended"),
        ("test_dies_afterwards", "died by SIGABRT after the test had ended"),
    ],
)
def test_a_process_that_dies_is_the_tests_failure(run: Run, name: str, text: str) -> None:
    assert f"test_it.py::{name} ran in a process of its own (isolated=True), which {text}" in (
        one_line(run[name].text)
    )


def test_the_last_output_of_a_process_that_died(run: Run) -> None:
    sections = dict(run["test_segfault"].sections)
    assert sections["Captured stdout call"] == "its last words\n"
    assert "Segmentation fault" in sections["Captured stderr call"]
    assert "in test_segfault" in sections["Captured stderr call"]
    assert dict(run["test_leaves"].sections)["Captured stdout call"] == "its last words\n"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("test_segfault", "died by SIGSEGV"),
        ("test_killed", "died by SIGKILL"),
        ("test_leaves", "ended with exit status 0"),
        ("test_leaves_in_setup", "ended with exit status 3"),
    ],
)
def test_a_process_that_dies_is_in_the_report(run: Run, folder: Path, name: str, why: str) -> None:
    """It was not watched to its end, and nobody may take it for one that passed."""
    tests = json.loads((folder / "report.json").read_text())["tests"]
    (test,) = [test for test in tests if test["nodeid"] == f"test_it.py::{name}"]
    assert test["outcome"] == "error"
    assert test["summary"].startswith("it was not watched: ")
    assert why in test["summary"]


@pytest.mark.parametrize("name", ["test_segfault", "test_leaves_in_setup"])
def test_a_process_that_dies_is_in_the_summary(run: Run, name: str) -> None:
    assert f"nothing to judge test_it.py::{name}" in run.summary
    assert re.search(r"\d+ tests could not be judged", run.summary)


def test_what_was_set_up_before_it_ends_after_it(run: Run) -> None:
    """Module fixtures of the run itself outlive an isolated test, and their end is reported."""
    assert "RuntimeError: the module's end" in run["test_last"].text
    assert run.stdout.count("set up in") >= 2


def test_temporary_folders_are_the_runs(run: Run, folder: Path) -> None:
    (file,) = (folder / "temporary").rglob("file")
    assert file.parent.name == "test_temporary0"
    assert list((folder / "temporary").glob("test_uses_it0"))


def test_junit_has_each_test_once(run: Run, folder: Path) -> None:
    cases = [case.get("name") for case in ElementTree.parse(folder / "junit.xml").iter("testcase")]
    assert len(cases) == len(set(cases)) == len(run.tests)
