"""Marker arguments → requirements and rules, or a usage error.

Each marker is a function whose signature and docstring are what ``pytest --markers`` shows, and
whose arguments are checked when tests are collected.

``pytest`` imports this at every start; the rules, and all that comes with them, only for a marker.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfdevice.config import Settings
from pytest_tfdevice.units import parse_size

if TYPE_CHECKING:
    from pytest_tfdevice.memory import MemoryLimit
    from pytest_tfdevice.model import DeviceSpec
    from pytest_tfdevice.patterns import Pattern, Rule
    from pytest_tfdevice.transfers import TransferLimit

KNOWN_TYPES = ("CPU", "GPU", "TPU", "TPU_SYSTEM", "XLA_CPU", "XLA_GPU", "XPU", "HPU", "NPU")
"""Types of device that TensorFlow and its device plugins register.  A marker may name no other: a
misspelt type would make its test skip for ever."""


class MarkError(ValueError):
    """Wrong arguments of a marker."""


@dataclass(frozen=True)
class Requirement:
    """What a machine must have for a test; ``memory`` in bytes for each GPU."""

    count: int = 1
    memory: int | None = None
    compute_capability: tuple[int, int] | None = None


@dataclass(frozen=True)
class Baseline:
    """The test's placements are compared with a baseline; ``name`` tells several apart."""

    name: str | None = None


@dataclass(frozen=True)
class Plan:
    """What is to be done with one test.

    ``requirement`` is None for a test that runs anywhere; ``rules``, ``memory`` and ``transfers``
    are what its record is judged by, each on its own.  ``baseline`` is None for a test that has
    none.  ``isolated``: it runs in a process of its own.
    """

    requirement: Requirement | None = None
    rules: tuple[Rule, ...] = ()
    memory: tuple[MemoryLimit, ...] = ()
    transfers: tuple[TransferLimit, ...] = ()
    baseline: Baseline | None = None
    isolated: bool = False

    @property
    def marked(self) -> bool:
        return self.requirement is not None or self.judged

    @property
    def judged(self) -> bool:
        """True for a test that its record can fail."""
        return bool(self.rules or self.memory or self.transfers or self.baseline)

    @property
    def target(self) -> str:
        """The device that the test is meant to be on, where it names one; else the GPU."""
        return str(self.rules[0].target) if self.rules else "GPU"


@dataclass(frozen=True)
class _Mark:
    """One marker with its arguments read; ``given`` names those that were written."""

    given: frozenset[str]
    requirement: Requirement | None = None
    target: DeviceSpec | None = None
    ops: tuple[Pattern, ...] = ()
    allow: tuple[Pattern, ...] = ()
    strict: bool = False
    min_ratio: float | None = None
    baseline: Baseline | None = None
    memory: MemoryLimit | None = None
    transfers: TransferLimit | None = None
    isolated: bool = False
    text: str = field(default="", compare=False)


def requires_gpu(
    count: int = 1,
    memory: str | int | None = None,
    compute_capability: float | str | tuple[int, int] | None = None,
) -> _Mark:
    """skip where the process has fewer than `count` GPUs, or smaller ones (memory="8 GiB", \
compute_capability=7.0), and say why; checks nothing else."""
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise MarkError(f"count={count!r} is no number of GPUs: a whole number from 1 up")
    return _Mark(
        frozenset(),
        Requirement(
            count,
            parse_size(memory) if memory is not None else None,
            _capability(compute_capability) if compute_capability is not None else None,
        ),
    )


def on_gpu(
    *ops: str,
    index: int | None = None,
    allow: Iterable[str] = (),
    strict: bool = False,
    min_ratio: float | None = None,
) -> _Mark:
    """watch the test and fail it when an operation that counts did not run on a GPU. `ops`: \
patterns that must have been seen there ("MatMul", "name:block1/*"); `allow`: operations that may \
be elsewhere, by type, name: or reason:. Skips where there is no GPU, as requires_gpu does."""
    if index is not None and (not isinstance(index, int) or isinstance(index, bool) or index < 0):
        raise MarkError(f"index={index!r} is no GPU number: a whole number from 0 up")
    from pytest_tfdevice.model import DeviceSpec

    return _rule_mark(DeviceSpec(type="GPU", index=index), ops, allow, strict, min_ratio)


def on_device(
    device: str,
    *ops: str,
    allow: Iterable[str] = (),
    strict: bool = False,
    min_ratio: float | None = None,
) -> _Mark:
    """as on_gpu, for any device: "GPU:1", "CPU:0", "/job:worker/task:1/device:GPU:0"."""
    if not isinstance(device, str):
        raise MarkError(f"{device!r} is no device: a string such as 'GPU:1' is wanted")
    from pytest_tfdevice.model import DeviceSpec

    spec = DeviceSpec.parse(device)
    if spec.type is None:
        raise MarkError(f"{device!r} names no type of device, such as GPU or CPU")
    if spec.type not in KNOWN_TYPES:
        raise MarkError(
            f"{device!r} names the unknown device type {spec.type}; known are "
            f"{', '.join(KNOWN_TYPES)}"
        )
    return _rule_mark(spec, ops, allow, strict, min_ratio)


