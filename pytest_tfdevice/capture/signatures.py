"""Op signatures and the dtypes of a node's tensors, from TensorFlow's op registry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pytest_tfdevice.capture import private, private_executor
from pytest_tfdevice.model import ArgSpec, OpSignature


@cache
def dtype_name(value: Any) -> str:
    """``"float32"`` for ``tf.float32``, its enum number, or its name; references lose ``_ref``."""
    import tensorflow as tf

    name: str = tf.as_dtype(value).name
    return name.removesuffix("_ref")


@cache
def signature(op_type: str) -> OpSignature | None:
    """What the registry says of ``op_type``; None for a function's name or an unknown type."""
    op_def = private.op_def(op_type)
    if op_def is None:
        return None
    return OpSignature(
        type=op_type,
        stateful=op_def.is_stateful,
        inputs=tuple(_arg(arg) for arg in op_def.input_arg),
        outputs=tuple(_arg(arg) for arg in op_def.output_arg),
        attrs=tuple((attr.name, attr.type) for attr in op_def.attr),
    )


def _arg(arg: Any) -> ArgSpec:
    return ArgSpec(
        name=arg.name,
        dtype=dtype_name(arg.type) if arg.type else None,
        attr=arg.type_attr or arg.type_list_attr or None,
        is_list=bool(arg.number_attr or arg.type_list_attr),
    )


@cache
def _type_attrs(op_type: str) -> tuple[str, ...]:
    found = signature(op_type)
    return tuple(n for n, kind in found.attrs if kind == "type") if found else ()


def node_dtypes(op_type: str, attrs: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The dtype attributes of a ``NodeDef``: ``(("T", "float32"),)``."""
    return tuple(
        (name, dtype_name(attrs[name].type)) for name in _type_attrs(op_type) if name in attrs
    )


def call_dtypes(op_type: str, attrs: tuple[Any, ...]) -> tuple[tuple[str, str], ...]:
    """The same from the flat ``(name, value, …)`` attributes of an eager op."""
    wanted = _type_attrs(op_type)
    if not wanted or not attrs:
        return ()
    given = dict(zip(attrs[::2], attrs[1::2], strict=False))
    return tuple((name, dtype_name(given[name])) for name in wanted if name in given)


def tensor_dtypes(
    op_type: str, attrs: Mapping[str, Any]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Dtypes of a node's inputs and outputs, in order, from its signature and attributes."""
    op_def = private.op_def(op_type)
    if op_def is None:
        return (), ()
    return (
        tuple(_expand(op_def.input_arg, attrs)),
        tuple(_expand(op_def.output_arg, attrs)),
    )


def _expand(args: Iterable[Any], attrs: Mapping[str, Any]) -> Iterable[str]:
    for arg in args:
        if arg.type_list_attr:
            if arg.type_list_attr in attrs:
                yield from (dtype_name(t) for t in attrs[arg.type_list_attr].list.type)
            continue
        kind = arg.type or (attrs[arg.type_attr].type if arg.type_attr in attrs else 0)
        if not kind:
            continue
        repeat = attrs[arg.number_attr].i if arg.number_attr in attrs else 1
        for _ in range(repeat if arg.number_attr else 1):
            yield dtype_name(kind)


def shape_of(tensor: Any) -> tuple[int | None, ...] | None:
    """An eager tensor's shape; None where it has none, or where asking for it would wait.

    In asynchronous mode ``shape`` waits for the op with the interpreter locked, and an op that
    fails needs the interpreter for its message: both would wait for ever (2.12 to 2.15, and later
    versions make no promise).
    """
    if private_executor.is_asynchronous():
        return None
    try:
        shape = tensor.shape
        return None if shape.rank is None else tuple(shape.as_list())
    except (ValueError, AttributeError, NotImplementedError):  # variants have no shape of their own
        return None
