"""The options, each with its ini key and the text that ``--help`` shows."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from pytest_tfdevice.config import BASELINE_MODES, DEFAULT_TOP, GITHUB_MODES


def add_options(parser: pytest.Parser) -> None:
    """Adds the options and their ini keys."""
    group = parser.getgroup("tfdevice", "where TensorFlow ran (pytest-tfdevice)")
    _option(
        parser,
        group,
        "simulate",
        "N simulated GPUs of MEMORY each (default 16 GiB): real TensorFlow devices of type GPU on "
        "host memory, so that placement is checked on a machine without a GPU. 0 switches it off.",
        metavar="N[:MEMORY]",
    )
    _switch(
        parser,
        group,
        "watch",
        "Watch every test that uses TensorFlow and report where it ran; no test fails by it.",
    )
    _switch(
        parser,
        group,
        "enforce",
        "Judge every test that uses TensorFlow as if it were marked on_gpu.",
    )
    _switch(
        parser,
        group,
        "strict",
        "strict=True for every marker that doesn't say otherwise: all but structural nodes count.",
    )
    _option(
        parser,
        group,
        "allow",
        "An operation that may be off its device in every marked test: an op type, name:PATTERN or "
        "reason:CODE. Repeatable.",
        metavar="PATTERN",
        action="append",
    )
    _option(
        parser,
        group,
        "baseline",
        "What is done with baselines of placements: check compares, and records one where there "
        "is none, but in CI; create records what isn't there; update records what ran anew; off.",
        metavar="|".join(BASELINE_MODES),
    )
    _option(
        parser,
        group,
        "gpu_memory_fraction",
        "Share of a GPU's memory, above 0 up to 1, that the peak of every marked test may take; "
        "the marker gpu_memory goes before it.",
        metavar="F",
    )
    _option(
        parser,
        group,
        "baseline_dir",
        "A folder for the baselines, instead of __placements__ beside each test module.",
        metavar="DIR",
    )
    _option(
        parser,
        group,
        "require",
        "End the run at its start, with the cause, where TensorFlow has fewer than N GPUs; with "
        "any:N simulated ones will do.",
        metavar="gpu:N|any:N",
    )
    _option(
        parser,
        group,
        "expected_skips",
        "A list of the marked tests that may skip, a node id or a pattern a line: others that skip "
        "fail, and so does the run where a test on the list ran.",
        metavar="FILE",
    )
    _option(
        parser,
        group,
        "top",
        "How many tests the table of GPU memory and transfers shows, those that take most first "
        f"(default {DEFAULT_TOP}); 0 for no table.",
        metavar="N",
    )
    _option(
        parser,
        group,
        "report",
        "Write where the watched tests ran to a file: .json, .md, .html or .sarif by its ending. "
        "Repeatable.",
        metavar="PATH",
        action="append",
    )
    _option(
        parser,
        group,
        "github",
        "auto: annotations and a job summary where GitHub Actions runs the tests; off.",
        metavar="|".join(GITHUB_MODES),
    )
    _switch(
        parser,
        group,
        "junit",
        "Add tfdevice_... properties of watched tests to the file of --junitxml (default); off for "
        "those who hold it to a schema that has no properties.",
    )
    _option(
        parser,
        group,
        "logdir",
        "Write the graphs that watched tests ran, with the device of each node, to a folder that "
        "TensorBoard reads: tensorboard --logdir DIR.",
        metavar="DIR",
    )


def _option(parser: pytest.Parser, group: Any, name: str, text: str, **extra: Any) -> None:
    flag = f"--tfdevice-{name.replace('_', '-')}"
    group.addoption(flag, dest=f"tfdevice_{name}", default=None, help=text, **extra)
    key = f"tfdevice_{name}"
    if extra.get("action") == "append":
        parser.addini(key, text, type="linelist", default=None)
    else:
        parser.addini(key, text, type="string", default=None)


def _switch(parser: pytest.Parser, group: Any, name: str, text: str) -> None:
    group.addoption(
        f"--tfdevice-{name}",
        dest=f"tfdevice_{name}",
        default=None,
        action=argparse.BooleanOptionalAction,
        help=text,
    )
    parser.addini(f"tfdevice_{name}", text, type="bool", default=None)
