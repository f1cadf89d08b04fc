"""Copies between host and device that happen outside of graphs.

Eager ops are given tensors that are elsewhere; tensors are made of host values; results are read.
The first is told by op callbacks, the others by methods of eager tensors that are replaced while a
window is open.  Not seen are ``np.asarray(tensor)`` and ``memoryview(tensor)``, which go through
the buffer protocol, and copies by other threads than the window's.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pytest_tfdevice.capture import private_memory, signatures, stack
from pytest_tfdevice.kernels.current import gpu_kernels
from pytest_tfdevice.kernels.match import chosen
from pytest_tfdevice.model import Device, OpSignature, Placement, SourceLine
from pytest_tfdevice.transfers import Cause, Transfer

HandCause = Literal["value", "read", "copy"]
"""What methods of eager tensors tell; see ``transfers.Cause``."""
NEVER_ON_DEVICE = frozenset({"string", "variant", "resource"})
"""Dtypes of which there is no device memory; a handle's value is elsewhere."""


_NAMES = {"value": "value", "read": "result", "copy": "tensor", "operand": "operand"}


@dataclass(frozen=True, slots=True)
class _Key:
    """What makes two copies the same line of a record."""

    other: str
    """The op or function that takes the tensor, or that made it; empty where not known."""
    dtype: str
    shape: tuple[int | None, ...] | None
    source: str
    target: str
    cause: Cause
    line: SourceLine | None


