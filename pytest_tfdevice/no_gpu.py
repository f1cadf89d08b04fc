"""Why TensorFlow has no GPU: one clear cause for each way in which that happens.

Nothing here imports TensorFlow or pytest.  What is asked of the machine goes through a
``Machine``, so that every cause can be tried on any machine.  No GPU memory is taken: ``cuInit``
and the driver's device queries make no context.
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_tfdevice import versions

CauseKind = Literal[
    "no-tensorflow",
    "cpu-build",
    "hidden-by-environment",
    "hidden-by-program",
    "no-driver",
    "driver-fails",
    "driver-too-old",
    "missing-library",
    "unknown",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why there is no GPU, in one sentence, and how to mend it, in another."""

    kind: CauseKind
    what: str
    remedy: str

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True, slots=True)
class Build:
    """What the installed TensorFlow was built for (``tf.sysconfig.get_build_info``).

    ``cuda`` and ``cudnn`` are versions such as "12.5.1" and "9", empty for a build without CUDA.
    """

    tensorflow: str
    is_cuda: bool = False
    is_rocm: bool = False
    cuda: str = ""
    cudnn: str = ""

    @classmethod
    def from_info(cls, tensorflow: str, info: Mapping[str, Any]) -> Build:
        return cls(
            tensorflow,
            bool(info.get("is_cuda_build")),
            bool(info.get("is_rocm_build")),
            str(info.get("cuda_version", "")),
            str(info.get("cudnn_version", "")),
        )


def load_library(name: str) -> str | None:
    """Loads a shared library by its name, or else from the ``nvidia-*`` pip packages.

    Returns None where it loads, else the loader's message.
    """
    try:
        ctypes.CDLL(name)
        return None
    except OSError as error:
        message = str(error)
    # TensorFlow's own run path leads to these folders; the loader of this process doesn't know it.
    for path in _pip_libraries(name):
        try:
            ctypes.CDLL(path)
            return None
        except OSError as error:
            message = str(error)
    return message


def _pip_libraries(name: str) -> list[str]:
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    folders = (spec.submodule_search_locations or []) if spec is not None else []
    return [path for folder in folders for path in glob.glob(f"{folder}/*/lib/{name}")]


def cuda_driver() -> Any:
    """The driver's library, libcuda.

    Raises:
        OSError: it can't be loaded.
    """
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@dataclass(frozen=True)
class Machine:
    """What is asked of the machine; replaced in tests.

    ``load`` answers None where a library loads, else the loader's message.
    """

    system: str = sys.platform
    processor: str = field(default_factory=platform.machine)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    load: Callable[[str], str | None] = load_library
    driver: Callable[[], Any] = cuda_driver
    exists: Callable[[str], bool] = os.path.exists
    glob: Callable[[str], list[str]] = glob.glob

    def gpu_count(self) -> int | None:
        """GPUs that the kernel driver has, whatever CUDA_VISIBLE_DEVICES says; None if unknown."""
        found = self.glob("/proc/driver/nvidia/gpus/*") or self.glob("/dev/nvidia[0-9]*")
        return len(found) or None

    def has_kernel_driver(self) -> bool:
        """An NVIDIA kernel driver is loaded, or WSL's (``/dev/dxg``)."""
        paths = ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")
        return any(self.exists(path) for path in paths) or self.gpu_count() is not None


def causes_of_no_gpu(
    build: Build | None, machine: Machine, *, physical: int = 0, import_error: str = ""
) -> tuple[Cause, ...]:
    """Every cause that was found, in the order in which they have to be mended; never empty.

    Args:
        build: None where TensorFlow can't be imported; ``import_error`` says why.
        physical: GPUs that TensorFlow lists as physical devices, none of which is visible.
    """
    if build is None:
        return (_no_tensorflow(import_error),)
    if physical:
        return (_hidden_by_program(physical),)
    if not build.is_cuda and not build.is_rocm:
        return (_cpu_build(build, machine),)
    hidden = _hidden_by_environment(build, machine)
    found = [hidden] if hidden else []
    if build.is_cuda:
        found += _driver_causes(build, machine) or _library_causes(build, machine)
    if not found:
        found.append(
            Cause(
                "unknown",
                f"TensorFlow {build.tensorflow} lists no GPU, and no cause was found",
                "Read what TensorFlow itself logs: TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_MAX_VLOG_LEVEL=1 "
                "python -c \"import tensorflow as tf; tf.config.list_physical_devices('GPU')\".",
            )
        )
    return tuple(found)


