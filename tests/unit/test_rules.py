"""A record and a rule make a verdict, as the design says it."""

from __future__ import annotations

import pytest
from tensorflow_facts import CPU, GPU, GPU1, LINE, TABLE, asked, matmul, place, record

from pytest_tfdevice.model import Device, DeviceSpec, Placement, Record
from pytest_tfdevice.rules import (
    Pattern,
    PatternError,
    Rule,
    RuleError,
    Verdict,
    judge,
    parse_patterns,
)


def rule(*ops: str, on: str = "GPU", allow: tuple[str, ...] = (), **more) -> Rule:
    return Rule(DeviceSpec.parse(on), parse_patterns(ops), parse_patterns(allow), **more)


def resize(device: Device = CPU, **more) -> Placement:
    more.setdefault("op", "head/resize")
    return place("ResizeBicubic", device, "float32[1,8,8,3] int32[2]", "float32[1,4,4,3]", **more)


def verdict(*placements: Placement, rule: Rule = rule(), kernels=TABLE, **more) -> Verdict:  # noqa: B008
    return judge(record(*placements, **more), rule, kernels)


INT_ADD = place("AddV2", GPU, "int32[4,4] int32[4,4]", "int32[4,4]")
SHAPE_SUM = place("AddV2", CPU, "int32[] int32[]", "int32[]")
DATASET = place("MapDataset", CPU, "", "variant[]")


@pytest.mark.parametrize(
    ("text", "by", "glob"),
    [
        ("MatMul", "type", "MatMul"),
        ("Sparse*", "type", "Sparse*"),
        ("type:Conv?D", "type", "Conv?D"),
        ("Addons>Relu", "type", "Addons>Relu"),
        ("[!A]*", "type", "[!A]*"),
        ("name:block1/*", "name", "block1/*"),
        ("name:a:b", "name", "a:b"),
        ("reason:dtype", "reason", "dtype"),
    ],
)
def test_patterns(text: str, by: str, glob: str) -> None:
    assert Pattern.parse(text) == Pattern(by, glob)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("   ", "empty"),
        (" MatMul", "space"),
        ("op:MatMul", "begins with 'op'"),
        ("reason:typo", "the reasons are requested-elsewhere, no-kernel, dtype"),
        ("name:", "nothing after its colon"),
        ("name:block[1/*", "without its ']'"),
        ("Conv[", "without its ']'"),
        ("Conv[]D", "without its ']'"),
        ("block1/*", "write 'name:block1/\\*'"),
        ("Mat Mul", "is no op type"),
        (3, "a string such as"),
    ],
)
def test_a_bad_pattern_is_told_what_is_wrong(text: str, complaint: str) -> None:
    with pytest.raises(PatternError, match=complaint.replace("[", "\\[")):
        Pattern.parse(text)


def test_what_patterns_pick() -> None:
    placement = matmul(op="block1/dense/MatMul")
    assert Pattern.parse("Mat*").matches(placement)
    assert not Pattern.parse("matmul").matches(placement)
    assert Pattern.parse("name:block1/*").matches(placement)
    assert not Pattern.parse("name:dense*").matches(placement)
    assert Pattern.parse("reason:dtype").matches(placement, "dtype")
    assert not Pattern.parse("reason:dtype").matches(placement)
    assert str(Pattern.parse("name:block1/*")) == "name:block1/*"


def test_one_string_is_one_pattern_not_its_letters() -> None:
    assert parse_patterns("MatMul") == (Pattern("type", "MatMul"),)


def test_arguments_that_make_no_rule() -> None:
    with pytest.raises(RuleError, match="from 0 to 1"):
        rule(min_ratio=99)
    with pytest.raises(RuleError, match="belongs in allow="):
        rule("reason:dtype")


def test_all_that_counts_is_on_the_gpu() -> None:
    found = verdict(matmul(), matmul(op="b"), SHAPE_SUM, DATASET)
    assert found.outcome == "passed"
    assert (found.counting, found.on_target, found.ratio) == (2, 2, 1.0)
    assert found.summary == "all 2 operations that count ran on GPU:0"


