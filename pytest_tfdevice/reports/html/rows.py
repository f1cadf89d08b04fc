"""What a test ran → the rows of its table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pytest_tfdevice.baseline.compare import on
from pytest_tfdevice.baseline.names import type_of
from pytest_tfdevice.model import DeviceError, DeviceScope, DeviceSpec, Placement, TensorInfo
from pytest_tfdevice.reports.html.columns import Row
from pytest_tfdevice.serial.run_report import Judgement, Operation, TestReport

UNKNOWN = "unknown"


def rows(report: TestReport) -> Iterator[Row]:
    """A row for each placement where they are there in full, else for each sum of operations."""
    if report.placements:
        for placement, judgement in report.rows():
            yield _of_placement(placement, judgement)
        return
    is_on = _is_on(report.target)
    for op in report.operations:
        yield _of_operation(op, is_on)


def _of_operation(op: Operation, is_on: Callable[[str], bool]) -> Row:
    return Row(
        scope=op.scope,
        type=op.type,
        device=op.device,
        reason=op.reason,
        standing="counts" if op.counts else "does not count",
        weight=op.count,
        counts=op.counts,
        off=not is_on(op.device),
    )


def _of_placement(placement: Placement, judgement: Judgement | None) -> Row:
    scope, _, name = placement.path.rpartition("/")
    source = placement.source
    reason = judgement.reason if judgement is not None else None
    return Row(
        scope=scope,
        name=name,
        type=type_of(placement),
        device=UNKNOWN if placement.device is None else placement.device.short,
        reason=reason.code if reason is not None else "",
        evidence=reason.evidence if reason is not None else "",
        mend=reason.mend if reason is not None else "",
        standing=_standing(judgement),
        file=source.file if source is not None else "",
        line=source.line if source is not None else 0,
        function=placement.function or "",
        tensors=_tensors(placement),
        request=_request(placement.request),
        runs=placement.count,
        counts=judgement is not None and judgement.counts,
        off=judgement is not None and not judgement.on_target,
    )


def _standing(judgement: Judgement | None) -> str:
    if judgement is None:
        return ""
    why = f" ({judgement.why})" if judgement.why else ""
    if judgement.allowed:
        return f"allowed by {judgement.allowed!r}"
    if judgement.counts:
        return f"counts{why}"
    return f"does not count: {judgement.kind}{why}"


def _tensors(placement: Placement) -> str:
    """``"float32[8, 4], float32[4, 2] → float32[8, 2]"``."""
    if not placement.inputs and not placement.outputs:
        return ""
    sides = (", ".join(map(_tensor, side)) for side in (placement.inputs, placement.outputs))
    return " → ".join(side or "–" for side in sides)


def _tensor(tensor: TensorInfo) -> str:
    if tensor.shape is None:
        return tensor.dtype
    return f"{tensor.dtype}[{', '.join('?' if d is None else str(d) for d in tensor.shape)}]"


def _request(scope: DeviceScope | None) -> str:
    if scope is None:
        return ""
    by = " by TensorFlow or Keras" if scope.by_framework else ""
    return f"{scope.spec}{by}{f' at {scope.source}' if scope.source is not None else ''}"


def _is_on(target: str) -> Callable[[str], bool]:
    """Whether a device, by short name, is the target; nothing is on one that can't be read."""
    try:
        spec = DeviceSpec.parse(target)
    except DeviceError:
        return lambda device: False
    return lambda device: on(device, spec)
