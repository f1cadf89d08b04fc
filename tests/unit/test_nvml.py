"""What the driver says, by a stand-in for ``pynvml``, and what is said without a driver."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from pytest_tfdevice.capture import nvml


class NVMLError(Exception):
    """As of ``pynvml``."""


class Driver:
    """The functions of ``pynvml`` that are used, over GPUs given as (model, UUID, held, busy)."""

    NVMLError = NVMLError

    def __init__(self, *gpus: tuple[str, str, int | None, int], broken: str = "") -> None:
        self.gpus = gpus
        self.broken = broken
        self.open = 0

    def nvmlInit(self) -> None:
        if self.broken:
            raise NVMLError(self.broken)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> tuple[str, str, int | None, int]:
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> tuple[str, str, int | None, int]:
        return next(gpu for gpu in self.gpus if gpu[1] == uuid)

    def nvmlDeviceGetName(self, handle: tuple[str, str, int | None, int]) -> str:
        return handle[0]

    def nvmlDeviceGetComputeRunningProcesses(
        self, handle: tuple[str, str, int | None, int]
    ) -> list[SimpleNamespace]:
        other = SimpleNamespace(pid=os.getpid() + 1, usedGpuMemory=99)
        return [other, SimpleNamespace(pid=os.getpid(), usedGpuMemory=handle[2])]

    def nvmlDeviceGetUtilizationRates(
        self, handle: tuple[str, str, int | None, int]
    ) -> SimpleNamespace:
        if handle[3] < 0:
            raise NVMLError("not supported")
        return SimpleNamespace(gpu=handle[3])


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    found = Driver(("T4", "GPU-a", 10, 50), ("T4", "GPU-b", 20, 0))
    monkeypatch.setitem(sys.modules, "pynvml", found)  # type: ignore[arg-type]
    return found


@pytest.mark.parametrize(
    ("visible", "held"),
    [(None, [10, 20]), ("1", [20]), ("1,0", [20, 10]), ("GPU-b", [20]), ("0,-1,1", [10])],
)
def test_gpus_are_numbered_as_by_tensorflow(
    driver: Driver, visible: str | None, held: list[int]
) -> None:
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    found = nvml.ask(environ)
    assert [found[number].process for number in range(len(held))] == held
    assert len(found) == len(held)
    assert driver.open == 0


def test_only_this_process_and_the_share_of_time(driver: Driver) -> None:
    assert nvml.ask({})[0] == nvml.Reading(process=10, utilisation=0.5)


def test_what_the_driver_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Driver(("T4", "GPU-a", None, -1)))  # type: ignore[arg-type]
    assert nvml.ask({})[0] == nvml.Reading(None, None)


@pytest.mark.parametrize(
    ("environ", "known"),
    [
        ({}, False),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, True),
        ({"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}, True),
        ({"CUDA_VISIBLE_DEVICES": "0"}, False),
    ],
)
def test_several_models_may_be_in_another_order(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], known: bool
) -> None:
    mixed = Driver(("T4", "GPU-a", 1, 0), ("A100", "GPU-b", 2, 0))
    monkeypatch.setitem(sys.modules, "pynvml", mixed)  # type: ignore[arg-type]
    if known:
        assert nvml.ask(environ)
    else:
        with pytest.raises(nvml.NvmlUnknown, match="CUDA_DEVICE_ORDER=PCI_BUS_ID"):
            nvml.ask(environ)


def test_without_a_driver_it_is_said_that_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Driver(broken="Driver Not Loaded")
    monkeypatch.setitem(sys.modules, "pynvml", broken)  # type: ignore[arg-type]
    assert nvml.readings(1) == {}
    assert nvml.why_unknown() == (
        "true GPU memory and utilisation are not known: the driver can't be asked "
        "(Driver Not Loaded)"
    )


def test_without_the_extra_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)  # type: ignore[arg-type]
    assert nvml.readings(1) == {}
    assert nvml.why_unknown() is None
