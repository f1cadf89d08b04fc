"""What a program of the benchmark is, and the table of all of them.

A program is a function that builds what it needs and returns a *step*, as a test would call it::

    @clean("layers")
    def dense():
        \"\"\"What it does; for a fault also how TensorFlow's own sources show it.\"\"\"
        layer = tf.keras.layers.Dense(4)
        return lambda: layer(tf.ones([2, 3]))

Cold, the window is open while it is built and stepped once; warm, for another step afterwards.  One
that takes ``jit`` is run with None (the default of ``jit_compile``) and with False.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

Step = Callable[[], object]
Kind = Literal["clean", "fault"]
Version = tuple[int, int]

ALWAYS: tuple[Version, Version] = ((0, 0), (9999, 0))


@dataclass(frozen=True)
class Planted:
    """An operation that must be reported: op type and name (shell patterns), and its reason.

    ``sure`` is False for a consequence of the fault that not each way of running shows.
    ``line``: the reason's evidence must name a line of the program's own file.
    ``logged``: its type in TensorFlow's placement log, where an optimiser changed it afterwards.
    """

    type: str
    reason: str
    name: str = "*"
    sure: bool = True
    line: bool = False
    logged: str = ""
    versions: tuple[Version, Version] = ALWAYS


@dataclass(frozen=True)
class Program:
    """A program and what is to be said of it.

    Attributes:
        planted: the operations to be reported; no others may be.
        compiled: what is to be reported where the default ``jit_compile`` compiles the step
            (Keras 3); None for the same as ``planted``.
        note: what a note of the verdict must hold, where the step is compiled.
        on, strict: the rule.
        ops: op types that must be seen on the device besides: what a clean program is there for.
        counts: False for a clean program in which nothing counts; any other must have something.
        cold, warm: whether it shows its fault so; a variable that is made once shows it cold only.
        problem: the outcome is "error", with this in a problem.
        versions: first and last TensorFlow (inclusive) that it is meant for.
    """

    name: str
    topic: str
    kind: Kind
    build: Callable[..., Step]
    planted: tuple[Planted, ...] = ()
    compiled: tuple[Planted, ...] | None = None
    note: str = ""
    on: str = "GPU"
    strict: bool = False
    ops: tuple[str, ...] = ()
    counts: bool = True
    cold: bool = True
    warm: bool = True
    problem: str = ""
    versions: tuple[Version, Version] = ALWAYS

    @property
    def takes_jit(self) -> bool:
        return "jit" in inspect.signature(self.build).parameters

    def make(self, jit: bool | None) -> Step:
        return self.build(jit=jit) if self.takes_jit else self.build()

    def for_version(self, version: Version) -> Program | None:
        """The program as that TensorFlow should see it; None where it isn't meant for it."""
        if not _within(version, self.versions):
            return None
        return replace(
            self,
            planted=tuple(p for p in self.planted if _within(version, p.versions)),
            compiled=None
            if self.compiled is None
            else tuple(p for p in self.compiled if _within(version, p.versions)),
        )


def _within(version: Version, versions: tuple[Version, Version]) -> bool:
    return versions[0] <= version <= versions[1]


TABLE: dict[str, Program] = {}
"""Every program, by name, in the order in which the modules define them."""


def clean(topic: str, **settings: Any) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    """Adds a program in which nothing is to be reported."""
    return _adder(topic, "clean", (), settings)


def fault(
    topic: str, *planted: Planted, **settings: Any
) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    """Adds a program with one fault, which shows as the operations ``planted``."""
    return _adder(topic, "fault", planted, settings)


def _adder(
    topic: str, kind: Kind, planted: Iterable[Planted], settings: dict[str, Any]
) -> Callable[[Callable[..., Step]], Callable[..., Step]]:
    def add(build: Callable[..., Step]) -> Callable[..., Step]:
        name = build.__name__
        if name in TABLE:
            raise ValueError(f"there are two programs {name}")
        if not (build.__doc__ or "").strip():
            raise ValueError(f"program {name} doesn't say what it does")
        TABLE[name] = Program(name, topic, kind, build, tuple(planted), **settings)
        return build

    return add
