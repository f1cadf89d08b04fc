"""A ``tf.compat.v1.Session`` that knows where its ops were placed, from its own placement log."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from types import TracebackType
from typing import Any, Protocol

from pytest_tfdevice.capture.fraction import fraction_notes
from pytest_tfdevice.capture.session_log import SessionLog
from pytest_tfdevice.capture.session_openings import OPENINGS
from pytest_tfdevice.devices import gpu_memory
from pytest_tfdevice.model import Device, DeviceInfo, Placement


class LoggingSession(Protocol):
    """A ``tf.compat.v1.Session``, with what its log and its devices tell.

    Only what is added is declared here; the rest is the Session's own interface.
    """

    log: SessionLog
    devices: tuple[DeviceInfo, ...]
    memory_fraction_asked: float | None

    @property
    def placements(self) -> tuple[Placement, ...]: ...
    @property
    def devices_by_op(self) -> dict[str, Device]: ...
    @property
    def text(self) -> str: ...
    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def memory_limit(self) -> Mapping[str, int]: ...
    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any: ...
    def close(self) -> None: ...
    def __enter__(self) -> LoggingSession: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


def open_logging_session(
    graph: Any = None,
    target: str = "",
    memory_fraction: float | None = None,
    allow_soft_placement: bool | None = None,
    config: Any = None,
    log_device_placement: bool = True,
    *,
    total_memory: Mapping[str, int] | None = None,
) -> LoggingSession:
    """Opens a ``tf.compat.v1.Session`` that reads its own placement log.

    Args:
        graph: the graph to run; the default graph where None.
        target: as for a Session.
        memory_fraction: ``per_process_gpu_memory_fraction``.  It acts only on the first
            initialisation of a GPU in the process; ``notes`` says where it isn't in force.
        allow_soft_placement: None for what ``config`` says, True where there is no config.
        config: a ``ConfigProto`` to start from; it isn't changed.
        log_device_placement: False opens a Session of which nothing can be told.
        total_memory: bytes of each GPU ("GPU:0"), to tell the fraction that is in force;
            found out where None.

    Use it as a Session, in a ``with`` block or with ``close()``.  What it adds:

    - ``placements``, ``devices_by_op``, ``text``, ``problems``: see SessionLog;
    - ``devices``: of the process, with the memory limit in force; ``memory_limit``: of each GPU,
      bytes by canonical name; ``memory_fraction_asked``; ``notes``: remarks on the fraction.

    Raises:
        ValueError: ``memory_fraction`` isn't above 0.
    """
    if memory_fraction is not None and not (memory_fraction > 0 and math.isfinite(memory_fraction)):
        raise ValueError(f"memory_fraction is a number above 0, not {memory_fraction!r}")
    import tensorflow as tf

    proto = tf.compat.v1.ConfigProto()
    if config is not None:
        proto.CopyFrom(config)
    if allow_soft_placement is not None or config is None:
        proto.allow_soft_placement = allow_soft_placement is not False
    proto.log_device_placement = log_device_placement
    if memory_fraction is not None:
        proto.gpu_options.per_process_gpu_memory_fraction = memory_fraction
    if total_memory is None:
        total_memory = gpu_memory() if memory_fraction is not None else {}
    made: LoggingSession = _session_class()(target, graph, proto, total_memory)
    return made


@functools.cache
def _session_class() -> Any:
    import tensorflow as tf

    return type("LoggingSession", (_LoggingMixin, tf.compat.v1.Session), {"__doc__": __doc__})


class _LoggingMixin:
    """What a LoggingSession does beyond a Session; stands before it in the class' bases."""

    def __init__(
        self, target: str, graph: Any, config: Any, total_memory: Mapping[str, int]
    ) -> None:
        with OPENINGS.noticed() as openings:
            super().__init__(target, graph, config)  # type: ignore[call-arg]
        session: Any = self
        run_graph = session.graph
        self.log = SessionLog(
            lambda: int(run_graph.version),
            lambda: {op.name for op in run_graph.get_operations()},
            whole_graph=not config.graph_options.place_pruned_graph,
            remote=target,
        )
        asked = config.gpu_options.per_process_gpu_memory_fraction
        self.memory_fraction_asked: float | None = asked or None
        self.devices = tuple(_device_info(found) for found in session.list_devices())
        self._notes = fraction_notes(
            self.memory_fraction_asked,
            self.memory_limit,
            total_memory,
            set_by=OPENINGS.set_by(next(iter(openings), None)),
        )

    @property
    def placements(self) -> tuple[Placement, ...]:
        return self.log.placements

    @property
    def devices_by_op(self) -> dict[str, Device]:
        return self.log.devices_by_op

    @property
    def text(self) -> str:
        return self.log.text

    @property
    def problems(self) -> tuple[str, ...]:
        return self.log.problems

    @property
    def notes(self) -> tuple[str, ...]:
        return self._notes

    @property
    def memory_limit(self) -> Mapping[str, int]:
        return {
            info.device.canonical: info.memory
            for info in self.devices
            if info.device.type == "GPU" and info.memory is not None
        }

    def run(
        self,
        fetches: Any,
        feed_dict: Any = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        base: Any = super()
        with self.log.run(_signature(fetches, feed_dict)):
            return base.run(fetches, feed_dict, options, run_metadata)

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        base: Any = super()
        with self.log.prepare():
            return base.partial_run_setup(fetches, feeds)

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        base: Any = super()
        with self.log.run(_signature(fetches, feed_dict, handle), extends=False):
            return base.partial_run(handle, fetches, feed_dict)

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        base: Any = super()
        with self.log.prepare():
            function = base.make_callable(fetches, feed_list, accept_options)
        signature = object()  # each callable is one of its own

        @functools.wraps(function)
        def logged(*args: Any, **kwargs: Any) -> Any:
            with self.log.run(signature, extends=False):
                return function(*args, **kwargs)

        return logged


def _signature(fetches: Any, feed_dict: Any, kind: Hashable = "run") -> Hashable | None:
    """A key that is the same for runs that need the same part of the graph; None for none such."""
    import tensorflow as tf

    try:
        fetched = tuple(_name(fetch) for fetch in tf.nest.flatten(fetches, expand_composites=True))
        fed = frozenset(_name(feed) for feed in (feed_dict or {}))
    except (TypeError, ValueError, AttributeError):
        return None
    return (kind, fetched, fed)


def _name(element: Any) -> str:
    return element if isinstance(element, str) else str(element.name)


def _device_info(found: Any) -> DeviceInfo:
    return DeviceInfo(Device.parse(found.name), memory=int(found.memory_limit_bytes))