def test_an_operation_on_the_cpu_fails_with_its_reason() -> None:
    found = verdict(matmul(), resize())
    assert found.outcome == "failed"
    assert [(o.placement.type, o.reason.code) for o in found.offenders] == [
        ("ResizeBicubic", "no-kernel")
    ]
    assert found.ratio == 0.5
    assert found.summary == (
        "1 of 2 operations that count ran on the CPU; 50 % of what counts was on GPU:0"
    )


@pytest.mark.parametrize(
    ("good", "bad", "line"),
    [
        (1, 0, "the one operation that counts ran on GPU:0"),
        (0, 1, "1 of 1 operation that counts ran on the CPU; 0 % of what counts was on GPU"),
        (409, 3,
         "3 of 412 operations that count ran on the CPU; 99.3 % of what counts was on GPU:0"),
        (2999, 1,
         "1 of 3000 operations that count ran on the CPU; 99.9 % of what counts was on GPU:0"),
        (1, 2999,
         "2999 of 3000 operations that count ran on the CPU; 0.1 % of what counts was on GPU:0"),
    ],
)  # fmt: skip
def test_the_line_that_sums_up(good: int, bad: int, line: str) -> None:
    ops = [matmul(op=f"a{i}") for i in range(good)] + [resize(op=f"b{i}") for i in range(bad)]
    assert verdict(*ops).summary == line


def test_the_line_where_several_devices_are_at_fault() -> None:
    found = verdict(matmul(), resize(), matmul(GPU1, op="b"), devices=(CPU, GPU, GPU1),
                    rule=rule(on="GPU:0"))  # fmt: skip
    assert found.summary.startswith("2 of 3 operations that count ran on CPU:0, GPU:1; 33.3 %")


def test_an_index_is_held_to() -> None:
    assert verdict(matmul(GPU1), rule=rule(on="GPU:1"), devices=(CPU, GPU, GPU1)).passed
    assert verdict(matmul(GPU), rule=rule(on="GPU:1"), devices=(CPU, GPU, GPU1)).outcome == "failed"


@pytest.mark.parametrize("pattern", ["ResizeBicubic", "name:head/*", "reason:no-kernel"])
def test_what_is_allowed_leaves_the_count_and_the_ratio(pattern: str) -> None:
    found = verdict(matmul(), resize(), rule=rule(allow=(pattern,), min_ratio=1.0))
    assert found.passed
    assert (found.counting, found.ratio) == (1, 1.0)
    assert [(a.placement.type, str(a.pattern)) for a in found.allowed] == [
        ("ResizeBicubic", pattern)
    ]
    assert found.unused_allow == ()


def test_an_allowance_that_excused_nothing_is_named() -> None:
    found = verdict(matmul(), resize(), rule=rule(allow=("ResizeBicubic", "MatMul", "Where")))
    assert [str(p) for p in found.unused_allow] == ["MatMul", "Where"]


def test_min_ratio_is_a_share_of_what_counts() -> None:
    ops = (*(matmul(op=f"a{i}") for i in range(9)), resize(), SHAPE_SUM, DATASET)
    assert verdict(*ops, rule=rule(min_ratio=0.9)).passed
    failed = verdict(*ops, rule=rule(min_ratio=0.95))
    assert failed.outcome == "failed"
    assert failed.summary.endswith("90 % of what counts was on GPU:0, 95 % is wanted")


def test_strict_counts_all_but_structural_nodes() -> None:
    const = place("Const", CPU, outs="float32[2,2]")
    found = verdict(matmul(), SHAPE_SUM, DATASET, const, rule=rule(strict=True))
    assert [o.kind for o in found.offenders] == ["bookkeeping", "host"]


