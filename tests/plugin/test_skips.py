"""Machines without a GPU, and without TensorFlow: marked tests skip and say why."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_process import Run, needs_tensorflow, run_pytest

SUITE = """
import pytest

@pytest.mark.on_gpu
def test_on_gpu():
    import tensorflow as tf
    tf.exp([[1.0]])

@pytest.mark.requires_gpu(2, memory="8 GiB")
def test_requires_gpu():
    pass

@pytest.mark.on_device("CPU:0")
def test_on_cpu():
    import tensorflow as tf
    tf.exp([[1.0]])

@pytest.mark.on_device("/job:worker/task:0/device:GPU:0")
def test_on_another_machine():
    import tensorflow as tf
    tf.exp([[1.0]])

@pytest.fixture
def costly():
    raise AssertionError("a skipped test's fixtures must not run")

@pytest.mark.on_gpu
def test_with_fixture(costly):
    pass

def test_plain():
    assert 1 + 1 == 2
"""

DEVICES = """
def test_devices(tf_devices):
    print("KIND", tf_devices.kind, tf_devices.count, tf_devices.tensorflow, tf_devices.cause)
    print(tf_devices.describe())
"""


@pytest.fixture(scope="module")
def cpu_only(tmp_path_factory: pytest.TempPathFactory) -> Run:
    needs_tensorflow()
    files = {"test_it.py": SUITE, "test_devices.py": DEVICES}
    return run_pytest(tmp_path_factory.mktemp("cpu"), files, "-rsP")


class TestCpuOnly:
    @pytest.mark.parametrize("name", ["test_on_gpu", "test_with_fixture"])
    def test_skips_with_the_cause(self, cpu_only: Run, name: str) -> None:
        test = cpu_only[name]
        assert test.outcome == "skipped"
        assert "needs 1 GPU, this process has none: " in test.said
        assert _a_cause(test.said), test.said

    def test_the_requirement_is_named(self, cpu_only: Run) -> None:
        assert "needs 2 GPUs, this process has none" in cpu_only["test_requires_gpu"].said

    def test_what_needs_no_gpu_of_this_machine_runs(self, cpu_only: Run) -> None:
        assert cpu_only["test_on_cpu"].outcome == "passed", cpu_only["test_on_cpu"].text
        assert cpu_only["test_on_another_machine"].outcome == "failed"
        assert "no-gpu" in cpu_only["test_on_another_machine"].said
        assert cpu_only["test_plain"].outcome == "passed"

    def test_the_reason_is_shown(self, cpu_only: Run) -> None:
        assert "needs 1 GPU, this process has none" in cpu_only.said

    def test_the_fixture_tells_the_same(self, cpu_only: Run) -> None:
        assert "KIND none 0 2." in cpu_only.stdout
        assert _a_cause(cpu_only.said)
        assert "To mend it:" in cpu_only.stdout


def _a_cause(text: str) -> bool:
    return any(
        cause in text
        for cause in ("is built without GPU support", "has no NVIDIA driver", "NVIDIA", "hides")
    )


NO_TENSORFLOW = """
import importlib.abc, sys

class Nothing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] == "tensorflow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nothing())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name == "tensorflow" else found(name, package))
"""
"""A plugin that makes this Python one without TensorFlow."""

BROKEN = """
raise OSError("libtensorflow_framework.so.2: file too short\\nand more")
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Run:
    files = {"test_it.py": SUITE, "no_tensorflow.py": NO_TENSORFLOW}
    args = ("-p", "no_tensorflow", "--tfdevice-simulate", "1", "--tfdevice-watch", "-rs")
    return run_pytest(tmp_path_factory.mktemp("without"), files, *args)


class TestNoTensorFlow:
    @pytest.mark.parametrize(
        "name", ["test_on_gpu", "test_requires_gpu", "test_on_cpu", "test_on_another_machine"]
    )
    def test_marked_tests_skip_and_say_so(self, without: Run, name: str) -> None:
        assert without[name].outcome == "skipped"
        assert "TensorFlow isn't installed in this Python" in without[name].said

    def test_the_rest_runs(self, without: Run) -> None:
        assert without.status == 0, without.output
        assert without["test_plain"].outcome == "passed"
        assert without.header.startswith("tfdevice: simulate=1:16 GiB, watch")
        assert without.summary == ""


def test_a_broken_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    done = run_pytest(tmp_path, {"test_it.py": SUITE, "tensorflow/__init__.py": BROKEN})
    assert done.status == 0, done.output
    assert "TensorFlow is installed but can't be imported: OSError" in done["test_on_gpu"].said
    assert "file too short" in done["test_on_gpu"].said
    assert done["test_plain"].outcome == "passed"


def test_hidden_by_the_program(tmp_path: Path) -> None:
    from pytest_process import needs_simulator, run_simulated

    needs_simulator()
    files = {
        "conftest.py": "import tensorflow as tf\ntf.config.set_visible_devices([], 'GPU')\n",
        "test_it.py": SUITE,
    }
    done = run_simulated(tmp_path, files)
    assert "the program hid 1 GPU with tf.config.set_visible_devices" in done["test_on_gpu"].said


def test_a_tensorflow_outside_the_range(tmp_path: Path) -> None:
    needs_tensorflow()
    files = {
        "conftest.py": "import tensorflow as tf\ntf.__version__ = '2.99.0'\n",
        "test_it.py": SUITE,
    }
    done = run_pytest(tmp_path, files)
    assert done["test_on_cpu"].outcome in ("passed", "failed")
    assert "TensorFlow 2.99.0 is outside the supported range 2.12 to 2.21" in done.said
    assert done.stdout.count("outside the supported range") == 1
