"""Properties of watched tests in the file of ``--junitxml``, and ``tfdevice_junit``."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from gate_process import LOG, SUITE, Suite
from pytest_process import Run, needs_simulator, run_simulated

Cases = dict[str, dict[str, str]]


def cases(path: Path) -> Cases:
    """The properties of each test."""
    found = {}
    for case in ElementTree.parse(path).iter("testcase"):
        listed = [(p.get("name", ""), p.get("value", "")) for p in case.iter("property")]
        assert len(dict(listed)) == len(listed), listed
        found[case.get("name", "")] = dict(listed)
    return found


# --------------------------------------------------------- baselines, without TensorFlow


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two tests with a baseline, of which one is no longer met."""
    suite = Suite(tmp_path)
    assert suite.run("--tfdevice-baseline", "create").status == 0
    suite.log(LOG.replace("test_a/dense/MatMul MatMul GPU:0", "test_a/dense/MatMul MatMul CPU:0"))
    return suite


def of(suite: Suite, *args: str, status: int = 1) -> Cases:
    path = suite.folder / "results.xml"
    run = suite.run(f"--junitxml={path}", *args)
    assert run.status == status, run.output
    return cases(path)


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
@pytest.mark.parametrize("jobs", [(), ("-n2",)], ids=["alone", "xdist"])
def test_a_baseline_and_what_moved(suite: Suite, family: str, jobs: tuple[str, ...]) -> None:
    assert of(suite, "-o", f"junit_family={family}", *jobs) == {
        "test_a": {
            "tfdevice_baseline": "regression",
            "tfdevice_moves": "1",
            "tfdevice_move_1": "test_a/dense: MatMul GPU:0 → CPU:0: unknown",
        },
        "test_b": {"tfdevice_baseline": "checked"},
    }


def test_an_updated_baseline(suite: Suite) -> None:
    found = of(suite, "--tfdevice-baseline", "update", status=0)
    assert found["test_a"]["tfdevice_baseline"] == "updated"
    assert found["test_a"]["tfdevice_moves"] == "1"


def test_a_missing_baseline(suite: Suite) -> None:
    suite.file.unlink()
    path = suite.folder / "results.xml"
    suite.run(f"--junitxml={path}", env={"CI": "true"})
    assert cases(path)["test_b"] == {"tfdevice_baseline": "missing"}


HOSTILE = r"""
import os
from pytest_tfdevice.model import Device, Placement, Record

def test_hostile(placement_baseline):
    device = Device("localhost", 0, 0, os.environ["DEVICE"], 0)
    name = "<m>&]]>\x1b[31m\x00\ufffe\udc80/x"
    placement_baseline.check(Record(placements=(Placement(name, "MatMul", device),)))
"""


@pytest.mark.parametrize("jobs", [(), ("-n2",)], ids=["alone", "xdist"])
def test_names_that_xml_forbids_stay_readable(tmp_path: Path, jobs: tuple[str, ...]) -> None:
    suite = Suite(tmp_path, {"test_m.py": HOSTILE})
    path = tmp_path / "results.xml"
    for device, status in (("GPU", 0), ("CPU", 1)):
        run = suite.run(f"--junitxml={path}", *jobs, env={"DEVICE": device})
        assert run.status == status, run.output
    found = cases(path)["test_hostile"]
    assert found["tfdevice_baseline"] == "regression"
    assert found["tfdevice_move_1"].startswith(r"<m>&]]>\x1b[31m\x00\ufffe\udc80: MatMul GPU:0 →")


@pytest.mark.parametrize(
    ("args", "ini", "wanted"),
    [
        ((), "", True),
        ((), "tfdevice_junit = true", True),
        ((), "tfdevice_junit = false", False),
        (("--no-tfdevice-junit",), "", False),
        (("--no-tfdevice-junit",), "tfdevice_junit = true", False),
        (("--tfdevice-junit",), "tfdevice_junit = false", True),
        (("--no-tfdevice-junit", "-n2"), "", False),
    ],
)
def test_it_can_be_switched_off(
    suite: Suite, args: tuple[str, ...], ini: str, wanted: bool
) -> None:
    suite.write("pytest.ini", f"[pytest]\n{ini}\n")
    path = suite.folder / "results.xml"
    run = suite.run(f"--junitxml={path}", *args)
    assert ("<properties>" in path.read_text()) is wanted
    assert ("tfdevice: junit=off" in run.output) is not wanted


