"""Devices as TensorFlow and its users spell them, and what a record can be asked."""

from __future__ import annotations

import pytest

from pytest_tfdevice.model import Device, DeviceError, DeviceSpec, Placement, Record

GPU0 = Device("localhost", 0, 0, "GPU", 0)
WORKER = Device("worker", 1, 2, "GPU", 3)


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("/job:localhost/replica:0/task:0/device:GPU:0", GPU0),
        ("/job:localhost/replica:0/task:0/gpu:0", GPU0),
        ("/job:worker/replica:1/task:2/device:GPU:3", WORKER),
        ("/job:worker/replica:1/task:2/gpu:3", WORKER),
        ("GPU:0", GPU0),
        ("gpu", GPU0),
        ("/device:GPU:0", GPU0),
        ("/job:my-job.1/task:10/device:TPU_SYSTEM:0", Device("my-job.1", 0, 10, "TPU_SYSTEM", 0)),
        ("/device:my_device:12", Device("localhost", 0, 0, "MY_DEVICE", 12)),
    ],
)
def test_device_is_read_in_every_spelling(text: str, device: Device) -> None:
    assert Device.parse(text) == device


@pytest.mark.parametrize("device", [GPU0, WORKER, Device("ps", 0, 7, "XLA_CPU", 0)])
def test_canonical_name_is_read_back(device: Device) -> None:
    assert Device.parse(device.canonical) == device


def test_names_of_a_device() -> None:
    assert GPU0.canonical == "/job:localhost/replica:0/task:0/device:GPU:0"
    assert (GPU0.short, str(GPU0)) == ("GPU:0", "GPU:0")
    assert WORKER.short == "/job:worker/task:2/GPU:3"
    assert sorted([WORKER, GPU0]) == [GPU0, WORKER]


@pytest.mark.parametrize("text", ["", "/", "/job:worker", "/job:worker/task:1"])
def test_a_device_needs_a_type(text: str) -> None:
    with pytest.raises(DeviceError, match="names no device type"):
        Device.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        *("GPU:x", "GPU:-1", "GPU:0:1", "job:", "/task:one", "/GPU:0/CPU:0", "/job:a/job:b/GPU"),
        *("G P U", "GPU:0\n/CPU:0", "/job:a//GPU:0", ":0", "0"),
    ],
)
def test_what_is_no_device_is_refused(text: str) -> None:
    with pytest.raises(DeviceError, match="is no device"):
        DeviceSpec.parse(text)


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("GPU", DeviceSpec(type="GPU")),
        ("gpu:1", DeviceSpec(type="GPU", index=1)),
        ("/device:GPU:*", DeviceSpec(type="GPU")),
        ("/job:worker/task:1", DeviceSpec(job="worker", task=1)),
        ("/replica:*/task:*/CPU", DeviceSpec(type="CPU")),
        (" /GPU:0/ ", DeviceSpec(type="GPU", index=0)),
        ("", DeviceSpec()),
    ],
)
def test_spec(text: str, spec: DeviceSpec) -> None:
    assert DeviceSpec.parse(text) == spec


@pytest.mark.parametrize(
    ("text", "device", "matches"),
    [
        ("GPU", GPU0, True),
        ("GPU", WORKER, True),
        ("GPU:0", WORKER, False),
        ("CPU", GPU0, False),
        ("GPU:1", Device("localhost", 0, 0, "GPU", 15), False),
        ("GPU", Device("localhost", 0, 0, "XLA_GPU", 0), False),
        ("TPU", Device("worker", 0, 0, "TPU_SYSTEM", 0), False),
        ("/job:worker", WORKER, True),
        ("/job:worker/task:1", WORKER, False),
        ("", WORKER, True),
    ],
)
def test_spec_matches(text: str, device: Device, matches: bool) -> None:
    assert DeviceSpec.parse(text).matches(device) is matches


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gpu:1", "GPU:1"),
        ("gpu", "GPU"),
        ("/job:worker/task:1/gpu:0", "/job:worker/task:1/device:GPU:0"),
        ("/job:worker/replica:0", "/job:worker/replica:0"),
        ("", "any device"),
    ],
)
def test_spec_is_shown(text: str, shown: str) -> None:
    assert str(DeviceSpec.parse(text)) == shown


def test_record_answers() -> None:
    cpu = Device("localhost", 0, 0, "CPU", 0)
    first = Placement("a/MatMul", "MatMul", GPU0)
    second = Placement("a/b/Cast", "Cast", cpu)
    third = Placement("MatMul", None, None, "executed")
    record = Record((first, second, third))
    assert list(record) == [first, second, third]
    assert len(record) == 3
    assert record.on("GPU") == (first,)
    assert record.of_type("Mat*") == (first,)
    assert record.named("a/*") == (first, second)
    assert second.scope == "a/b"
    assert record.saw_something
    assert not Record().saw_something
