"""The devices that TensorFlow has, without making it take memory for them."""

from __future__ import annotations

import contextlib
from typing import Any

from pytest_tfdevice.capture import private
from pytest_tfdevice.model import Device, DeviceInfo


def present() -> tuple[DeviceInfo, ...]:
    """Logical devices once they exist, else physical ones; real or simulated."""
    import tensorflow as tf

    from pytest_tfdevice import simulator

    simulation = simulator.loaded()
    context = private.eager_context()
    if private.context_is_initialized(context):
        listed = tf.config.list_logical_devices()
    else:
        # tf.config.list_logical_devices would create the devices, and take a GPU's memory.
        listed = tf.config.list_physical_devices()
    physical = tf.config.list_physical_devices("GPU")
    found = []
    for item in listed:
        device = Device.parse(item.name.replace("/physical_device:", "/device:"))
        details: dict[str, Any] = {}
        if device.type == "GPU" and device.index < len(physical):
            with contextlib.suppress(Exception):  # a device that was configured away has none
                details = tf.config.experimental.get_device_details(physical[device.index])
        simulated = device.type == "GPU" and simulation is not None
        found.append(
            DeviceInfo(
                device=device,
                description=details.get("device_name", ""),
                memory=simulation.memory if simulated and simulation is not None else None,
                compute_capability=details.get("compute_capability"),
                simulated=simulated,
            )
        )
    return tuple(found)
