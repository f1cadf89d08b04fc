"""One simulated GPU split into two logical ones of 64 and 128 MiB."""

from __future__ import annotations

from typing import Any

from checks import check, run, where

from pytest_tfdevice import simulator

simulator.load(memory="1 GiB")

import tensorflow as tf  # noqa: E402

[gpu] = tf.config.list_physical_devices("GPU")
limits = [tf.config.LogicalDeviceConfiguration(memory_limit=mib) for mib in (64, 128)]
tf.config.set_logical_device_configuration(gpu, limits)


@check
def listed() -> Any:
    return [device.name for device in tf.config.list_logical_devices("GPU")]


@check
def limits_in_force() -> Any:
    found = {}
    for device, mib in (("GPU:0", 80), ("GPU:1", 100)):
        try:
            with tf.device(device):
                found[device] = where(tf.zeros([mib, 512, 512]))
        except tf.errors.ResourceExhaustedError as error:
            found[device] = error.message
    return found


run()
