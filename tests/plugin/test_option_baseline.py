"""``--tfdevice-baseline``: what is compared, what is written, and what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_process import ENVIRONMENT, LOG, SUITE, Run, Suite

UPDATE = ("--tfdevice-baseline", "update")
CREATE = ("--tfdevice-baseline", "create")
CI = {"CI": "true"}
MOVED = LOG.replace("test_a/dense/MatMul MatMul GPU:0", "test_a/dense/MatMul MatMul CPU:0")
WITHOUT_B = SUITE[: SUITE.index("def test_b")]


@pytest.fixture(params=[(), ("-n2",)], ids=["alone", "xdist"])
def jobs(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """One process, or two workers and a controller."""
    return request.param


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Two tests, without a baseline."""
    return Suite(tmp_path)


@pytest.fixture
def recorded(suite: Suite) -> Suite:
    """Two tests with a baseline."""
    assert suite.run(*CREATE).status == 0
    return suite


def other_environment(suite: Suite) -> None:
    """Adds an entry of another machine for a test that isn't here."""
    text = suite.text.replace(
        '"tests": {\n',
        '"tests": {\n    "test_gone": {\n      "NVIDIA A100, TensorFlow 2.15": {\n'
        '        "operations": [\n'
        '          {"scope": "", "type": "MatMul", "device": "GPU:0", "count": 1}\n'
        "        ]\n      }\n    },\n",
    )
    suite.file.write_text(text)


# ------------------------------------------------------------------------ none is there


def test_a_missing_one_is_created_and_that_is_said(suite: Suite, jobs: tuple[str, ...]) -> None:
    run = suite.run(*jobs)
    assert run.status == 0
    assert suite.devices("test_a") == {
        "test_a/dense/MatMul": "GPU:0",
        "test_a/dense/Relu": "GPU:0",
        "test_a/head/ResizeBicubic": "CPU:0",
    }
    assert suite.devices("test_b") == {"test_b/MatMul": "GPU:0"}
    assert run.section == ["__placements__/test_m.json: 2 entries created; commit it"]
    assert suite.only_files() == ["test_m.json"]


def test_a_missing_one_fails_in_ci(suite: Suite, jobs: tuple[str, ...]) -> None:
    run = suite.run(*jobs, env=CI)
    assert run.status == 1
    assert run.tests == {"test_m.py::test_a": "failed", "test_m.py::test_b": "failed"}
    assert "there is no baseline __placements__/test_m.json, test_a, placement log" in run.said
    assert "pytest test_m.py::test_a --tfdevice-baseline create" in run.said
    assert not suite.file.parent.exists()


def test_ci_is_not_everything_that_sets_the_variable(suite: Suite) -> None:
    assert suite.run(env={"CI": "false"}).status == 0
    assert suite.file.exists()


def test_create_is_asked_for_in_ci(suite: Suite, jobs: tuple[str, ...]) -> None:
    assert suite.run(*jobs, *CREATE, env=CI).status == 0
    assert set(suite.tests) == {"test_a", "test_b"}


def test_one_of_another_environment_is_missing_here(recorded: Suite) -> None:
    recorded.file.write_text(recorded.text.replace(ENVIRONMENT, "NVIDIA A100, TensorFlow 2.15"))
    run = recorded.run(env=CI)
    assert run.tests["test_m.py::test_a"] == "failed"
    assert "it is there for NVIDIA A100, TensorFlow 2.15" in run.said


# --------------------------------------------------------------------------- check


def test_an_unchanged_model_passes_and_nothing_is_written(
    recorded: Suite, jobs: tuple[str, ...]
) -> None:
    before = recorded.text, recorded.file.stat().st_mtime_ns
    run = recorded.run(*jobs, env=CI)
    assert run.status == 0
    assert run.section == []
    assert (recorded.text, recorded.file.stat().st_mtime_ns) == before


def test_an_operation_that_left_the_gpu_fails_its_test(
    recorded: Suite, jobs: tuple[str, ...]
) -> None:
    before = recorded.text
    recorded.log(MOVED)
    run = recorded.run(*jobs)
    assert run.tests == {"test_m.py::test_a": "failed", "test_m.py::test_b": "passed"}
    assert "1 operation that counts left GPU:0 since the baseline was recorded" in run.said
    assert "test_a/dense: MatMul GPU:0 → CPU:0: unknown" in run.said
    assert "pytest test_m.py::test_a --tfdevice-baseline update" in run.said
    assert "Relu" not in run.said
    assert recorded.text == before


def test_a_new_operation_off_the_gpu_fails_its_test(recorded: Suite) -> None:
    recorded.log(f"{LOG}test_b/tail/Sinh Sinh CPU:0\n")
    run = recorded.run()
    assert run.tests["test_m.py::test_b"] == "failed"
    assert "1 more operation is on CPU:0 since the baseline was recorded" in run.said
    assert "test_b/tail: Sinh new on CPU:0" in run.said