def _no_tensorflow(error: str) -> Cause:
    if error:
        return Cause(
            "no-tensorflow",
            f"TensorFlow is installed but can't be imported: {error}",
            "Mend the installation until `python -c 'import tensorflow'` works.",
        )
    return Cause(
        "no-tensorflow",
        "TensorFlow isn't installed in this Python",
        "Install it: pip install 'tensorflow[and-cuda]' (or tensorflow-cpu).",
    )


def _hidden_by_program(physical: int) -> Cause:
    return Cause(
        "hidden-by-program",
        f"the program hid {_gpus(physical)} with tf.config.set_visible_devices",
        "Take that call out (look in conftest.py and what it imports).",
    )


def _cpu_build(build: Build, machine: Machine) -> Cause:
    what = f"the installed TensorFlow {build.tensorflow} is built without GPU support"
    count = machine.gpu_count()
    if count:
        what += f" (this machine has {_gpus(count)})"
    if machine.system == "darwin":
        remedy = "On macOS GPUs come with Apple's plugin: pip install tensorflow-metal."
    elif machine.system == "win32":
        remedy = "TensorFlow has no GPU support on native Windows since 2.11: use WSL2."
    elif machine.processor in ("aarch64", "arm64"):
        remedy = "PyPI has no GPU build for aarch64: use NVIDIA's container, or x86-64."
    elif versions.parse(build.tensorflow) >= (2, 14):
        remedy = (
            "Install the build for GPUs: pip uninstall tensorflow-cpu; "
            f"pip install 'tensorflow[and-cuda]=={build.tensorflow}'."
        )
    else:
        remedy = (
            "Install the build for GPUs: pip uninstall tensorflow-cpu; "
            f"pip install tensorflow=={build.tensorflow}; with CUDA 11.8 and cuDNN 8.6 beside it."
        )
    return Cause("cpu-build", what, remedy)


def _hidden_by_environment(build: Build, machine: Machine) -> Cause | None:
    """CUDA shows the devices listed, up to the first that isn't there."""
    names = ("HIP_VISIBLE_DEVICES",) if build.is_rocm else ()
    for name in (*names, "CUDA_VISIBLE_DEVICES"):
        value = machine.environ.get(name)
        if value is None:
            continue
        first = value.split(",")[0].strip()
        count = machine.gpu_count()
        shown = f"{name}={value!r}"
        remedy = f"Unset {name}, or name a GPU of this machine, before Python starts."
        if first in ("", "NoDevFiles", "none", "void") or first.startswith("-"):
            return Cause("hidden-by-environment", f"{shown} hides every GPU", remedy)
        if first.isdigit() and count is not None and int(first) >= count:
            what = f"{shown} begins with GPU {first}, and this machine has {_gpus(count)}"
            what += " (numbered from 0), so every GPU is hidden"
            return Cause("hidden-by-environment", what, remedy)
    return None


