"""The script that makes the kernel tables: how it reads TensorFlow's answer, and a table of two
wheels.  No TensorFlow, no wheel."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from pytest_tfdevice.kernels.table import KernelEntry, make_entry, parse_table


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "make_kernel_tables.py"
    spec = importlib.util.spec_from_file_location("make_kernel_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- protobuf's wire format, written by hand ------------------------------------------------


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # negative numbers are ten bytes, in two's complement
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def constraint(attr: str, listed: bytes) -> bytes:
    return field(3, field(1, attr) + field(2, field(1, listed)))


def packed(number: int, values: Sequence[int]) -> bytes:
    return field(number, b"".join(varint(value) for value in values))


def test_a_kernel_is_read(tool: ModuleType) -> None:
    kernel = (
        field(1, "AddV2")
        + field(2, "GPU")
        + constraint("T", packed(6, [3, 1]))
        + field(4, "y")
        + field(4, "x")
        + field(5, "some_label")
        + field(6, 300)
    )
    assert tool.read_kernel(kernel) == KernelEntry(
        "AddV2", "GPU", (("T", ("float32", "int32")),), ("x", "y"), "some_label", 300, False
    )


def test_constraints_on_other_attributes_are_read(tool: ModuleType) -> None:
    kernel = (
        field(1, "ApproxTopK")
        + field(2, "GPU")
        + constraint("reduction_dimension", packed(3, [-1]))
        + constraint("is_max_k", packed(5, [1]))
        + constraint("data_format", field(2, "NHWC") + field(2, "NCHW"))
    )
    assert dict(tool.read_kernel(kernel).constraints) == {
        "reduction_dimension": ("int:-1",),
        "is_max_k": ("bool:true",),
        "data_format": ("str:NCHW", "str:NHWC"),
    }


def test_an_unknown_dtype_stops_the_script(tool: ModuleType) -> None:
    kernel = field(1, "Op") + field(2, "GPU") + constraint("T", packed(6, [1, 98]))
    with pytest.raises(ValueError, match="doesn't know a dtype of 'T'"):
        tool.read_kernel(kernel)


def test_a_table_tells_what_only_the_cuda_wheel_has(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def entry(op: str, device: str, cuda_only: bool = False) -> KernelEntry:
        return make_entry(op, device, [("T", ["float32"])], [], "", 0, cuda_only)

    wheels = {
        "cuda": [
            entry("MatMul", "GPU"),
            entry("MatMul", "CPU"),
            entry("NoOp", "GPU"),
            entry("Shape", "DEFAULT"),
            entry("SleepOp", "GPU"),
            entry("Sum", "DEFAULT"),
        ],
        # Sum is there for another device type: that doesn't serve a GPU.
        "cpu": [entry("NoOp", "GPU"), entry("Shape", "DEFAULT"), entry("Sum", "CPU")],
    }
    monkeypatch.setattr(tool, "kernels_of_wheel", lambda wheel: wheels[wheel.name])
    version, found = parse_table(tool.make_table("2.99.0", Path("cuda"), Path("cpu")))
    assert version == "2.99.0"
    assert set(found) == {
        entry("MatMul", "GPU", cuda_only=True),
        entry("NoOp", "GPU"),
        entry("Shape", "DEFAULT"),
        entry("Sum", "DEFAULT", cuda_only=True),
    }


def test_wheels_are_found_by_package_and_version(tool: ModuleType, tmp_path: Path) -> None:
    tag = "cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64"
    for name in ("tensorflow-2.21.0", "tensorflow_cpu-2.21.0", "tensorflow-2.20.0"):
        (tmp_path / f"{name}-{tag}.whl").touch()
    assert tool.find_wheel(tmp_path, "tensorflow-cpu", "2.21.0").name.startswith(
        "tensorflow_cpu-2.21.0"
    )
    assert tool.find_wheel(tmp_path, "tensorflow", "2.21.0").name.startswith("tensorflow-2.21.0")
    assert tool.find_wheel(tmp_path, "tensorflow", "2.19.1") is None


def test_every_shipped_version_is_pinned(tool: ModuleType) -> None:
    from pytest_tfdevice import kernels

    assert tuple(pin.rpartition(".")[0] for pin in tool.PINS) == kernels.shipped_versions()
    for pin in tool.PINS:
        assert kernels.for_version(pin).version == pin
