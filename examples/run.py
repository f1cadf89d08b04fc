"""Runs the examples on the simulated GPU: ``python examples/run.py``.

First the healthy models, whose tests must pass; then the planted regressions, each of which must be
caught for the reason that was planted.  Exit code 0 says that both held.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLES = ("detection", "keras_training")


def line_of(file: str, text: str) -> str:
    """``detection/detector.py:24``, the line of ``file`` that holds ``text``."""
    lines = (HERE / file).read_text(encoding="utf-8").splitlines()
    return f"{file}:{next(n for n, line in enumerate(lines, 1) if text in line)}"


PLANTED = {
    "test_integer_masks": (
        "on CPU:0: dtype",
        "masked_sum (BatchMatMulV2)",
        "no GPU kernel for T=int32",
        line_of("detection/detector.py", "boxes, scores, _ = self._session.run("),
    ),
    "test_integer_counter": (
        "on CPU:0: dtype",
        "frames (VariableV2)",
        "no GPU kernel for dtype=int32",
        line_of("detection/detector.py", "frames = v1.Variable("),
    ),
    "test_left_on_the_cpu": (
        "25 of 25 operations that count ran on the CPU",
        "GPU:0's memory is 90 % reserved and 0 % used; 0 of 25 operations that count ran on it; "
        "100 % of the op time of Sessions was spent on CPU:0",
    ),
    "test_offloaded_head": (
        "on CPU:0: requested-elsewhere",
        "head",
        "MatMul",
        line_of("keras_training/model.py", "tf.matmul(features, self.kernel)"),
        line_of("keras_training/regression/offloaded.py", 'tf.device("/CPU:0")'),
    ),
}
"""What the report of each planted regression must say: the reason, the op, the source line."""


def main() -> int:
    """Runs both suites and says what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        healthy = suite(
            "1 of 2: healthy models; their tests must pass",
            [*EXAMPLES, *(f"--ignore={name}/regression" for name in EXAMPLES)],
            Path(folder, "healthy.xml"),
        )
        planted = suite(
            "2 of 2: planted regressions; their tests must fail",
            [f"{name}/regression" for name in EXAMPLES],
            Path(folder, "planted.xml"),
        )
    problems = [*unhealthy(healthy), *uncaught(planted)]
    print(flush=True)
    for problem in problems:
        print(f"examples: {problem}")
    if problems:
        print("examples: NOT as expected")
        return 1
    print(
        f"examples: as expected: {len(healthy)} healthy tests passed, and {len(planted)} planted "
        "regressions were caught and explained"
    )
    return 0


def suite(title: str, arguments: list[str], results: Path) -> dict[str, str | None]:
    """Runs pytest, its output shown; the report of each test that failed, None for a passed one."""
    print(f"\n##### {title}\n", flush=True)
    command = [sys.executable, "-m", "pytest", *arguments, f"--rootdir={HERE}"]
    command += ["--tfdevice-simulate=1", f"--junitxml={results}", "--show-capture=no"]
    command += ["-p", "no:cacheprovider", "-r", "s", f"--color={'yes' if in_colour() else 'no'}"]
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "2",
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",  # the simulated GPU doesn't take a real one's place
    }
    subprocess.run(command, cwd=HERE, env=environment, check=False)
    return dict(outcomes(results)) if results.exists() else {}


def in_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def outcomes(results: Path) -> Iterator[tuple[str, str | None]]:
    """Each test of a JUnit file, with the text of what went wrong."""
    for case in ElementTree.parse(results).iter("testcase"):
        wrong = [child for child in case if child.tag in ("failure", "error", "skipped")]
        yield case.get("name", ""), "\n".join(c.text or c.get("message", "") for c in wrong) or None


def unhealthy(found: dict[str, str | None]) -> Iterator[str]:
    """What is wrong with the results of the healthy models."""
    if not found:
        yield "no test of a healthy model ran"
    for name, report in found.items():
        if report is not None:
            yield f"{name} should have passed: {report.strip().splitlines()[0]}"


def uncaught(found: dict[str, str | None]) -> Iterator[str]:
    """Planted regressions that weren't caught, or for another reason."""
    for name, expected in PLANTED.items():
        report = found.get(name)
        if report is None:
            yield f"{name} was {'not caught' if name in found else 'not run'}"
            continue
        missing = [text for text in expected if text not in report]
        if missing:
            yield f"the report of {name} doesn't say {', '.join(map(repr, missing))}"
    for name in found.keys() - PLANTED.keys():
        yield f"{name} isn't known to {Path(__file__).name}"


if __name__ == "__main__":
    sys.exit(main())
