"""Plays pull requests against a repository whose gate is pytest-tfdevice: ``python play.py``.

The repository is copied to a temporary folder and cloned from there, as a CI service does; each
pull request is a branch with a commit, and the gate runs on it with the commands of the workflow
files.  Exit code 0 says that every gate was as red or as green as it should be, and said why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BASELINE = "tests/__placements__/test_ranker.json"

GATE = "pytest --junitxml=results.xml --tfdevice-report=placements.md"
RECORDED = (
    f'git show "$BASE:{BASELINE}" > before.json',
    f"pytest-tfdevice diff before.json {BASELINE} --format markdown > recorded.md || [ $? -eq 1 ]",
    r'{ printf "\n## Baselines\n\n"; cat recorded.md; } >> "$GITHUB_STEP_SUMMARY"',
)
"""The commands of the workflow files."""
NOT_INHERITED = ("CI", "GITHUB_", "GITLAB_", "GIT_", "PYTEST_")
CREATE = "pytest --quiet --tfdevice-baseline create"
UPDATE = "pytest --quiet --tfdevice-baseline update"


@dataclass(frozen=True)
class PullRequest:
    """A branch with one commit, and what the gate must say of it.

    ``patch`` is a file in ``pull_requests``, or the command that makes the commit's changes.
    ``says`` and ``summary`` are texts that must stand in the gate's output and in the job summary.
    """

    branch: str
    title: str
    green: bool
    patch: str = ""
    command: str = ""
    base: str = "main"
    says: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()


MAIN = PullRequest("main", "main", green=True, says=("2 passed",), summary=("no operation moved",))
PULL_REQUESTS = (
    PullRequest(
        "whole-number-masks",
        "Masks are whole numbers",
        green=False,
        patch="whole-number-masks.patch",
        says=(
            "1 operation that counts left GPU:0 since the baseline was recorded",
            "mask: BatchMatMulV2  GPU:0 → CPU:0: dtype",
            "no GPU kernel for T=int32",
            "1 failed, 1 passed",
            "::error file=ranker.py,line=43,",
        ),
        summary=(
            "1 of 2 judged tests failed against the baseline",
            "<code>mask: BatchMatMulV2",
            "no GPU kernel for T=int32",
            "cast int32 to float32",
        ),
    ),
    PullRequest(
        "whole-number-masks",
        "Record where the mask is multiplied now",
        green=True,
        command=UPDATE,
        base="whole-number-masks",
        says=("2 passed",),
        summary=(
            "2 judged tests kept to the device",
            "❌ Placement: operations in 2 tests: 1 left",
        ),
    ),
    PullRequest(
        "mask-of-its-own",
        "A function of its own for the mask",
        green=True,
        patch="mask-of-its-own.patch",
        says=("2 passed",),
        summary=("2 judged tests kept to the device", "no operation moved in 2 tests"),
    ),
    PullRequest(
        "table-on-the-gpu",
        "The table goes to the GPU",
        green=True,
        patch="table-on-the-gpu.patch",
        says=(
            "came to the device: embedding: ResourceGather  CPU:0 → GPU:0",
            "record the improvement: pytest tests/test_ranker.py::test_scores",
            "2 passed",
        ),
        summary=("embedding: ResourceGather CPU:0 → GPU:0",),
    ),
)


class Repository:
    """The example's repository, under ``folder``: ``upstream``, and ``work``, a clone of it."""

    def __init__(self, folder: Path) -> None:
        self._summary = folder / "summary.md"
        self.upstream, self.work = folder / "upstream", folder / "work"
        ignored = shutil.ignore_patterns("__pycache__", ".pytest_*")
        shutil.copytree(HERE / "repository", self.upstream, ignore=ignored)
        self._git("init --quiet --initial-branch=main", self.upstream)
        self._git("add --all", self.upstream)
        self._commit("The ranker", self.upstream)

    def record(self) -> None:
        """Has main record its baseline for this TensorFlow, where it has none."""
        self._run(CREATE, self.upstream, self._desk())
        if self._git("status --porcelain", self.upstream):
            self._commit("The baseline for another TensorFlow", self.upstream)

    def clone(self) -> None:
        """Makes ``work``."""
        self._git("clone --quiet upstream work", self.upstream.parent)

    def open(self, pull_request: PullRequest) -> None:
        """Goes to the branch of a pull request, makes its commit and shows it."""
        base = pull_request.base
        start = f"-B {pull_request.branch} {base}" if base != pull_request.branch else base
        self._git(f"checkout --quiet {start}")
        if pull_request.patch:
            self._git(f"apply '{HERE / 'pull_requests' / pull_request.patch}'")
        if pull_request.command:
            self.shell(pull_request.command, self._desk())
        self._commit(pull_request.title)
        print(self._git("show --format= --unified=1"), flush=True)

    def shell(self, command: str, environment: dict[str, str] | None = None) -> tuple[int, str]:
        """Exit code and output of a command, which is shown with its output: one of the gate, where
        no environment is given."""
        print(f"$ {command}", flush=True)
        done = self._run(command, self.work, environment or self._job())
        print(done.stdout, flush=True)
        return done.returncode, done.stdout

    def take_summary(self) -> str:
        """What stands in the job summary, which is empty afterwards."""
        text = self._summary.read_text(encoding="utf-8") if self._summary.exists() else ""
        self._summary.write_text("", encoding="utf-8")
        return text

    def _commit(self, title: str, cwd: Path | None = None) -> None:
        self._git(f"commit --quiet --all --message '{title}'", cwd)

    def _git(self, arguments: str, cwd: Path | None = None) -> str:
        done = self._run(f"git {arguments}", cwd or self.work, self._desk())
        if done.returncode:
            raise RuntimeError(f"git {arguments}\n{done.stdout}")
        return done.stdout

    def _run(
        self, command: str, cwd: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def _job(self) -> dict[str, str]:
        """The environment of a job of GitHub Actions."""
        return {
            **self._desk(),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self._summary),
            "GITHUB_WORKSPACE": str(self.work),
            "BASE": "origin/main",
        }

    def _desk(self) -> dict[str, str]:
        """That of somebody who works on the repository: with the commands of this Python, and
        without the settings of git and pytest that are in force here."""
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(NOT_INHERITED)}
        return {
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **inherited,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "CUDA_VISIBLE_DEVICES": "-1",  # the simulated GPU doesn't take a real one's place
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            **{f"GIT_{who}_NAME": "Example" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "example@localhost" for who in ("AUTHOR", "COMMITTER")},
        }


