"""How an isolated test, its process, or the run that waits for it may end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from isolated_suite import CONFTEST
from pytest_process import HERE, QUICK, ROOT, run_pytest

STOPS = """
import os, time, pytest
from pathlib import Path

isolated = pytest.mark.gpu_memory(isolated=True)

@isolated
def test_exits(): pytest.exit("that will do", 7)

@pytest.fixture
def clean():
    yield
    Path(__file__).with_name("cleaned").write_text("")

@isolated
def test_hangs(clean):
    print("about to hang", flush=True)
    Path(__file__).with_name("started").write_text(str(os.getpid()))
    time.sleep(200)

def test_never(): pass
"""


def test_a_test_that_exits_ends_the_run(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": STOPS})
    assert run.status == 7
    assert "that will do" in run.stdout
    assert run.tests == {} or "test_it.py::test_never" not in run.tests


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ("raise KeyboardInterrupt", pytest.ExitCode.INTERRUPTED, "KeyboardInterrupt"),
        ("request.session.shouldstop = 'enough'", pytest.ExitCode.INTERRUPTED, "enough"),
    ],
)
def test_other_ways_to_end_the_run(tmp_path: Path, body: str, status: int, text: str) -> None:
    suite = (
        "import pytest\n@pytest.mark.gpu_memory(isolated=True)\n"
        f"def test_it(request):\n    {body}\ndef test_never(): pass\n"
    )
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": suite})
    assert run.status == status
    assert text in run.stdout
    assert "test_it.py::test_never" not in run.tests


TROUBLE = """
import os, threading, time, pytest

isolated = pytest.mark.gpu_memory(isolated=True)

@isolated
@pytest.mark.parametrize("x", [1], ids=[str(os.getpid())])
def test_changing_id(x): pass

@isolated
def test_leaves_a_thread():
    threading.Thread(target=time.sleep, args=(100,)).start()
"""


def test_a_process_that_does_not_end_or_does_not_find_its_test(tmp_path: Path) -> None:
    shorter = "\nfrom pytest_tfdevice.isolation import process\nprocess.EXIT_GRACE = 2\n"
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST + shorter, "test_it.py": TROUBLE})
    lost, left = run.tests.values()
    assert (lost.outcome, left.outcome) == ("error", "error")
    assert "it is not among the 2 tests that were found there" in lost.said
    assert "was killed because it did not end within 2 s after the test had ended" in left.said


def test_a_module_that_only_the_run_can_import(tmp_path: Path) -> None:
    suite = """
    import os, pytest
    if "IMPORTED" in os.environ:
        raise RuntimeError("imported a second time")
    os.environ["IMPORTED"] = "1"

    @pytest.mark.gpu_memory(isolated=True)
    def test_it(): pass
    """
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": suite})
    assert run["test_it"].outcome == "error"
    assert "RuntimeError: imported a second time" in run["test_it"].text


def started(folder: Path) -> subprocess.Popen[str]:
    """A run in which ``test_hangs`` hangs."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(STOPS)
    running = subprocess.Popen(
        [sys.executable, "-m", "pytest", *QUICK, "-k", "not exits"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(ROOT)])},
        stdout=subprocess.PIPE,
        text=True,
        # What a shell starts in the background ignores Ctrl-C, and so would this run.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (folder / "started").exists() or not (folder / "started").read_text():
        assert time.monotonic() < deadline, "the test never started"
        time.sleep(0.05)
    return running


def test_an_interrupted_run_ends_its_process(tmp_path: Path) -> None:
    running = started(tmp_path)
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=60)
    assert running.returncode == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in output
    assert (tmp_path / "cleaned").exists()
    assert_gone(int((tmp_path / "started").read_text()))


def test_a_run_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    running = started(tmp_path)
    running.kill()
    running.communicate(timeout=60)
    assert_gone(int((tmp_path / "started").read_text()))


def assert_gone(process: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    os.kill(process, signal.SIGKILL)
    pytest.fail("the process of the test is still there")


@pytest.mark.skipif(importlib.util.find_spec("pytest_timeout") is None, reason="needs the plugin")
def test_a_timeout_ends_the_process(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_it.py": STOPS}
    run = run_pytest(tmp_path, files, "--timeout=4", "-k", "not exits")
    assert run["test_hangs"].outcome == "failed"
    assert "Timeout" in run["test_hangs"].text
    assert dict(run["test_hangs"].sections)["Captured stdout call"] == "about to hang\n"
    assert run["test_never"].outcome == "passed"
    assert_gone(int((tmp_path / "started").read_text()))
