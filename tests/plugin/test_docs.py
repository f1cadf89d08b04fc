"""Every Python example in the README and in ``docs/`` is run, on the simulated GPU."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def examples() -> dict[str, str]:
    """Each block of Python, by page and line, as in ``README_26``."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.M | re.S):
            line = text.count("\n", 0, match.start()) + 1
            found[f"{page.stem.replace('-', '_')}_{line}"] = match[1]
    return found


EXAMPLES = examples()
CONFTEST = {name: code for name, code in EXAMPLES.items() if "def pytest_" in code}
TESTS = {name: code for name, code in EXAMPLES.items() if "def test_" in code}
SCRIPTS = {n: code for n, code in EXAMPLES.items() if n not in {*CONFTEST, *TESTS}}


def execute(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment.pop("CI", None)  # there a missing baseline fails; the examples record theirs
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_examples_are_found():
    assert len(CONFTEST) == 1
    assert len(TESTS) >= 6
    assert len(SCRIPTS) >= 2


def test_examples_that_are_tests_pass(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text("".join(CONFTEST.values()))
    for name, code in TESTS.items():
        (tmp_path / f"test_{name}.py").write_text(code)
    output = execute(tmp_path, "-m", "pytest", "-rA", "--tfdevice-simulate=1")
    passed = {line.split("::")[0] for line in output.splitlines() if line.startswith("PASSED ")}
    assert passed == {f"PASSED test_{name}.py" for name in TESTS}
    assert not re.search(r"\d+ (skipped|failed|error|xfailed)", output.splitlines()[-1])


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_run(name, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPTS[name])
    assert "on GPU:" in execute(tmp_path, "script.py")


def test_links_lead_somewhere():
    for page in [*PAGES, *(ROOT / "examples").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)}: {target}"


def test_the_reports_in_the_readme_are_as_printed():
    """At most 100 columns wide, and short enough to be read."""
    lines = PAGES[0].read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 200
    blocks = re.findall(r"^```text\n(.*?)^```$", "\n".join(lines) + "\n", flags=re.M | re.S)
    assert blocks
    assert max(len(line) for block in blocks for line in block.splitlines()) <= 100
