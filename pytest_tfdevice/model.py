"""Devices, placements and records: the data that every other room works on.

This module knows neither TensorFlow nor pytest.  Data types are named as TensorFlow's Python API
names them ("float32", "resource", "string", "variant").
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pytest_tfdevice.memory import GpuMemory
    from pytest_tfdevice.op_times import OpTime
    from pytest_tfdevice.transfers import Transfer

_FIELD = re.compile(
    r"(?:job:(?P<job>[A-Za-z0-9_.\-]+)|replica:(?P<replica>\d{1,9}|\*)|task:(?P<task>\d{1,9}|\*)"
    r"|(?:device:)?(?P<type>[A-Za-z][A-Za-z0-9_\-]*)(?::(?P<index>\d{1,9}|\*))?)"
)

_INLINED = re.compile(r"(?:(?<=^)|(?<=/))(?:(?:Stateful)?PartitionedCall(?:_\d+)?|_\d+)/")
"""Parts of a name that stand for the call of a function, or number a lowered branch."""


def plain_path(name: str) -> str:
    """A node's name without what inlining and lowering add."""
    return _INLINED.sub("", name)


class DeviceError(ValueError):
    """A device string that TensorFlow would not understand."""


@dataclass(frozen=True, order=True, slots=True)
class Device:
    """One device, in full: ``/job:localhost/replica:0/task:0/device:GPU:0``."""

    job: str
    replica: int
    task: int
    type: str
    index: int

    @classmethod
    def parse(cls, text: str) -> Device:
        """Reads a full device name of any TensorFlow, ``…/gpu:0`` and ``…/device:GPU:0`` alike.

        Parts that are missing are those of a local process (``localhost``, 0).

        Raises:
            DeviceError: ``text`` names no type of device.
        """
        spec = DeviceSpec.parse(text)
        if spec.type is None:
            raise DeviceError(f"{text!r} names no device type, such as GPU or CPU")
        return cls(
            spec.job if spec.job is not None else "localhost",
            spec.replica or 0,
            spec.task or 0,
            spec.type,
            spec.index or 0,
        )

    @property
    def canonical(self) -> str:
        """The name as TensorFlow 2 writes it."""
        return (
            f"/job:{self.job}/replica:{self.replica}/task:{self.task}"
            f"/device:{self.type}:{self.index}"
        )

    @property
    def short(self) -> str:
        """``GPU:0`` for a device of this process, else with its job and task."""
        if (self.job, self.replica, self.task) == ("localhost", 0, 0):
            return f"{self.type}:{self.index}"
        return f"/job:{self.job}/task:{self.task}/{self.type}:{self.index}"

    def __str__(self) -> str:
        return self.short


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device as somebody asked for it; what is None was left open."""

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    type: str | None = None
    index: int | None = None

    @classmethod
    def parse(cls, text: str) -> DeviceSpec:
        """Reads ``"GPU"``, ``"gpu:1"``, ``"/device:GPU:0"``, ``"/job:worker/task:1/device:GPU:0"``.

        Raises:
            DeviceError: a part of ``text`` isn't one of job, replica, task or device.
        """
        found: dict[str, str] = {}
        for part in text.strip().strip("/").split("/") if text.strip("/ ") else []:
            match = _FIELD.fullmatch(part)
            if match is None:
                raise DeviceError(
                    f"{text!r} is no device: {part!r} is none of job:NAME, replica:N, task:N, "
                    "GPU, GPU:N, device:GPU:N"
                )
            for name, value in match.groupdict().items():
                if value is None or value == "*":
                    continue
                if name in found:
                    raise DeviceError(f"{text!r} is no device: it names its {name} twice")
                found[name] = value
        kind = found.get("type")
        return cls(
            job=found.get("job"),
            replica=int(found["replica"]) if "replica" in found else None,
            task=int(found["task"]) if "task" in found else None,
            type=kind.upper() if kind is not None else None,
            index=int(found["index"]) if "index" in found else None,
        )

    def matches(self, device: Device) -> bool:
        """True where ``device`` is one of those that were asked for."""
        return all(
            want is None or want == have
            for want, have in (
                (self.job, device.job),
                (self.replica, device.replica),
                (self.task, device.task),
                (self.type, device.type),
                (self.index, device.index),
            )
        )

    def __str__(self) -> str:
        parts = []
        if self.job is not None:
            parts.append(f"/job:{self.job}")
        if self.replica is not None:
            parts.append(f"/replica:{self.replica}")
        if self.task is not None:
            parts.append(f"/task:{self.task}")
        if self.type is not None:
            name = self.type if self.index is None else f"{self.type}:{self.index}"
            if not parts:
                return name
            parts.append(f"/device:{name}")
        return "".join(parts) or "any device"


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of Python code: of the user's where one is on the stack."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class DeviceScope:
    """The ``tf.device`` that was in force for an op.

    ``source`` is the line that opened it, where that is known; ``by_framework`` is True where
    TensorFlow's or Keras' own code opened it.
    """

    spec: DeviceSpec
    source: SourceLine | None = None
    by_framework: bool = False


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor's dtype and shape; None for a dimension, or a shape, that isn't known."""

    dtype: str
    shape: tuple[int | None, ...] | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


Kind = Literal["placed", "executed"]
"""``placed``: the placer (or a graph) says so; ``executed``: an op or function that ran."""

Origin = Literal["eager", "function", "session", "compiled", "log"]
"""Where an op was seen: run eagerly, in a function's graph, in a Session's graph, inside a compiled
(XLA) unit, or in a placement log."""

HostContext = Literal["tf.data", "py_function"]


