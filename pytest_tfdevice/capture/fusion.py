"""Fused nodes → the nodes that were written.

Grappler joins neighbours into one node after they were placed (``remapper.cc``), and what it joins
depends on the device and on oneDNN: ``Conv2D``, ``BiasAdd`` and ``Relu`` become ``_FusedConv2D``
under the name of the last of them.  People know, name and count the nodes that they wrote.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

from pytest_tfdevice.capture import expansion

_FUSED = re.compile(r"_(?:Mkl(?:Native)?)?Fused(?P<base>[A-Z]\w*)")
_BASES = {"_FusedBatchNormEx": "FusedBatchNormV3", "_MklSwish": "Sigmoid"}
"""Fused types that don't say in their name what they begin with."""
_UNARY = "_UnaryOpsComposition"
_UNARY_SUFFIX = "/unary_ops_composition"
_MAX_LENGTH = 16


def base_of(node: Any) -> str | None:
    """The type of the first node that was fused; None for a node that isn't fused."""
    if node.op in _BASES:
        return _BASES[node.op]
    if node.op == _UNARY:
        ops = node.attr["op_names"].list.s
        return str(ops[0].decode()) if ops else None
    match = _FUSED.fullmatch(node.op)
    return match["base"] if match else None


def parts(
    node: Any, written: expansion.Expansion, survived: Collection[str]
) -> tuple[tuple[str, expansion.Requested], ...]:
    """The nodes that the fused ``node`` does the work of, first to last, under their own names;
    none where they can't be traced, as through the argument of a function that was inlined.

    ``survived`` are the plain names of the nodes that ran under their own name.
    """
    last = expansion.plain_name(node.name).removesuffix(_UNARY_SUFFIX)
    found = written.find(last)
    base = base_of(node)
    if base is None or found is None or not last.endswith(found.node.name):
        return ()
    prefix = last[: len(last) - len(found.node.name)]
    if node.op == _UNARY:
        names = _unary_chain(node, last, prefix, written)
    else:
        names = _chain(last, base, prefix, written, survived)
    return tuple((name, written_as) for name in names if (written_as := written.find(name)))


def _chain(
    last: str,
    base: str,
    prefix: str,
    written: expansion.Expansion,
    survived: Collection[str],
) -> list[str]:
    """Every written node between one of type ``base`` and ``last``, in the order of data."""
    order: dict[str, bool] = {}

    def leads_to_base(name: str, depth: int) -> bool:
        if name in order:
            return order[name]
        found = written.find(name)
        if found is None or depth > _MAX_LENGTH or (name != last and name in survived):
            return False
        order[name] = False  # a cycle leads nowhere
        before = [leads_to_base(prefix + name, depth + 1) for name in _inputs(found.node)]
        leads = any(before) or found.node.op == base
        del order[name]
        order[name] = leads
        return leads

    leads_to_base(last, 0)
    return [name for name, leads in order.items() if leads]


def _unary_chain(node: Any, last: str, prefix: str, written: expansion.Expansion) -> list[str]:
    """The written nodes of a row of element-wise operations, each with one input; those before the
    argument of a function that was inlined can't be traced."""
    names: list[str] = []
    name: str | None = last
    for op_type in reversed(node.attr["op_names"].list.s):
        found = written.find(name) if name is not None else None
        if name is None or found is None or found.node.op != op_type.decode():
            break
        names.insert(0, name)
        name = next((prefix + before for before in _inputs(found.node)), None)
    return names


def _inputs(node: Any) -> Iterator[str]:
    """Names of the nodes whose data ``node`` takes, in its own graph or function."""
    for name in node.input:
        if not name.startswith("^"):
            yield name.split(":")[0]
