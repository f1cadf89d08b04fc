"""Makes ``pytest_tfdevice/kernels/tables/ops.txt.gz``: the signatures of TensorFlow's ops.

It lets placement logs be read without TensorFlow.  Run it under each TensorFlow whose ops are to
be in it, the newest last; the wheels with CUDA have a few that the others don't::

    python tools/make_op_table.py

What the running TensorFlow registers is written over what is there; ops that only an earlier one
had stay, since logs of it exist.  The same runs give the same bytes.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pytest_tfdevice.capture import private  # noqa: E402
from pytest_tfdevice.capture.signatures import signature  # noqa: E402
from pytest_tfdevice.kernels import ops, table  # noqa: E402


class _Buffer(ctypes.Structure):
    """``TF_Buffer`` of TensorFlow's C API."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("deallocator", ctypes.c_void_p),
    ]


def op_types() -> list[str]:
    """Every op type that the running TensorFlow registers."""
    from tensorflow.core.framework import op_def_pb2

    get: Any = private.c_function("TF_GetAllOpList", "to list the ops", ctypes.POINTER(_Buffer))
    buffer = get()
    found = op_def_pb2.OpList()
    found.ParseFromString(ctypes.string_at(buffer.contents.data, buffer.contents.length))
    return sorted(op.name for op in found.op)


def main() -> None:
    import tensorflow as tf

    found = dict(ops.shipped_signatures()) if ops.FILE.exists() else {}
    before = len(found)
    for name in op_types():
        sign = signature(name)
        if sign is not None:
            found[name] = sign
    with open(str(ops.FILE), "wb") as file:
        file.write(table.compress(ops.format_table(found.values())))
    print(f"TensorFlow {tf.__version__}: {len(found)} ops, {len(found) - before} of them new")


if __name__ == "__main__":
    main()
