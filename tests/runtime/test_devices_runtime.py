"""What is found on a real TensorFlow: CPU-only or CUDA-enabled, with and without simulated GPUs."""

from __future__ import annotations

import glob

import pytest
from tf_process import Facts, needs_tensorflow, run

needs_tensorflow()

SCRIPT = """
if facts["simulate"]:
    have_simulated(2, "3 GiB")
import tensorflow as tf
from pytest_tfdevice.capture import private
from pytest_tfdevice.devices import find_devices

def describe(report):
    return {
        "kind": report.kind,
        "causes": [cause.kind for cause in report.causes],
        "first line": report.describe().splitlines()[0],
        "widest": max(map(len, report.describe().splitlines())),
        "gpus": [[g.device.short, g.memory, g.simulated] for g in report.gpus],
        "all": [info.device.short for info in report.devices],
        "skip": report.skip_reason(),
        "skip 9": report.skip_reason(9),
        "skip memory": report.skip_reason(1, memory=2**32),
    }

report = find_devices()
facts["report"] = describe(report)
facts["version"] = [report.tensorflow, tf.__version__]
facts["cuda build"] = bool(report.build.is_cuda)
facts["built with cuda"] = tf.test.is_built_with_cuda()
facts["initialised"] = private.context_is_initialized(private.eager_context())
facts["physical"] = len(tf.config.list_physical_devices("GPU"))
if facts["physical"]:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("GPU")[0],
        [tf.config.LogicalDeviceConfiguration(memory_limit=512)] * 2)
    facts["split"] = describe(find_devices())
    tf.config.set_visible_devices([], "GPU")
    facts["hidden"] = describe(find_devices())
    facts["initialised in the end"] = private.context_is_initialized(private.eager_context())
"""


def facts_with(simulate: bool, env: dict[str, str | None]) -> Facts:
    return run(f"facts['simulate'] = {simulate}\n{SCRIPT}", level=3, env=env)


@pytest.fixture(scope="module")
def bare() -> Facts:
    return facts_with(False, {})


@pytest.fixture(scope="module")
def hidden() -> Facts:
    return facts_with(False, {"CUDA_VISIBLE_DEVICES": "-1"})


@pytest.fixture(scope="module")
def simulated() -> Facts:
    found = facts_with(True, {})
    if not found["simulated"]:
        pytest.skip(found["not_simulated"])
    return found


def test_nothing_is_initialised(bare: Facts) -> None:
    assert bare["initialised"] is False


def test_the_build_is_what_tensorflow_says(bare: Facts) -> None:
    assert bare["version"][0] == bare["version"][1]
    assert bare["cuda build"] == bare["built with cuda"]


def test_the_cpu_is_listed(bare: Facts) -> None:
    assert bare["report"]["all"][0] == "CPU:0"


def test_a_gpu_or_the_cause(bare: Facts) -> None:
    report = bare["report"]
    if bare["physical"]:
        assert report["kind"] == "real"
        assert report["causes"] == []
        assert report["skip"] is None
        assert report["gpus"][0][1] > 2**28
    elif not bare["built with cuda"]:
        assert report["causes"] == ["cpu-build"]
        assert "built without GPU support" in report["skip"]
    elif not glob.glob("/dev/nvidia*") and not glob.glob("/proc/driver/nvidia/version"):
        assert report["causes"] == ["no-driver"]
        assert report["first line"].startswith("No GPU: this machine has no NVIDIA driver")
    else:
        assert report["causes"]


def test_the_report_fits_a_terminal(bare: Facts) -> None:
    assert bare["report"]["widest"] <= 100


def test_hidden_by_the_environment(hidden: Facts) -> None:
    assert hidden["report"]["kind"] == "none"
    expected = "hidden-by-environment" if hidden["built with cuda"] else "cpu-build"
    assert hidden["report"]["causes"][0] == expected


def test_simulated_gpus_say_so_and_have_their_memory(simulated: Facts) -> None:
    report = simulated["report"]
    assert report["kind"] == "simulated"
    assert report["gpus"] == [["GPU:0", 3 * 2**30, True], ["GPU:1", 3 * 2**30, True]]
    assert report["first line"] == "2 simulated GPUs ready for TensorFlow."
    assert report["causes"] == []
    assert simulated["initialised"] is False


def test_simulated_gpus_satisfy_what_they_can(simulated: Facts) -> None:
    report = simulated["report"]
    assert report["skip"] is None
    assert report["skip 9"] == "needs 9 GPUs, this process has 2"
    assert report["skip memory"].endswith("GPU:0 has 3 GiB; GPU:1 has 3 GiB")


def test_a_split_gpu_counts_as_its_parts(simulated: Facts) -> None:
    assert simulated["split"]["gpus"] == [
        ["GPU:0", 2**29, True],
        ["GPU:1", 2**29, True],
        ["GPU:2", 3 * 2**30, True],
    ]


def test_gpus_hidden_by_the_program(simulated: Facts) -> None:
    assert simulated["hidden"]["causes"] == ["hidden-by-program"]
    assert "the program hid 2 GPUs" in simulated["hidden"]["skip"]
    assert simulated["initialised in the end"] is False
