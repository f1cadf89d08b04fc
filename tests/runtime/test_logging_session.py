"""The logging session on a real TensorFlow."""

from __future__ import annotations

import pytest
from tf_process import Facts, needs_tensorflow, run

needs_tensorflow()

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"

SCRIPT = """
have_simulated(1, "1 GiB")
import threading
import tensorflow as tf
from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.logging_session import open_logging_session
from pytest_tfdevice.capture.output import OutputCapture
from pytest_tfdevice.capture.session_log import DeadCaptureError
tf1 = tf.compat.v1
if facts.get("graph mode"):
    tf1.disable_eager_execution()

def where(session):
    return {op: device.canonical for op, device in session.devices_by_op.items()}

graph = tf.Graph()
with graph.as_default():
    x = tf1.placeholder(tf.float32, [2, 2], name="x")
    with tf.device("/CPU:0"):
        pinned = tf.sin(x, name="pinned")
    product = tf.matmul(x, x, name="product")
    unfetched = tf.cos(x, name="unfetched")
    printed = tf.py_function(lambda t: (print("user: in py_function"), t)[1], [x], tf.float32)
    looped = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
    missing = tf1.placeholder(tf.float32, [], name="missing")
    fails = tf.debugging.check_numerics(x / 0.0, "division")
ones = [[1.0, 1.0], [1.0, 1.0]]

print("user: before")
facts["initialised"] = private.eager_context_exists()
with open_logging_session(graph, memory_fraction=0.25) as session:
    facts["is a Session"] = isinstance(session, tf1.Session)
    facts["default"] = tf1.get_default_session() is session
    facts["before the first run"] = [where(session), session.text, list(session.problems)]
    facts["answer"] = session.run(product, {x: ones}).tolist()
    facts["first"] = where(session)
    facts["graph ops"] = [op.name for op in graph.get_operations()]
    size = len(session.text)
    session.run(product, {x: ones})
    facts["text grew at the second run"] = len(session.text) - size
    with OutputCapture() as raw:
        session.run(product, {x: ones})
    facts["printed at the third run"] = raw.stdout.decode()

    session.run([printed, looped], {x: ones})
    try:
        session.run(fails, {x: ones})
        facts["error"] = None
    except tf.errors.InvalidArgumentError as error:
        facts["error"] = type(error).__name__
    facts["after the error"] = where(session) == facts["first"]

    later = tf.tan(x, name="later")
    later.eval({x: ones})
    facts["grown"] = where(session).get("later")
    facts["each once"] = len(session.placements) == len(set(session.placements))

    call = session.make_callable(tf.exp(x, name="called"), [x])
    facts["callable"] = [call(ones).tolist(), call(ones).tolist()]
    facts["called"] = where(session).get("called")
    grown_by = tf.atan(x, name="grown_by")
    call(ones)                                          # places the grown graph, or leaves it be
    session.run(grown_by, {x: ones})
    facts["known to the run"] = where(session).get("grown_by")
    handle = session.partial_run_setup([product, unfetched], [x])
    facts["partial"] = session.partial_run(handle, product, {x: ones}).tolist()
    facts["problems"] = list(session.problems)
    facts["growths"] = session.log.growths
    facts["notes"] = list(session.notes)
    facts["devices"] = [[info.device.canonical, info.memory] for info in session.devices]
    facts["memory limit"] = dict(session.memory_limit)
    facts["asked"] = session.memory_fraction_asked
    facts["has text"] = "product" in session.text
print("user: after")

# A graph that raises in its very first run is placed all the same.
broken = tf.Graph()
with broken.as_default():
    bad = tf.debugging.check_numerics(tf.constant(1.0, name="one") / 0.0, "division", name="bad")
with open_logging_session(broken) as session:
    try:
        session.run(bad)
    except tf.errors.InvalidArgumentError:
        pass
    facts["raised at first"] = where(session)

# Hard placement on a device that isn't there.
hard = tf.Graph()
with hard.as_default(), tf.device("/GPU:7"):
    nowhere = tf.constant(1.0) + 1.0
with open_logging_session(hard, allow_soft_placement=False) as session:
    try:
        session.run(nowhere)
        facts["hard"] = None
    except tf.errors.InvalidArgumentError as error:
        facts["hard"] = "Cannot assign a device" in error.message
    facts["hard log"] = where(session)
print("user: after the hard error")

with open_logging_session(graph, log_device_placement=False) as session:
    session.run(product, {x: ones})
    try:
        session.placements
        facts["dead"] = None
    except DeadCaptureError as error:
        facts["dead"] = str(error)
    facts["dead problems"] = list(session.problems)

config = tf1.ConfigProto(allow_soft_placement=False, log_device_placement=False)
config.graph_options.place_pruned_graph = True
with open_logging_session(graph, config=config) as session:
    session.run(product, {x: ones})
    facts["pruned"] = sorted(where(session))
    session.run(unfetched, {x: ones})
    facts["pruned later"] = where(session).get("unfetched")
    facts["pruned problems"] = list(session.problems)
facts["config kept"] = not config.log_device_placement and not config.allow_soft_placement

# Threads that need each other: neither may wait for the other's capture.
queued = tf.Graph()
with queued.as_default():
    queue = tf1.FIFOQueue(1, [tf.float32])
    put, take = queue.enqueue(tf.constant(1.0)), queue.dequeue()
with open_logging_session(queued) as session:
    taken = []
    taker = threading.Thread(target=lambda: taken.append(float(session.run(take))), daemon=True)
    taker.start()
    session.run(put)
    taker.join(60)
    facts["taken"] = taken
    facts["queue ops"] = len(where(session)) == len(queued.get_operations())

server = tf1.train.Server.create_local_server()
with open_logging_session(graph, target=server.target) as session:
    session.run(product, {x: ones})
    facts["server"] = where(session).get("product")
    facts["server problems"] = list(session.problems)

for wrong in (0.0, -1.0, float("nan"), float("inf")):
    try:
        open_logging_session(graph, memory_fraction=wrong)
        facts[f"fraction {wrong}"] = "accepted"
    except ValueError as error:
        facts[f"fraction {wrong}"] = "refused"
print("user: end")
"""


