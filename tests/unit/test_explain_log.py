"""``pytest-tfdevice explain``: what a log shows on the CPU, and why.

``data/explained`` holds what one program logged under TensorFlow 2.12.1, 2.15.1 and 2.21.0 on the
simulated GPU, at log level 0: eager ops, a bicubic resize, a data pipeline, an integer matrix
product in a function, a compiled function called on the CPU, and a v1 Session with an int32
variable that was to be on the GPU.
"""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tfdevice import cli
from pytest_tfdevice.kernels.ops import shipped_signatures
from pytest_tfdevice.logs.explain import LogExplanation, LogGroup, explain_log
from pytest_tfdevice.logs.facts import LogFacts
from pytest_tfdevice.logs.kernels import choose_kernels
from pytest_tfdevice.placement_log import parse_stream
from pytest_tfdevice.reports.log_text import conclusion, log_text

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("2.12", "2.15", "2.21")
CPU0 = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"


def explained(text: str, tensorflow: str | None = None, installed: str = "2.21") -> LogExplanation:
    facts = LogFacts()
    return explain_log(
        parse_stream(facts.passing(iter([text]))),
        facts,
        shipped_signatures(),
        lambda: choose_kernels(facts.version, tensorflow, installed),
    )


def sample(version: str) -> LogExplanation:
    return explained((DATA / "explained" / f"{version}.log").read_text())


def group(found: LogExplanation, op_type: str) -> LogGroup:
    (one,) = [group for group in found.groups if group.type == op_type]
    return one


@pytest.mark.parametrize("version", VERSIONS)
def test_a_real_log(version: str) -> None:
    found = sample(version)
    on_cpu = {group.type for group in found.groups}
    assert {"ResizeBicubic", "MatMul", "VariableV2", "Assign", "AssignAdd"} <= on_cpu
    assert "Const" not in on_cpu
    assert {"RangeDataset", "MapDataset", "IteratorGetNext"} <= set(found.set_apart["host"])
    assert found.set_apart["structural"]["Const"] > 1
    assert found.facts.gpus == {"GPU:0": "Simulated GPU (host memory)"}
    assert found.functions[("jc", "CPU:0")] == 1
    assert version in found.facts.version


@pytest.mark.parametrize("version", VERSIONS)
def test_the_kernels_of_the_release_that_wrote_the_log(version: str) -> None:
    found = sample(version)
    assert found.kernels.matches
    assert found.kernels.registry is not None
    assert found.kernels.registry.version.startswith(version)
    resize = group(found, "ResizeBicubic")
    assert resize.reason is not None
    assert (resize.reason.code, resize.certain) == ("no-kernel", True)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_colocation_warning_is_read(version: str) -> None:
    found = sample(version)
    ((failure, reason),) = found.failures
    assert failure.problem == "warned"
    assert reason.code == "colocated"
    variable = group(found, "VariableV2")
    assert variable.reason is not None
    assert (variable.reason.code, variable.certain) == ("dtype", True)


def test_the_likely_is_told_from_the_certain() -> None:
    product = group(sample("2.21"), "MatMul")
    assert product.reason is not None
    assert (product.reason.code, product.certain) == ("unknown", False)
    assert "T: bfloat16, complex128" in product.reason.evidence
    assert "a log has no dtypes" in product.reason.evidence


def test_an_op_that_onednn_renamed_is_one_op() -> None:
    assert group(sample("2.21"), "MatMul").count == 1


def test_a_log_without_a_gpu_says_so() -> None:
    text = f"Device mapping: no known devices.\nmm: (MatMul): {CPU0}\n"
    found = explained(text)
    assert found.accelerator is None
    assert conclusion(found) == (
        "the one operation that may count is on the CPU; the program had no GPU: its Session says "
        '"no known devices"'
    )


def test_a_log_that_names_no_gpu_claims_nothing() -> None:
    found = explained(f"mm: (MatMul): {CPU0}\na: (Relu): {CPU0}\n")
    assert "nothing in the log names a GPU" in conclusion(found)
    assert all(group.reason is None for group in found.groups)


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("W dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: x",
         "TensorFlow could not load libcudart.so.11.0"),
        ("I cuda/cuda.cc:1] Could not find cuda drivers on your machine, GPU will not be used.",
         "no CUDA driver was found"),
        ("I cuda_diagnostics.cc:147] no NVIDIA GPU device is present: /dev/nvidia0 does not exist",
         "no NVIDIA GPU is in the machine"),
    ],
)  # fmt: skip
def test_why_there_was_no_gpu(line: str, cause: str) -> None:
    found = explained(f"{line}\nmm: (MatMul): {CPU0}\n")
    assert conclusion(found).endswith(f"the program had no GPU: {cause}")


def test_an_xla_gpu_is_no_gpu() -> None:
    text = f"mm: (MatMul): {CPU0}\nx: (Relu): {GPU0.replace('GPU:0', 'XLA_GPU:0')}\n"
    assert "only XLA_GPU" in conclusion(explained(text))


def test_all_on_the_gpu() -> None:
    text = f"mm: (MatMul): {GPU0}\nsave/SaveV2: (SaveV2): {CPU0}\nc: (Const): {CPU0}\n"
    found = explained(text)
    assert conclusion(found) == "no operation that may count is on the CPU: 1 on GPU:0"
    assert found.set_apart == {"host": {"SaveV2": 1}, "structural": {"Const": 1}}


def test_scopes_and_types_are_groups() -> None:
    ops = ["net/a/up", "net/a/up_1", "net/b/up"]
    text = "".join(f"{op}: (ResizeBicubic): {CPU0}\n" for op in ops) + f"mm: (MatMul): {GPU0}\n"
    found = explained(text)
    assert [(g.scope, g.count) for g in found.groups] == [("net/a", 2), ("net/b", 1)]


