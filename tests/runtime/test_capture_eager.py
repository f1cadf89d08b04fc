"""The structured channel on eager ops, threads and windows, against what TensorFlow documents."""

from __future__ import annotations

from typing import Any

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return Told(run_program("eager_ops").found | run_program("windows").found)


def types(record: dict[str, Any]) -> list[str]:
    return sorted(op["type"] for op in record["ops"])


def by_type(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {op["type"]: op for op in record["ops"]}


# ------------------------------------------------------------ before TensorFlow has its devices


def test_a_window_does_not_initialise_devices(told: Told) -> None:
    assert told["early initialised"] is False


def test_a_window_opened_early_sees_eager_ops(told: Told) -> None:
    assert told.one("early", type="Sin")["device"] == "GPU:0"


def test_a_window_opened_early_sees_inside_functions(told: Told) -> None:
    assert told.one("early", type="Cos")["origin"] == "function"


# ---------------------------------------------------------------------------- scopes and lines


@pytest.mark.parametrize(
    ("op", "device", "request_", "opened", "line"),
    [
        ("Cos", "CPU:0", "CPU:0", "pin", "pinned"),
        ("MatMul", "GPU:0", "GPU:0", "ask", "asked"),
        ("Tan", "GPU:0", None, None, "thrice"),
        ("Exp", "GPU:0", None, None, "halves"),
    ],
)
def test_scope_device_and_line(
    told: Told, op: str, device: str, request_: str | None, opened: str | None, line: str
) -> None:
    found = told.one("scopes", type=op)
    assert [found[k] for k in ("device", "request", "opened", "line")] == [
        device, request_, opened, line,
    ]  # fmt: skip


def test_repeated_ops_are_counted(told: Told) -> None:
    assert told.one("scopes", type="Tan")["count"] == 3


def test_dtypes_are_exact(told: Told) -> None:
    assert told.one("scopes", type="Exp")["dtypes"] == {"T": "float16"}


def test_shapes_are_exact(told: Told) -> None:
    assert told.one("scopes", type="MatMul")["outputs"] == [["float32", [4, 4]]]


def test_the_pinned_op_fails_with_its_scope(told: Told) -> None:
    (offender,) = told["scopes"]["verdict"]["offenders"]
    assert (offender["type"], offender["reason"], offender["opened"]) == (
        "Cos", "requested-elsewhere", "pin",
    )  # fmt: skip


def test_a_scope_from_a_helper_is_a_request_all_the_same(told: Told) -> None:
    assert told.one("helper_scope", type="Cos")["request"] == "CPU:0"


@pytest.mark.parametrize(
    ("op", "request_", "opened"),
    [("Sin", "GPU:0", "inner"), ("Cos", "CPU:0", "outer"), ("Exp", None, None)],
)
def test_the_innermost_scope_is_the_request(
    told: Told, op: str, request_: str | None, opened: str | None
) -> None:
    found = told.one("stacked_scopes", type=op)
    assert (found["request"], found["opened"]) == (request_, opened)


# ----------------------------------------------------------------------------------- integers


def test_int32_matmul_has_no_gpu_kernel(told: Told) -> None:
    (offender,) = told["integers"]["verdict"]["offenders"]
    assert (offender["type"], offender["reason"]) == ("MatMul", "dtype")


def test_int32_add_on_the_gpu_is_in_host_memory(told: Told) -> None:
    assert told.one("integers", type="AddV2")["on host"] is True


def test_an_int32_variable_under_the_gpu_is_on_the_cpu(told: Told) -> None:
    assert told.one("int_variable", type="VarHandleOp")["device"] == "CPU:0"


def test_its_request_is_the_scope_of_the_user(told: Told) -> None:
    found = told.one("int_variable", type="VarHandleOp")
    assert (found["request"], found["opened"], found["line"]) == ("GPU:0", "gpu scope", "variable")


def test_an_int32_variable_fails_for_its_dtype(told: Told) -> None:
    roots = {o["root"] for o in told["int_variable"]["verdict"]["offenders"]}
    assert roots == {"dtype"}


def test_a_gpu_that_is_not_there_is_the_request(told: Told) -> None:
    found = told.one("absent_gpu", type="Sin")
    assert (found["request"], found["device"]) == ("GPU:7", "GPU:0")


# ---------------------------------------------------------------------------------- that raise


@pytest.mark.parametrize(
    ("op", "line"), [("MatMul", "wrong shapes"), ("CheckNumerics", "not a number")]
)
def test_an_op_that_raised_is_told_with_its_line(told: Told, op: str, line: str) -> None:
    found = told.one("raises", type=op)
    assert (found["raised"], found["device"], found["line"]) == (True, "GPU:0", line)


def test_an_op_that_did_not_raise_is_not_said_to(told: Told) -> None:
    assert told.one("raises", type="Fill")["raised"] is False


def test_an_op_that_raised_on_the_cpu_fails_in_its_own_window(told: Told) -> None:
    (offender,) = told["raises_last"]["verdict"]["offenders"]
    assert (offender["type"], offender["line"]) == ("CheckNumerics", "raising op")


def test_an_op_that_raised_is_not_in_the_next_window(told: Told) -> None:
    assert types(told["after_raise"]) == ["Sin"]


def test_an_op_that_raises_again_is_told_again(told: Told) -> None:
    assert told.one("raises_again", type="CheckNumerics")["raised"] is True


# ------------------------------------------------------------------------------------- windows


def test_silence_is_an_error(told: Told) -> None:
    assert told["nothing"]["verdict"]["problems"] == [
        "nothing ran on TensorFlow while this test was watched"
    ]


def test_an_outer_window_sees_all(told: Told) -> None:
    assert types(told["nested_windows"]["outer"]) == ["Cos", "Sin", "Tan"]


def test_an_inner_window_sees_its_own(told: Told) -> None:
    assert types(told["nested_windows"]["inner"]) == ["Cos"]


def test_windows_may_overlap(told: Told) -> None:
    assert told["overlapping_windows"] == [["Sin", "Cos"], ["Cos", "Tan"]]


def test_a_window_left_by_an_interrupt_has_its_record(told: Told) -> None:
    assert types(told["window_left_by_error"]) == ["Sin"]


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("callbacks", 0),
        ("executes with callbacks", False),
        ("methods", []),
        ("collected", 0),
        ("soft placement", True),
    ],
)
def test_nothing_is_left_behind(told: Told, what: str, expected: object) -> None:
    assert told["left_behind"][what] == expected


