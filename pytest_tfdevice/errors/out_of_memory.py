"""A ``ResourceExhaustedError``: what its message tells.  Knows neither TensorFlow nor pytest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_tfdevice.model import Device
from pytest_tfdevice.units import format_size, tensor_bytes


@dataclass(frozen=True, slots=True)
class Resident:
    """Something that holds GPU memory: a variable or an eager tensor."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    device: Device

    def __str__(self) -> str:
        return f"{format_size(self.nbytes)}  {self.name}  {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class OutOfMemory:
    """A ``ResourceExhaustedError``: what its message tells, and what was found when it was raised.

    Attributes:
        op: name of the op, None where the message has none.
        op_type: its type, where the message has it.
        device: the GPU that was full, None where the message names none.
        dtype, shape: of the tensor that there was no room for, None where not told.
        asked: its bytes, None where they can't be told.
        in_use, limit: bytes of the allocator, once the op had failed and freed what it had.
        peak: the most that was held while the test ran.
        residents: what holds memory, the largest first.
    """

    op: str | None = None
    op_type: str | None = None
    device: Device | None = None
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    asked: int | None = None
    in_use: int | None = None
    limit: int | None = None
    peak: int | None = None
    residents: tuple[Resident, ...] = ()

    @property
    def free(self) -> int | None:
        """What the allocator could still give, if it had been in one piece."""
        if self.in_use is None or self.limit is None:
            return None
        return max(self.limit - self.in_use, 0)


_OOM = re.compile(
    r"OOM when allocating tensor with shape\[(?P<shape>[\d,]*)\] and type (?P<dtype>\w+)"
    r"(?: on (?P<device>\S+))?"
)
_OP = re.compile(r"\[Op:(?P<type>\w+)\](?: name:[ ]*(?P<name>\S*))?")
_NODE = re.compile(r"\{\{(?:function_)?node (?P<name>[^}]+)\}\}")

_NAMES = {"float": "float32", "double": "float64", "half": "float16"}
"""C++'s names of dtypes where Python's differ."""


def read_oom(message: str) -> OutOfMemory:
    """Reads the message of a ``ResourceExhaustedError``; what it doesn't tell is None."""
    found = _OOM.search(message)
    rest = message[found.end() :] if found else message
    eager = _OP.search(message)
    op_type = eager["type"] if eager and not eager["type"].startswith("__") else None
    node = _NODE.search(rest)
    op = node["name"] if node else (eager and eager["name"]) or op_type
    if found is None:
        return OutOfMemory(op=op, op_type=op_type)
    shape = tuple(int(part) for part in found["shape"].split(",") if part)
    dtype = _NAMES.get(found["dtype"], found["dtype"])
    return OutOfMemory(
        op=op,
        op_type=op_type,
        device=Device.parse(found["device"]) if found["device"] else None,
        dtype=dtype,
        shape=shape,
        asked=tensor_bytes(dtype, shape),
    )
