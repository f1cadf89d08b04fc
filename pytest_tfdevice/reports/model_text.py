"""A checked model as text, at most 100 columns wide, the conclusion first; and as JSON."""

from __future__ import annotations

from typing import Any

from pytest_tfdevice.modelcheck.check import ModelCheck, SignatureCheck
from pytest_tfdevice.reports.text import details
from pytest_tfdevice.reports.words import count, percent, wrapped
from pytest_tfdevice.verdict import Verdict


def model_text(check: ModelCheck) -> str:
    """The report of ``pytest-tfdevice check``."""
    lines = [_wrapped(f"{check.path}: {_conclusion(check)}", "", "  ")]
    for signature in check.signatures:
        lines += ["", _wrapped(f"{signature.name}: {_sum(signature)}", "", "  ")]
        lines += details(signature.verdict, signature.record)
    return "\n".join(lines)


def model_json(check: ModelCheck) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "version": 1,
        "model": check.path,
        "kind": check.kind,
        "outcome": check.outcome,
        "signatures": [
            {
                "name": signature.name,
                "outcome": signature.verdict.outcome,
                "ran": signature.ran,
                "tensorflow": signature.record.tensorflow,
                "simulated": signature.record.simulated,
                "counting": signature.verdict.counting,
                "on_gpu": signature.verdict.on_target,
                "offenders": _offenders(signature.verdict),
                "allowed": [
                    {"op": a.placement.op, "type": a.placement.type, "pattern": str(a.pattern)}
                    for a in signature.verdict.allowed
                ],
                "problems": list(signature.verdict.problems),
                "notes": list(signature.verdict.notes),
            }
            for signature in check.signatures
        ],
    }


def _offenders(verdict: Verdict) -> list[dict[str, Any]]:
    return [
        {
            "op": offender.placement.op,
            "type": offender.placement.type,
            "device": str(offender.placement.device) if offender.placement.device else None,
            "reason": offender.reason.code,
            "evidence": offender.reason.evidence,
            "mend": offender.reason.mend,
            "line": str(offender.placement.source) if offender.placement.source else None,
        }
        for offender in verdict.offenders
    ]


def _conclusion(check: ModelCheck) -> str:
    names = count(len(check.signatures), "signature")
    bad = [signature.name for signature in check.signatures if not signature.verdict.passed]
    if bad:
        return f"{check.kind} with {names}, off the GPU in {', '.join(bad)}"
    return f"{check.kind} with {names}, all that counts goes to the GPU"


def _sum(signature: SignatureCheck) -> str:
    """As a verdict's summary, but nothing has run."""
    verdict = signature.verdict
    if signature.ran or verdict.missing_ops or verdict.outcome == "error":
        return verdict.summary
    if not verdict.counting:
        return "nothing that counts is in it"
    off = len(verdict.offenders)
    if not off:
        if verdict.counting == 1:
            return "the one operation that counts goes to the GPU"
        return f"all {verdict.counting:,} operations that count go to the GPU"
    return (
        f"{off:,} of {count(verdict.counting, 'operation')} that "
        f"{'counts' if verdict.counting == 1 else 'count'} would not be on the GPU; "
        f"{percent(verdict.on_target / verdict.counting)} would"
    )


def _wrapped(text: str, indent: str, hanging: str) -> str:
    return "\n".join(wrapped(text, indent, hanging))
