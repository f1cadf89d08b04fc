"""Hooks that this plugin offers to other plugins and to ``conftest.py`` files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from pytest_tfdevice.model import Placement, Record
    from pytest_tfdevice.results import RunResults


@pytest.hookspec(firstresult=True)
def pytest_tfdevice_classify(
    placement: Placement,
) -> Literal["counts", "ignored", "host"] | None:
    """Says whether an operation counts, before the plugin's own rule is asked.

    ``"counts"``: it must be on the device; ``"ignored"``: it need not, not even under ``strict``;
    ``"host"``: it is host work, which counts under ``strict`` only; None leaves it to the rule.
    The first answer that isn't None is taken.  Called once for each placement of each rule.
    """


def pytest_tfdevice_record(item: pytest.Item, record: Record) -> None:
    """Called with what a watched test ran, before it is judged."""


def pytest_tfdevice_report(report: RunResults) -> None:
    """Called once at the end of a run in which a test was watched, before the summary is printed.

    Under pytest-xdist it is called on the controller, with the results of all workers.
    """
