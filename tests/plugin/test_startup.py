"""What a run without a marked test costs: a few small modules, and no TensorFlow."""

import json
import os
import subprocess
import sys

import pytest

TEST = """
import json, sys

def test_nothing():
    names = [n for n in sys.modules if n.startswith(("pytest_tfdevice", "tensorflow", "numpy"))]
    with open("modules.json", "w") as file:
        json.dump(names, file)
"""


@pytest.mark.parametrize("options", [(), ("--tfdevice-simulate=1",), ("--tfdevice-watch",)])
def test_a_run_without_marked_tests_imports_little(pytester, options):
    pytester.makepyfile(TEST)
    command = [sys.executable, "-m", "pytest", "-q", *options]
    subprocess.run(command, cwd=pytester.path, env=dict(os.environ), check=True)
    found = set(json.loads((pytester.path / "modules.json").read_text()))
    assert "pytest_tfdevice.plugin" in found
    assert not any(name.split(".")[0] in ("tensorflow", "numpy") for name in found)
    if not options:
        assert len(found) < 15
        heavy = ("model", "patterns", "rules", "explain", "kernels", "capture", "devices")
        assert found.isdisjoint(f"pytest_tfdevice.{name}" for name in heavy)


@pytest.mark.parametrize("report", [False, True])
def test_outputs_cost_little_where_no_test_is_marked(pytester, report):
    """On GitHub Actions they are there without being asked for."""
    pytester.makepyfile(TEST)
    command = [sys.executable, "-m", "pytest", "-q", *(["--tfdevice-report=r.json"] * report)]
    environment = {**os.environ, "GITHUB_ACTIONS": "true"}
    subprocess.run(command, cwd=pytester.path, env=environment, check=True)
    found = set(json.loads((pytester.path / "modules.json").read_text()))
    assert not any(name.split(".")[0] in ("tensorflow", "numpy") for name in found)
    heavy = ("model", "patterns", "rules", "explain", "kernels", "capture", "devices", "serial")
    assert found.isdisjoint(f"pytest_tfdevice.{name}" for name in heavy)
    assert (pytester.path / "r.json").exists() == report
