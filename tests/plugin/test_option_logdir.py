"""``--tfdevice-logdir``: the graphs that watched tests ran, as TensorFlow's own reader has them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pytest_process import HERE, Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """
import numpy as np, pytest, tensorflow as tf
v1 = tf.compat.v1
BIG = np.random.rand(300, 300).astype("float32")

@tf.function
def step(x):
    with tf.name_scope("first"):
        y = tf.tanh(x @ tf.constant(BIG))
    with tf.device("/CPU:0"), tf.name_scope("second"):
        z = tf.linalg.matmul(y, y, transpose_b=True)
    return tf.reduce_sum(z)

@pytest.mark.on_gpu
@pytest.mark.parametrize("n", ["a/b", "a_b"])
def test_scopes(n):
    step(tf.ones([2, 300]))

@pytest.mark.on_gpu(allow=["MatMul"])
def test_traces():
    for rows in (2, 3, 2):
        step(tf.ones([rows, 300]))

@pytest.mark.on_gpu(allow=["MatMul"])
def test_several():
    tf.function(lambda x: tf.sqrt(x), autograph=False)(tf.ones([2]))
    @tf.function
    def other(x):
        return tf.math.sinh(x)
    other(tf.ones([2]))

@pytest.mark.on_gpu
def test_compiled():
    @tf.function(jit_compile=True)
    def compiled(x):
        with tf.device("/CPU:0"):
            return tf.nn.softmax(x @ x)
    compiled(tf.ones([3, 3]))

@pytest.mark.on_gpu
def test_loop():
    rows = tf.data.Dataset.from_tensors(tf.ones([2, 2]))
    @tf.function
    def epoch(w):
        for row in rows:
            w = tf.math.asinh(w @ row)
        return w
    epoch(tf.ones([2, 2]))

def build():
    a = v1.placeholder(tf.float32, [4, 4], name="a")
    b = tf.math.sinh(a, name="first/sinh")
    with tf.device("/CPU:0"):
        c = tf.math.cosh(b, name="second/cosh")
    return a, tf.linalg.matmul(c, a, name="third/out")

@pytest.mark.on_gpu(allow=["Cosh"])
def test_session():
    with tf.Graph().as_default():
        a, out = build()
        with v1.Session() as session:
            feed = {a: np.ones([4, 4])}
            session.run(out, feed)
            asked = v1.RunMetadata()
            traced = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            session.run(out, feed, options=traced, run_metadata=asked)
            assert asked.step_stats.dev_stats
            session.run("first/sinh:0", feed)

@pytest.mark.on_gpu
def test_eager():
    tf.exp([[1.0]])

def test_unmarked():
    step(tf.ones([2, 300]))

@pytest.mark.on_gpu(allow=["MatMul"])
def test_raises():
    step(tf.ones([2, 300]))
    raise RuntimeError("mine")

TRIES = []

@pytest.mark.flaky(reruns=1)
@pytest.mark.on_gpu(allow=["MatMul"])
def test_again():
    TRIES.append(1)
    step(tf.ones([2, 300]))
    assert len(TRIES) == 2
