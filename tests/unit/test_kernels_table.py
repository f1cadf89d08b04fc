"""Kernel tables: their format, the ones that ship, and questions to them.  No TensorFlow."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfdevice import kernels
from pytest_tfdevice.kernels import KernelEntry, KernelRegistry
from pytest_tfdevice.kernels.dtypes import DTYPE_NAMES, dtype_name
from pytest_tfdevice.kernels.table import (
    FORMAT_LINE,
    TableError,
    compress,
    decompress,
    format_entry,
    format_table,
    make_entry,
    parse_entry,
    parse_table,
)

VERSIONS = [f"2.{minor}" for minor in range(12, 22)]

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
values = st.sampled_from([*DTYPE_NAMES.values(), "int:-1", "bool:true", "str:NHWC", "str:"])
entries = st.builds(
    make_entry,
    op=names,
    device_type=st.sampled_from(["GPU", "DEFAULT"]),
    constraints=st.dictionaries(names, st.lists(values, min_size=1, max_size=4), max_size=3).map(
        lambda found: list(found.items())
    ),
    host_args=st.lists(names, max_size=3),
    label=st.one_of(st.just(""), names),
    priority=st.integers(-2, 300),
    cuda_only=st.booleans(),
)


# --- the format -----------------------------------------------------------------------------


@given(entries)
def test_a_line_is_read_as_it_was_written(entry: KernelEntry) -> None:
    assert parse_entry(format_entry(entry)) == entry


@given(st.lists(entries, max_size=6))
def test_a_table_is_read_as_it_was_written(listed: list[KernelEntry]) -> None:
    text = format_table("2.99.1", listed)
    version, found = parse_table(decompress(compress(text)))
    assert version == "2.99.1"
    assert set(found) == set(listed)
    assert format_table("2.99.1", reversed(found)) == text, "the order of entries must not matter"


def test_a_line() -> None:
    line = "GPU\tAddV2\t\t0\tT=float32,float64\tx,y\tcuda"
    assert parse_entry(line) == KernelEntry(
        "AddV2", "GPU", (("T", ("float32", "float64")),), ("x", "y"), "", 0, True
    )


def test_equal_texts_give_equal_bytes() -> None:
    assert compress("some text") == compress("some text")


@pytest.mark.parametrize(
    "line",
    ["", "GPU\tAddV2", "GPU\tAddV2\t\t0\t\t\tmaybe", "GPU\tAddV2\t\thigh\t\t\tcuda"],
)
def test_a_bad_line_is_an_error(line: str) -> None:
    with pytest.raises(TableError):
        parse_entry(line)


@pytest.mark.parametrize(
    "text", ["", "# something else\n", FORMAT_LINE + "\nGPU\tA\t\t0\t\t\tcuda\n"]
)
def test_a_bad_table_is_an_error(text: str) -> None:
    with pytest.raises(TableError):
        parse_table(text)


@pytest.mark.parametrize("data", [b"not gzip", compress("x" * 100)[:-9]])
def test_a_damaged_file_is_an_error(data: bytes) -> None:
    with pytest.raises(TableError):
        decompress(data)


def test_dtype_names() -> None:
    assert [dtype_name(n) for n in (1, 3, 14, 19, 101, 77)] == [
        "float32",
        "int32",
        "bfloat16",
        "float16",
        "float32_ref",
        "dtype_77",
    ]


# --- the tables that ship ---------------------------------------------------------------------


def test_all_supported_versions_ship() -> None:
    assert kernels.shipped_versions() == tuple(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_shipped_table(version: str) -> None:
    registry = kernels.for_version(version)
    assert registry.version.startswith(version + ".")
    assert registry.source == "table"
    assert len(registry) > 5000
    text = kernels.table_text(version)
    assert format_table(registry.version, registry.all) == text, "not in canonical form"
    assert "dtype_" not in text
    # What everybody's models are made of.
    for op, attr in (("MatMul", "T"), ("Conv2D", "T"), ("AddV2", "T"), ("Relu", "T")):
        dtypes = registry.gpu_dtypes(op, attr)
        assert dtypes is not None
        assert {"float16", "float32", "float64"} <= set(dtypes), op
    assert registry.gpu_dtypes("StringJoin", "T") == ()
    assert "NcclAllReduce" in registry
    own = [entry for entry in registry.all if entry.device_type == "GPU"]
    assert sum(entry.cuda_only for entry in own) > 4000
    assert sum(not entry.cuda_only for entry in own) > 400


def test_known_answers_of_2_21() -> None:
    registry = kernels.for_version("2.21.0")
    # The int32 variable of the classic report: a TF1 variable of that type has no GPU kernel.
    assert registry.find("VariableV2", "GPU", {"dtype": "int32"}) is None
    assert registry.find("VariableV2", "GPU", {"dtype": "float32"}) is not None
    assert "int32" not in (registry.gpu_dtypes("MatMul", "T") or ())
    # On the GPU in name only.
    add = registry.find("AddV2", "GPU", {"T": "int32"})
    assert add is not None
    assert add.host_args == ("x", "y", "z")
    floats = registry.find("AddV2", "GPU", {"T": "float32"})
    assert floats is not None
    assert floats.host_args == ()


def test_patch_and_pre_releases_use_their_minor_versions_table() -> None:
    assert kernels.for_version("2.15.0").version == "2.15.1"
    assert kernels.for_version("2.20.0-rc1").version == "2.20.0"


@pytest.mark.parametrize("version", ["2.11.0", "2.22.0", "1.15.0", "3.0", "2.2.0", "2.121.0"])
def test_other_versions_have_no_table(version: str) -> None:
    with pytest.raises(kernels.NoTableError, match=r"TensorFlow 2\.12 to 2\.21"):
        kernels.for_version(version)


@pytest.mark.parametrize("version", ["", "unknown", "2"])
def test_what_is_no_version_has_no_table(version: str) -> None:
    with pytest.raises(kernels.NoTableError, match="no version of TensorFlow"):
        kernels.for_version(version)


def test_reading_a_table_imports_no_tensorflow() -> None:
    code = (
        "import sys; from pytest_tfdevice import kernels; kernels.for_version('2.21');"
        "print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False"


# --- questions ----------------------------------------------------------------------------------


def entry(
    op: str = "Op",
    device: str = "GPU",
    priority: int = 0,
    label: str = "",
    host: tuple[str, ...] = (),
    **constraints: tuple[str, ...],
) -> KernelEntry:
    return make_entry(op, device, constraints.items(), host, label, priority, False)


def test_find_takes_the_highest_priority() -> None:
    low, high = entry(T=("float32",)), entry(T=("float32",), priority=2, host=("x",))
    registry = KernelRegistry("1", "live", [low, high])
    assert registry.find("Op", "GPU", {"T": "float32"}) is high


def test_find_prefers_the_devices_own_kernel_to_a_default_one() -> None:
    default = entry(device="DEFAULT", T=("float32", "int32"), priority=9)
    own = entry(T=("float32",))
    registry = KernelRegistry("1", "live", [default, own])
    assert registry.find("Op", "GPU", {"T": "float32"}) is own
    assert registry.find("Op", "GPU", {"T": "int32"}) is default
    assert registry.find("Op", "TPU", {"T": "float32"}) is default
    assert registry.find("Op", "GPU", {"T": "string"}) is None
    assert registry.entries("Op", "GPU") == (own, default)


def test_find_keeps_to_the_label() -> None:
    labelled, plain = entry(label="cudnn", priority=5), entry()
    registry = KernelRegistry("1", "live", [labelled, plain])
    assert registry.find("Op", "GPU", {}) is plain
    assert registry.find("Op", "GPU", {}, "cudnn") is labelled


def test_attributes_that_are_not_given_are_free() -> None:
    registry = KernelRegistry("1", "live", [entry(T=("float32",), Tidx=("int32", "int64"))])
    assert registry.find("Op", "GPU", {"T": "float32", "other": "string"}) is not None
    assert registry.find("Op", "GPU", {"T": "float32", "Tidx": "int16"}) is None


def test_a_list_attribute_needs_every_dtype() -> None:
    registry = KernelRegistry("1", "live", [entry(Tin=("float32", "int32"))])
    assert registry.find("Op", "GPU", {"Tin": "float32,int32"}) is not None
    assert registry.find("Op", "GPU", {"Tin": "float32,string"}) is None


def test_gpu_dtypes() -> None:
    registry = KernelRegistry(
        "1",
        "live",
        [
            entry("A", T=("float64", "float32")),
            entry("A", "DEFAULT", T=("int32",)),
            entry("A", "CPU", T=("string",)),
            entry("B"),
        ],
    )
    assert registry.gpu_dtypes("A", "T") == ("float32", "float64", "int32")
    assert registry.gpu_dtypes("B", "T") is None, "a free attribute takes any dtype"
    assert registry.gpu_dtypes("C", "T") == ()
    assert "A" in registry
    assert "C" not in registry
    assert len(registry) == 4
