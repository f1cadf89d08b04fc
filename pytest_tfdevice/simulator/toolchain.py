"""The C++ compiler: which one, and one run of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_tfdevice.simulator.errors import SimulatorError

CANDIDATES = ("g++", "c++", "clang++")
_TIMEOUT = 900
"""Seconds; a compilation takes 10 to 90, depending on the machine's load."""
_SHOWN_LINES = 30
"""Lines of a failed compiler's output that an error shows."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C++ compiler: its command, and the first line of what it says of itself."""

    command: tuple[str, ...]
    identity: str

    def __str__(self) -> str:
        return f"{shlex.join(self.command)} ({self.identity})"


def find_compiler() -> Compiler:
    """The compiler in ``$CXX``, else the first of g++, c++ and clang++ that is there.

    Raises:
        SimulatorError: there is none, or it doesn't run.
    """
    chosen = os.environ.get("CXX", "").strip()
    if chosen:
        command = shlex.split(chosen)
        if shutil.which(command[0]) is None:
            raise SimulatorError(
                f"$CXX is {chosen!r}, but there is no such program. Set CXX to a C++17 compiler, "
                "or unset it to have g++, c++ or clang++ looked for."
            )
        return Compiler(tuple(command), _identity(command))
    for name in CANDIDATES:
        if shutil.which(name) is not None:
            return Compiler((name,), _identity([name]))
    raise SimulatorError(
        "no C++ compiler found (looked for $CXX, g++, c++ and clang++). The simulated GPU is "
        "compiled once for each TensorFlow: install one (Debian, Ubuntu: apt-get install g++; "
        "Fedora: dnf install gcc-c++; conda: conda install gxx) or set CXX."
    )


def _identity(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            [*command, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SimulatorError(
            f"the C++ compiler {shlex.join(command)} doesn't run: {error}"
        ) from error
    output = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0:
        raise SimulatorError(
            f"the C++ compiler {shlex.join(command)} doesn't run: --version gave exit status "
            f"{done.returncode}: {output[:500]}"
        )
    return output.splitlines()[0] if output else "unknown"


def compile_library(
    compiler: Compiler,
    source: Path,
    output: Path,
    compile_flags: Sequence[str],
    link_flags: Sequence[str],
) -> None:
    """Compiles one source to a shared library.

    Raises:
        SimulatorError: with the compiler's command and its first errors.
    """
    command = [
        *compiler.command,
        # -O1: -O2 takes a quarter longer and gains little, as the arithmetic is TensorFlow's own.
        # -w: TensorFlow's headers warn a lot.
        *("-O1", "-fPIC", "-shared", "-std=c++17", "-DNDEBUG", "-w"),
        *compile_flags,
        str(source),
        *("-o", str(output)),
        *link_flags,
    ]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT,
            check=False,
        )
    except OSError as error:
        raise SimulatorError(f"the C++ compiler can't be started: {error}") from error
    except subprocess.TimeoutExpired:
        raise SimulatorError(
            f"the C++ compiler ran for more than {_TIMEOUT} seconds: {shlex.join(command)}"
        ) from None
    if done.returncode != 0:
        lines = done.stdout.decode(errors="replace").splitlines()
        # What went wrong stands in the lines with "error"; the rest is where from.
        telling = [line for line in lines if "error" in line.lower()] or lines
        raise SimulatorError(
            f"compiling the simulated GPU failed (exit status {done.returncode}).\n"
            f"command: {shlex.join(command)}\n" + "\n".join(telling[:_SHOWN_LINES])
        )
