"""What a window sees of tensors that cross between devices → ``Transfer``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from pytest_tfdevice.capture import expansion, funcgraphs, partitions, sessions
from pytest_tfdevice.capture.copies import Copies
from pytest_tfdevice.capture.partitions import Shape
from pytest_tfdevice.transfers import Cause, Transfer

SESSION = "Session.run"


class TransferLog:
    """Collects for one window; see ``partitions`` for graphs, ``copies`` for all else."""

    def __init__(self) -> None:
        self._copies = Copies()
        self._runs: Counter[str] = Counter()
        self._arguments: dict[str, list[Shape]] = {}
        self._session_runs: Counter[Any] = Counter()

    def on_op(self, op_type: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        """An eager op that ran."""
        self._copies.on_op(op_type, inputs, attrs, outputs)

    def on_call(self, function: str, inputs: Any, outputs: Any, *, compiled: bool) -> None:
        """A function that was called."""
        self._runs[function] += 1
        if function not in self._arguments:
            self._arguments[function] = [_shape(tensor) for tensor in inputs or ()]
        self._copies.on_call(function, inputs, outputs, compiled=compiled)

    def on_copy(self, cause: Cause, tensor: Any, target: str) -> None:
        """A tensor that was made of a host value, read or copied."""
        self._copies.on_copy(cause, tensor, target)

    def on_session_run(self, run: sessions.SessionRun) -> None:
        """A run of a Session, also one that was seen before."""
        self._session_runs[id(run.session), run.key] += 1

    def eager(self) -> Iterator[Transfer]:
        """What crossed outside of graphs."""
        return self._copies.transfers(self._runs, expansion.readable)

    def of_function(
        self,
        graphs: tuple[Any, ...],
        called: str | None,
        written: expansion.Expansion,
        find_op: Callable[[str | None, str], Any],
    ) -> list[Transfer]:
        """What crosses in a function's graph; ``called`` is None where its name isn't known."""
        given = self._arguments.get(called or "", [])

        def argument(node: Any) -> Shape:
            index = node.attr["index"].i
            return given[index] if index < len(given) else None

        return partitions.transfers(
            graphs,
            expansion.readable(called) if called else None,
            max(self._runs[called], 1) if called else 1,
            _static(written, find_op),
            argument,
        )

    def of_session(
        self,
        run: sessions.SessionRun,
        written: expansion.Expansion,
        find_op: Callable[[str | None, str], Any],
    ) -> list[Transfer]:
        """What crosses in a Session's graph."""

        def argument(node: Any) -> Shape:
            return run.feeds.get(partitions.feed_name(node) or "")

        return partitions.transfers(
            run.partitions or (),
            SESSION,
            self._session_runs[id(run.session), run.key],
            _static(written, find_op),
            argument,
        )


def _static(
    written: expansion.Expansion, find_op: Callable[[str | None, str], Any]
) -> Callable[[str, int], Shape]:
    def static_shape(name: str, output: int) -> Shape:
        found = written.find(name)
        op = find_op(found.function, found.node.name) if found is not None else None
        shapes = funcgraphs.op_shapes(op) if op is not None else ()
        return shapes[output] if output < len(shapes) else None

    return static_shape


def _shape(tensor: Any) -> Shape:
    try:
        return tuple(tensor.shape.as_list())
    except (AttributeError, ValueError):  # a variant or a handle of unknown shape
        return None
