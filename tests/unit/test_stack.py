"""From a stack to lines of the user's code; needs no TensorFlow."""

from __future__ import annotations

import gc
import sys
import threading
from pathlib import Path

from pytest_tfdevice.capture import stack

SOURCE = "def f():\n" + "    x = [(1, 2), {3: [4, (5, 6)]}]\n" * 300
SOURCE += "    with tf.device('/CPU:0'):\n        g()\n"


def _callback(*_: object) -> None:
    sum(range(100))


def test_threads_may_look_for_scopes_at_once(tmp_path: Path) -> None:
    """CPython 3.11 raises a SystemError where two threads parse at once."""
    found: list[object] = []

    def work(name: str) -> None:
        for number in range(10):
            file = tmp_path / f"{name}_{number}.py"
            file.write_text(SOURCE)
            try:
                source = stack.scope_opener([(str(file), 303, "f")])
            except BaseException as error:
                found.append(error)
            else:
                found.append(source.line if source is not None else None)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    # Threads change places where Python runs inside the parser: in callbacks of the collector.
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(_callback)
    sys.setswitchinterval(1e-6)
    gc.set_threshold(100)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.remove(_callback)
        sys.setswitchinterval(interval)
        gc.set_threshold(*threshold)
    assert found == [302] * 80
