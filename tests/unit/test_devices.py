"""Why there is no GPU, and what a report says: no TensorFlow, no GPU, every cause."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import pytest_tfdevice
from pytest_tfdevice import versions
from pytest_tfdevice.devices import DeviceReport
from pytest_tfdevice.model import Device, DeviceInfo
from pytest_tfdevice.no_gpu import (
    Build,
    Cause,
    Machine,
    causes_of_no_gpu,
    gpu_total_memory,
    needed_libraries,
)

ROOT = Path(pytest_tfdevice.__file__).resolve().parents[1]
CUDA = Build("2.21.0", is_cuda=True, cuda="12.5.1", cudnn="9")
CPU_BUILD = Build("2.21.0")


class Driver:
    """Stands in for libcuda: answers as the real functions do, through pointers."""

    def __init__(
        self, init: int = 0, version: int = 12040, memory: tuple[int, ...] = (2**34,)
    ) -> None:
        self.init, self.version, self.memory = init, version, memory

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self.init

    def cuDriverGetVersion(self, pointer: Any) -> int:
        pointer._obj.value = self.version
        return 0

    def cuDeviceGetCount(self, pointer: Any) -> int:
        pointer._obj.value = len(self.memory)
        return 0

    def cuDeviceGet(self, pointer: Any, ordinal: int) -> int:
        pointer._obj.value = 100 + ordinal
        return 0

    def cuDeviceTotalMem_v2(self, pointer: Any, device: Any) -> int:
        pointer._obj.value = self.memory[device.value - 100]
        return 0


def no_libcuda() -> Any:
    raise OSError("libcuda.so.1: cannot open shared object file: No such file or directory")


def machine(
    *,
    gpus: int = 1,
    driver: Callable[[], Any] = Driver,
    missing: tuple[str, ...] = (),
    environ: Mapping[str, str] | None = None,
    kernel_driver: bool = True,
    system: str = "linux",
    processor: str = "x86_64",
) -> Machine:
    """A machine with ``gpus`` GPUs and all that they need, less what is said."""
    proc = [f"/proc/driver/nvidia/gpus/{n}" for n in range(gpus)]
    return Machine(
        system=system,
        processor=processor,
        environ=environ or {},
        load=lambda name: f"{name}: cannot open" if name in missing else None,
        driver=driver,
        exists=lambda path: kernel_driver and path == "/proc/driver/nvidia/version",
        glob=lambda pattern: proc if kernel_driver and pattern.startswith("/proc") else [],
    )


def only(causes: tuple[Cause, ...]) -> Cause:
    assert len(causes) == 1, causes
    return causes[0]


def test_no_tensorflow() -> None:
    cause = only(causes_of_no_gpu(None, machine()))
    assert cause.kind == "no-tensorflow"
    assert "isn't installed" in cause.what
    assert "pip install" in cause.remedy


def test_tensorflow_that_cannot_be_imported() -> None:
    cause = only(causes_of_no_gpu(None, machine(), import_error="ImportError: libfoo.so"))
    assert cause.kind == "no-tensorflow"
    assert "ImportError: libfoo.so" in cause.what


@pytest.mark.parametrize(
    ("system", "processor", "version", "remedy"),
    [
        ("linux", "x86_64", "2.21.0", "pip install 'tensorflow[and-cuda]==2.21.0'"),
        ("linux", "x86_64", "2.12.1", "pip install tensorflow==2.12.1; with CUDA 11.8"),
        ("linux", "aarch64", "2.21.0", "no GPU build for aarch64"),
        ("darwin", "arm64", "2.16.2", "tensorflow-metal"),
        ("win32", "AMD64", "2.15.0", "WSL2"),
    ],
)
def test_a_build_without_gpu_support(
    system: str, processor: str, version: str, remedy: str
) -> None:
    here = machine(system=system, processor=processor, gpus=0)
    cause = only(causes_of_no_gpu(Build(version), here))
    assert cause.kind == "cpu-build"
    assert version in cause.what
    assert remedy in cause.remedy


def test_a_cpu_build_on_a_machine_with_gpus_says_so() -> None:
    assert "this machine has 2 GPUs" in only(causes_of_no_gpu(CPU_BUILD, machine(gpus=2))).what


@pytest.mark.parametrize("value", ["", "-1", "-1,0", "NoDevFiles", " -1"])
def test_hidden_by_the_environment(value: str) -> None:
    here = machine(environ={"CUDA_VISIBLE_DEVICES": value}, driver=lambda: Driver(init=100))
    cause = only(causes_of_no_gpu(CUDA, here))
    assert cause.kind == "hidden-by-environment"
    assert f"CUDA_VISIBLE_DEVICES={value!r}" in cause.what


def test_an_index_that_is_not_there() -> None:
    here = machine(gpus=2, environ={"CUDA_VISIBLE_DEVICES": "5,0"})
    cause = only(causes_of_no_gpu(CUDA, here))
    assert cause.kind == "hidden-by-environment"
    assert "begins with GPU 5, and this machine has 2 GPUs" in cause.what


@pytest.mark.parametrize("value", ["0", "1,7", "GPU-8932f937-d72c", "MIG-4f2c"])
def test_an_environment_that_hides_not_all_is_no_cause(value: str) -> None:
    here = machine(gpus=2, environ={"CUDA_VISIBLE_DEVICES": value})
    assert only(causes_of_no_gpu(CUDA, here)).kind == "unknown"


def test_hidden_by_the_program() -> None:
    cause = only(causes_of_no_gpu(CUDA, machine(), physical=2))
    assert cause.kind == "hidden-by-program"
    assert "2 GPUs" in cause.what
    assert "set_visible_devices" in cause.what


def test_no_driver_at_all() -> None:
    here = machine(gpus=0, kernel_driver=False, driver=no_libcuda)
    cause = only(causes_of_no_gpu(CUDA, here))
    assert cause.kind == "no-driver"
    assert "no NVIDIA driver" in cause.what
    assert "libcuda.so.1" in cause.what


def test_a_container_without_the_driver_library() -> None:
    cause = only(causes_of_no_gpu(CUDA, machine(driver=no_libcuda)))
    assert cause.kind == "no-driver"
    assert "--gpus all" in cause.remedy
    assert "kernel driver is loaded" in cause.what


def test_a_driver_library_without_the_kernel_driver() -> None:
    cause = only(causes_of_no_gpu(CUDA, machine(gpus=0, kernel_driver=False)))
    assert cause.kind == "no-driver"
    assert "no NVIDIA kernel driver is loaded" in cause.what


@pytest.mark.parametrize(
    ("code", "word"),
    [(100, "NO_DEVICE"), (803, "restart"), (999, "UNKNOWN"), (7, "cuInit gives 7")],
)
def test_a_driver_that_fails(code: int, word: str) -> None:
    cause = only(causes_of_no_gpu(CUDA, machine(driver=lambda: Driver(init=code))))
    assert cause.kind == "driver-fails"
    assert word in cause.what + cause.remedy


def test_a_driver_that_is_too_old() -> None:
    cause = only(causes_of_no_gpu(CUDA, machine(driver=lambda: Driver(version=11040))))
    assert cause.kind == "driver-too-old"
    assert "CUDA 11.4" in cause.what
    assert "12.5.1" in cause.what


def test_a_driver_of_the_same_major_is_new_enough() -> None:
    here = machine(driver=lambda: Driver(version=12000))
    assert only(causes_of_no_gpu(CUDA, here)).kind == "unknown"


@pytest.mark.parametrize("library", sorted(needed_libraries(CUDA)))
def test_each_missing_library_is_named(library: str) -> None:
    cause = only(causes_of_no_gpu(CUDA, machine(missing=(library,))))
    assert cause.kind == "missing-library"
    assert library in cause.what
    assert needed_libraries(CUDA)[library] in cause.remedy
    others = set(needed_libraries(CUDA)) - {library}
    assert not any(f"{other}," in f"{cause.what}," for other in others)


@pytest.mark.parametrize(
    ("cuda", "cudnn", "some"),
    [
        ("11.8", "8", {"libcudart.so.11.0", "libcufft.so.10", "libcudnn.so.8"}),
        ("12.2", "8.9", {"libcudart.so.12", "libcufft.so.11", "libcudnn.so.8"}),
        ("12.5.1", "9", {"libcusparse.so.12", "libcusolver.so.11", "libcudnn.so.9"}),
    ],
)
def test_libraries_follow_the_build(cuda: str, cudnn: str, some: set[str]) -> None:
    libraries = needed_libraries(Build("2.x", is_cuda=True, cuda=cuda, cudnn=cudnn))
    assert some <= libraries.keys()
    assert len(libraries) == 7


@pytest.mark.parametrize("cuda", ["", "64_101", "13.0"])
def test_libraries_of_an_unknown_cuda_are_not_guessed(cuda: str) -> None:
    assert needed_libraries(Build("2.x", is_cuda=True, cuda=cuda)) == {}


def test_several_causes_in_the_order_to_mend_them() -> None:
    here = machine(
        gpus=0,
        kernel_driver=False,
        driver=no_libcuda,
        environ={"CUDA_VISIBLE_DEVICES": "-1"},
    )
    kinds = [cause.kind for cause in causes_of_no_gpu(CUDA, here)]
    assert kinds == ["hidden-by-environment", "no-driver"]


def test_a_machine_in_order_gives_an_honest_unknown() -> None:
    cause = only(causes_of_no_gpu(CUDA, machine()))
    assert cause.kind == "unknown"
    assert "no cause was found" in cause.what


def test_total_memory_is_asked_of_the_driver() -> None:
    assert gpu_total_memory(lambda: Driver(memory=(2**34, 2**35))) == (2**34, 2**35)


@pytest.mark.parametrize("driver", [no_libcuda, lambda: Driver(init=999), lambda: object()])
def test_total_memory_of_a_driver_that_fails_is_empty(driver: Callable[[], Any]) -> None:
    assert gpu_total_memory(driver) == ()


# --- the report ------------------------------------------------------------------------------


def gpu(index: int = 0, **known: Any) -> DeviceInfo:
    return DeviceInfo(Device("localhost", 0, 0, "GPU", index), **known)


CPU = DeviceInfo(Device("localhost", 0, 0, "CPU", 0))
A100 = {
    "memory": 80 * 2**30,
    "compute_capability": (8, 0),
    "description": "NVIDIA A100-SXM4-80GB",
}


def report(*gpus: DeviceInfo, **more: Any) -> DeviceReport:
    causes = () if gpus else causes_of_no_gpu(CPU_BUILD, machine(gpus=0))
    return DeviceReport(**{"build": CUDA, "devices": (CPU, *gpus), "causes": causes, **more})


def test_kinds() -> None:
    assert report().kind == "none"
    assert report(gpu(**A100)).kind == "real"
    assert report(gpu(memory=2**34, simulated=True)).kind == "simulated"
    assert report(gpu(0), gpu(1)).count == 2


def test_what_is_satisfied_is_not_skipped() -> None:
    two = report(gpu(0, **A100), gpu(1, **A100))
    assert two.skip_reason() is None
    assert two.skip_reason(2, 80 * 2**30, (8, 0)) is None
    assert two.skip_reason(2, compute_capability=(7, 5)) is None


def test_too_few_gpus_gives_the_cause() -> None:
    assert report().skip_reason() == (
        "needs 1 GPU, this process has none: "
        "the installed TensorFlow 2.21.0 is built without GPU support"
    )
    assert report(gpu()).skip_reason(2) == "needs 2 GPUs, this process has 1"
    hidden = report(gpu(), visible="0")
    assert hidden.skip_reason(2) == ("needs 2 GPUs, this process has 1 (CUDA_VISIBLE_DEVICES='0')")


def test_too_little_memory_names_each_gpu() -> None:
    one = report(gpu(0, **A100), gpu(1, memory=2**34))
    assert one.skip_reason(1, memory=2**35) is None
    assert one.skip_reason(2, memory=2**35) == (
        "needs 2 GPUs with 32 GiB of memory: GPU:1 has 16 GiB"
    )


def test_unknown_memory_does_not_pass_for_enough() -> None:
    reason = report(gpu()).skip_reason(memory=1)
    assert reason is not None
    assert "isn't known" in reason


def test_compute_capability() -> None:
    assert report(gpu(**A100)).skip_reason(compute_capability=(9, 0)) == (
        "needs 1 GPU with compute capability 9.0: GPU:0 has 8.0"
    )
    simulated = report(gpu(memory=2**34, simulated=True)).skip_reason(compute_capability=(7, 0))
    assert simulated is not None
    assert "simulated" in simulated


def test_both_needs_must_hold_on_the_same_gpu() -> None:
    mixed = report(
        gpu(0, memory=2**36, compute_capability=(6, 0)),
        gpu(1, memory=2**33, compute_capability=(9, 0)),
    )
    assert mixed.skip_reason(1, 2**35, (8, 0)) == (
        "needs 1 GPU with 32 GiB of memory and compute capability 8.0: "
        "GPU:0 has 6.0; GPU:1 has 8 GiB"
    )


def every_cause() -> list[tuple[Cause, ...]]:
    return [
        causes_of_no_gpu(None, machine()),
        causes_of_no_gpu(CPU_BUILD, machine(gpus=2)),
        causes_of_no_gpu(CUDA, machine(), physical=1),
        causes_of_no_gpu(CUDA, machine(environ={"CUDA_VISIBLE_DEVICES": "9"})),
        causes_of_no_gpu(CUDA, machine(gpus=0, kernel_driver=False, driver=no_libcuda)),
        causes_of_no_gpu(CUDA, machine(driver=lambda: Driver(init=803))),
        causes_of_no_gpu(CUDA, machine(driver=lambda: Driver(version=11000))),
        causes_of_no_gpu(CUDA, machine(missing=tuple(needed_libraries(CUDA)))),
        causes_of_no_gpu(CUDA, machine()),
    ]


@pytest.mark.parametrize("causes", every_cause(), ids=lambda causes: causes[0].kind)
def test_describe_begins_with_the_conclusion_and_says_how_to_mend(
    causes: tuple[Cause, ...],
) -> None:
    text = report(causes=causes).describe()
    flat = " ".join(text.split())
    assert flat.startswith(f"No GPU: {causes[0].what}.")
    assert all(cause.remedy in flat for cause in causes)
    assert max(map(len, text.splitlines())) <= 100


def test_describe_with_gpus() -> None:
    text = report(gpu(0, **A100), gpu(1, **A100)).describe()
    assert text.splitlines()[0] == "2 GPUs ready for TensorFlow."
    assert "GPU:1, NVIDIA A100-SXM4-80GB, 80 GiB, compute capability 8.0" in text
    assert "To mend it" not in text
    simulated = report(gpu(memory=2**34, simulated=True)).describe()
    assert simulated.splitlines()[0] == "1 simulated GPU ready for TensorFlow."


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("2.11.1", False),
        ("2.12.0", True),
        ("2.21.0", True),
        ("2.21.0-rc1", True),
        ("2.22.0", False),
        ("3.0.0", False),
        ("1.15.5", False),
        ("unknown", False),
    ],
)
def test_the_supported_range(version: str, supported: bool) -> None:
    assert versions.is_supported(version) is supported
    odd = report(gpu(), build=Build(version, is_cuda=True))
    assert bool(odd.remarks) is not supported
    assert ("Note: TensorFlow" in odd.describe()) is not supported


# --- finding, without a TensorFlow or with a stand-in ----------------------------------------

FIND = """
import json, sys
from pytest_tfdevice.devices import find_devices
report = find_devices()
print(json.dumps({
    "kinds": [c.kind for c in report.causes],
    "what": str(report.cause),
    "version": report.tensorflow,
    "remarks": list(report.remarks),
    "skip": report.skip_reason(),
    "first line": report.describe().splitlines()[0],
}))
"""


def find(tmp_path: Path, tensorflow: str | None) -> dict[str, Any]:
    """``find_devices`` in a process whose TensorFlow is the module text given, or none."""
    hide = "import sys; sys.modules['tensorflow'] = None\n" if tensorflow is None else ""
    if tensorflow is not None:
        (tmp_path / "tensorflow").mkdir()
        (tmp_path / "tensorflow" / "__init__.py").write_text(tensorflow)
    done = subprocess.run(
        [sys.executable, "-c", hide + FIND],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_finding_without_tensorflow(tmp_path: Path) -> None:
    found = find(tmp_path, None)
    assert found["kinds"] == ["no-tensorflow"]
    assert found["first line"] == "No GPU: TensorFlow isn't installed in this Python."
    assert found["skip"].startswith("needs 1 GPU, this process has none: TensorFlow isn't")


def test_finding_with_a_broken_tensorflow(tmp_path: Path) -> None:
    found = find(tmp_path, "raise ImportError('libbroken.so: cannot open\\nmore')")
    assert found["kinds"] == ["no-tensorflow"]
    assert "can't be imported: ImportError: libbroken.so: cannot open" in found["what"]


def test_finding_with_an_old_tensorflow(tmp_path: Path) -> None:
    found = find(
        tmp_path,
        "__version__ = '2.4.1'\n"
        "class sysconfig:\n"
        "    get_build_info = staticmethod(lambda: {'is_cuda_build': False})\n"
        "class config:\n"
        "    list_physical_devices = staticmethod(lambda kind=None: [])\n"
        "    get_visible_devices = staticmethod(lambda: [])\n",
    )
    assert found["version"] == "2.4.1"
    assert "outside the supported range 2.12 to 2.21" in found["remarks"][0]
    assert found["kinds"] == ["cpu-build"]
