"""After a watched test everything of TensorFlow and of the process is as it was before."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

CONFTEST = """
import json, os
import pytest

def soft_placement_works(tf):
    try:
        with tf.device("/GPU:7"):
            tf.add(tf.constant(1.0), 1.0)
    except Exception:
        return False
    return True

def state():
    import tensorflow as tf
    from tensorflow.python.client import session
    from tensorflow.python.eager import context, execute
    ctx = context.context()
    base = vars(session.BaseSession)
    return {
        "soft placement": tf.config.get_soft_device_placement(),
        "soft placement works": soft_placement_works(tf),
        "log placement": tf.debugging.get_log_device_placement(),
        "log flag": ctx._log_device_placement,
        "descriptors": sorted(
            (fd, os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
            for fd in map(int, os.listdir("/proc/self/fd")) if os.path.exists(f"/proc/self/fd/{fd}")
        ),
        "environment": {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
        "session": {k: id(v) for k, v in base.items() if not k.startswith("__")},
        "callable": id(base["_Callable"].__call__),
        "execute": [id(execute.execute), execute.execute is execute.quick_execute],
        "callbacks": len(ctx.op_callbacks),
        "context": sorted(k for k in vars(ctx) if callable(vars(ctx)[k]) or k.startswith("e")),
        "stdout": [id(os.sys.stdout), id(os.sys.stderr)],
        "device": ctx.device_name,
    }

@pytest.fixture(autouse=True)
def watch_state(request):
    import tensorflow as tf
    tf.add(1.0, 1.0)
    before = state()
    yield
    after = state()
    changed = {k: [v, after[k]] for k, v in before.items() if v != after[k]}
    with open("changed.jsonl", "a") as file:
        file.write(json.dumps([request.node.name, changed]) + "\\n")
"""

SUITE = """
import os, sys, pytest, tensorflow as tf

pytestmark = pytest.mark.on_gpu

def work():
    x = tf.random.uniform([4, 4])
    tf.function(lambda x: tf.matmul(x, x))(x)
    with tf.device("/CPU:0"):
        return tf.matmul(x, x)

def session_work():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.random.uniform([4, 4]))

def test_passes():
    tf.exp([[1.0]])

def test_fails():
    work()

def test_raises():
    work()
    raise RuntimeError("mine")

def test_skips():
    work()
    pytest.skip("mine")

def test_session():
    session_work()

def test_session_raises():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        session.run(tf.compat.v1.placeholder(tf.float32) + 1.0)

def test_nested(placement):
    with placement.capture():
        work()
        with placement.capture():
            session_work()
        with pytest.raises(ZeroDivisionError), placement.capture():
            work()
            1 / 0

def test_logging_session(placement_session):
    with tf.Graph().as_default():
        x = tf.random.uniform([2, 2])
        placement_session(memory_fraction=0.5).run(x)
    tf.exp([[1.0]])

def test_generator_left_open(placement):
    def watched():
        with placement.capture():
            work()
            yield
    next(watched())

def test_own_callback():
    from tensorflow.python.framework import op_callbacks
    seen = []
    def mine(op_type, *args, **kwargs):
        seen.append(op_type)
    op_callbacks.add_op_callback(mine)
    work()
    op_callbacks.remove_op_callback(mine)
    assert seen

def test_user_settings_are_kept():
    tf.config.set_soft_device_placement(False)
    try:
        with pytest.raises(Exception):
            with tf.device("/GPU:7"):
                tf.exp([[1.0]])
        assert tf.config.get_soft_device_placement() is False
        tf.exp([[1.0]])
    finally:
        tf.config.set_soft_device_placement(True)

def test_last():
    tf.exp([[1.0]])
"""
NAMES = [line[4:-3].split("(")[0] for line in SUITE.splitlines() if line.startswith("def test_")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("effects")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    files = {"conftest.py": CONFTEST, "test_it.py": SUITE}
    return run_simulated(folder, files, "--tfdevice-watch")


@pytest.fixture(scope="module")
def changed(folder: Path, run: Run) -> dict[str, dict[str, list[object]]]:
    import json

    lines = (folder / "changed.jsonl").read_text().splitlines()
    return dict(json.loads(line) for line in lines)


@pytest.mark.parametrize("name", [name.partition("(")[0] for name in NAMES])
def test_nothing_is_changed(changed: dict[str, dict[str, list[object]]], name: str) -> None:
    assert changed[name] == {}


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("test_passes", "passed"),
        ("test_fails", "failed"),
        ("test_raises", "failed"),
        ("test_skips", "skipped"),
        ("test_session", "passed"),
        ("test_session_raises", "failed"),
        ("test_logging_session", "passed"),
        ("test_user_settings_are_kept", "passed"),
        ("test_last", "passed"),
    ],
)
def test_outcomes(run: Run, name: str, outcome: str) -> None:
    assert run[name].outcome == outcome, run[name].text


def test_own_failures_are_kept(run: Run) -> None:
    assert "RuntimeError: mine" in run["test_raises"].text
    assert "must feed a value" in run["test_session_raises"].text
    assert "test_it.py:" in run["test_own_callback"].said
    assert "assert seen" not in run["test_own_callback"].text


CONFIGURES = """
import pytest, tensorflow as tf

@pytest.mark.on_gpu
def test_it():
    BODY
"""


@pytest.mark.parametrize(
    "body",
    [
        """
    gpu = tf.config.list_physical_devices("GPU")[0]
    tf.config.set_logical_device_configuration(
        gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=m) for m in (128, 256)])
    assert len(tf.config.list_logical_devices("GPU")) == 2
    with tf.device("/GPU:1"):
        assert "GPU:1" in tf.exp([[1.0]]).device
    tf.config.set_soft_device_placement(True)
        """,
        """
    gpu = tf.config.list_physical_devices("GPU")[0]
    tf.config.experimental.set_memory_growth(gpu, True)
    tf.exp([[1.0]])
        """,
        """
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.per_process_gpu_memory_fraction = 0.25
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        session.run(tf.random.uniform([4, 4]))
        limits = [d.memory_limit_bytes for d in session.list_devices() if d.device_type == "GPU"]
    assert limits == [2**28], limits
        """,
        """
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.set_visible_devices(tf.config.list_physical_devices("GPU")[:1], "GPU")
    tf.exp([[1.0]])
        """,
    ],
    ids=["logical devices", "memory growth", "v1 memory fraction", "visible devices"],
)
def test_a_watched_test_can_still_configure_devices(tmp_path: Path, body: str) -> None:
    done = run_simulated(tmp_path, CONFIGURES.replace("    BODY\n", body))
    assert done["test_it"].outcome == "passed", done["test_it"].text
