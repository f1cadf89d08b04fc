"""``gpu_memory(isolated=True)``: a test in a process of its own is like any other.

Without TensorFlow, of which each process would have to be told anew.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from pytest_process import HERE, QUICK, ROOT, Run, one_line, run_pytest

CONFTEST = """
from pytest_tfdevice.testwatch import TestWatch

# Not one of these tests needs a GPU: so none has to import TensorFlow to see that it is there.
TestWatch.skip_reason = lambda self, item: None
"""

SUITE = """
import atexit, logging, os, signal, sys, time, unittest, warnings
from pathlib import Path
import pytest

isolated = pytest.mark.gpu_memory(isolated=True)

@pytest.fixture(scope="module")
def shared():
    print("set up in", os.getpid())
    yield os.getpid()
    print("torn down in", os.getpid())

def test_before(shared):
    assert os.getpid() == shared
    os.environ["OF_THE_RUN"] = str(os.getpid())

@isolated
def test_pass(shared, record_property):
    assert os.getpid() == shared != int(os.environ["OF_THE_RUN"])
    record_property("odd", Odd())
    record_property("plain", 7)
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.system("echo of a program")
    logging.warning("a log line")
    warnings.warn("a warning of its own")

class Odd:
    def __repr__(self): return "an odd one"

@isolated
def test_fail(shared):
    print("before it failed")
    assert shared == 2

@isolated
@pytest.mark.xfail(strict=True, reason="known")
def test_xfail(): assert False

@isolated
@pytest.mark.xfail(strict=True)
def test_xpass_strict(): pass

@isolated
@pytest.mark.xfail(strict=False)
def test_xpass(): pass

@isolated
def test_skip(): pytest.skip("not today")

@isolated
@pytest.mark.skip(reason="by mark")
def test_skip_mark(): raise AssertionError("must not run")

@isolated
@pytest.mark.parametrize("x", ["a::b[c]", "sp ace/ß\\n", "", "-k", "@file", "]"])
def test_odd(x): pass

@pytest.fixture
def broken(): raise RuntimeError("in the fixture")

@isolated
def test_setup_raises(broken): pass

@pytest.fixture
def broken_late():
    yield
    raise RuntimeError("in the teardown")

@isolated
def test_teardown_raises(broken_late): pass

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.pid = os.getpid()

    def test_here(self): assert self.pid == os.getpid()

    @isolated
    def test_method(self): self.assertEqual(self.pid, os.getpid())

    @isolated
    def test_method_fails(self): self.assertEqual(1, 2)

@isolated
def test_segfault():
    print("its last words")
    os.kill(os.getpid(), signal.SIGSEGV)

@isolated
def test_killed(): os.kill(os.getpid(), signal.SIGKILL)

@isolated
@pytest.mark.xfail
def test_leaves():
    print("its last words")
    os._exit(0)

@pytest.fixture
def deadly(): os._exit(3)

@isolated
def test_leaves_in_setup(deadly): pass

@isolated
def test_dies_afterwards(): atexit.register(os.abort)

@isolated
@pytest.mark.filterwarnings("ignore")
def test_leaves_a_process_behind():
    left = os.fork()
    if not left:
        time.sleep(30)
        os._exit(0)
    Path(__file__).with_name("left").write_text(str(left))

def test_is_not_waited_for():
    left = int(Path(__file__).with_name("left").read_text())
    os.kill(left, 0)
    os.kill(left, signal.SIGKILL)

@isolated
def test_temporary(tmp_path): (tmp_path / "file").write_text("")

@pytest.fixture(scope="module")
def broken_at_the_end():
    yield
    raise RuntimeError("the module's end")

def test_uses_it(shared, broken_at_the_end, tmp_path):
    assert os.getpid() == shared == int(os.environ["OF_THE_RUN"])