def test_in_name_only_is_marked_and_fails_under_strict_only() -> None:
    found = verdict(matmul(), INT_ADD)
    assert found.passed
    assert found.in_name_only == (INT_ADD,)
    strict = verdict(matmul(), INT_ADD, rule=rule(strict=True))
    assert [o.reason.code for o in strict.offenders] == ["host-memory"]
    assert (strict.counting, strict.on_target) == (2, 1)
    assert "in name only" in strict.summary


def test_strict_does_not_pass_where_it_can_not_be_checked() -> None:
    strict = rule(strict=True)
    in_a_graph = verdict(matmul(), rule=strict, kernels=None)
    assert in_a_graph.outcome == "error"
    assert "in name only" in in_a_graph.problems[0]
    assert verdict(matmul(origin="eager"), rule=strict, kernels=None).passed
    on_cpu = rule(on="CPU", strict=True)
    assert verdict(matmul(CPU), rule=on_cpu, kernels=None).passed


def test_required_operations() -> None:
    assert verdict(matmul(), rule=rule("MatMul", "name:Mat*")).passed
    unseen = verdict(matmul(), rule=rule("Conv2D"))
    assert unseen.outcome == "failed"
    assert [str(m) for m in unseen.missing_ops] == ["Conv2D was not seen"]
    elsewhere = verdict(matmul(), resize(), rule=rule("ResizeBicubic", allow=("ResizeBicubic",)))
    assert [str(m) for m in elsewhere.missing_ops] == ["ResizeBicubic was seen on CPU:0 only"]
    assert elsewhere.summary.startswith("ResizeBicubic was seen on CPU:0 only; the one operation")
    assert verdict(resize(), resize(GPU), rule=rule("ResizeBicubic")).missing_ops == ()


def test_what_the_framework_placed_is_listed_and_does_not_count() -> None:
    mean = place("AddV2", CPU, "float32[] float32[]", "float32[]",
                 request=asked("CPU:0", by_framework=True))  # fmt: skip
    found = verdict(matmul(), mean)
    assert found.passed
    assert found.framework == (mean,)


def compiled(device: Device, *inside: Placement) -> tuple[Placement, ...]:
    unit = Placement("step", None, device, origin="eager", unit="step", contents=len(inside))
    return (unit, *inside)


def test_a_compiled_function_is_one_unit() -> None:
    inside = [matmul(GPU, op=f"m{i}", origin="compiled", unit="step") for i in range(5)]
    found = verdict(*compiled(GPU, *inside), rule=rule("MatMul", "name:step"))
    assert found.passed
    assert found.counting == 1


def test_a_compiled_function_on_the_cpu_is_one_offender() -> None:
    inside = [matmul(CPU, op=f"m{i}", origin="compiled", unit="step") for i in range(5)]
    found = verdict(*compiled(CPU, *inside), rule=rule("MatMul"))
    assert found.outcome == "failed"
    assert [o.reason.code for o in found.offenders] == ["xla"]
    assert [str(m) for m in found.missing_ops] == ["MatMul was seen on CPU:0 only"]
    assert verdict(*compiled(CPU, *inside), rule=rule(allow=("reason:xla",))).passed


def test_a_pin_to_the_cpu_inside_a_compiled_function_passes_with_a_note() -> None:
    pinned = matmul(GPU, op="step/MatMul", origin="compiled", unit="step",
                    request=asked("CPU:0", source=LINE))  # fmt: skip
    found = verdict(*compiled(GPU, pinned))
    assert found.passed
    assert found.notes == (
        "step/MatMul asks for CPU:0 at model.py:12, inside the compiled function step: XLA ignores "
        "that and runs it on GPU:0",
    )


def test_an_unknown_device_is_neither_on_the_target_nor_elsewhere() -> None:
    found = verdict(matmul(), matmul(None, op="lost"))
    assert found.outcome == "error"
    assert found.on_target == 1
    assert found.problems == ("TensorFlow doesn't tell where 1 operation ran: lost",)
    assert "lost" in found.summary
    assert verdict(matmul(None), resize()).outcome == "failed"
    assert verdict(matmul(None), matmul(), rule=rule(allow=("reason:unknown",))).passed


