"""What TensorFlow itself says of the programs with a fault, without this package's capture.

Run with ``python -m benchmarks.accuracy.oracle``.  Each program runs with TensorFlow's placement
log on, from before its devices exist, and what it prints is searched with two expressions of its
own.  For each planted op:

* it must be in that log, off the device that the rule is for (``host-memory``: on it);
* for ``no-kernel`` TensorFlow's kernel registry must hold neither a GPU nor a DEFAULT kernel of it;
* for ``dtype`` it must hold one, and for ``host-memory`` one for int32 with all its tensors on the
  host.

Prints what doesn't hold, and which op types clean programs have on the CPU (for reading through).
On the CUDA-enabled wheel the registry is TensorFlow's own; the CPU wheel's is completed from the
tables of this package.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.accuracy.processes import in_child
from benchmarks.accuracy.program import TABLE, Planted, Program

PLACED = re.compile(r"([\w./>-]+): \((\w+)\):? ?/job:\w+/replica:\d+/task:\d+/device:(\w+:\d+)")
EXECUTED = re.compile(
    r"Executing op (\w+) in device /job:\w+/replica:\d+/task:\d+/device:(\w+:\d+)"
)
"""The two shapes that TensorFlow 2.12 to 2.21 print: of graphs, and of what runs eagerly."""

LIMIT = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.oracle", description=__doc__
    )
    parser.add_argument("programs", nargs="*", help="names (shell patterns); all by default")
    given = parser.parse_args()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    from pytest_tfdevice import simulator

    simulator.load(count=2, memory="4 GiB")
    import tensorflow as tf

    import benchmarks.accuracy.programs  # noqa: F401  (fills the table)

    major, minor = tf.__version__.split(".")[:2]
    confirmed = count = 0
    for listed in TABLE.values():
        program = listed.for_version((int(major), int(minor)))
        if program is None or not _chosen(program.name, given.programs):
            continue
        where, died = _log(program)
        if program.kind == "clean":
            on_cpu = sorted(kind for kind, devices in where.items() if "CPU:0" in devices)
            print(f"clean {program.name}: on the CPU {' '.join(on_cpu) or 'nothing'} {died}")
            continue
        wrong = list(_doubts(program, where))
        count += 1
        confirmed += not wrong
        for text in wrong:
            print(f"fault {program.name}: {text} {died}")
    print(f"\nTensorFlow {tf.__version__}: confirmed {confirmed}/{count}")
    return 0 if confirmed == count else 1


def _chosen(name: str, patterns: list[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _log(program: Program) -> tuple[dict[str, set[str]], str]:
    """On which devices the log of a program shows each op type, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log"

        def work() -> Iterator[None]:
            import tensorflow as tf

            tf.debugging.set_log_device_placement(True)
            program.make(False)()
            yield None

        result = in_child(work, LIMIT, str(file))
        text = file.read_text(errors="replace")
    found: dict[str, set[str]] = defaultdict(set)
    for _, kind, device in PLACED.findall(text):
        found[kind].add(device)
    for kind, device in EXECUTED.findall(text):
        found[re.sub(r"^__inference_(\w+?)_\d+$", r"\1", kind)].add(device)
    return found, result.died


def _doubts(program: Program, where: dict[str, set[str]]) -> Iterator[str]:
    for planted in program.planted:
        if not planted.sure:
            continue
        devices = where.get(planted.logged or planted.type, set())
        if planted.reason == "xla":  # inside another function it is a call like any other
            devices = devices | where.get("StatefulPartitionedCall", set())
            devices = devices | where.get("PartitionedCall", set())
        on_target = {d for d in devices if d == program.on or d.split(":")[0] == program.on}
        if planted.reason in {"host-memory", "moved"}:
            if not on_target:
                yield f"{planted.type} isn't on {program.on} in the log: {devices or 'not there'}"
        elif not devices - on_target:
            yield f"{planted.type} isn't off {program.on} in the log: {devices or 'not there'}"
        yield from _of_kernels(planted)


def _of_kernels(planted: Planted) -> Iterator[str]:
    """What TensorFlow's registry says against a reason."""
    import tensorflow as tf
    from tensorflow.python.framework import kernels

    found = [
        kernel
        for kernel in kernels.get_registered_kernels_for_op(planted.type).kernel
        if kernel.device_type in {"GPU", "DEFAULT"} and not kernel.label
    ]
    if planted.reason == "no-kernel" and found:
        yield f"{planted.type} has {len(found)} kernels for GPUs"
    if planted.reason == "dtype" and not found:
        yield f"{planted.type} has no kernel for GPUs of any dtype"
    if planted.reason == "host-memory":
        op = tf.raw_ops.__dict__.get(planted.type)
        int32 = [
            kernel
            for kernel in found
            if any(
                tf.int32.as_datatype_enum in c.allowed_values.list.type for c in kernel.constraint
            )
        ]
        if op is None or not any({"x", "y", "z"} <= set(k.host_memory_arg) for k in int32):
            yield f"{planted.type} has no int32 kernel with all its tensors on the host"


if __name__ == "__main__":
    sys.exit(main())
