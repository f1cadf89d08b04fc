"""A plugin of pytest-tfdevice in a ``conftest.py``: one op of this project is host work.

The team's ranking step looks candidates up with ``Bincount`` on integers that come from, and go
back to, a database on the host.  By its dtypes it would count as work of the model.  Saying once
that it is host work is better than an ``allow`` on every marker: under ``strict`` it still counts.
"""

from __future__ import annotations

import json
import os

HOST_OPS = {"DenseBincount"}
"""Op types that this project keeps on the host."""


def pytest_tfdevice_classify(placement):
    """Asked for each operation; None leaves it to the plugin's own rule."""
    return "host" if placement.type in HOST_OPS else None


def pytest_tfdevice_record(item, record):
    """Gets what a watched test ran, before it is judged: here, how much of it is this op."""
    looked_up = [p for p in record if p.type in HOST_OPS]
    item.user_properties.append(("lookups", len(looked_up)))


def pytest_tfdevice_report(report):
    """Gets the results of the whole run: here, one line of JSON for a dashboard."""
    path = os.environ.get("RANKING_DASHBOARD")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps({test.nodeid: test.outcome for test in report.tests}), file=file)
