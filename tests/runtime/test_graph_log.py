"""Which graphs a window hands on, within which bounds, and what is left out of them."""

from __future__ import annotations

import pytest
from tf_process import Facts, needs_tensorflow, run

needs_tensorflow()

SCRIPT = """
import dataclasses
import numpy as np
import tensorflow as tf
from pytest_tfdevice.capture.event_files import describe
from pytest_tfdevice.capture.graph_log import GraphLog
from pytest_tfdevice.capture.window import Window

v1 = tf.compat.v1

def read(graph):
    return v1.GraphDef.FromString(graph.graph)

def names(log):
    return [graph.name for graph in log.graphs]

def node(name, size=0, op="Const"):
    made = v1.NodeDef(name=name, op=op)
    if size:
        made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.ones([size], np.float32)))
    return made

def none(name):
    return None

# --- bounds
log = GraphLog(max_graphs=2)
for number in range(5):
    log.function(f"__inference_f_{number}", [node("a")], none)
facts["as many as allowed"] = [names(log), log.dropped]

many = [node(f"node_{number}") for number in range(1000)]
log = GraphLog(max_bytes=10_000)
for nodes in (many, [node("a")], many, [node("b")]):
    log.function("f", nodes, none)
facts["as large as allowed"] = [names(log), log.dropped]

# --- what is left out
long = node("long", op="PyFunc")
long.attr["token"].s = b"x" * 2000
long.attr["kept"].s = b"x" * 1000
log = GraphLog()
log.function("f", [node("small", 10), node("large", 1000), long], none)
(kept,) = log.graphs
found = {n.name: n for n in read(kept).node}
tensor = found["large"].attr["value"].tensor
facts["large"] = [
    [dim.size for dim in tensor.tensor_shape.dim], tf.dtypes.as_dtype(tensor.dtype).name,
    len(tensor.tensor_content), found["large"].attr["_left_out"].s.decode(),
]
facts["small"] = tf.make_ndarray(found["small"].attr["value"].tensor).tolist()
facts["small says nothing"] = "_left_out" not in found["small"].attr
facts["long"] = [sorted(found["long"].attr), found["long"].attr["_left_out"].s.decode()]
facts["left out"] = [kept.values_left_out, kept.bytes_left_out]

# --- functions that are called, in a compiled one too
@tf.function
def inner(x):
    return tf.nn.softmax(x)

@tf.function(jit_compile=True)
def compiled(x):
    return inner(x) + 1.0

@tf.function(autograph=False)
def looping(x):
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.sin(x)), (0, x))[1]

BIG = np.ones([500], np.float32)

@tf.function
def plain(x):
    return tf.math.sinh(x) + tf.constant(BIG)

def body():
    for _ in range(3):
        compiled(tf.ones([2]))
        looping(tf.ones([2]))
        plain(tf.ones([500]))
    with tf.Graph().as_default(), v1.Session() as session:
        a = v1.placeholder(tf.float32, [], name="a")
        out = tf.math.cosh(a, name="out")
        call = session.make_callable(out, [a])
        call(1.0)
        call(1.0)
        bad = tf.raw_ops.CheckNumerics(tensor=tf.math.log(a * 0.0), message="mine", name="bad")
        try:
            session.run(bad, {a: 1.0})
        except tf.errors.InvalidArgumentError:
            facts["raised"] = True

# --- traced runs
log = GraphLog()
window = Window(graphs=log)
window.open()
with tf.Graph().as_default(), v1.Session() as session:
    a = v1.placeholder(tf.float32, [])
    out = tf.math.cosh(a, name="out")
    for step in range(15):
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE) if step else None
        session.run(out, {a: 1.0}, options=options, run_metadata=v1.RunMetadata())
window.close()
(graph,) = log.graphs
runs = [v1.RunMetadata.FromString(data) for data in graph.runs]
facts["traced"] = [graph.traced, len(runs), len(runs[0].partition_graphs)]
facts["traced ops"] = [
    any(n.node_name == "out" for d in r.step_stats.dev_stats for n in d.node_stats) for r in runs
]
facts["traced text"] = describe(graph, "test_m.py::test_a", "2.0")

log = GraphLog()
window = Window(graphs=log)
window.open()
body()
with_graphs = window.close()
facts["names"] = sorted(names(log))
by_name = {graph.name: read(graph) for graph in log.graphs}
unit = by_name["compiled"]
facts["unit calls"] = [f.signature.name.split("_")[3] for f in unit.library.function]
facts["unit devices"] = sorted(
    {n.device for f in unit.library.function for n in f.node_def} | {n.device for n in unit.node}
)
facts["unit arguments"] = [n.name for n in unit.node if n.op == "_Arg"]
facts["loop"] = sorted({n.op for n in by_name["looping"].node} & {"Sin", "Merge", "Switch"})
facts["sizes"] = {graph.name: len(graph.graph) for graph in log.graphs}
facts["session ops"] = [
    sorted({n.op for n in read(graph).node} & {"Cosh", "CheckNumerics"})
    for graph in log.graphs if graph.name.startswith("Session.run")
]

window = Window()
window.open()
body()
without = window.close()

def told(record):
    return sorted(
        (p.op, p.type, str(p.device), p.origin, p.count) for p in record.placements
    )

facts["the record is the same"] = told(with_graphs) == told(without)
facts["ops"] = len(with_graphs.placements)
facts["problems"] = with_graphs.problems
"""


