"""The memory of this process's GPUs, from one moment to another → ``GpuMemory``.

TensorFlow's devices are never initialised from here: without an eager context they are asked only
where a v1 Session has made them already, through a context that is made for the question.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Callable
from typing import Any

from pytest_tfdevice.capture import fraction, nvml, private, private_memory
from pytest_tfdevice.capture.session_openings import OPENINGS, Opening
from pytest_tfdevice.devices import visible_devices
from pytest_tfdevice.memory import GpuMemory
from pytest_tfdevice.model import Device, DeviceInfo

Stats = dict[Device, tuple[int, int]]
"""Bytes in use and the peak since the last reset, of each GPU."""


class MemoryMeter:
    """Measures from :meth:`start` to :meth:`close`; meters may overlap."""

    def __init__(self) -> None:
        self._before: dict[Device, int] = {}
        self._peaks: dict[Device, int] = {}
        self._openings: list[Opening] = []
        self._limits: dict[str, int] = {}

    def start(self) -> None:
        """Notes what is held, and begins a new peak."""
        stats = read(reset=_absorb)
        OPENINGS.listen(self._on_session)
        self._before = {device: current for device, (current, _) in stats.items()}
        self._peaks = {}
        _OPEN.append(self)
        _guard_resets()

    def measure(self) -> tuple[GpuMemory, ...]:
        """What was held, until now."""
        stats = read()
        infos = {info.device: info for info in visible_devices()}
        limits = self._limits_in_force()
        readings = nvml.readings(len(stats)) if not any(i.simulated for i in infos.values()) else {}
        found = []
        for device, (current, peak) in stats.items():
            self._absorb(device, peak)
            info = infos.get(device, DeviceInfo(device))
            reading = readings.get(device.index)
            found.append(
                GpuMemory(
                    device=device,
                    before=self._before.get(device, 0),
                    peak=self._peaks[device],
                    after=current,
                    limit=limits.get(device.canonical),
                    total=info.memory,
                    is_logical=info.is_logical,
                    growth=_growth(info),
                    process=reading.process if reading else None,
                    utilisation=reading.utilisation if reading else None,
                )
            )
        return tuple(found)

    def with_leftovers(self, found: tuple[GpuMemory, ...]) -> tuple[GpuMemory, ...]:
        """The same with what is held after a garbage collection."""
        gc.collect()
        stats = read()
        return tuple(
            dataclasses.replace(m, left=stats[m.device][0]) if m.device in stats else m
            for m in found
        )

    def close(self) -> None:
        """Ends the watch."""
        OPENINGS.unlisten(self._on_session)
        _OPEN.remove(self)
        if not _OPEN:
            private.eager_context().__dict__.pop("reset_memory_stats", None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Memory fractions that were asked for while this was watched, and aren't in force."""
        totals = {i.device.short: i.memory for i in visible_devices() if i.memory is not None}
        found: dict[str, None] = {}
        simulated = any(info.simulated for info in visible_devices())
        unknown = nvml.why_unknown() if totals and not simulated else None
        if unknown is not None:
            found[unknown] = None
        for opening in self._openings:
            for note in fraction.fraction_notes(
                opening.fraction, opening.limits, totals, set_by=OPENINGS.set_by(opening)
            ):
                found[f"{note} (Session opened at {opening.line})" if opening.line else note] = None
        return tuple(found)

    def _on_session(self, opening: Opening) -> None:
        self._openings.append(opening)
        self._limits.update(opening.limits)

    def _absorb(self, device: Device, peak: int) -> None:
        self._peaks[device] = max(self._peaks.get(device, 0), peak)

    def _limits_in_force(self) -> dict[str, int]:
        if private.eager_context_exists():
            return private_memory.device_memory_limits(private_memory.context_handle())
        return self._limits


_OPEN: list[MemoryMeter] = []


def _absorb(stats: Stats) -> None:
    """Called before peaks are forgotten."""
    for meter in _OPEN:
        for device, (_, peak) in stats.items():
            meter._absorb(device, peak)


def _guard_resets() -> None:
    """Has the user's own ``reset_memory_stats`` absorbed while meters are open."""
    context = private.eager_context()

    def reset_memory_stats(name: str) -> None:
        if private.context_is_initialized(context):
            _absorb(read())
        type(context).reset_memory_stats(context, name)

    context.reset_memory_stats = reset_memory_stats


def read(reset: Callable[[Stats], None] | None = None) -> Stats:
    """The GPUs' allocators now; empty where nothing has initialised them.

    With ``reset``, which gets what was read, a new peak begins.
    """
    with _context() as handle:
        if handle is None:
            return {}
        stats: Stats = {}
        for name in private_memory.device_memory_limits(handle):
            device = Device.parse(name)
            if device.type == "GPU" and device.job == "localhost":
                stats[device] = private_memory.memory_info(handle, name)
        if reset is not None:
            reset(stats)
            for device in stats:
                private_memory.reset_memory_stats(handle, device.canonical)
        return stats


@contextlib.contextmanager
def _context() -> Any:
    """A handle to ask for memory: the eager context's, or one for GPUs that a v1 Session made."""
    if private.eager_context_exists():
        yield private_memory.context_handle()
        return
    config = OPENINGS.config_of_earlier()
    yield None if config is None else private_memory.new_context(config)


def _growth(info: DeviceInfo) -> bool | None:
    """Whether memory is reserved as it is needed, as the first initialisation had it."""
    if OPENINGS.first is not None and info.device.canonical in OPENINGS.first.limits:
        return private_memory.growth(OPENINGS.first.growth)
    return private_memory.growth(bool(info.growth))
