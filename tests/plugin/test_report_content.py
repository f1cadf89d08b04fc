"""What reports hold of tests that ran on TensorFlow, on a simulated GPU: one run, every output."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """\
import pytest, tensorflow as tf

@pytest.mark.on_gpu
@pytest.mark.placement_baseline
def test_good():
    tf.exp([[1.0]])

@pytest.mark.on_gpu
@pytest.mark.gpu_transfers(max_count=0)
def test_bad():
    x = tf.constant([[1.0, 2.0]])
    with tf.device("/CPU:0"):
        tf.exp(x)
    ids = tf.constant([[1, 2]])
    tf.linalg.matmul(ids, ids, transpose_b=True)

@pytest.mark.on_gpu(allow=["Exp"])
@pytest.mark.gpu_memory("1 MiB")
def test_allowed():
    with tf.device("/CPU:0"):
        tf.exp([[1.0]])

@tf.function
def step(x):
    return tf.linalg.inv(x)

@pytest.mark.on_gpu("MatMul")
def test_function_without_matmul():
    step(tf.eye(2))

@pytest.mark.on_gpu
def test_raises():
    tf.exp([[1.0]])
    raise RuntimeError("mine")

@pytest.mark.on_gpu
def test_nothing():
    pass

@pytest.mark.xfail(strict=True)
@pytest.mark.on_gpu
def test_expected():
    with tf.device("/CPU:0"):
        tf.exp([[1.0]])

@pytest.mark.requires_gpu(3)
def test_skipped():
    pass

@pytest.mark.on_gpu
def test_broken(nonesuch):
    pass

def test_unmarked():
    tf.exp([[1.0]])
"""


@dataclass(frozen=True)
class Outputs:
    """What one run left."""

    folder: Path
    run: Run
    data: dict[str, Any]
    markdown: str
    sarif: dict[str, Any]
    summary: str

    def __getitem__(self, test: str) -> dict[str, Any]:
        found: dict[str, Any]
        (found,) = (t for t in self.data["tests"] if t["nodeid"] == f"test_it.py::{test}")
        return found

    @property
    def commands(self) -> list[str]:
        return [line for line in self.run.stdout.splitlines() if line.startswith("::")]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    folder = tmp_path_factory.mktemp("outputs") / "project"
    summary = folder.parent / "summary.md"
    run = run_simulated(
        folder,
        SUITE,
        *(f"--tfdevice-report=out/r.{ending}" for ending in ("json", "md", "sarif")),
        env={
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(folder.parent),
            "GITHUB_STEP_SUMMARY": str(summary),
            "CI": None,
        },
    )
    assert run.status == 1, run.output

    def text(name: str) -> str:
        return (folder / "out" / name).read_text()

    return Outputs(
        folder,
        run,
        json.loads(text("r.json")),
        text("r.md"),
        json.loads(text("r.sarif")),
        summary.read_text(),
    )


def rows(test: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Device and judgement by op."""
    return {
        p["op"]: (p["device"].rpartition("device:")[2], test["judgements"][number])
        for p, number in zip(test["placements"], test["judged"], strict=True)
    }


def test_the_report_keeps_the_published_schema(outputs: Outputs) -> None:
    text = resources.files("pytest_tfdevice").joinpath("schemas/report-1.json").read_text()
    pytest.importorskip("jsonschema").Draft202012Validator(json.loads(text)).validate(outputs.data)


def test_the_outcome_of_each_marked_test(outputs: Outputs) -> None:
    found = {
        t["nodeid"].partition("::")[2]: (t["outcome"], t["pytest_outcome"])
        for t in outputs.data["tests"]
    }
    assert found == {
        "test_allowed": ("passed", "passed"),
        "test_bad": ("failed", "failed"),
        "test_broken": ("error", "failed"),
        "test_expected": ("expected", "skipped"),
        "test_function_without_matmul": ("failed", "failed"),
        "test_good": ("passed", "passed"),
        "test_nothing": ("error", "failed"),
        "test_raises": ("passed", "failed"),
    }
    (skipped,) = outputs.data["skipped"]
    assert skipped["nodeid"] == "test_it.py::test_skipped"
    assert skipped["reason"].startswith("needs 3 GPUs")
    assert outputs.data["ran"] == 9


