"""The kernels that TensorFlow sees with a simulated GPU, against the shipped table."""

from __future__ import annotations

from typing import Any

from checks import check, run

from pytest_tfdevice import kernels, simulator

simulation = simulator.load()


def keys(registry: kernels.KernelRegistry) -> set[tuple[object, ...]]:
    return {entry.key for entry in registry.all if entry.device_type in ("GPU", "DEFAULT")}


@check
def compared() -> Any:
    table = keys(kernels.for_version(simulation.tensorflow))
    live = keys(kernels.registered())
    return {
        "table": len(table),
        "missing": sorted({str(key[0]) for key in table - live}),
        "extra": sorted({str(key[0]) for key in live - table}),
        "cuda_build": simulation.cuda_build,
    }


@check
def same_answers() -> Any:
    """For every kernel of the table: what the live registry finds for one of its dtypes each."""
    # A kernel that leaves an attribute free, beside others that don't, gives no definite question.
    table = kernels.for_version(simulation.tensorflow)
    live = kernels.registered()
    constrained: dict[str, set[str]] = {}
    for entry in table.all:
        constrained.setdefault(entry.op, set()).update(attr for attr, _ in entry.constraints)
    wrong = []
    asked = 0
    for entry in table.all:
        dtypes = {attr: allowed[0] for attr, allowed in entry.constraints}
        if set(dtypes) != constrained[entry.op]:
            continue
        expected = table.find(entry.op, "GPU", dtypes, entry.label)
        found = live.find(entry.op, "GPU", dtypes, entry.label)
        asked += 1
        if expected is None or (found is None or found.host_args != expected.host_args):
            wrong.append(entry.op)
    return {"asked": asked, "wrong": sorted(set(wrong))}


@check
def tensorflow_agrees() -> Any:
    """What TensorFlow itself says of these, asked for one op at a time."""
    from tensorflow.python.framework import kernels as tf_kernels

    live = kernels.registered()
    found = {}
    for op in ("MatMul", "Conv2D", "VariableV2", "Unique", "StringJoin"):
        listed = tf_kernels.get_registered_kernels_for_op(op).kernel
        mine = live.entries(op, "GPU")
        found[op] = [
            sum(kernel.device_type in ("GPU", "DEFAULT") for kernel in listed),
            len(mine),
        ]
    return found


run()
