"""What starting pytest costs with the plugin: ``python benchmarks/startup/measure.py [PAIRS]``.

Starts pytest on one empty test, with the plugin and with ``-p no:tfdevice``, in turns, so that what
else the machine does hits both alike.  Run it in an environment where the plugin is installed; the
test needs no TensorFlow, and the measurement ends with an error where it was imported.
"""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEST = """
import sys

def test_nothing():
    assert "tensorflow" not in sys.modules
"""
VARIANTS = {"with": (), "without": ("-p", "no:tfdevice")}


def start(folder: str, options: tuple[str, ...]) -> tuple[float, float]:
    """Seconds by the clock, and of the CPU, that one run took."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    # pytest rewrites the assertions of every module of a plugin, and keeps what came of it as
    # bytecode; where none may be written it does so at each start.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    cpu = -children_cpu()
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env=environment, stdout=subprocess.DEVNULL)
    clock = time.perf_counter() - begin
    return clock, cpu + children_cpu()


def children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(pairs: int) -> None:
    """Prints the medians, and the median of the difference within a pair."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "pytest.ini").write_text("[pytest]\n")
        Path(folder, "test_nothing.py").write_text(TEST)
        for number in range(pairs + 1):
            # Whichever comes second finds warmer caches: take turns at that, too.
            for name in VARIANTS if number % 2 else reversed(VARIANTS):
                taken = start(folder, VARIANTS[name])
                if number:  # the first pair compiles bytecode
                    found[name].append(taken)
    print(f"{platform.python_implementation()} {platform.python_version()}, {pairs} pairs")
    for index, kind in enumerate(("clock", "CPU")):
        columns = {name: [taken[index] * 1000 for taken in found[name]] for name in VARIANTS}
        differences = [a - b for a, b in zip(columns["with"], columns["without"], strict=True)]
        low, middle, high = statistics.quantiles(differences, n=4)
        medians = ", ".join(f"{statistics.median(c):.0f} ms {n}" for n, c in columns.items())
        print(
            f"{kind:5}  {medians}; difference {middle:.1f} ms (half of all: {low:.1f} … {high:.1f})"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
