"""PlacementLog and the logging switch on a real TensorFlow.

At log levels 0 and 3, with C stdio buffered and unbuffered: the four ways in which a placement log
is usually lost.
"""

from __future__ import annotations

import pytest
from tf_process import Facts, needs_tensorflow, run

needs_tensorflow()

SCRIPT = """
have_simulated()
import tensorflow as tf
from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.log_window import PlacementLog
from pytest_tfdevice.capture.logging_switch import is_logging
from pytest_tfdevice.capture.output import OutputCapture
from pytest_tfdevice.model import Device

def state():
    return [is_logging(), private.log_flag(context), tf.config.get_soft_device_placement()]

def ops(log):
    return {p.type: p.device.canonical for p in log.placements if p.kind == "placed"}

def soft_placement_works():
    try:
        with tf.device("/GPU:7"):
            tf.constant(1.0) + 1.0
    except Exception:
        return False
    return True

@tf.function
def warm(x):
    return tf.sin(x) * 2.0

@tf.function(jit_compile=True)
def compiled(x):
    return tf.tan(x)

context = private.eager_context()
x = tf.ones([2, 2])
warm(x)
print("user: before")
facts["state before"] = state()

with PlacementLog() as log:
    print("user: first")
    warm(x)
    y = tf.matmul(x, x)
    with tf.device("/CPU:0"):
        z = tf.cos(x)
    sys.stdout.flush()
    os.write(1, b"user: raw\\n")
    print("user: on stderr", file=sys.stderr)
facts["types"] = ops(log)
facts["executed"] = {
    p.op: p.device.canonical for p in log.placements if p.kind == "executed"
}
facts["problems"] = list(log.problems)
facts["eager devices"] = {
    "MatMul": Device.parse(y.device).canonical, "Cos": Device.parse(z.device).canonical
}
facts["state after"] = state()
facts["soft placement works"] = soft_placement_works()

with OutputCapture() as after:
    warm(x); tf.exp(x); tf.function(lambda v: tf.sqrt(v))(x)
facts["output after"] = (after.stdout + after.stderr).decode()

with PlacementLog() as quiet:
    print("user: nothing ran")
facts["silence"] = list(quiet.problems)

try:
    with PlacementLog() as raising:
        tf.acos(x)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    pass
facts["raising"] = ops(raising)
facts["state after raising"] = state()

with PlacementLog() as outer:
    tf.atan(x)
    with PlacementLog() as inner:
        tf.cosh(x)
    facts["inside"] = state()[:2]
    tf.sinh(x)
facts["outer"], facts["inner"] = ops(outer), ops(inner)
facts["state after nesting"] = state()

with PlacementLog():
    warm(x)
with PlacementLog(clear_cache=False) as uncleared:
    warm(x)
facts["uncleared"] = ops(uncleared)

# The same run seen by TensorFlow's graph collection, which needs no text.
@tf.function
def both(v):
    with tf.device("/CPU:0"):
        low = tf.sqrt(v, name="low")
    return tf.nn.softmax(tf.matmul(low, v, name="product")) + tf.reduce_sum(v)
with PlacementLog() as texts:
    context.enable_graph_collection()
    both(x)
    metadata = context.export_run_metadata()
    context.disable_graph_collection()
facts["graphs"] = sorted({
    (node.name, node.op, node.device)
    for entry in metadata.function_graphs
    for node in entry.post_optimization_graph.node
    if node.device
})
facts["texts"] = sorted({(p.op, p.type, p.device.canonical) for p in texts.placements if p.type})

# Somebody called the documented switch late, which sets Python's flag and not C's.
tf.debugging.set_log_device_placement(True)
facts["late state"] = state()
with PlacementLog() as late:
    tf.asin(x)
facts["late"] = ops(late)
facts["state after late"] = state()
print("user: end")
"""


@pytest.fixture(
    scope="module",
    params=[(0, False), (0, True), (3, False), (3, True)],
    ids=["level0-buffered", "level0-unbuffered", "level3-buffered", "level3-unbuffered"],
)
def facts(request: pytest.FixtureRequest) -> Facts:
    level, unbuffered = request.param
    found = run(SCRIPT, level=level, unbuffered=unbuffered)
    found.found["level"] = level
    return found


@pytest.fixture(scope="module")
def on_gpu(facts: Facts) -> str:
    """Where TensorFlow puts what isn't pinned."""
    return f"/job:localhost/replica:0/task:0/device:{'GPU' if facts['simulated'] else 'CPU'}:0"


CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


def test_a_warm_function_shows_its_body(facts: Facts, on_gpu: str) -> None:
    assert facts["types"].get("Sin") == on_gpu
    assert facts["types"].get("Mul") == on_gpu


def test_eager_ops_are_seen_where_they_are(facts: Facts, on_gpu: str) -> None:
    assert facts["types"].get("MatMul") == on_gpu
    assert facts["types"].get("Cos") == CPU


def test_the_log_agrees_with_the_tensors(facts: Facts) -> None:
    for type_, device in facts["eager devices"].items():
        assert facts["types"][type_] == device


def test_the_log_agrees_with_graph_collection(facts: Facts) -> None:
    told = {(name, type_): device for name, type_, device in facts["texts"]}
    graphs = {(name, type_): device for name, type_, device in facts["graphs"]}
    # Not all: an optimiser renames, folds and fuses after the placer has printed.
    common = told.keys() & graphs.keys()
    assert {("low", "Sqrt"), ("product", "MatMul")} <= common
    assert {node: told[node] for node in common} == {node: graphs[node] for node in common}


def test_executed_ops_are_told_at_level_0_only(facts: Facts) -> None:
    executed = facts["executed"]
    assert executed.get("Cos") == (CPU if facts["level"] == 0 else None)
    assert any(t.startswith("__inference_warm") for t in executed) == (facts["level"] == 0)


def test_a_good_window_has_no_problem(facts: Facts) -> None:
    assert facts["problems"] == []


def test_the_probe_is_not_in_the_log(facts: Facts) -> None:
    assert "StringJoin" not in {**facts["types"], **facts["late"], **facts["inner"]}


def test_users_output_comes_back_in_order(facts: Facts) -> None:
    lines = [line for line in facts.stdout.splitlines() if line.startswith("user:")]
    assert lines == [
        "user: before",
        "user: first",
        "user: raw",
        "user: nothing ran",
        "user: end",
    ]
    assert "user: on stderr\n" in facts.stderr


def test_nothing_of_the_log_reaches_the_user(facts: Facts) -> None:
    assert facts.stdout.replace("user: ", "").count(":") == 0
    assert "placer.cc" not in facts.stderr
    assert "Executing op" not in facts.stderr


def test_state_is_what_it_was(facts: Facts) -> None:
    assert facts["state before"] == [False, None, True]
    assert facts["state after"] == [False, None, True]
    assert facts["state after raising"] == [False, None, True]
    assert facts["state after nesting"] == [False, None, True]


def test_soft_placement_still_works(facts: Facts) -> None:
    assert facts["soft placement works"]


def test_nothing_is_logged_afterwards(facts: Facts) -> None:
    assert "Exp" not in facts["output after"]
    assert "Sqrt" not in facts["output after"]
    assert "device:" not in facts["output after"]


def test_silence_is_a_problem(facts: Facts) -> None:
    assert len(facts["silence"]) == 1
    assert "no placement log" in facts["silence"][0]


def test_an_interrupted_window_keeps_what_it_saw(facts: Facts) -> None:
    assert "Acos" in facts["raising"]


def test_windows_nest(facts: Facts) -> None:
    assert {"Atan", "Cosh", "Sinh"} <= facts["outer"].keys()
    assert "Cosh" in facts["inner"]
    assert not {"Atan", "Sinh"} & facts["inner"].keys()
    assert facts["inside"] == [True, True]


def test_without_clearing_the_cache_a_warm_function_is_one_call(facts: Facts) -> None:
    assert "Sin" not in facts["uncleared"]


def test_a_late_documented_switch_is_seen_through_and_kept(facts: Facts) -> None:
    assert facts["late state"] == [False, True, True]
    assert "Asin" in facts["late"]
    assert facts["state after late"] == [False, True, True]