def _driver_causes(build: Build, machine: Machine) -> list[Cause]:
    try:
        driver = machine.driver()
    except OSError as error:
        return [_no_libcuda(str(error), machine)]
    if not machine.has_kernel_driver():
        return [
            Cause(
                "no-driver",
                "libcuda is installed, but no NVIDIA kernel driver is loaded (no "
                "/proc/driver/nvidia, no /dev/nvidia*)",
                "Load the driver (nvidia-smi must work); in a container, start it with --gpus all.",
            )
        ]
    code = int(driver.cuInit(0))
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    have = (version.value // 1000, version.value % 1000 // 10)
    too_old = build.cuda and have[0] and have[0] < int(build.cuda.split(".")[0])
    if too_old or code == 35:
        return [_too_old(build, have)]
    if code and not (code == 100 and _hidden_by_environment(build, machine)):
        return [_driver_fails(code)]
    return []


def _no_libcuda(error: str, machine: Machine) -> Cause:
    if machine.has_kernel_driver():
        return Cause(
            "no-driver",
            f"the NVIDIA kernel driver is loaded, but its library can't be ({error})",
            "In a container, start it with --gpus all (NVIDIA container toolkit); else reinstall "
            "the driver, or add the folder of libcuda.so.1 to LD_LIBRARY_PATH.",
        )
    return Cause(
        "no-driver",
        f"this machine has no NVIDIA driver ({error}; no /dev/nvidia*)",
        "Install the NVIDIA driver; in a container, start it with --gpus all.",
    )


def _too_old(build: Build, have: tuple[int, int]) -> Cause:
    return Cause(
        "driver-too-old",
        f"the NVIDIA driver supports CUDA {have[0]}.{have[1]}, and TensorFlow {build.tensorflow} "
        f"needs {build.cuda}",
        "Install a newer NVIDIA driver, or a TensorFlow built for an older CUDA.",
    )


_CU_INIT = {
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    303: "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}
"""From NVIDIA's ``cuda.h``."""


def _driver_fails(code: int) -> Cause:
    name = _CU_INIT.get(code, "see cuda.h")
    remedy = "nvidia-smi must work first."
    if code == 803:
        remedy = "The driver was updated and its kernel module wasn't: restart the machine."
    elif code == 802:
        remedy = "On a machine with NVSwitch, start nvidia-fabricmanager."
    elif code == 999:
        remedy = "Often after suspend: reload the nvidia_uvm module, or restart the machine."
    return Cause("driver-fails", f"the NVIDIA driver fails: cuInit gives {code} ({name})", remedy)


_LIBRARIES = {
    11: {
        "libcudart.so.11.0": "cuda-runtime-cu11",
        "libcublas.so.11": "cublas-cu11",
        "libcublasLt.so.11": "cublas-cu11",
        "libcufft.so.10": "cufft-cu11",
        "libcusolver.so.11": "cusolver-cu11",
        "libcusparse.so.11": "cusparse-cu11",
    },
    12: {
        "libcudart.so.12": "cuda-runtime-cu12",
        "libcublas.so.12": "cublas-cu12",
        "libcublasLt.so.12": "cublas-cu12",
        "libcufft.so.11": "cufft-cu12",
        "libcusolver.so.11": "cusolver-cu12",
        "libcusparse.so.12": "cusparse-cu12",
    },
}
"""By CUDA major: what TensorFlow must load before it lists a GPU (its ``dso_loader``), and the pip
package ``nvidia-…`` that has it.  NCCL and TensorRT are loaded only when used."""


def needed_libraries(build: Build) -> dict[str, str]:
    """Name of each library that ``build`` loads for a GPU, and its pip package.

    Empty where the CUDA version isn't known.
    """
    major = int(build.cuda.split(".")[0]) if build.cuda[:1].isdigit() else 0
    libraries = _LIBRARIES.get(major)
    if libraries is None:
        return {}
    found = {name: f"nvidia-{package}" for name, package in libraries.items()}
    if build.cudnn[:1].isdigit():
        found[f"libcudnn.so.{build.cudnn.split('.')[0]}"] = f"nvidia-cudnn-cu{major}"
    return found


def _library_causes(build: Build, machine: Machine) -> list[Cause]:
    missing = {
        name: package
        for name, package in needed_libraries(build).items()
        if machine.load(name) is not None
    }
    if not missing:
        return []
    packages = " ".join(dict.fromkeys(missing.values()))
    return [
        Cause(
            "missing-library",
            f"the NVIDIA driver is here, but TensorFlow {build.tensorflow} (CUDA {build.cuda}, "
            f"cuDNN {build.cudnn or 'unknown'}) can't load {', '.join(missing)}",
            f"Install what is missing: pip install {packages} (or 'tensorflow[and-cuda]'), or add "
            "the folder of the libraries to LD_LIBRARY_PATH.",
        )
    ]


def gpu_total_memory(driver: Callable[[], Any] = cuda_driver) -> tuple[int, ...]:
    """Bytes of each GPU that CUDA shows this process, in CUDA's (and TensorFlow's) order.

    Asked of the driver without a context, so no GPU memory is taken.  Empty where there is no
    driver, or it fails.
    """
    try:
        cuda = driver()
        if cuda.cuInit(0):
            return ()
        count = ctypes.c_int(0)
        if cuda.cuDeviceGetCount(ctypes.byref(count)):
            return ()
        found = []
        for ordinal in range(count.value):
            device, size = ctypes.c_int(0), ctypes.c_size_t(0)
            if cuda.cuDeviceGet(ctypes.byref(device), ordinal):
                return ()
            if cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device):
                return ()
            found.append(size.value)
    except (OSError, AttributeError):
        return ()
    return tuple(found)


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"
