"""A machine on which TensorFlow sees two real GPUs (their factory is a fake, compiled here)."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path
from typing import Any

from checks import check, run, short

from pytest_tfdevice import simulator
from pytest_tfdevice.simulator.toolchain import compile_library, find_compiler

install = simulator.TensorFlowInstall.of_this_process()
with tempfile.TemporaryDirectory() as folder:
    library = Path(folder) / "fake.so"
    compile_library(
        find_compiler(),
        Path(__file__).with_name("fake_real_gpu.cc"),
        library,
        install.compile_flags,
        install.link_flags,
    )
    ctypes.CDLL(str(library)).register_fake_real_gpu()


@check
def refused() -> Any:
    try:
        simulator.load()
    except simulator.SimulatorError as error:
        return [str(error), simulator.loaded() is None, os.environ.get("CUDA_VISIBLE_DEVICES")]
    return "loaded"


@check
def hidden() -> Any:
    import tensorflow as tf

    simulation = simulator.load(hide_real_gpu=True)
    x = tf.ones([2, 2]) @ tf.ones([2, 2])
    return [
        simulation.count,
        [d.name for d in tf.config.list_logical_devices("GPU")],
        short(x.device),
        os.environ.get("CUDA_VISIBLE_DEVICES"),
    ]


run()