@isolated
def test_last(): pass
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("isolated")


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    return run_pytest(
        folder,
        {"conftest.py": CONFTEST, "test_it.py": SUITE},
        "-rP",
        f"--junitxml={folder / 'junit.xml'}",
        f"--basetemp={folder / 'temporary'}",
    )


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("test_before", "passed"),
        ("test_pass", "passed"),
        ("test_fail", "failed"),
        ("test_xfail", "xfailed"),
        ("test_xpass_strict", "failed"),
        ("test_xpass", "xpassed"),
        ("test_skip", "skipped"),
        ("test_skip_mark", "skipped"),
        ("test_odd[a::b[c]]", "passed"),
        ("test_odd[sp ace/\\xdf\\n]", "passed"),
        ("test_odd[]", "passed"),
        ("test_odd[-k]", "passed"),
        ("test_odd[@file]", "passed"),
        ("test_odd[]]", "passed"),
        ("test_setup_raises", "error"),
        ("test_teardown_raises", "error"),
        ("test_here", "passed"),
        ("test_method", "passed"),
        ("test_method_fails", "failed"),
        ("test_segfault", "failed"),
        ("test_killed", "failed"),
        ("test_leaves", "failed"),
        ("test_leaves_in_setup", "error"),
        ("test_dies_afterwards", "error"),
        ("test_leaves_a_process_behind", "passed"),
        ("test_is_not_waited_for", "passed"),
        ("test_temporary", "passed"),
        ("test_uses_it", "passed"),
        ("test_last", "error"),
    ],
)
def test_outcomes(run: Run, name: str, outcome: str) -> None:
    assert run[name].outcome == outcome, run[name]


def test_output_warnings_and_properties_are_the_tests(run: Run, folder: Path) -> None:
    sections = dict(run["test_pass"].sections)
    assert sections["Captured stdout call"].split("\n")[:2] == ["to stdout", "of a program"]
    assert sections["Captured stderr call"] == "to stderr\n"
    assert "a log line" in sections["Captured log call"]
    assert "set up in" in sections["Captured stdout setup"]
    assert "test_it.py::test_pass" in run.stdout.split("= warnings summary =")[1]
    assert "UserWarning: a warning of its own" in run.said
    assert 'name="odd" value="an odd one"' in (folder / "junit.xml").read_text()


def test_failures_are_pytests_own(run: Run) -> None:
    assert "assert shared == 2" in run["test_fail"].text
    assert dict(run["test_fail"].sections)["Captured stdout call"] == "before it failed\n"
    assert "RuntimeError: in the fixture" in run["test_setup_raises"].text
    assert "RuntimeError: in the teardown" in run["test_teardown_raises"].text
    assert run["test_skip"].text.endswith("not today")
    assert run["test_skip_mark"].text.endswith("by mark")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_segfault", "died by SIGSEGV before the test's body had ended"),
        ("test_killed", "died by SIGKILL before the test's body had ended"),
        ("test_leaves", "ended with exit status 0 before the test's body had ended"),
        ("test_leaves_in_setup", "ended with exit status 3 before its setup had ended"),
        ("test_dies_afterwards", "died by SIGABRT after the test had ended"),
    ],
)
def test_a_process_that_dies_is_the_tests_failure(run: Run, name: str, text: str) -> None:
    assert f"test_it.py::{name} ran in a process of its own (isolated=True), which {text}" in (
        one_line(run[name].text)
    )


def test_the_last_output_of_a_process_that_died(run: Run) -> None:
    sections = dict(run["test_segfault"].sections)
    assert sections["Captured stdout call"] == "its last words\n"
    assert "Segmentation fault" in sections["Captured stderr call"]
    assert "in test_segfault" in sections["Captured stderr call"]
    assert dict(run["test_leaves"].sections)["Captured stdout call"] == "its last words\n"


def test_what_was_set_up_before_it_ends_after_it(run: Run) -> None:
    """Module fixtures of the run itself outlive an isolated test, and their end is reported."""
    assert "RuntimeError: the module's end" in run["test_last"].text
    assert run.stdout.count("set up in") >= 2


def test_temporary_folders_are_the_runs(run: Run, folder: Path) -> None:
    (file,) = (folder / "temporary").rglob("file")
    assert file.parent.name == "test_temporary0"
    assert list((folder / "temporary").glob("test_uses_it0"))


def test_junit_has_each_test_once(run: Run, folder: Path) -> None:
    cases = [case.get("name") for case in ElementTree.parse(folder / "junit.xml").iter("testcase")]
    assert len(cases) == len(set(cases)) == len(run.tests)


MORE = """
import os, pytest

isolated = pytest.mark.gpu_memory(isolated=True)

@isolated
def test_one(request):
    print("one", request.config.rootpath.name, request.config.getoption("verbose"), end=" ")
    print(request.config.getini("console_output_style"), os.environ.get("PYTEST_XDIST_WORKER"))

@isolated
def test_two():
    assert 0

@isolated
def test_three(): pass
"""


