"""Tensors that cross between devices, and whether there are more of them than allowed.

This module knows neither TensorFlow nor pytest.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pytest_tfdevice.model import Device, SourceLine
from pytest_tfdevice.units import format_size, parse_size, tensor_bytes
from pytest_tfdevice.verdict import Outcome

Direction = Literal["to_device", "to_host", "between_devices"]
"""Host to GPU, GPU to host, or one GPU to another."""
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
HOST_TRAFFIC: tuple[Direction, ...] = ("to_device", "to_host")

Cause = Literal["graph", "operand", "value", "read", "copy"]
"""``graph``: a send and receive between the partitions of a graph; ``operand``: an eager op, or a
compiled function, was given a tensor that is elsewhere; ``value``: a tensor was made of a host
value (a NumPy array); ``read``: ``.numpy()`` and its like; ``copy``: ``.cpu()``, ``.gpu()``."""

_READ = "read as a result (.numpy())"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A tensor that crossed from one memory to another.

    Attributes:
        tensor: its name, ``"block1/MatMul:0"``; of an eager one what is done with it.
        dtype, shape: of the tensor; the shape None where it isn't known.
        source, target: the devices whose memories they are.  Tensors that an op on a GPU keeps in
            host memory are on the CPU here.
        producer: the op that made it, None for a host value or an eager tensor.
        consumers: the ops that take it, names; empty where it is read.
        cause: how it was seen.
        function: readable name of the function that it is in or goes into, or "Session.run".
        in_loop: True inside a ``while`` loop of a graph: it crosses in each iteration, and is
            counted once, since how often the loop ran isn't known.
        count: how often it was seen.
        runs: how often the function or Session that it belongs to ran; 1 outside of any.
        line: the user's line, where that is known.
    """

    tensor: str
    dtype: str
    shape: tuple[int | None, ...] | None
    source: Device
    target: Device
    producer: str | None = None
    consumers: tuple[str, ...] = ()
    cause: Cause = "graph"
    function: str | None = None
    in_loop: bool = False
    count: int = 1
    runs: int = 1
    line: SourceLine | None = None

    @property
    def direction(self) -> Direction:
        if self.target.type == "CPU":
            return "to_host"
        return "to_device" if self.source.type == "CPU" else "between_devices"

    @property
    def nbytes(self) -> int | None:
        """Of one crossing; None where the shape isn't fully known."""
        return tensor_bytes(self.dtype, self.shape)

    @property
    def is_scalar(self) -> bool:
        """At most one element."""
        if self.shape is None or any(d is None for d in self.shape):
            return False
        size = 1
        for dimension in self.shape:
            size *= dimension or 0
        return size <= 1

    @property
    def per_step(self) -> int:
        """How often it crosses in one run of its function or Session, rounded up."""
        return -(-self.count // max(self.runs, 1))

    def is_in(self, pattern: str) -> bool:
        """True where the tensor, producer, a consumer or the function matches a shell pattern."""
        names = (self.tensor, self.producer, self.function, *self.consumers)
        return any(name is not None and fnmatch.fnmatchcase(name, pattern) for name in names)

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ", ".join("?" if d is None else str(d)
                                                         for d in self.shape)  # fmt: skip
        size = format_size(self.nbytes) if self.nbytes is not None else "size not known"
        text = (
            f"{self.source} → {self.target}  {self.tensor}  {self.dtype}[{shape}], {size}"
            f"{_to(self)}"
        )
        if self.per_step > 1:
            text += f", {self.per_step} times" + (" per step" if self.runs > 1 else "")
        if self.function and not self.tensor.endswith(f" of {self.function}"):
            text += f", in {self.function}"
        if self.runs > 1:
            text += f" ({self.runs} runs)"
        if self.in_loop:
            text += ", in each iteration of a loop"
        return text


def _to(transfer: Transfer) -> str:
    if transfer.cause == "read":
        return f", {_READ}"
    if transfer.cause == "copy":
        return ", copied by hand"
    consumers = ", ".join(transfer.consumers[:2])
    if len(transfer.consumers) > 2:
        consumers += f" and {len(transfer.consumers) - 2} more"
    if transfer.cause == "value":
        return ", made of a host value"
    return f", for {consumers}" if consumers else ""


class TransferLimitError(ValueError):
    """Limits that make no sense."""


def read_directions(given: Any) -> tuple[Direction, ...]:
    """The argument ``direction``: one or several, in the order of ``DIRECTIONS``."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable) or not (wanted := set(names)) <= set(DIRECTIONS):
        raise TransferLimitError(f"direction={given!r} is none of {', '.join(DIRECTIONS)}")
    if not wanted:
        raise TransferLimitError("direction names no direction")
    return tuple(direction for direction in DIRECTIONS if direction in wanted)


def read_scopes(given: Any) -> tuple[str, ...]:
    """The argument ``scope``: one shell pattern or several."""
    patterns = (given,) if isinstance(given, str) else given
    if not isinstance(patterns, Iterable):
        raise TransferLimitError(f"scope={given!r} is no pattern, such as 'block1/*'")
    found = tuple(patterns)
    for pattern in found:
        if not isinstance(pattern, str) or not pattern.strip():
            raise TransferLimitError(
                f"scope={given!r}: {pattern!r} is no pattern, such as 'block1/*'"
            )
    return found


@dataclass(frozen=True)
class TransferLimit:
    """What a test may move.

    Attributes:
        max_count: crossings in a step, None for no limit.
        max_bytes: bytes in a step, None for no limit.
        directions: what counts.
        scope: shell patterns; where there are any, only what is in one of them counts.
        scalars: True to count tensors of at most one element, too.
        total: True to judge all that crossed in the test instead of one step.
        marker: the marker as written, for messages.
    """

    max_count: int | None = None
    max_bytes: int | None = None
    directions: tuple[Direction, ...] = HOST_TRAFFIC
    scope: tuple[str, ...] = ()
    scalars: bool = False
    total: bool = False
    marker: str = "gpu_transfers"

    def counts(self, transfer: Transfer) -> bool:
        """True for a crossing that is held against the limit."""
        if transfer.direction not in self.directions:
            return False
        if not self.scalars and transfer.is_scalar:
            return False
        return not self.scope or any(transfer.is_in(pattern) for pattern in self.scope)

    def times(self, transfer: Transfer) -> int:
        """How many crossings it is."""
        return transfer.count if self.total else transfer.per_step


def transfer_limit(
    max_count: Any, max_bytes: Any, direction: Any, scope: Any, scalars: Any, total: Any
) -> TransferLimit:
    """The arguments of the marker, checked.

    Raises:
        TransferLimitError, SizeError: one is wrong; the message says which.
    """
    if max_count is None and max_bytes is None:
        raise TransferLimitError("it limits nothing: give max_count or max_bytes")
    if max_count is not None and (
        isinstance(max_count, bool) or not isinstance(max_count, int) or max_count < 0
    ):
        raise TransferLimitError(
            f"max_count={max_count!r} is no number of tensors: a whole one from 0 up"
        )
    for name, value in (("scalars", scalars), ("total", total)):
        if not isinstance(value, bool):
            raise TransferLimitError(f"{name}={value!r} is neither True nor False")
    return TransferLimit(
        max_count=max_count,
        max_bytes=None if max_bytes is None else parse_size(max_bytes),
        directions=read_directions(direction),
        scope=read_scopes(scope),
        scalars=scalars,
        total=total,
    )


def merge_limits(marks: Sequence[tuple[TransferLimit, str]]) -> tuple[TransferLimit, ...]:
    """One limit for each choice of what counts; of a limit given twice the nearest holds.

    ``marks`` are limits and the markers as written, the nearest first.
    """
    merged: dict[TransferLimit, TransferLimit] = {}
    for limit, text in marks:
        what = replace(limit, max_count=None, max_bytes=None)
        near = merged.get(what)
        if near is None:
            merged[what] = replace(limit, marker=text)
            continue
        merged[what] = replace(
            near,
            max_count=limit.max_count if near.max_count is None else near.max_count,
            max_bytes=limit.max_bytes if near.max_bytes is None else near.max_bytes,
            marker=near.marker if text == near.marker else f"{near.marker} + {text}",
        )
    return tuple(merged.values())


@dataclass(frozen=True)
class TransferVerdict:
    """Whether a test kept to its limits.

    Attributes:
        counted: the crossings that were held against the limit, the largest first.
        passed_over: how many were not (scalars, other directions, other scopes).
        count, nbytes: what was judged; ``nbytes`` without the tensors whose size isn't known.
        unsized: crossings whose size isn't known.
        problems: what kept a limit from being judged.
    """

    limit: TransferLimit
    counted: tuple[Transfer, ...] = ()
    passed_over: int = 0
    count: int = 0
    nbytes: int = 0
    unsized: tuple[Transfer, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        limit = self.limit
        if limit.max_count is not None and self.count > limit.max_count:
            return "failed"
        if limit.max_bytes is not None and self.nbytes > limit.max_bytes:
            return "failed"
        return "error" if self.problems else "passed"

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def summary(self) -> str:
        """What was judged against what."""
        if self.outcome == "error":
            return "; ".join(self.problems)
        step = "in all" if self.limit.total else "in a step"
        which = {
            HOST_TRAFFIC: "between host and device",
            ("to_device",): "from host to device",
            ("to_host",): "from device to host",
            ("between_devices",): "between devices",
        }.get(self.limit.directions, "in any direction")
        noun = "tensor" if self.count == 1 else "tensors"
        least = "at least " if self.unsized else ""
        text = f"{self.count} {noun} crossed {which} {step}, {least}{self._bytes(self.nbytes)}"
        limits = []
        if self.limit.max_count is not None:
            limits.append(f"max_count is {self.limit.max_count}")
        if self.limit.max_bytes is not None:
            limits.append(f"max_bytes is {self._bytes(self.limit.max_bytes)}")
        return "; ".join([text, *limits])

    @staticmethod
    def _bytes(size: int) -> str:
        return format_size(size) if size < 1024 else f"{format_size(size)} ({size:,} bytes)"


def judge_transfers(
    transfers: Iterable[Transfer], limit: TransferLimit, problems: Sequence[str] = ()
) -> TransferVerdict:
    """Holds what crossed against a limit; the limit itself is allowed."""
    everything = list(transfers)
    counted = [t for t in everything if limit.counts(t)]
    counted.sort(key=lambda t: -(t.nbytes or 0) * limit.times(t))
    unsized = tuple(t for t in counted if t.nbytes is None)
    found = list(problems)
    if limit.max_bytes is not None and unsized:
        names = ", ".join(t.tensor for t in unsized[:3])
        found.append(
            f"the size of {names}{' and others' if len(unsized) > 3 else ''} isn't known (a "
            "dimension of unknown length), so max_bytes can't be judged; give the input a fixed "
            "shape (drop_remainder=True), or use max_count"
        )
    return TransferVerdict(
        limit=limit,
        counted=tuple(counted),
        passed_over=len(everything) - len(counted),
        count=sum(limit.times(t) for t in counted),
        nbytes=sum((t.nbytes or 0) * limit.times(t) for t in counted),
        unsized=unsized,
        problems=tuple(found),
    )
