"""A skipped test shows its own place, the reason, and what would make it run."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest

TEST = """
import pytest

@pytest.mark.on_gpu
def test_marked():
    raise AssertionError("must not run")
"""


@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow")
@pytest.mark.parametrize("options", [(), ("-p", "no:skipping")])
def test_a_skip_names_the_test_and_the_way_out(pytester, options):
    pytester.makepyfile(TEST)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", *options],
        cwd=pytester.path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 skipped" in done.stdout, done.stdout + done.stderr
    line = next(text for text in done.stdout.splitlines() if text.startswith("SKIPPED"))
    assert re.search(r"needs 1 GPU, this process has none: .+", line)
    assert "--tfdevice-simulate 1" in line
    if not options:
        assert "plugin.py" not in line
        assert re.match(r"SKIPPED \[1\] test_a_skip\w*\.py", line)