def test_what_the_run_was_made_on(outputs: Outputs) -> None:
    import tensorflow as tf

    assert outputs.data["tensorflow"] == tf.__version__
    devices = {d["device"].rpartition("device:")[2]: d for d in outputs.data["devices"]}
    assert devices["GPU:0"]["simulated"] is True
    assert devices["GPU:0"]["memory"] == 2**30


def test_each_placement_has_its_reason_and_its_line(outputs: Outputs) -> None:
    test = outputs["test_bad"]
    found = rows(test)
    device, exp = found["Exp"]
    assert (device, exp["counts"], exp["on_target"]) == ("CPU:0", True, False)
    assert exp["reason"]["code"] == "requested-elsewhere"
    assert "test_it.py:12" in exp["reason"]["evidence"]
    assert found["MatMul"][1]["reason"]["code"] == "dtype"
    lines = {p["op"]: p["source"] for p in test["placements"] if "source" in p}
    assert lines["Exp"] == {"file": "test_it.py", "line": 13, "function": "test_bad"}
    assert lines["MatMul"]["line"] == 15
    assert (test["counting"], test.get("on_target", 0)) == (2, 0)
    assert test["source"] == {"file": "test_it.py", "line": 8, "function": "test_bad"}


def test_no_file_of_this_machine_is_named(outputs: Outputs) -> None:
    folder = str(outputs.folder)
    for text in (json.dumps(outputs.data), outputs.markdown, json.dumps(outputs.sarif)):
        assert folder not in text


def test_each_marker_has_its_verdict(outputs: Outputs) -> None:
    checks = {c["marker"]: (c["kind"], c["outcome"]) for c in outputs["test_bad"]["checks"]}
    assert checks == {
        "on_gpu()": ("placement", "failed"),
        "gpu_transfers(max_count=0)": ("transfers", "failed"),
    }
    checks = {c["kind"]: c["outcome"] for c in outputs["test_allowed"]["checks"]}
    assert checks == {"placement": "passed", "memory": "passed"}


def test_what_was_excused_names_its_pattern(outputs: Outputs) -> None:
    _, judgement = rows(outputs["test_allowed"])["Exp"]
    assert judgement["allowed"] == "Exp"
    assert judgement["reason"]["code"] == "requested-elsewhere"
    assert judgement.get("counts", False) is False


def test_memory_and_transfers_in_full(outputs: Outputs) -> None:
    test = outputs["test_bad"]
    (memory,) = test["gpu_memory"]
    assert memory["peak"] == test["memory"]["GPU:0"] > 0
    crossed = [c for c in test["crossings"] if c.get("consumers") == ["Exp"]]
    assert [(c["source"][-5:], c["target"][-5:], c["line"]["line"]) for c in crossed] == [
        ("GPU:0", "CPU:0", 13)
    ]


def test_the_baseline_that_was_recorded(outputs: Outputs) -> None:
    (baseline,) = outputs["test_good"]["baselines"]
    assert (baseline["action"], baseline["test"]) == ("created", "test_good")
    assert baseline["environment"].startswith("simulated GPU, TensorFlow 2.")


def test_the_failure_is_told_as_on_the_terminal(outputs: Outputs) -> None:
    text = outputs["test_bad"]["text"]
    assert text.splitlines()[0] == (
        "2 of 2 operations that count ran on the CPU; 0 % of what counts was on GPU"
    )
    assert text in outputs.run.stdout


