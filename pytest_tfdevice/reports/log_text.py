"""An explained log as text, at most 100 columns wide, the conclusion first; and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_tfdevice.logs.explain import OTHER_SCOPES, LogExplanation, LogGroup
from pytest_tfdevice.reports.errors import not_placed
from pytest_tfdevice.reports.words import count, cut, wrapped

MAX_GROUPS = 15
MAX_TYPES = 6

_APART = {
    "structural": "structural (constants, copies, control flow, variables' handles)",
    "host": "host work (input, strings, tables, files)",
    "bookkeeping": "bookkeeping (shapes)",
    "framework": "put there by TensorFlow itself",
}


def log_text(found: LogExplanation) -> str:
    """The report of ``pytest-tfdevice explain``."""
    lines = wrapped(conclusion(found), "", "  ")
    lines += wrapped(_environment(found), "  ")
    if found.failures:
        lines += ["", *not_placed(found.failures)]
    shown = found.groups[:MAX_GROUPS] if found.accelerator else found.groups[:0]
    for group in shown:
        lines += ["", *_group(group)]
    rest = found.groups[len(shown) :]
    if rest and found.accelerator:
        total = sum(group.count for group in rest)
        lines += ["", *wrapped(f"… and {count(total, 'more operation')}: {_types(rest)}", "  ")]
    elif rest:
        lines += ["", *wrapped(f"on the CPU: {_types(rest)}", "  ")]
    return "\n".join([*lines, *_also(found)])


def conclusion(found: LogExplanation) -> str:
    """What the log says, in a sentence."""
    if not found.total:
        if found.failures:
            return (
                f"nothing was placed: {count(len(found.failures), 'message')} of TensorFlow "
                f"{'says' if len(found.failures) == 1 else 'say'} what could not be"
            )
        if found.set_apart:
            return "nothing that counts is in the log, only structural operations and host work"
        if found.functions:
            return f"only calls of functions are in the log: {_calls(found)}"
        return "no placement is in the log"
    if found.accelerator is None:
        if found.total == 1:
            return f"the one operation that may count is on the CPU; {found.no_gpu}"
        return f"all {found.total:,} operations that may count are on the CPU; {found.no_gpu}"
    elsewhere = ", ".join(
        f"{n:,} on {device}" for device, n in found.devices.items() if "CPU" not in device
    )
    if not found.on_cpu:
        return f"no operation that may count is on the CPU: {elsewhere}"
    verb = "is" if found.on_cpu == 1 else "are"
    return (
        f"{found.on_cpu:,} of {count(found.total, 'operation')} that may count {verb} on the CPU; "
        f"{elsewhere or f'none is on a {found.accelerator}'}"
    )


def log_json(found: LogExplanation) -> dict[str, Any]:
    """The same as plain data."""
    registry = found.kernels.registry
    return {
        "version": 1,
        "conclusion": conclusion(found),
        "tensorflow": found.facts.version or None,
        "kernels": registry.version if registry is not None else None,
        "accelerator": found.accelerator,
        "gpus": dict(found.facts.gpus),
        "no_gpu": found.no_gpu or None,
        "devices": dict(found.devices),
        "on_cpu": [_json_group(group) for group in found.groups],
        "set_apart": {kind: dict(types) for kind, types in found.set_apart.items()},
        "functions": [
            {"function": name, "device": device, "seen": n}
            for (name, device), n in found.functions.items()
        ],
        "not_placed": [
            {
                "op": failure.op or None,
                "type": failure.type,
                "function": failure.function,
                "wanted": failure.wanted or None,
                "warning": failure.problem == "warned",
                "reason": reason.code,
                "evidence": reason.evidence,
                "mend": reason.mend,
                "line": str(failure.source) if failure.source else None,
            }
            for failure, reason in found.failures
        ],
        "notes": list(found.notes),
    }


def _json_group(group: LogGroup) -> dict[str, Any]:
    reason = group.reason
    return {
        "scope": group.scope,
        "type": group.type or None,
        "type_guessed": group.guessed,
        "device": group.device,
        "count": group.count,
        "ops": list(group.names),
        "reason": reason.code if reason is not None else None,
        "certain": group.certain,
        "evidence": reason.evidence if reason is not None else None,
        "mend": reason.mend if reason is not None else None,
    }


def _environment(found: LogExplanation) -> str:
    facts, parts = found.facts, []
    if facts.version:
        parts.append(f"a log like those of TensorFlow {facts.version}")
    if facts.gpus:
        gpus = [f"{device} {name}" for device, name in list(facts.gpus.items())[:4]]
        parts.append(", ".join(gpus) + (", …" if len(facts.gpus) > 4 else ""))
    if found.kernels.registry is not None and (found.failures or found.accelerator == "GPU"):
        parts.append(
            f"kernels of TensorFlow {found.kernels.registry.version} ({found.kernels.why})"
        )
    return "; ".join(parts)


def _group(group: LogGroup) -> Iterator[str]:
    op_type = group.type + ("?" if group.guessed else "") or "of unknown type"
    if group.scope == OTHER_SCOPES:
        where = "in other scopes"
    else:
        where = f"in {cut(group.scope, 60, keep_end=True)}" if group.scope else "outside any scope"
    code = group.reason.code if group.reason is not None else "unknown"
    times = f" ×{group.count:,}" if group.count > 1 else ""
    yield from wrapped(f"{op_type}{times} {where} on {group.device}: {code}", "  ")
    names = list(dict.fromkeys(group.names))
    if names != [group.type]:
        more = (
            f", … {group.count - len(group.names):,} more" if group.count > len(group.names) else ""
        )
        yield from wrapped(", ".join(cut(name, 60) for name in names) + more, "    ")
    if group.reason is not None:
        yield from wrapped(f"why:   {group.reason.evidence}", "    ", "           ")
        yield from wrapped(f"mend:  {group.reason.mend}", "    ", "           ")


def _also(found: LogExplanation) -> list[str]:
    lines: list[str] = []
    for kind, types in found.set_apart.items():
        total = sum(types.values())
        lines += wrapped(f"set apart, {total:,} {_APART.get(kind, kind)}: {_some(types)}", "  ")
    if found.functions and found.total:
        lines += wrapped(f"functions called: {_calls(found)}", "  ")
    for note in found.notes:
        lines += wrapped(f"note: {note}", "  ")
    return ["", *lines] if lines else []


def _calls(found: LogExplanation) -> str:
    shown = [f"{name} on {device}" for name, device in list(found.functions)[:MAX_TYPES]]
    return ", ".join(shown) + (", …" if len(found.functions) > MAX_TYPES else "")


def _types(groups: Iterable[LogGroup]) -> str:
    totals: dict[str, int] = {}
    for group in groups:
        name = (group.type or "of unknown type") + ("?" if group.guessed else "")
        totals[name] = totals.get(name, 0) + group.count
    return _some(dict(sorted(totals.items(), key=lambda item: -item[1])))


def _some(types: Mapping[str, int]) -> str:
    shown: Sequence[str] = [
        f"{name or 'of unknown type'} ×{n:,}" if n > 1 else name or "of unknown type"
        for name, n in types.items()
    ]
    return ", ".join(shown[:MAX_TYPES]) + (", …" if len(shown) > MAX_TYPES else "")
