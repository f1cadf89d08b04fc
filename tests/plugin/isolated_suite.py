"""The suite of the tests of ``gpu_memory(isolated=True)`` that need no TensorFlow."""

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
