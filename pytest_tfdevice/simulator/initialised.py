"""Says who imported TensorFlow, as far as that can be told: for errors that come too late."""

from __future__ import annotations

import sys
from types import ModuleType

from pytest_tfdevice import _import_hooks

_NOT_CULPRITS = ("tensorflow", "keras", "pytest_tfdevice", "tensorboard", "tf_keras")


def who_imported_tensorflow() -> str:
    """A sentence.

    The line that imported it first is known where the plugin was there before.  Else the modules
    that hold it under a name of theirs are named, in the order in which they were imported.
    """
    line = _import_hooks.first_import("tensorflow")
    if line is not None:
        return f"It was first imported at {line}."
    holders = modules_with_tensorflow()
    if holders:
        return f"It is used by {', '.join(holders[:5])}{', …' * (len(holders) > 5)}."
    return "Who imported it isn't known."


def modules_with_tensorflow() -> list[str]:
    """Modules (with their file) that have TensorFlow or a part of it as a global, oldest first."""
    found: dict[str, str] = {}  # by file: the main module is often there under two names
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _NOT_CULPRITS or not isinstance(module, ModuleType):
            continue
        if any(_is_tensorflow(value) for value in list(vars(module).values())):
            file = getattr(module, "__file__", None)
            if file:  # without one it was made by code, TensorFlow's own for the most part
                found.setdefault(file, f"{name} ({file})")
    return list(found.values())


def _is_tensorflow(value: object) -> bool:
    # type() and not isinstance(): TensorFlow's lazy modules are subclasses, and loading one of them
    # only to name it would import Keras.
    return type(value) is ModuleType and value.__name__.partition(".")[0] == "tensorflow"
