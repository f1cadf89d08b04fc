"""Names that stay the same from run to run.

What is taken away tells one run from another, not one operation from another: numbers that
TensorFlow and Keras count up over the life of a process, the numbers of function bodies, unique
ids, and the optimisers' own names for what they rewrite.
"""

from __future__ import annotations

import re

from pytest_tfdevice.model import Placement

EAGER = ""
"""The scope of an eager op."""

_NUMBER = re.compile(r"(?<=[^/])(_\d+)+(?=/|$)")
_FUNCTION = re.compile(r"^_*(?:inference|forward|backward)_+(?=\w)")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,16}")
_DIGITS_AFTER_NAME = re.compile(r"(?<=^Anonymous)(\w*?)\d+$")
_MKL = re.compile(r"^_Mkl(?:Native|Eager)?(?=[A-Z])")
_FUSED = re.compile(r"^_Fused(?=[A-Z])")
_REWRITING = re.compile(r"(?:(?<=/)|^)(?:ArithmeticOptimizer|ConstantFolding)(?:/|$)")
"""A scope that an optimiser puts around what it rewrites: not the user's."""
_OPTIMISER = re.compile(r"-LayoutOptimizer$|-AutoMixedPrecision$")


def scope_of(placement: Placement) -> str:
    """The scope of an operation, or the function that it is in; empty for an eager op."""
    if placement.is_unit:
        return plain_function(placement.unit or "")
    if placement.origin == "eager":
        return EAGER
    scope = plain(placement.scope)
    return scope or plain_function(placement.function or "")


def type_of(placement: Placement) -> str:
    """The op type; ``"compiled function"`` for a compiled one as a whole."""
    if placement.is_unit:
        return "compiled function"
    return plain_type(placement.type or "?")


def plain(path: str) -> str:
    """``"model/dense/attention"`` for ``"model_3/dense_12/attention"``."""
    path = _REWRITING.sub("", path).rstrip("/")
    path = _ADDRESS.sub("*", _UUID.sub("*", path))
    return _NUMBER.sub("", path)


def plain_function(name: str) -> str:
    """``"train_step"`` for ``"__inference_train_step_123"``."""
    return plain(_FUNCTION.sub("", name)) or name


def plain_type(op_type: str) -> str:
    """``"Conv2D"`` for ``"_FusedConv2D"`` and ``"_MklConv2D"``."""
    return _FUSED.sub("", _MKL.sub("", op_type)) if op_type.startswith("_") else op_type


def by_optimiser(placement: Placement) -> bool:
    """True for a node that an optimiser put into the graph: which, varies with device and build."""
    return placement.origin != "eager" and bool(_OPTIMISER.search(placement.op))
