"""Under tox, what is tested is the wheel, with everything in it; not the source tree."""

import os
from importlib import metadata
from pathlib import Path

import pytest

import pytest_tfdevice

ROOT = Path(__file__).resolve().parents[2]
TESTED_FROM = os.environ.get("TFDEVICE_TESTED_FROM")

pytestmark = pytest.mark.skipif(
    TESTED_FROM is None, reason="TFDEVICE_TESTED_FROM isn't set: not run by tox"
)


def test_the_package_is_imported_from_the_environment():
    home = Path(pytest_tfdevice.__file__).resolve()
    assert home.is_relative_to(Path(TESTED_FROM).resolve())


def test_everything_in_the_source_tree_is_in_the_wheel():
    installed = Path(pytest_tfdevice.__file__).parent
    source = ROOT / "pytest_tfdevice"
    files = [p.relative_to(source) for p in source.rglob("*") if p.is_file()]
    wanted = [file for file in files if file.suffix != ".pyc"]
    assert len(wanted) > 50
    assert [str(file) for file in wanted if not (installed / file).is_file()] == []


def test_entry_points():
    distribution = metadata.distribution("pytest-tfdevice")
    found = {(e.group, e.name) for e in distribution.entry_points}
    assert found == {("pytest11", "tfdevice"), ("console_scripts", "pytest-tfdevice")}