@pytest.fixture(scope="module")
def facts() -> Facts:
    return run(SCRIPT, level=3)


def test_no_more_graphs_than_allowed(facts: Facts) -> None:
    assert facts["as many as allowed"] == [["f", "f_2"], 3]


def test_no_more_bytes_than_allowed_but_what_fits_is_kept(facts: Facts) -> None:
    assert facts["as large as allowed"] == [["f", "f_2"], 2]


def test_of_a_large_tensor_dtype_and_shape_stay(facts: Facts) -> None:
    shape, dtype, content, left_out = facts["large"]
    assert (shape, dtype, content) == ([1000], "float32", 0)
    assert left_out.startswith("value: 4,0")  # 1000 · 4 bytes, and the dtype and shape


def test_other_large_attributes_go(facts: Facts) -> None:
    names, left_out = facts["long"]
    assert names == ["_left_out", "kept"]
    assert left_out == "token: 2,003 bytes"  # and a tag and a length of 2 bytes
    values, size = facts["left out"]
    assert values == 2
    assert size > 6000


def test_small_ones_stay(facts: Facts) -> None:
    assert facts["small"] == [1.0] * 10
    assert facts["small says nothing"]


def test_each_function_and_session_run_is_one_graph(facts: Facts) -> None:
    assert facts["names"] == ["Session.run", "Session.run_2", "compiled", "looping", "plain"]
    assert facts["session ops"] == [["Cosh"], ["CheckNumerics"]]
    assert facts["raised"]


def test_a_compiled_function_comes_with_what_it_calls(facts: Facts) -> None:
    assert facts["unit calls"] == ["inner"]
    assert facts["unit devices"] == ["/job:localhost/replica:0/task:0/device:CPU:0"]
    assert facts["unit arguments"] == ["x"]


def test_a_loop_is_shown_as_it_ran(facts: Facts) -> None:
    assert "Sin" in facts["loop"]
    assert "Merge" in facts["loop"]


def test_a_graph_is_kept_without_its_large_constants(facts: Facts) -> None:
    assert max(facts["sizes"].values()) < 10_000


def test_of_many_traced_runs_the_first_are_kept(facts: Facts) -> None:
    assert facts["traced"] == [14, 10, 0]
    assert facts["traced ops"] == [True] * 10
    assert "of 14 traced runs, 10 are kept" in facts["traced text"]


def test_the_record_is_the_same_with_and_without(facts: Facts) -> None:
    assert facts["the record is the same"]
    assert facts["ops"] > 8
    assert facts["problems"] == []
