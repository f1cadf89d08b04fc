"""Makes ``pytest_tfdevice/kernels/tables/*.tsv.gz`` from TensorFlow's public wheels.

For each minor version two wheels are needed, the CUDA-enabled one (``tensorflow``) and the CPU-only
one (``tensorflow-cpu``)::

    python tools/make_kernel_tables.py                     # downloads all, about 8 GB, one by one
    python tools/make_kernel_tables.py 2.21                # one version
    python tools/make_kernel_tables.py --wheels FOLDER     # from wheels that are already there

Nothing is installed: the shared libraries are taken out of the wheel, loaded in a fresh process
that never imports TensorFlow, and asked through TensorFlow's C API for their kernels.  The wheels
are those for CPython 3.10, the one Python that all ten versions have in common; a newer Python can
load their libraries too.  Linux x86-64 only: there are no CUDA-enabled wheels for other platforms.
The same wheels give the same bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pytest_tfdevice.kernels import dtypes, table  # noqa: E402

TABLES = ROOT / "pytest_tfdevice" / "kernels" / "tables"
PINS = (
    *("2.12.1", "2.13.1", "2.14.1", "2.15.1", "2.16.2"),
    *("2.17.1", "2.18.1", "2.19.1", "2.20.0", "2.21.0"),
)
"""The last patch release of each supported minor version."""

LIBRARIES = (
    "tensorflow/libtensorflow_framework.so.2",
    "tensorflow/libtensorflow_cc.so.2",
    # The Python side registers kernels of its own (EagerPyFunc is one that serves GPUs).  It lies
    # in the first of these that a wheel has: the second is an empty shim since 2.20.
    "tensorflow/python/lib_pywrap_tensorflow_common.so",
    "tensorflow/python/_pywrap_tensorflow_internal.so",
)
SHARED_LIBRARY = re.compile(r"\.so[.\d]*$")

TEST_OPS = ("DevicePlacementOp", "SleepOp")
"""Kernels of TensorFlow's own tests that the Python side carries along."""


# --- asking a wheel's libraries (in a process of its own) ------------------------------------


class _Buffer(ctypes.Structure):
    """``TF_Buffer`` of TensorFlow's C API."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("deallocator", ctypes.c_void_p),
    ]


def dump_kernels(folder: Path) -> bytes:
    """The serialised ``KernelList`` of the libraries in ``folder``; loads them into this process.

    Raises:
        OSError: a library doesn't load, for example under a Python older than the wheel's.
    """
    loaded = [
        ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
        for name in LIBRARIES
        if (folder / name).exists()
    ]
    api = loaded[1]
    api.TF_NewStatus.restype = ctypes.c_void_p
    api.TF_GetCode.argtypes = [ctypes.c_void_p]
    api.TF_GetAllRegisteredKernels.argtypes = [ctypes.c_void_p]
    api.TF_GetAllRegisteredKernels.restype = ctypes.POINTER(_Buffer)
    status = api.TF_NewStatus()
    buffer = api.TF_GetAllRegisteredKernels(status)
    if api.TF_GetCode(status) != 0 or not buffer:
        raise RuntimeError("TF_GetAllRegisteredKernels failed")
    return ctypes.string_at(buffer.contents.data, buffer.contents.length)


def kernels_of_wheel(wheel: Path) -> list[table.KernelEntry]:
    """Every kernel that the TensorFlow in a wheel registers."""
    with tempfile.TemporaryDirectory(prefix="kernel-table-") as folder:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if SHARED_LIBRARY.search(name):  # they link to each other by relative paths
                    archive.extract(name, folder)
        done = subprocess.run(
            [sys.executable, __file__, "--dump", folder],
            capture_output=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
            check=False,
        )
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        raise SystemExit(f"{wheel.name}: its libraries gave no kernels:\n{message}")
    return [read_kernel(value) for field, value in read_message(done.stdout) if field == 1]


# --- reading a KernelList (kernel_def.proto) without protobuf --------------------------------


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A base-128 number of the protobuf wire format, and where it ends."""
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7


