"""Building the simulated GPU, with scripts that stand for the compiler.  No TensorFlow."""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tfdevice import simulator
from pytest_tfdevice.simulator import SimulatorError, TensorFlowInstall, build, cache, commands
from pytest_tfdevice.simulator import loading as loading_module

INSTALL = TensorFlowInstall(
    version="2.99.0",
    git_version="v2.99.0-0-gabc",
    cxx11_abi=1,
    compile_flags=("-I/some/include", "-D_GLIBCXX_USE_CXX11_ABI=1"),
    link_flags=("-L/some/lib",),
)

COMPILER = """#!/bin/sh
if [ "$1" = "--version" ]; then echo "fake c++ {version}"; exit 0; fi
echo "$@" >> {calls}
while [ $# -gt 0 ]; do
    if [ "$1" = "-o" ]; then out=$2; fi
    shift
done
{body}
"""

MakeCompiler = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache's folder, not made yet."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "simulator"


@pytest.fixture
def make_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeCompiler:
    """Makes a compiler that runs a line of shell, and puts it into $CXX."""

    def make(body: str = 'echo library > "$out"', version: str = "1.0", name: str = "cxx") -> Path:
        script = tmp_path / name
        calls = tmp_path / "calls"
        script.write_text(COMPILER.format(body=body, version=version, calls=calls))
        script.chmod(0o755)
        monkeypatch.setenv("CXX", str(script))
        return script

    return make


def calls(tmp_path: Path) -> list[str]:
    file = tmp_path / "calls"
    return file.read_text().splitlines() if file.exists() else []


# --- building and the cache ---------------------------------------------------------------------


