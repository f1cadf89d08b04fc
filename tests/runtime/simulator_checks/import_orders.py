"""Loading at the end of ``import tensorflow`` (first argument: how it comes about), or too late."""

from __future__ import annotations

import sys
from typing import Any

from checks import check, run

from pytest_tfdevice import simulator

how = sys.argv[1]
before: tuple[bool, Any] = (True, "not asked")
after: simulator.Simulation | None = None
if how == "loaded-on-import":
    simulator.load_on_import(2, "256 MiB")
    before = ("tensorflow" in sys.modules, simulator.loaded())
    from tensorflow.python.eager import context  # noqa: F401  (a part of it comes first)

    after = simulator.loaded()
elif how == "imported-before":
    import tensorflow

    tensorflow.config.list_physical_devices()  # makes TensorFlow's list of devices
    simulator.load_on_import(2, "256 MiB")
    after = simulator.loaded()
else:
    from pytest_tfdevice._import_hooks import watch_import

    if how == "too-late-watched":
        watch_import("tensorflow")
    import tensorflow

    tensorflow.ones([1])


@check
def devices() -> Any:
    import tensorflow as tf

    assert after is not None
    return [after.count, [d.name for d in tf.config.list_logical_devices("GPU")]]


@check
def not_imported_by_asking() -> Any:
    return [before[0], before[1] is None]


@check
def too_late() -> Any:
    try:
        simulator.load()
    except simulator.SimulatorError as error:
        return str(error)
    return "loaded"


run()
