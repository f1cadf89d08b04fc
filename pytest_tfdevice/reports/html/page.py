"""A run's report → the page."""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path
from string import Template

from pytest_tfdevice.reports.html import data
from pytest_tfdevice.reports.html.embedding import (
    content_policy,
    embedded_code,
    embedded_json,
)
from pytest_tfdevice.serial.run_report import RunReport

HERE = Path(__file__).resolve().parent
SCRIPTS = (
    "dom.js",
    "operations.js",
    "filter.js",
    "virtual_rows.js",
    "scopes.js",
    "treemap.js",
    "plain_grid.js",
    "table.js",
    "figures.js",
    "baseline.js",
    "test_list.js",
    "test_view.js",
    "main.js",
)
"""In the order in which they build on each other; they share one scope."""


def page(report: RunReport) -> str:
    """One HTML file with all of the report, its styles and its scripts in it.

    The data of each test stands in an element of its own, read when the test is opened.
    """
    style, library, script = _style(), _library(), _script()
    tests = (
        f'<script type="application/json" id="test-{number}">{embedded_json(data.test(test))}'
        "</script>"
        for number, test in enumerate(data.ordered(report))
    )
    return Template(_text("page.html")).substitute(
        policy=content_policy([library, script], [style]),
        conclusion=html.escape(data.conclusion(report)),
        style=style,
        run=embedded_json(data.run(report)),
        tests="\n".join(tests),
        library=library,
        script=script,
    )


@cache
def _style() -> str:
    return embedded_code(_text("page.css"))


@cache
def _library() -> str:
    """d3-hierarchy, under its licence."""
    licence = _text("vendor/d3-hierarchy.LICENSE").strip()
    return embedded_code(f"/*!\n{licence}\n*/\n{_text('vendor/d3-hierarchy.min.js')}")


@cache
def _script() -> str:
    parts = "\n".join(_text(f"scripts/{name}") for name in SCRIPTS)
    return embedded_code(f"(() => {{\n'use strict';\n{parts}\n}})();\n")


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
