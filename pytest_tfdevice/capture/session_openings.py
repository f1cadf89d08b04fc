"""v1 Sessions as they are opened: with which memory fraction, and which limit they got.

``per_process_gpu_memory_fraction`` and memory growth act only on the first initialisation of a GPU
in a process.  So what was asked for first is kept for the life of the process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from pytest_tfdevice.capture import private, stack
from pytest_tfdevice.model import Device, SourceLine


@dataclasses.dataclass(frozen=True)
class Opening:
    """A v1 Session that was opened.

    Attributes:
        config: its ``ConfigProto``, a copy; an empty one where it had none.
        limits: bytes in force, by canonical name of each GPU.
        line: the user's line that opened it.
    """

    config: Any
    limits: dict[str, int]
    line: SourceLine | None

    @property
    def fraction(self) -> float | None:
        """What it asked for; None where it left it to TensorFlow."""
        return self.config.gpu_options.per_process_gpu_memory_fraction or None

    @property
    def growth(self) -> bool:
        return bool(self.config.gpu_options.allow_growth)


_UNWATCHED = "what came first and was not watched: TensorFlow's eager runtime, or another Session"


class SessionOpenings:
    """Tells listeners of each Session that is opened, while there are any."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._listeners: list[Callable[[Opening], None]] = []
        self._original: Any = None
        self.first: Opening | None = None
        """The first Session with GPUs that was seen, where nothing had initialised them before."""
        self._before = ""
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def listen(self, listener: Callable[[Opening], None]) -> None:
        """Begins to tell ``listener``."""
        with self._lock:
            self._listeners.append(listener)
            if self._original is None:
                self._install()

    def unlisten(self, listener: Callable[[Opening], None]) -> None:
        """Ends it, and gives the class its own method back with the last one."""
        with self._lock:
            self._listeners.remove(listener)
            if not self._listeners:
                private.session_class().__init__ = self._original
                self._original = None

    @contextlib.contextmanager
    def noticed(self) -> Iterator[list[Opening]]:
        """The Sessions that are opened inside, once it has ended."""
        found: list[Opening] = []
        listener = found.append
        self.listen(listener)
        try:
            yield found
        finally:
            self.unlisten(listener)

    def _install(self) -> None:
        owner = private.session_class()
        original = self._original = owner.__dict__["__init__"]
        openings = self

        def __init__(session: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
            fresh = not private.eager_context_exists()
            original(session, target, graph, config)
            openings._opened(session, config, fresh)

        owner.__init__ = __init__

    def _opened(self, session: Any, config: Any, fresh: bool) -> None:
        line = stack.user_line(stack.live_frames(sys._getframe(2)))
        opening = Opening(_copy(config), gpu_limits(session), line)
        with self._lock:
            self._known.add(session)
            if self.first is None and opening.limits:
                if fresh and not self._before:
                    self.first = opening
                elif not fresh:
                    self._before = _UNWATCHED
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener(opening)

    def set_by(self, opening: Opening | None) -> str:
        """What initialised the process's GPUs, for a note on what ``opening`` asked for in vain."""
        if self.first is None or self.first is opening:
            return self._before or _UNWATCHED
        asked = self.first.fraction
        what = "no fraction" if asked is None else f"{asked:g}"
        at = f" at {self.first.line}" if self.first.line else ""
        return f"the first Session{at}, which asked for {what}"

    def config_of_earlier(self) -> Any:
        """The ``ConfigProto`` of a Session that has initialised the GPUs; None where none is known.

        One that was opened while nobody listened is found if it is still alive.
        """
        if self.first is not None:
            return self.first.config
        kind = private.session_class()
        # Not isinstance: it would ask objects for their __class__, and proxies then do things.
        alive = [s for s in gc.get_objects() if issubclass(type(s), kind)]
        for session in alive:
            if session not in self._known and gpu_limits(session):
                self._before = _UNWATCHED
                return _copy(session._config)
        return None


def gpu_limits(session: Any) -> dict[str, int]:
    """Bytes in force on each local GPU of a Session, by canonical name; empty for a closed one."""
    try:
        found = session.list_devices()
    except Exception:  # closed, or a remote master that is gone
        return {}
    return {
        Device.parse(device.name).canonical: int(device.memory_limit_bytes)
        for device in found
        if device.device_type == "GPU" and Device.parse(device.name).job == "localhost"
    }


def _copy(config: Any) -> Any:
    import tensorflow as tf

    proto = tf.compat.v1.ConfigProto()
    if config is not None:
        proto.CopyFrom(config)
    return proto


OPENINGS = SessionOpenings()
"""The one instance: the Session class is the process's, too."""
