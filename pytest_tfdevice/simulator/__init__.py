"""The simulated GPU: a real TensorFlow device of type GPU on host memory.

    from pytest_tfdevice import simulator

    simulator.load(count=2, memory="8 GiB")

TensorFlow then has ``/GPU:0`` and ``/GPU:1``, places operations on them and accounts for their
memory as on a machine with GPUs of that size; the arithmetic is done by the CPU.  So whatever is
asked about placement has the answer of a GPU machine.

The C++ in ``native/`` is compiled when it is first needed for a TensorFlow.
"""

from pytest_tfdevice.simulator.build import Build, Progress, TensorFlowInstall, ensure_built
from pytest_tfdevice.simulator.errors import SimulatorError
from pytest_tfdevice.simulator.loading import (
    DEVICE_NAME,
    LoadStats,
    Simulation,
    is_simulated,
    load,
    loaded,
)
from pytest_tfdevice.simulator.on_import import load_on_import

__all__ = [
    "DEVICE_NAME",
    "Build",
    "LoadStats",
    "Progress",
    "Simulation",
    "SimulatorError",
    "TensorFlowInstall",
    "ensure_built",
    "is_simulated",
    "load",
    "load_on_import",
    "loaded",
]
