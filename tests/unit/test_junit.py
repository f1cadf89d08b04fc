"""Properties of a JUnit case: what a result, its offenders and a baseline come to."""

from __future__ import annotations

from tensorflow_facts import CPU, GPU, place, record

from pytest_tfdevice.baseline.compare import Change
from pytest_tfdevice.model import Device, DeviceSpec, Placement, SourceLine
from pytest_tfdevice.patterns import Rule
from pytest_tfdevice.reports import junit
from pytest_tfdevice.results import TestResult
from pytest_tfdevice.rules import judge

RULE = Rule(DeviceSpec(type="GPU"))


def matmul(name: str, device: Device | None = GPU, **more: object) -> Placement:
    inputs = "float32[2,2] float32[2,2]"
    return place("MatMul", device, inputs, "float32[2,2]", op=name, origin="function", **more)


def properties(*placements: Placement) -> dict[str, str | int]:
    found = record(*placements)
    verdict = judge(found, RULE)
    result = TestResult.of("t.py::test_x", found, [verdict])
    listed = list(junit.of_result(result, verdict.offenders))
    assert len(dict(listed)) == len(listed), "a name is given twice"
    return dict(listed)


def test_a_test_that_passed() -> None:
    found = properties(matmul("a/MatMul"), matmul("b/MatMul"))
    assert {name: value for name, value in found.items() if "transfer" not in name} == {
        "tfdevice_outcome": "passed",
        "tfdevice_summary": "all 2 operations that count ran on GPU:0",
        "tfdevice_devices": "GPU:0: 2",
        "tfdevice_counting": 2,
        "tfdevice_on_target": 2,
        "tfdevice_tensorflow": "2.21.0",
        "tfdevice_simulated": "false",
    }


def test_offenders_have_device_reason_and_line() -> None:
    line = SourceLine("model.py", 31, "call")
    found = properties(matmul("a/MatMul"), matmul("b/MatMul", CPU, source=line))
    assert found["tfdevice_outcome"] == "failed"
    assert (found["tfdevice_counting"], found["tfdevice_on_target"]) == (2, 1)
    assert found["tfdevice_devices"] == "CPU:0: 1, GPU:0: 1"
    assert found["tfdevice_offenders"] == 1
    assert found["tfdevice_offender_1"] == ("b/MatMul (MatMul) on CPU:0: unknown, model.py:31")
    assert "tfdevice_offender_2" not in found


def test_the_first_few_offenders_are_listed_and_all_counted() -> None:
    found = properties(*(matmul(f"block_{n}/MatMul", CPU) for n in range(30)))
    assert found["tfdevice_offenders"] == 30
    assert [name for name in found if name.startswith("tfdevice_offender_")] == [
        f"tfdevice_offender_{n}" for n in range(1, 6)
    ]


def test_an_unknown_device_is_said() -> None:
    found = properties(matmul("a/MatMul"), matmul("b/MatMul", None))
    assert "on a device that isn't known" in str(found["tfdevice_offender_1"])


def test_what_was_watched_only_has_no_verdict() -> None:
    found = dict(junit.of_result(TestResult("t", "watched", {}), ()))
    assert found == {"tfdevice_outcome": "watched", "tfdevice_devices": "none"}


def test_memory_and_transfers_are_numbers() -> None:
    result = TestResult("t", "passed", {}, peak=4096, transfers=3, transfer_bytes=640)
    found = dict(junit.of_result(result, ()))
    assert found["tfdevice_gpu_peak_bytes"] == 4096
    assert (found["tfdevice_transfers"], found["tfdevice_transfer_bytes"]) == (3, 640)


def test_of_a_baseline_what_moved_is_listed() -> None:
    changes = [
        Change("lost", "dense", "MatMul", 2, "GPU:0", "CPU:0", "dtype"),
        Change("new-off", "", "Sinh", 1, "", "CPU:0"),
        Change("gained", "head", "Relu", 1, "CPU:0", "GPU:0"),
        Change("new", "head", "Elu", 1, "", "GPU:0"),
        Change("gone", "head", "Selu", 1, "GPU:0", ""),
    ]
    assert dict(junit.of_baseline("regression", changes)) == {
        "tfdevice_baseline": "regression",
        "tfdevice_moves": 3,
        "tfdevice_move_1": "dense: MatMul ×2 GPU:0 → CPU:0: dtype",
        "tfdevice_move_2": "(no scope): Sinh new on CPU:0",
        "tfdevice_move_3": "head: Relu CPU:0 → GPU:0",
    }


def test_no_character_is_left_that_xml_forbids_and_no_text_is_long() -> None:
    hostile = "a\x00b\x1b[31mc\ufffe\udc80]]>&<d>" + "x" * 1000
    found = properties(matmul(hostile, CPU))
    text = str(found["tfdevice_offender_1"])
    assert text.startswith("a\\x00b\\x1b[31mc\\ufffe\\udc80]]>&<d>xxx")
    assert max(len(str(value)) for value in found.values()) <= 200
