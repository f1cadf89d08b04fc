"""The HTML report's pages, open in one Chromium for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import browser as browsers
import pytest


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    import html_reports

    from pytest_tfdevice.reports.html import page
    from pytest_tfdevice.serial.run_report import RunReport

    for name in ("small", "odd", "excused", "hostile", "large"):
        report = getattr(html_reports, name)()
        (folder / f"{name}.html").write_text(page(report), encoding="utf-8")
    (folder / "empty.html").write_text(page(RunReport("2.21.0", "3.13.5")), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def running() -> Iterator[browsers.Browser]:
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def browser(running: browsers.Browser) -> Iterator[browsers.Browser]:
    running.resize(1400, 1000)
    running.emulate(prefers_color_scheme="light")
    yield running
    assert running.errors == []


@pytest.fixture
def small(browser: browsers.Browser, pages: Path) -> browsers.Browser:
    browser.open(pages / "small.html")
    return browser