def test_an_unknown_device_and_a_share() -> None:
    ops = (*(matmul(op=f"a{i}") for i in range(8)), matmul(None, op="lost"), resize())
    assert verdict(*ops, rule=rule(min_ratio=0.8)).passed
    assert verdict(*ops, rule=rule(min_ratio=0.9)).outcome == "error"
    assert verdict(*ops, rule=rule(min_ratio=0.95)).outcome == "failed"


def test_a_window_that_saw_nothing_is_an_error() -> None:
    found = judge(Record(), rule())
    assert found.outcome == "error"
    assert found.ratio is None
    assert found.summary == "nothing ran on TensorFlow while this test was watched"


@pytest.mark.parametrize(
    "seen", [{"placements": (DATASET,)}, {"calls": {"step": 1}}], ids=["dataset", "call"]
)
def test_a_window_where_nothing_counts_passes_and_says_so(seen: dict) -> None:
    found = judge(Record(signatures=record().signatures, **seen), rule(min_ratio=0.9))
    assert found.passed
    assert found.ratio is None
    assert found.summary == "nothing that counts ran"
    assert "nothing that counts ran" in found.notes[0]


def test_a_problem_of_the_capture_keeps_a_test_from_passing() -> None:
    assert verdict(matmul(), problems=("the capture broke",)).outcome == "error"
    assert verdict(resize(), problems=("the capture broke",)).outcome == "failed"


def test_a_substituted_gpu_passes_with_a_note() -> None:
    found = verdict(matmul(GPU, request=asked("GPU:7")))
    assert found.passed
    assert found.notes == ("1 operation asked for GPU:7 and ran on GPU:0",)


def test_the_int32_variable_of_the_classic_report_fails() -> None:
    variable = place("VarHandleOp", CPU, dtypes=(("dtype", "int32"),), request=asked("GPU:0"))
    found = verdict(matmul(), variable)
    assert [o.reason.code for o in found.offenders] == ["dtype"]
    assert found.offenders[0].why == "GPU:0 was asked for"


def test_integers_of_unknown_rank_are_left_out_aloud() -> None:
    found = verdict(matmul(), place("AddV2", CPU, "int32 int32", "int32"))
    assert found.passed
    assert found.notes == (
        "1 operation on integers of unknown rank elsewhere was taken for bookkeeping",
    )


def test_a_hook_goes_before_the_rule() -> None:
    answers = {"ResizeBicubic": "ignored", "AddV2": "counts", "MatMul": "host"}
    found = judge(record(matmul(CPU), resize(), SHAPE_SUM, place("Const", CPU)), rule(), TABLE,
                  classify_hook=lambda p: answers.get(p.type))  # fmt: skip
    assert [o.placement.type for o in found.offenders] == ["AddV2"]
    strict = judge(record(matmul(CPU), resize()), rule(strict=True), TABLE,
                   classify_hook=lambda p: answers.get(p.type))  # fmt: skip
    assert [o.placement.type for o in strict.offenders] == ["MatMul"]


def test_a_rule_for_the_cpu_is_the_mirror() -> None:
    on_cpu = rule(on="CPU:0")
    passed = verdict(matmul(CPU), DATASET, rule=on_cpu)
    assert passed.summary == "the one operation that counts ran on CPU:0"
    failed = verdict(matmul(CPU), resize(GPU, request=asked("GPU:0")), rule=on_cpu)
    assert [o.reason.code for o in failed.offenders] == ["requested-elsewhere"]
    assert failed.summary.startswith("1 of 2 operations that count ran on GPU:0; 50 %")


def test_without_kernels_the_verdict_is_the_same() -> None:
    ops = (matmul(), resize(), INT_ADD, SHAPE_SUM)
    with_, without = verdict(*ops), verdict(*ops, kernels=None)
    assert with_.outcome == without.outcome == "failed"
    assert with_.summary == without.summary
    assert [o.reason.code for o in without.offenders] == ["unknown"]
