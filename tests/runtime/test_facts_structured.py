"""What the structured channel rests on: each test tells when TensorFlow changes it."""

from __future__ import annotations

import pytest
from tf_process import Told, needs_tensorflow, run_program

needs_tensorflow()


@pytest.fixture(scope="module")
def told() -> Told:
    return run_program("facts_structured")


@pytest.fixture(scope="module")
def names() -> Told:
    return run_program("private_names")


# ------------------------------------------------------------------------------- private names


def test_no_private_name_is_missing(names: Told) -> None:
    assert names["missing"] == []


def test_every_absence_is_told(names: Told) -> None:
    assert [name for name, messages in names["names"].items() if not messages] == []


def test_every_absence_is_told_by_name(names: Told) -> None:
    """The message names the attribute, what it is needed for, and the versions that have it."""
    unclear = {
        name: messages
        for name, messages in names["names"].items()
        if not any(
            name.rpartition(".")[2] in message
            and f"TensorFlow {names['version']} has no" in message
            and "which pytest-tfdevice needs to " in message
            for message in messages
        )
    }
    assert unclear == {}


def test_the_probe_leaves_nothing_behind(names: Told) -> None:
    assert names["missing after"] == []


def test_a_window_that_cannot_open_says_why(names: Told) -> None:
    assert "has no tensorflow.python.ops.script_ops.FuncRegistry" in names["half open"]["message"]


def test_a_window_that_cannot_open_changes_nothing(names: Told) -> None:
    left = names["half open"]["left"]
    assert left == {"executor": False, "session": False, "collection": False}


def test_the_next_window_opens(names: Told) -> None:
    assert names["half open"]["next"] == ["Sin"]


# ------------------------------------------------------------------------------- kernel registry


def test_gpu_kernels_are_listed_by_the_cuda_wheel_alone(names: Told) -> None:
    """Without a GPU; from the CPU wheel the honest answer is "unknown", never "no kernel"."""
    assert (names["gpu kernels of Conv2D"] > 0) is names["cuda"]


def test_int32_addition_on_a_gpu_is_in_host_memory(names: Told) -> None:
    """The kernel keeps every tensor on the host."""
    if not names["cuda"]:
        pytest.skip("the CPU wheel lists no GPU kernels")
    assert ["x", "y", "z"] in [sorted(host) for host in names["AddV2 int32"]]


# ------------------------------------------------------------------------------ graph collection


@pytest.mark.parametrize(("state", "types"), [("warm", []), ("cleared", ["Sinh"])])
def test_a_function_is_told_when_it_is_instantiated(
    told: Told, state: str, types: list[str]
) -> None:
    """A warm function tells nothing; clearing the kernel cache makes it tell again."""
    assert told["clearing_the_cache"][state] == types


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("entries", 2),
        ("requested", "/device:CPU:0"),
        ("dtype", "float32"),
        ("between", ["_Recv", "_Send"]),
        # No function's name.
        ("fields", ["partition_graphs", "post_optimization_graph", "pre_optimization_graph"]),
    ],
)
def test_what_an_entry_tells(told: Told, what: str, expected: object) -> None:
    """One entry for each function and eager op, with what was asked for and assigned."""
    assert told["collection"][what] == expected


@pytest.mark.parametrize(("op", "device"), [("Sinh", "CPU:0"), ("Tanh", "GPU:0")])
def test_an_entry_tells_devices(told: Told, op: str, device: str) -> None:
    assert told["collection"]["assigned"][op] == device


@pytest.mark.parametrize(
    ("what", "expected"),
    [("collected", False), ("body", True), ("marked", True), ("device", "GPU:0")],
)
def test_a_compiled_function_is_not_collected(told: Told, what: str, expected: object) -> None:
    """The function's definition and its results tell."""
    assert told["compiled"][what] == expected


@pytest.mark.parametrize(("op", "seen"), [("Sinh", False), ("ReduceDataset", True)])
def test_the_body_of_a_dataset_loop_is_not_collected(told: Told, op: str, seen: bool) -> None:
    """The placer is asked about it instead (``bodies.py``)."""
    assert told["dataset_loop"][op] is seen


@pytest.mark.parametrize(("what", "expected"), [("own", []), ("next", ["Acosh", "CheckNumerics"])])
def test_an_op_that_raised_is_told_with_the_next(
    told: Told, what: str, expected: list[str]
) -> None:
    """So a window runs an op of its own at its start and at its end (``channels.py``)."""
    assert told["raising"][what] == expected


def test_the_error_of_an_op_names_it_and_its_device(told: Told) -> None:
    assert "{{function_node __wrapped__CheckNumerics_device_/job:" in told["raising"]["message"]


# --------------------------------------------------------------------------- requests and names


@pytest.mark.parametrize(("what", "device"), [("scope 7", "GPU:0"), ("int variable", "CPU:0")])
def test_an_eager_graph_has_what_was_chosen(told: Told, what: str, device: str) -> None:
    """Not what was asked for."""
    assert told["eager_requests"][what] == [device]


@pytest.mark.parametrize(
    ("what", "expected"),
    [("Cosh written", True), ("Cosh ran", False), ("made", ["Tanh/unary_ops_composition"])],
)
def test_an_optimiser_renames(told: Told, what: str, expected: object) -> None:
    """Ops in a row on the CPU become one, named after the last."""
    assert told["optimised"][what] == expected


def test_an_inlined_op_has_the_name_of_its_call(told: Told) -> None:
    assert told["inlined"]["ran"] == "CPU:0"


def test_the_request_of_an_inlined_op_is_in_the_library(told: Told) -> None:
    """The graph that ran has lost it (``expansion.py``)."""
    assert told["inlined"]["written"] == ["/device:CPU:0"]


def test_a_graph_op_keeps_its_line(told: Told) -> None:
    """Of the user's code."""
    assert told["traceback"] is True


@pytest.mark.parametrize(("what", "expected"), [("device", "CPU:0"), ("opened", True)])
def test_a_strategy_reduces_under_a_scope_of_its_own(
    told: Told, what: str, expected: object
) -> None:
    """The stack of the op tells who opened it."""
    assert told["framework_scope"][what] == expected


def test_a_device_assignment_does_not_name_the_caller(told: Told) -> None:
    """Were it to, the source needn't be read (``stack.py``)."""
    assert not any("cross_device_ops" in file for file in told["framework_scope"]["files"])


# ------------------------------------------------------------------------- sessions, callbacks


@pytest.mark.parametrize(
    ("what", "expected"),
    [("devices", {"s": "CPU:0"}), ("step stats", True), ("graphs of a run that raised", 0)],
)
def test_what_run_metadata_tells(told: Told, what: str, expected: object) -> None:
    """Nothing of a run that raised: the placer is asked (``sessions.py``)."""
    assert told["run_metadata"][what] == expected


def test_a_callback_tells_scope_and_device(told: Told) -> None:
    """What was asked for, and where it ran."""
    ((name, scope, device),) = told["callbacks"]["eager"]
    assert (name, scope[-5:], device[-5:]) == ("Sinh", "GPU:1", "GPU:1")


def test_a_callback_tells_function_calls(told: Told) -> None:
    """Compiled ones too."""
    names = [name.startswith("__inference_") for name in told["callbacks"]["functions"]]
    assert names == [True, True]


@pytest.mark.parametrize("what", ["in another thread", "for what raised"])
def test_a_callback_is_not_called(told: Told, what: str) -> None:
    """``interception.py`` is there for these."""
    assert told["callbacks"][what] == 0
