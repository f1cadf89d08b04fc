"""What the text channel rests on, asserted of TensorFlow itself.

A failure here says that TensorFlow has changed, not that this package is broken: see which code
rests on the fact (named in each test) and whether it still holds.
"""

from __future__ import annotations

import pytest
from tf_process import Facts, needs_tensorflow, run

needs_tensorflow()

COMMON = """
import ctypes
import tensorflow as tf
from tensorflow.python.eager import context as eager
from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.output import OutputCapture
tf1 = tf.compat.v1

def printed(call):
    with OutputCapture(lambda data: b"") as capture:
        call()
    return {"out": capture.stdout.decode(), "err": capture.stderr.decode()}

def asks_for_absent_gpu():
    with tf.device("/GPU:7"):
        return tf.constant(1.0) + 1.0

def soft():
    try:
        asks_for_absent_gpu()
    except (tf.errors.OpError, RuntimeError):
        return False
    return True

def graph_of(*names):
    graph = tf.Graph()
    with graph.as_default():
        return graph, [tf.constant(1.0, name=name) for name in names]
"""

LATE = (
    COMMON
    + """
x = tf.ones([2, 2])                                     # the context is initialised
facts["soft at first"] = soft()
tf.debugging.set_log_device_placement(True)
facts["getter"] = tf.debugging.get_log_device_placement()
facts["late True"] = printed(lambda: tf.exp(x))
facts["soft after True"] = soft()
tf.debugging.set_log_device_placement(False)
facts["soft after False"] = soft()
facts["soft getter after False"] = tf.config.get_soft_device_placement()
tf.debugging.set_log_device_placement(True)             # mends soft placement
facts["soft mended"] = soft()
private.set_log_flag(eager.context(), None)
private.forget_function_options(eager.context())

private.set_c_logging(eager.context(), True)            # the C function itself
facts["C on"] = printed(lambda: tf.sin(x))
facts["soft with C on"] = soft()
facts["warm"] = printed(lambda: tf.sin(x))
private.set_c_logging(eager.context(), False)
facts["C off"] = printed(lambda: tf.cos(x))
facts["soft with C off"] = soft()

@tf.function
def function(v):
    return tf.tan(v) * 3.0

private.set_c_logging(eager.context(), True)
private.set_log_flag(eager.context(), True)
private.forget_function_options(eager.context())
facts["function, first"] = printed(lambda: function(x))
facts["function, second"] = printed(lambda: function(x))
eager.context().clear_kernel_cache()
facts["function, cleared"] = printed(lambda: function(x))

@tf.function(jit_compile=True)
def compiled(v):
    return tf.atan(v)
facts["compiled"] = printed(lambda: compiled(x))

heard = []
@ctypes.CFUNCTYPE(None, ctypes.c_char_p)
def listener(text):
    heard.append(text.decode())
private.c_function("TF_RegisterLogListener", "to test", None, type(listener))(listener)
tf.cosh(x)
facts["heard"] = heard[:]
"""
)

EARLY = (
    COMMON
    + """
tf.debugging.set_log_device_placement(True)             # before the first op
x = tf.ones([2, 2])
facts["early"] = printed(lambda: tf.exp(x))

graph, (a, b) = graph_of("a", "b")
def config(value):
    return tf1.ConfigProto(log_device_placement=value)

with tf1.Session(graph=graph, config=config(True)) as session:
    facts["first run"] = printed(lambda: session.run(a))
    facts["second run"] = printed(lambda: session.run(b))
    with graph.as_default():
        c = tf.add(a, b, name="c")
    facts["grown run"] = printed(lambda: session.run(c))
with tf1.Session(graph=graph, config=config(True)) as session:
    facts["second Session"] = printed(lambda: session.run(a))
with tf1.Session(graph=graph, config=config(False)) as session:
    facts["config False"] = printed(lambda: session.run(a))
with tf1.Session(graph=graph) as session:
    facts["no config"] = printed(lambda: session.run(a))
"""
)