class Copies:
    """Collects copies, folding repeated ones into one with a count."""

    def __init__(self) -> None:
        self._counts: Counter[_Key] = Counter()
        self._functions: dict[_Key, str] = {}
        self._copied: set[tuple[int, str]] = set()
        self._made: dict[int, _Key] = {}
        self._results: dict[int, str] = {}
        self._on_host: dict[Any, tuple[bool, ...]] = {}

    def on_op(self, op_type: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        """An eager op that ran; must be called from within its callback, for the stack."""
        given = [t for t in inputs or () if hasattr(t, "backing_device")]
        if not given:
            return
        device = _device_of(outputs, given)
        if not device:
            return
        on_gpu = "/device:GPU:" in device
        if not on_gpu and not any("/device:GPU:" in t.backing_device for t in given):
            return
        host = self._host_inputs(op_type, attrs, given) if on_gpu else (True,) * len(given)
        for tensor, on_host in zip(given, host, strict=True):
            self._operand(op_type, tensor, _cpu(device) if on_host else device)

    def on_call(self, function: str, inputs: Any, outputs: Any, *, compiled: bool) -> None:
        """A function that was called.  Only into a compiled one tensors are copied unseen else."""
        for tensor in inputs or ():
            key = self._made.get(getattr(tensor, "_id", -1))
            if key is not None:
                self._functions[key] = function
        for tensor in outputs or ():
            if hasattr(tensor, "backing_device"):
                self._results[tensor._id] = function
        if not compiled:
            return
        given = [t for t in inputs or () if hasattr(t, "backing_device")]
        device = _device_of(outputs, given)
        for tensor in given if device else ():
            key = self._operand(function, tensor, device)
            if key is not None:
                self._functions[key] = function

    def on_copy(self, cause: Cause, tensor: Any, target: str) -> None:
        """A tensor that was made of a host value, read, or copied by hand to ``target``."""
        source = _cpu(target) if cause == "value" else tensor.backing_device
        if source == target or _dtype(tensor) in NEVER_ON_DEVICE:
            return
        function = self._results.get(tensor._id)
        key = self._add(function or "", tensor, source, target, cause)
        if cause == "value":
            self._made[tensor._id] = key
        elif function is not None:
            self._functions[key] = function

    def transfers(
        self, runs: Mapping[str, int], readable: Callable[[str], str]
    ) -> Iterator[Transfer]:
        """What was seen; ``runs`` tells how often each function was called."""
        for key, count in self._counts.items():
            function = self._functions.get(key)
            other = readable(key.other) if key.other else None
            yield Transfer(
                tensor=_NAMES[key.cause] + (f" of {readable(function)}" if function else ""),
                dtype=key.dtype,
                shape=key.shape,
                source=Device.parse(key.source),
                target=Device.parse(key.target),
                consumers=(other,) if other and key.cause == "operand" else (),
                cause=key.cause,
                function=readable(function) if function else None,
                count=count,
                runs=runs.get(function, 1) if function else 1,
                line=key.line,
            )

    def _operand(self, consumer: str, tensor: Any, target: str) -> _Key | None:
        source = tensor.backing_device
        if source == target or _dtype(tensor) in NEVER_ON_DEVICE:
            return None
        if "/device:GPU:" not in source and "/device:GPU:" not in target:
            return None
        # TensorFlow keeps the copy with the tensor, and takes it again: execute.cc, `mirror`.
        if (tensor._id, target) in self._copied:
            return None
        self._copied.add((tensor._id, target))
        return self._add(consumer, tensor, source, target, "operand")

    def _add(self, name: str, tensor: Any, source: str, target: str, cause: Cause) -> _Key:
        line = stack.running_line(sys._getframe(2))
        shape = signatures.shape_of(tensor)
        key = _Key(name, _dtype(tensor), shape, source, target, cause, line)
        self._counts[key] += 1
        return key

    def _host_inputs(self, op_type: str, attrs: Any, given: list[Any]) -> tuple[bool, ...]:
        """For each input whether the GPU kernel takes it in host memory."""
        dtypes = signatures.call_dtypes(op_type, attrs)
        key = (op_type, dtypes, len(given))
        known = self._on_host.get(key)
        if known is None:
            known = self._on_host[key] = host_inputs(op_type, dtypes, len(given))
        return known


def host_inputs(op_type: str, dtypes: tuple[tuple[str, str], ...], count: int) -> tuple[bool, ...]:
    """For each of ``count`` inputs whether the op's GPU kernel takes it in host memory."""
    signature = signatures.signature(op_type)
    placement = Placement(op_type, op_type, None, dtypes=dtypes)
    entry = chosen(placement, gpu_kernels(), "GPU")
    if entry is None or signature is None:
        return (False,) * count
    names = argument_names(signature, count)
    if names is None:
        return (False,) * count
    return tuple(name in entry.host_args for name in names)


def argument_names(signature: OpSignature, count: int) -> list[str] | None:
    """The argument that each of ``count`` inputs belongs to; None with several lists."""
    lists = sum(arg.is_list for arg in signature.inputs)
    length = count - (len(signature.inputs) - lists)
    if lists > 1 or length < 0 or (not lists and length):
        return None
    return [arg.name for arg in signature.inputs for _ in range(length if arg.is_list else 1)]


def _device_of(outputs: Any, given: list[Any]) -> str:
    for tensor in outputs or ():
        if hasattr(tensor, "device") and hasattr(tensor, "backing_device"):
            return str(tensor.device)
    return next((str(t.device) for t in given if _dtype(t) == "resource"), "")


def _dtype(tensor: Any) -> str:
    return signatures.dtype_name(tensor.dtype)


def _cpu(device: str) -> str:
    return f"{device.rpartition('/device:')[0]}/device:CPU:0"


class CopyPatch:
    """Stands between eager tensors and the code that reads, copies and makes them.

    ``on_copy`` gets the cause, the tensor and the device that its values went to.
    """

    def __init__(
        self,
        on_copy: Callable[[HandCause, Any, str], None],
        is_own: Callable[[], bool],
    ) -> None:
        self._on_copy = on_copy
        self._is_own = is_own
        self._originals: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Takes the methods over."""
        owner = private_memory.eager_tensor_class()
        read, copy = owner._numpy, owner._copy_nograd
        module = private_memory.constant_module()
        convert = module.convert_to_eager_tensor

        def _numpy(tensor: Any) -> Any:
            value = read(tensor)
            self._tell("read", tensor, _cpu(tensor.device))
            return value

        def _copy_nograd(tensor: Any, ctx: Any = None, device_name: Any = None) -> Any:
            made = copy(tensor, ctx, device_name)
            self._tell("copy", tensor, made.backing_device)
            return made

        def convert_to_eager_tensor(value: Any, ctx: Any, dtype: Any = None) -> Any:
            made = convert(value, ctx, dtype)
            if made is not value:
                self._tell("value", made, made.backing_device)
            return made

        self._replace(owner, "_numpy", _numpy)
        self._replace(owner, "_copy_nograd", _copy_nograd)
        self._replace(module, "convert_to_eager_tensor", convert_to_eager_tensor)

    def remove(self) -> None:
        """Gives back what was taken."""
        for owner, name, original in self._originals:
            setattr(owner, name, original)
        self._originals.clear()

    def _replace(self, owner: Any, name: str, replacement: Any) -> None:
        self._originals.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, replacement)

    def _tell(self, cause: HandCause, tensor: Any, target: str) -> None:
        if "/device:GPU:" not in (target if cause == "value" else tensor.backing_device + target):
            return
        if not self._is_own():
            self._on_copy(cause, tensor, target)