@dataclass(frozen=True, slots=True)
class Placement:
    """One op and the device that it landed on.

    Attributes:
        op: node name, ``"model/dense/MatMul"``; for an eager op its type.
        type: op type, ``"MatMul"``; None where a log has none.
        device: where it is.  None only where TensorFlow gives no way to know.
        kind: ``placed`` or ``executed``.
        origin: the kind of place where it was seen.
        inputs, outputs: tensors in order; empty where they aren't known (a log).
        dtypes: the op's dtype attributes, ``(("T", "float32"),)``: what selects a kernel.
        request: the ``tf.device`` in force for it, None where there was none.
        source: the user's line that created (graph) or ran (eager) the op.
        function: readable name of the function that it is in, ``"train_step"``.
        colocated_with: ops that it was tied to by a colocation constraint (names).
        host_context: set for what runs inside a ``tf.data`` pipeline or a ``py_function``.
        unit: name of the compiled function that it is in, or, with ``contents``, that it is.
        contents: how many ops a compiled unit holds.
        on_host: True where every output was seen to be in host memory although the op is on a
            device (eager ops tell).
        raised: the op raised an error when run.
        count: how many times it was seen to run; 1 for an op of a graph.
        placed_on: the placer's choice, where it is known and an optimiser changed it later.
    """

    op: str
    type: str | None
    device: Device | None
    kind: Kind = "placed"
    origin: Origin = "log"
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    dtypes: tuple[tuple[str, str], ...] = ()
    request: DeviceScope | None = None
    source: SourceLine | None = None
    function: str | None = None
    colocated_with: tuple[str, ...] = ()
    host_context: HostContext | None = None
    unit: str | None = None
    contents: int = 0
    on_host: bool = False
    raised: bool = False
    count: int = 1
    placed_on: Device | None = None

    @property
    def path(self) -> str:
        """The name without what inlining and lowering add: ``"model/dense/MatMul"`` of
        ``"StatefulPartitionedCall/model/dense/MatMul"``, ``"while/body/Relu"`` of
        ``"while/body/_17/Relu"``."""
        return plain_path(self.op)

    @property
    def scope(self) -> str:
        """The path up to its last part: ``"model/dense"`` of ``"model/dense/MatMul"``."""
        return self.path.rpartition("/")[0]

    @property
    def is_unit(self) -> bool:
        """True for a compiled (XLA) function as a whole."""
        return self.unit is not None and self.origin != "compiled"


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """An argument in an op's signature: a fixed ``dtype``, or the attribute that gives it."""

    name: str
    dtype: str | None = None
    attr: str | None = None
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class OpSignature:
    """What TensorFlow's op registry says of an op type (``OpDef``)."""

    type: str
    stateful: bool = False
    inputs: tuple[ArgSpec, ...] = ()
    outputs: tuple[ArgSpec, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()
    """Name and type of each attribute: ``("T", "type")``, ``("f", "func")``."""


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """A device that TensorFlow has.

    ``memory``: bytes that TensorFlow may use on it, None where that isn't known without taking
    memory.  ``description``: the model of a GPU.  ``is_logical``: it is a part of a GPU, with a
    memory limit of its own (``LogicalDeviceConfiguration``).  ``growth``: memory is configured to
    be reserved as it is needed; None where nobody configured it.
    """

    device: Device
    description: str = ""
    memory: int | None = None
    compute_capability: tuple[int, int] | None = None
    simulated: bool = False
    is_logical: bool = False
    growth: bool | None = None


@dataclass(frozen=True)
class Record:
    """What TensorFlow ran while it was watched.

    Attributes:
        placements: in order of first appearance, exact duplicates folded into ``count``.
        devices: what TensorFlow had.
        signatures: by op type, for the types that were seen.
        tensorflow: version, ``"2.21.0"``; empty for a log.
        calls: function calls and Session runs seen, by readable name.
        notes: remarks for the reader that change no verdict.
        problems: what the capture could not see or what cut it off.  A record with a problem can
            fail or be an error, but never pass.
        memory: of each GPU that was initialised, in bytes.
        transfers: tensors that crossed between devices.
        op_times: of each device on which v1 Sessions ran something, as far as they were timed.
    """

    placements: tuple[Placement, ...] = ()
    devices: tuple[DeviceInfo, ...] = ()
    signatures: Mapping[str, OpSignature] = field(default_factory=lambda: MappingProxyType({}))
    tensorflow: str = ""
    calls: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    memory: tuple[GpuMemory, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    op_times: tuple[OpTime, ...] = ()

    @property
    def ops(self) -> tuple[Placement, ...]:
        """Every placement, in order of first appearance."""
        return self.placements

    @property
    def simulated(self) -> bool:
        """True where the GPUs are simulated ones."""
        return any(info.simulated for info in self.devices)

    @property
    def saw_something(self) -> bool:
        """False where nothing ran on TensorFlow."""
        return bool(self.placements or self.calls)

    def on(self, device: str) -> tuple[Placement, ...]:
        """Placements on ``device`` ("GPU", "GPU:0", "/job:worker/task:1/device:GPU:0")."""
        spec = DeviceSpec.parse(device)
        return tuple(p for p in self.placements if p.device is not None and spec.matches(p.device))

    def of_type(self, pattern: str) -> tuple[Placement, ...]:
        """Placements whose op type matches a shell pattern ("MatMul", "Sparse*")."""
        return tuple(p for p in self.placements if p.type and fnmatch.fnmatchcase(p.type, pattern))

    def named(self, pattern: str) -> tuple[Placement, ...]:
        """Placements whose name, or path, matches a shell pattern ("block1/*")."""
        return tuple(
            p
            for p in self.placements
            if fnmatch.fnmatchcase(p.op, pattern) or fnmatch.fnmatchcase(p.path, pattern)
        )

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.placements)

    def __len__(self) -> int:
        return len(self.placements)