# ------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("op", ["Acosh", "AddV2", "Asinh"])
def test_a_thread_without_a_window_is_seen(told: Told, op: str) -> None:
    assert told.one("thread_without_window", type=op)["device"] == "GPU:0"


def test_a_function_of_another_thread_has_its_name(told: Told) -> None:
    assert told.one("thread_without_window", type="Asinh")["function"] == "<lambda>"


@pytest.mark.parametrize(("window", "op"), [("a", "Erf"), ("b", "Erfc")])
def test_two_threads_with_windows_see_their_own(told: Told, window: str, op: str) -> None:
    seen = set(types(told["two_windows_in_two_threads"][window]))
    assert seen == {op, "Square"}


@pytest.mark.parametrize(("window", "op"), [("thread", "Log1p"), ("main", "Expm1")])
def test_a_window_in_a_thread_keeps_its_ops(told: Told, window: str, op: str) -> None:
    assert types(told["thread_with_window_while_main_has_one"][window]) == [op]


# --------------------------------------------------------------------------------- host context


@pytest.mark.parametrize(
    ("record", "line"),
    [("py_functions", "in py_function"), ("eager_py_function", "in eager py_function")],
)
def test_what_runs_in_a_py_function_is_host_work(told: Told, record: str, line: str) -> None:
    found = told.one(record, type="Sinh")
    assert (found["host"], found["line"]) == ("py_function", line)


def test_what_is_beside_a_py_function_is_not(told: Told) -> None:
    assert told.one("eager_py_function", type="EagerPyFunc")["host"] is None


@pytest.mark.parametrize("record", ["py_functions", "eager_py_function"])
def test_py_functions_do_not_fail(told: Told, record: str) -> None:
    assert told[record]["verdict"]["passed"] is True


@pytest.mark.parametrize(("record", "op"), [("pipelines", "Rsqrt"), ("generator_data", "Rint")])
def test_the_body_of_a_map_is_no_work_of_the_gpu(told: Told, record: str, op: str) -> None:
    assert [o for o in told.all(record, type=op) if o["host"] != "tf.data"] == []


@pytest.mark.parametrize(
    ("record", "op"), [("pipelines", "Reciprocal"), ("generator_data", "Round")]
)
def test_what_a_pipeline_gives_is_worked_on_by_the_gpu(told: Told, record: str, op: str) -> None:
    assert told.one(record, type=op)["device"] == "GPU:0"


def test_pipelines_do_not_fail(told: Told) -> None:
    assert told["pipelines"]["verdict"]["passed"] is True


# -------------------------------------------------------------------------------------- reduce


