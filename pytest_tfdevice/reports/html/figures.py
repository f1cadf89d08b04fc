"""What a test took, moved, and what moved since its baseline → plain data."""

from __future__ import annotations

from typing import Any

from pytest_tfdevice.memory import GpuMemory
from pytest_tfdevice.reports.words import printable
from pytest_tfdevice.serial.run_report import BaselineCheck, TestReport
from pytest_tfdevice.transfers import Transfer


def memory(report: TestReport) -> list[dict[str, Any]]:
    """In bytes, for each GPU; only the peak where no more is known."""
    if report.gpu_memory:
        return [_of_gpu(gpu) for gpu in report.gpu_memory]
    return [
        {"device": printable(name), "peak": peak, "total": None}
        for name, peak in sorted(report.memory.items())
    ]


def _of_gpu(gpu: GpuMemory) -> dict[str, Any]:
    return {
        "device": gpu.device.short,
        "before": gpu.before,
        "peak": gpu.peak,
        "taken": gpu.taken,
        "after": gpu.after,
        "left": gpu.left,
        "limit": gpu.limit,
        "total": gpu.total,
        "reserved": gpu.reserved,
        "utilisation": gpu.utilisation,
    }


def transfers(report: TestReport) -> dict[str, Any] | None:
    """The sums, and each crossing, what moved most bytes in a step first."""
    if report.transfers is None and not report.crossings:
        return None
    sums = report.transfers
    crossings = sorted(report.crossings, key=lambda t: -(t.nbytes or 0) * t.per_step)
    return {
        "count": sums.count if sums is not None else None,
        "bytes": sums.bytes if sums is not None else None,
        "crossings": [_of_crossing(crossing) for crossing in crossings],
    }


def _of_crossing(crossing: Transfer) -> dict[str, Any]:
    shape = crossing.shape
    dimensions = "?" if shape is None else ", ".join("?" if d is None else str(d) for d in shape)
    return {
        "tensor": printable(crossing.tensor),
        "is": printable(f"{crossing.dtype}[{dimensions}]"),
        "from": crossing.source.short,
        "to": crossing.target.short,
        "bytes": crossing.nbytes,
        "times": crossing.per_step,
        "loop": crossing.in_loop,
        "consumers": printable(", ".join(crossing.consumers)),
        "source": printable(str(crossing.line or "")),
    }


def baselines(report: TestReport) -> list[dict[str, Any]]:
    """Each comparison with a baseline: what was, what is, the worst first."""
    return [_of_baseline(check) for check in report.baselines]


def _of_baseline(check: BaselineCheck) -> dict[str, Any]:
    return {
        "action": check.action,
        "passed": check.passed,
        "file": printable(check.file),
        "test": printable(check.test),
        "environment": printable(check.environment),
        "changes": [
            {
                "kind": change.kind,
                "bad": change.is_regression,
                "scope": printable(change.scope),
                "type": printable(change.type),
                "count": change.count,
                "before": printable(change.before),
                "after": printable(change.after),
                "reason": printable(change.reason),
            }
            for change in check.changes
        ],
    }
