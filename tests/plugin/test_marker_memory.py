"""The markers ``gpu_memory`` and ``gpu_transfers``, from outside, on simulated GPUs."""

from __future__ import annotations

import pytest
from pytest_process import Run, needs_simulator, run_pytest, run_simulated

needs_simulator()

SUITE = """
import pytest, tensorflow as tf

tf1 = tf.compat.v1
MIB = 2**20
gpu_memory, gpu_transfers = pytest.mark.gpu_memory, pytest.mark.gpu_transfers
on_gpu = pytest.mark.on_gpu
KEPT = []

def take(size, device="/GPU:0"):
    with tf.device(device):
        return tf.zeros([size // 4])

def test_first_a_session():
    # The process's first initialisation: half of the memory.
    with tf.Graph().as_default():
        with tf1.Session(config=config(0.5)) as session:
            session.run(tf.random.normal([4]))

def config(fraction):
    proto = tf1.ConfigProto()
    proto.gpu_options.per_process_gpu_memory_fraction = fraction
    return proto

@gpu_memory("9 MiB")
def test_bytes_good(): take(8 * MIB)

@gpu_memory("7 MiB")
def test_bytes_bad(): take(8 * MIB)

@gpu_memory(max_fraction=0.04)
def test_fraction_good(): take(8 * MIB)

@gpu_memory(max_fraction=0.03)
def test_fraction_bad(): take(8 * MIB)

@gpu_memory("1 MiB", index=0)
def test_other_gpu_good(): take(8 * MIB, "/GPU:1")

@gpu_memory("1 MiB", index=1)
def test_other_gpu_bad(): take(8 * MIB, "/GPU:1")

@gpu_memory("1 MiB", index=2)
def test_no_such_gpu(): pass

@gpu_memory(max_growth=0)
def test_growth_good():
    holder = [take(MIB)]
    holder.append(holder)

@gpu_memory(max_growth="1 MiB")
def test_growth_bad(): KEPT.append(take(2 * MIB))

@gpu_memory("200 MiB")
def test_second_fraction():
    with tf.Graph().as_default():
        with tf1.Session(config=config(0.9)) as session:
            session.run(tf.random.normal([4]))

@gpu_memory("200 MiB")
def test_exhausted():
    weights = tf.Variable(take(16 * MIB), name="weights")
    tf.zeros([1024, MIB])

@on_gpu
@gpu_memory(max_fraction=0.9)
def test_full_but_idle():
    with tf.device("/CPU:0"):
        tf.matmul(tf.ones([4, 4]), tf.ones([4, 4]))

@tf.function
def detour(x):
    with tf.device("/CPU:0"):
        y = tf.sin(x)
    return tf.cos(y)

def steps(count=3):
    x = tf.random.uniform([16, 16])
    for _ in range(count):
        y = detour(x)
    return y

@gpu_transfers(max_count=2, max_bytes=2048)
def test_transfers_good(): steps()

@gpu_transfers(max_count=1)
def test_transfers_bad(): steps()

@gpu_transfers(max_bytes=2047)
def test_transfer_bytes_bad(): steps()

@gpu_transfers(max_count=1, direction="to_host")
def test_direction_good(): steps()

@gpu_transfers(max_count=5, total=True)
def test_total_bad(): steps()

@gpu_transfers(max_count=0, scope="other/*")
def test_scope_good(): steps()

@gpu_transfers(max_count=2)
def test_reading_a_result_bad(): steps().numpy()

@gpu_transfers(max_count=2)
def test_a_scalar_is_left_out(): float(tf.reduce_sum(steps()))

@gpu_transfers(max_count=2, scalars=True)
def test_a_scalar_bad(): float(tf.reduce_sum(steps()))

@gpu_transfers(max_count=1)
def test_nothing_ran(): pass

@gpu_memory("1 MiB")
@pytest.mark.xfail(strict=True)
def test_expected_bad(): take(8 * MIB)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(
        tmp_path_factory.mktemp("memory"),
        SUITE,
        "-rP",
        gpus="2:256 MiB",
    )


@pytest.mark.parametrize(
    "name",
    [
        "test_bytes_good",
        "test_fraction_good",
        "test_other_gpu_good",
        "test_growth_good",
        "test_second_fraction",
        "test_transfers_good",
        "test_direction_good",
        "test_scope_good",
        "test_a_scalar_is_left_out",
    ],
)
def test_within_the_limit(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_bytes_bad", "peak of GPU:0's allocator 8 MiB (8,388,864 bytes)"),
        ("test_bytes_bad", "(256 B before, peak 8 MiB, this test 8 MiB)"),
        ("test_bytes_bad", "max_bytes is 7 MiB (7,340,032 bytes)"),
        ("test_fraction_bad", "max_fraction=0.03 of the 256 MiB that GPU:0 has, of which"),
        ("test_fraction_bad", "TensorFlow may take 128 MiB, is 7.7 MiB (8,053,063 bytes)"),
        ("test_other_gpu_bad", "peak of GPU:1's allocator"),
        ("test_growth_bad", "2 MiB (2,097,152 bytes) more than before it"),
        ("test_growth_bad", "max_growth is 1 MiB (1,048,576 bytes)"),
        ("test_full_but_idle", "50 % reserved and 7 % used; 0 of 2 operations that count ran"),
        ("test_transfers_bad", "2 tensors crossed between host and device in a step, 2 KiB"),
        ("test_transfers_bad", "CPU:0 → GPU:0 Sin:0 float32[16, 16], 1 KiB, for Cos, in detour"),
        ("test_transfers_bad", "(3 runs)"),
        ("test_transfer_bytes_bad", "max_bytes is 2 KiB (2,047 bytes)"),
        ("test_total_bad", "6 tensors crossed between host and device in all"),
        ("test_reading_a_result_bad", "read as a result (.numpy())"),
        ("test_reading_a_result_bad", "at test_it.py:"),
        ("test_a_scalar_bad", "3 tensors crossed"),
        ("test_nothing_ran", "nothing ran on TensorFlow while this test was watched"),
    ],
)
def test_over_the_limit(run: Run, name: str, text: str) -> None:
    found = run[name]
    assert found.outcome == "failed"
    assert text in " ".join(found.text.split())


def test_a_gpu_that_is_not_there_skips(run: Run) -> None:
    found = run["test_no_such_gpu"]
    assert found.outcome == "skipped"
    assert "needs 3 GPUs" in found.text


def test_an_expected_failure(run: Run) -> None:
    assert run["test_expected_bad"].outcome == "xfailed"


def test_a_second_fraction_is_noted(run: Run) -> None:
    found = " ".join(" ".join(text for _, text in run["test_second_fraction"].sections).split())
    assert "memory_fraction 0.9 is not in force on GPU:0: the limit is 134217728 bytes" in found
    assert "0.5 of 268435456, set by what came first and was not watched" in found


def test_exhausted_memory_has_a_section(run: Run) -> None:
    sections = dict(run["test_exhausted"].sections)
    text = " ".join(sections["GPU memory ran out (tfdevice)"].split())
    assert "Fill asked for 4 GiB (float32[1024, 1048576]) on GPU:0" in text
    assert "of the 128 MiB that TensorFlow may take" in text
    assert "16 MiB variable weights:0 float32[4194304]" in text
    assert "the test's limit: gpu_memory('200 MiB')" in text


def test_the_table_is_sorted_by_peak(run: Run) -> None:
    table = run.stdout.split("peak GPU memory   of this test")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if "test_it.py::" in line]
    peaks = {name: run[name].result["peak"] for name in run.tests if run.tests[name].result}
    assert len(rows) == 10
    largest = max(peaks, key=lambda name: peaks[name])
    assert largest in rows[0]
    assert peaks[largest] >= 16 * 2**20
    assert "12 more tests (--tfdevice-top)" in table


def test_the_conclusion_counts_limits(run: Run) -> None:
    assert "exceeded a limit" in run.summary


EXACT = """
import os
import pytest, tensorflow as tf