def test_a_log_of_another_release_is_not_certain() -> None:
    text = (
        "I tensorflow/core/common_runtime/simple_placer.cc:841] "
        f"up: (ResizeBicubic){CPU0}\nmm: (MatMul): {GPU0}\n"
    )
    found = explained(text)
    assert found.facts.version == "1.0 or 1.1"
    resize = group(found, "ResizeBicubic")
    assert resize.reason is not None
    assert not resize.certain
    assert "the log is of 1.0 or 1.1" in resize.reason.evidence


def test_a_log_without_types() -> None:
    header = "I tensorflow/core/common_runtime/simple_placer.cc:818] "
    old_cpu, old_gpu = CPU0.replace("device:CPU", "cpu"), GPU0.replace("device:GPU", "gpu")
    text = f"{header}net/MatMul_3: {old_cpu}\n{header}thing: {old_cpu}\n{header}b: {old_gpu}\n"
    found = explained(text)
    guessed = group(found, "MatMul")
    assert guessed.guessed
    assert "MatMul?" in log_text(found)
    unknown = group(found, "")
    assert unknown.reason is not None
    assert unknown.reason.code == "unknown"


def test_an_op_that_follows_a_reference() -> None:
    text = (
        "I tensorflow/core/common_runtime/simple_placer.cc:697] Ignoring device specification "
        "/device:GPU:0 for node 'q_Dequeue' because the input edge from 'q' is a reference "
        f"connection and already has a device field set to /device:CPU:0\n"
        f"q_Dequeue: (MatMul): {CPU0}\nmm: (MatMul): {GPU0}\n"
    )
    follower = group(explained(text), "MatMul")
    assert follower.reason is not None
    assert (follower.reason.code, follower.certain) == ("colocated", True)
    assert "it follows q, on /device:CPU:0" in follower.reason.evidence


def test_the_kernels_that_are_asked_for() -> None:
    text = f"s: (SegmentSum): {CPU0}\nmm: (MatMul): {GPU0}\n"
    assert explained(text, "2.15").kernels.why == "as asked for"
    found = explained(text, "2.15")
    assert found.kernels.registry is not None
    assert found.kernels.registry.version.startswith("2.15")


def test_functions_without_their_operations() -> None:
    found = explained(f"Executing op __inference_train_step_42 in device {GPU0}\n")
    assert conclusion(found) == "only calls of functions are in the log: train_step on GPU:0"
    assert "XLA compiled them" in log_text(found)


def test_an_error_alone_is_explained() -> None:
    text = (DATA / "placement_errors" / "2.21.txt").read_text().split("===== ")[4]
    report = log_text(explained(text))
    assert report.startswith("nothing was placed: 1 message of TensorFlow says what could not be")
    assert "could not place prod (MatMul) on GPU:0: dtype" in report


@pytest.mark.parametrize("version", VERSIONS)
def test_no_line_is_longer_than_100_columns(version: str) -> None:
    assert max(map(len, log_text(sample(version)).splitlines())) <= 100


def test_memory_is_bounded_on_a_long_log() -> None:
    def lines() -> Iterator[str]:
        for number in range(30_000):
            yield f"scope_{number}/up_{number}: (ResizeBicubic): {CPU0}\n"

    facts = LogFacts()
    tracemalloc.start()
    try:
        found = explain_log(
            parse_stream(facts.passing(lines())),
            facts,
            shipped_signatures(),
            lambda: choose_kernels(facts.version),
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.total == 30_000
    assert len(found.groups) <= 20_001
    assert peak < 80 * 2**20


# The command


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: bytes = b"") -> int:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    return cli.main(["explain", *arguments])


def test_json_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (DATA / "explained" / "2.15.log").read_bytes()
    assert run(monkeypatch, "-", "--format", "json", stdin=text) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kernels"].startswith("2.15")
    assert told["accelerator"] == "GPU"
    reasons = {group["type"]: group["reason"] for group in told["on_cpu"]}
    assert reasons["ResizeBicubic"] == "no-kernel"
    assert told["not_placed"][0]["warning"]


def test_text_of_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, str(DATA / "explained" / "2.21.log")) == 0
    first, *_ = capsys.readouterr().out.splitlines()
    assert first == "8 of 18 operations that may count are on the CPU; 10 on GPU:0"


def test_a_log_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "nowhere.log") == 2
    assert "can't read nowhere.log" in capsys.readouterr().err


def test_a_release_without_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "-", "--tensorflow", "1.15") == 2
    assert "knows the GPU kernels of TensorFlow 2.12 to 2.21" in capsys.readouterr().err


def test_no_placement_is_remarked_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "-", stdin=b"epoch 1\n") == 0
    assert "no placement found" in capsys.readouterr().err


def test_tensorflow_is_not_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = "tensorflow" in sys.modules
    assert run(monkeypatch, str(DATA / "explained" / "2.21.log")) == 0
    assert ("tensorflow" in sys.modules) == before
    assert capsys.readouterr().out


@pytest.mark.parametrize("log", sorted((DATA / "logs").glob("*.txt")), ids=lambda p: p.stem)
def test_every_sample_log_is_explained(log: Path) -> None:
    """What ``parse`` finds in it is accounted for: on a device that counts, set apart, a call."""
    text = log.read_text(errors="replace")
    found = explained(text)
    assert max(map(len, log_text(found).splitlines()), default=0) <= 100
    placed = [p for p in parse_stream([text]) if not (p.type or "").startswith(("_Arg", "_Ret"))]
    told = found.total + sum(sum(types.values()) for types in found.set_apart.values())
    assert bool(placed) == bool(told or found.functions)
