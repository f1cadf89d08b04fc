"""What a graph asked for, op by op, under the names that its ops have after inlining.

The runtime inlines nested functions and lowers ``while`` and ``cond`` before it places ops; the
device that a nested op asked for is lost on the way.  Here the same inlining is done on the names
alone: a node ``mm`` of a function called by node ``f`` becomes ``f/mm``, and one in the body of the
loop ``while`` becomes ``while/body/_N/mm``, N being any number (TensorFlow 2.12 to 2.21).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

_LOWERED = re.compile(r"/(cond|body|then|else|branch\d+|branches|\d+)/_\d+(?=/)")
_BRANCH_NAMES = {
    "cond": ("cond",),
    "body": ("body",),
    "then_branch": ("then",),
    "else_branch": ("else",),
}
_MAX_DEPTH = 24


@dataclass(frozen=True)
class Requested:
    """A node as it was written: its ``NodeDef``, the function that it is in, and the device that
    it asks for, its own or else that of the call that leads to it.

    ``root`` is the function that was called, in which it is in turn; None for a graph's own nodes.
    """

    node: Any
    function: str | None
    device: str
    root: str | None


def plain_name(name: str) -> str:
    """``while/body/Relu`` for ``while/body/_17/Relu``: without the numbers of lowering."""
    return _LOWERED.sub(r"/\1", name)


class Expansion:
    """The nodes of a graph or function, and of every function that it calls, by plain name.

    ``lookup`` gives a ``FunctionDef`` by name; ``prefix`` is put before every name.  A compiled
    function is one node, unless ``into_compiled``: what it calls is then expanded as any other.
    """

    def __init__(
        self,
        nodes: Iterable[Any],
        function: str | None,
        lookup: Callable[[str], Any],
        *,
        into_compiled: bool = False,
        prefix: str = "",
    ) -> None:
        self._lookup = lookup
        self._into_compiled = into_compiled
        self._nodes: dict[str, Requested] = {}
        self._prefix = plain_name(prefix)
        self.add(nodes, function)

    def add(self, nodes: Iterable[Any], function: str | None) -> None:
        """Adds another graph's nodes; where names are the same, what is there stays."""
        self._root = function
        self._add(nodes, self._prefix, function, "", 0)

    def find(self, name: str) -> Requested | None:
        """The node that became ``name``; None for one that an optimiser made of nothing."""
        found = self._named(name)
        return found[1] if found is not None else None

    def _named(self, name: str) -> tuple[str, Requested] | None:
        """The same with the name that the node had: optimisers change it."""
        for before in _names_before(plain_name(name)):
            if before in self._nodes:
                return before, self._nodes[before]
        return None

    def __iter__(self) -> Iterator[tuple[str, Requested]]:
        return iter(self._nodes.items())

    def __len__(self) -> int:
        return len(self._nodes)

    def _add(
        self,
        nodes: Iterable[Any],
        prefix: str,
        function: str | None,
        inherited: str,
        depth: int,
    ) -> None:
        for node in nodes:
            name = prefix + node.name
            device = node.device or inherited
            self._nodes.setdefault(name, Requested(node, function, device, self._root))
            if depth < _MAX_DEPTH:
                for branch, called in self._calls(node):
                    inner = f"{name}/{branch}/" if branch else f"{name}/"
                    self._add(called.node_def, inner, called.signature.name, device, depth + 1)

    def _calls(self, node: Any) -> Iterator[tuple[str, Any]]:
        if node.op.endswith("Dataset"):
            return
        for branch, name in called_functions(node):
            called = self._lookup(name)
            if called is not None and (
                self._into_compiled or not (is_compiled(node) or is_compiled(called))
            ):
                yield branch, called


_COMPOSITION = "/unary_ops_composition"
_REWRITTEN = re.compile(r"^(.*/|)ArithmeticOptimizer/([^/]+)$")


def _names_before(name: str) -> Iterator[str]:
    """The name, and what it may have been before Grappler renamed the node (2.12 to 2.21).

    ``arithmetic_optimizer.cc`` names a node ``scope/ArithmeticOptimizer/What_it_did_name``.
    """
    yield name
    if name.endswith(_COMPOSITION):
        yield name[: -len(_COMPOSITION)]
    rewritten = _REWRITTEN.match(name)
    if rewritten is not None:
        scope, rest = rewritten.groups()
        while "_" in rest:
            rest = rest.partition("_")[2]
            yield scope + rest


def called_functions(node: Any) -> Iterator[tuple[str, str]]:
    """The functions that a node names: the part of its name that inlining adds, and which."""
    for attr, value in node.attr.items():
        if value.HasField("func"):
            for branch in _BRANCH_NAMES.get(attr, ("",)):
                yield branch, value.func.name
        elif attr == "branches":
            for number, func in enumerate(value.list.func):
                yield f"branch{number}", func.name
    if "_gradient_op_type" in node.attr or node.op.startswith("__"):
        yield "", node.op


def is_compiled(node: Any) -> bool:
    """True for a call, or a function, that XLA compiles as a whole (``jit_compile=True``)."""
    return "_XlaMustCompile" in node.attr and bool(node.attr["_XlaMustCompile"].b)


def called_function(node: Any) -> str | None:
    """The function that a call node calls."""
    if "f" in node.attr and node.attr["f"].HasField("func"):
        return str(node.attr["f"].func.name)
    return None


@cache
def readable(function: str) -> str:
    """``train_step`` for ``__inference_train_step_123``."""
    name = re.sub(r"^__(inference|forward|backward)_", "", function)
    name = re.sub(r"^_*(inference|forward|backward)_", "", name)
    name = re.sub(r"(_\d+)+(?=_(rewritten|grad|const)\b|_grad_)", "", name)
    return re.sub(r"(_\d+)+$", "", name) or function
