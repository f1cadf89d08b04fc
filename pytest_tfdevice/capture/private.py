"""Every private name of TensorFlow that this project uses, and nothing else.

TensorFlow promises nothing about these.  Each stands in one function here, which looks it up when
called and raises :class:`MissingPrivate` where it is gone, so that a new TensorFlow fails with a
sentence and never with a wrong answer.  Each docstring names the versions it was seen on.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any


class MissingPrivate(RuntimeError):
    """A private name that this project needs isn't in the installed TensorFlow."""

    def __init__(self, name: str, purpose: str) -> None:
        super().__init__(
            f"this TensorFlow has no {name}, which pytest-tfdevice needs {purpose}. "
            "It was written against TensorFlow 2.12 to 2.21."
        )


def _lookup(module: str, path: str, purpose: str) -> Any:
    """The attribute ``path`` (dotted) of a module.

    Raises:
        MissingPrivate: the module or the attribute isn't there.
    """
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise MissingPrivate(f"{module}.{path}", purpose) from error
    return found


def registered_kernels() -> Sequence[Any]:
    """``KernelDef`` protos of every kernel.  Seen on 2.12 to 2.21."""
    get = _lookup(
        "tensorflow.python.framework.kernels",
        "get_all_registered_kernels",
        "to list the registered kernels",
    )
    kernels: Sequence[Any] = get().kernel
    return kernels


def eager_context_exists() -> bool:
    """True once TensorFlow has initialised its devices in this process.  Seen on 2.12 to 2.21.

    Asking doesn't initialise them.
    """
    purpose = "to tell whether TensorFlow's devices are initialised"
    context = _lookup("tensorflow.python.eager.context", "context_safe", purpose)()
    if context is None:
        return False
    try:
        return context._context_handle is not None
    except AttributeError as error:
        raise MissingPrivate("Context._context_handle", purpose) from error


def reinitialize_physical_devices() -> None:
    """Makes TensorFlow's Python side list its devices anew.  Seen on 2.12 to 2.21.

    TensorFlow does so itself after loading a pluggable device's library.  Does nothing where the
    list hasn't been made yet.
    """
    purpose = "to have a new device listed"
    context = _lookup("tensorflow.python.eager.context", "context_safe", purpose)()
    if context is None:
        return
    try:
        again = context.reinitialize_physical_devices
    except AttributeError as error:
        raise MissingPrivate("Context.reinitialize_physical_devices", purpose) from error
    again()
