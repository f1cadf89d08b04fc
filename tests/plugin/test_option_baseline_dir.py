"""``--tfdevice-baseline-dir``: baselines in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_process import LOG, SUITE, Suite


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two modules of one name."""
    suite = Suite(tmp_path, {"one/test_m.py": SUITE, "two/test_m.py": SUITE})
    for folder in ("one", "two"):
        suite.log(LOG, folder)
    suite.write("pytest.ini", "[pytest]\naddopts = --import-mode=importlib\n")
    return suite


def found(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.json"))


def test_modules_of_one_name_are_kept_apart(suite: Suite) -> None:
    assert suite.run("--tfdevice-baseline-dir", "kept").status == 0
    assert found(suite.folder) == ["kept/one/test_m.json", "kept/two/test_m.json"]
    again = suite.run("--tfdevice-baseline-dir", "kept", env={"CI": "1"})
    assert (again.status, again.section) == (0, [])


def test_on_the_command_line_it_is_relative_to_the_working_directory(suite: Suite) -> None:
    suite.run("--tfdevice-baseline-dir", "kept", cwd="one")
    assert found(suite.folder) == ["one/kept/one/test_m.json"]


def test_in_the_ini_file_it_is_relative_to_that(suite: Suite) -> None:
    suite.write(
        "pytest.ini", "[pytest]\naddopts = --import-mode=importlib\ntfdevice_baseline_dir = kept\n"
    )
    suite.run(cwd="one")
    assert found(suite.folder) == ["kept/one/test_m.json"]


def test_workers_use_the_same(suite: Suite) -> None:
    suite.run("--tfdevice-baseline-dir", "kept", "-n2")
    assert found(suite.folder) == ["kept/one/test_m.json", "kept/two/test_m.json"]


def test_a_file_whose_module_is_gone_is_stale(suite: Suite) -> None:
    args = ("--tfdevice-baseline-dir", "kept")
    suite.run(*args)
    (suite.folder / "one/test_m.py").rename(suite.folder / "one/test_n.py")
    run = suite.run(*args)
    assert run.status == 1
    assert "stale: kept/one/test_m.json: there is no test_m.py" in run.said