def placement_baseline(name: str | None = None) -> _Mark:
    """compare what the test runs, operation by operation, with the baseline that is kept in \
__placements__ beside the test, and fail where one left the GPU (see --tfdevice-baseline)."""
    if name is not None and (not isinstance(name, str) or not name.strip() or "#" in name):
        raise MarkError(f"name={name!r} is no name: a text without # is wanted")
    return _Mark(frozenset(), baseline=Baseline(name))


def gpu_memory(
    max_bytes: str | int | None = None,
    max_fraction: float | None = None,
    index: int | None = None,
    max_growth: str | int | None = None,
    isolated: bool = False,
) -> _Mark:
    """fail the test when the peak on a GPU exceeds `max_bytes` ("2 GiB") or `max_fraction` of \
that GPU's memory (0.5), or when more than `max_growth` is still held after the test that was not \
before. `isolated`: run the test in a fresh process, where its own memory fraction is in force. \
Skips where there is no GPU, as requires_gpu does."""
    from pytest_tfdevice.memory import memory_limit

    if not isinstance(isolated, bool):
        raise MarkError(f"isolated={isolated!r} is neither True nor False")
    limits = (max_bytes, max_fraction, index, max_growth)
    memory = memory_limit(*limits) if not isolated or any(x is not None for x in limits) else None
    return _Mark(frozenset(), memory=memory, isolated=isolated)


def gpu_transfers(
    max_count: int | None = None,
    max_bytes: str | int | None = None,
    direction: str | Iterable[str] = ("to_device", "to_host"),
    scope: str | Iterable[str] = (),
    scalars: bool = False,
    total: bool = False,
) -> _Mark:
    """fail the test when more than `max_count` tensors, or `max_bytes`, cross between host and \
GPU in one step. `direction`: "to_device", "to_host", "between_devices"; `scope`: only what is in \
there ("block1/*"); `scalars`: count tensors of one element, too; `total`: judge the whole test."""
    from pytest_tfdevice.transfers import transfer_limit

    limit = transfer_limit(max_count, max_bytes, direction, scope, scalars, total)
    return _Mark(frozenset(), transfers=limit)


MARKERS: dict[str, Callable[..., _Mark]] = {
    "requires_gpu": requires_gpu,
    "on_gpu": on_gpu,
    "on_device": on_device,
    "placement_baseline": placement_baseline,
    "gpu_memory": gpu_memory,
    "gpu_transfers": gpu_transfers,
}


def marker_lines() -> list[str]:
    """What ``pytest --markers`` shows."""
    return [
        f"{name}{_plain_signature(function)}: {inspect.getdoc(function)}"
        for name, function in MARKERS.items()
    ]


def plan(item: pytest.Item, settings: Settings) -> Plan:
    """The requirement and the rules of a test, from all its markers.

    Patterns of several markers add up; of an argument written twice the nearest counts.

    Raises:
        pytest.UsageError: a marker's arguments are wrong; the message names test and marker.
    """
    read = {name: [_read(item, mark) for mark in item.iter_markers(name)] for name in MARKERS}
    requirement = _merge_requirements(read["requires_gpu"])
    rules = []
    if read["on_gpu"]:
        rules.append(_merge_rules("on_gpu", read["on_gpu"], settings))
    for target in dict.fromkeys(mark.target for mark in read["on_device"]):
        same = [mark for mark in read["on_device"] if mark.target == target]
        rules.append(_merge_rules("on_device", same, settings))
    for rule in rules:
        requirement = _implied(requirement, rule)
    baseline = None
    if read["placement_baseline"] and settings.baseline != "off":
        baseline = read["placement_baseline"][0].baseline
        if not rules:
            requirement = requirement or Requirement()
    memory, transfers = _limits(read["gpu_memory"], read["gpu_transfers"], bool(rules), settings)
    for index in [limit.index for limit in memory] + [None] * len(transfers):
        known = requirement or Requirement()
        requirement = replace(known, count=max(known.count, (index or 0) + 1))
    nearest = _nearest(read["gpu_memory"], "isolated")
    if isolated := nearest is not None and nearest.isolated:
        requirement = requirement or Requirement()
    return Plan(requirement, tuple(rules), memory, transfers, baseline, isolated)


def enforced(settings: Settings) -> Rule:
    """The rule of ``--tfdevice-enforce``."""
    from pytest_tfdevice.model import DeviceSpec
    from pytest_tfdevice.patterns import Rule

    return Rule(
        DeviceSpec(type="GPU"),
        allow=settings.allow,
        strict=settings.strict,
        marker="--tfdevice-enforce",
    )


