"""What the driver says of the GPUs (NVML), where ``nvidia-ml-py`` is installed: extra ``nvml``.

TensorFlow's allocator knows what tensors take; the driver knows what the process took from the GPU:
what was reserved, and the CUDA context and libraries, which no TensorFlow limit covers.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class NvmlUnknown(RuntimeError):
    """The driver can't be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Of one GPU.

    Attributes:
        process: bytes that this process holds; None where the driver doesn't tell (in a container).
        utilisation: share, 0 to 1, of the last sampling period in which the GPU was busy; None
            where it isn't told.
    """

    process: int | None
    utilisation: float | None


def readings(count: int) -> dict[int, Reading]:
    """By number of the ``count`` GPUs that TensorFlow has; empty where they can't be asked."""
    if not count:
        return {}
    try:
        return ask(os.environ)
    except NvmlUnknown:
        return {}


def why_unknown() -> str | None:
    """Why the driver can't be asked, for reports; None where it can, or NVML isn't installed."""
    try:
        ask(os.environ)
    except NvmlUnknown as error:
        return None if "not installed" in str(error) else str(error)
    return None


def ask(environ: Mapping[str, str]) -> dict[int, Reading]:
    """By TensorFlow's number of each GPU.

    Raises:
        NvmlUnknown: NVML isn't installed, there is no driver, or its GPUs can't be told apart.
    """
    try:
        import pynvml
    except ImportError:
        raise NvmlUnknown("nvidia-ml-py is not installed (extra nvml)") from None
    with _started(pynvml):
        found = {}
        for number, handle in enumerate(_visible(pynvml, environ)):
            found[number] = Reading(_process(pynvml, handle), _utilisation(pynvml, handle))
        return found


@contextlib.contextmanager
def _started(pynvml: Any) -> Iterator[None]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlUnknown(
            f"true GPU memory and utilisation are not known: the driver can't be asked ({error})"
        ) from None
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _visible(pynvml: Any, environ: Mapping[str, str]) -> Iterator[Any]:
    """Handles in CUDA's order, as far as ``CUDA_VISIBLE_DEVICES`` names them.

    NVML orders by PCI bus, CUDA by speed unless CUDA_DEVICE_ORDER says otherwise.
    """
    count = pynvml.nvmlDeviceGetCount()
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    names = [n.strip() for n in visible.split(",")] if visible else []
    by_number = names if names else [str(n) for n in range(count)]
    by_uuid = bool(names) and all(name.startswith("GPU-") for name in names)
    in_order = by_uuid or count < 2 or environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    if not in_order and _mixed(pynvml, count):
        raise NvmlUnknown(
            "true GPU memory and utilisation are not known: GPUs of several models, which CUDA "
            "orders otherwise than the driver; set CUDA_DEVICE_ORDER=PCI_BUS_ID"
        )
    for name in by_number:
        if name.isdigit() and int(name) < count:
            yield pynvml.nvmlDeviceGetHandleByIndex(int(name))
        elif name.startswith("GPU-"):
            yield pynvml.nvmlDeviceGetHandleByUUID(name)
        else:
            return  # CUDA, too, ends its list at the first name that it doesn't know


def _mixed(pynvml: Any, count: int) -> bool:
    handles = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(count)]
    return len({str(pynvml.nvmlDeviceGetName(handle)) for handle in handles}) > 1


def _process(pynvml: Any, handle: Any) -> int | None:
    try:
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        return None
    mine = [p.usedGpuMemory for p in running if p.pid == os.getpid()]
    return mine[0] if mine and mine[0] is not None else None


def _utilisation(pynvml: Any, handle: Any) -> float | None:
    try:
        return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
    except pynvml.NVMLError:
        return None
