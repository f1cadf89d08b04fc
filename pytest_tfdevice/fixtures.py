"""The fixtures ``placement``, ``placement_session``, ``placement_baseline`` and ``tf_devices``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_tfdevice.capture.logging_session import LoggingSession
    from pytest_tfdevice.devices import DeviceReport
    from pytest_tfdevice.gate.hooks import Gate
    from pytest_tfdevice.model import Record
    from pytest_tfdevice.watching import Watch, WatchedRecord


GATE: pytest.StashKey[Gate] = pytest.StashKey()


class PlacementFixture:
    """What the fixture ``placement`` gives."""

    @staticmethod
    def capture(on: str = "GPU") -> contextlib.AbstractContextManager[Watch]:
        """Watches a part of the test: ``with placement.capture() as record: …``.

        ``on`` is the device that is meant.  Inside the block the record isn't there yet.
        """
        from pytest_tfdevice.watching import watch

        return watch(on)

    @staticmethod
    def parse(text: str | bytes) -> WatchedRecord:
        """The record of a placement log, of any TensorFlow: of a program run as a subprocess."""
        from pytest_tfdevice.model import Record
        from pytest_tfdevice.placement_log import parse
        from pytest_tfdevice.watching import WatchedRecord

        found = tuple(parse(text))
        problems = () if found else ("the log holds no placement",)
        return WatchedRecord.of(Record(placements=found, problems=problems))


class SessionFactory:
    """What the fixture ``placement_session`` gives: call it to open a logging session."""

    def __init__(self) -> None:
        self._open: list[LoggingSession] = []

    def __call__(
        self,
        graph: Any = None,
        target: str = "",
        memory_fraction: float | None = None,
        allow_soft_placement: bool = True,
        log_device_placement: bool = True,
        config: Any = None,
    ) -> LoggingSession:
        """A ``tf.compat.v1.Session`` whose ``placements`` is the parsed map of what it logged.

        Use it in a ``with`` statement or as it is; it is closed when the test ends.

        Args:
            graph: the graph to run, the default graph where it is None.
            target: as of ``Session``, for a remote one.
            memory_fraction: ``per_process_gpu_memory_fraction``, of the GPU's memory.
            allow_soft_placement, log_device_placement: as of ``ConfigProto``.
            config: a ``ConfigProto`` to begin with.
        """
        from pytest_tfdevice.capture.logging_session import open_logging_session

        session = open_logging_session(
            graph=graph,
            target=target,
            memory_fraction=memory_fraction,
            allow_soft_placement=allow_soft_placement,
            log_device_placement=log_device_placement,
            config=config,
        )
        self._open.append(session)
        return session

    def close(self) -> None:
        """Closes what was opened, the latest first."""
        while self._open:
            self._open.pop().close()


class BaselineFixture:
    """What the fixture ``placement_baseline`` gives."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def check(self, record: Record | Watch, name: str | None = None, on: str = "GPU") -> None:
        """Compares a record with the baseline of this test, and fails where an operation that
        counts left its device.

        Skips where TensorFlow has no GPU, which ``on`` asks for.

        Args:
            record: of ``placement.capture()``, or any other.
            name: tells several checks of one test apart.
            on: the device that is meant.
        """
        __tracebackhide__ = True
        from pytest_tfdevice.model import Record

        found = record if isinstance(record, Record) else record.record
        has_gpu = any(info.device.type == "GPU" for info in found.devices)
        if found.tensorflow and not has_gpu and "GPU" in on.upper():
            pytest.skip("needs a GPU to compare placements with a baseline, this process has none")
        self._item.config.stash[GATE].check(self._item, found, name, on)


@pytest.fixture
def placement_baseline(request: pytest.FixtureRequest) -> BaselineFixture:
    """placement_baseline.check(record, name=None) compares a record with the test's baseline."""
    return BaselineFixture(request.node)


@pytest.fixture
def placement() -> PlacementFixture:
    """placement.capture() watches a part of a test; placement.parse(text) reads a placement log."""
    return PlacementFixture()


@pytest.fixture
def placement_session() -> Iterator[SessionFactory]:
    """placement_session(graph=…, memory_fraction=…) opens a logging tf.compat.v1.Session."""
    factory = SessionFactory()
    try:
        yield factory
    finally:
        factory.close()


@pytest.fixture(scope="session")
def tf_devices() -> DeviceReport:
    """What TensorFlow has, found without taking GPU memory, and why there is no GPU."""
    from pytest_tfdevice.devices import find_devices

    return find_devices()
