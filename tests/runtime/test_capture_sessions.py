"""v1 Sessions, wherever they are opened, against what the graph asks for."""

from __future__ import annotations

from typing import Any

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("sessions")


def record(told: Told, name: str) -> Any:
    """A record by name, or by ``name/part``."""
    found: Any = told
    for part in name.split("/"):
        found = found[part]
    return found


EVERY_WAY = [
    "own",
    "opened_before/first",
    "opened_before/second",
    "other_fetches",
    "users_metadata/watched",
    "deep",
    "default_session",
    "interactive",
    "callable_made_inside",
    "callable_made_before/watched",
    "callable_in_two_windows/first",
    "callable_in_two_windows/second",
    "grown",
    "server",
    "in_a_thread",
]


@pytest.mark.parametrize("name", EVERY_WAY)
def test_every_op_is_seen_where_it_is(told: Told, name: str) -> None:
    devices = {op["op"]: op["device"] for op in record(told, name)["ops"]}
    assert [devices[op] for op in ("free", "pinned", "out")] == ["GPU:0", "CPU:0", "GPU:0"]


@pytest.mark.parametrize("name", EVERY_WAY)
def test_the_pinned_op_fails_with_its_lines(told: Told, name: str) -> None:
    (offender,) = record(told, name)["verdict"]["offenders"]
    assert [offender[k] for k in ("op", "reason", "opened", "line")] == [
        "pinned", "requested-elsewhere", "pin in session", "session op",
    ]  # fmt: skip


@pytest.mark.parametrize("name", EVERY_WAY)
def test_no_way_has_a_problem(told: Told, name: str) -> None:
    assert record(told, name)["problems"] == []


def test_runs_are_counted(told: Told) -> None:
    assert told["own"]["calls"] == {"Session.run": 3}


def test_what_was_not_fetched_did_not_run(told: Told) -> None:
    assert "unused" not in {op["op"] for op in told["own"]["ops"]}


def test_other_fetches_bring_their_ops(told: Told) -> None:
    assert told.one("other_fetches", op="unused")["device"] == "GPU:0"


def test_what_the_graph_grew_by_is_seen(told: Told) -> None:
    assert told.one("grown", op="more")["device"] == "GPU:0"


def test_values_are_right(told: Told) -> None:
    found = told["users_metadata"]
    assert found["value"] == pytest.approx(found["expected"], rel=1e-4)


def test_the_users_own_trace_is_answered(told: Told) -> None:
    assert told["users_metadata"]["traced"] is True


def test_the_users_options_are_left_alone(told: Told) -> None:
    assert told["users_metadata"]["options"] is False


def test_a_callable_gives_the_same_after_the_window(told: Told) -> None:
    assert told["callable_made_before"]["same"] is True


def test_a_callable_works_without_a_window(told: Told) -> None:
    value = told["users_metadata"]["expected"]
    assert told["callable_in_two_windows"]["alone"] == pytest.approx(value, rel=1e-4)


def test_a_partial_run_is_a_problem(told: Told) -> None:
    (problem,) = told["partial_run"]["problems"]
    assert problem.startswith("Session.partial_run was called")


def test_a_partial_run_never_passes(told: Told) -> None:
    assert told["partial_run"]["verdict"]["passed"] is False


def test_a_monitored_session_is_seen(told: Told) -> None:
    found = told.one("monitored", type="ResourceApplyGradientDescent")
    assert found["device"] == "GPU:0"


def test_the_reports_of_a_monitored_session_are_the_frameworks(told: Told) -> None:
    assert told["monitored"]["verdict"]["passed"] is True


def test_an_int32_reference_variable_fails_for_its_dtype(told: Told) -> None:
    found = {o["op"]: o["root"] for o in told["reference_variables"]["verdict"]["offenders"]}
    assert found == {"count": "dtype", "count/Assign": "dtype"}


def test_a_function_called_in_a_v1_graph_is_looked_into(told: Told) -> None:
    found = told.one("functions_inside", type="Asinh")
    assert [found[k] for k in ("device", "opened", "line", "function")] == [
        "CPU:0", "pin in called", "called op", "inner",
    ]  # fmt: skip


def test_control_flow_in_a_v1_graph(told: Told) -> None:
    found = told.one("control_flow", type="Sinh")
    assert [found[k] for k in ("device", "opened", "line")] == [
        "CPU:0", "pin in v1 loop", "v1 loop op",
    ]  # fmt: skip


def test_a_frozen_graph_keeps_its_requests(told: Told) -> None:
    found = told.one("frozen", op="net/pinned")
    assert (found["device"], found["request"]) == ("CPU:0", "CPU:0")


def test_an_op_of_a_frozen_graph_names_the_line_that_ran_it(told: Told) -> None:
    assert told.one("frozen", op="net/pinned")["line"] == "run of frozen"


def test_a_run_that_raised_is_judged(told: Told) -> None:
    (offender,) = told["failing"]["verdict"]["offenders"]
    assert [offender[k] for k in ("op", "opened", "line")] == [
        "wave", "pin in failing", "failing op",
    ]  # fmt: skip


def test_all_that_a_raising_run_needed_is_seen(told: Told) -> None:
    assert told.one("failing", op="checked")["device"] == "GPU:0"


def test_what_a_failing_run_did_is_not_done_again(told: Told) -> None:
    """The placer is asked where its ops are, and runs none of them, those of functions included."""
    found = told["failing_after_a_function"]
    assert "EagerPyFunc" in {op["type"] for op in found["ops"]}
    assert found["calls"] == 1


def test_queues_are_host_work(told: Told) -> None:
    assert told["queue_runners"]["verdict"]["passed"] is True


def test_the_thread_of_a_queue_runner_is_seen(told: Told) -> None:
    assert told.one("queue_runners", type="QueueEnqueueV2")["device"] == "CPU:0"


def test_the_session_class_is_as_it_was(told: Told) -> None:
    assert told["class restored"] is True
