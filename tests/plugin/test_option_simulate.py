"""``--tfdevice-simulate``: what it gives, and each way in which it can't be had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pytest_process import Run, needs_simulator, run_pytest, run_simulated

needs_simulator()

SUITE = """
import sys
import pytest

def test_loaded_by_the_import(tf_devices):
    import tensorflow as tf
    print("DEVICES", tf_devices.kind, tf_devices.count, [i.memory for i in tf_devices.gpus])
    print("LOGICAL", len(tf.config.list_logical_devices("GPU")))
    from pytest_tfdevice import simulator
    print("LOADED", simulator.loaded(), simulator.is_simulated("GPU:0"))

@pytest.mark.requires_gpu
def test_marked(): pass
"""
PLAIN = "def test_plain(): pass\n"


@pytest.mark.parametrize(
    ("args", "ini", "devices"),
    [
        (["--tfdevice-simulate", "2:64 MiB"], "", f"simulated 2 {[64 * 2**20] * 2}"),
        ([], "tfdevice_simulate = 1", f"simulated 1 {[16 * 2**30]}"),
        (
            ["--tfdevice-simulate=1:1 GiB"],
            "tfdevice_simulate = 3:2 GiB",
            f"simulated 1 {[2**30]}",
        ),
        (["--tfdevice-simulate=0"], "tfdevice_simulate = 3:2 GiB", "none 0 []"),
    ],
)
def test_what_it_gives(tmp_path: Path, args: list[str], ini: str, devices: str) -> None:
    done = run_pytest(tmp_path, SUITE, "-rP", *args, ini=ini)
    assert done.status == 0, done.output
    assert f"DEVICES {devices}" in done.stdout
    count = devices.split()[1]
    assert f"LOGICAL {count}" in done.stdout
    assert ("LOADED None" in done.stdout) == (count == "0")
    assert done["test_marked"].outcome == ("skipped" if count == "0" else "passed")


def test_it_comes_before_any_conftest(tmp_path: Path) -> None:
    conftest = "import tensorflow as tf\nassert len(tf.config.list_logical_devices('GPU')) == 1\n"
    done = run_simulated(tmp_path, {"conftest.py": conftest, "test_it.py": SUITE})
    assert done.status == 0, done.output


EARLY = """
import tensorflow as tf
tf.exp([[1.0]])
"""
IMPORTED_ONLY = "import tensorflow as tf\ntf.config.list_physical_devices()\n"


def refused(done: Run, *says: str) -> None:
    assert done.status == pytest.ExitCode.USAGE_ERROR, done.output
    assert "ERROR: --tfdevice-simulate 1:1 GiB: " in done.stderr
    for text in says:
        assert text in done.said, done.stderr
    assert "Traceback" not in done.output


def test_tensorflow_initialised_by_a_plugin(tmp_path: Path) -> None:
    done = run_simulated(tmp_path, {"early.py": EARLY, "test_it.py": PLAIN}, "-p", "early")
    refused(done, "has initialised its devices already", "It is used by", "early (", "early.py)")


def test_tensorflow_imported_but_not_initialised(tmp_path: Path) -> None:
    files = {"early.py": IMPORTED_ONLY, "test_it.py": SUITE}
    done = run_simulated(tmp_path, files, "-p", "early", "-rP")
    assert done.status == 0, done.output
    assert "DEVICES simulated 1" in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unwritable to root")
def test_an_unwritable_cache(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    done = run_simulated(
        tmp_path / "suite", PLAIN, env={"PYTEST_TFDEVICE_CACHE": str(closed / "cache")}
    )
    refused(done, "the folder for the compiled library can't be used", "PYTEST_TFDEVICE_CACHE")


@pytest.mark.parametrize("variable", ["PYTEST_TFDEVICE_CACHE", "XDG_CACHE_HOME", "HOME"])
def test_a_cache_that_is_no_folder(tmp_path: Path, variable: str) -> None:
    file = tmp_path / "file"
    file.write_text("")
    unset = {"XDG_CACHE_HOME": None, "PYTEST_TFDEVICE_CACHE": None}
    done = run_simulated(tmp_path / "suite", PLAIN, env={**unset, variable: str(file)})
    refused(
        done,
        "the folder for the compiled library can't be used",
        str(file),
        "Set PYTEST_TFDEVICE_CACHE to a folder that you may write to",
    )


def test_a_cache_that_others_may_write_to(tmp_path: Path) -> None:
    shared = tmp_path / "cache" / "simulator"
    shared.mkdir(parents=True)
    shared.chmod(0o777)
    done = run_simulated(
        tmp_path / "suite", PLAIN, env={"PYTEST_TFDEVICE_CACHE": str(shared.parent)}
    )
    refused(done, "may be written to by other users")


def test_no_compiler(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    cache = str(tmp_path / "cache")
    env = {"PATH": str(empty), "CXX": None, "PYTEST_TFDEVICE_CACHE": cache}
    done = run_simulated(tmp_path / "suite", SUITE, env=env)
    refused(done, "no C++ compiler found", "apt-get install g++", "CXX")
    assert done.modules == []


def test_a_compiler_that_is_not_there(tmp_path: Path) -> None:
    done = run_simulated(tmp_path, PLAIN, env={"CXX": "no-such-compiler -O2"})
    refused(done, "$CXX is 'no-such-compiler -O2', but there is no such program")


def test_a_compiler_that_fails(tmp_path: Path) -> None:
    """Known only when TensorFlow has been imported; the run doesn't go on without its GPU."""
    fake = tmp_path / "fake-g++"
    fake.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo fake 1.0 && exit 0\n"
                    "echo 'error: no space left'; exit 1\n")  # fmt: skip
    fake.chmod(0o755)
    cache = str(tmp_path / "cache")
    env = {"CXX": str(fake), "PYTEST_TFDEVICE_CACHE": cache}
    suite = SUITE + "\n@pytest.mark.on_gpu\ndef test_on_gpu():\n    raise AssertionError('ran')\n"
    done = run_simulated(tmp_path / "suite", suite + "\n\ndef test_plain(): pass\n", env=env)
    assert "tfdevice: compiling the simulated GPU" in done.stdout
    assert done.stdout.count("compiling the simulated GPU for TensorFlow") == 1
    assert "compiling the simulated GPU failed" in done["test_marked"].said
    assert "Traceback" not in done["test_marked"].text
    assert "toolchain.py" not in done["test_marked"].text
    assert "no space left" in done.said
    assert done["test_marked"].outcome in ("failed", "error"), done.output
    assert done["test_on_gpu"].outcome in ("failed", "error"), done.output
    assert done["test_plain"].outcome == "passed"
    assert "AssertionError: ran" not in done.output


METADATA = """
import importlib.metadata
original = importlib.metadata.version
importlib.metadata.version = lambda name: "VERSION" if "tensorflow" in name else original(name)
"""


@pytest.mark.parametrize("version", ["2.11.1", "2.99.0", "3.0.0"])
def test_a_tensorflow_outside_the_range(tmp_path: Path, version: str) -> None:
    files = {"metadata.py": METADATA.replace("VERSION", version), "test_it.py": PLAIN}
    done = run_simulated(tmp_path, files, "-p", "metadata")
    refused(done, version, "2.12 to 2.21")
    assert done.modules == []
