"""Capturing descriptors 1 and 2: real descriptors, real C stdio, no TensorFlow.

The scripts run as processes of their own, so that what reaches *their* descriptors can be seen
whatever capture mode this test run itself uses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import pytest_tfdevice

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX descriptors")

# Where the package that is tested lies: the source tree, or tox's site-packages.
ROOT = Path(pytest_tfdevice.__file__).resolve().parents[1]

PRELUDE = """
import ctypes, os, sys
from pytest_tfdevice.capture.output import OutputCapture
libc = ctypes.CDLL(None)
def printf(text):
    libc.printf(b"%s", text.encode())
def drop(data):
    return b"".join(l for l in data.splitlines(keepends=True) if not l.startswith(b"LOG"))
def descriptors():
    return sorted(os.listdir("/dev/fd"))
"""


def run(
    script: str, *, unbuffered: bool = False, shell: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs ``script`` after the prelude; ``shell`` is a redirection such as ``>&-``."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    env["PYTHONPATH"] = str(ROOT)
    if unbuffered:
        env["PYTHONUNBUFFERED"] = "1"
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script)]
    if shell is not None:
        command = ["sh", "-c", f'"$@" {shell}', "sh", *command]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(params=[False, True], ids=["buffered", "unbuffered"])
def unbuffered(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_c_stdio_of_the_stretch_is_captured_and_none_from_before_or_after(unbuffered: bool) -> None:
    done = run(
        """
        printf("before\\n")
        with OutputCapture(lambda data: b"") as capture:
            printf("inside\\n")
        printf("after\\n")
        sys.stderr.write(repr(capture.stdout))
        """,
        unbuffered=unbuffered,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == repr(b"inside\n")
    assert done.stdout == "before\nafter\n"


def test_user_output_comes_back_in_order_without_the_log(unbuffered: bool) -> None:
    done = run(
        """
        print("1 python")
        printf("2 c\\n")
        with OutputCapture(drop) as capture:
            print("3 python"); sys.stdout.flush()
            printf("LOG one\\n4 c\\n"); libc.fflush(None)
            os.write(1, b"5 raw\\n")
            os.system("echo 6 child")
            printf("LOG two\\n")
            print("LOG err", file=sys.stderr)
            print("e1", file=sys.stderr)
        print("7 python")
        print("e2", file=sys.stderr)
        assert capture.stdout.count(b"LOG") == 2, capture.stdout
        assert capture.stderr == b"LOG err\\ne1\\n"
        assert capture.problem is None
        """,
        unbuffered=unbuffered,
    )
    assert done.returncode == 0, done.stderr
    assert [line[0] for line in done.stdout.splitlines() if line[0] != "2"] == list("134567")
    assert "2 c" in done.stdout.split("3 python")[0]
    assert done.stderr == "e1\ne2\n"


@pytest.mark.parametrize("shell", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_descriptors_stay_closed_and_are_captured_meanwhile(
    shell: str, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    done = run(
        f"""
        def closed(fd):
            try:
                os.fstat(fd)
            except OSError:
                return True
            return False
        was = [closed(fd) for fd in (0, 1, 2)]
        with OutputCapture() as capture:
            os.write(1, b"out"); os.write(2, b"err"); printf("C")
        now = [closed(fd) for fd in (0, 1, 2)]
        with open({str(note)!r}, "w") as file:
            file.write(repr((was == now, capture.stdout, capture.stderr, capture.problem)))
        """,
        shell=shell,
    )
    assert done.returncode == 0, done.stderr
    assert note.read_text() == repr((True, b"outC", b"err", None))
    assert done.stdout == ("" if ">&-" in shell.replace("2>&-", "") else "outC")
    assert done.stderr == ("" if "2>&-" in shell else "err")


@pytest.mark.parametrize("error", ["ValueError", "KeyboardInterrupt", "SystemExit"])
def test_an_exception_restores_and_gives_back(error: str) -> None:
    done = run(
        f"""
        capture = OutputCapture(drop)
        try:
            with capture:
                printf("LOG\\nmine\\n")
                raise {error}("x")
        except {error}:
            printf("after\\n")
        assert capture.stdout == b"LOG\\nmine\\n"
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "mine\nafter\n"


