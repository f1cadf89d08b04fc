"""Reports for the tests of the HTML page, made by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pytest_tfdevice.baseline.compare import Change
from pytest_tfdevice.memory import GpuMemory
from pytest_tfdevice.model import Device, DeviceInfo, Placement, SourceLine
from pytest_tfdevice.reason import Reason
from pytest_tfdevice.serial.run_report import (
    BaselineCheck,
    Check,
    Judgement,
    RunReport,
    SkippedTest,
    TestReport,
    Transfers,
)
from pytest_tfdevice.transfers import Transfer

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


DTYPE = Reason("dtype", "MatMul has no GPU kernel for int32", "cast to float32")
ELSEWHERE = Reason("requested-elsewhere", "tf.device('/CPU:0')", "take the tf.device out")
CHANGES = (
    Change("lost", "net/block1/mask", "MatMul", 1, "GPU:0", "CPU:0", "dtype"),
    Change("new-off", "net/block2", "Where", 1, "", "CPU:0", "requested-elsewhere"),
    Change("gone", "net/block3", "Relu", 4, "GPU:0", ""),
)
CROSSINGS = (
    Transfer("small:0", "int32", (2,), GPU, CPU, line=SourceLine("/src/mask.py", 4)),
    Transfer("net/block1/mask/MatMul:0", "float32", (512, 1024), CPU, GPU, count=3, runs=3),
)


def run(*tests: TestReport) -> RunReport:
    return RunReport("2.21.0", "3.13.5", devices=SIMULATED, tests=tests)


def of(
    nodeid: str,
    placements: list[Placement],
    reasons: dict[str, Reason],
    ignored: tuple[str, ...] = (),
) -> TestReport:
    """A test with these placements; ``reasons`` by type for what is on the CPU, ``ignored`` types
    don't count."""
    said = [_judged(p, reasons, ignored) for p in placements]
    different = tuple(dict.fromkeys(said))
    numbers = {judgement: number for number, judgement in enumerate(different)}
    counting = sum(judgement.counts for judgement in said)
    on_target = sum(judgement.counts and judgement.on_target for judgement in said)
    return TestReport(
        nodeid,
        "passed" if counting == on_target else "failed",
        summary=f"{counting - on_target} of {counting} are off",
        counting=counting,
        on_target=on_target,
        devices=dict(Counter(str(p.device) for p in placements)),
        placements=tuple(placements),
        judgements=different,
        judged=tuple(numbers[judgement] for judgement in said),
        notes=("a note",),
    )


def _judged(
    placement: Placement, reasons: dict[str, Reason], ignored: tuple[str, ...]
) -> Judgement:
    on_target = placement.device is GPU
    if placement.type in ignored:
        return Judgement("bookkeeping", "reads only metadata", on_target=on_target)
    reason = None if on_target else reasons[placement.type or ""]
    return Judgement("counts", "makes float32", counts=True, on_target=on_target, reason=reason)


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
        {"MatMul": DTYPE, "Where": ELSEWHERE},
        ("Shape",),
    )
    failing = replace(
        failing,
        pytest_outcome="failed",
        text="2 of 9 are off\n  MatMul  <b>CPU:0</b>",
        source=SourceLine("tests/test_model.py", 42, "test_step"),
        checks=(
            Check("placement", "on_gpu()", "failed", "2 of 9 are off"),
            Check("memory", "gpu_memory('4 GiB')", "passed", "3 GiB at most"),
        ),
        gpu_memory=(GpuMemory(GPU, 2**30, 3 * 2**30, 2**30, total=16 * 2**30),),
        transfers=Transfers(14, 2**21),
        crossings=CROSSINGS,
        baselines=(BaselineCheck("checked", "base.json", "test_step", "simulated GPU", CHANGES),),
    )
    passing = of("tests/test_other.py::test_fine", [op("other/Softmax", "Softmax")], {})
    return replace(
        run(passing, failing),
        ran=7,
        exit_status=1,
        ended="stopping after 1 failure",
        skipped=(SkippedTest("tests/test_big.py::test_two", "there is 1 GPU, 2 are wanted"),),
        stale_allow=("reason:dtype (tests/test_model.py)",),
    )


def odd() -> RunReport:
    """Scopes with empty parts."""
    paths = ("/x/A", "/y/B", "a//b/C", "a//c/D", "E")
    return run(of("test_odd.py::test_it", [op(path, path[-1]) for path in paths], {}))


def excused() -> RunReport:
    """An operation on the CPU that ``allow`` excuses, and nothing else."""
    said = Judgement("counts", "makes float32", False, False, "type:Where", ELSEWHERE)
    test = of("test_excused.py::test_it", [op("net/Where", "Where", CPU)], {"Where": ELSEWHERE})
    return run(replace(test, outcome="passed", counting=0, judgements=(said,)))


def hostile() -> RunReport:
    """Every text that somebody else chooses is one that would do harm as markup."""
    tests = []
    for text in HOSTILE:
        placements = [
            Placement(text, text, CPU, source=SourceLine(text, 1, text), function=text),
            Placement(f"{text}/{text}", text, GPU, source=SourceLine(text, 1, text)),
        ]
        judgement = Judgement(
            "counts", text, counts=True, on_target=False, reason=Reason("dtype", text, text)
        )
        tests.append(
            TestReport(
                text,
                "failed",
                pytest_outcome=text,
                summary=text,
                text=text,
                source=SourceLine(text, 1),
                target=text,
                counting=2,
                devices={text: 1, "GPU:0": 1},
                placements=tuple(placements),
                judgements=(judgement,),
                judged=(0, 0),
                checks=(Check("placement", text, "failed", text),) * 2,
                baselines=(BaselineCheck("checked", text, text, text, (change(text),)),),
                memory={text: 1},
                crossings=(Transfer(text, text, (2,), GPU, CPU, consumers=(text,)),),
                problems=(text,),
                notes=(text,),
            )
        )
    return RunReport(
        HOSTILE[0],
        HOSTILE[1],
        devices=(DeviceInfo(GPU, HOSTILE[2]),),
        tests=tuple(tests),
        skipped=tuple(SkippedTest(text, text) for text in HOSTILE),
        stale_allow=HOSTILE,
        ended=HOSTILE[1],
    )


def change(text: str) -> Change:
    return Change("lost", text, text, 1, text, text, text)


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
    return run(of("tests/test_large.py::test_step", placements, dict.fromkeys(types, DTYPE)))
