"""Loads the compiled library into this process and turns the simulated GPUs on."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_tfdevice import kernels
from pytest_tfdevice.capture import private
from pytest_tfdevice.model import DeviceError, DeviceSpec
from pytest_tfdevice.simulator.build import Progress, TensorFlowInstall, ensure_built
from pytest_tfdevice.simulator.errors import SimulatorError
from pytest_tfdevice.simulator.initialised import who_imported_tensorflow
from pytest_tfdevice.units import SizeError, format_size, parse_size

DEVICE_NAME = "Simulated GPU (host memory)"
"""``device_name`` in ``tf.config.experimental.get_device_details`` of a simulated GPU."""

MACHINES = ("x86_64", "aarch64")


@dataclass(frozen=True, slots=True)
class LoadStats:
    """What loading did.

    Attributes:
        added: kernels registered for the simulated GPUs.
        kept: GPU kernels that were left alone, because their code runs on the host as it is.
        unknown: kernels in the table of which this TensorFlow has no op or dtype.
        skipped: kernels for NCCL, which has only its all-reduce here.
        seconds: how long it took, without importing TensorFlow and compiling.
    """

    added: int
    kept: int
    unknown: int
    skipped: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Simulation:
    """The simulated GPUs of this process.

    Attributes:
        count: how many.
        memory: bytes of each.
        tensorflow: version, ``"2.21.0"``.
        cuda_build: True where TensorFlow is the CUDA-enabled wheel.
        library: the compiled library.
    """

    count: int
    memory: int
    tensorflow: str
    cuda_build: bool
    library: Path
    stats: LoadStats

    def __str__(self) -> str:
        return f"{self.count} simulated GPU{'s' * (self.count > 1)} of {format_size(self.memory)}"


_lock = threading.RLock()
_loaded: Simulation | None = None


def loaded() -> Simulation | None:
    """The simulated GPUs of this process, None where there are none."""
    return _loaded


def is_simulated(device: Any) -> bool:
    """True for a GPU of this process where its GPUs are simulated.

    ``device`` is a name ("GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0",
    "/physical_device:GPU:0"), or a physical or logical device of ``tf.config``.
    """
    if _loaded is None:
        return False
    kind = getattr(device, "device_type", None)
    if kind is None:
        try:
            spec = DeviceSpec.parse(str(device).replace("/physical_device:", "/device:"))
        except DeviceError:
            return False
        return spec.type == "GPU" and spec.job in (None, "localhost")
    return bool(kind == "GPU")


def load(
    count: int = 1,
    memory: str | int = "16 GiB",
    progress: Progress | None = None,
    *,
    hide_real_gpu: bool = False,
) -> Simulation:
    """Gives this process ``count`` simulated GPUs of ``memory`` each.

    To be called before TensorFlow has initialised its devices, best right after (or instead of)
    the first ``import tensorflow``: it imports it.  The first call for a TensorFlow compiles the
    library, upon which ``progress`` gets a line.  The same call again does nothing.

    With ``hide_real_gpu`` real GPUs are hidden from this process (and from those that it starts:
    ``CUDA_VISIBLE_DEVICES`` is set to -1); without it, a real GPU that TensorFlow can see is an
    error.

    Raises:
        SimulatorError: it can't be done; the message says why and what to do.
    """
    size = check_arguments(count, memory)
    with _lock:
        if _loaded is not None:
            _check_same(_loaded, count, size)
            return _loaded
        check_platform()
        install = _import_tensorflow()
        table = _table(install.version)
        if private.eager_context_exists():
            raise SimulatorError(
                "TensorFlow has initialised its devices already, so a simulated GPU can't be added "
                f"to this process any more. {who_imported_tensorflow()} Call "
                "pytest_tfdevice.simulator.load() (or run pytest with --tfdevice-simulate) before "
                "the first op, or the first tf.config.list_logical_devices(), runs."
            )
        return _load(count, size, install, table, progress, hide_real_gpu)


def check_arguments(count: int, memory: str | int) -> int:
    """The memory in bytes.

    Raises:
        SimulatorError: ``count`` isn't 1 or more, or ``memory`` isn't a size of at least 1 MiB.
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise SimulatorError(f"the number of simulated GPUs must be 1 or more, not {count!r}")
    try:
        size = parse_size(memory)
    except SizeError as error:
        raise SimulatorError(f"memory of a simulated GPU: {error}") from error
    if size < 2**20:
        raise SimulatorError(
            f"memory of a simulated GPU: {memory!r} is {format_size(size)}, less than 1 MiB"
        )
    return size


