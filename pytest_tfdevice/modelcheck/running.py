"""Runs a signature on inputs made from its signature: for what can't be placed without running."""

from __future__ import annotations

from typing import Any

from pytest_tfdevice.capture.window import Window
from pytest_tfdevice.model import DeviceSpec, Record
from pytest_tfdevice.modelcheck.kinds import ModelError
from pytest_tfdevice.modelcheck.loading import Signature

SIZES = (2, 1, 8, 32, 64, 224)
"""What an unknown dimension is taken to be; the next one where a shape error comes of it."""

RANK = 2
"""What an input of unknown rank is taken to have."""


def run(signature: Signature, target: DeviceSpec) -> Record:
    """Runs it once, watched, under no ``tf.device``.

    Raises:
        ModelError: it raises an error on every size that was tried; the message is the last one's.
    """
    import tensorflow as tf

    if signature.call is None:
        raise ModelError(f"{signature.name} can't be called with inputs made from its signature")
    open_ended = any(spec.shape.rank is None or None in spec.shape for spec in signature.specs)
    last = ""
    for size in SIZES if open_ended else SIZES[:1]:
        values = [example(spec, size) for spec in signature.specs]
        window = Window(target)
        window.open()
        try:
            signature.call(values)
        except (tf.errors.InvalidArgumentError, ValueError) as error:
            window.close()
            last = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            continue
        except Exception as error:  # a model's own code may raise anything
            window.close()
            raise ModelError(
                f"{signature.name} raises {type(error).__name__} when run: {error}"
            ) from error
        return window.close()
    raise ModelError(
        f"{signature.name} can't be run on inputs made from its signature (unknown dimensions as "
        f"{', '.join(map(str, SIZES))}): {last}"
    )


def example(spec: Any, size: int) -> Any:
    """A tensor for a ``tf.TensorSpec``: ones, True, or "1", unknown dimensions being ``size``.

    Ones are indices into nearly every table, divide nothing by zero, and have a logarithm.
    """
    import tensorflow as tf

    rank = spec.shape.rank
    dims = [size] * RANK if rank is None else [size if d is None else d for d in spec.shape]
    if spec.dtype == tf.string:
        return tf.fill(dims, "1")
    if spec.dtype.is_quantized or spec.dtype in (tf.resource, tf.variant):
        raise ModelError(f"an input of {spec.dtype.name} can't be made up")
    return tf.cast(tf.ones(dims, tf.int32), spec.dtype)
