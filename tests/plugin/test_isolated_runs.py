"""Isolated tests and the run around them: how they are started, and how they or the run end."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from isolated_suite import CONFTEST, SUITE
from pytest_process import run_pytest

MORE = """
import os, pytest

isolated = pytest.mark.gpu_memory(isolated=True)

@isolated
def test_one(request):
    print("one", request.config.rootpath.name, request.config.getoption("verbose"), end=" ")
    print(request.config.getini("console_output_style"), os.environ.get("PYTEST_XDIST_WORKER"))

@isolated
def test_two():
    assert 0

@isolated
def test_three(): pass
"""


def test_live_output(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_it.py": MORE}
    options = ("-s", "-v", "-o", "console_output_style=count", "-k", "one", f"--rootdir={tmp_path}")
    run = run_pytest(tmp_path, files, *options)
    assert f"one {tmp_path.name} 1 count None" in run.stdout
    assert run.stdout.count("test session starts") == 1


def test_a_run_stops_at_the_first_failure(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": MORE}, "-x")
    assert list(run.tests) == ["test_it.py::test_one", "test_it.py::test_two"]
    assert "stopping after 1 failures" in run.stdout


def test_what_failed_last_is_remembered(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_it.py": MORE}
    cached = ("-p", "cacheprovider")
    run_pytest(tmp_path, files, *cached)
    assert list(run_pytest(tmp_path, files, *cached, "--lf").tests) == ["test_it.py::test_two"]


AS_STARTED = """
import pytest

@pytest.mark.gpu_memory(isolated=True)
def test_it(request):
    config = request.config
    assert config.inipath.name == "other.ini"
    assert config.getini("xfail_strict") and config.getini("junit_suite_name") == "named"
    assert config.pluginmanager.has_plugin("early")
    assert config.rootpath == config.invocation_params.dir.parent
"""


def test_it_is_started_as_the_run_was(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    files = {
        "conftest.py": CONFTEST,
        "early.py": "",
        "other.ini": "[pytest]\nxfail_strict = true\n",
        "test_it.py": AS_STARTED,
    }
    options = ("-c", "other.ini", f"--rootdir={tmp_path}", "-o", "junit_suite_name=named")
    run = run_pytest(folder, files, *options, "-p", "early")
    assert run["test_it"].outcome == "passed", run["test_it"].text


def test_the_marker_is_explained(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, "", "--markers").said
    assert "max_growth=None, isolated=False): fail the test when the peak" in said
    assert "`isolated`: run the test in a fresh process" in said


def test_a_skip_that_is_not_expected(tmp_path: Path) -> None:
    suite = """
    import pytest
    isolated = pytest.mark.gpu_memory(isolated=True)

    @isolated
    def test_listed(): pytest.skip("known")

    @isolated
    def test_unlisted(): pytest.skip("not known")
    """
    files = {"conftest.py": CONFTEST, "test_it.py": suite, "skips": "test_it.py::test_listed\n"}
    run = run_pytest(tmp_path, files, "--tfdevice-expected-skips=skips")
    assert run["test_listed"].outcome == "skipped"
    assert run["test_unlisted"].outcome == "failed"
    assert "skips does not list it" in run["test_unlisted"].said
    assert "stale" not in run.stdout


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_a_group_of_xdist(tmp_path: Path) -> None:
    suite = """
    import pytest
    pytestmark = pytest.mark.xdist_group("a")

    @pytest.mark.gpu_memory(isolated=True)
    @pytest.mark.parametrize("x", ["", "b@c"])
    def test_it(x): pass
    """
    files = {"conftest.py": CONFTEST, "test_it.py": suite}
    run = run_pytest(tmp_path, files, "-n2", "--dist", "loadgroup")
    # Some versions of pytest-xdist end the ids of grouped tests with the group.
    assert {name.removesuffix("@a"): test.outcome for name, test in run.tests.items()} == {
        "test_it.py::test_it[]": "passed",
        "test_it.py::test_it[b@c]": "passed",
    }


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_in_workers_of_xdist(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": SUITE + MORE}, "-n2", "-v")
    outcomes = {name: run[name].outcome for name in ("test_pass", "test_fail", "test_segfault")}
    assert outcomes == {"test_pass": "passed", "test_fail": "failed", "test_segfault": "failed"}
    assert "died by SIGSEGV" in run["test_segfault"].text
    assert "1 progress gw" in dict(run["test_one"].sections)["Captured stdout call"]
    assert "a warning of its own" in run.said


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_rerunfailures") is None, reason="needs pytest-rerunfailures"
)
def test_run_again(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": MORE}, "--reruns=2")
    assert "1 failed, 2 passed, 2 rerun" in run.stdout


ELSEWHERE = """
def pytest_addoption(parser):
    parser.addoption("--only-here", default="not given")
"""


INNER = """
import pytest

@pytest.mark.gpu_memory(isolated=True)
def test_inner(request):
    assert request.config.getoption("--only-here", "not given") == "{}"
"""


@pytest.mark.parametrize(
    ("folder", "named", "given"),
    [("inner", ("tests", "inner"), ("--only-here=yes",)), ("a[b]", (".",), ())],
)
def test_options_of_other_folders_and_paths_with_brackets(
    tmp_path: Path, folder: str, named: tuple[str, ...], given: tuple[str, ...]
) -> None:
    for name in (folder, "tests"):
        (tmp_path / name).mkdir()
    if given:
        (tmp_path / "tests" / "conftest.py").write_text(ELSEWHERE)
    text = INNER.format("yes" if given else "not given")
    (tmp_path / folder / "test_inner.py").write_text(text)
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST}, *given, *named)
    assert run["test_inner"].outcome == "passed", run.output


COVERED = """
import os, sys
import measured, pytest

def test_a():
    measured.here()
    os.environ["OF_THE_RUN"] = str(os.getpid())

@pytest.mark.gpu_memory(isolated=True)
def test_b():
    measured.there()
    assert os.environ.get("OF_THE_RUN") != str(os.getpid())
    assert sys.orig_argv[1] == "-c"
"""


@pytest.mark.skipif(importlib.util.find_spec("pytest_cov") is None, reason="needs pytest-cov")
@pytest.mark.parametrize("more", [(), ("-n2",)])
def test_coverage_is_added_up(tmp_path: Path, more: tuple[str, ...]) -> None:
    if more and importlib.util.find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    files = {
        "conftest.py": CONFTEST,
        "measured.py": "def here():\n    return 1\n\ndef there():\n    return 2\n",
        "test_it.py": COVERED,
    }
    options = ("--cov=measured", "--cov-report=term-missing", "--cov-fail-under=100", *more)
    run = run_pytest(tmp_path, files, *options)
    assert run.status == 0, run.output
    assert "measured.py 4 0 100%" in run.said
    assert [file.name for file in tmp_path.glob(".coverage*")] == [".coverage"]
