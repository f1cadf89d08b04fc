"""Baselines in runs that end early, that know only some of the tests, or that name them another
way."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_process import ENVIRONMENT, LOG, SUITE, Suite

from pytest_tfdevice.baseline.entries import minor
from pytest_tfdevice.versions import installed_tensorflow

UPDATE = ("--tfdevice-baseline", "update")
CI = {"CI": "true"}
MOVED = LOG.replace("test_a/dense/MatMul MatMul GPU:0", "test_a/dense/MatMul MatMul CPU:0")
WITHOUT_B = SUITE[: SUITE.index("def test_b")]


@pytest.fixture(params=[(), ("-n2",)], ids=["alone", "xdist"])
def jobs(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """One process, or two workers and a controller."""
    return request.param


@pytest.fixture
def recorded(tmp_path: Path) -> Suite:
    """Two tests with a baseline."""
    suite = Suite(tmp_path)
    assert suite.run("--tfdevice-baseline", "create").status == 0
    return suite


# ------------------------------------------------------------- collections that don't end

SIMULATE = ("--tfdevice-simulate", "1")


@pytest.fixture
def simulated(recorded: Suite) -> Suite:
    """Entries of the simulated GPU: whether they are stale is known before anything ran."""
    if installed_tensorflow() is None:
        pytest.skip("needs TensorFlow")
    key = f"simulated GPU, TensorFlow {minor(str(installed_tensorflow()))}"
    recorded.file.write_text(recorded.text.replace(ENVIRONMENT, key))
    return recorded


def test_entries_can_be_stale_before_anything_ran(simulated: Suite) -> None:
    simulated.write("test_m.py", "def test_plain(): pass\n")
    run = simulated.run(*SIMULATE, in_fork=False)
    assert run.status == 1
    assert "test_a, simulated GPU" in run.said
    assert "there is no such test" in run.said


@pytest.mark.parametrize("mode", [(), UPDATE], ids=["check", "update"])
@pytest.mark.parametrize(
    ("files", "args", "status"),
    [
        ({"test_z.py": "raise KeyboardInterrupt"}, (), 2),
        ({"test_z.py": "import pytest; pytest.exit('enough')"}, (), 2),
        ({"test_z.py": "import pytest\n@pytest.mark.on_gpu(3)\ndef test_it(): pass\n"}, (), 4),
        ({"test_z.py": "import pytest\n@pytest.mark.on_gpu(3)\ndef test_it(): 0\n"}, ("-n2",), 4),
        ({"conftest.py": "def pytest_collection_modifyitems(): raise RuntimeError\n"}, (), 3),
        ({"test_m.py": "def test_plain(): pass\n"}, ("--collect-only",), 0),
    ],
    ids=["interrupted", "exited", "usage", "usage-xdist", "broken", "listed"],
)
def test_a_run_that_does_not_come_to_its_tests_removes_nothing(
    simulated: Suite,
    files: dict[str, str],
    args: tuple[str, ...],
    status: int,
    mode: tuple[str, ...],
) -> None:
    before = simulated.text
    for name, text in files.items():
        simulated.write(name, text)
    run = simulated.run(*SIMULATE, *mode, *args, in_fork=False)
    assert run.status == status, run.output
    assert run.section == []
    assert simulated.text == before


@pytest.mark.parametrize("mode", [(), UPDATE], ids=["check", "update"])
def test_entries_of_tests_that_were_collected_are_not_stale(
    simulated: Suite, mode: tuple[str, ...]
) -> None:
    """Even where a module beside them breaks the collection."""
    before = simulated.text
    simulated.write("test_z.py", "1 / 0")
    run = simulated.run(*SIMULATE, *mode, in_fork=False)
    assert (run.status, run.section) == (2, [])
    assert simulated.text == before


def test_a_module_that_skips_itself_keeps_its_entries(
    recorded: Suite, jobs: tuple[str, ...]
) -> None:
    skipped = "import pytest\npytest.skip('not today', allow_module_level=True)\n"
    recorded.write("test_m.py", skipped + SUITE)
    recorded.write("test_other.py", SUITE)
    before = recorded.text
    for mode in ((), UPDATE):
        assert recorded.run(*jobs, *mode).status == 0
        assert recorded.text == before


@pytest.mark.parametrize("option", ["--ignore=test_m.py", "--ignore-glob=*_m.py"])
def test_an_ignored_module_keeps_its_entries(recorded: Suite, option: str) -> None:
    recorded.write("test_other.py", SUITE)
    before = recorded.text
    assert recorded.run(*UPDATE, option).status == 0
    assert recorded.text == before


def test_tests_that_a_conftest_takes_away_are_kept(recorded: Suite) -> None:
    recorded.write(
        "conftest.py", "def pytest_collection_modifyitems(items): items[:] = items[:1]\n"
    )
    before = recorded.text
    assert recorded.run(*UPDATE).status == 0
    assert recorded.text == before


def test_a_run_that_stops_at_the_first_failure_keeps_the_rest(
    recorded: Suite, jobs: tuple[str, ...]
) -> None:
    failing = SUITE.replace("def test_a", "def test_0():\n    assert 0\n\ndef test_a")
    recorded.write("test_m.py", failing)
    recorded.log(MOVED)
    run = recorded.run(*UPDATE, "-x", *jobs)
    assert run.status in (1, 2)
    assert set(recorded.tests) == {"test_a", "test_b"}
    assert "removed" not in run.said


# --------------------------------------------------------------------- names of the tests

PARAMETERS = """
@pytest.mark.parametrize("x", ["a/b", "c::d", "e#f", "ü", "[g]"])
def test_p(placement, placement_baseline, x):
    line = "x/MatMul: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0"
    placement_baseline.check(placement.parse(line))