def test_a_test_that_could_not_be_watched_is_no_success(outputs: Outputs) -> None:
    assert outputs["test_broken"]["summary"] == (
        "it was not watched: its setup failed: fixture 'nonesuch' not found"
    )
    assert "nothing ran on TensorFlow" in outputs["test_nothing"]["summary"]


def test_the_markdown_says_it_all(outputs: Outputs) -> None:
    head = outputs.markdown.splitlines()[0]
    assert head == (
        "### ❌ Where TensorFlow ran: 2 of 7 judged tests left the device; 1 exceeded a limit; "
        "2 tests could not be judged; 1 test failed as expected (xfail)"
    )
    for part in ("1 operation on CPU:0: dtype", "test\\_it.py:15 in test\\_bad", "needs 3 GPUs"):
        assert part in outputs.markdown
    assert outputs.summary == outputs.markdown


def test_annotations_are_at_the_lines_that_made_the_ops(outputs: Outputs) -> None:
    places = [
        (command.partition(",title=")[0], command.partition("title=")[2].partition("::")[0])
        for command in outputs.commands
    ]
    assert ("::error file=project/test_it.py,line=13",
            "Exp is on CPU%3A0%2C not on GPU%3A requested-elsewhere") in places  # fmt: skip
    assert ("::error file=project/test_it.py,line=15",
            "MatMul is on CPU%3A0%2C not on GPU%3A dtype") in places  # fmt: skip
    assert not any("line=44" in place for place, _ in places), "xfail"
    missing = [title for place, title in places if place.endswith("line=27")]
    assert len(missing) == 1
    assert "MatMul was not seen" in missing[0]


def test_sarif_has_a_result_at_each_of_these_lines(outputs: Outputs) -> None:
    (run,) = outputs.sarif["runs"]
    found = {
        (r["ruleId"], r["level"], location["physicalLocation"]["region"]["startLine"])
        for r in run["results"]
        for location in r["locations"]
    }
    assert {
        ("requested-elsewhere", "error", 13),
        ("dtype", "error", 15),
        ("transfer-limit", "error", 8),
        ("not-seen", "error", 27),
        ("requested-elsewhere", "note", 44),
    } <= found
    assert run["invocations"][0]["executionSuccessful"] is True


WATCHED = """
import pytest, tensorflow as tf

def test_unmarked():
    tf.exp([[1.0]])
    with tf.device("/CPU:0"):
        tf.sin([[1.0]])

def test_session():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [2, 2])
        with tf.device("/CPU:0"):
            y = tf.linalg.inv(x)
        with tf.compat.v1.Session() as session:
            session.run(y, {x: [[1, 0], [0, 1]]})

@pytest.mark.on_gpu
def test_marked():
    tf.exp([[1.0]])

def test_without_tensorflow():
    pass
"""


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_a_watched_run_over_workers(tmp_path: Path) -> None:
    args = ("--tfdevice-watch", "--tfdevice-report=r.json", "--tfdevice-report=r.md", "-n", "2")
    run = run_simulated(tmp_path, WATCHED, *args)
    assert run.status == 0, run.output
    assert run.modules == [], "the controller never imports TensorFlow"
    data = json.loads((tmp_path / "r.json").read_text())
    found = {test["nodeid"].partition("::")[2]: test for test in data["tests"]}
    assert {name: test["outcome"] for name, test in found.items()} == {
        "test_marked": "passed",
        "test_session": "watched",
        "test_unmarked": "watched",
    }
    assert data["ran"] == 4
    assert rows(found["test_unmarked"])["Sin"][1]["reason"]["code"] == "requested-elsewhere"
    assert (found["test_unmarked"]["counting"], found["test_unmarked"]["on_target"]) == (2, 1)
    (inverse,) = (p for p in found["test_session"]["placements"] if p["type"] == "MatrixInverse")
    assert (inverse["origin"], inverse["source"]["line"]) == ("session", 12)
    head = (tmp_path / "r.md").read_text().splitlines()[0]
    assert head.endswith("1 judged test kept to the device; 2 more watched only")
