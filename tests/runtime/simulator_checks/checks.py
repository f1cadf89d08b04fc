"""What the scripts in this folder share: a process that runs many checks and writes what it saw.

A script registers functions with ``@check`` and ends with ``run()``.  Each function returns
something that JSON can hold; a function that raises leaves its traceback instead.  One import of
TensorFlow costs seconds, so checks share a process wherever they can.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

_checks: dict[str, Callable[[], Any]] = {}


def check(function: Callable[[], Any]) -> Callable[[], Any]:
    _checks[function.__name__] = function
    return function


def run() -> None:
    """Runs the checks in order and writes their results to the file named by the script's last
    argument."""
    results = {}
    for name, function in _checks.items():
        try:
            results[name] = {"value": function()}
        except BaseException:
            results[name] = {"error": traceback.format_exc()[-4000:]}
    with open(sys.argv[-1], "w") as file:
        json.dump(results, file)


def short(device: str) -> str:
    """``GPU:0`` of a device's full name."""
    return re.sub(r"^.*device:", "", device or "")


def where(tensor: Any) -> list[str]:
    """The device that made a tensor, and the one that has its memory."""
    return [short(tensor.device), short(tensor.backing_device)]


def devices_by_node(metadata: Any) -> dict[str, str]:
    """Node name to device, from a RunMetadata."""
    graphs = [*metadata.partition_graphs]
    for function in metadata.function_graphs:
        graphs.extend(function.partition_graphs)
    return {node.name: short(node.device) for graph in graphs for node in graph.node}


class Output:
    """Captures what this process and C++ write to stdout and stderr."""

    def __enter__(self) -> Output:
        sys.stdout.flush()
        sys.stderr.flush()
        self.text = ""
        self._file = tempfile.TemporaryFile()
        self._saved = [os.dup(1), os.dup(2)]
        for descriptor in (1, 2):
            os.dup2(self._file.fileno(), descriptor)
        return self

    def __exit__(self, *exc: object) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, saved in zip((1, 2), self._saved, strict=True):
            os.dup2(saved, descriptor)
            os.close(saved)
        self._file.seek(0)
        self.text = self._file.read().decode(errors="replace")
        self._file.close()
