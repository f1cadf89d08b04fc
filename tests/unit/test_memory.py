"""Limits on GPU memory, the sentence on a full and idle GPU, and messages of exhausted memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_tfdevice.errors.out_of_memory import OutOfMemory, Resident, read_oom
from pytest_tfdevice.memory import (
    GpuMemory,
    LimitError,
    MemoryLimit,
    fraction_of,
    full_but_idle,
    judge_memory,
    memory_limit,
    merge_limits,
)
from pytest_tfdevice.model import Device
from pytest_tfdevice.reports.resources import describe, memory_failure, out_of_memory
from pytest_tfdevice.units import SizeError, tensor_bytes

GIB = 2**30
GPU0, GPU1 = Device.parse("GPU:0"), Device.parse("GPU:1")
USED = GpuMemory(
    GPU0, before=GIB // 2, peak=2 * GIB, after=GIB, limit=8 * GIB, total=16 * GIB, growth=False
)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [
        (MemoryLimit(max_bytes=2 * GIB), "passed"),
        (MemoryLimit(max_bytes=2 * GIB - 1), "failed"),
        (MemoryLimit(max_fraction=0.125), "passed"),  # of 16 GiB, not of the 8 in force
        (MemoryLimit(max_fraction=0.1249), "failed"),
        (MemoryLimit(max_bytes=2 * GIB, max_fraction=0.1), "failed"),
        (MemoryLimit(max_bytes=GIB, index=0), "failed"),
        (MemoryLimit(max_bytes=GIB, index=1), "error"),
        (MemoryLimit(max_growth=GIB), "error"),  # not measured
    ],
)
def test_limits(limit: MemoryLimit, outcome: str) -> None:
    assert judge_memory([USED], limit).outcome == outcome


@pytest.mark.parametrize(("allowed", "outcome"), [(100, "passed"), (99, "failed")])
def test_growth_is_what_is_left_beyond_what_was_there(allowed: int, outcome: str) -> None:
    found = replace(USED, left=USED.before + 100)
    verdict = judge_memory([found], MemoryLimit(max_growth=allowed))
    assert verdict.outcome == outcome
    assert "512 MiB (536,871,012 bytes) when the test had ended, 100 B more than" in verdict.summary


@pytest.mark.parametrize(("peak", "outcome"), [(922, "failed"), (921, "passed")])
def test_a_byte_on_either_side_of_a_fraction(peak: int, outcome: str) -> None:
    found = replace(USED, before=0, peak=peak, total=1024)
    assert judge_memory([found], MemoryLimit(max_fraction=0.9)).outcome == outcome


@pytest.mark.parametrize(
    ("fraction", "total", "size"), [(0.9, 10, 9), (0.1, 30, 3), (0.3, 10, 3), (0.35, 10, 3)]
)
def test_fractions_are_whole_bytes(fraction: float, total: int, size: int) -> None:
    assert fraction_of(fraction, total) == size


def test_each_gpu_is_judged_unless_one_is_named() -> None:
    small = replace(USED, device=GPU1, peak=GIB)
    limit = MemoryLimit(max_bytes=GIB)
    assert judge_memory([USED, small], limit).outcome == "failed"
    assert judge_memory([USED, small], replace(limit, index=1)).outcome == "passed"


def test_nothing_measured_is_no_pass() -> None:
    verdict = judge_memory([], MemoryLimit(max_bytes=1))
    assert verdict.outcome == "error"
    assert "not initialised" in verdict.summary


def test_an_unknown_total_is_no_pass() -> None:
    verdict = judge_memory([replace(USED, total=None)], MemoryLimit(max_fraction=0.5))
    assert verdict.outcome == "error"
    assert "how much memory GPU:0 has isn't known" in verdict.summary


def test_the_report_says_which_figure_was_judged() -> None:
    verdict = judge_memory([USED], MemoryLimit(max_fraction=0.1, marker="gpu_memory(...)"))
    text = " ".join(memory_failure(verdict, "TensorFlow 2.21.0").split())
    assert "peak of GPU:0's allocator 2 GiB (2,147,483,648 bytes)" in text
    assert "(512 MiB before, peak 2 GiB, this test 1.5 GiB)" in text
    assert "0.1 of the 16 GiB that GPU:0 has, of which TensorFlow may take 8 GiB, is" in text
    assert "judged by gpu_memory(...)" in text


def test_a_logical_device_is_told_as_one() -> None:
    logical = replace(USED, is_logical=True, total=4 * GIB, limit=4 * GIB)
    verdict = judge_memory([logical], MemoryLimit(max_fraction=0.25))
    assert "the 4 GiB that the logical device GPU:0 is limited to" in verdict.summary
    assert "the logical device's limit 4 GiB" in describe(logical)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((None, None, None, None), LimitError, "it limits nothing"),
        (("2 gigs", None, None, None), SizeError, "2 gigs"),
        ((-1, None, None, None), SizeError, "0 or more"),
        ((None, 0, None, None), LimitError, "above 0, at most 1"),
        ((None, 1.01, None, None), LimitError, "above 0, at most 1"),
        ((None, float("nan"), None, None), LimitError, "above 0, at most 1"),
        ((None, "half", None, None), LimitError, "'half'"),
        ((None, True, None, None), LimitError, "True"),
        ((1, None, -1, None), LimitError, "no GPU number"),
        ((None, None, None, "much"), SizeError, "much"),
    ],
)
def test_wrong_arguments(arguments: tuple[object, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        memory_limit(*arguments)


@pytest.mark.parametrize("size", ["2 GiB", 2**31, "2GiB"])
def test_sizes_as_people_write_them(size: object) -> None:
    assert memory_limit(size, None, None, None).max_bytes == 2**31


def test_the_nearest_marker_wins_and_limits_add_up() -> None:
    near, far = MemoryLimit(max_bytes=1), MemoryLimit(max_bytes=2, max_growth=3)
    (merged,) = merge_limits([(near, "near"), (far, "far")], None)
    assert (merged.max_bytes, merged.max_growth, merged.marker) == (1, 3, "near + far")


def test_gpus_keep_their_own_limits() -> None:
    limits = [(MemoryLimit(max_bytes=n, index=n), "") for n in (0, 1)]
    assert [limit.max_bytes for limit in merge_limits(limits, None)] == [0, 1]


def test_a_marker_goes_before_the_default() -> None:
    assert [m.max_fraction for m in merge_limits([], 0.9)] == [0.9]
    peak = MemoryLimit(max_bytes=1)
    assert [m.max_fraction for m in merge_limits([(peak, "")], 0.9)] == [None]
    growth = MemoryLimit(max_growth=1)
    assert [m.max_fraction for m in merge_limits([(growth, "")], 0.9)] == [None, 0.9]


FULL = GpuMemory(
    GPU0, before=0, peak=48 * 2**20, after=0, limit=15 * GIB, total=16 * GIB, growth=False
)


def test_full_but_idle_in_one_sentence() -> None:
    assert full_but_idle([FULL], 0, 412) == (
        "GPU:0's memory is 93.8 % reserved and 0.3 % used; 0 of 412 operations that count ran on it"
    )


@pytest.mark.parametrize(
    ("memory", "on_gpu", "counting"),
    [
        (FULL, 400, 412),
        (FULL, 0, 0),
        (replace(FULL, growth=True), 0, 412),
        (replace(FULL, limit=GIB), 0, 412),
        (replace(FULL, peak=8 * GIB), 0, 412),
        (replace(FULL, total=None), 0, 412),
    ],
)
def test_other_cases_are_not_the_classic_one(memory: GpuMemory, on_gpu: int, counting: int) -> None:
    assert full_but_idle([memory], on_gpu, counting) is None


def test_the_driver_knows_what_is_reserved() -> None:
    grown = replace(FULL, growth=True, process=12 * GIB, utilisation=0.0)
    assert "75 % reserved" in (full_but_idle([grown], 0, 9) or "")
    assert "the driver counts 12 GiB for this process; busy 0%" in describe(grown)


EAGER_OOM = (
    "{{function_node __wrapped__Fill_device_/job:localhost/replica:0/task:0/device:GPU:0}} OOM "
    "when allocating tensor with shape[64,1024,1024] and type float on "
    "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Fill] name: "
)
FUNCTION_OOM = (
    "Graph execution error:\n\nDetected at node blk/Tile defined at (most recent call last):\n"
    '  File "a.py", line 12, in <module>\n\nOOM when allocating tensor with shape[16,1024] and '
    "type half on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc\n"
    "\t [[{{node blk/Tile}}]]\nHint: If you want to see a list of allocated tensors when OOM "
    "happens, add report_tensor_allocations_upon_oom to RunOptions.\n [Op:__inference_f_14]"
)


def test_an_eager_op_that_found_no_room() -> None:
    assert read_oom(EAGER_OOM) == OutOfMemory(
        op="Fill",
        op_type="Fill",
        device=GPU0,
        dtype="float32",
        shape=(64, 1024, 1024),
        asked=256 * 2**20,
    )


def test_an_op_of_a_function_that_found_no_room() -> None:
    found = read_oom(FUNCTION_OOM)
    assert (found.op, found.op_type, found.device) == ("blk/Tile", None, GPU1)
    assert (found.dtype, found.shape, found.asked) == ("float16", (16, 1024), 32 * 1024)


def test_another_message_tells_nothing() -> None:
    assert read_oom("Out of memory while trying to allocate 17 bytes.") == OutOfMemory()


def test_the_section_on_exhausted_memory() -> None:
    weights = Resident("variable weights:0", "float32", (10, 10), 400, GPU0)
    found = replace(read_oom(EAGER_OOM), in_use=100, limit=1124, peak=1000, residents=(weights,))
    text = out_of_memory(found, ["gpu_memory('1 KiB')"])
    assert "held once it had failed, at most\n    1000 B while it ran" in text
    assert text.replace("most\n    1000", "most 1000").splitlines() == [
        "Fill asked for 256 MiB (float32[64, 1024, 1024]) on GPU:0",
        "  free: 1 KiB of the 1.1 KiB that TensorFlow may take; 100 B were held once it had "
        "failed, at most 1000 B while it ran",
        "  the largest of what is held:",
        "    400 B  variable weights:0  float32[10, 10]",
        "  the test's limit: gpu_memory('1 KiB')",
    ]


@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("float32", (2, 3), 24),
        ("bool", (5,), 5),
        ("complex128", (), 16),
        ("int4", (3,), 3),
        ("float32", (0, 7), 0),
        ("float32", None, None),
        ("float32", (None, 2), None),
        ("string", (2,), None),
    ],
)
def test_bytes_of_a_tensor(dtype: str, shape: tuple[int, ...] | None, size: int | None) -> None:
    assert tensor_bytes(dtype, shape) == size
