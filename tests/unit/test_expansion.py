"""Names before and after TensorFlow's optimisers, on nodes that are made here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfdevice.capture import fusion
from pytest_tfdevice.capture.expansion import Expansion


def node(name: str, op: str, *inputs: str, **attr: Any) -> Any:
    return SimpleNamespace(name=name, op=op, input=inputs, device="", attr=attr)


def strings(*values: bytes) -> Any:
    return SimpleNamespace(list=SimpleNamespace(s=list(values)), HasField=lambda _: False)


DENSE = (
    node("x", "Placeholder"),
    node("dense/MatMul", "MatMul", "x", "kernel"),
    node("dense/BiasAdd", "BiasAdd", "dense/MatMul:product:0", "bias", "^x"),
    node("dense/Relu", "Relu", "dense/BiasAdd:output:0"),
)


def expansion(*nodes: Any) -> Expansion:
    return Expansion(nodes, None, lambda _: None)


def test_a_fused_node_is_what_it_was_made_of() -> None:
    fused = node("dense/Relu", "_FusedMatMul", fused_ops=strings(b"BiasAdd", b"Relu"))
    parts = fusion.parts(fused, expansion(*DENSE), ())
    assert [(name, written.node.op) for name, written in parts] == [
        ("dense/MatMul", "MatMul"),
        ("dense/BiasAdd", "BiasAdd"),
        ("dense/Relu", "Relu"),
    ]
    assert fusion.parts(node("elsewhere", "_FusedMatMul"), expansion(*DENSE), ()) == ()


def test_a_composition_of_unary_ops() -> None:
    composed = node(
        "tied/unary_ops_composition", "_UnaryOpsComposition", op_names=strings(b"Cos", b"Exp")
    )
    written = expansion(node("first", "Cos", "x"), node("tied", "Exp", "first:0"))
    assert [name for name, _ in fusion.parts(composed, written, ())] == ["first", "tied"]


@pytest.mark.parametrize(
    ("ran", "written"),
    [
        ("scope/ArithmeticOptimizer/ReplaceMulWithSquare_mul", "scope/mul"),
        ("ArithmeticOptimizer/AddOpsRewrite_Leaf_0_add_3", "add_3"),
        ("scope/mul", "scope/mul"),
    ],
)
def test_a_rewritten_node_is_found_by_the_name_that_it_had(ran: str, written: str) -> None:
    found = expansion(node(written, "Mul")).find(ran)
    assert found is not None
    assert found.node.name == written


def test_what_an_optimiser_made_of_nothing_is_not_found() -> None:
    assert expansion(*DENSE).find("ConstantFolding/dense/MatMul_recip") is None
