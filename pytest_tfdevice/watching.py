"""Watching a stretch of code by hand, and the record that comes of it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_tfdevice.explain import explain
from pytest_tfdevice.model import DeviceSpec, Placement, Record
from pytest_tfdevice.patterns import Rule, parse_patterns
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.rules import judge
from pytest_tfdevice.verdict import Verdict


class PlacementError(AssertionError):
    """What was watched did not run where it should have; the message is the report."""


@dataclasses.dataclass(frozen=True)
class WatchedRecord(Record):
    """A record that can be judged and printed."""

    @classmethod
    def of(cls, record: Record) -> WatchedRecord:
        """The same record, with these methods."""
        if isinstance(record, cls):
            return record
        return cls(**{f.name: getattr(record, f.name) for f in dataclasses.fields(Record)})

    def verdict(
        self,
        on: str = "GPU",
        *ops: str,
        allow: Iterable[str] = (),
        strict: bool = False,
        min_ratio: float | None = None,
    ) -> Verdict:
        """Judges the record as ``on_device(on, …)`` would.

        Raises:
            DeviceError, RuleError: an argument is wrong; the message says which.
        """
        rule = Rule(
            DeviceSpec.parse(on),
            parse_patterns(ops),
            parse_patterns(allow),
            strict,
            min_ratio,
            marker=f"on_device({on!r})",
        )
        return judge(self, rule, self._kernels())

    def ratio(self, device: str = "GPU") -> float | None:
        """Share, 0 to 1, of what counts that is on ``device``; None where nothing counts."""
        return self.verdict(device).ratio

    def explain(self, op: str | Placement, on: str = "GPU") -> Reason:
        """Why an op, by name or by type, isn't on the device ``on``.

        Raises:
            LookupError: no such op off that device was seen.
        """
        target = DeviceSpec.parse(on)
        if isinstance(op, Placement):
            return explain(op, self, self._kernels(), target)
        named = [p for p in self.placements if op in (p.op, p.type)]
        for placement in named:
            if placement.device is None or not target.matches(placement.device):
                return explain(placement, self, self._kernels(), target)
        if named:
            raise LookupError(f"{op} is on {named[0].device}, which is what {target} asks for")
        raise LookupError(f"{op} was not seen; seen were {_some(self.placements)}")

    def assert_on_gpu(self, *ops: str, index: int | None = None, **arguments: Any) -> None:
        """Fails as the marker ``on_gpu`` would.

        Raises:
            PlacementError: something that counts is elsewhere, or nothing was seen.
        """
        __tracebackhide__ = True
        self.assert_on_device("GPU" if index is None else f"GPU:{index}", *ops, **arguments)

    def assert_on_device(self, device: str, *ops: str, **arguments: Any) -> None:
        """Fails as the marker ``on_device`` would.

        Raises:
            PlacementError: something that counts is elsewhere, or nothing was seen.
        """
        __tracebackhide__ = True
        from pytest_tfdevice.reports.text import failure

        verdict = self.verdict(device, *ops, **arguments)
        if not verdict.passed:
            raise PlacementError(failure(verdict, self))

    def _kernels(self) -> Any:
        if not self.tensorflow:
            return None
        from pytest_tfdevice.kernels.current import gpu_kernels

        return gpu_kernels()

    def __str__(self) -> str:
        from pytest_tfdevice.limits import idle_sentence
        from pytest_tfdevice.reports.resources import summary
        from pytest_tfdevice.reports.text import table

        idle = idle_sentence(self, [self.verdict("GPU")]) if self.memory else None
        return "\n".join([table(self), *summary(self, idle)])

    def _repr_html_(self) -> str:
        from pytest_tfdevice.reports.notebook import html

        return html(self)


class Watch:
    """What ``with watch() as w`` gives: the record, once the block has ended."""

    def __init__(self) -> None:
        self._record: WatchedRecord | None = None

    @property
    def record(self) -> WatchedRecord:
        """What was seen.

        Raises:
            RuntimeError: the block has not ended yet.
        """
        if self._record is None:
            raise RuntimeError("still watching: the record is complete when the with block ends")
        return self._record

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "_repr_html_":
            raise AttributeError(name)
        return getattr(self.record, name)

    def __str__(self) -> str:
        return str(self._record) if self._record is not None else "<still watching>"

    def __len__(self) -> int:
        return len(self.record)

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.record)


@contextlib.contextmanager
def watch(on: str = "GPU") -> Iterator[Watch]:
    """Watches what the calling thread runs on TensorFlow inside the ``with`` block.

    The value is the record once the block has ended: ``record.verdict(on="GPU")`` judges it,
    ``print(record)`` shows it.  ``on`` is the device that is meant: where the ops that are
    elsewhere come from is looked up while watching.

    Raises:
        DeviceError: ``on`` is no device.
        ImportError: TensorFlow isn't installed.
    """
    from pytest_tfdevice.capture.window import Window

    handle = Watch()
    window = Window(DeviceSpec.parse(on))
    window.open()
    try:
        yield handle
    finally:
        handle._record = WatchedRecord.of(window.close())


def _some(placements: Iterable[Placement]) -> str:
    names = list(dict.fromkeys(p.op for p in placements))
    return ", ".join(names[:8]) + (", …" if len(names) > 8 else "") if names else "no ops at all"