def test_live_output(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_it.py": MORE}
    options = ("-s", "-v", "-o", "console_output_style=count", "-k", "one", f"--rootdir={tmp_path}")
    run = run_pytest(tmp_path, files, *options)
    assert f"one {tmp_path.name} 1 count None" in run.stdout
    assert run.stdout.count("test session starts") == 1


def test_a_run_stops_at_the_first_failure(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": MORE}, "-x")
    assert list(run.tests) == ["test_it.py::test_one", "test_it.py::test_two"]
    assert "stopping after 1 failures" in run.stdout


def test_what_failed_last_is_remembered(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_it.py": MORE}
    cached = ("-p", "cacheprovider")
    run_pytest(tmp_path, files, *cached)
    assert list(run_pytest(tmp_path, files, *cached, "--lf").tests) == ["test_it.py::test_two"]


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="needs pytest-xdist")
def test_in_workers_of_xdist(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": SUITE + MORE}, "-n2", "-v")
    outcomes = {name: run[name].outcome for name in ("test_pass", "test_fail", "test_segfault")}
    assert outcomes == {"test_pass": "passed", "test_fail": "failed", "test_segfault": "failed"}
    assert "died by SIGSEGV" in run["test_segfault"].text
    assert "1 progress gw" in dict(run["test_one"].sections)["Captured stdout call"]
    assert "a warning of its own" in run.said


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_rerunfailures") is None, reason="needs pytest-rerunfailures"
)
def test_run_again(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST, "test_it.py": MORE}, "--reruns=2")
    assert "1 failed, 2 passed, 2 rerun" in run.stdout


ELSEWHERE = """
def pytest_addoption(parser):
    parser.addoption("--only-here", default="not given")
"""


INNER = """
import pytest

@pytest.mark.gpu_memory(isolated=True)
def test_inner(request):
    assert request.config.getoption("--only-here", "not given") == "{}"
"""


@pytest.mark.parametrize(
    ("folder", "named", "given"),
    [("inner", ("tests", "inner"), ("--only-here=yes",)), ("a[b]", (".",), ())],
)
def test_options_of_other_folders_and_paths_with_brackets(
    tmp_path: Path, folder: str, named: tuple[str, ...], given: tuple[str, ...]
) -> None:
    for name in (folder, "tests"):
        (tmp_path / name).mkdir()
    if given:
        (tmp_path / "tests" / "conftest.py").write_text(ELSEWHERE)
    text = INNER.format("yes" if given else "not given")
    (tmp_path / folder / "test_inner.py").write_text(text)
    run = run_pytest(tmp_path, {"conftest.py": CONFTEST}, *given, *named)
    assert run["test_inner"].outcome == "passed", run.output


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


COVERED = """
import os, sys
import measured, pytest

def test_a():
    measured.here()
    os.environ["OF_THE_RUN"] = str(os.getpid())

@pytest.mark.gpu_memory(isolated=True)
def test_b():
    measured.there()
    assert os.environ.get("OF_THE_RUN") != str(os.getpid())
    assert sys.orig_argv[1] == "-c"
"""


@pytest.mark.skipif(importlib.util.find_spec("pytest_cov") is None, reason="needs pytest-cov")
@pytest.mark.parametrize("more", [(), ("-n2",)])
def test_coverage_is_added_up(tmp_path: Path, more: tuple[str, ...]) -> None:
    if more and importlib.util.find_spec("xdist") is None:
        pytest.skip("needs pytest-xdist")
    files = {
        "conftest.py": CONFTEST,
        "measured.py": "def here():\n    return 1\n\ndef there():\n    return 2\n",
        "test_it.py": COVERED,
    }
    options = ("--cov=measured", "--cov-report=term-missing", "--cov-fail-under=100", *more)
    run = run_pytest(tmp_path, files, *options)
    assert run.status == 0, run.output
    assert "measured.py 4 0 100%" in run.said
    assert [file.name for file in tmp_path.glob(".coverage*")] == [".coverage"]


@pytest.mark.skipif(importlib.util.find_spec("pytest_timeout") is None, reason="needs the plugin")
def test_a_timeout_ends_the_process(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_it.py": STOPS}
    run = run_pytest(tmp_path, files, "--timeout=4", "-k", "not exits")
    assert run["test_hangs"].outcome == "failed"
    assert "Timeout" in run["test_hangs"].text
    assert dict(run["test_hangs"].sections)["Captured stdout call"] == "about to hang\n"
    assert run["test_never"].outcome == "passed"
    assert_gone(int((tmp_path / "started").read_text()))
