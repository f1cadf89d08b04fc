"""What a window sees of tensors that cross between devices → ``Transfer``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_tfdevice.capture import (
    entries,
    expansion,
    funcgraphs,
    partitions,
    sessions,
    signatures,
)
from pytest_tfdevice.capture.copies import Copies
from pytest_tfdevice.capture.partitions import Shape
from pytest_tfdevice.transfers import Cause, Transfer

SESSION = "Session.run"


@dataclasses.dataclass(frozen=True)
class _Eager:
    """Stands for an eager op of a type, among functions and Session runs."""

    type: str


class TransferLog:
    """Collects for one window; see ``partitions`` for graphs, ``copies`` for all else.

    Graphs are read when they first ran; how often they ran in all is known at the end.
    """

    def __init__(self) -> None:
        self._copies = Copies()
        self._runs: Counter[Any] = Counter()
        self._arguments: dict[str, list[Shape]] = {}
        self._in_graphs: list[tuple[Any, Transfer]] = []

    def on_op(self, op_type: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        """An eager op that ran; must be called from within its callback, for the stack."""
        self._runs[_Eager(op_type)] += 1
        self._copies.on_op(op_type, inputs, attrs, outputs)

    def on_call(self, function: str, inputs: Any, outputs: Any, definition: Any) -> None:
        """A function that was called; ``definition`` is its ``FunctionDef``, if known."""
        self._runs[function] += 1
        if function not in self._arguments:
            self._arguments[function] = [signatures.shape_of(tensor) for tensor in inputs or ()]
        compiled = definition is not None and expansion.is_compiled(definition)
        self._copies.on_call(function, inputs, outputs, compiled=compiled)

    def on_copy(self, cause: Cause, tensor: Any, target: str) -> None:
        """A tensor that was made of a host value, read or copied."""
        self._copies.on_copy(cause, tensor, target)

    def on_session_run(self, run: sessions.SessionRun) -> None:
        """A run of a Session; its graphs are read the first time."""
        key = (id(run.session), run.key)
        self._runs[key] += 1
        if not run.partitions:
            return
        graph = run.session.graph

        def static_shape(name: str, output: int) -> Shape:
            return _output_shape(funcgraphs.find_op(graph, name), output)

        def argument_shape(node: Any) -> Shape:
            return run.feeds.get(partitions.feed_name(node) or "")

        found = partitions.transfers(run.partitions, SESSION, static_shape, argument_shape)
        self._in_graphs += [(key, transfer) for transfer in found]

    def of_eager(self, entry: entries.Entry) -> None:
        """What crosses in the graph of an eager op: a result that is in the other memory."""
        if entry.partitions:
            key = _Eager(entry.eager[0].type)
            found = partitions.transfers(entry.partitions, None, lambda *_: None, lambda _: None)
            self._in_graphs += [(key, transfer) for transfer in found]

    def of_function(
        self,
        graphs: Sequence[Any],
        called: str | None,
        written: expansion.Expansion,
        find_op: Callable[[str | None, Any], Any],
    ) -> None:
        """What crosses in a function's graph; ``called`` is None where its name isn't known."""
        given = self._arguments.get(called or "", [])

        def static_shape(name: str, output: int) -> Shape:
            found = written.find(name)
            return _output_shape(find_op(found.function, found.node) if found else None, output)

        def argument_shape(node: Any) -> Shape:
            index = node.attr["index"].i
            return given[index] if index < len(given) else None

        name = expansion.readable(called) if called else None
        found = partitions.transfers(graphs, name, static_shape, argument_shape)
        self._in_graphs += [(called, transfer) for transfer in found]

    def found(self) -> Iterator[Transfer]:
        """What crossed, outside of graphs first; exact duplicates folded."""
        yield from self._copies.transfers(self._runs, expansion.readable)
        for key, transfer in dict.fromkeys(self._in_graphs):
            runs = max(self._runs[key], 1)
            steps = 1 if isinstance(key, _Eager) else runs
            yield dataclasses.replace(transfer, count=runs, runs=steps)


def _output_shape(op: Any, output: int) -> Shape:
    shapes = funcgraphs.op_shapes(op) if op is not None else ()
    return shapes[output] if output < len(shapes) else None
