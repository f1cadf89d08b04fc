"""``--tfdevice-expected-skips``: marked tests may skip only where the file lists them."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_process import Suite

TESTS = """
import os
import pytest

@pytest.mark.requires_gpu
@pytest.mark.skipif("ALL_RUN" not in os.environ, reason="no GPU here")
@pytest.mark.parametrize("n", [1, 2])
def test_marked(n): pass

@pytest.mark.on_gpu
def test_skips_itself(): pass

@pytest.mark.skip(reason="of no concern")
def test_unmarked(): pass

@pytest.mark.on_gpu
@pytest.mark.xfail(run=False)
def test_expected_to_fail(): pass

def test_runs(): pass
"""
CONFTEST = """
import os
import pytest

def pytest_runtest_setup(item):
    if item.name == "test_skips_itself":
        pytest.skip("by its conftest")

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    # What needs a GPU is not what is tested here.
    from pytest_tfdevice.testwatch import TestWatch
    TestWatch.skip_reason = lambda self, item: None
"""
ALL = ["test_m.py::test_marked[1]", "test_m.py::test_marked[2]", "test_m.py::test_skips_itself"]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path, {"test_m.py": TESTS, "conftest.py": CONFTEST})


def expect(suite: Suite, *lines: str) -> tuple[str, str]:
    suite.write("skips.txt", "\n".join(lines))
    return "--tfdevice-expected-skips", "skips.txt"


@pytest.mark.parametrize("jobs", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_marked_test_that_skips_unlisted_fails(suite: Suite, jobs: tuple[str, ...]) -> None:
    run = suite.run(*expect(suite, ALL[0], ALL[2]), *jobs)
    assert run.status == 1
    failed = {name for name, outcome in run.tests.items() if outcome in ("failed", "error")}
    assert failed == {ALL[1]}
    assert "skips.txt does not list it (Skipped: no GPU here)" in run.said
    assert "1 xfailed" in run.said


def test_listed_ones_may_skip_and_comments_are_none_of_them(suite: Suite) -> None:
    run = suite.run(*expect(suite, "# GPUs", "", f"{ALL[0]}  # one", f"  {ALL[1]}", f"{ALL[2]}\r"))
    assert run.status == 0
    assert run.section == []


def test_patterns_list_several(suite: Suite) -> None:
    assert suite.run(*expect(suite, "test_m.py::test_marked[?]", "*itself")).status == 0


def test_brackets_are_no_pattern(suite: Suite) -> None:
    run = suite.run(*expect(suite, "test_m.py::test_marked[12]", ALL[2]))
    assert run.tests[ALL[0]] == run.tests[ALL[1]] == "error"


@pytest.mark.parametrize("jobs", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_listed_one_that_runs_is_stale(suite: Suite, jobs: tuple[str, ...]) -> None:
    listed = ALL[:2] if not jobs else ["test_m.py::test_marked*"]
    args = expect(suite, ALL[2], "", *listed)
    run = suite.run(*args, *jobs, env={"ALL_RUN": "1"})
    assert run.status == 1
    assert run.tests[ALL[0]] == "passed"
    assert (
        f"stale: {suite.folder}/skips.txt:3: {listed[0]} is listed as an expected skip" in run.said
    )
    assert "and ran" in run.said


def test_a_pattern_of_which_some_skip_is_not_stale(suite: Suite) -> None:
    run = suite.run(*expect(suite, "test_m.py::*"), env={"ALL_RUN": "1"})
    assert run.tests[ALL[0]] == "passed"
    assert (run.status, run.section) == (0, [])


def test_a_listed_one_that_does_not_exist_is_stale(suite: Suite) -> None:
    run = suite.run(*expect(suite, *ALL, "test_m.py::test_of_old"))
    assert run.status == 1
    stale = "skips.txt:4: test_m.py::test_of_old is listed as an expected skip, and there is no"
    assert stale in run.said


def test_deselected_ones_are_not_stale(suite: Suite) -> None:
    assert suite.run(*expect(suite, *ALL), "-k", "test_runs").status == 0
    assert suite.run(*expect(suite, *ALL), "test_m.py::test_runs").status == 0


def test_a_file_that_is_not_there_is_a_usage_error(suite: Suite) -> None:
    run = suite.run("--tfdevice-expected-skips", "nothing.txt")
    assert run.status == 4
    assert "can't read" in run.said
    assert "nothing.txt" in run.said
