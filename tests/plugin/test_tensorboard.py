"""What ``--tfdevice-logdir`` writes, as the real TensorBoard serves it to its graph page."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_process import needs_simulator, run_simulated

needs_simulator()
if importlib.util.find_spec("tensorboard") is None:
    pytest.skip("needs tensorboard", allow_module_level=True)
STARTS = subprocess.run(
    [sys.executable, "-m", "tensorboard.main", "--version"],
    capture_output=True,
    text=True,
    timeout=120,
    check=False,
)
if STARTS.returncode:  # those before 2.20 need a setuptools that has pkg_resources
    pytest.skip(f"TensorBoard: {STARTS.stderr.splitlines()[-1]}", allow_module_level=True)

SUITE = """
import numpy as np, pytest, tensorflow as tf
v1 = tf.compat.v1
BIG = np.random.rand(300, 300).astype("float32")

@pytest.mark.on_gpu(allow=["MatMul"])
@pytest.mark.parametrize("n", ["a & b/c", "é[1]"])
def test_step(n):
    @tf.function
    def step(x):
        with tf.name_scope("first"):
            y = tf.tanh(x @ tf.constant(BIG))
        with tf.device("/CPU:0"), tf.name_scope("second"):
            return tf.linalg.matmul(y, y, transpose_b=True)
    step(tf.ones([2, 300]))

@pytest.mark.on_gpu
def test_session():
    with tf.Graph().as_default():
        out = tf.math.sinh(v1.random_normal([4, 4]), name="first/sinh")
        with v1.Session() as session:
            traced = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            session.run(out, options=traced, run_metadata=v1.RunMetadata())
"""
SECONDS = 120


@contextlib.contextmanager
def tensorboard(logdir: Path, *options: str) -> Iterator[str]:
    """A TensorBoard on a free port of its own choice; its address."""
    log = logdir.with_name("tensorboard.log")
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}"]
    command += ["--host=127.0.0.1", "--port=0", *options]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        )
    try:
        end = time.monotonic() + SECONDS
        while not (found := re.search(r"at (http://\S+?)/? \(Press", log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.2)
        yield found[1]
    finally:
        process.terminate()
        process.wait(30)


def ask(address: str, what: str, **query: str) -> str:
    url = f"{address}/data/plugin/graphs/{what}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tensorboard")
    done = run_simulated(folder, SUITE, "--tfdevice-logdir", "tb")
    assert done.status == 0, done.output
    return folder / "tb"


@pytest.fixture(scope="module", params=["--load_fast=auto", "--load_fast=false"])
def served(request: pytest.FixtureRequest, logdir: Path) -> Iterator[dict[str, Any]]:
    """What TensorBoard has to say; ``auto`` is its default, which prefers a reader in Rust."""
    with tensorboard(logdir, request.param) as address:
        end = time.monotonic() + SECONDS
        while len(info := json.loads(ask(address, "info"))) < 3:
            assert time.monotonic() < end, info  # it reads in the background
            time.sleep(0.2)
        limits = {"limit_attr_size": "1024", "large_attrs_key": "_too_large_attrs"}
        graphs = {run: ask(address, "graph", run=run, **limits) for run in info}
        (session,) = (run for run in info if "test_session" in run)
        while not info[session]["tags"]:
            assert time.monotonic() < end, info
            info = json.loads(ask(address, "info"))
        metadata = ask(address, "run_metadata", run=session, tag="run 1")
        yield {"info": info, "graphs": graphs, "metadata": metadata}


def devices(graph: str) -> dict[str, str]:
    """The short device of each node, from a graph in text form."""
    nodes = re.findall(r'^node \{\n  name: "(.+?)"(.*?)^\}', graph, re.MULTILINE | re.DOTALL)
    return {
        name: found[1] if (found := re.search(r'^  device: ".*device:(.+?)"', rest, re.M)) else ""
        for name, rest in nodes
    }


def test_each_test_has_its_runs(served: dict[str, Any]) -> None:
    runs = sorted(served["info"])
    assert len([run for run in runs if run.startswith("test_it.py/test_step[")]) == 2
    assert "test_it.py/test_session/Session.run" in runs
    assert all(told["run_graph"] for told in served["info"].values())


def test_nodes_have_devices_to_colour_by(served: dict[str, Any]) -> None:
    graphs = [graph for run, graph in served["graphs"].items() if "test_step" in run]
    assert len(graphs) == 2
    for graph in graphs:
        found = devices(graph)
        assert found["first/Tanh"] == "GPU:0"
        (second,) = (device for name, device in found.items() if "second/MatMul" in name)
        assert second == "CPU:0"
        assert set(found.values()) == {"GPU:0", "CPU:0"}


def test_tensorboard_leaves_no_more_out_than_was(served: dict[str, Any]) -> None:
    for graph in served["graphs"].values():
        assert "_too_large_attrs" not in graph
    step = next(graph for run, graph in served["graphs"].items() if "test_step" in run)
    assert 'key: "_left_out"' in step


def test_a_traced_run_is_there(served: dict[str, Any]) -> None:
    (session,) = (told for run, told in served["info"].items() if "test_session" in run)
    assert session["tags"]["run 1"]["profile"] is True
    assert 'node_name: "first/sinh"' in served["metadata"]
    assert "device:GPU:0" in served["metadata"]