"""
NOT_AGAIN = SUITE.partition("TRIES = []")[0]
HAS_XDIST = importlib.util.find_spec("xdist") is not None
HAS_RERUNS = importlib.util.find_spec("pytest_rerunfailures") is not None


def events(folder: Path) -> dict[str, Any]:
    """What the event files hold, by run."""
    done = subprocess.run(
        [sys.executable, str(HERE / "event_reader.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout)["runs"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("logdir")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_simulated(folder, SUITE if HAS_RERUNS else NOT_AGAIN, "--tfdevice-logdir", "tb")


@pytest.fixture(scope="module")
def found(run: Run, folder: Path) -> dict[str, Any]:
    return {name.removeprefix("test_it.py/"): told for name, told in events(folder / "tb").items()}


def test_the_verdicts_are_what_they_are_without(run: Run) -> None:
    outcomes = {name.split("::")[1]: test.outcome for name, test in run.tests.items()}
    outcomes.pop("test_again", None)
    failing = {"test_scopes[a/b]", "test_scopes[a_b]", "test_raises"}
    assert {name for name, outcome in outcomes.items() if outcome == "failed"} == failing
    assert {outcome for name, outcome in outcomes.items() if name not in failing} == {"passed"}
    assert "requested-elsewhere" in run["test_scopes[a_b]"].said


def test_each_graph_is_a_run_under_its_test(found: dict[str, Any]) -> None:
    names = {name for name in found if not name.startswith(("test_scopes[a_b]-", "test_again"))}
    loop = {name for name in names if name.startswith("test_loop/")}
    assert names - loop == {
        "test_scopes[a_b]/step",
        "test_traces/step",
        "test_traces/step_2",
        "test_several/<lambda>",
        "test_several/other",
        "test_compiled/compiled",
        "test_session/Session.run",
        "test_session/Session.run_2",
        "test_raises/step",
    }
    # The folder of "a/b" can't have that name; it is told apart from the one of "a_b".
    assert len([name for name in found if name.startswith("test_scopes[a_b]-")]) == 1


@pytest.mark.skipif(not HAS_RERUNS, reason="needs pytest-rerunfailures")
def test_each_try_of_a_test_is_kept(found: dict[str, Any]) -> None:
    assert {name for name in found if name.startswith("test_again")} == {
        "test_again/step",
        "test_again~2/step",
    }


def test_nodes_have_the_device_that_they_were_given(found: dict[str, Any]) -> None:
    nodes = found["test_scopes[a_b]/step"]["nodes"]
    devices = {nodes[name]["op"]: nodes[name]["device"] for name in nodes if "/" in name}
    assert devices["Tanh"] == "GPU:0"
    second = [node for name, node in nodes.items() if name.startswith("second/MatMul")]
    assert [node["device"] for node in second] == ["CPU:0"]
    assert {node["device"] for node in nodes.values()} == {"GPU:0", "CPU:0"}


def test_edges_lead_from_one_device_to_the_other(found: dict[str, Any]) -> None:
    nodes = found["test_scopes[a_b]/step"]["nodes"]
    (matmul,) = (node for name, node in nodes.items() if name.startswith("second/MatMul"))
    (tanh,) = (name for name, node in nodes.items() if node["op"] == "Tanh")
    assert matmul["inputs"] == [tanh, tanh]


def test_large_constants_are_left_out_and_that_is_said(found: dict[str, Any]) -> None:
    graph = found["test_scopes[a_b]/step"]
    (big,) = (node for node in graph["nodes"].values() if node["shape"] == [300, 300])
    assert big["left_out"].startswith(
        "value: 360,0"
    )  # 300 · 300 · 4 bytes, and the dtype and shape
    assert graph["bytes"] < 20_000
    assert "1 attributes that TensorBoard would not show are left out, 351.6 KiB" in graph["text"]
    assert "`step` of `test_it.py::test_scopes[a_b]`" in graph["text"]
    assert "on GPU:0" in graph["text"]
    assert "1 on CPU:0" in graph["text"]


def test_small_values_stay(found: dict[str, Any]) -> None:
    nodes = found["test_scopes[a_b]/step"]["nodes"].values()
    small = [node for node in nodes if node["shape"] not in (None, [300, 300])]
    assert small
    assert not any(node["left_out"] for node in small)


def test_what_is_in_a_compiled_function_is_where_it_was_called(found: dict[str, Any]) -> None:
    """XLA ignores the ``tf.device`` in it."""
    nodes = found["test_compiled/compiled"]["nodes"]
    assert {"MatMul", "Softmax"} <= {node["op"] for node in nodes.values()}
    assert {node["device"] for node in nodes.values()} == {"GPU:0"}


def test_the_body_of_a_loop_over_a_dataset_is_a_graph(found: dict[str, Any]) -> None:
    bodies = [told for name, told in found.items() if name.startswith("test_loop/")]
    devices = [
        node["device"]
        for told in bodies
        for node in told["nodes"].values()
        if node["op"] == "Asinh"
    ]
    assert devices == ["GPU:0"]


def test_a_sessions_partitions_are_one_graph(found: dict[str, Any]) -> None:
    graph = found["test_session/Session.run"]
    nodes = graph["nodes"]
    devices = {name: nodes[name]["device"] for name in ("first/sinh", "second/cosh", "third/out")}
    assert devices == {"first/sinh": "GPU:0", "second/cosh": "CPU:0", "third/out": "GPU:0"}
    assert nodes["second/cosh"]["inputs"] == ["first/sinh"]
    assert not {"_Send", "_Recv", "_HostSend", "_HostRecv"} & {n["op"] for n in nodes.values()}
    assert graph["repeated"] == 0


def test_the_statistics_of_a_traced_run_are_there(found: dict[str, Any]) -> None:
    runs = found["test_session/Session.run"]["runs"]
    assert list(runs) == ["run 1"]
    assert {"first/sinh", "second/cosh", "third/out"} <= set(runs["run 1"])
    assert found["test_session/Session.run_2"]["runs"] == {}


def test_the_summary_says_what_was_written(run: Run, found: dict[str, Any], folder: Path) -> None:
    tests = 9 if HAS_RERUNS else 8
    again = sum(name.startswith("test_again/") for name in found)  # its first try isn't counted
    assert f"{len(found) - again} graphs of {tests} tests written: tensorboard --logdir tb" in (
        run.summary
    )
    assert run.header.endswith(f"logdir={folder / 'tb'}")


@pytest.mark.skipif(not HAS_XDIST, reason="needs pytest-xdist")
def test_a_second_run_replaces_what_it_runs(run: Run, found: dict[str, Any], folder: Path) -> None:
    del run, found  # have been
    before = {path for path in (folder / "tb").rglob("*") if path.is_file()}
    done = run_simulated(
        folder, SUITE if HAS_RERUNS else NOT_AGAIN, "-n2", "--tfdevice-watch",
        "-k", "several or raises or eager or unmarked", ini="tfdevice_logdir = tb",
    )  # fmt: skip
    assert "4 graphs of 3 tests written" in done.summary
    after = {path for path in (folder / "tb").rglob("*") if path.is_file()}
    redone = ("test_several", "test_raises")
    unmarked = folder / "tb" / "test_it.py" / "test_unmarked" / "step"
    assert {path.parent for path in after} == {path.parent for path in before} | {unmarked}
    assert {p for p in before & after if p.parts[-3] in redone} == set()
    assert {p for p in before if p.parts[-3] not in redone} <= after


def test_an_error_while_writing_fails_no_test(tmp_path: Path) -> None:
    blocked = tmp_path / "tb" / "test_it.py" / "test_one"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("a file where a folder has to be")
    suite = """
    import pytest, tensorflow as tf
    @pytest.mark.on_gpu
    def test_one():
        tf.function(lambda x: tf.sqrt(x))(tf.ones([2]))
    """
    done = run_simulated(tmp_path, suite, "--tfdevice-logdir", "tb")
    assert done["test_one"].outcome == "passed"
    assert "graphs of test_it.py::test_one: 1 could not be written: " in done.summary
    assert "no graph was written to tb" in done.summary
