"""The GPU kernels of the TensorFlow of this process, as completely as they can be known."""

from __future__ import annotations

from functools import cache

from pytest_tfdevice.kernels.live import registered
from pytest_tfdevice.kernels.registry import KernelRegistry
from pytest_tfdevice.kernels.shipped import NoTableError, for_version


def gpu_kernels() -> KernelRegistry | None:
    """The live registry where it lists GPU kernels, else the shipped table; None without one.

    The CUDA-enabled wheel lists its GPU kernels though there is no GPU, and so does any TensorFlow
    once the simulated GPU is loaded.  The CPU-only wheel lacks nearly all of them.
    """
    import tensorflow as tf

    from pytest_tfdevice import simulator

    return _gpu_kernels(str(tf.__version__), simulator.loaded() is not None)


@cache
def _gpu_kernels(version: str, simulated: bool) -> KernelRegistry | None:
    import tensorflow as tf

    if simulated or tf.test.is_built_with_gpu_support():
        return registered()
    try:
        return for_version(version)
    except NoTableError:
        return None