def test_built_once(folder: Path, make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler()
    lines: list[str] = []
    first = build.ensure_built(INSTALL, lines.append)
    second = build.ensure_built(INSTALL, lines.append)
    assert first == second
    assert first.library.read_text() == "library\n"
    assert first.library.parent == folder
    assert (first.tensorflow, first.git_version) == ("2.99.0", "v2.99.0-0-gabc")
    assert len(lines) == 1, "one line of progress, for the one compilation"
    assert "compiling the simulated GPU for TensorFlow 2.99.0" in lines[0]
    [call] = calls(tmp_path)
    assert "-I/some/include" in call
    assert call.endswith("-L/some/lib"), "libraries have to come after what needs them"
    assert str(build.SOURCE) in call
    assert build.builds() == (first,)


def test_force_builds_anew(folder: Path, make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler()
    build.ensure_built(INSTALL)
    build.ensure_built(INSTALL, force=True)
    assert len(calls(tmp_path)) == 2


def test_only_the_user_can_get_at_it(folder: Path, make_compiler: MakeCompiler) -> None:
    make_compiler()
    old = os.umask(0)  # a careless one must not matter
    try:
        library = build.ensure_built(INSTALL).library
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(library.stat().st_mode) == 0o700
    assert [path for path in folder.iterdir() if path.name.startswith("compiling")] == []


def test_a_folder_that_others_can_read_is_closed(folder: Path, make_compiler: MakeCompiler) -> None:
    make_compiler()
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    build.ensure_built(INSTALL)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(
    folder: Path, make_compiler: MakeCompiler, mode: int
) -> None:
    make_compiler()
    folder.mkdir(parents=True)
    folder.chmod(mode)
    with pytest.raises(SimulatorError, match="may be written to by other users"):
        build.ensure_built(INSTALL)


def test_a_folder_of_another_user_is_refused(
    folder: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler()
    folder.mkdir(parents=True, mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, 4321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(SimulatorError, match="belongs to another user"):
        build.ensure_built(INSTALL)


def test_a_link_instead_of_the_folder_is_refused(
    folder: Path, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler()
    folder.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SimulatorError, match="is a link"):
        build.ensure_built(INSTALL)


def test_a_library_that_others_can_write_to_is_refused(
    folder: Path, make_compiler: MakeCompiler
) -> None:
    make_compiler()
    library = build.ensure_built(INSTALL).library
    library.chmod(0o777)
    with pytest.raises(SimulatorError, match="may be written to by other users"):
        build.ensure_built(INSTALL)


def test_a_folder_that_cannot_be_made(
    tmp_path: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(SimulatorError, match=f"can't be used.*Set {cache.CACHE_VARIABLE}"):
        build.ensure_built(INSTALL)


def test_a_folder_without_permission(
    folder: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler()
    folder.mkdir(parents=True, mode=0o700)
    # Root may write anywhere, so the answer of the system is given here.
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder and allowed(path, mode))
    with pytest.raises(SimulatorError, match="no permission to write"):
        build.ensure_built(INSTALL)


def test_a_library_in_a_folder_that_cannot_be_written_to_is_used(
    folder: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler()
    built = build.ensure_built(INSTALL)

    def read_only(path: Path) -> None:
        raise SimulatorError("read-only file system")

    monkeypatch.setattr(cache, "prepare", read_only)
    assert build.ensure_built(INSTALL) == built


def test_a_damaged_description_leads_to_a_new_build(
    folder: Path, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler()
    library = build.ensure_built(INSTALL).library
    library.with_suffix(".json").write_text("{")
    build.ensure_built(INSTALL)
    assert len(calls(tmp_path)) == 2
    assert json.loads(library.with_suffix(".json").read_text())["tensorflow"] == "2.99.0"


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2.99.1"},
        {"git_version": "v2.99.0-1-gdef"},
        {"cxx11_abi": 0},
        {"compile_flags": ("-I/some/include", "-DOTHER")},
    ],
)
def test_another_tensorflow_gets_another_library(
    folder: Path, make_compiler: MakeCompiler, change: dict[str, object]
) -> None:
    import dataclasses

    make_compiler()
    other = dataclasses.replace(INSTALL, **change)  # type: ignore[arg-type]
    assert build.ensure_built(INSTALL).library != build.ensure_built(other).library


def test_the_same_tensorflow_elsewhere_shares_the_library(
    folder: Path, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    import dataclasses

    make_compiler()
    flags = ("-I/other/include", "-D_GLIBCXX_USE_CXX11_ABI=1")
    other = dataclasses.replace(INSTALL, compile_flags=flags, link_flags=("-L/other/lib",))
    assert build.ensure_built(INSTALL).library == build.ensure_built(other).library
    assert len(calls(tmp_path)) == 1


def test_another_compiler_or_source_gets_another_library(
    folder: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler(version="1.0")
    first = build.ensure_built(INSTALL).library
    make_compiler(version="2.0")
    second = build.ensure_built(INSTALL).library
    monkeypatch.setattr(build, "source_hash", lambda: "changed")
    third = build.ensure_built(INSTALL).library
    assert len({first, second, third}) == 3


def test_processes_that_race_compile_once(
    folder: Path, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler('sleep 1; echo library > "$out"')
    code = (
        "from pytest_tfdevice.simulator import TensorFlowInstall, ensure_built\n"
        f"print(ensure_built({INSTALL!r}, print).library)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment)
        for _ in range(4)
    ]
    outputs = [process.communicate(timeout=60)[0].decode().splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * 4
    assert len(calls(tmp_path)) == 1
    assert len({output[-1] for output in outputs}) == 1
    said = [line for output in outputs for line in output[:-1]]
    assert sum(line.startswith("compiling") for line in said) == 1


def test_a_compiler_that_is_killed_leaves_nothing_behind(
    folder: Path, make_compiler: MakeCompiler
) -> None:
    make_compiler('echo half > "$out"; kill -9 $$')
    with pytest.raises(SimulatorError, match="exit status -9"):
        build.ensure_built(INSTALL)
    assert [path.suffix for path in folder.iterdir()] == [".lock"]


# --- the compiler -------------------------------------------------------------------------------


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SimulatorError, match=r"no C\+\+ compiler found.*apt-get install g\+\+"):
        build.ensure_built(INSTALL)


def test_a_compiler_in_cxx_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(SimulatorError, match=r"\$CXX is 'no-such-compiler -O2'"):
        build.ensure_built(INSTALL)


def test_a_compiler_that_does_not_run(
    folder: Path, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler().write_text("#!/bin/sh\necho licence expired\nexit 3\n")
    with pytest.raises(SimulatorError, match="exit status 3: licence expired"):
        build.ensure_built(INSTALL)


def test_the_first_compiler_on_the_path_is_taken(
    folder: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_compiler(name="clang++", version="clang")
    make_compiler(name="c++", version="c++")
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    # g++ comes first where the machine has one.
    expected = "fake c++ c++"
    found = build.find_compiler()
    assert found.identity == expected or found.command == ("g++",)


def test_cxx_may_have_arguments(
    folder: Path, make_compiler: MakeCompiler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = make_compiler()
    monkeypatch.setenv("CXX", f"env {script}")
    assert build.ensure_built(INSTALL).compiler == f"env {script} (fake c++ 1.0)"


def test_a_failed_compilation_shows_the_compilers_errors(
    folder: Path, make_compiler: MakeCompiler
) -> None:
    make_compiler("echo 'in file x.h:'; echo 'x.h:1: error: no such type' >&2; exit 1")
    with pytest.raises(SimulatorError) as caught:
        build.ensure_built(INSTALL)
    message = str(caught.value)
    assert "exit status 1" in message
    assert "x.h:1: error: no such type" in message
    assert str(build.SOURCE) in message, "the command, to try it by hand"


def test_a_compiler_that_writes_nothing(folder: Path, make_compiler: MakeCompiler) -> None:
    make_compiler("exit 0")
    with pytest.raises(SimulatorError, match="wrote no library"):
        build.ensure_built(INSTALL)


# --- where the cache is ------------------------------------------------------------------------


def test_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cache.CACHE_VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.cache_folder() == tmp_path / ".cache/pytest-tfdevice/simulator"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert cache.cache_folder() == tmp_path / ".cache/pytest-tfdevice/simulator"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.cache_folder() == tmp_path / "xdg/pytest-tfdevice/simulator"
    monkeypatch.setenv(cache.CACHE_VARIABLE, "~/mine")
    assert cache.cache_folder() == tmp_path / "mine/simulator"


# --- arguments and platform, checked before TensorFlow is imported --------------------------------


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_a_bad_count(count: object) -> None:
    with pytest.raises(SimulatorError, match="must be 1 or more"):
        simulator.load(count)  # type: ignore[arg-type]


@pytest.mark.parametrize("memory", ["lots", "16 GX", -1, "", "1000 KiB", 0])
def test_a_bad_memory(memory: object) -> None:
    with pytest.raises(SimulatorError, match="memory of a simulated GPU"):
        simulator.load(1, memory)  # type: ignore[arg-type]


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("win32", "AMD64")])
def test_other_platforms(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    for attempt in (simulator.load, simulator.load_on_import):
        with pytest.raises(SimulatorError, match="works on Linux"):
            attempt()


def test_a_version_without_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_module, "_import_tensorflow", lambda: INSTALL)
    with pytest.raises(SimulatorError, match=r"TensorFlow 2\.12 to 2\.21"):
        simulator.load()


def test_nothing_is_loaded_here() -> None:
    assert simulator.loaded() is None
    assert not simulator.is_simulated("GPU:0")


# --- the commands -------------------------------------------------------------------------------


def test_clean_removes_what_was_built_and_nothing_else(
    folder: Path, make_compiler: MakeCompiler, capsys: pytest.CaptureFixture[str]
) -> None:
    make_compiler()
    build.ensure_built(INSTALL)
    (folder / "notes.txt").write_text("mine")
    (folder / "compiling-abc").mkdir()
    assert commands.clean() == 0
    assert "removed 1 compiled libraries" in capsys.readouterr().out
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    assert commands.clean() == 0
    assert "removed 0" in capsys.readouterr().out


def test_info_says_what_is_missing(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(commands, "find_tensorflow", lambda: ("2.11.0", Path("/somewhere")))
    assert commands.info() == 1
    output = capsys.readouterr().out
    assert "2.11.0 in /somewhere" in output
    assert "problem: there is no kernel table for TensorFlow 2.11.0" in output
    assert "problem: no C++ compiler found" in output
    assert "not made yet" in output


def test_info_lists_what_is_built(
    folder: Path,
    make_compiler: MakeCompiler,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_compiler()
    built = build.ensure_built(INSTALL)
    monkeypatch.setattr(commands, "find_tensorflow", lambda: ("2.21.0", Path("/somewhere")))
    began = time.monotonic()
    status = commands.info()
    assert time.monotonic() - began < 5
    output = capsys.readouterr().out
    assert f"for TensorFlow 2.99.0 ({built.library.name})" in output
    assert "of TensorFlow 2.21.0, 6191 kernels" in output
    if sys.platform == "linux":
        assert status == 0


def test_build_without_tensorflow(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "find_tensorflow", lambda: None)
    assert commands.build() == 1
    assert "error: TensorFlow isn't installed" in capsys.readouterr().out
