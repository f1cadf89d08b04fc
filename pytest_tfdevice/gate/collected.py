"""Which tests there are: what was collected, and of which modules that is all.

A module is known in whole where it was named, or a folder above it was, and neither a node id nor
``--last-failed`` left a part of it out.  Deselected tests (``-k``, ``-m``, ``--deselect``) were
collected before, and so are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_tfdevice.marks import MARKERS

BASELINE = "placement_baseline"


@dataclass
class Module:
    """A test module: all its tests, those that ask for a baseline, and whether that is all."""

    tests: set[str] = field(default_factory=set)
    baselines: set[str] = field(default_factory=set)
    whole: bool = False


@dataclass
class Collected:
    """What was collected, by the path of the module.

    ``folders`` were named on the command line, or are the ``testpaths``.
    """

    modules: dict[str, Module] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    _broken: set[str] = field(default_factory=set)

    def add(self, items: Iterable[pytest.Item]) -> None:
        """Tests, before or after some were deselected."""
        for item in items:
            module = self.modules.setdefault(str(item.path), Module())
            module.tests.add(name_of(item))
            if asks_for_baseline(item):
                module.baselines.add(name_of(item))

    def reported(self, report: pytest.CollectReport, root: Path) -> None:
        """A module was collected, or could not be."""
        if "::" not in report.nodeid and report.nodeid.endswith(".py"):
            path = str(root / report.nodeid)
            if report.passed:
                self.modules.setdefault(path, Module())
        if report.failed:
            self._broken.add(str(root / report.nodeid.split("::")[0]))

    def finish(self, config: pytest.Config, *, ended: bool) -> None:
        """Finds out what was collected in whole, from the command line: nothing, where the
        collection has not ended."""
        base = config.invocation_params.dir
        arguments = list(config.args) if ended and not config.getoption("lf", False) else []
        whole = [(base / arg).resolve() for arg in arguments if "::" not in arg]
        self.folders = [str(path) for path in whole if path.is_dir()]
        for name, module in self.modules.items():
            path = Path(name).resolve()
            named = any(path == named or named in path.parents for named in whole)
            module.whole = named and name not in self._broken

    def to_json(self) -> dict[str, Any]:
        """Plain data, for pytest-xdist."""
        return {
            "folders": self.folders,
            "modules": {
                name: [sorted(m.tests), sorted(m.baselines), m.whole]
                for name, m in self.modules.items()
            },
        }

    def merge(self, data: Mapping[str, Any]) -> None:
        """Adds what a worker collected; each of them collects everything."""
        self.folders = list(data["folders"])
        for name, (tests, baselines, whole) in data["modules"].items():
            self.modules[name] = Module(set(tests), set(baselines), bool(whole))


def name_of(item: pytest.Item) -> str:
    """``"TestX::test_y[1]"``: the node id without its file, and as pytest made it.

    With ``--dist=loadgroup`` pytest-xdist adds the group to the node ids of its workers, where
    pytest is older than 9.2.
    """
    chain = item.listchain()
    files = [number for number, node in enumerate(chain) if isinstance(node, pytest.File)]
    if not files:
        return tail(item.nodeid)
    return "::".join(node.name for node in chain[files[-1] + 1 :])


def node_id(item: pytest.Item) -> str:
    """The node id as pytest made it."""
    file, colons, _ = item.nodeid.partition("::")
    return f"{file}::{name_of(item)}" if colons else file


def tail(nodeid: str) -> str:
    """``"TestX::test_y[1]"`` of ``"tests/test_a.py::TestX::test_y[1]"``."""
    return nodeid.partition("::")[2] or nodeid


def asks_for_baseline(item: pytest.Item) -> bool:
    """True for a test with the marker or the fixture."""
    return (
        BASELINE in getattr(item, "fixturenames", ())
        or item.get_closest_marker(BASELINE) is not None
    )


def is_marked(item: pytest.Item) -> bool:
    """True for a test with a marker, or the baseline fixture, of this plugin."""
    return asks_for_baseline(item) or any(item.get_closest_marker(name) for name in MARKERS)
