"""Markers wherever they can stand: modules, classes, parameters, both kinds of TestCase, async."""

from __future__ import annotations

import importlib.util

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

FUNCTIONS = """
import pytest, tensorflow as tf, unittest

def good():
    return tf.nn.relu(tf.random.uniform([2, 2]))

def bad():
    with tf.device("/CPU:0"):
        return tf.nn.relu(tf.random.uniform([2, 2]))

@pytest.mark.on_gpu
class TestClass:
    def test_good(self):
        good()
    def test_bad(self):
        bad()

class TestBase:
    @pytest.mark.on_gpu
    def test_inherited(self):
        bad()

class TestDerived(TestBase):
    pass

@pytest.mark.on_gpu
@pytest.mark.parametrize("run", [good, bad])
def test_parameter(run):
    run()

@pytest.mark.parametrize("run", [good, pytest.param(bad, marks=pytest.mark.on_gpu, id="marked")])
def test_marked_parameter(run):
    run()

@pytest.mark.on_gpu
class UnitTest(unittest.TestCase):
    def setUp(self):
        self.x = good()
    def test_good(self):
        good()
    def test_bad(self):
        bad()
    def test_fails_itself(self):
        bad()
        self.assertEqual(1, 2, "its own failure")
    def test_skips(self):
        self.skipTest("its own reason")
    @unittest.expectedFailure
    def test_expected(self):
        bad()
        self.fail("expected")
    def test_subtests(self):
        for f in (good, bad):
            with self.subTest(f=f.__name__):
                f()

class TFTest(tf.test.TestCase):
    @pytest.mark.on_gpu
    def test_good(self):
        self.assertAllGreaterEqual(good(), 0.0)
    @pytest.mark.on_gpu
    def test_bad(self):
        self.assertAllGreaterEqual(bad(), 0.0)
    @pytest.mark.on_gpu
    def test_v1_session(self):
        with tf.Graph().as_default(), self.session() as session:
            session.run(bad())
    def test_unmarked(self):
        bad()

# several markers add up
@pytest.mark.on_gpu("Relu")
@pytest.mark.on_gpu(allow=["RandomUniform"])
def test_added_up():
    with tf.device("/CPU:0"):
        x = tf.random.uniform([2, 2])
    tf.nn.relu(x)

@pytest.mark.on_gpu
@pytest.mark.on_device("CPU", "MatMul", min_ratio=0.0)
def test_two_rules():
    good()

@pytest.mark.requires_gpu(count=9)
@pytest.mark.requires_gpu(count=1)
def test_nearest_requirement():
    pass

@pytest.mark.on_gpu(strict=True, min_ratio=1.0)
class TestNearest:
    @pytest.mark.on_gpu(strict=False)
    def test_strict(self):
        good()
        tf.range(3) + 1
    @pytest.mark.on_gpu(min_ratio=0.0, strict=False)
    def test_ratio(self):
        bad()
    @pytest.mark.on_gpu(index=1)
    def test_index(self):
        good()
"""

MODULE = """
import pytest, tensorflow as tf
pytestmark = [pytest.mark.on_gpu(allow=["Relu"]), pytest.mark.requires_gpu]

def test_module_mark():
    with tf.device("/CPU:0"):
        tf.nn.relu([[1.0]])

def test_module_mark_fails():
    with tf.device("/CPU:0"):
        tf.exp([[1.0]])
"""

ASYNC = """
import asyncio, pytest, tensorflow as tf

def bad():
    with tf.device("/CPU:0"):
        return tf.exp([[1.0]])

@pytest.mark.asyncio
@pytest.mark.on_gpu
async def test_async_good():
    await asyncio.sleep(0)
    tf.exp([[1.0]])

@pytest.mark.asyncio
@pytest.mark.on_gpu
async def test_async_bad():
    await asyncio.sleep(0)
    bad()

@pytest.mark.asyncio
@pytest.mark.on_gpu
async def test_async_task():
    async def work():
        bad()
    await asyncio.create_task(work())
"""
RUNNER = """
import asyncio, inspect, pytest

def pytest_configure(config):
    config.addinivalue_line("markers", "asyncio: run on an event loop")

@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj())
        return True
"""
"""What pytest-asyncio does, where that isn't installed."""
HAS_ASYNCIO = importlib.util.find_spec("pytest_asyncio") is not None


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    files = {"test_it.py": FUNCTIONS, "test_module.py": MODULE, "test_async.py": ASYNC}
    if not HAS_ASYNCIO:
        files["conftest.py"] = RUNNER
    return run_simulated(tmp_path_factory.mktemp("places"), files, gpus="2:1 GiB")


@pytest.mark.parametrize(
    "name",
    [
        "TestClass::test_good",
        "test_parameter[good]",
        "test_marked_parameter[good]",
        "UnitTest::test_good",
        "TFTest::test_good",
        "TFTest::test_unmarked",
        "test_added_up",
        "TestNearest::test_strict",
        "TestNearest::test_ratio",
        "test_nearest_requirement",
        "test_module_mark",
    ],
)
def test_passes(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name].text


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("TestClass::test_bad", "test_it.py:8"),
        ("TestBase::test_inherited", "test_it.py:8"),
        ("TestDerived::test_inherited", "test_it.py:8"),
        ("test_parameter[bad]", "test_it.py:8"),
        ("test_marked_parameter[marked]", "test_it.py:8"),
        ("UnitTest::test_bad", "test_it.py:8"),
        ("UnitTest::test_subtests", "test_it.py:8"),
        ("TFTest::test_bad", "test_it.py:8"),
        ("TFTest::test_v1_session", "test_it.py:8"),
        ("test_module_mark_fails", "test_module.py:10"),
    ],
)
def test_fails_with_the_line(run: Run, name: str, line: str) -> None:
    test = run[name]
    assert test.outcome == "failed"
    assert "requested-elsewhere" in test.said
    assert line in test.said, test.text


def test_a_testcases_own_failure_is_kept(run: Run) -> None:
    test = run["UnitTest::test_fails_itself"]
    assert test.outcome == "failed"
    assert "its own failure" in test.text
    assert "requested-elsewhere" in test.placement


def test_a_testcase_can_skip(run: Run) -> None:
    assert run["UnitTest::test_skips"].outcome == "skipped"
    assert "its own reason" in run["UnitTest::test_skips"].text
    assert run["UnitTest::test_skips"].result is None


def test_an_expected_failure_of_a_testcase_stays_one(run: Run) -> None:
    assert run["UnitTest::test_expected"].outcome == "xfailed"


def test_each_rule_is_judged(run: Run) -> None:
    test = run["test_two_rules"]
    assert test.outcome == "failed"
    assert "MatMul was not seen" in test.said


def test_the_nearest_index_counts(run: Run) -> None:
    test = run["TestNearest::test_index"]
    assert test.outcome == "failed"
    assert "ran on GPU:0" in test.said


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("test_async_good", "passed"),
        ("test_async_bad", "failed"),
        ("test_async_task", "failed"),
    ],
)
def test_async(run: Run, name: str, outcome: str) -> None:
    assert run[name].outcome == outcome
    if outcome == "failed":
        assert "requested-elsewhere" in run[name].said
        assert "test_async.py:5" in run[name].said