class TestClass:
    def test_b(self, check):
        check("part")
"""


def test_tests_are_told_apart_by_class_and_parameters(
    tmp_path: Path, jobs: tuple[str, ...]
) -> None:
    suite = Suite(tmp_path, {"test_m.py": SUITE + PARAMETERS})
    names = ["a/b", "c::d", "e#f", "\\xfc", "[g]"]
    run = suite.run("--tfdevice-baseline", "create", *jobs)
    assert run.status == 0, run.output
    assert set(suite.tests) == {
        *("test_a", "test_b", "TestClass::test_b#part"),
        *(f"test_p[{name}]" for name in names),
    }
    again = suite.run(*jobs, env=CI)
    assert (again.status, again.section) == (0, [])


GROUPED = SUITE.replace("def test_a", '@pytest.mark.xdist_group("one")\ndef test_a')


@pytest.mark.parametrize("mode", [(), UPDATE], ids=["check", "update"])
def test_groups_of_xdist_are_no_part_of_the_name(recorded: Suite, mode: tuple[str, ...]) -> None:
    recorded.write("test_m.py", GROUPED)
    before = recorded.text
    run = recorded.run(*mode, "-n2", "--dist=loadgroup", env=CI)
    assert run.status == 0, run.output
    assert recorded.text == before


def test_a_check_that_is_gone_is_noticed_in_a_group_too(tmp_path: Path) -> None:
    named = GROUPED.replace("    check()\n\ndef", '    check()\n    check("second")\n\ndef')
    suite = Suite(tmp_path, {"test_m.py": named})
    args = ("-n2", "--dist=loadgroup")
    assert suite.run("--tfdevice-baseline", "create", *args).status == 0
    assert set(suite.tests) == {"test_a", "test_a#second", "test_b"}
    suite.write("test_m.py", GROUPED)
    run = suite.run(*args)
    assert run.status == 1
    assert "test_a#second, placement log: the test passed without this check" in run.said


SKIPPING = """
import pytest

@pytest.mark.xdist_group("one")
@pytest.mark.placement_baseline
@pytest.mark.skip(reason="not today")
def test_it(): pass
"""


def test_groups_of_xdist_are_no_part_of_an_expected_skip(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"test_m.py": SKIPPING, "skips.txt": "test_m.py::test_it\n"})
    args = ("--tfdevice-expected-skips", "skips.txt", "-n2", "--dist=loadgroup")
    assert suite.run(*args).status == 0
    suite.write("skips.txt", "")
    run = suite.run(*args)
    assert run.status == 1
    assert run.output.count("test_m.py::test_it\n") >= 1
    assert "let it run, or add the line test_m.py::test_it " in run.said


# ------------------------------------------------------------------------- under xdist too


def test_new_and_vanished_operations_are_listed(recorded: Suite) -> None:
    recorded.log(LOG.replace("Relu", "Elu"))
    run = recorded.run("-n2")
    assert run.status == 0
    assert run.section == [
        "test_m.py::test_a",
        "  new: test_a/dense: Elu  new on GPU:0",
        "  gone: test_a/dense: Relu  gone from GPU:0",
    ]


def test_update_keeps_reasons_that_were_written_by_hand(recorded: Suite) -> None:
    recorded.file.write_text(recorded.text.replace('"unknown"', '"in the export, see #12"'))
    recorded.log(MOVED)
    assert recorded.run(*UPDATE, "-n2").status == 0
    assert '"ResizeBicubic", "device": "CPU:0", "count": 1, "reason": "in the exp' in recorded.text


@pytest.mark.parametrize("mode", [(), UPDATE], ids=["check", "update"])
def test_a_file_that_can_not_be_trusted_fails_and_stays(
    recorded: Suite, mode: tuple[str, ...]
) -> None:
    spoilt = recorded.text.replace("{\n", "{\n<<<<<<< HEAD\n", 1)
    recorded.file.write_text(spoilt)
    run = recorded.run(*mode, "-n2")
    assert run.status == 1
    assert set(run.tests.values()) == {"failed"}
    assert "test_m.json:2: a merge conflict (<<<<<<<) is not settled" in run.said
    assert recorded.text == spoilt


def test_what_is_read_only_is_left_and_the_run_fails(recorded: Suite) -> None:
    import os

    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    recorded.log(MOVED)
    before = recorded.text
    recorded.file.parent.chmod(0o555)
    try:
        run = recorded.run(*UPDATE)
    finally:
        recorded.file.parent.chmod(0o755)
    assert run.status == 1
    assert "can't write" in run.said
    assert recorded.text == before