@pytest.mark.gpu_memory(int(os.environ["LIMIT"]))
def test_it():
    tf.zeros([2**20])
    print(tf.config.experimental.get_memory_info("GPU:0")["peak"], "at most")
"""


def test_a_byte_on_either_side(tmp_path) -> None:
    """The limit is what a first run reads by hand, and then a byte less."""

    def outcome(limit: int) -> Run:
        folder = tmp_path / str(limit)
        return run_simulated(folder, EXACT, "-rP", gpus="1:64 MiB", env={"LIMIT": str(limit)})

    peak = int(outcome(2**25).stdout.split(" at most")[0].split()[-1])
    assert peak >= 2**22
    assert outcome(peak)["test_it"].outcome == "passed"
    assert outcome(peak - 1)["test_it"].outcome == "failed"


DEFAULTS = """
import pytest, tensorflow as tf

@pytest.mark.on_gpu
def test_ruled(): tf.zeros([2**21]) + 1.0

@pytest.mark.gpu_memory("32 MiB")
def test_own_limit(): tf.zeros([2**21])

@pytest.mark.gpu_memory(max_growth="32 MiB")
def test_only_growth(): tf.zeros([2**21])

def test_unmarked(): tf.zeros([2**21])
"""


@pytest.mark.parametrize("by", ["option", "ini"])
def test_the_default_limit(tmp_path, by: str) -> None:
    option = ("--tfdevice-gpu-memory-fraction", "0.05") if by == "option" else ()
    ini = "" if by == "option" else "tfdevice_gpu_memory_fraction = 0.05\ntfdevice_top = 0"
    run = run_simulated(tmp_path, DEFAULTS, *option, gpus="1:64 MiB", ini=ini)
    outcomes = {name: run[name].outcome for name in ("test_ruled", "test_only_growth")}
    assert outcomes == {"test_ruled": "failed", "test_only_growth": "failed"}
    assert "judged by --tfdevice-gpu-memory-fraction" in run["test_ruled"].text
    assert run["test_own_limit"].outcome == run["test_unmarked"].outcome == "passed"
    assert "gpu_memory_fraction=0.05" in run.header
    assert ("peak GPU memory" in run.stdout) is (by == "option")


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("gpu-memory-fraction", "1.5", "above 0, at most 1"),
        ("gpu-memory-fraction", "0", "above 0, at most 1"),
        ("gpu-memory-fraction", "half", "'half' is no number"),
        ("top", "-1", "a whole number from 0 up"),
    ],
)
def test_wrong_options(tmp_path, option: str, value: str, text: str) -> None:
    run = run_pytest(tmp_path, "def test_it(): pass", f"--tfdevice-{option}={value}")
    assert run.status == 4
    assert f"--tfdevice-{option}" in run.stderr
    assert text in run.stderr


def test_wrong_markers_end_the_run_at_collection(tmp_path) -> None:
    suite = """
    import pytest

    @pytest.mark.gpu_memory("2 gigs")
    def test_size(): pass

    @pytest.mark.gpu_transfers(max_count=1, direction="up")
    def test_direction(): pass
    """
    run = run_pytest(tmp_path, suite)
    assert run.status == 4
    assert "test_it.py::test_size: marker gpu_memory('2 gigs')" in run.stderr
    assert "test_it.py::test_direction: marker gpu_transfers(" in run.stderr
    assert "'up' is none of to_device, to_host, between_devices" in run.stderr


def test_results_come_from_workers_of_xdist(tmp_path) -> None:
    pytest.importorskip("xdist")
    suite = """
    import pytest, tensorflow as tf

    @pytest.mark.gpu_memory("1 MiB")
    def test_it(): tf.zeros([2**21])
    """
    run = run_simulated(tmp_path, suite, "-n1", gpus="1:64 MiB")
    assert "1 of 1 judged test exceeded a limit" in run.summary
    assert "8 MiB 8 MiB" in run.summary
