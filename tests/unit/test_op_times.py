"""What operations took on each device: shares, sentences, and how TensorFlow's figures are read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_tfdevice.capture.step_stats import StepTimes
from pytest_tfdevice.memory import GpuMemory, full_but_idle
from pytest_tfdevice.model import Device, DeviceInfo
from pytest_tfdevice.op_times import OpTime, percent, sentence, shares, table_line

CPU, GPU = Device.parse("CPU:0"), Device.parse("GPU:0")
MOSTLY_CPU = (OpTime(GPU, 2, 0.004), OpTime(CPU, 10, 0.996))


def test_shares_are_of_all_that_was_timed() -> None:
    assert shares(MOSTLY_CPU) == pytest.approx({CPU: 0.996, GPU: 0.004})
    assert list(shares(MOSTLY_CPU)) == [CPU, GPU]


def test_the_sentence_names_the_device_that_took_most() -> None:
    assert sentence(MOSTLY_CPU) == "99.6 % of the op time of Sessions was spent on CPU:0"
    assert table_line(MOSTLY_CPU) == (
        "the op time of Sessions, each as it first ran: CPU:0 99.6 % (996 ms), GPU:0 0.4 % (4 ms)"
    )


def test_what_was_not_measured_is_not_made_up() -> None:
    times = (OpTime(CPU, 10, 0.5), OpTime(GPU, 2, None))
    assert shares(times) == {}
    assert sentence(times) == "the op time of Sessions on GPU:0 was not measured"
    assert table_line(times) == sentence(times)


def test_nothing_timed_says_nothing() -> None:
    assert sentence(()) == table_line(()) == ""


def test_full_but_idle_joins_it() -> None:
    full = GpuMemory(GPU, before=0, peak=0, after=0, limit=9, total=10, growth=False)
    assert full_but_idle([full], 0, 25, MOSTLY_CPU) == (
        "GPU:0's memory is 90 % reserved and 0 % used; 0 of 25 operations that count ran on it; "
        "99.6 % of the op time of Sessions was spent on CPU:0"
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.0009, "less than 0.1 %"),
        (0.9991, "more than 99.9 %"),
        (0.999, "99.9 %"),
        (0.5, "50 %"),
        (0.123, "12.3 %"),
    ],
)
def test_no_share_is_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def node(name: str, start: int, end: int) -> SimpleNamespace:
    return SimpleNamespace(
        node_name=name,
        op_start_rel_nanos=start,
        op_end_rel_nanos=end,
        op_start_rel_micros=start // 1000,
        op_end_rel_micros=end // 1000,
    )


def stats(**devices: list[SimpleNamespace]) -> SimpleNamespace:
    """By a name such as ``GPU_0`` or ``GPU_0_stream``."""
    names = {
        "CPU_0": CPU.canonical,
        "GPU_0": GPU.canonical,
        "GPU_0_stream": "/device:GPU:0/stream:all",
        "GPU_0_memcpy": "/device:GPU:0/memcpy",
    }
    return SimpleNamespace(
        dev_stats=[
            SimpleNamespace(device=names[key], node_stats=nodes) for key, nodes in devices.items()
        ]
    )


RAN = {
    "CPU_0": [node("_SOURCE", 0, 10**9), node("a", 50, 4_000_050)],
    "GPU_0": [node("b", 0, 1_000_000), node("b", 0, 1_000_000), node("_retval_b_0_0", 0, 10**9)],
}


def found(*runs: SimpleNamespace, simulated: bool) -> tuple[OpTime, ...]:
    times = StepTimes()
    for run in runs:
        times.add(run)
    return times.found([DeviceInfo(CPU), DeviceInfo(GPU, simulated=simulated)])


def test_runs_add_up_and_the_executors_own_nodes_do_not_count() -> None:
    assert found(stats(**RAN), stats(**RAN), simulated=True) == (
        OpTime(CPU, 2, pytest.approx(0.008)),
        OpTime(GPU, 4, pytest.approx(0.004)),
    )


def test_an_op_of_a_real_gpu_is_not_timed_by_its_launch() -> None:
    cpu, gpu = found(stats(**RAN), simulated=False)
    assert cpu.seconds == pytest.approx(0.004)
    assert gpu == OpTime(GPU, 2, None)


def test_a_hardware_trace_times_the_kernels() -> None:
    traced = stats(
        **RAN, GPU_0_stream=[node("b", 0, 7_000_000)], GPU_0_memcpy=[node("copy", 0, 10**9)]
    )
    cpu, gpu = found(traced, simulated=False)
    assert (cpu.device, gpu) == (CPU, OpTime(GPU, 2, pytest.approx(0.007)))


def test_a_device_on_which_only_the_executor_ran_something_is_left_out() -> None:
    only = stats(CPU_0=RAN["CPU_0"], GPU_0=[node("_SOURCE", 0, 100)])
    assert [time.device for time in found(only, simulated=False)] == [CPU]