@pytest.fixture(scope="module", params=[0, 3], ids=["level0", "level3"])
def level(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def late(level: int) -> Facts:
    return run(LATE, level=level)


@pytest.fixture(scope="module")
def early(level: int) -> Facts:
    return run(EARLY, level=level)


def test_fact_1_a_late_switch_logs_nothing_and_says_it_does(late: Facts) -> None:
    """logging_switch"""
    assert late["getter"] is True
    assert "Exp" not in late["late True"]["out"] + late["late True"]["err"]


def test_fact_1_an_early_switch_works(early: Facts) -> None:
    assert "Exp: (Exp): /job:localhost" in early["early"]["out"]


def test_fact_2_a_late_false_switches_soft_placement_off_unseen(late: Facts) -> None:
    """logging_switch: why the public setter is never called."""
    assert late["soft at first"] is True
    assert late["soft after True"] is True
    assert late["soft after False"] is False
    assert late["soft getter after False"] is True
    assert late["soft mended"] is True


def test_fact_3_the_c_function_switches_logging_and_leaves_soft_placement(late: Facts) -> None:
    """private.set_c_logging"""
    assert "Sin: (Sin): /job:localhost" in late["C on"]["out"]
    assert "Cos" not in late["C off"]["out"] + late["C off"]["err"]
    assert late["soft with C on"] is True
    assert late["soft with C off"] is True


def test_fact_4_the_placer_prints_twice_and_a_level_silences_stderr_only(
    late: Facts, level: int
) -> None:
    """log_text.placements_of"""
    assert "Sin: (Sin): /job" in late["C on"]["out"]
    assert ("Sin: (Sin): /job" in late["C on"]["err"]) == (level == 0)
    assert "Executing op" not in late["C on"]["out"]
    assert ("Executing op Sin in device" in late["C on"]["err"]) == (level == 0)


def test_fact_4_a_warm_eager_op_is_an_executing_line_at_most(late: Facts, level: int) -> None:
    assert late["warm"]["out"] == ""
    assert ("Executing op Sin in device" in late["warm"]["err"]) == (level == 0)


def test_fact_5_a_listener_hears_executed_ops_at_every_level_and_no_placer(late: Facts) -> None:
    heard = "\n".join(late["heard"])
    assert "Executing op Cosh in device" in heard
    assert "Cosh: (Cosh)" not in heard


def test_fact_6_a_function_prints_its_body_only_when_instantiated(late: Facts, level: int) -> None:
    """log_window: why the kernel cache is cleared."""
    assert "Tan: (Tan): /job" in late["function, first"]["out"]
    assert late["function, second"]["out"] == ""
    assert ("Executing op __inference_function" in late["function, second"]["err"]) == (level == 0)


def test_fact_7_clearing_the_kernel_cache_instantiates_again(late: Facts) -> None:
    """log_window"""
    assert "Tan: (Tan): /job" in late["function, cleared"]["out"]


def test_a_compiled_function_prints_no_body(late: Facts, level: int) -> None:
    assert "Atan" not in late["compiled"]["out"] + late["compiled"]["err"]
    assert ("Executing op __inference_compiled" in late["compiled"]["err"]) == (level == 0)


def test_fact_8_the_first_run_prints_the_whole_graph_and_later_ones_nothing(early: Facts) -> None:
    """session_log: which runs are captured."""
    assert "a: (Const): /job" in early["first run"]["out"]
    assert "b: (Const): /job" in early["first run"]["out"]
    assert early["second run"]["out"] == ""


def test_fact_8_a_grown_graph_is_printed_whole_again(early: Facts) -> None:
    """session_log"""
    for line in ("a: (Const): /job", "b: (Const): /job", "c: (AddV2): /job"):
        assert line in early["grown run"]["out"]


def test_fact_8_another_session_prints_it_again(early: Facts) -> None:
    assert "b: (Const): /job" in early["second Session"]["out"]


def test_fact_8_a_config_of_false_wins_over_the_debugging_flag(early: Facts) -> None:
    """logging_session, which sets it to True."""
    assert "(Const)" not in early["config False"]["out"]
    assert "(Const): /job" in early["no config"]["out"]