def read_message(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Fields of a message in order; a number comes as the bytes of its decimal text."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            number, at = read_varint(data, at)
            yield tag >> 3, str(number).encode()
        elif tag & 7 == 2:
            size, at = read_varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {tag & 7} isn't used by kernel_def.proto")


def read_kernel(data: bytes) -> table.KernelEntry:
    """A ``KernelDef`` as an entry."""
    texts: dict[int, str] = {}
    constraints, host_args = [], []
    for field, value in read_message(data):
        if field == 3:
            constraints.append(read_constraint(value))
        elif field == 4:
            host_args.append(value.decode())
        else:
            texts[field] = value.decode()
    return table.make_entry(
        op=texts[1],
        device_type=texts[2],
        constraints=constraints,
        host_args=host_args,
        label=texts.get(5, ""),
        priority=int(texts.get(6, "0")),
        cuda_only=False,
    )


def read_constraint(data: bytes) -> tuple[str, list[str]]:
    """A ``KernelDef.AttrConstraint``: the attribute and the values that it may have."""
    fields = dict(read_message(data))
    attr = fields[1].decode()
    [(kind, listed)] = read_message(fields[2])
    if kind != 1:
        raise ValueError(f"a kernel's constraint on {attr!r} is no list")
    values: list[str] = []
    for field, value in read_message(listed):
        if field == 2:
            values.append(table.text_value(value.decode()))
            continue
        as_text = {3: table.int_value, 5: table.bool_value, 6: dtypes.dtype_name}[field]
        at = 0
        while at < len(value):
            number, at = read_varint(value, at)
            values.append(as_text(number - (1 << 64) if number >> 63 else number))
    if any(value.startswith("dtype_") for value in values):
        raise ValueError(f"kernels/dtypes.py doesn't know a dtype of {attr!r}: {values}")
    return attr, values


# --- tables ---------------------------------------------------------------------------------


def make_table(version: str, cuda: Path, cpu: Path) -> str:
    """The table of one version, from its two wheels."""

    def of_gpu(wheel: Path) -> list[table.KernelEntry]:
        return [
            entry
            for entry in kernels_of_wheel(wheel)
            if entry.device_type in ("GPU", "DEFAULT") and entry.op not in TEST_OPS
        ]

    on_cpu_wheel = set(of_gpu(cpu))
    entries = [
        table.make_entry(
            op=entry.op,
            device_type=entry.device_type,
            constraints=entry.constraints,
            host_args=entry.host_args,
            label=entry.label,
            priority=entry.priority,
            cuda_only=entry not in on_cpu_wheel,
        )
        for entry in of_gpu(cuda)
    ]
    return table.format_table(version, entries)


def find_wheel(folder: Path, package: str, version: str) -> Path | None:
    """The wheel of ``package`` in ``folder``."""
    found = sorted(folder.glob(f"{package.replace('-', '_')}-{version}-cp310-*_x86_64.whl"))
    return found[0] if found else None


def download(folder: Path, package: str, version: str) -> Path:
    """Downloads a wheel with pip, without what it depends on."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
        + ["--python-version=3.10", "--implementation=cp", "--abi=cp310"]
        + [f"--platform=manylinux_2_{glibc}_x86_64" for glibc in (27, 17)]
        + ["--platform=manylinux2014_x86_64", "--dest", str(folder), f"{package}=={version}"],
        check=True,
    )
    wheel = find_wheel(folder, package, version)
    if wheel is None:
        raise SystemExit(f"pip downloaded no wheel of {package} {version}")
    return wheel


def write_version(version: str, wheels: Path | None, out: Path) -> None:
    """Writes one table and prints what is in it."""
    with tempfile.TemporaryDirectory(prefix="kernel-table-wheels-") as temporary:
        pair = []
        for package in ("tensorflow", "tensorflow-cpu"):
            wheel = find_wheel(wheels, package, version) if wheels else None
            pair.append(wheel or download(Path(temporary), package, version))
        text = make_table(version, *pair)
    path = out / f"{'.'.join(version.split('.')[:2])}.tsv.gz"
    path.write_bytes(table.compress(text))
    _, entries = table.parse_table(text)
    counts = Counter((e.device_type, "cuda" if e.cuda_only else "host") for e in entries)
    figures = ", ".join(f"{' '.join(kind)} {n}" for kind, n in sorted(counts.items()))
    print(f"{version}: {len(entries)} entries ({figures}), {path.stat().st_size} bytes", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("versions", nargs="*", help="minor versions, such as 2.21 (default: all)")
    parser.add_argument("--wheels", type=Path, help="folder that holds the wheels")
    parser.add_argument("--out", type=Path, default=TABLES, help="folder to write to")
    parser.add_argument("--dump", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.dump:
        sys.stdout.buffer.write(dump_kernels(options.dump))
        return
    wanted = [v for v in PINS if not options.versions or v.rpartition(".")[0] in options.versions]
    if not wanted:
        parser.error(f"the versions are {', '.join(v.rpartition('.')[0] for v in PINS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    for version in wanted:
        write_version(version, options.wheels, options.out)


if __name__ == "__main__":
    main()
