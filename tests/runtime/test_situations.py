"""What the product says of situations that people asked about in public.

All run in one process, one window each.  What is expected is what the threads and the kernel
registry of that TensorFlow say, not what the plugin said before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tf_process import Facts, needs_tensorflow, run

from pytest_tfdevice.kernels import for_version

needs_tensorflow()

SCRIPT = """
have_simulated(2)
sys.path.insert(0, os.environ["PROGRAMS"])
if facts["simulated"]:
    import tensorflow as tf
    import pytest_tfdevice
    from programs_situations import SITUATIONS
    facts["version"] = tf.__version__
    for name, program in SITUATIONS.items():
        error = None
        with pytest_tfdevice.watch() as record:
            try:
                program()
            except Exception as raised:
                error = str(raised)
        verdict = record.verdict("GPU")
        where = {}
        for p in record:
            where.setdefault(p.type or p.op, set()).add(str(p.device))
        facts[name] = {
            "outcome": verdict.outcome,
            "off": {o.placement.type: [o.reason.code, o.reason.evidence, o.reason.root]
                    for o in verdict.offenders},
            "where": {k: sorted(v) for k, v in where.items()},
            "names": {p.op: str(p.device) for p in record},
            "error": error,
            "problems": list(verdict.problems),
        }
    quiet = pytest_tfdevice.watch()
    with quiet as record:
        pass
    facts["nothing"] = record.verdict("GPU").summary
    from pytest_tfdevice.kernels import registered
    facts["cudnn"] = sorted({e.device_type for e in registered().all if e.op == "CudnnRNNV3"})