def main() -> int:
    """Plays all pull requests and says what came of it."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        repository = Repository(Path(folder))
        repository.record()
        repository.clone()
        title(1, "main, as it is")
        problems += judge(repository, MAIN)
        for number, pull_request in enumerate(PULL_REQUESTS, 2):
            title(number, pull_request.title)
            repository.open(pull_request)
            problems += judge(repository, pull_request)
    for problem in problems:
        print(f"merge gate: {problem}")
    if problems:
        print("merge gate: NOT as expected")
        return 1
    red = [pull_request.title for pull_request in PULL_REQUESTS if not pull_request.green]
    print(
        f"merge gate: as expected: red for {', '.join(map(repr, red))}, green for main and "
        f"{len(PULL_REQUESTS) - len(red)} other commits"
    )
    return 0


def title(number: int, text: str) -> None:
    print(f"\n##### {number} of {len(PULL_REQUESTS) + 1}: {text}\n", flush=True)


def judge(repository: Repository, pull_request: PullRequest) -> Iterator[str]:
    """Runs the gate; what is not as it should be."""
    status, output = repository.shell(GATE)
    for command in RECORDED:
        failed, _ = repository.shell(command)
        if failed:
            yield f"{pull_request.title}: {command} ended with {failed}"
    summary = repository.take_summary()
    print(f"----- job summary\n{summary}----- {'green' if status == 0 else 'RED'}", flush=True)
    if (status == 0) != pull_request.green:
        wanted = "green" if pull_request.green else "red"
        yield f"{pull_request.title}: the gate should be {wanted}; pytest ended with {status}"
    for where, text, expected in (
        ("the output", output, pull_request.says),
        ("the job summary", summary, pull_request.summary),
    ):
        said = " ".join(text.split())
        missing = [words for words in expected if " ".join(words.split()) not in said]
        if missing:
            yield f"{pull_request.title}: {where} doesn't say {', '.join(map(repr, missing))}"


if __name__ == "__main__":
    sys.exit(main())