def check_platform() -> None:
    """Raises:
    SimulatorError: there is no simulated GPU for this operating system or processor.
    """
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        raise SimulatorError(
            f"the simulated GPU works on Linux (x86-64 and aarch64), not on {platform.system()} "
            f"{platform.machine()}. Run the tests in a Linux container, or without "
            "--tfdevice-simulate: tests that need a GPU are then skipped."
        )


def _check_same(now: Simulation, count: int, size: int) -> None:
    if (now.count, now.memory) != (count, size):
        raise SimulatorError(
            f"this process has {now} already; the number and the memory can't be changed "
            f"(asked for now: {count} of {format_size(size)}). Start another process."
        )


def _import_tensorflow() -> TensorFlowInstall:
    try:
        return TensorFlowInstall.of_this_process()
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        raise SimulatorError(
            "TensorFlow isn't installed in this environment (pip install tensorflow-cpu)"
        ) from error


def _table(version: str) -> str:
    try:
        return kernels.table_text(version)
    except kernels.NoTableError as error:
        raise SimulatorError(
            f"no simulated GPU for this TensorFlow: {error}. Install one of those, or a newer "
            "pytest-tfdevice."
        ) from error


def _load(
    count: int,
    size: int,
    install: TensorFlowInstall,
    table: str,
    progress: Progress | None,
    hide_real_gpu: bool,
) -> Simulation:
    global _loaded
    library = ensure_built(install, progress).library
    if hide_real_gpu:
        # The simulated GPUs take the place of TensorFlow's own factory, but grappler and XLA ask
        # CUDA on their own.  CUDA reads this when it is initialised, which hasn't happened yet.
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    begin = time.monotonic()
    stats = _call(library, table, count, size, check_real_gpus=not hide_real_gpu)
    private.hide_pluggable_gpus()
    private.reinitialize_physical_devices()
    simulation = Simulation(
        count=count,
        memory=size,
        tensorflow=install.version,
        cuda_build=bool(stats[4]),
        library=library,
        stats=LoadStats(*stats[:4], seconds=time.monotonic() - begin),
    )
    _check_listed(count)
    _loaded = simulation
    return simulation


def _call(
    library: Path, table: str, count: int, size: int, check_real_gpus: bool
) -> tuple[int, int, int, int, int, int]:
    """Calls the library's entry point (see the end of ``native/simulated_gpu.cc``)."""
    try:
        entry = ctypes.CDLL(str(library)).pytest_tfdevice_simulated_gpu_load
    except (OSError, AttributeError) as error:
        raise SimulatorError(
            f"the compiled library doesn't load: {error}. Compile it anew with "
            "'pytest-tfdevice simulator clean' and 'pytest-tfdevice simulator build'."
        ) from error
    entry.argtypes = [
        *(ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int64, ctypes.c_int),
        *(ctypes.POINTER(ctypes.c_int64), ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t),
    ]
    stats = (ctypes.c_int64 * 6)()
    message = ctypes.create_string_buffer(2000)
    data = table.encode()
    failed = entry(
        *(data, len(data), count, size, int(check_real_gpus)),
        *(stats, len(stats), message, len(message)),
    )
    if failed and stats[5]:
        raise SimulatorError(
            f"TensorFlow sees {stats[5]} real GPU(s), and a process can't have real and simulated "
            "ones. Run without the simulated GPU, or hide the real ones: "
            "load(hide_real_gpu=True), or CUDA_VISIBLE_DEVICES=-1 in the environment."
        )
    if failed:
        raise SimulatorError(
            f"the simulated GPU was not loaded: {message.value.decode(errors='replace')}"
        )
    return (stats[0], stats[1], stats[2], stats[3], stats[4], stats[5])


def _check_listed(count: int) -> None:
    import tensorflow as tf

    found = len(tf.config.list_physical_devices("GPU"))
    if found != count:
        raise SimulatorError(
            f"the simulated GPU was loaded, but TensorFlow lists {found} GPUs instead of {count}; "
            "this is a bug in pytest-tfdevice, please report it with your TensorFlow's version"
        )
