"""What a test's own process has to know: the test, and how this run was started."""

from __future__ import annotations

import itertools
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

import pytest

from pytest_tfdevice.isolation import private

INVOCATION = "tfdevice_invocation"
"""Key of pytest-xdist's ``workerinput``: a worker isn't told the command line."""

_MEASURING = ("COVERAGE_PROCESS_", "COV_CORE_")
"""Environment variables that make coverage, and pytest-cov before 7, measure a subprocess."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Job:
    """One test for one process.

    Attributes:
        nodeid, path: the test and its module.
        args, folder: of the command line, and where it was given.
        argv: ``sys.argv``, which some programs read flags from.
        base: where ``tmp_path`` folders go; empty for pytest's own choice.
        worker: ``workerinput`` of the pytest-xdist worker that runs the test; None outside of one.
    """

    nodeid: str
    path: str
    args: tuple[str, ...]
    folder: str
    argv: tuple[str, ...]
    base: str = ""
    worker: dict[str, Any] | None = None

    @classmethod
    def of(cls, item: pytest.Item) -> Job:
        """The job of running ``item`` as this run would."""
        config = item.config
        worker = getattr(config, "workerinput", None)
        args, folder = worker[INVOCATION] if worker is not None else invocation(config)
        if config.pluginmanager.hasplugin("xdist"):
            args = (*args, "-n", "0", "--dist", "no")
        base = private.base_of_temporary_folders(config)
        return cls(
            nodeid=item.nodeid,
            path=str(item.path),
            args=tuple(args),
            folder=folder,
            argv=tuple(sys.argv),
            base=str(base / f"isolated-{next(_numbers)}") if base is not None else "",
            worker=worker,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def invocation(config: pytest.Config) -> tuple[tuple[str, ...], str]:
    """How pytest was started: its arguments, and where."""
    params = config.invocation_params
    return tuple(os.fspath(arg) for arg in params.args), str(params.dir)


def environment(config: pytest.Config) -> dict[str, str]:
    """The environment of the test's process: this one's, and where its coverage goes.

    Under pytest-cov the child measures by its own pytest-cov, as it was told on the same command
    line, but into a file beside this run's, of a name that coverage finds when it combines.  So
    coverage's own way to measure subprocesses must not measure it a second time.
    """
    found = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    coverage = sys.modules.get("coverage")
    if coverage is None or not config.pluginmanager.has_plugin("_cov"):
        return found
    current = coverage.Coverage.current()
    if current is None:
        return found
    file = os.path.join(config.invocation_params.dir, str(current.get_option("run:data_file")))
    found = {name: value for name, value in found.items() if not name.startswith(_MEASURING)}
    return {**found, "COVERAGE_FILE": f"{file}.isolated-{os.getpid()}-{next(_numbers)}"}
