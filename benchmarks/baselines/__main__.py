"""Are baselines the same byte for byte?  ``python -m benchmarks.baselines [PYTHON …]``.

Records the baselines of ten models of ``keras.applications`` on the simulated GPU: in five runs
with each Python that is given (this one where none is), with and without oneDNN, each run a process
of its own; in it with functions that are traced while they are watched (*cold*), and with functions
that ran before (*warm*); and the same on the CPU, for inference alone.  Prints which tests'
baselines differ.  Exit status 1 where one does, or where a test failed.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUITE = Path(__file__).parent / "suite"
STATES = {"GPU": ("cold", "warm"), "CPU": ("cpu_cold", "cpu_warm")}
"""Folders of the suite whose baselines have to be the same, by device."""
VERSIONS = """
import importlib.metadata, platform, tensorflow
keras = importlib.metadata.version("keras")
print(f"Python {platform.python_version()}, TensorFlow {tensorflow.__version__}, Keras {keras}")
"""


@dataclass(frozen=True)
class Run:
    """A process that records the baselines of some devices."""

    python: str
    onednn: str
    devices: tuple[str, ...]

    def record(self, folder: Path) -> str:
        """Records into ``folder``; what pytest said where it failed, else its last line."""
        environment = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": self.onednn}
        environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        command = [self.python, "-m", "pytest", "-q", "-W", "ignore", "--tfdevice-simulate=1"]
        command += ["--tfdevice-baseline=create", f"--tfdevice-baseline-dir={folder}"]
        command += [state for device in self.devices for state in STATES[device]]
        done = subprocess.run(
            command, cwd=SUITE, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return done.stdout + done.stderr
        return done.stdout.strip().splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.baselines", description=__doc__)
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--device", choices=STATES, action="append", help="both by default")
    parser.add_argument("--keep", type=Path, help="a folder for the baselines")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        begin = time.monotonic()
        for number, python in enumerate(given.pythons):
            print(f"python {number}: {_versions(python)}", flush=True)
        devices = tuple(given.device or STATES)
        failed = _record(given.pythons, given.runs, devices, folder)
        print(f"{time.monotonic() - begin:.0f} s, load average {os.getloadavg()[2]:.1f}")
        return max(failed, *(compare(folder, device) for device in devices))


def _versions(python: str) -> str:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.check_output([python, "-c", VERSIONS], text=True, env=environment).strip()


def _record(pythons: list[str], runs: int, devices: tuple[str, ...], folder: Path) -> int:
    failed = 0
    for number, (index, python), onednn in itertools.product(
        range(1, runs + 1), enumerate(pythons), "10"
    ):
        name = f"python {index}, oneDNN {onednn}, run {number}"
        said = Run(python, onednn, devices).record((folder / name).absolute())
        print(f"{name}: {said}", flush=True)
        failed |= " passed" not in said or " failed" in said
    return failed


def compare(folder: Path, device: str) -> int:
    """Prints how many different texts each file and each test has; 1 where any has two."""
    files = sorted(p for state in STATES[device] for p in folder.glob(f"*/{state}/*.json"))
    texts = {path: path.read_bytes() for path in files}
    kinds = {hashlib.sha256(text).hexdigest()[:12] for text in texts.values()}
    tests: dict[str, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path, text in texts.items():
        for test, entry in json.loads(text)["tests"].items():
            tests[test][json.dumps(entry)].append(path)
    different = {test: variants for test, variants in tests.items() if len(variants) > 1}
    for test, variants in sorted(different.items()):
        print(f"{test}: {len(variants)} variants")
        for line in _first_difference(variants):
            print(f"  {line}")
    size = max(map(len, texts.values()), default=0)
    print(
        f"{device}: {len(texts)} files of {len(tests)} tests, {size:,} bytes each: "
        f"{len(kinds)} different" + (f", {len(different)} tests differ" if different else "")
    )
    return int(len(kinds) != 1)


def _first_difference(variants: dict[str, list[Path]]) -> Iterator[str]:
    """What only some have, for each variant, and where it comes from."""
    found = {text: _operations(text) for text in variants}
    common = set.intersection(*found.values())
    for text, paths in variants.items():
        where = ", ".join(sorted("/".join(path.parts[-3:-1]) for path in paths)[:3])
        yield f"{len(paths)} of them ({where} …)"
        for operation in sorted(found[text] - common)[:3]:
            yield f"  {operation}"


def _operations(text: str) -> set[str]:
    return {
        json.dumps(operation)
        for environment in json.loads(text).values()
        for operation in environment["operations"]
    }


if __name__ == "__main__":
    sys.exit(main())