def test_an_operation_that_came_to_the_gpu_is_an_improvement_to_record(
    recorded: Suite, jobs: tuple[str, ...]
) -> None:
    before = recorded.text
    recorded.log(LOG.replace("CPU:0", "GPU:0"))
    run = recorded.run(*jobs, env=CI)
    assert run.status == 0
    assert any("test_a/head: ResizeBicubic  CPU:0 → GPU:0" in line for line in run.section)
    assert "pytest test_m.py::test_a --tfdevice-baseline update" in run.said
    assert recorded.text == before


def test_new_and_vanished_operations_are_listed(recorded: Suite) -> None:
    recorded.log(LOG.replace("Relu", "Elu"))
    run = recorded.run()
    assert run.status == 0
    assert run.section == [
        "test_m.py::test_a",
        "  new: test_a/dense: Elu  new on GPU:0",
        "  gone: test_a/dense: Relu  gone from GPU:0",
    ]


def test_a_record_of_nothing_is_an_error(recorded: Suite) -> None:
    recorded.log(LOG.replace("test_b", "another"))
    run = recorded.run()
    assert run.tests["test_m.py::test_b"] == "failed"
    assert "can't be compared with a baseline" in run.said


def test_counters_in_names_make_no_difference(recorded: Suite) -> None:
    recorded.log(LOG.replace("dense/MatMul", "dense_4/MatMul_17").replace("dense/R", "dense_4/R"))
    assert recorded.run(env=CI).section == []


# ------------------------------------------------------------------ update and create


def test_update_rewrites_what_ran_and_nothing_else(recorded: Suite, jobs: tuple[str, ...]) -> None:
    other_environment(recorded)
    recorded.log(MOVED.replace("test_b/MatMul MatMul GPU", "test_b/MatMul MatMul CPU"))
    run = recorded.run(*jobs, *UPDATE, "-k", "test_a", env=CI)
    assert run.status == 0
    assert run.section == ["__placements__/test_m.json: 1 entry updated; commit it"]
    assert recorded.devices("test_a")["test_a/dense/MatMul"] == "CPU:0"
    assert recorded.devices("test_b") == {"test_b/MatMul": "GPU:0"}
    assert set(recorded.tests) == {"test_a", "test_b", "test_gone"}
    assert recorded.only_files() == ["test_m.json"]


def test_what_was_updated_passes(recorded: Suite) -> None:
    recorded.log(MOVED)
    recorded.run(*UPDATE)
    run = recorded.run(env=CI)
    assert (run.status, run.section) == (0, [])


def test_update_keeps_reasons_that_were_written_by_hand(recorded: Suite) -> None:
    recorded.file.write_text(
        recorded.text.replace('"reason": "unknown"', '"reason": "only in the export, see #12"')
    )
    recorded.log(MOVED)
    recorded.run(*UPDATE)
    assert '"ResizeBicubic", "device": "CPU:0", "count": 1, "reason": "only in the' in recorded.text
    assert '"MatMul", "device": "CPU:0", "count": 1, "reason": "unknown"' in recorded.text


def test_an_update_that_changes_nothing_leaves_the_file_alone(recorded: Suite) -> None:
    before = recorded.file.stat().st_mtime_ns
    run = recorded.run(*UPDATE)
    assert run.section == ["__placements__/test_m.json: 2 entries updated; nothing changed"]
    assert recorded.file.stat().st_mtime_ns == before


def test_create_adds_what_is_missing_and_checks_the_rest(suite: Suite) -> None:
    suite.run("test_m.py::test_a")
    before = suite.devices("test_a")
    suite.log(MOVED)
    run = suite.run(*CREATE)
    assert run.tests == {"test_m.py::test_a": "failed", "test_m.py::test_b": "passed"}
    assert suite.devices("test_a") == before
    assert suite.devices("test_b") == {"test_b/MatMul": "GPU:0"}


def test_a_test_that_fails_is_not_recorded(tmp_path: Path) -> None:
    suite = Suite(tmp_path, {"test_m.py": SUITE.replace("check()\n\ndef", "check(); 1 / 0\n\ndef")})
    run = suite.run(*UPDATE)
    assert run.tests["test_m.py::test_a"] == "failed"
    assert set(suite.tests) == {"test_b"}


def test_off_compares_and_writes_nothing(recorded: Suite) -> None:
    before = recorded.text
    recorded.log(MOVED)
    run = recorded.run("--tfdevice-baseline", "off")
    assert (run.status, run.section) == (0, [])
    assert recorded.text == before


# ----------------------------------------------------------------------------- stale


def test_an_entry_without_its_test_fails_the_run(recorded: Suite, jobs: tuple[str, ...]) -> None:
    before = recorded.text
    recorded.write("test_m.py", WITHOUT_B)
    run = recorded.run(*jobs)
    assert run.status == 1
    assert run.tests == {"test_m.py::test_a": "passed"}
    assert run.section[0] == (
        "stale: __placements__/test_m.json, test_b, placement log: there is no such test"
    )
    assert "pytest test_m.py --tfdevice-baseline update" in run.section[1]
    assert recorded.text == before


def test_update_removes_an_entry_without_its_test(recorded: Suite, jobs: tuple[str, ...]) -> None:
    recorded.write("test_m.py", WITHOUT_B)
    run = recorded.run(*jobs, *UPDATE)
    assert run.status == 0
    assert set(recorded.tests) == {"test_a"}
    assert "1 entry removed" in run.said


