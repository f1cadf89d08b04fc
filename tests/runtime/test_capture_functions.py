"""The structured channel inside functions, against what TensorFlow documents of placement."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return Told(run_program("functions").found | run_program("control_flow").found)


@pytest.mark.parametrize("record", ["cold", "warm"])
@pytest.mark.parametrize(
    ("op", "device"), [("Sinh", "GPU:0"), ("Cosh", "CPU:0"), ("MatMul", "GPU:0")]
)
def test_ops_of_a_function(told: Told, record: str, op: str, device: str) -> None:
    found = told.one(record, type=op)
    assert (found["device"], found["function"], found["count"]) == (device, "plain", 1)


def test_calls_are_counted(told: Told) -> None:
    assert told["warm"]["calls"] == {"plain": 2}


def test_what_ran_before_the_window_is_not_in_it(told: Told) -> None:
    assert [(op["type"], op["origin"]) for op in told["warm_but_unused"]["ops"]] == [
        ("Sinh", "eager")
    ]


def test_names_are_those_of_the_user(told: Told) -> None:
    assert told.one("named_op", type="Sinh")["op"] == "block/wave"


@pytest.mark.parametrize(
    ("record", "path", "opened", "line"),
    [
        # A function calls a function that calls a function: all are inlined.
        ("nested", "Asinh", "inner pin", "inner op"),
        ("called_under_scope", "Asinh", "scope of call", "in scope"),
        ("several_between_calls", "Erfc", "pin of second", "of second"),
        # What an optimiser made one op of, by the names that they were written with.
        ("composed", "Cosh", "pin of row", "row"),
        ("composed", "Tanh", "pin of row", "row"),
        # Not inlined: its author forbade it.
        ("several_between_calls", "Erf", "pin of inner", "of inner"),
        ("gradient", "Tanh", "forward pin", "forward op"),
        ("eager_tape", "Tanh", "taped pin", "taped op"),
        ("while_loop", "while/body/while/Sinh", "pin in body", "in body"),
        ("while_gradient", "while/body/while/Sinh", "pin in loop", "in loop"),
        ("cond", "cond/then/cond/Sinh", "pin in then", "in then"),
        (
            "switch_case",
            "switch_case/indexed_case/branch1/switch_case/indexed_case/Cosh",
            "pin in case",
            "in case",
        ),
        ("while_in_cond", "cond/then/cond/while/body/cond/while/Sinh", "deep pin", "deep op"),
        ("dataset_loop", "Sinh", "pin in data loop", "in data loop"),
        ("graph_function", "Sinh", "pin in wrapped", "wrapped op"),
        ("map_fn", "map/while/body/map/while/Sinh", "pin in map_fn", "in map_fn"),
        ("custom_gradient", "Cosh", "pin in grad", "in grad"),
        ("dead_function", "Sinh", "pin in dead", "dead op"),
        ("integer_ranks", "Invert", "pin of integers", "matrix of integers"),
    ],
)  # fmt: skip
def test_a_pin_keeps_its_request_and_line(
    told: Told, record: str, path: str, opened: str, line: str
) -> None:
    found = told.one(record, path=path)
    assert [found[k] for k in ("device", "request", "opened", "line")] == [
        "CPU:0", "CPU:0", opened, line,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ("nested", "Tanh"),
        ("gradient", "gradient_tape/TanhGrad"),
        ("eager_tape", "gradients/Tanh_grad/TanhGrad"),
        ("while_loop", "while/body/while/Tanh"),
        (
            "while_gradient",
            "gradient_tape/while/while_grad/body/gradient_tape/while/gradients/while/Sinh_grad/mul",
        ),
        ("cond", "cond/else/cond/Cosh"),
        (
            "cond_gradient",
            "gradient_tape/cond/StatelessIf/then/gradient_tape/cond/gradients/cond/Sinh_grad/Cosh",
        ),
        ("switch_case", "switch_case/indexed_case/branch2/switch_case/indexed_case/Tanh"),
        ("case", "case/cond/else/case/cond/cond/else/case/cond/cond/Cosh"),
        ("dataset_loop", "Tanh"),
        ("dataset_loop", "ReadVariableOp"),
        ("dataset_reduce", "Sinh"),
        ("iterator_loop", "while/body/while/Sinh"),
    ],
)
def test_what_is_free_goes_to_the_gpu(told: Told, record: str, path: str) -> None:
    assert told.one(record, path=path)["device"] == "GPU:0"


@pytest.mark.parametrize(
    ("record", "failing"),
    [
        ("cold", ["Cosh"]),
        ("nested", ["Asinh"]),
        ("called_under_scope", ["Asinh"]),
        ("while_gradient", ["Sinh"]),
        ("cond_gradient", []),
        ("case", []),
        ("dataset_loop", ["Sinh"]),
        ("dataset_reduce", []),
        ("iterator_loop", []),
        # A matrix of integers is data; a single integer is bookkeeping.
        ("integer_ranks", ["Cast", "Greater", "Invert"]),
        ("compiled_nested", []),
        ("relaxed_shapes", []),
    ],
)
def test_verdicts(told: Told, record: str, failing: list[str]) -> None:
    assert sorted(o["type"] for o in told[record]["verdict"]["offenders"]) == failing


@pytest.mark.parametrize(
    "record", ["nested", "called_under_scope", "several_between_calls", "while_gradient"]
)
def test_a_pin_is_the_reason(told: Told, record: str) -> None:
    assert {o["reason"] for o in told[record]["verdict"]["offenders"]} == {"requested-elsewhere"}


def test_a_call_under_a_scope_inside_a_function(told: Told) -> None:
    found = told.one("nested_call_under_scope", type="Asinh")
    assert (found["request"], found["opened"]) == ("CPU:0", "scope of inner call")


def test_what_an_optimiser_moved_is_told_from_what_was_placed(told: Told) -> None:
    """``pin_to_host_optimization``, which the program switches on."""
    reasons = {o["reason"] for o in told["pin_to_host"]["verdict"]["offenders"]}
    assert reasons == {"moved"}


def test_functions_of_one_name_keep_apart(told: Told) -> None:
    found = told.all("same_name", type="Acosh")
    assert sorted((op["device"], op["request"]) for op in found) == [
        ("CPU:0", "CPU:0"), ("GPU:0", "GPU:0"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "record", ["while_gradient", "cond_gradient", "eager_tape", "while_in_cond"]
)
def test_names_of_functions_have_no_numbers(told: Told, record: str) -> None:
    """TensorFlow numbers functions as they are made: a baseline would never match again."""
    names = {op["function"] for op in told[record]["ops"] if op["function"]}
    assert not [name for name in names if any(c.isdigit() for c in name)]


# ------------------------------------------------------------------------------- compiled units


@pytest.mark.parametrize("record", ["cold", "warm"])
def test_a_compiled_function_is_one_unit(told: Told, record: str) -> None:
    units = [op for op in told["compiled"][record]["ops"] if op["contents"]]
    assert [(op["op"], op["device"], op["unit"]) for op in units] == [("unit", "GPU:0", "unit")]


@pytest.mark.parametrize("record", ["cold", "warm"])
def test_what_is_in_a_unit_is_listed(told: Told, record: str) -> None:
    inside = {op["type"] for op in told["compiled"][record]["ops"] if op["origin"] == "compiled"}
    assert {"Sinh", "MatMul"} <= inside


def test_a_pin_inside_a_unit_is_a_note(told: Told) -> None:
    (note,) = told["compiled"]["cold"]["verdict"]["notes"]
    assert note.startswith("Sinh asks for CPU:0 at ")


def test_a_pin_inside_a_unit_passes(told: Told) -> None:
    assert told["compiled"]["cold"]["verdict"]["passed"] is True


def test_a_unit_called_on_the_cpu_fails(told: Told) -> None:
    (offender,) = told["compiled"]["on cpu"]["verdict"]["offenders"]
    assert (offender["reason"], offender["opened"]) == ("xla", "unit on cpu")


def test_a_unit_called_by_a_function(told: Told) -> None:
    found = told.one("compiled_nested", unit="unit", origin="function")
    assert (found["device"], found["type"]) == ("GPU:0", "unit")


def test_a_unit_called_by_another_thread(told: Told) -> None:
    assert told.one("compiled_in_thread", unit="unit", origin="function")["device"] == "GPU:0"


# ----------------------------------------------------------------------------- errors, restored


def test_a_function_that_raised_is_seen(told: Told) -> None:
    found = [op for op in told["error_in_function"]["own"]["ops"] if op["type"] == "Sinh"]
    assert [(op["device"], op["function"]) for op in found] == [("GPU:0", "f")]


def test_a_function_that_raised_is_not_in_the_next_window(told: Told) -> None:
    assert [op["type"] for op in told["error_in_function"]["after"]["ops"]] == ["Tanh"]


@pytest.mark.parametrize("how", ["call", "signature"])
def test_a_restored_function_keeps_its_requests(told: Told, how: str) -> None:
    found = [op for op in told["saved_model"][how]["ops"] if op["type"] == "Sinh"]
    assert [(op["device"], op["request"]) for op in found] == [("CPU:0", "CPU:0")]


@pytest.mark.parametrize("how", ["call", "signature"])
def test_a_restored_function_names_the_line_that_ran_it(told: Told, how: str) -> None:
    """TensorFlow doesn't save the lines of a function."""
    found = [op for op in told["saved_model"][how]["ops"] if op["type"] == "Sinh"]
    assert [op["line"] for op in found] == [f"{how} of loaded"]


def test_no_check_had_a_problem(told: Told) -> None:
    assert [n for n in told.found if told[n].get("problems")] == []
