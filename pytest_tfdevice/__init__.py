"""Assert where TensorFlow ran.

    with pytest_tfdevice.watch() as record:
        model(batch)
    print(record)
    assert record.verdict(on="GPU").passed

Importing this package imports neither TensorFlow nor pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tfdevice import simulator
    from pytest_tfdevice.model import Device, DeviceSpec, Placement, Record
    from pytest_tfdevice.placement_log import parse
    from pytest_tfdevice.watching import PlacementError, watch

__all__ = [
    "Device",
    "DeviceSpec",
    "Placement",
    "PlacementError",
    "Record",
    "parse",
    "simulator",
    "watch",
]

_HOMES = {
    "Device": "model",
    "DeviceSpec": "model",
    "Placement": "model",
    "Record": "model",
    "PlacementError": "watching",
    "watch": "watching",
    "parse": "placement_log",
}


def __getattr__(name: str) -> Any:
    """Loads on first use: ``pytest`` imports this package at every start."""
    import importlib

    if name == "simulator":
        return importlib.import_module("pytest_tfdevice.simulator")
    if name in _HOMES:
        return getattr(importlib.import_module(f"pytest_tfdevice.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
