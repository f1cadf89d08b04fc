"""The fixtures ``placement``, ``placement_session`` and ``tf_devices``; and threads."""

from __future__ import annotations

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """
import threading
import numpy as np
import pytest
import tensorflow as tf
from pytest_tfdevice import PlacementError

def pinned(x):
    with tf.device("/CPU:0"):
        return tf.matmul(x, x)

@tf.function
def block(x):
    with tf.name_scope("block1"):
        x = tf.nn.relu(tf.matmul(x, x, name="product"), name="act")
    with tf.device("/CPU:0"):
        return tf.exp(x, name="pinned")

def random():
    return tf.random.uniform([4, 4])

def test_query(placement):
    x = random()
    with placement.capture() as record:
        block(x)
    assert {"MatMul", "Relu", "Exp"} <= {p.type for p in record.ops}
    assert [p.type for p in record.on("CPU:0") if p.type == "Exp"] == ["Exp"]
    assert {p.type for p in record.on("GPU:0")} >= {"MatMul", "Relu"}
    assert record.on("GPU") == record.on("/device:GPU:0")
    assert [p.op.split("/")[-1] for p in record.of_type("MatMul")] == ["product"]
    assert {p.type for p in record.named("*block1/*")} == {"MatMul", "Relu"}
    assert record.ratio("GPU") == pytest.approx(2 / 3)
    assert record.ratio("CPU") == pytest.approx(1 / 3)
    assert len(record) == len(list(record)) == len(record.ops)
    assert record.calls and record.problems == ()

def test_print(placement, capsys):
    with placement.capture() as record:
        block(random())
    print(record)
    text = capsys.readouterr().out
    assert "on GPU:0" in text and "on CPU:0" in text
    assert "device" in text and "Exp" in text and "test_it.py:" in text
    assert "<table" in record._repr_html_()

def test_explain(placement):
    with placement.capture() as record:
        block(random())
    reason = record.explain("Exp")
    assert reason.code == "requested-elsewhere" and "test_it.py:" in reason.evidence and reason.mend
    with pytest.raises(LookupError, match="is on GPU:0"):
        record.explain("MatMul")
    with pytest.raises(LookupError, match="Conv2D was not seen; seen were"):
        record.explain("Conv2D")

def test_asserts(placement):
    with placement.capture() as record:
        block(random())
    record.assert_on_gpu("MatMul", allow=["Exp"])
    record.assert_on_gpu(min_ratio=0.5)
    record.assert_on_device("CPU", "Exp", min_ratio=0.0)
    with pytest.raises(PlacementError, match="1 of .* operations that count ran on the CPU"):
        record.assert_on_gpu()
    with pytest.raises(PlacementError, match="Conv2D was not seen"):
        record.assert_on_gpu("Conv2D", allow=["Exp"])
    with pytest.raises(AssertionError):
        record.assert_on_device("GPU:1")
    with pytest.raises(ValueError, match="is no device"):
        record.assert_on_device("the GPU")
    with pytest.raises(ValueError, match="no op type"):
        record.assert_on_gpu("a b")
    assert not record.verdict(on="GPU").passed

def test_assert_fails(placement):
    with placement.capture() as record:
        block(random())
    record.assert_on_gpu()

def test_parts(placement):
    x = random()
    with placement.capture() as first:
        tf.exp(x)
    pinned(x)
    with placement.capture() as second:
        pinned(x)
    assert [p.type for p in first.of_type("Exp")] == ["Exp"] and not first.of_type("MatMul")
    assert [p.type for p in second.of_type("MatMul")] == ["MatMul"] and not second.of_type("Exp")

def test_nested(placement):
    x = random()
    with placement.capture() as outer:
        tf.exp(x)
        with placement.capture() as inner:
            pinned(x)
            block(x)
        tf.sin(x)
    assert {p.type for p in inner} >= {"MatMul", "Relu"}
    assert not {"Sin"} & {p.type for p in inner}
    assert {p.type for p in outer} >= {"Exp", "Sin", "MatMul", "Relu"}

def test_overlapping(placement):
    x = random()
    one, two = placement.capture(), placement.capture()
    a = one.__enter__(); tf.exp(x)
    b = two.__enter__(); tf.sin(x)
    one.__exit__(None, None, None); tf.cos(x)
    two.__exit__(None, None, None)
    assert {"Exp", "Sin"} <= {p.type for p in a} and not a.of_type("Cos")
    assert {"Sin", "Cos"} <= {p.type for p in b} and not b.of_type("Exp")

@pytest.mark.on_gpu
def test_capture_inside_a_watched_test(placement):
    x = random()
    with placement.capture() as record:
        pinned(x)
    assert record.on("CPU:0")

def test_not_before_its_end(placement):
    with placement.capture() as record:
        with pytest.raises(RuntimeError, match="still watching"):
            record.ops
        assert "still watching" in str(record)

def test_nothing_ran(placement):
    with placement.capture() as record:
        pass
    assert record.ops == () and record.ratio("GPU") is None
    with pytest.raises(PlacementError, match="nothing ran on TensorFlow"):
        record.assert_on_gpu()

def test_the_body_raises(placement):
    with pytest.raises(ZeroDivisionError):
        with placement.capture() as record:
            tf.exp(random())
            1 / 0
    assert record.of_type("Exp")

def test_wrong_device(placement):
    with pytest.raises(ValueError, match="is no device"):
        with placement.capture(on="GPU/one"):
            pass

def test_parse(placement):
    text = "MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0\\n" \\
           "noise\\nx: (VariableV2): /job:localhost/replica:0/task:0/device:CPU:0\\n"
    record = placement.parse(text)
    assert [(p.op, p.type, str(p.device)) for p in record] == [
        ("MatMul", "MatMul", "GPU:0"), ("x", "VariableV2", "CPU:0")]
    assert placement.parse(text.encode()).ops == record.ops
    assert placement.parse("").ops == () and placement.parse(bytes(range(256))).ops == ()

def test_session(placement_session):
    with tf.Graph().as_default() as graph:
        with tf.device("/CPU:0"):
            x = tf.random.uniform([4, 4], name="x")
        with tf.device("/GPU:0"):
            y = tf.matmul(x, x, name="y")
            n = tf.compat.v1.get_variable("n", [2, 2], tf.int32, use_resource=False)
    with placement_session(graph=graph, memory_fraction=0.5) as session:
        session.run(y)
        where = {p.op: str(p.device) for p in session.placements}
    assert where["y"] == "GPU:0" and where["n"] == "CPU:0"
    assert session.problems == ()

def test_session_is_closed_and_its_output_kept(placement_session, capfd):
    with tf.Graph().as_default():
        session = placement_session()
        print("mine")
        session.run(tf.random.uniform([2, 2]))
    assert "mine" in capfd.readouterr().out
    global OPENED
    OPENED = session

def test_session_was_closed():
    with pytest.raises(RuntimeError, match="closed"):
        OPENED.run(tf.no_op())

def test_session_bad_fraction(placement_session):
    with pytest.raises(ValueError, match="memory_fraction"):
        placement_session(memory_fraction=-1)

def test_devices(tf_devices):
    assert (tf_devices.kind, tf_devices.count) == ("simulated", 2)
    assert tf_devices.tensorflow == tf.__version__ and tf_devices.causes == ()
    assert [str(i.device) for i in tf_devices.gpus] == ["GPU:0", "GPU:1"]
    assert all(i.memory == 2**30 and i.simulated for i in tf_devices.gpus)
    assert "2 simulated GPUs ready" in tf_devices.describe()

def in_thread(*functions):
    threads = [threading.Thread(target=f) for f in functions]
    [t.start() for t in threads]
    [t.join(60) for t in threads]

def test_two_windows_in_two_threads(placement):
    x = random()
    records, barrier = {}, threading.Barrier(2, timeout=60)
    def work(name, op):
        with placement.capture() as records[name]:
            barrier.wait()
            for _ in range(5):
                op(x)
            barrier.wait()
    in_thread(lambda: work("a", tf.exp), lambda: work("b", tf.sin))
    assert {p.type for p in records["a"]} & {"Exp", "Sin"} == {"Exp"}
    assert {p.type for p in records["b"]} & {"Exp", "Sin"} == {"Sin"}

def test_a_thread_without_a_window(placement):
    x = random()
    @tf.function
    def f(x):
        return tf.sin(x) * 2.0
    with placement.capture() as record:
        in_thread(lambda: tf.cos(x), lambda: f(x))
    assert {"Cos", "Sin"} <= {p.type for p in record}

@pytest.mark.on_gpu
def test_a_thread_of_a_marked_test():
    x = random()
    in_thread(lambda: pinned(x))
"""
NAMES = [line[4:].split("(")[0] for line in SUITE.splitlines() if line.startswith("def test_")]
FAILING = {
    "test_assert_fails": ["operations that count ran on the CPU", "requested-elsewhere"],
    "test_capture_inside_a_watched_test": ["judged by on_gpu()", "requested-elsewhere"],
    "test_a_thread_of_a_marked_test": ["operations that count", "MatMul"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(tmp_path_factory.mktemp("fixtures"), SUITE, gpus="2:1 GiB")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in FAILING])
def test_does_as_told(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name].text


@pytest.mark.parametrize("name", FAILING)
def test_fails_as_it_should(run: Run, name: str) -> None:
    assert run[name].outcome == "failed"
    for text in FAILING[name]:
        assert text in run[name].said, run[name].text


def test_the_users_line_is_the_last_of_the_traceback(run: Run) -> None:
    assert "watching.py" not in run["test_assert_fails"].text