@pytest.fixture(
    scope="module",
    params=[(0, False, False), (3, False, True), (3, True, False)],
    ids=["level0-buffered", "level3-buffered-graph-mode", "level3-unbuffered"],
)
def facts(request: pytest.FixtureRequest) -> Facts:
    level, unbuffered, graph_mode = request.param
    return run(f"facts['graph mode'] = {graph_mode}\n{SCRIPT}", level=level, unbuffered=unbuffered)


@pytest.fixture(scope="module")
def on_gpu(facts: Facts) -> str:
    return GPU if facts["simulated"] else CPU


def test_it_is_a_session(facts: Facts) -> None:
    assert facts["is a Session"]
    assert facts["default"]
    assert facts["answer"] == [[2.0, 2.0], [2.0, 2.0]]


def test_before_the_first_run_there_is_nothing(facts: Facts) -> None:
    assert facts["before the first run"] == [{}, "", []]


def test_the_first_run_tells_the_whole_graph(facts: Facts, on_gpu: str) -> None:
    assert set(facts["graph ops"]) <= set(facts["first"])
    assert facts["first"]["pinned"] == CPU
    assert facts["first"]["product"] == on_gpu
    assert facts["first"]["unfetched"] == on_gpu


def test_later_runs_print_and_capture_nothing(facts: Facts) -> None:
    assert facts["text grew at the second run"] == 0
    assert facts["printed at the third run"] == ""


def test_a_grown_graph_is_told_again_and_each_op_once(facts: Facts, on_gpu: str) -> None:
    assert facts["grown"] == on_gpu
    assert facts["growths"] == 3
    assert facts["each once"]


def test_a_callable_is_seen(facts: Facts, on_gpu: str) -> None:
    assert facts["called"] == on_gpu
    assert facts["callable"][0] == facts["callable"][1]
    assert facts["known to the run"] == on_gpu


def test_a_partial_run_works(facts: Facts) -> None:
    assert facts["partial"] == [[2.0, 2.0], [2.0, 2.0]]


def test_a_run_that_raises_loses_nothing(facts: Facts) -> None:
    assert facts["error"] == "InvalidArgumentError"
    assert facts["after the error"]


def test_a_first_run_that_raises_is_placed(facts: Facts) -> None:
    assert {"one", "bad"} <= facts["raised at first"].keys()


def test_a_hard_placement_error_is_raised_and_tells_nothing(facts: Facts) -> None:
    assert facts["hard"] is True
    assert facts["hard log"] == {}


def test_a_good_session_has_no_problem(facts: Facts) -> None:
    assert facts["problems"] == []
    assert facts["has text"]


def test_the_users_output_appears_without_the_log(facts: Facts) -> None:
    lines = [line for line in facts.stdout.splitlines() if line.startswith("user:")]
    assert lines == [
        "user: before",
        "user: in py_function",
        "user: after",
        "user: after the hard error",
        "user: end",
    ]
    assert "(MatMul)" not in facts.stdout + facts.stderr
    assert "placer.cc" not in facts.stderr


def test_a_session_that_logs_nothing_is_no_success(facts: Facts) -> None:
    assert "printed no placement log" in facts["dead"]
    assert facts["dead problems"] == [facts["dead"]]


def test_a_config_is_followed_and_not_changed(facts: Facts, on_gpu: str) -> None:
    assert facts["config kept"]
    assert "product" in facts["pruned"]
    assert "unfetched" not in facts["pruned"]
    assert facts["pruned later"] == on_gpu
    assert facts["pruned problems"] == []


def test_threads_that_need_each_other(facts: Facts) -> None:
    assert facts["taken"] == [1.0]
    assert facts["queue ops"]


def test_a_server_in_this_process(facts: Facts) -> None:
    assert facts["server"] is not None
    assert facts["server"].startswith("/job:localhost/replica:0/task:0/device:")
    assert facts["server problems"] == []


def test_the_devices_and_the_limit_in_force(facts: Facts) -> None:
    names = [name for name, _ in facts["devices"]]
    assert CPU in names
    assert facts["asked"] == 0.25
    if facts["simulated"] and not facts["initialised"]:
        assert facts["memory limit"] == {GPU: 2**28}
        assert facts["notes"] == []
    elif facts["simulated"]:
        # In newer versions building tf.while_loop initialises TensorFlow, GPUs and all.
        assert facts["memory limit"] == {GPU: 2**30}
        (note,) = facts["notes"]
        assert "memory_fraction 0.25 is not in force on GPU:0" in note
        assert "set by what came first and was not watched: TensorFlow's eager runtime" in note
    else:
        assert facts["memory limit"] == {}
        assert "no GPU" in facts["notes"][0]


@pytest.mark.parametrize("fraction", ["0.0", "-1.0", "nan", "inf"])
def test_an_impossible_fraction_is_refused(facts: Facts, fraction: str) -> None:
    assert facts[f"fraction {fraction}"] == "refused"
