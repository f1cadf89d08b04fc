"""``pytest-tfdevice simulator build|info|clean``: each prints and returns an exit status."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import platform
import shutil
from pathlib import Path

from pytest_tfdevice import kernels
from pytest_tfdevice.simulator import cache
from pytest_tfdevice.simulator.build import (
    Build,
    TensorFlowInstall,
    builds,
    ensure_built,
    source_hash,
)
from pytest_tfdevice.simulator.errors import SimulatorError
from pytest_tfdevice.simulator.loading import check_platform
from pytest_tfdevice.simulator.toolchain import find_compiler
from pytest_tfdevice.units import format_size

_OWN_FILES = ("simulated_gpu-*", "compiling-*")


def build(force: bool = False) -> int:
    """Compiles the simulated GPU for the installed TensorFlow, where that hasn't been done.

    ``force`` compiles in any case.  Returns 0, or 1 where it can't be done.
    """
    try:
        check_platform()
        if find_tensorflow() is None:
            raise SimulatorError("TensorFlow isn't installed in this environment")
        install = TensorFlowInstall.of_this_process()
        _check_table(install.version)
        built = ensure_built(install, lambda line: print(line, flush=True), force=force)
    except SimulatorError as error:
        print(f"error: {error}")
        return 1
    print(f"simulated GPU for TensorFlow {built.tensorflow}: {built.library}")
    print(f"compiled in {built.seconds:.0f} s by {built.compiler}")
    return 0


def info() -> int:
    """Says what the simulated GPU needs and whether it is there, without importing TensorFlow.

    Returns 0 where it can be used here, now or after compiling, else 1.
    """
    problems: list[str] = []
    tensorflow = find_tensorflow()
    lines = {
        "platform": f"{platform.system()} {platform.machine()}",
        "TensorFlow": f"{tensorflow[0]} in {tensorflow[1]}" if tensorflow else "not installed",
        "kernel table": _table_line(tensorflow[0] if tensorflow else None, problems),
        "compiler": _compiler_line(problems),
        "cache folder": _cache_line(problems),
        "built": _built_line(tensorflow[0] if tensorflow else None),
    }
    if tensorflow is None:
        problems.append("TensorFlow isn't installed in this environment")
    try:
        check_platform()
    except SimulatorError as error:
        problems.append(str(error))
    width = max(map(len, lines)) + 1
    for name, text in lines.items():
        print(f"{name + ':':<{width}} {text}")
    for problem in problems:
        print(f"problem: {problem}")
    return 1 if problems else 0


def clean() -> int:
    """Removes every compiled library from the user's cache.  Returns 0, or 1 where one stays."""
    try:
        folder = cache.cache_folder()
    except SimulatorError as error:
        print(f"error: {error}")
        return 1
    paths = sorted(path for pattern in _OWN_FILES for path in folder.glob(pattern))
    size = sum(path.lstat().st_size for path in paths if path.is_file())
    try:
        for path in paths:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    except OSError as error:
        print(f"error: {error}")
        return 1
    libraries = sum(path.suffix == ".so" for path in paths)
    print(f"removed {libraries} compiled libraries ({format_size(size)}) from {folder}")
    return 0


def find_tensorflow() -> tuple[str, Path] | None:
    """Version and folder of the TensorFlow that would be imported, None where there is none."""
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    for name in importlib.metadata.packages_distributions().get("tensorflow", []):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name), folder
    return "of unknown version", folder


def _check_table(version: str) -> None:
    try:
        kernels.table_text(version)
    except kernels.NoTableError as error:
        raise SimulatorError(str(error)) from error


def _table_line(version: str | None, problems: list[str]) -> str:
    if version is None:
        return f"for TensorFlow {', '.join(kernels.shipped_versions())}"
    try:
        registry = kernels.for_version(version)
    except kernels.NoTableError as error:
        problems.append(str(error))
        return "none for this TensorFlow"
    return f"of TensorFlow {registry.version}, {len(registry)} kernels"


def _compiler_line(problems: list[str]) -> str:
    try:
        return str(find_compiler())
    except SimulatorError as error:
        problems.append(str(error))
        return "none"


def _cache_line(problems: list[str]) -> str:
    try:
        folder = cache.cache_folder()
        if folder.exists():
            cache.prepare(folder)
            return str(folder)
        return f"{folder} (not made yet)"
    except SimulatorError as error:
        problems.append(str(error))
        return "none"


def _built_line(version: str | None) -> str:
    try:
        found = builds()
    except SimulatorError as error:
        return f"not to be trusted: {error}"
    if not found:
        return "nothing yet; it is compiled when it is first needed"
    return "; ".join(_describe(build, version) for build in found)


def _describe(build: Build, version: str | None) -> str:
    text = f"for TensorFlow {build.tensorflow} ({build.library.name})"
    if build.source != source_hash():
        return text + " by another release of this package"
    return text + (" <- this one" if build.tensorflow == version else "")