def test_nested_captures_each_see_their_stretch_and_give_back_once() -> None:
    done = run(
        """
        with OutputCapture(drop) as outer:
            printf("a\\nLOG 1\\n")
            with OutputCapture(drop) as inner:
                printf("b\\nLOG 2\\n")
            printf("c\\n")
        assert inner.stdout == b"b\\nLOG 2\\n", inner.stdout
        assert outer.stdout == b"a\\nLOG 1\\nb\\nLOG 2\\nc\\n", outer.stdout
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "a\nb\nc\n"


def test_no_descriptor_leaks() -> None:
    done = run(
        """
        with OutputCapture():
            pass
        was = descriptors()
        for turn in range(50):
            with OutputCapture(), OutputCapture():
                printf("x")
        assert descriptors() == was, (was, descriptors())
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "x" * 50


def test_threads_share_a_capture_and_never_wait_for_each_other() -> None:
    done = run(
        """
        import threading
        first_in, second_out = threading.Event(), threading.Event()
        seen = {}
        def first():
            with OutputCapture(drop) as capture:
                printf("one\\nLOG 1\\n")
                first_in.set()
                assert second_out.wait(20)          # the second needs no leave of the first
            seen["first"] = capture.stdout
        def second():
            assert first_in.wait(20)
            with OutputCapture(drop) as capture:
                printf("two\\nLOG 2\\n")
            seen["second"] = capture.stdout
            second_out.set()
        threads = [threading.Thread(target=f) for f in (first, second)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert seen["second"] == b"two\\nLOG 2\\n", seen
        assert seen["first"] == b"one\\nLOG 1\\ntwo\\nLOG 2\\n", seen
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "one\ntwo\n"


def test_captures_may_end_in_any_order() -> None:
    done = run(
        """
        a, b = OutputCapture(drop), OutputCapture(drop)
        a.__enter__(); printf("1\\n"); b.__enter__(); printf("2\\nLOG\\n")
        a.__exit__(None, None, None); printf("3\\n")
        b.__exit__(None, None, None); printf("4\\n")
        assert a.stdout == b"1\\n2\\nLOG\\n" and b.stdout == b"2\\nLOG\\n3\\n", (a.stdout, b.stdout)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n2\n3\n4\n"


def test_somebody_elses_redirection_inside_is_respected_and_reported() -> None:
    done = run(
        """
        with OutputCapture() as capture:
            theirs = os.open("/dev/null", os.O_WRONLY)
            os.dup2(theirs, 1)
        assert "pointed elsewhere" in capture.problem, capture.problem
        assert os.path.sameopenfile(1, theirs)
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_capture_under_somebody_elses_redirection_still_works() -> None:
    done = run(
        """
        saved = os.dup(1)
        with OutputCapture() as outer:
            ours = os.dup(1); os.dup2(saved, 1)     # what capfd.disabled() does
            with OutputCapture(drop) as inner:
                printf("LOG\\nmine\\n")
            os.dup2(ours, 1)
            printf("later\\n")
        assert inner.stdout == b"LOG\\nmine\\n", inner.stdout
        assert outer.stdout == b"later\\n" and outer.problem is None
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "mine\nlater\n"


def test_a_reopened_stdout_appends() -> None:
    done = run(
        """
        with OutputCapture() as capture:
            os.write(1, b"one ")
            os.system("echo two >> /dev/fd/1")      # a position of its own
            os.write(1, b"three")
        assert capture.stdout == b"one two\\nthree", capture.stdout
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_capture_object_is_not_entered_twice() -> None:
    done = run(
        """
        capture = OutputCapture()
        with capture:
            try:
                capture.__enter__()
            except RuntimeError as error:
                print("refused:", error, file=sys.stderr)
        with capture:                               # again, one after the other, is fine
            printf("x")
        assert capture.stdout == b"x"
        """
    )
    assert done.returncode == 0, done.stderr
    assert "refused: this capture is already running" in done.stderr


@pytest.mark.parametrize("mode", ["fd", "sys", "tee-sys", "no"])
def test_under_every_capture_mode_of_pytest(mode: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        PRELUDE
        + textwrap.dedent(
            """
            def test_left_over():
                printf("left over\\n")

            def test_capture(capfd):
                with OutputCapture(drop) as capture:
                    printf("LOG c\\nmine c\\n")
                    print("mine python")
                assert b"LOG c\\nmine c\\n" in capture.stdout
                assert b"left over" not in capture.stdout
                out = capfd.readouterr().out
                assert "mine c" in out and "mine python" in out and "LOG" not in out

            def test_python_level(capsys):
                with OutputCapture(drop) as capture:
                    printf("LOG c\\n")
                    print("mine python")
                assert capture.stdout == b"LOG c\\n"
                assert capsys.readouterr().out == "mine python\\n"

            def test_fails():
                with OutputCapture(drop):
                    printf("LOG c\\nshown c\\n")
                    print("shown python")
                assert False
            """
        )
    )
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONUNBUFFERED", "PYTEST_ADDOPTS")}
    env["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [
            sys.executable,
            *["-m", "pytest", "-p", "no:cacheprovider", "-p", "no:tfdevice", "-q"],
            f"--capture={mode}",
            str(tmp_path),
        ],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "1 failed, 3 passed" in done.stdout, done.stdout + done.stderr
    assert "LOG c" not in done.stdout.split("def test_fails")[0]
    assert "shown python" in done.stdout
    assert "shown c" in done.stdout.replace("shown c\\n", "")