@pytest.mark.parametrize("how", ["reduce", "reduce in function"])
def test_the_body_of_a_reduce_takes_gpu_memory(told: Told, how: str) -> None:
    """TensorFlow's own statistics: why the body of a reduce is judged, and not host work."""
    assert told["reduce_takes_gpu_memory"][how] >= 4_000_000


def test_the_body_of_a_map_takes_none(told: Told) -> None:
    assert told["reduce_takes_gpu_memory"]["map"] == 0


def test_the_body_of_an_eager_reduce_is_seen(told: Told) -> None:
    assert told.one("eager_reduce", type="Lgamma")["device"] == "GPU:0"


def test_a_pin_in_an_eager_reduce_is_seen(told: Told) -> None:
    found = told.one("eager_reduce_pinned", type="Lgamma")
    assert (found["device"], found["opened"]) == ("CPU:0", "pin in reduce")


# ------------------------------------------------------------------------------ kinds of tensors


def test_ragged_and_sparse_tensors_are_on_the_gpu(told: Told) -> None:
    assert told["ragged_and_sparse"]["verdict"]["passed"] is True


def test_sparse_matmul_is_seen(told: Told) -> None:
    assert told.one("ragged_and_sparse", type="SparseTensorDenseMatMul")["device"] == "GPU:0"


def test_gradients_of_a_tape_are_seen(told: Told) -> None:
    assert told.one("eager_gradient", type="TanhGrad")["device"] == "GPU:0"


def test_an_op_without_results_is_where_its_variable_is(told: Told) -> None:
    found = told.all("no_outputs", type="AssignVariableOp")
    assert {(op["device"], op["request"]) for op in found} == {("GPU:0", None), ("CPU:0", "CPU:0")}


# ------------------------------------------------------------------------ others who trace graphs


def test_the_users_trace_has_its_graphs(told: Told) -> None:
    assert told["traced"]["Digamma in the trace"] is True


@pytest.mark.parametrize("op", ["Digamma", "Sigmoid", "Softplus"])
def test_a_trace_inside_takes_nothing_from_the_window(told: Told, op: str) -> None:
    assert told.one("traced", type=op)["device"] == "GPU:0"


def test_a_trace_around_a_window_goes_on(told: Told) -> None:
    assert told["traced_around"]["after"] == ["Atanh", "Lgamma"]


def test_a_users_callback_sees_his_ops_only(told: Told) -> None:
    assert told["own_callback_survives"]["mine"] == ["Sin", "Cos"]


def test_a_collection_that_was_switched_off_is_a_problem(told: Told) -> None:
    assert "graph collection was switched off" in told["cut_off"]["cut"]["problems"][0]


def test_the_next_window_works_again(told: Told) -> None:
    assert told["cut_off"]["again"]["problems"] == []


def test_cleared_callbacks_are_a_problem(told: Told) -> None:
    assert "op callbacks were cleared" in told["callbacks_cleared"]["problems"][0]


# -------------------------------------------------------------------------------- asynchronous


@pytest.mark.parametrize(("op", "device"), [("Sinh", "CPU:0"), ("Cosh", "GPU:0")])
def test_asynchronous_ops_are_seen(told: Told, op: str, device: str) -> None:
    assert told.one("asynchronous", type=op)["device"] == device


def test_asynchronous_functions_are_seen(told: Told) -> None:
    assert told.one("asynchronous", type="Erfinv")["device"] == "GPU:0"


def test_an_asynchronous_error_is_told_in_its_window(told: Told) -> None:
    (op,) = told["asynchronous_error"]["own"]["ops"]
    assert (op["type"], op["device"], op["raised"]) == ("CheckNumerics", "CPU:0", True)


def test_an_asynchronous_error_that_nobody_looked_at_is_told(told: Told) -> None:
    ops = told["asynchronous_error"]["unread"]["ops"]
    assert {op["type"]: op["raised"] for op in ops} == {"Sin": False, "CheckNumerics": True}


def test_an_earlier_asynchronous_error_is_not_the_next_windows(told: Told) -> None:
    assert [op["raised"] for op in told["asynchronous_error"]["after"]["ops"]] == [False]


def test_an_asynchronous_error_stays_for_the_user(told: Told) -> None:
    assert told["asynchronous_error"]["error stays"] is True


def test_no_check_had_a_problem_that_it_should_not_have(told: Told) -> None:
    expected = {"callbacks_cleared"}
    problems = {
        name
        for name, value in told.found.items()
        if isinstance(value, dict) and value.get("problems")
    }
    assert problems == expected
