"""Eager ops and function calls, as the op callbacks of one thread tell them → placements."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import signatures, stack
from pytest_tfdevice.capture.channels import RanOp
from pytest_tfdevice.capture.graphs import parse_device, parse_request
from pytest_tfdevice.capture.interception import FAILED_OP
from pytest_tfdevice.model import (
    Device,
    DeviceScope,
    HostContext,
    Placement,
    SourceLine,
    TensorInfo,
)


@dataclass(frozen=True, slots=True)
class EagerKey:
    """What makes two eager ops the same line of a record."""

    type: str
    dtypes: tuple[tuple[str, str], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    devices: tuple[str, ...]
    backing: tuple[str, ...]
    handle_device: str
    scope: str
    source: SourceLine | None
    in_py_function: bool


@dataclass(slots=True)
class EagerOp:
    """How often it ran, with the shapes of the first time and the stack that led there."""

    count: int
    input_shapes: tuple[tuple[int | None, ...] | None, ...]
    output_shapes: tuple[tuple[int | None, ...] | None, ...]
    frames: tuple[stack.Frame, ...]
    raised: bool = False


@dataclass(frozen=True, slots=True)
class RaisedOp:
    """An eager op that raised: no callback tells of it, and its tensors aren't known."""

    type: str
    device: str
    scope: str
    source: SourceLine | None
    frames: tuple[stack.Frame, ...]

    @property
    def request(self) -> DeviceScope | None:
        """The ``tf.device`` that was in force."""
        return request_of(self.scope, self.frames)


class EagerLog:
    """Collects what op callbacks tell, folding repeated ops into one with a count."""

    def __init__(self) -> None:
        self.ops: dict[EagerKey, EagerOp] = {}
        self.raised: dict[tuple[str, str], RaisedOp] = {}

    def add(self, op: RanOp) -> None:
        """One op that ran, or that will where it is asynchronous; must be called from within its
        callback, for the stack.

        An asynchronous op may turn out to have failed when its result is looked at.
        """
        try:
            self._add(op, sys._getframe(1))
        except Exception as error:
            failed = FAILED_OP.search(str(error))
            if failed is None:
                raise
            if failed["type"] == op.type:  # else it was not run: an earlier one had failed
                self.add_raised(op.type, failed["device"], op.scope)

    def _add(self, op: RanOp, frame: Any) -> None:
        scope = op.scope
        tensors = [t for t in op.outputs or () if hasattr(t, "backing_device")]
        given = [t for t in op.inputs or () if hasattr(t, "dtype")]
        key = EagerKey(
            type=op.type,
            dtypes=signatures.call_dtypes(op.type, op.attrs),
            inputs=tuple(signatures.dtype_name(t.dtype) for t in given),
            outputs=tuple(signatures.dtype_name(t.dtype) for t in tensors),
            devices=tuple(t.device for t in tensors),
            backing=tuple(t.backing_device for t in tensors),
            handle_device=_handle_device(given),
            scope=scope,
            source=stack.running_line(frame),
            in_py_function=op.in_py_function,
        )
        known = self.ops.get(key)
        if known is not None:
            known.count += 1
            return
        self.ops[key] = EagerOp(
            1,
            tuple(signatures.shape_of(t) for t in given),
            tuple(signatures.shape_of(t) for t in tensors),
            stack.live_frames(frame) if scope else (),
        )

    def add_raised(self, op_type: str, device: str, scope: str) -> None:
        """One op that raised; must be called from where that becomes an exception."""
        frame = sys._getframe(1)
        raised = RaisedOp(
            op_type, device, scope, stack.running_line(frame),
            stack.live_frames(frame) if scope else (),
        )  # fmt: skip
        self.raised.setdefault((op_type, device), raised)

    def mark_failed(self, op_type: str, device: str) -> None:
        """An asynchronous op that was added turned out to have failed: the latest of them, since
        none runs after it."""
        found = [k for k in self.ops if k.type == op_type and k.devices[:1] == (device,)]
        if found:
            self.ops[found[-1]].raised = True

    def placements(self, devices_of: dict[Any, set[str]]) -> Iterator[Placement]:
        """One placement for each distinct op.

        ``devices_of`` tells the devices of ops that have no outputs, by type and dtypes, as graph
        collection saw them.
        """
        for key, op in self.ops.items():
            yield _placement(key, op, devices_of)


def _placement(key: EagerKey, op: EagerOp, devices_of: dict[Any, set[str]]) -> Placement:
    device = _device(key, devices_of)
    context: HostContext | None = "py_function" if key.in_py_function else None
    return Placement(
        op=key.type,
        type=key.type,
        device=device,
        kind="executed",
        origin="eager",
        inputs=tuple(map(TensorInfo, key.inputs, op.input_shapes)),
        outputs=tuple(map(TensorInfo, key.outputs, op.output_shapes)),
        dtypes=key.dtypes,
        request=request_of(key.scope, op.frames),
        source=key.source,
        colocated_with=(),
        host_context=context,
        on_host=bool(key.backing) and all(_on_host(d, b) for d, b in _pairs(key)),
        count=op.count,
        raised=op.raised,
    )


def _device(key: EagerKey, devices_of: dict[Any, set[str]]) -> Device | None:
    if key.devices:
        return parse_device(key.devices[0])
    seen = devices_of.get((key.type, key.dtypes), set())
    if len(seen) == 1:
        return parse_device(next(iter(seen)))
    if key.handle_device:
        # An op on a resource runs where the resource is (placer.cc, colocation with handles).
        return parse_device(key.handle_device)
    # Of its kind there were several, on several devices: the one that was asked for, if any was.
    asked = request_of(key.scope, ())
    devices = [device for name in seen if (device := parse_device(name)) is not None]
    fitting = [device for device in devices if asked is not None and asked.spec.matches(device)]
    return fitting[0] if len(fitting) == 1 else None


def _pairs(key: EagerKey) -> Iterator[tuple[str, str]]:
    return zip(key.devices, key.backing, strict=True)


def _on_host(device: str, backing: str) -> bool:
    return device != backing and "/device:CPU:" in backing


def request_of(scope: str, frames: tuple[stack.Frame, ...]) -> DeviceScope | None:
    """The ``tf.device`` scope that was in force where ``frames`` led to."""
    spec = parse_request(scope)
    if spec is None:
        return None
    source = stack.scope_opener(frames)
    return DeviceScope(spec, source, bool(source and stack.is_framework(source.file)))


def _handle_device(inputs: list[Any]) -> str:
    for tensor in inputs:
        if tensor.dtype.name == "resource":
            return str(getattr(tensor, "device", "") or "")
    return ""
