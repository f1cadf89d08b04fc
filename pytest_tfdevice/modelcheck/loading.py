"""Loads a model and finds what can be called in it."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pytest_tfdevice.modelcheck.kinds import Found, ModelError


@dataclass(frozen=True)
class Signature:
    """Something in a model that can be called.

    Attributes:
        name: ``"serving_default"``; "call" for a Keras model, "graph" for a frozen one.
        trace: gives its ``ConcreteFunction``.
        graph_def: instead of that, the ``GraphDef`` of a frozen graph.
        specs: its inputs (``tf.TensorSpec``), flat; for running it.
        call: runs it on a list of tensors, one for each spec.
        has_lines: its ops know the lines that made them: they were not loaded from a file.
    """

    name: str
    trace: Callable[[], Any] | None = None
    graph_def: Any = None
    specs: tuple[Any, ...] = ()
    call: Callable[[list[Any]], Any] | None = None
    has_lines: bool = False


def import_modules(names: Iterable[str]) -> tuple[ModuleType, ...]:
    """Imports what the model's custom ops, layers and functions are in.

    Modules are found in the working directory, too.

    Raises:
        ModelError: a module can't be imported.
    """
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except Exception as error:  # whatever the module's own code raises
            raise ModelError(f"--import {name}: {_said(error)}") from error
    return tuple(found)


def load(found: Found, modules: tuple[ModuleType, ...]) -> tuple[tuple[Signature, ...], Any]:
    """The signatures, and the loaded object, which must be kept while they are used.

    Raises:
        ModelError: the model can't be loaded, or has nothing that can be called.
    """
    loaders = {"SavedModel": _saved_model, "Keras model": _keras, "frozen graph": _frozen}
    try:
        signatures, owner = loaders[found.kind](found.path, modules)
    except ModelError:
        raise
    except Exception as error:  # TensorFlow and Keras raise nearly every type here
        raise ModelError(
            f"{found.path}: the {found.kind} can't be loaded: {_said(error)}{_hint(error)}"
        ) from error
    if not signatures:
        raise ModelError(
            f"{found.path} has nothing that can be called: no signature, and no function that was "
            "traced before it was saved"
        )
    return signatures, owner


def _saved_model(path: Path, modules: tuple[ModuleType, ...]) -> tuple[tuple[Signature, ...], Any]:
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))
    signatures = [
        _of_concrete(name, function) for name, function in sorted(loaded.signatures.items())
    ]
    if not signatures:
        signatures = [_of_concrete(name, function) for name, function in _traced_functions(loaded)]
    return tuple(signatures), loaded


def _of_concrete(name: str, function: Any) -> Signature:
    import tensorflow as tf

    captured = len(function.captured_inputs)
    inputs = function.inputs[: len(function.inputs) - captured]
    specs = tuple(tf.TensorSpec(t.shape, t.dtype, _argument_name(t)) for t in inputs)
    _, keywords = function.structured_input_signature
    call = None
    if keywords and set(keywords) == {spec.name for spec in specs}:

        def call(values: list[Any]) -> Any:
            return function(**{s.name: v for s, v in zip(specs, values, strict=True)})

    return Signature(name, trace=lambda: function, specs=specs, call=call)


def _argument_name(tensor: Any) -> str:
    attr = tensor.op.node_def.attr
    given = attr["_user_specified_name"].s.decode() if "_user_specified_name" in attr else ""
    return given or tensor.op.name


def _traced_functions(loaded: Any) -> Iterator[tuple[str, Any]]:
    """Functions of a model without signatures, as often as each was traced."""
    for name in dir(loaded):
        try:
            traced = getattr(loaded, name).concrete_functions
        except Exception:  # an attribute may be a property that raises
            continue
        for number, function in enumerate(traced):
            yield (f"{name} #{number + 1}" if len(traced) > 1 else name), function


def _keras(path: Path, modules: tuple[ModuleType, ...]) -> tuple[tuple[Signature, ...], Any]:
    import tensorflow as tf

    model = tf.keras.models.load_model(
        str(path), custom_objects=_custom_objects(modules) or None, compile=False
    )
    structure = _inputs_of(model)
    if structure is None:
        raise ModelError(
            f"{path}: the model doesn't say what its inputs are, because it is a class of its own "
            "that was saved before it was called on tensors; export it as a SavedModel with a "
            "signature"
        )
    specs = tuple(tf.nest.flatten(structure))

    def call(*values: Any) -> Any:
        return model(tf.nest.pack_sequence_as(structure, list(values)), training=False)

    return (
        Signature(
            "call",
            trace=lambda: tf.function(call).get_concrete_function(*specs),
            specs=specs,
            call=lambda values: call(*values),
            has_lines=True,
        ),
    ), model


def _inputs_of(model: Any) -> Any:
    """``tf.TensorSpec`` for each input, in the structure that the model takes."""
    import tensorflow as tf

    def spec(tensor: Any) -> Any:
        dtype = getattr(tensor, "dtype", None) or "float32"
        return tf.TensorSpec(tuple(tensor.shape), dtype)

    inputs = getattr(model, "_inputs_struct", None)
    if inputs is None:
        inputs = getattr(model, "input", None) if _has_inputs(model) else None
    if inputs is not None:
        return tf.nest.map_structure(spec, inputs)
    config: dict[str, Any] = getattr(model, "get_build_config", dict)() or {}
    shape = config.get("input_shape")
    if not shape or not all(d is None or isinstance(d, int) for d in shape):
        return None
    return tf.TensorSpec(tuple(shape), getattr(model, "compute_dtype", None) or "float32")


def _has_inputs(model: Any) -> bool:
    try:
        return bool(model.inputs)
    except (AttributeError, ValueError):
        return False


def _custom_objects(modules: Iterable[ModuleType]) -> dict[str, Any]:
    """Classes and functions of the modules themselves, for models that don't register theirs."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", None) == module.__name__
    }


def _frozen(path: Path, modules: tuple[ModuleType, ...]) -> tuple[tuple[Signature, ...], Any]:
    import tensorflow as tf
    from google.protobuf import message, text_format

    graph_def = tf.compat.v1.GraphDef()
    try:
        if path.suffix.lower() == ".pbtxt":
            text_format.Parse(path.read_text(), graph_def)
        else:
            graph_def.ParseFromString(path.read_bytes())
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelError(f"{path} holds no GraphDef: {_said(error)}") from error
    if not graph_def.node:
        raise ModelError(f"{path} holds a GraphDef without a node")
    return (Signature("graph", graph_def=graph_def),), None


UNKNOWN_CLASS = (
    *("Unknown layer", "custom_object", "custom class", "Could not locate", "Unknown object"),
    "Cannot deserialize object of type",
)
"""What Keras 2.12 to 3 say of a class that they don't know."""


def _said(error: BaseException) -> str:
    """The first line that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    return text if len(text) <= 300 else text[:299] + "…"


def _hint(error: BaseException) -> str:
    text = str(error)
    if "Op type not registered" in text:
        return ". The op is a custom one: load its library in a module named with --import"
    if "afe_mode" in text or ("lambda" in text.lower() and "deserializ" in text):
        return (
            ". The model holds a Python lambda, which Keras doesn't load unasked: call "
            "keras.config.enable_unsafe_deserialization() in a module named with --import"
        )
    if any(words in text for words in UNKNOWN_CLASS):
        return ". Name the module that defines it with --import"
    return ""
