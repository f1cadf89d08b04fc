"""What the HTML report shows, as tests ask for it."""

from __future__ import annotations

from typing import Any

import browser as browsers


def operations(browser: browsers.Browser) -> list[str]:
    """The paths in the table of operations, from the top."""
    script = """return [...document.querySelectorAll('#operations .rows .row')]
        .sort((a, b) => a.dataset.index - b.dataset.index)
        .map(row => row.querySelector('.c-path').textContent)"""
    found: list[str] = browser.run(script)
    return found


def one_line(text: str) -> str:
    return " ".join(text.split())


def type_filter(browser: browsers.Browser, text: str) -> None:
    field = browser.one("#filter")
    field.clear()
    field.send_keys(text)


def tile(browser: browsers.Browser, name: str) -> Any:
    """The tile of that name in the map."""
    found = browser.all(".map .tile.leads")
    return next(t for t in found if t.get_attribute("aria-label").split()[0] == name)


def tiles(browser: browsers.Browser) -> dict[str, str]:
    """What the map says of each tile, by its name."""
    names = [t.get_attribute("aria-label") or "" for t in browser.all(".map .tile.leads")]
    return {name.split()[0]: name for name in names}


def cells(browser: browsers.Browser, grid: str) -> list[list[str]]:
    """The texts of a table without its head."""
    script = """return [...document.querySelectorAll(arguments[0] + ' .rows .row')]
        .map(row => [...row.children].map(cell => cell.textContent))"""
    found: list[list[str]] = browser.run(script, grid)
    return found