EARLY = """
import tensorflow as tf
from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.log_window import PlacementLog
from pytest_tfdevice.capture.logging_switch import is_logging, placement_logging
from pytest_tfdevice.capture.output import OutputCapture

context = private.eager_context()
with PlacementLog():
    facts["initialised by the window"] = private.context_is_initialized(context)
    tf.config.set_logical_device_configuration(         # still possible inside
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    x = tf.ones([2])
facts["after a window that initialised"] = [is_logging(), private.log_flag(context)]
with OutputCapture() as first:
    tf.exp(x)
facts["first"] = first.stdout.decode()

private.set_c_logging(context, True)                    # as if switched on before the start
private.set_log_flag(context, True)
with PlacementLog() as log:
    tf.sin(x)
facts["sin"] = "Sin" in {p.type for p in log.placements}
facts["on before, on after"] = [is_logging(), private.log_flag(context)]
with placement_logging(False), OutputCapture() as off:
    tf.cos(x)
facts["off"] = off.stdout.decode()
facts["on again"] = [is_logging(), private.log_flag(context)]
with OutputCapture() as on:
    tf.tan(x)
facts["on"] = on.stdout.decode()

class Old:
    pass
for name, call in {
    "context_is_initialized": lambda: private.context_is_initialized(Old()),
    "log_flag": lambda: private.log_flag(Old()),
    "forget_function_options": lambda: private.forget_function_options(Old()),
    "clear_kernel_cache": lambda: private.clear_kernel_cache(Old()),
    "c_function": lambda: private.c_function("TFE_NoSuchThing", "to test", None),
}.items():
    try:
        call()
        facts["missing " + name] = "nothing raised"
    except private.MissingPrivate as error:
        facts["missing " + name] = str(error)
facts["version"] = tf.__version__
"""


@pytest.fixture(scope="module")
def early() -> Facts:
    return run(EARLY, level=3)


def test_a_window_initialises_nothing(early: Facts) -> None:
    assert early["initialised by the window"] is False


def test_logging_is_off_after_a_window_in_which_tensorflow_started(early: Facts) -> None:
    assert early["after a window that initialised"] == [False, None]
    assert early["first"] == ""


def test_logging_that_was_on_stays_on(early: Facts) -> None:
    assert early["sin"]
    assert early["on before, on after"] == [True, True]
    assert "(Tan)" in early["on"]


def test_logging_can_be_switched_off_for_a_block(early: Facts) -> None:
    assert early["off"] == ""
    assert early["on again"] == [True, True]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("context_is_initialized", "Context._context_handle"),
        ("log_flag", "Context._log_device_placement"),
        ("forget_function_options", "Context._thread_local_data.function_call_options"),
        ("clear_kernel_cache", "Context.clear_kernel_cache"),
        ("c_function", "TFE_NoSuchThing"),
    ],
)
def test_a_missing_private_name_is_named_with_the_version(
    early: Facts, function: str, name: str
) -> None:
    message = early[f"missing {function}"]
    assert name in message
    assert f"TensorFlow {early['version']}" in message


MODES = """
import pathlib, pytest
pathlib.Path("test_inner.py").write_text('''
import pytest
import tensorflow as tf
from pytest_tfdevice.capture.log_window import PlacementLog
from pytest_tfdevice.capture.logging_session import open_logging_session

@pytest.fixture(params=["nothing", "capfd", "capsys"])
def other(request):
    return None if request.param == "nothing" else request.getfixturevalue(request.param)

def test_window(other):
    with PlacementLog() as log:
        tf.sin(tf.ones([2]))
        print("mine")
    assert "Sin" in {p.type for p in log.placements}
    assert log.problems == ()
    if other is not None:
        assert other.readouterr().out.strip() == "mine"

def test_session(other):
    graph = tf.Graph()
    with graph.as_default():
        one = tf.constant(1.0, name="one")
    with open_logging_session(graph) as session:
        session.run(one)
    assert set(session.devices_by_op) == {"one"}
    assert session.problems == ()
    if other is not None:
        assert other.readouterr().out == ""

def test_window_when_capturing_is_disabled(capfd):
    with capfd.disabled(), PlacementLog() as log:
        tf.cos(tf.ones([2]))
    assert "Cos" in {p.type for p in log.placements}
    assert log.problems == ()
''')
options = ["-p", "no:cacheprovider", "-p", "no:tfdevice", "-q", "test_inner.py"]
for mode in ("fd", "sys", "tee-sys", "no"):
    facts[mode] = int(pytest.main([*options, f"--capture={mode}"]))
"""


@pytest.fixture(scope="module", params=[0, 3], ids=["level0", "level3"])
def modes(request: pytest.FixtureRequest) -> Facts:
    return run(MODES, level=request.param)


@pytest.mark.parametrize("mode", ["fd", "sys", "tee-sys", "no"])
def test_under_every_capture_mode_of_pytest(modes: Facts, mode: str) -> None:
    assert modes[mode] == 0, modes.stdout
    assert "(Sin)" not in modes.stdout + modes.stderr
