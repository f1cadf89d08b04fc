"""A pytest plugin for the runs that the tests start: writes what became of each test as JSON.

Loaded with ``-p outcome_log``; the file is named by ``OUTCOME_LOG``.  With pytest-xdist it is the
controller that writes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

_REPORTS: list[dict[str, Any]] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _REPORTS.append(
        {
            "nodeid": report.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            "longrepr": report.longreprtext if report.failed else _reason(report),
            "sections": [list(section) for section in report.sections],
            "wasxfail": getattr(report, "wasxfail", None),
            "tfdevice": getattr(report, "tfdevice", None),
        }
    )


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    return str(report.longrepr or "")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, Any, Any]:
    """Writes at the very end, also after ``pytest.exit`` and KeyboardInterrupt."""
    try:
        return (yield)
    finally:
        if not hasattr(config, "workerinput"):
            _write()


def _write() -> None:
    import pytest_tfdevice

    found = {
        "reports": _REPORTS,
        "modules": [n for n in ("tensorflow", "keras", "numpy") if n in sys.modules],
        "package": pytest_tfdevice.__file__,
    }
    with open(os.environ["OUTCOME_LOG"], "w") as file:
        json.dump(found, file)