def _read(item: pytest.Item, mark: pytest.Mark) -> _Mark:
    function = MARKERS[mark.name]
    try:
        read = function(*mark.args, **mark.kwargs)
    except TypeError as error:
        why = str(error).replace(f"{mark.name}() ", "")
        raise _usage_error(
            item, mark, f"{why}; it is {mark.name}{_plain_signature(function)}"
        ) from None
    except ValueError as error:  # MarkError, DeviceError, PatternError, RuleError, SizeError
        raise _usage_error(item, mark, str(error)) from None
    names = list(inspect.signature(function).parameters)
    positional = [] if mark.name == "on_gpu" else names[: len(mark.args)]
    return replace(read, given=frozenset([*mark.kwargs, *positional]), text=_written(mark))


def _usage_error(item: pytest.Item, mark: pytest.Mark, why: str) -> pytest.UsageError:
    return pytest.UsageError(f"{item.nodeid}: marker {_written(mark)}: {why}")


def _written(mark: pytest.Mark) -> str:
    arguments = [repr(value) for value in mark.args]
    arguments += [f"{name}={value!r}" for name, value in mark.kwargs.items()]
    return f"{mark.name}({', '.join(arguments)})"


def _rule_mark(
    target: DeviceSpec,
    ops: Sequence[str],
    allow: Iterable[str],
    strict: bool,
    min_ratio: float | None,
) -> _Mark:
    if not isinstance(strict, bool):
        raise MarkError(f"strict={strict!r} is neither True nor False")
    if min_ratio is not None and (
        isinstance(min_ratio, bool) or not isinstance(min_ratio, int | float)
    ):
        raise MarkError(f"min_ratio={min_ratio!r} is no share: it goes from 0 to 1")
    if not isinstance(allow, Iterable):
        raise MarkError(f"allow={allow!r} is no list of patterns, such as ['Bincount']")
    from pytest_tfdevice.patterns import Rule, parse_patterns

    # Building the rule checks what is checked there.
    rule = Rule(target, parse_patterns(ops), parse_patterns(allow), strict, min_ratio)
    return _Mark(frozenset(), None, rule.target, rule.ops, rule.allow, rule.strict, rule.min_ratio)


def _nearest(marks: Sequence[_Mark], argument: str) -> _Mark | None:
    return next((mark for mark in marks if argument in mark.given), None)


def _merge_rules(name: str, marks: Sequence[_Mark], settings: Settings) -> Rule:
    from pytest_tfdevice.patterns import Rule

    target = marks[0].target
    indexed = _nearest(marks, "index")
    strict = _nearest(marks, "strict")
    ratio = _nearest(marks, "min_ratio")
    if name == "on_gpu" and indexed is not None:
        target = indexed.target
    assert target is not None
    return Rule(
        target,
        ops=tuple(dict.fromkeys(p for mark in marks for p in mark.ops)),
        allow=tuple(dict.fromkeys([*(p for mark in marks for p in mark.allow), *settings.allow])),
        strict=strict.strict if strict is not None else settings.strict,
        min_ratio=ratio.min_ratio if ratio is not None else None,
        marker=" + ".join(dict.fromkeys(mark.text for mark in marks)),
    )


def _limits(
    memory: Sequence[_Mark], transfers: Sequence[_Mark], ruled: bool, settings: Settings
) -> tuple[tuple[MemoryLimit, ...], tuple[TransferLimit, ...]]:
    """Marks with their limits, the nearest first; ``ruled`` for a test that has rules besides."""
    fraction = settings.gpu_memory_fraction if ruled or memory or transfers else None
    if not memory and not transfers and fraction is None:
        return (), ()
    from pytest_tfdevice.memory import merge_limits as merge_memory
    from pytest_tfdevice.transfers import merge_limits as merge_transfers

    return (
        merge_memory([(m.memory, m.text) for m in memory if m.memory], fraction),
        merge_transfers([(m.transfers, m.text) for m in transfers if m.transfers]),
    )


def _merge_requirements(marks: Sequence[_Mark]) -> Requirement | None:
    if not marks:
        return None
    merged = Requirement()
    for name in ("count", "memory", "compute_capability"):
        nearest = _nearest(marks, name)
        if nearest is not None:
            merged = replace(merged, **{name: getattr(nearest.requirement, name)})
    return merged


def _implied(requirement: Requirement | None, rule: Rule) -> Requirement | None:
    """A rule about local GPUs needs those GPUs to be there."""
    if rule.target.type != "GPU" or rule.target.job not in (None, "localhost"):
        return requirement
    needed = (rule.target.index or 0) + 1
    known = requirement or Requirement()
    return replace(known, count=max(known.count, needed))


def _capability(value: Any) -> tuple[int, int]:
    try:
        if isinstance(value, bool):
            raise ValueError
        major, minor = value if isinstance(value, tuple) else f"{value}.0".split(".")[:2]
        found = int(major), int(minor)
        if min(found) < 0:
            raise ValueError
        return found
    except (TypeError, ValueError):
        raise MarkError(
            f"compute_capability={value!r} is none: such as 7.0, '8.6' or (8, 6)"
        ) from None


def _plain_signature(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