def test_an_entry_whose_test_asks_for_none_any_more_is_stale(recorded: Suite) -> None:
    recorded.write("test_m.py", SUITE.replace("def test_b(check):\n    check()", "def test_b(): 0"))
    run = recorded.run()
    assert run.status == 1
    assert "test_b, placement log: the test asks for no baseline" in run.said


def test_a_check_that_a_test_no_longer_makes_is_stale(tmp_path: Path) -> None:
    named = SUITE.replace("    check()\n\ndef", '    check()\n    check("second")\n\ndef')
    suite = Suite(tmp_path, {"test_m.py": named})
    suite.run(*CREATE)
    assert set(suite.tests) == {"test_a", "test_a#second", "test_b"}
    suite.write("test_m.py", SUITE)
    run = suite.run()
    assert run.status == 1
    assert "test_a#second, placement log: the test passed without this check" in run.said


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "test_a"),
        ("-m", "not slow"),
        ("--deselect", "test_m.py::test_b"),
        ("test_m.py::test_a",),
        ("-k", "test_a", "-n2"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("update", [(), UPDATE], ids=["check", "update"])
def test_entries_of_deselected_tests_are_kept(
    recorded: Suite, args: tuple[str, ...], update: tuple[str, ...]
) -> None:
    recorded.write("pytest.ini", "[pytest]\nmarkers = slow\n")
    slow = SUITE.replace("def test_b", "@pytest.mark.slow\ndef test_b")
    recorded.write("test_m.py", slow)
    run = recorded.run(*args, *update)
    assert run.status == 0
    assert run.tests == {"test_m.py::test_a": "passed"}
    assert set(recorded.tests) == {"test_a", "test_b"}


def test_a_node_id_says_nothing_of_the_other_tests_of_its_module(recorded: Suite) -> None:
    recorded.write("test_m.py", WITHOUT_B)
    assert recorded.run("test_m.py::test_a").status == 0


def test_entries_of_skipped_tests_are_kept(recorded: Suite, jobs: tuple[str, ...]) -> None:
    skipped = SUITE.replace("def test_b", "@pytest.mark.skip\ndef test_b")
    recorded.write("test_m.py", skipped)
    assert recorded.run(*jobs, *UPDATE).status == 0
    assert recorded.run(*jobs).status == 0
    assert set(recorded.tests) == {"test_a", "test_b"}


def test_entries_of_other_machines_are_kept(recorded: Suite, jobs: tuple[str, ...]) -> None:
    other_environment(recorded)
    before = recorded.tests
    assert recorded.run(*jobs).status == 0
    assert recorded.run(*jobs, *UPDATE).status == 0
    assert recorded.tests == before
    assert "test_gone" in before


def test_entries_of_other_modules_are_kept(recorded: Suite) -> None:
    recorded.write("test_other.py", "def test_it(): pass\n")
    recorded.write("test_m.py", WITHOUT_B)
    assert recorded.run("test_other.py").status == 0


def test_a_module_that_can_not_be_collected_keeps_its_entries(recorded: Suite) -> None:
    before = recorded.text
    recorded.write("test_m.py", "import nothing_of_this_name\n")
    recorded.write("test_other.py", SUITE.replace("test_a", "test_c").replace("test_b", "test_d"))
    run = recorded.run(*UPDATE, "--continue-on-collection-errors")
    assert run.status == 1
    assert recorded.text == before
    assert "removed" not in run.said


def test_a_module_without_any_test_left_is_noticed(recorded: Suite) -> None:
    recorded.write("test_other.py", SUITE)
    recorded.write("test_m.py", "")
    run = recorded.run()
    assert run.status == 1
    assert "test_a, placement log: there is no such test" in run.said


def test_the_file_of_a_module_that_is_gone_is_stale(recorded: Suite) -> None:
    (recorded.folder / "test_m.py").rename(recorded.folder / "test_n.py")
    run = recorded.run()
    assert run.status == 1
    assert "stale: __placements__/test_m.json: there is no test_m.py" in run.said
    recorded.run(*UPDATE)
    assert recorded.only_files() == ["test_n.json"]


# ------------------------------------------------------------------------ the option


@pytest.mark.parametrize("where", ["command line", "ini"])
def test_an_unknown_mode_is_a_usage_error(suite: Suite, where: str) -> None:
    def run() -> Run:
        if where == "ini":
            suite.write("pytest.ini", "[pytest]\ntfdevice_baseline = sometimes\n")
            return suite.run()
        return suite.run("--tfdevice-baseline", "sometimes")

    found = run()
    assert found.status == 4
    assert "'sometimes' is none of check, create, update, off" in found.said


def test_the_command_line_goes_before_the_ini_file(recorded: Suite) -> None:
    recorded.write("pytest.ini", "[pytest]\ntfdevice_baseline = update\n")
    recorded.log(MOVED)
    assert recorded.run("--tfdevice-baseline", "check").status == 1
    assert recorded.run().status == 0
    assert recorded.devices("test_a")["test_a/dense/MatMul"] == "CPU:0"
