"""Runs of which every name is meant to do harm."""

from __future__ import annotations

from types import MappingProxyType

from pytest_tfdevice.baseline.compare import Change
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

GPU = Device("localhost", 0, 0, "GPU", 0)
CPU = Device("localhost", 0, 0, "CPU", 0)

HOSTILE = (
    "<script>alert(1)</script>",
    "</pre></details><img src=x onerror=alert(1)>",
    "\"'><b>&lt;",
    "::error file=a.py,line=1::pwned",
    "a\n::stop-commands::token",
    "a\r\n::add-mask::secret",
    "a ##[error]pwned",
    "\x1b[31mred\x1b[0m",
    "a|b`c`*d*_e_[f](javascript:g)~~h~~",
    "@octocat #1 GH-2 :tada: https://evil.example www.evil.example",
    "%0A::error::pwned",
    "{0} [text](1)",
    "\ud800 \u202e \u2028 \x00",
    "# heading\n- item\n\n> quote",
    "x" * 10_000,
)


def hostile_report(name: str) -> RunReport:
    """A failing test that has a name wherever there can be one."""
    line = SourceLine(name, 3, name)
    reason = Reason("colocated", name, name, Reason("no-kernel", name, name))
    placements = (
        Placement(name, name, CPU, source=line, function=name),
        Placement(name, None, None, unit=name),
        Placement(name, name, GPU),
    )
    judgements = (
        Judgement("counts", name, True, False, reason=reason),
        Judgement("counts", name, True, True, allowed=name),
    )
    change = Change("lost", name, name, 2, "GPU:0", "CPU:0", name)
    test = TestReport(
        name,
        "failed",
        "failed",
        summary=name,
        text=f"{name}\n  {name}",
        source=line,
        counting=3,
        on_target=1,
        devices=MappingProxyType({name: 3}),
        placements=placements,
        judgements=judgements,
        judged=(0, 0, 1),
        checks=(
            Check("placement", name, "failed", name),
            Check("memory", name, "failed", name),
            Check("transfers", name, "failed", name),
        ),
        baselines=(
            BaselineCheck("checked", name, name, name, (change,)),
            BaselineCheck("missing", name, name, name),
        ),
        memory=MappingProxyType({"GPU:0": 5}),
        transfers=Transfers(2, 8),
        problems=(name,),
        notes=(name,),
    )
    error = TestReport(f"error {name}", "error", summary=name, source=line, problems=(name,))
    return RunReport(
        tensorflow=name,
        python=name,
        plugin=name,
        devices=(DeviceInfo(GPU, name),),
        tests=(test, error),
        skipped=(SkippedTest(name, name),),
        ran=2,
        stale_allow=(name,),
        ended=name,
        exit_status=2,
    )


def offending(*placements: Placement, reason: Reason, **more: object) -> TestReport:
    """A test that failed because all of these are elsewhere."""
    facts: dict[str, object] = {
        "nodeid": "tests/test_a.py::test_step",
        "outcome": "failed",
        "summary": "the summary",
        "source": SourceLine("tests/test_a.py", 7, "test_step"),
        "counting": len(placements),
        "checks": (Check("placement", "on_gpu()", "failed", "the summary"),),
    }
    return TestReport(
        **{**facts, **more},  # type: ignore[arg-type]
        placements=placements,
        judgements=(Judgement("counts", "", True, False, reason=reason),),
        judged=(0,) * len(placements),
    )
