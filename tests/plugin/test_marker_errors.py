"""Wrong marker arguments: a usage error at collection that names the test and says what is wrong.

No TensorFlow is needed for it, and none imported.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from pytest_process import QUICK, run_pytest

WRONG = {
    # requires_gpu
    "requires_gpu(0)": "count=0 is no number of GPUs",
    "requires_gpu(-1)": "count=-1 is no number of GPUs",
    "requires_gpu(True)": "count=True is no number of GPUs",
    "requires_gpu('two')": "count='two' is no number of GPUs",
    "requires_gpu(1.5)": "count=1.5 is no number of GPUs",
    "requires_gpu(memory='plenty')": "plenty",
    "requires_gpu(memory='-1 GiB')": "-1 GiB",
    "requires_gpu(memory=[])": "[]",
    "requires_gpu(compute_capability='new')": "compute_capability='new' is none",
    "requires_gpu(compute_capability=True)": "compute_capability=True is none",
    "requires_gpu(compute_capability=(8, 0, 1))": "compute_capability=(8, 0, 1) is none",
    "requires_gpu(compute_capability=-7.0)": "compute_capability=-7.0 is none",
    "requires_gpu(compute_capability=float('nan'))": "compute_capability=nan is none",
    "requires_gpu(compute_capability=(8,))": "compute_capability=(8,) is none",
    "requires_gpu(compute_capability=(-8, 0))": "compute_capability=(-8, 0) is none",
    "requires_gpu(gpus=2)": "'gpus'",
    "requires_gpu(1, '1 GiB', 8.0, 4)": "requires_gpu(count=1, memory=None",
    # on_gpu
    "on_gpu(index='0')": "index='0' is no GPU number",
    "on_gpu(index=-1)": "index=-1 is no GPU number",
    "on_gpu(index=False)": "index=False is no GPU number",
    "on_gpu(7)": "7 is no pattern: a string such as 'MatMul' is wanted",
    "on_gpu(['MatMul'])": "['MatMul'] is no pattern",
    "on_gpu(len, 'x')": "is no pattern",
    "on_gpu('')": "an empty pattern picks nothing",
    "on_gpu('Mat Mul')": "is no op type",
    "on_gpu('block1/dense')": "write 'name:block1/dense' to pick by name",
    "on_gpu('[Mm')": "has a '[' without its ']'",
    "on_gpu('nane:x')": "begins with 'nane'",
    "on_gpu('name:')": "nothing after its colon",
    "on_gpu('reason:dtype')": "it belongs in allow=",
    "on_gpu(allow=7)": "allow=7 is no list of patterns",
    "on_gpu(allow=[7])": "7 is no pattern",
    "on_gpu(allow=b'MatMul')": "is no",
    "on_gpu(allow=['reason:laziness'])": "names no reason; the reasons are requested-elsewhere",
    "on_gpu(strict='yes')": "strict='yes' is neither True nor False",
    "on_gpu(strict=None)": "strict=None is neither True nor False",
    "on_gpu(min_ratio=90)": "min_ratio=90 is no share: it goes from 0 to 1",
    "on_gpu(min_ratio=-0.1)": "min_ratio=-0.1 is no share",
    "on_gpu(min_ratio=float('nan'))": "min_ratio=nan is no share",
    "on_gpu(min_ratio='0.9')": "min_ratio='0.9' is no share",
    "on_gpu(min_ratio=True)": "min_ratio=True is no share",
    "on_gpu(ops=['MatMul'])": "'ops'",
    "on_gpu(alow=['Where'])": "'alow'",
    # on_device
    "on_device": "device",
    "on_device()": "on_device(device, *ops",
    "on_device(0)": "0 is no device: a string such as 'GPU:1' is wanted",
    "on_device('')": "names no type of device",
    "on_device('/job:worker')": "names no type of device",
    "on_device('GUP')": "unknown device type GUP; known are CPU, GPU",
    "on_device('GPU:one')": "'GPU:one' is no device",
    "on_device('the GPU')": "'the GPU' is no device",
    "on_device('/device:GPU:0/device:CPU:0')": "twice",
    "on_device('/tusk:0/device:GPU:0')": "is no device",
    "on_device('GPU', index=1)": "'index'",
    "on_device('GPU', min_ratio=2)": "min_ratio=2 is no share",
    "on_device('GPU', '[')": "has a '[' without its ']'",
    "on_device('GPU', allow='reason:x')": "names no reason",
}


AT_ONCE = 10
"""So many messages one run shows."""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The usage error of each wrong marker."""
    found = {}
    markers = list(WRONG)
    for start in range(0, len(markers), AT_ONCE):
        chunk = markers[start : start + AT_ONCE]
        tests = [f"@pytest.mark.{marker}\ndef test_{i}(): pass\n" for i, marker in enumerate(chunk)]
        done = run_pytest(
            tmp_path_factory.mktemp("wrong"), "import pytest\n" + "".join(tests), "--strict-markers"
        )
        assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
        assert "Traceback" not in done.output
        lines = re.findall(r"^ERROR: test_it.py::test_(\d+): marker (.*)$", done.stderr, re.M)
        found |= {chunk[int(number)]: text for number, text in lines}
    return found


@pytest.mark.parametrize("marker", WRONG)
def test_wrong_arguments(messages: dict[str, str], marker: str) -> None:
    name = marker.partition("(")[0]
    assert messages[marker].startswith(f"{name}(")
    assert WRONG[marker] in messages[marker].removeprefix(name)


PLACES = """
import unittest
import pytest

@pytest.mark.on_gpu(min_ratio=3)
class TestClass:
    def test_method(self): pass

class TestCase(unittest.TestCase):
    @pytest.mark.on_device("GPU:x")
    def test_case(self): pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.requires_gpu(0))])
def test_parameter(n): pass

def test_fine():
    raise AssertionError("no test of this run may start")
"""


def test_wherever_they_are_written_and_all_at_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_places=PLACES,
        test_module="import pytest\npytestmark = pytest.mark.on_gpu(7)\ndef test_one(): pass\n",
    )
    result = pytester.runpytest(*QUICK)
    text = result.stderr.str()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    for name in (
        "test_places.py::TestClass::test_method",
        "test_places.py::TestCase::test_case",
        "test_places.py::test_parameter[2]",
        "test_module.py::test_one",
    ):
        assert f"ERROR: {name}: marker" in text
    assert "test_fine" not in text
    result.assert_outcomes()


def test_many_are_cut(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import pytest\n"
        "@pytest.mark.on_gpu(7)\n@pytest.mark.parametrize('n', range(30))\n"
        "def test_it(n): pass\n"
    )
    text = pytester.runpytest(*QUICK).stderr.str()
    assert text.count("marker on_gpu(7)") == 10
    assert "wrong markers on 20 more tests" in text


def test_collect_only_tells_too(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.on_gpu(7)\ndef test_it(): pass\n")
    assert pytester.runpytest(*QUICK, "--collect-only").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_under_xdist(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, PLACES, "-n", "2")
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert "INTERNALERROR" not in done.output
    assert "ERROR: test_it.py::TestClass::test_method: marker on_gpu(min_ratio=3)" in done.output
    assert "test_parameter[2]: marker requires_gpu(0)" in done.output
    assert done.modules == []
