"""What a message of TensorFlow says of an op that it could not place.

Knows neither TensorFlow nor pytest.  :mod:`pytest_tfdevice.errors.placement` reads the messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from pytest_tfdevice.kernels.table import KernelEntry, make_entry
from pytest_tfdevice.model import SourceLine

_CONSTRAINT = re.compile(r"; (\w+) in \[([^\]]*)\]")
MAX_MEMBERS = 200
"""How many members of a colocation group, and kernels of an op, are kept."""

Problem = Literal["no-kernel", "no-device", "colocated", "warned"]
"""``no-kernel``: the device is there, a kernel isn't; ``no-device``: the device isn't there;
``colocated``: the group has no device in common; ``warned``: placed elsewhere, with a warning."""


@dataclass(frozen=True, slots=True)
class Member:
    """An op of a colocation group, with the device that was asked for or assigned ("" for none)."""

    op: str
    type: str
    device: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """An op, or a function's call, that TensorFlow could not place where it was to be.

    Attributes:
        problem: what stood in the way.
        op: node name; "" for an eager op or where the message has none.
        type: op type, None where the message has none.
        function: the function whose call raised, as TensorFlow names it.
        wanted: the device that was asked for, or that the group required; "" for none.
        available: the devices that there were; empty where the message doesn't list them.
        supported: the types of device that the op, or its whole group, supports.
        types: of the colocation group, each op type with the types of device that it supports.
        members: of the colocation group.
        dtypes: the op's dtype attributes.
        kernels: of the op, of every type of device; empty where the message doesn't list them.
        source: the user's line that made the op.
        partner: the other op of a pair that can't be colocated.
    """

    problem: Problem
    op: str = ""
    type: str | None = None
    function: str | None = None
    wanted: str = ""
    available: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    types: tuple[tuple[str, tuple[str, ...]], ...] = ()
    members: tuple[Member, ...] = ()
    dtypes: tuple[tuple[str, str], ...] = ()
    kernels: tuple[KernelEntry, ...] = ()
    source: SourceLine | None = None
    partner: str = ""

    @property
    def name(self) -> str:
        """``"prod (MatMul)"``, or what the message has of it."""
        if self.op and self.type and self.op != self.type:
            return f"{self.op} ({self.type})"
        if self.op or self.type:
            return self.op or str(self.type)
        return f"function {readable(self.function)}" if self.function else "an operation"


_DTYPE_NAMES = {"float": "float32", "double": "float64", "half": "float16"}


def dtype_name(text: str) -> str:
    """``"float32"`` for ``DT_FLOAT``, ``"int32"`` for ``DT_INT32``."""
    lower = text.removeprefix("DT_").lower()
    return _DTYPE_NAMES.get(lower, lower)


def readable(function: str) -> str:
    """``"step"`` for ``"__inference_step_19"``: a function as its author named it."""
    name = re.sub(r"^_*(?:inference|forward|backward)_", "", function)
    return re.sub(r"(?:_\d+)+$", "", name) or function


@dataclass(slots=True)
class Draft:
    """A failure whose following lines are being read; fields as of ``Failure``."""

    problem: Problem | None
    op: str = ""
    type: str | None = None
    function: str | None = None
    wanted: str = ""
    available: tuple[str, ...] = ()
    supported: tuple[str, ...] = ()
    partner: str = ""
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)
    kernels: list[KernelEntry] = field(default_factory=list)
    source: SourceLine | None = None
    section: str = ""

    def done(self) -> Failure | None:
        """None where the message broke off before it said what stood in the way."""
        if self.problem is None:
            return None
        op_type = self.type
        if op_type is None:
            op_type = next((m.type for m in self.members if m.op == self.op), None)
        return Failure(
            problem=self.problem,
            op=self.op,
            type=op_type,
            function=self.function,
            wanted=self.wanted,
            available=self.available,
            supported=self.supported,
            types=tuple(self.types.items()),
            members=tuple(self.members),
            dtypes=tuple(self.dtypes.items()),
            kernels=tuple(self.kernels),
            source=self.source,
            partner=self.partner,
        )


def kernel_entry(op: str, device: str, constraints: str) -> KernelEntry:
    """A row of "Registered kernels": ``device='GPU'; T in [DT_FLOAT]``."""
    pairs = [
        (attr, [dtype_name(part.strip()) for part in allowed.split(",")])
        for attr, allowed in _CONSTRAINT.findall(constraints)
    ]
    return make_entry(op, device, pairs, (), "", 0, cuda_only=False)
