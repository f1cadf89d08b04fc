"""Reports for the tests of the HTML page, made by hand."""

from __future__ import annotations

from collections import Counter

from pytest_tfdevice.model import Device, DeviceInfo, Placement, SourceLine
from pytest_tfdevice.serial.run_report import Operation, RunReport, TestReport, Transfers

CPU, GPU = Device.parse("CPU:0"), Device.parse("GPU:0")
SIMULATED = (DeviceInfo(CPU), DeviceInfo(GPU, "Simulated GPU", 16 * 2**30, (8, 0), True))
HOSTILE = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=1">',
    "<svg/onload=window.pwned=1>",
    "javascript:window.pwned=1",
    "]]><!--<script>",
    "\x1b[31mred\x1b[0m",
    "::error file=a::boom",
    "a\nb\r\nc",
    "\u2028\u202eevil",
    "\ud800",
    "__proto__",
    "constructor",
    "x" * 10_240,
    "/".join("d" * 5_000),
)


def run(*tests: TestReport) -> RunReport:
    return RunReport("2.21.0", "3.13.5", SIMULATED, tests)


def of(
    nodeid: str, placements: list[Placement], reasons: dict[str, str], ignored: tuple[str, ...] = ()
) -> TestReport:
    """A test with these placements; ``reasons`` by type for what is on the CPU, ``ignored`` types
    don't count."""
    sums = Counter(
        (p.scope, p.type or "", "CPU:0" if p.device is CPU else "GPU:0") for p in placements
    )
    operations = tuple(
        Operation(
            *key, count, reasons.get(key[1], "") if key[2] == "CPU:0" else "", key[1] not in ignored
        )
        for key, count in sorted(sums.items())
    )
    counting = sum(op.count for op in operations if op.counts)
    on_target = sum(op.count for op in operations if op.counts and op.device == "GPU:0")
    return TestReport(
        nodeid,
        "passed" if counting == on_target else "failed",
        f"{counting - on_target} of {counting} are off",
        counting=counting,
        on_target=on_target,
        devices=dict(Counter("CPU:0" if p.device is CPU else "GPU:0" for p in placements)),
        operations=operations,
        placements=tuple(placements),
        memory={"GPU:0": 3 * 2**30},
        transfers=Transfers(14, 2**21),
        notes=("a note",),
    )


def op(
    path: str, op_type: str, device: Device = GPU, source: str = "model.py", line: int = 1
) -> Placement:
    return Placement(
        path, op_type, device, origin="function", source=SourceLine(f"/src/{source}", line, "call")
    )


def small() -> RunReport:
    """Two tests: one with two blocks, an optimizer, and two operations off the GPU."""
    failing = of(
        "tests/test_model.py::TestStep::test_step[a]",
        [
            op("net/block1/dense/MatMul", "MatMul", line=11),
            op("net/block1/dense/BiasAdd", "BiasAdd", line=12),
            op("net/block1/mask/MatMul", "MatMul", CPU, "mask.py", 3),
            op("net/block1/mask/Cast", "Cast", source="mask.py", line=2),
            op("net/block2/dense/MatMul", "MatMul", line=11),
            op("net/block2/dense/Relu", "Relu", line=13),
            op("net/block2/Where", "Where", CPU, "mask.py", 9),
            op("optimizer/Shape", "Shape", CPU, "adam.py", 5),
            op("optimizer/AssignSubVariableOp", "AssignSubVariableOp", source="adam.py", line=6),
            op("optimizer/Mul", "Mul", source="adam.py", line=7),
        ],
        {"MatMul": "dtype", "Where": "requested-elsewhere"},
        ("Shape",),
    )
    passing = of("tests/test_other.py::test_fine", [op("other/Softmax", "Softmax")], {})
    return run(passing, failing)


def hostile() -> RunReport:
    """Every text that somebody else chooses is one that would do harm as markup."""
    tests = []
    for text in HOSTILE:
        placements = [
            Placement(text, text, CPU, source=SourceLine(text, 1, text), function=text),
            Placement(f"{text}/{text}", text, GPU, source=SourceLine(text, 1, text)),
        ]
        tests.append(
            TestReport(
                text,
                "failed",
                text,
                counting=2,
                on_target=1,
                devices={text: 1, "GPU:0": 1},
                operations=(Operation("", text, "CPU:0", 1, text), Operation(text, text, text)),
                placements=tuple(placements),
                memory={text: 1},
                problems=(text,),
                notes=(text,),
            )
        )
    return RunReport(HOSTILE[0], HOSTILE[1], (DeviceInfo(GPU, HOSTILE[2]),), tuple(tests))


def large(number: int = 50_000) -> RunReport:
    """A model of ``number`` operations in scopes six deep; one in a hundred is on the CPU."""
    types = ("MatMul", "Conv2D", "BiasAdd", "Relu", "AddV2", "Mul", "FusedBatchNormV3", "Cast")
    placements = [
        op(
            f"model/stage{n % 8}/block{n // 8 % 12}/unit{n % 5}/branch{n % 3}/conv{n % 7}/{n}",
            types[n % 8],
            CPU if n % 100 == 7 else GPU,
            f"layer{n % 40}.py",
            n % 400,
        )
        for n in range(number)
    ]
    return run(of("tests/test_large.py::test_step", placements, dict.fromkeys(types, "dtype")))
