"""``examples/merge_gate``, start to finish: a pull request that moves an op is stopped."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pytest_process import needs_simulator

from pytest_tfdevice.baseline.entries import minor
from pytest_tfdevice.versions import installed_tensorflow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "merge_gate"
REPOSITORY = EXAMPLE / "repository"
GITHUB = REPOSITORY / ".github" / "workflows" / "gate.yml"
GITLAB = REPOSITORY / ".gitlab-ci.yml"


def loaded_from(folder: Path) -> ModuleType:
    """The script in a folder, as a module."""
    spec = importlib.util.spec_from_file_location("play", folder / "play.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["play"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def play() -> ModuleType:
    return loaded_from(EXAMPLE)


# ---------------------------------------------------------------------------- the whole play


@pytest.fixture(scope="module")
def played() -> subprocess.CompletedProcess[str]:
    needs_simulator()
    inherited = {n: v for n, v in os.environ.items() if not n.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "play.py")],
        env=inherited,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def acts(played: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What was shown of each commit, by its title."""
    parts = re.split(r"^##### \d of \d: (.*)$", played.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def gate(act: str) -> str:
    """``green`` or ``RED``, and the job summary before it."""
    found = re.search(r"^----- job summary\n(.*?)^----- (\w+)$", act, re.MULTILINE | re.DOTALL)
    assert found is not None, act
    return found[2]


def summary(act: str) -> str:
    """The job summary."""
    return act.split("----- job summary\n")[1].split("\n----- ")[0]


def test_it_goes_as_expected(played: subprocess.CompletedProcess[str]) -> None:
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.splitlines()[-1] == (
        "merge gate: as expected: red for 'Masks are whole numbers', green for main and 3 other "
        "commits"
    )


def test_only_the_commit_that_moves_an_op_is_red(acts: dict[str, str]) -> None:
    assert {title: gate(act) for title, act in acts.items()} == {
        "main, as it is": "green",
        "Masks are whole numbers": "RED",
        "Record where the mask is multiplied now": "green",
        "A function of its own for the mask": "green",
        "The table goes to the GPU": "green",
    }


def test_the_red_gate_names_op_reason_line_and_cure(acts: dict[str, str]) -> None:
    act = acts["Masks are whole numbers"]
    assert "mask: BatchMatMulV2  GPU:0 → CPU:0: dtype" in act
    assert "BatchMatMulV2 has no GPU kernel for T=int32" in act
    lines = (REPOSITORY / "ranker.py").read_text().splitlines()
    number = next(n for n, line in enumerate(lines, 1) if "visible = tf.matmul(mask" in line)
    assert re.search(rf"line:\s+\S*ranker\.py:{number}$", act, re.MULTILINE)
    assert "mend:  cast int32 to float32" in act
    assert "FAILED tests/test_ranker.py::test_scores" in act


def test_the_job_summary_says_it_too_and_the_line_is_annotated(acts: dict[str, str]) -> None:
    act = acts["Masks are whole numbers"]
    said = summary(act)
    assert said.startswith("### ❌ Where TensorFlow ran: 1 of 2 judged tests failed against the")
    assert "#### ❌ <code>tests/test\\_ranker.py::test\\_scores</code>" in said
    assert "- ❌ <code>mask: BatchMatMulV2  GPU:0 → CPU:" in said.replace("\n  -", "\n-")
    assert "why: BatchMatMulV2 has no GPU kernel for T=int32" in said
    assert re.search(r"^::error file=ranker\.py,line=\d+,", act, re.MULTILINE)
    assert [title for title, act in acts.items() if "::error" in act] == ["Masks are whole numbers"]


def test_the_mending_commit_is_a_readable_diff_of_the_baseline(acts: dict[str, str]) -> None:
    act = acts["Record where the mask is multiplied now"]
    removed = re.findall(r'^-.*"type": "BatchMatMulV2", "device": "(\S+)"', act, re.MULTILINE)
    added = re.findall(r'^\+.*"BatchMatMulV2", "device": "(\S+)".*("dtype")', act, re.MULTILINE)
    assert (removed, added) == (["GPU:0"], [("CPU:0", '"dtype"')])
    assert "the table is larger than a GPU" not in re.sub(r"(?m)^ .*$", "", act)
    assert "❌ Placement: operations in 2 tests: 1 left the device" in summary(act)
    assert "<code>BatchMatMulV2</code> | 1 | GPU:0 | CPU:0 | dtype |" in summary(act)


def test_of_a_refactor_nothing_is_said(acts: dict[str, str]) -> None:
    assert "placement baselines" not in acts["A function of its own for the mask"]


def test_an_improvement_is_to_be_recorded(acts: dict[str, str]) -> None:
    act = acts["The table goes to the GPU"]
    assert "came to the device: embedding: ResourceGather  CPU:0 → GPU:0" in act
    assert "record the improvement: pytest tests/test_ranker.py::test_scores" in act
    assert "embedding: ResourceGather  CPU:0 → GPU:0" in summary(act)


def test_the_example_is_left_as_it_was(played: subprocess.CompletedProcess[str]) -> None:
    found = {path.name for path in REPOSITORY.iterdir()} - {"__pycache__"}
    assert found == {
        *(".github", ".gitignore", ".gitlab-ci.yml", "pytest.ini", "ranker.py"),
        *("requirements.txt", "tests"),
    }


class Pretended:
    """A repository whose gate says what it is told to say."""

    def __init__(self, status: int, output: str, diff: int = 0) -> None:
        self._results = {"pytest ": (status, output), "pytest-tfdevice ": (diff, "")}

    def shell(self, command: str) -> tuple[int, str]:
        found = (r for name, r in self._results.items() if command.startswith(name))
        return next(found, (0, ""))

    def take_summary(self) -> str:
        return ""


SILENT = "the job summary doesn't say '1 of 2 judged tests failed against the baseline'"


@pytest.mark.parametrize(
    ("repository", "complaints"),
    [
        (Pretended(0, "2 passed"), ["should be red; pytest ended with 0", "no GPU kernel", SILENT]),
        (Pretended(1, "collection error"), ["the output doesn't say", SILENT]),
        (Pretended(1, "", diff=2), ["ended with 2", "the output doesn't say", SILENT]),
    ],
)
def test_a_gate_that_does_not_hold_is_noticed(
    play: ModuleType, repository: Pretended, complaints: list[str]
) -> None:
    found = list(play.judge(repository, play.PULL_REQUESTS[0]))
    assert len(found) == len(complaints)
    for complaint, text in zip(complaints, found, strict=True):
        assert complaint in text


# ------------------------------------------------------------------------ the workflow files


def commands(play: ModuleType) -> list[str]:
    return [play.GATE, *play.RECORDED]


def test_both_workflows_run_the_gate_that_is_played(play: ModuleType) -> None:
    gate, *recorded = commands(play)
    for text in (GITHUB.read_text(), GITLAB.read_text()):
        assert f" {gate}\n" in text
        for command in recorded[:2]:
            assert f" {command}\n" in text
    assert recorded[2] in GITHUB.read_text()


def loaded(path: Path) -> Any:
    return pytest.importorskip("yaml", reason="needs PyYAML").safe_load(path.read_text())


def test_the_workflow_of_github(play: ModuleType) -> None:
    workflow = loaded(GITHUB)
    assert set(workflow[True]) == {"pull_request", "push"}  # YAML 1.1 reads "on" so
    (job,) = workflow["jobs"].values()
    steps = job["steps"]
    assert all(("run" in step) != ("uses" in step) for step in steps)
    run = [line for step in steps for line in step.get("run", "").splitlines()]
    assert run == ["python -m pip install -r requirements.txt", *commands(play)]
    # Nothing of a pull request goes into a shell but by way of the environment.
    assert not any("${{" in line for line in run)
    assert workflow["permissions"] == {"contents": "read"}
    assert job["env"] == {"BASE": "origin/${{ github.base_ref || 'main' }}"}
    assert steps[0]["with"] == {"fetch-depth": 0}
    conditions = [step.get("if", "") for step in steps[3:]]
    assert conditions[0] == ""
    assert all("!cancelled()" in condition for condition in conditions[1:])


def test_the_pipeline_of_gitlab(play: ModuleType) -> None:
    (job,) = loaded(GITLAB).values()
    assert job["before_script"] == ["python -m pip install -r requirements.txt"]
    assert job["script"] == [play.GATE]
    assert job["after_script"][:2] == list(play.RECORDED[:2])
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"] == {"junit": "results.xml"}
    assert job["variables"]["BASE"] == "origin/$CI_MERGE_REQUEST_TARGET_BRANCH_NAME"


def test_what_the_docs_show_is_taken_from_there() -> None:
    docs = (ROOT / "docs/ci.md").read_text() + (ROOT / "README.md").read_text()
    shown = re.findall(r"^```yaml\n(.*?)^```$", docs, re.MULTILINE | re.DOTALL)
    assert len(shown) == 5
    workflows = GITHUB.read_text() + GITLAB.read_text()
    for block in shown:
        assert block in workflows


# ---------------------------------------------------------------------------- the baseline


def test_the_committed_baseline_is_for_tests_that_are_there() -> None:
    data = json.loads((REPOSITORY / "tests/__placements__/test_ranker.json").read_text())
    tests = re.findall(r"def (test_\w+)", (REPOSITORY / "tests/test_ranker.py").read_text())
    assert sorted(data["tests"]) == sorted(tests)
    environments = {frozenset(found) for found in data["tests"].values()}
    assert len(environments) == 1
    assert all(re.fullmatch(r"simulated GPU, TensorFlow 2\.\d+", e) for e in environments.pop())


def test_on_a_tensorflow_that_the_baseline_does_not_know_main_records_its_own(
    tmp_path: Path,
) -> None:
    needs_simulator()
    example = tmp_path / "merge_gate"
    shutil.copytree(EXAMPLE, example, ignore=shutil.ignore_patterns("__pycache__"))
    file = example / "repository/tests/__placements__/test_ranker.json"
    known = json.loads(file.read_text())["tests"]
    key = f"simulated GPU, TensorFlow {minor(str(installed_tensorflow()))}"
    file.write_text(file.read_text().replace(f'"{key}"', '"simulated GPU, TensorFlow 2.99"'))
    (tmp_path / "there").mkdir()
    repository = loaded_from(example).Repository(tmp_path / "there")
    repository.record()
    repository.clone()
    recorded = json.loads((repository.work / "tests/__placements__/test_ranker.json").read_text())
    for test, entries in known.items():
        found = recorded["tests"][test][key]["operations"]
        assert [op["type"] for op in found if op["device"] == "GPU:0"]
        # The words that somebody wrote come along from another entry.
        assert found == entries.get(key, {"operations": found})["operations"]
