"""``StepStats`` of a Session's run → how long ops took on each device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pytest_tfdevice.model import Device, DeviceInfo
from pytest_tfdevice.op_times import OpTime

_KERNELS = "/stream:all"
"""What a device's name goes on with where a hardware trace timed the kernels themselves
(``tensorflow/python/client/timeline.py``)."""


class StepTimes:
    """Adds up what several runs took."""

    def __init__(self) -> None:
        self._ops: defaultdict[str, int] = defaultdict(int)
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def add(self, step_stats: Any) -> None:
        """A run's; nodes of the executor's own (``_SOURCE``, ``_retval_…``) don't count."""
        for found in step_stats.dev_stats:
            nodes = [node for node in found.node_stats if not node.node_name.startswith("_")]
            if nodes:
                self._ops[found.device] += len(nodes)
                self._seconds[found.device] += sum(map(_seconds, nodes))

    def found(self, devices: Iterable[DeviceInfo]) -> tuple[OpTime, ...]:
        """By device; ``devices`` tell which GPUs are simulated.

        The executor times an op until it returns. On the CPU, and on a simulated GPU, its work is
        done then; on a real GPU it has been handed over, and only a hardware trace knows.
        """
        simulated = {info.device for info in devices if info.simulated}
        times = []
        for name, ops in self._ops.items():
            if "/stream:" in name or "/memcpy" in name:
                continue
            device = Device.parse(name)
            seconds: float | None = self._seconds[name]
            if device.type != "CPU" and device not in simulated:
                seconds = self._kernel_seconds(device)
            times.append(OpTime(device, ops, seconds))
        return tuple(sorted(times, key=lambda time: time.device))

    def _kernel_seconds(self, device: Device) -> float | None:
        ending = f"{device.type}:{device.index}{_KERNELS}".lower()
        for name, seconds in self._seconds.items():
            if name.lower().endswith(ending):
                return seconds
        return None


def _seconds(node: Any) -> float:
    """What an op's ``Compute`` took."""
    nanoseconds = node.op_end_rel_nanos - node.op_start_rel_nanos
    return float(nanoseconds or 1000 * (node.op_end_rel_micros - node.op_start_rel_micros)) / 1e9
