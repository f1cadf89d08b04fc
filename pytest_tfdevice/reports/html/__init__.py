"""The HTML report: one file that opens from disk, without a network."""

from pytest_tfdevice.reports.html.page import page

__all__ = ["page"]
