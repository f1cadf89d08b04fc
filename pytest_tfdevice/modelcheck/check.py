"""Loads a model, places each of its signatures, judges them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_tfdevice.model import Device, DeviceSpec, Placement, Record
from pytest_tfdevice.modelcheck import kinds
from pytest_tfdevice.modelcheck.kinds import ModelError
from pytest_tfdevice.patterns import Pattern, Rule
from pytest_tfdevice.verdict import Outcome, Verdict

TARGET = DeviceSpec(type="GPU")


@dataclass(frozen=True)
class SignatureCheck:
    """One signature; ``ran`` where it had to be run to see where its ops are."""

    name: str
    record: Record
    verdict: Verdict
    ran: bool = False


@dataclass(frozen=True)
class ModelCheck:
    """What came of checking a model."""

    path: str
    kind: str
    signatures: tuple[SignatureCheck, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst of the signatures'."""
        outcomes = {check.verdict.outcome for check in self.signatures}
        return next((o for o in ("failed", "error") if o in outcomes), "passed")


def check_model(
    path: str,
    *,
    simulate: int = 0,
    memory: str | int = "16 GiB",
    imports: Iterable[str] = (),
    allow: tuple[Pattern, ...] = (),
    strict: bool = False,
) -> ModelCheck:
    """Says where the ops of each signature go, and whether those that count are on a GPU.

    ``simulate`` is a number of simulated GPUs, which must be asked for before TensorFlow has
    initialised its devices; 0 takes the real ones.

    Raises:
        ModelError: the model can't be loaded, placed or run, or there is no GPU.
    """
    found = kinds.find(path)
    _prepare_tensorflow(simulate, memory)
    from pytest_tfdevice.kernels.current import gpu_kernels
    from pytest_tfdevice.modelcheck import loading
    from pytest_tfdevice.rules import judge

    modules = loading.import_modules(imports)
    signatures, owner = loading.load(found, modules)
    rule = Rule(TARGET, allow=allow, strict=strict, marker="pytest-tfdevice check")
    kernels = gpu_kernels()
    checks = []
    for signature in signatures:
        record, ran = _record(signature)
        checks.append(SignatureCheck(signature.name, record, judge(record, rule, kernels), ran))
    del owner
    return ModelCheck(path, found.kind, tuple(checks))


def _prepare_tensorflow(simulate: int, memory: str | int) -> None:
    from pytest_tfdevice import simulator
    from pytest_tfdevice.devices import find_devices

    try:
        if simulate:
            simulator.load(simulate, memory)
    except simulator.SimulatorError as error:
        raise ModelError(f"--simulate {simulate}: {error}") from error
    devices = find_devices()
    if devices.count:
        return
    cause = devices.cause
    why = f": {cause.what}" if cause is not None else ""
    hint = "" if cause is not None and cause.kind == "no-tensorflow" else " (or --simulate 1)"
    remedy = f" {cause.remedy}{hint}" if cause is not None else hint
    raise ModelError(f"there is no GPU to check the model on{why}{remedy}")


def _record(signature: Any) -> tuple[Record, bool]:
    """What the signature's ops are on, and whether it had to be run for that."""
    from pytest_tfdevice.modelcheck import placing, running

    try:
        if signature.graph_def is not None:
            return _of(placing.of_graph(signature.graph_def, TARGET)), False
        try:
            function = signature.trace()
        except Exception as error:  # whatever the model's Python code raises when traced
            raise placing.CannotPlace(f"it can't be traced: {error}") from error
        gpu = Device.parse("GPU:0")
        found = placing.of_function(function, TARGET, gpu, has_lines=signature.has_lines)
        return _of(found), False
    except placing.CannotPlace as error:
        if signature.call is None:
            raise ModelError(f"{signature.name} can't be placed: {_first_line(error)}") from error
        return running.run(signature, TARGET), True


def _of(placements: tuple[Placement, ...]) -> Record:
    import tensorflow as tf

    from pytest_tfdevice.capture import signatures
    from pytest_tfdevice.devices import visible_devices

    types = sorted({p.type for p in placements if p.type})
    known = {op_type: signatures.signature(op_type) for op_type in types}
    return Record(
        placements=tuple(dict.fromkeys(placements)),
        devices=visible_devices(),
        signatures=MappingProxyType({t: s for t, s in known.items() if s is not None}),
        tensorflow=tf.__version__,
    )


def _first_line(error: BaseException) -> str:
    """The first line that says something: TensorFlow puts two headings before it."""
    headings = ("Graph execution error", "Detected at node", "Node:", "File ")
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(headings)]
    return told[0] if told else repr(error)
