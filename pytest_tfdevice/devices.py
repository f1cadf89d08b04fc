"""What TensorFlow has to run on, found without taking GPU memory, and why there is no GPU.

Only ``tf.config.list_physical_devices`` and its like are asked.  ``device_lib.list_local_devices``,
``tf.test.is_gpu_available`` and ``tf.test.gpu_device_name`` would initialise the GPUs and reserve
their memory.
"""

from __future__ import annotations

import importlib.util
import platform
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pytest_tfdevice import versions
from pytest_tfdevice.model import Device, DeviceInfo
from pytest_tfdevice.no_gpu import (
    Build,
    Cause,
    Machine,
    causes_of_no_gpu,
    gpu_total_memory,
    needed_libraries,
)
from pytest_tfdevice.simulator import SimulatorError, loaded
from pytest_tfdevice.units import format_size

WIDTH = 100
"""Columns of ``describe``."""


@dataclass(frozen=True)
class DeviceReport:
    """What TensorFlow has.

    Attributes:
        build: the installed TensorFlow; None where there is none, or it can't be imported.
        devices: those visible to TensorFlow, CPUs included, named as it will name them.
        causes: why there is no GPU, in the order to mend them; empty where there is one.
        visible: CUDA_VISIBLE_DEVICES, None where unset.
    """

    build: Build | None
    devices: tuple[DeviceInfo, ...] = ()
    causes: tuple[Cause, ...] = ()
    visible: str | None = None

    @property
    def tensorflow(self) -> str:
        """Version, empty where TensorFlow can't be imported."""
        return self.build.tensorflow if self.build else ""

    @property
    def gpus(self) -> tuple[DeviceInfo, ...]:
        return tuple(info for info in self.devices if info.device.type == "GPU")

    @property
    def count(self) -> int:
        """How many GPUs."""
        return len(self.gpus)

    @property
    def kind(self) -> Literal["real", "simulated", "none"]:
        """Of the GPUs."""
        if not self.gpus:
            return "none"
        return "simulated" if any(info.simulated for info in self.gpus) else "real"

    @property
    def cause(self) -> Cause | None:
        """The first cause to mend; None where there is a GPU."""
        return self.causes[0] if self.causes else None

    @property
    def is_supported(self) -> bool:
        """The TensorFlow version is one that pytest-tfdevice is tested on."""
        return versions.is_supported(self.tensorflow)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the reader should know beside the GPUs."""
        if self.build and not self.is_supported:
            return (
                f"TensorFlow {self.tensorflow} is outside the supported range "
                f"{versions.supported_range()}: what it says may be misread",
            )
        return ()

    def skip_reason(
        self,
        count: int = 1,
        memory: int | None = None,
        compute_capability: tuple[int, int] | None = None,
    ) -> str | None:
        """Why a test that needs these GPUs can't run here; None where it can.

        Args:
            count: GPUs needed, each with at least the following.
            memory: bytes.
            compute_capability: at least this, ``(8, 0)``.
        """
        if self.count < count:
            why = f": {self.cause}" if self.cause else ""
            if self.count and self.visible is not None:
                why = f" (CUDA_VISIBLE_DEVICES={self.visible!r})"
            return f"needs {_gpus(count)}, this process has {self.count or 'none'}{why}"
        faults = [_fault(info, memory, compute_capability) for info in self.gpus]
        if faults.count(None) >= count:
            return None
        return f"needs {_gpus(count)} {_wanted(memory, compute_capability)}: " + "; ".join(
            fault for fault in faults if fault
        )

    def describe(self) -> str:
        """For ``pytest-tfdevice devices``: the conclusion, how to mend it, and what is here."""
        lines = [self._conclusion()]
        for cause in self.causes[1:]:
            lines.append(f"Then: {cause.what}.")
        if self.causes:
            lines += ["", "To mend it:", *(f"  {cause.remedy}" for cause in self.causes)]
        lines += ["", *self._facts(), *(f"Note: {remark}." for remark in self.remarks)]
        return "\n".join(_wrap(line) for line in lines)

    def _conclusion(self) -> str:
        if self.kind == "none":
            return f"No GPU: {self.cause}."
        what = "simulated GPU" if self.kind == "simulated" else "GPU"
        return f"{self.count} {what}{'s' if self.count > 1 else ''} ready for TensorFlow."

    def _facts(self) -> list[str]:
        build = self.build
        if build is None:
            return [f"Python      {platform.python_version()}, no TensorFlow"]
        kind = "without GPU support"
        if build.is_cuda:
            kind = f"for CUDA {build.cuda or '?'}, cuDNN {build.cudnn or '?'}"
        elif build.is_rocm:
            kind = "for ROCm"
        lines = [
            f"TensorFlow  {build.tensorflow}, built {kind}; Python {platform.python_version()}"
        ]
        lines += [f"Device      {_describe_device(info)}" for info in self.devices]
        if build.is_cuda:
            shown = "not set" if self.visible is None else repr(self.visible)
            lines.append(f"CUDA_VISIBLE_DEVICES  {shown}")
            libraries = ", ".join(needed_libraries(build)) or "not known for this CUDA version"
            lines.append(f"Libraries that a GPU needs: {libraries}")
        return lines


def find_devices(machine: Machine | None = None) -> DeviceReport:
    """Asks TensorFlow, which it imports, for its devices; nothing is initialised.

    TensorFlow keeps the list that it answers first: load the simulated GPU before.

    Raises:
        SimulatorError: a simulated GPU was to be loaded with TensorFlow, and can't be had.
    """
    machine = machine or Machine()
    visible = machine.environ.get("CUDA_VISIBLE_DEVICES")
    if importlib.util.find_spec("tensorflow") is None:
        return DeviceReport(None, causes=causes_of_no_gpu(None, machine), visible=visible)
    try:
        import tensorflow as tf

        build = Build.from_info(tf.__version__, tf.sysconfig.get_build_info())
    except SimulatorError:
        raise
    except Exception as error:  # a broken installation raises whatever it likes
        text = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        causes = causes_of_no_gpu(None, machine, import_error=text.rstrip(": "))
        return DeviceReport(None, causes=causes, visible=visible)
    devices = tuple(_visible_devices(tf))
    causes = ()
    if not any(info.device.type == "GPU" for info in devices):
        physical = len(tf.config.list_physical_devices("GPU"))
        causes = causes_of_no_gpu(build, machine, physical=physical)
    return DeviceReport(build, devices, causes, visible)


def _visible_devices(tf: Any) -> list[DeviceInfo]:
    """In TensorFlow's order; a physical device split into logical ones gives one for each."""
    physical_gpus = tf.config.list_physical_devices("GPU")
    simulated = _simulated_memory()
    totals = [simulated] * len(physical_gpus) if simulated else gpu_total_memory()
    found: list[DeviceInfo] = []
    counts: dict[str, int] = {}
    for physical in tf.config.get_visible_devices():
        kind = physical.device_type
        memory = _total(totals, physical_gpus, physical) if kind == "GPU" else None
        name, capability = _details(tf, physical) if kind == "GPU" and not simulated else ("", None)
        for limit in _limits(tf, physical):
            index = counts.setdefault(kind, 0)
            counts[kind] += 1
            found.append(
                DeviceInfo(
                    Device("localhost", 0, 0, kind, index),
                    description=name,
                    memory=limit or memory,
                    compute_capability=capability,
                    simulated=kind == "GPU" and bool(simulated),
                    is_logical=kind == "GPU" and limit is not None,
                    growth=_growth(tf, physical) if kind == "GPU" else None,
                )
            )
    return found


