"""A run as versioned JSON (``schemas/report-1.json``)."""

from __future__ import annotations

from pytest_tfdevice.serial.run_report import RunReport


def page(report: RunReport) -> str:
    """The document: a line for each placement."""
    return report.to_text()
