"""Random records, verdicts and reports, for hypothesis."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, get_args

from hypothesis import strategies as st

from pytest_tfdevice.baseline.compare import Change, Kind
from pytest_tfdevice.classify import Class
from pytest_tfdevice.memory import GpuMemory
from pytest_tfdevice.model import (
    ArgSpec,
    Device,
    DeviceInfo,
    DeviceScope,
    DeviceSpec,
    OpSignature,
    Placement,
    Record,
    SourceLine,
    TensorInfo,
)
from pytest_tfdevice.op_times import OpTime
from pytest_tfdevice.reason import REASON_CODES, Reason
from pytest_tfdevice.serial.run_report import (
    BaselineCheck,
    Check,
    Judgement,
    Operation,
    RunReport,
    SkippedTest,
    TestReport,
    Transfers,
)
from pytest_tfdevice.transfers import Cause, Transfer

NUMBERS = st.integers(0, 10**9)
TEXT = st.text(max_size=12)
DTYPES = st.sampled_from(["float32", "int32", "bool", "resource", "string", "variant"])
TYPES = st.sampled_from(["MatMul", "_FusedConv2D", "Relu", "Const", "AddV2", "ReadVariableOp"])
PARTS = ["dense", "dense_1", "conv_12", "while", "body", "_17", "StatefulPartitionedCall_3"]
NAMES = st.lists(
    st.sampled_from(PARTS),
    min_size=1,
    max_size=4,
).map("/".join)

DEVICES = st.builds(
    Device,
    job=st.sampled_from(["localhost", "worker"]),
    replica=st.integers(0, 2),
    task=st.integers(0, 2),
    type=st.sampled_from(["CPU", "GPU", "TPU", "XLA_GPU"]),
    index=st.integers(0, 3),
)
SPECS = st.builds(
    DeviceSpec,
    job=st.none() | st.just("worker"),
    replica=st.none() | st.integers(0, 3),
    task=st.none() | st.integers(0, 3),
    type=st.none() | st.sampled_from(["GPU", "CPU"]),
    index=st.none() | st.integers(0, 3),
)
SOURCES = st.builds(SourceLine, TEXT, NUMBERS, TEXT)
SHAPES = st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3).map(tuple)
TENSORS = st.lists(st.builds(TensorInfo, DTYPES, SHAPES), max_size=2).map(tuple)
PLACEMENTS = st.builds(
    Placement,
    op=NAMES | TEXT,
    type=st.none() | TYPES | TEXT,
    device=st.none() | DEVICES,
    kind=st.sampled_from(["placed", "executed"]),
    origin=st.sampled_from(["eager", "function", "session", "compiled", "log"]),
    inputs=TENSORS,
    outputs=TENSORS,
    dtypes=st.lists(st.tuples(TEXT, DTYPES), max_size=2).map(tuple),
    request=st.none() | st.builds(DeviceScope, SPECS, st.none() | SOURCES, st.booleans()),
    source=st.none() | SOURCES,
    function=st.none() | st.sampled_from(["train_step", "__inference_train_step_12"]),
    colocated_with=st.lists(TEXT, max_size=2).map(tuple),
    host_context=st.sampled_from([None, "tf.data", "py_function"]),
    unit=st.none() | TEXT,
    contents=NUMBERS,
    on_host=st.booleans(),
    raised=st.booleans(),
    count=st.integers(1, 99),
    placed_on=st.none() | DEVICES,
)
DEVICE_INFOS = st.builds(
    DeviceInfo,
    DEVICES,
    TEXT,
    st.none() | NUMBERS,
    st.none() | st.tuples(st.integers(0, 12), st.integers(0, 9)),
    st.booleans(),
    st.booleans(),
    st.none() | st.booleans(),
)
ARGUMENT = st.builds(ArgSpec, TEXT, st.none() | DTYPES, st.none() | TEXT, st.booleans())
ARGUMENTS = st.lists(ARGUMENT, max_size=2).map(tuple)
SIGNATURES = st.builds(
    OpSignature,
    TYPES,
    st.booleans(),
    ARGUMENTS,
    ARGUMENTS,
    st.lists(st.tuples(TEXT, TEXT), max_size=2).map(tuple),
)
TEXTS = st.lists(TEXT, max_size=2).map(tuple)


def mapping(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.dictionaries(TEXT, values, max_size=3).map(MappingProxyType)


MEMORY = st.builds(
    GpuMemory,
    DEVICES,
    before=NUMBERS,
    peak=NUMBERS,
    after=NUMBERS,
    left=st.none() | NUMBERS,
    limit=st.none() | NUMBERS,
    growth=st.none() | st.booleans(),
    utilisation=st.none() | st.floats(0, 1),
)
TRANSFERS = st.builds(
    Transfer,
    tensor=NAMES | TEXT,
    dtype=DTYPES,
    shape=SHAPES,
    source=DEVICES,
    target=DEVICES,
    producer=st.none() | NAMES,
    consumers=st.lists(NAMES, max_size=2).map(tuple),
    cause=st.sampled_from(get_args(Cause)),
    in_loop=st.booleans(),
    count=st.integers(1, 99),
    line=st.none() | SOURCES,
)
OP_TIMES = st.builds(OpTime, DEVICES, NUMBERS, st.none() | st.floats(0, 1e6))
RECORDS = st.builds(
    Record,
    memory=st.lists(MEMORY, max_size=2).map(tuple),
    transfers=st.lists(TRANSFERS, max_size=2).map(tuple),
    op_times=st.lists(OP_TIMES, max_size=2).map(tuple),
    placements=st.lists(PLACEMENTS, max_size=6).map(tuple),
    devices=st.lists(DEVICE_INFOS, max_size=2).map(tuple),
    signatures=mapping(SIGNATURES),
    tensorflow=st.sampled_from(["", "2.21.0", "2.12.1"]),
    calls=mapping(NUMBERS),
    notes=TEXTS,
    problems=TEXTS,
)
OPERATIONS = st.builds(
    Operation,
    scope=st.sampled_from(["", "dense", "block/dense"]) | TEXT,
    type=TYPES | TEXT,
    device=st.sampled_from(["GPU:0", "GPU:1", "CPU:0", "unknown", "/job:worker/task:1/GPU:0"]),
    count=st.integers(1, 50),
    reason=st.sampled_from(["", *REASON_CODES, "dtype, no-kernel", "by hand"]) | TEXT,
)


def distinct(operations: list[Operation]) -> tuple[Operation, ...]:
    """One for each scope, type and device, sorted."""
    return tuple(sorted({(op.scope, op.type, op.device): op for op in operations}.values()))


OPERATION_LISTS = st.lists(OPERATIONS, max_size=6).map(distinct)
REASON = st.builds(Reason, st.sampled_from(REASON_CODES), TEXT, TEXT)
REASONS = REASON | st.builds(Reason, st.just("colocated"), TEXT, TEXT, REASON)
JUDGEMENTS = st.builds(
    Judgement,
    st.sampled_from(get_args(Class)),
    TEXT,
    st.booleans(),
    st.booleans(),
    TEXT,
    st.none() | REASONS,
)
CHECKS = st.builds(
    Check,
    st.sampled_from(["placement", "memory", "transfers"]),
    TEXT,
    st.sampled_from(["passed", "failed", "error"]),
    TEXT,
)
CHANGES = st.builds(
    Change, st.sampled_from(get_args(Kind)), TEXT, TYPES, st.integers(1, 9), TEXT, TEXT, TEXT
)
BASELINE_CHECKS = st.builds(
    BaselineCheck,
    st.sampled_from(["checked", "created", "updated", "missing"]),
    TEXT,
    TEXT,
    TEXT,
    st.lists(CHANGES, max_size=2).map(tuple),
)


@st.composite
def reported_tests(draw: st.DrawFn) -> TestReport:
    placements = draw(st.lists(PLACEMENTS, max_size=3).map(tuple))
    judgements = draw(st.lists(JUDGEMENTS, min_size=1, max_size=2).map(tuple))
    numbers = st.integers(0, len(judgements) - 1)
    size = len(placements)
    build = st.builds(
        TestReport,
        nodeid=TEXT,
        outcome=st.sampled_from(["passed", "failed", "error", "expected", "watched"]),
        pytest_outcome=st.sampled_from(["", "passed", "failed", "skipped"]),
        summary=TEXT,
        text=TEXT,
        source=st.none() | SOURCES,
        counting=NUMBERS,
        on_target=NUMBERS,
        devices=mapping(NUMBERS),
        operations=OPERATION_LISTS,
        placements=st.just(placements),
        judgements=st.just(judgements),
        judged=st.just(()) | st.lists(numbers, min_size=size, max_size=size).map(tuple),
        checks=st.lists(CHECKS, max_size=2).map(tuple),
        baselines=st.lists(BASELINE_CHECKS, max_size=2).map(tuple),
        memory=mapping(NUMBERS),
        gpu_memory=st.lists(MEMORY, max_size=2).map(tuple),
        transfers=st.none() | st.builds(Transfers, NUMBERS, st.none() | NUMBERS),
        crossings=st.lists(TRANSFERS, max_size=2).map(tuple),
        problems=TEXTS,
        notes=TEXTS,
    )
    return draw(build)


SKIPPED = st.builds(SkippedTest, TEXT, TEXT)
REPORTS = st.builds(
    RunReport,
    tensorflow=st.sampled_from(["", "2.21.0"]),
    python=TEXT,
    plugin=TEXT,
    root=TEXT,
    devices=st.lists(DEVICE_INFOS, max_size=2).map(tuple),
    tests=st.lists(reported_tests(), max_size=3).map(tuple),
    skipped=st.lists(SKIPPED, max_size=2).map(tuple),
    ran=st.none() | NUMBERS,
    stale_allow=TEXTS,
    ended=TEXT,
    exit_status=st.none() | st.integers(0, 6),
)
