"""Function calls of one window, and which graph belongs to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_tfdevice.capture import expansion, private, stack
from pytest_tfdevice.capture.channels import RanOp
from pytest_tfdevice.capture.eager import request_of
from pytest_tfdevice.capture.funcgraphs import FUNC_GRAPHS
from pytest_tfdevice.capture.graphs import PSEUDO_TYPES, Called


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The first call of a function on a device and under a ``tf.device`` scope."""

    function: str
    device: str
    scope: str
    called: Called
    raised: bool


class CallLog:
    """Collects the calls of functions, and their definitions while they are there."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._calls: dict[tuple[str, str, str, bool], FunctionCall] = {}
        self._definitions: dict[str, Any] = {}

    def __iter__(self) -> Iterator[FunctionCall]:
        return iter(self._calls.values())

    def add(self, op: RanOp, frame: Any) -> FunctionCall | None:
        """One call; what is new about it, or None where it is as one that was seen before.

        ``frame`` is the innermost one of the call's stack.
        """
        self.counts[expansion.readable(op.type)] += 1
        device = next((t.device for t in op.outputs or () if hasattr(t, "device")), "")
        key = (op.type, device, op.scope, op.in_py_function)
        if key in self._calls:
            return None
        FUNC_GRAPHS.learn(frame)
        frames = stack.live_frames(frame)
        called = Called(
            request_of(op.scope, frames),
            stack.user_line(frames),
            "py_function" if op.in_py_function else None,
        )
        call = FunctionCall(op.type, device, op.scope, called, op.outputs is None and not device)
        self._calls[key] = call
        self.definition(op.type)
        return call

    def definition(self, function: str) -> Any:
        """A ``FunctionDef`` of the eager context, kept: a function may be gone by the end."""
        if function not in self._definitions:
            context = private.eager_context()
            try:
                found = (
                    context.get_function_def(function)
                    if private.context_is_initialized(context)
                    else None
                )
            except Exception:  # errors_impl.NotFoundError: not, or no longer, registered
                found = None
            self._definitions[function] = found
        return self._definitions[function]

    def owners(
        self, parts: Iterable[Sequence[Any]], first: FunctionCall | None = None
    ) -> list[FunctionCall | None]:
        """The call that ran each part of a graph; ``first`` is tried before the others.

        Of two functions with the same ops, under the same names, that which asks for the same
        devices is taken.
        """
        candidates = [*([first] if first is not None else []), *reversed(self._calls.values())]
        return [_best(part, candidates, self.definition) for part in parts]


def _best(
    part: Sequence[Any], candidates: list[FunctionCall], definition: Callable[[str], Any]
) -> FunctionCall | None:
    ours = _ops(part)
    if not ours:
        return None
    fitting = [
        call
        for call in candidates
        if (found := definition(call.function)) is not None and ours <= _ops(found.node_def)
    ]
    devices = _devices(part)
    for call in fitting:
        if devices == _devices(definition(call.function).node_def):
            return call
    return fitting[0] if fitting else None


def _ops(nodes: Iterable[Any]) -> set[tuple[str, str]]:
    return {(n.name, n.op) for n in nodes if n.op not in PSEUDO_TYPES and n.op != "NoOp"}


def _devices(nodes: Iterable[Any]) -> set[tuple[str, str]]:
    return {
        (n.name, n.device) for n in nodes if n.op not in PSEUDO_TYPES and "/device:" in n.device
    }
