"""``--tfdevice-github``: annotations and a job summary on GitHub Actions, and nowhere else."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from gate_process import LOG, Run, Suite
from pytest_process import run_pytest

MOVED = LOG.replace("test_a/dense/MatMul MatMul GPU:0", "test_a/dense/MatMul MatMul CPU:0")
TITLE = "title=1 operation that counts left GPU%3A0 since the baseline was recorded"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """One of its two tests lost an operation to the CPU."""
    folder = tmp_path / "project"
    folder.mkdir()
    suite = Suite(folder)
    suite.run()
    suite.log(MOVED)
    return suite


def on_github(suite: Suite, *args: str, **env: str) -> Run:
    variables = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(suite.folder.parent),
        "GITHUB_STEP_SUMMARY": str(summary(suite)),
    }
    return suite.run(*args, env={**variables, **env})


def summary(suite: Suite) -> Path:
    return suite.folder.parent / "summary.md"


def commands(done: Run) -> list[str]:
    """Lines that the runner takes for commands."""
    return [line for line in done.output.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize("args", [(), ("-q",), ("-v",), ("--color=yes",), ("-s",), ("-qq",)])
def test_a_failure_is_annotated_on_a_line_of_its_own(suite: Suite, args: tuple[str, ...]) -> None:
    suite.write("test_n.py", "def test_x():\n    print('no end of line', end='')\n")
    done = on_github(suite, *args)
    (command,) = commands(done)
    assert command.startswith(f"::error file=project/test_m.py,line=13,{TITLE}::")
    assert command.endswith("%0Ain test_m.py::test_a")
    assert done.output.splitlines()[-1] == command, "after all that pytest prints"


def test_the_job_summary_is_added_to(suite: Suite) -> None:
    summary(suite).write_text("# of another step\n")
    assert "no job summary" not in on_github(suite).said
    text = summary(suite).read_text()
    assert text.startswith("# of another step\n\n### ❌ Where TensorFlow ran: 1 of 2 judged tests")
    assert "<code>test\\_m.py::test\\_a</code>" in text


def test_a_run_that_went_well_is_summed_up_without_an_annotation(suite: Suite) -> None:
    suite.log(LOG)
    assert commands(on_github(suite)) == []
    assert summary(suite).read_text().startswith("### ✅ Where TensorFlow ran: 2 judged tests kept")


def test_a_run_without_a_marked_test_leaves_nothing(suite: Suite) -> None:
    suite.write("test_m.py", "def test_x(): assert 0\n")
    assert commands(on_github(suite)) == []
    assert not summary(suite).exists()


@pytest.mark.parametrize("elsewhere", ["", "false", "1"])
def test_elsewhere_nothing_is_said(suite: Suite, elsewhere: str) -> None:
    assert commands(on_github(suite, GITHUB_ACTIONS=elsewhere)) == []
    assert not summary(suite).exists()


def test_it_can_be_switched_off(suite: Suite) -> None:
    assert commands(on_github(suite, "--tfdevice-github", "off")) == []
    suite.write("pytest.ini", "[pytest]\ntfdevice_github = off\n")
    done = on_github(suite)
    assert commands(done) == []
    assert "tfdevice: github=off" in done.output
    assert not summary(suite).exists()
    assert len(commands(on_github(suite, "--tfdevice-github", "auto"))) == 1


def test_a_mode_that_is_not_known_is_a_usage_error(suite: Suite) -> None:
    done = on_github(suite, "--tfdevice-github", "always")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "--tfdevice-github (ini: tfdevice_github): 'always' is none of auto, off" in done.said


def test_a_list_of_tests_leaves_nothing(suite: Suite) -> None:
    assert commands(on_github(suite, "--collect-only")) == []
    assert not summary(suite).exists()


def test_a_summary_that_can_not_be_written_is_said_and_fails_nothing(suite: Suite) -> None:
    suite.log(LOG)
    done = on_github(suite, GITHUB_STEP_SUMMARY=str(suite.folder))
    assert done.status == 0
    assert "no job summary: can't write" in done.said
    assert "Is a directory" in done.said
    done = on_github(suite, GITHUB_STEP_SUMMARY="")
    assert "no job summary: GITHUB_STEP_SUMMARY is not set" in done.said


def test_where_the_workspace_is_not_known_files_are_named_from_the_root(suite: Suite) -> None:
    (command,) = commands(on_github(suite, GITHUB_WORKSPACE=""))
    assert command.startswith("::error file=test_m.py,line=13,")


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_under_xdist_the_controller_tells_once(suite: Suite) -> None:
    (command,) = commands(on_github(suite, "-n", "2"))
    assert command.startswith(f"::error file=project/test_m.py,line=13,{TITLE}::")
    assert summary(suite).read_text().count("### ❌ Where") == 1


def test_without_a_terminal_annotations_are_all_that_is_printed(tmp_path: Path) -> None:
    test = """
    import pytest
    def test_x(placement_baseline, nonesuch): pass
    """
    done = run_pytest(
        tmp_path,
        test,
        *("-p", "no:terminal"),
        env={"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)},
    )
    assert done.stdout.strip().startswith("::error file=test_it.py,line=2,title=it was not watched")
    assert len(done.stdout.strip().splitlines()) == 1
    assert "fixture 'nonesuch' not found" in done.stdout


ANNOTATING = """
def pytest_configure(config):
    config.pluginmanager.register(object(), "pytest_github_actions_annotate_failures")
"""


def test_a_test_that_another_plugin_annotates_is_not_annotated_again(suite: Suite) -> None:
    """pytest-github-actions-annotate-failures is at the line of the test already."""
    suite.write("conftest.py", ANNOTATING)
    assert commands(on_github(suite)) == []
    assert summary(suite).read_text().startswith("### ❌")