"""


@pytest.fixture(scope="module")
def facts() -> Facts:
    found = run(SCRIPT, level=3, env={"PROGRAMS": str(Path(__file__).parent), **os.environ})
    if not found["simulated"]:
        pytest.skip(found["not_simulated"])
    return found


def off(facts: Facts, name: str) -> dict[str, str]:
    """The offenders of a situation: reason by type."""
    return {op_type: reason[0] for op_type, reason in facts[name]["off"].items()}


def where(facts: Facts, name: str, op_type: str) -> list[str]:
    found: list[str] = facts[name]["where"][op_type]
    return found


def test_01_an_int32_variable_names_its_dtype_and_no_missing_gpu(facts: Facts) -> None:
    assert facts["s01"]["outcome"] == "failed"
    variable: Any = facts["s01"]["off"]["VariableV2"]
    assert variable[0] == "dtype"
    assert "VariableV2 has no GPU kernel for dtype=int32; it has for dtype:" in variable[1]
    assert where(facts, "s01", "VariableV2") == ["CPU:0"]


def test_03_sparse_updates_depend_on_the_release(facts: Facts) -> None:
    kernels = for_version(facts["version"])
    for op_type in ("SegmentSum", "ResourceSparseApplyAdagrad", "ResourceSparseApplyAdagradV2"):
        seen = facts["s03"]["where"].get(op_type)
        if seen:
            has = kernels.find(op_type, "GPU", {"T": "float32", "Tindices": "int64"}) or (
                kernels.find(op_type, "GPU", {"T": "float32", "Tindices": "int32"})
            )
            assert ("GPU:0" in seen) == (has is not None), op_type
    assert facts["s03"]["where"]["ResourceGather"] == ["GPU:0"]


def test_05_a_pipeline_is_host_work(facts: Facts) -> None:
    assert facts["s05"]["outcome"] == "passed"
    assert where(facts, "s05", "MapDataset") == ["CPU:0"]
    assert where(facts, "s05", "MatMul") == ["GPU:0"]


def test_06_an_iterator_in_a_gpu_scope(facts: Facts) -> None:
    assert facts["s06"]["outcome"] == "passed"
    assert where(facts, "s06", "OneShotIterator") == ["CPU:0"]
    assert where(facts, "s06", "Mul") == ["GPU:0"]
    assert "Cannot assign a device" in facts["s06_hard"]["error"]


def test_07_saving_never_counts(facts: Facts) -> None:
    assert facts["s07"]["outcome"] == "passed"
    assert where(facts, "s07", "SaveV2") == ["CPU:0"]


def test_09_tables_are_host_work(facts: Facts) -> None:
    assert facts["s09"]["outcome"] == "passed"
    assert where(facts, "s09", "HashTableV2") == ["CPU:0"]
    assert where(facts, "s09", "LookupTableFindV2") == ["CPU:0"]
    assert where(facts, "s09", "OneHot") == ["GPU:0"]


def test_10_python_functions_are_host_work(facts: Facts) -> None:
    assert facts["s10"]["outcome"] == "passed"
    assert where(facts, "s10", "PyFunc") == ["CPU:0"]
    assert "GPU:0" in where(facts, "s10", "AddV2")


def test_11_a_pinned_nms_names_the_pin(facts: Facts) -> None:
    assert off(facts, "s11")["NonMaxSuppressionV3"] == "requested-elsewhere"
    assert where(facts, "s11", "Conv2D") == ["GPU:0"]


def test_14_channels_first_is_seen_though_it_may_raise(facts: Facts) -> None:
    assert where(facts, "s14", "Conv2D") == ["GPU:0"]


def test_15_cudnn_has_no_cpu_kernel(facts: Facts) -> None:
    assert "CPU" not in facts["cudnn"]


def test_17_resizing_without_a_gpu_kernel(facts: Facts) -> None:
    assert facts["s17"]["outcome"] == "failed"
    reasons = off(facts, "s17")
    assert reasons["ResizeBicubic"] == reasons["ScaleAndTranslate"] == "no-kernel"
    assert where(facts, "s17", "ResizeBilinear") == ["GPU:0"]


def test_18_what_is_pinned_on_purpose_can_be_allowed(facts: Facts) -> None:
    assert set(off(facts, "s18").values()) == {"requested-elsewhere"}
    assert where(facts, "s18", "MatMul") == ["GPU:0"]


def test_19_only_what_is_tied_to_the_cpu_variable_is_there(facts: Facts) -> None:
    names = facts["s19"]["names"]
    assert names["emb"] == "CPU:0"
    assert names["nce_w"] == "GPU:0"
    assert where(facts, "s19", "LogUniformCandidateSampler") == ["CPU:0"]


def test_21_both_replicas_work(facts: Facts) -> None:
    assert facts["s21"]["outcome"] == "passed"
    assert where(facts, "s21", "Mul") == ["GPU:0", "GPU:1"]


def test_22_a_server_is_seen_or_said_to_be_unseen(facts: Facts) -> None:
    seen = [p for p in facts["s22"]["names"] if p == "c"]
    assert facts["s22"]["error"] is None
    assert seen or facts["s22"]["outcome"] == "error"
    assert "nothing ran on TensorFlow" in facts["nothing"]


def test_23_a_growing_graph(facts: Facts) -> None:
    assert facts["s23"]["outcome"] == "passed"
    assert where(facts, "s23", "AddV2") == ["GPU:0"]


def test_25_watching_begins_at_any_time(facts: Facts) -> None:
    assert where(facts, "s25", "Square") == ["GPU:0"]


def test_28_an_int32_matmul_names_its_dtype(facts: Facts) -> None:
    assert off(facts, "s28") == {"MatMul": "dtype"}
    assert facts["s28"]["names"]["prod"] == "CPU:0"


def test_29_a_loop_body_is_on_the_gpu(facts: Facts) -> None:
    assert facts["s29"]["outcome"] == "passed"
    assert where(facts, "s29", "ArgMin") == ["GPU:0"]
    assert any("while/body" in name and name.endswith("ArgMin") for name in facts["s29"]["names"])


def test_31_printing_is_host_work(facts: Facts) -> None:
    assert facts["s31"]["outcome"] == "passed"
    assert where(facts, "s31", "PrintV2") == ["CPU:0"]
    assert where(facts, "s31", "Fill") == ["GPU:0"]


def test_32_an_update_is_tied_to_its_variable(facts: Facts) -> None:
    update = facts["s32"]["off"]["ResourceApplyGradientDescent"]
    assert update[0] in ("colocated", "requested-elsewhere")
    assert where(facts, "s32", "ResourceApplyGradientDescent") == ["CPU:0"]
    assert "GPU:0" in where(facts, "s32", "MatMul")


def test_26_34_no_gpu_is_a_skip_with_a_reason() -> None:
    """tensorflow#1423: fail only where a GPU exists and is not used."""
    found = run(
        """
        from pytest_tfdevice.devices import find_devices
        report = find_devices()
        facts["count"], facts["why"] = report.count, report.skip_reason(1, None, None)
        """,
        level=3,
        env={"CUDA_VISIBLE_DEVICES": "-1"},
    )
    assert found["count"] == 0
    assert found["why"]