def test_a_value_that_is_none_is_a_usage_error(suite: Suite) -> None:
    suite.write("pytest.ini", "[pytest]\ntfdevice_junit = perhaps\n")
    run = suite.run()
    assert run.status == 4
    assert "tfdevice_junit" in run.said
    assert "perhaps" in run.said


def test_properties_of_the_tests_own_stay(tmp_path: Path) -> None:
    own = SUITE.replace(
        "def test_b(check):", "def test_b(check, record_property):\n    record_property('mine', 1)"
    )
    suite = Suite(tmp_path, {"test_m.py": f"{own}\ndef test_plain(): pass\n"})
    found = of(suite, status=0)
    assert found["test_b"] == {"mine": "1", "tfdevice_baseline": "created"}
    assert found["test_plain"] == {}


def test_of_a_test_that_is_tried_again_the_last_try_is_told(tmp_path: Path) -> None:
    if importlib.util.find_spec("pytest_rerunfailures") is None:
        pytest.skip("needs pytest-rerunfailures")
    flaky = SUITE.replace(
        "def test_b(check):\n    check()",
        "tries = []\ndef test_b(check):\n    check()\n    tries.append(1)\n"
        "    assert len(tries) == 2",
    )
    suite = Suite(tmp_path, {"test_m.py": flaky})
    found = of(suite, "--reruns", "1", "-p", "rerunfailures", status=0)
    assert found["test_b"]["tfdevice_baseline"] == "created"


# ------------------------------------------------------------------- on a simulated GPU

WATCHED = """
import pytest
import tensorflow as tf

def product(device="/GPU:0"):
    with tf.device(device):
        return tf.matmul(tf.ones((16, 16)), tf.ones((16, 16)))

@pytest.mark.on_gpu
def test_good():
    product().numpy()

@pytest.mark.on_gpu
def test_bad():
    product("/CPU:0")

@pytest.mark.xfail(strict=True)
@pytest.mark.on_gpu
def test_known():
    product("/CPU:0")

@pytest.mark.on_gpu
def test_raises():
    product()
    raise RuntimeError

@pytest.mark.requires_gpu(3)
def test_skipped():
    product()

@pytest.mark.gpu_memory(max_bytes=1)
def test_memory():
    product()

def test_unmarked():
    product()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Cases]:
    needs_simulator()
    folder = tmp_path_factory.mktemp("watched")
    args = ("--junitxml=results.xml", "-n2") if importlib.util.find_spec("xdist") else ()
    done = run_simulated(folder, WATCHED, *(args or ("--junitxml=results.xml",)))
    return done, cases(folder / "results.xml")


def test_a_test_that_kept_to_the_gpu(run: tuple[Run, Cases]) -> None:
    found = run[1]["test_good"]
    assert found["tfdevice_outcome"] == "passed"
    assert re.fullmatch(r"all \d+ operations that count ran on GPU:0", found["tfdevice_summary"])
    assert found["tfdevice_counting"] == found["tfdevice_on_target"]
    assert int(found["tfdevice_counting"]) >= 1
    assert re.search(r"GPU:0: \d+", found["tfdevice_devices"])
    # Two matrices and their product, in blocks of 256 bytes.
    assert int(found["tfdevice_gpu_peak_bytes"]) >= 3 * 16 * 16 * 4
    assert (found["tfdevice_transfers"], found["tfdevice_transfer_bytes"]) == ("1", "1024")
    assert re.match(r"2\.\d+", found["tfdevice_tensorflow"])
    assert found["tfdevice_simulated"] == "true"
    assert not [name for name in found if "offender" in name]


def test_a_test_that_did_not(run: tuple[Run, Cases]) -> None:
    found = run[1]["test_bad"]
    assert found["tfdevice_outcome"] == "failed"
    assert int(found["tfdevice_on_target"]) < int(found["tfdevice_counting"])
    listed = [text for name, text in found.items() if name.startswith("tfdevice_offender_")]
    assert int(found["tfdevice_offenders"]) == len(listed)
    assert "MatMul (MatMul) on CPU:0: requested-elsewhere, test_it.py:6" in listed


def test_outcomes(run: tuple[Run, Cases]) -> None:
    assert {name: found.get("tfdevice_outcome") for name, found in run[1].items()} == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_known": "expected",
        "test_raises": "passed",
        "test_skipped": None,
        "test_memory": "failed",
        "test_unmarked": None,
    }


def test_the_run_is_as_without(run: tuple[Run, Cases]) -> None:
    assert run[0].status == 1
    assert run[0].header == "tfdevice: simulate=1:1 GiB"
