"""What kind of model a path holds, told without TensorFlow."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["SavedModel", "Keras model", "frozen graph"]

_HDF5 = b"\x89HDF\r\n\x1a\n"
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")
_OTHERS = {
    ".tflite": "a TensorFlow Lite model, which TensorFlow's own devices never run",
    ".onnx": "an ONNX model",
    ".pt": "a PyTorch model",
    ".pth": "a PyTorch model",
    ".ckpt": "a checkpoint: variables without a graph",
    ".index": "a checkpoint: variables without a graph",
    ".meta": "the graph of a TensorFlow 1 checkpoint",
}
KINDS = "a SavedModel's directory, a .keras or .h5 file, or a frozen graph (.pb)"


class ModelError(Exception):
    """A model that can't be loaded, placed or run; the message is for the user."""


@dataclass(frozen=True)
class Found:
    """A model's kind, and the path to load."""

    kind: Kind
    path: Path


def find(path: str) -> Found:
    """Says what ``path`` holds.

    Raises:
        ModelError: nothing is there, or nothing that can be checked; the message says what it is.
    """
    try:
        return _find(Path(path))
    except OSError as error:
        raise ModelError(f"can't read {path}: {error.strerror or error}") from error


def _find(path: Path) -> Found:
    if not path.exists():
        raise ModelError(f"{path} doesn't exist")
    if path.is_dir():
        if any((path / name).is_file() for name in _SAVED_MODEL):
            return Found("SavedModel", path)
        inside = sorted(p.parent for name in _SAVED_MODEL for p in path.glob(f"*/{name}"))
        if inside:
            raise ModelError(
                f"{path} holds no saved_model.pb itself; do you mean "
                f"{' or '.join(map(str, inside[:3]))}?"
            )
        raise ModelError(f"{path} is a directory without saved_model.pb: no SavedModel")
    if path.name in _SAVED_MODEL:
        return Found("SavedModel", path.parent)
    with path.open("rb") as file:
        head = file.read(8)
    if head == _HDF5:
        return Found("Keras model", path)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        if "config.json" in names:
            return Found("Keras model", path)
        raise ModelError(f"{path} is a zip archive without config.json: no Keras model")
    suffix = path.suffix.lower()
    if suffix in (".keras", ".h5", ".hdf5"):
        raise ModelError(f"{path} is no Keras model: it is neither HDF5 nor a zip archive")
    if suffix in (".pb", ".pbtxt"):
        return Found("frozen graph", path)
    what = _OTHERS.get(suffix, "of no known kind")
    raise ModelError(f"{path} is {what}; what can be checked is {KINDS}")
