"""Compiles the simulated GPU for one TensorFlow, once, into the user's cache.

The library's name holds a hash of everything that it depends on, so a library that is there is the
right one, and another TensorFlow, compiler or release of this package gets its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pytest_tfdevice.simulator import cache
from pytest_tfdevice.simulator.errors import SimulatorError
from pytest_tfdevice.simulator.toolchain import Compiler, compile_library, find_compiler

Progress = Callable[[str], object]
"""Gets one line of text when something takes long."""

NATIVE = Path(__file__).parent / "native"
SOURCE = NATIVE / "simulated_gpu.cc"

_DESCRIPTION_FORMAT = 2
"""Goes up with every change to :class:`Build`, so that releases don't misread each other's."""


@dataclass(frozen=True, slots=True)
class TensorFlowInstall:
    """What has to be known of a TensorFlow to compile against it."""

    version: str
    git_version: str
    cxx11_abi: int
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    @classmethod
    def of_this_process(cls) -> TensorFlowInstall:
        """The TensorFlow that ``import tensorflow`` gives; imports it."""
        import tensorflow as tf

        return cls(
            version=str(tf.version.VERSION),
            git_version=str(tf.version.GIT_VERSION),
            cxx11_abi=int(tf.sysconfig.CXX11_ABI_FLAG),
            compile_flags=tuple(tf.sysconfig.get_compile_flags()),
            link_flags=tuple(tf.sysconfig.get_link_flags()),
        )


@dataclass(frozen=True, slots=True)
class Build:
    """A compiled library and what it was made from (kept beside it as JSON)."""

    library: Path
    tensorflow: str
    git_version: str
    compiler: str
    source: str
    """``source_hash()`` of then."""
    seconds: float
    """How long the compiler took."""


def source_files() -> tuple[Path, ...]:
    """The C++ files, in a fixed order."""
    return tuple(sorted([*NATIVE.glob("*.cc"), *NATIVE.glob("*.h")]))


def source_hash() -> str:
    """A hash of the C++ source."""
    digest = hashlib.sha256()
    for path in source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def library_path(install: TensorFlowInstall, compiler: Compiler) -> Path:
    """Where the library for this TensorFlow and compiler is, or would be."""
    facts: Sequence[Any] = (
        _DESCRIPTION_FORMAT,
        install.version,
        install.git_version,
        install.cxx11_abi,
        # The folders among the flags say where this TensorFlow lies; two virtual environments with
        # the same one share a library.
        [f for f in install.compile_flags if not f.startswith("-I")],
        compiler.command,
        compiler.identity,
        source_hash(),
    )
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return cache.cache_folder() / f"simulated_gpu-{install.version}-{key}.so"


def ensure_built(
    install: TensorFlowInstall, progress: Progress | None = None, force: bool = False
) -> Build:
    """The compiled library, compiled now where it isn't there yet; with ``force`` in any case.

    Processes that race for it wait for the first.

    Raises:
        SimulatorError: no compiler, a cache that can't be used, or a compilation that failed.
    """
    say: Progress = progress if progress is not None else _silent
    compiler = find_compiler()
    library = library_path(install, compiler)
    if not force and (found := read_build(library)) is not None:
        return found
    cache.prepare(library.parent)
    try:
        with cache.exclusive(
            library.with_suffix(".lock"),
            lambda: say("waiting for another process that compiles the simulated GPU"),
        ):
            if not force and (found := read_build(library)) is not None:
                return found
            say(
                f"compiling the simulated GPU for TensorFlow {install.version} with "
                f"{compiler.command[0]}, once; this takes 15 seconds or, on a busy machine, minutes"
            )
            return _compile(install, compiler, library)
    except OSError as error:
        raise SimulatorError(
            f"the compiled library can't be put into {library.parent}: {error}. Set "
            f"{cache.CACHE_VARIABLE} to a folder that you may write to."
        ) from error


def _silent(line: str) -> None:
    """Progress that nobody wants to see."""


def _compile(install: TensorFlowInstall, compiler: Compiler, library: Path) -> Build:
    with tempfile.TemporaryDirectory(dir=library.parent, prefix="compiling-") as folder:
        output = Path(folder) / library.name
        begin = time.monotonic()
        compile_library(compiler, SOURCE, output, install.compile_flags, install.link_flags)
        seconds = time.monotonic() - begin
        if not output.exists():
            raise SimulatorError(f"the C++ compiler {compiler} said nothing and wrote no library")
        output.chmod(0o700)
        build = Build(
            library=library,
            tensorflow=install.version,
            git_version=install.git_version,
            compiler=str(compiler),
            source=source_hash(),
            seconds=round(seconds, 1),
        )
        facts = {**asdict(build), "library": library.name}
        description = output.with_suffix(".json")
        description.write_text(json.dumps(facts, indent=1) + "\n")
        # The library last: where it is, everything is.
        os.replace(description, library.with_suffix(".json"))
        os.replace(output, library)
    return build


def read_build(library: Path) -> Build | None:
    """A build in the cache, None where it isn't there or its description is damaged.

    Raises:
        SimulatorError: other users may have written to it.
    """
    try:
        cache.check_folder(library.parent)
        cache.check_library(library)
        facts = json.loads(library.with_suffix(".json").read_text())
        return Build(**{**facts, "library": library})
    except (OSError, ValueError, TypeError):
        return None


def builds() -> tuple[Build, ...]:
    """Every build in the cache."""
    folder = cache.cache_folder()
    found = [read_build(path) for path in sorted(folder.glob("simulated_gpu-*.so"))]
    return tuple(build for build in found if build is not None)