def visible_devices() -> tuple[DeviceInfo, ...]:
    """The devices that TensorFlow, which is imported, has or will have; none is initialised."""
    import tensorflow as tf

    return tuple(_visible_devices(tf))


def gpu_memory() -> dict[str, int]:
    """Bytes that each GPU has, by short name ("GPU:0"), where known; imports TensorFlow."""
    import tensorflow as tf

    return {
        info.device.short: info.memory
        for info in _visible_devices(tf)
        if info.device.type == "GPU" and info.memory is not None
    }


def _total(totals: Sequence[int], physical_gpus: list[Any], physical: Any) -> int | None:
    # Where the driver and TensorFlow don't list the same GPUs, their order says nothing.
    if len(totals) != len(physical_gpus):
        return None
    return totals[physical_gpus.index(physical)]


def _limits(tf: Any, physical: Any) -> list[int | None]:
    """Memory limit in bytes of each logical device that is configured; ``[None]`` without one."""
    configured = tf.config.get_logical_device_configuration(physical)
    if not configured:
        return [None]
    return [c.memory_limit * 2**20 if c.memory_limit else None for c in configured]


def _growth(tf: Any, physical: Any) -> bool | None:
    try:
        growth: bool | None = tf.config.experimental.get_memory_growth(physical)
    except ValueError:  # it isn't one of TensorFlow's list any more
        return None
    return growth


def _details(tf: Any, physical: Any) -> tuple[str, tuple[int, int] | None]:
    details = tf.config.experimental.get_device_details(physical)
    return str(details.get("device_name", "")), details.get("compute_capability")


def _simulated_memory() -> int:
    """Bytes of each simulated GPU; 0 where the GPUs aren't simulated."""
    simulation = loaded()
    return simulation.memory if simulation is not None else 0


def _fault(
    info: DeviceInfo, memory: int | None, compute_capability: tuple[int, int] | None
) -> str | None:
    name = info.device.short
    if memory is not None:
        if info.memory is None:
            return f"how much {name} has isn't known"
        if info.memory < memory:
            return f"{name} has {format_size(info.memory)}"
    if compute_capability is not None:
        have = info.compute_capability
        if have is None:
            what = "is simulated and has none" if info.simulated else "doesn't tell its own"
            return f"{name} {what}"
        if have < compute_capability:
            return f"{name} has {have[0]}.{have[1]}"
    return None


def _wanted(memory: int | None, compute_capability: tuple[int, int] | None) -> str:
    parts = []
    if memory is not None:
        parts.append(f"{format_size(memory)} of memory")
    if compute_capability is not None:
        parts.append("compute capability {}.{}".format(*compute_capability))
    return "with " + " and ".join(parts)


def _describe_device(info: DeviceInfo) -> str:
    parts = [info.device.short]
    if info.simulated:
        parts.append("simulated")
    if info.description:
        parts.append(info.description)
    if info.memory is not None:
        parts.append(format_size(info.memory))
    if info.is_logical:
        parts.append("a logical device's limit")
    if info.growth:
        parts.append("memory grows as needed")
    if info.compute_capability is not None:
        parts.append("compute capability {}.{}".format(*info.compute_capability))
    return ", ".join(parts)


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"


def _wrap(line: str) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
