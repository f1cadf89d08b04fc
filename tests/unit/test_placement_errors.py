"""What TensorFlow says it could not place: messages of 0.12 to 2.21, and the reasons read of them.

``data/placement_errors`` holds what TensorFlow 2.12.1, 2.15.1 and 2.21.0 raised (CPU-only wheel
with and without the simulated GPU, soft placement off), without their Python stacks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tfdevice.errors.placement import FailureReader, find_failures, read_failures
from pytest_tfdevice.errors.reasons import Known, reason_of
from pytest_tfdevice.kernels import for_version

DATA = Path(__file__).parents[1] / "data" / "placement_errors"
VERSIONS = ("2.12", "2.15", "2.21")

EXPECTED = {
    # what was raised: op, type, function, reason
    "eager_dtype": ("", "MatMul", None, "dtype"),
    "eager_nokernel": ("", "ResizeBicubic", None, "no-kernel"),
    "eager_nogpu": ("", None, None, "no-gpu"),
    "function_dtype": ("prod", "MatMul", "step", "dtype"),
    "function_nokernel": ("up", "ResizeBicubic", "step", "no-kernel"),
    "function_nogpu": ("", None, "step", "no-gpu"),
    "s_v_int": ("counter", "VariableV2", None, "dtype"),
    "s_nogpu": ("s", None, None, "no-gpu"),
    "s_iter": ("TensorSliceDataset", "TensorSliceDataset", None, "no-kernel"),
    "s_save": ("save/SaveV2", "SaveV2", None, "no-kernel"),
    "f_table": ("hash_table", "HashTableV2", None, "no-kernel"),
    "e_var": ("Variable", "VarHandleOp", None, "dtype"),
    "e_var_sparse": (
        *("ResourceSparseApplyAdagradDA", "ResourceSparseApplyAdagradDA"),
        *(None, "no-kernel"),
    ),
    "f_var_sparse": (
        *("ResourceSparseApplyAdagradDA", "ResourceSparseApplyAdagradDA"),
        *("step", "no-kernel"),
    ),
    "bad_job": ("", None, None, "no-gpu"),
    "s_pyfunc": ("np_fn", "PyFunc", None, "no-kernel"),
    "eager_dtype_without_gpu": ("", None, None, "no-gpu"),
    "function_dtype_without_gpu": ("", None, "step", "no-gpu"),
    "s_v_int_without_gpu": ("counter", None, None, "no-gpu"),
    "s_save_without_gpu": (
        *("w/Initializer/random_uniform/RandomUniform", "RandomUniform"),
        *(None, "no-gpu"),
    ),
}


def samples(version: str) -> dict[str, str]:
    parts = (DATA / f"{version}.txt").read_text().split("===== ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2] for part in parts}


CASES = [(version, name) for version in VERSIONS for name in samples(version)]


@pytest.mark.parametrize(("version", "name"), CASES)
def test_what_this_tensorflow_raised(version: str, name: str) -> None:
    (failure,) = find_failures(samples(version)[name])
    function = failure.function.split("_")[3] if failure.function else None
    reason = reason_of(failure, Known(for_version(version), version))
    assert (failure.op, failure.type, function, reason.code) == EXPECTED[name]


def test_every_shape_was_raised_by_the_oldest_and_the_newest() -> None:
    assert set(samples("2.12")) == set(samples("2.21")) == set(EXPECTED)


def test_the_dtype_and_the_kernels_are_read_from_the_message_itself() -> None:
    (failure,) = find_failures(samples("2.21")["function_dtype"])
    assert failure.dtypes == (("T", "int32"),)
    reason = reason_of(failure)
    assert reason.code == "dtype"
    assert reason.evidence == (
        "MatMul has no GPU kernel for T=int32; it has for T: bfloat16, complex128, complex64, "
        "float16, float32, float64"
    )


def test_the_line_that_made_the_op() -> None:
    (failure,) = find_failures(samples("2.21")["s_v_int"])
    assert str(failure.source) == "model.py:54"


def test_the_group_and_its_types() -> None:
    (failure,) = find_failures(samples("2.15")["s_v_int"])
    assert dict(failure.types)["Identity"] == ("GPU", "CPU")
    assert dict(failure.types)["VariableV2"] == ("CPU",)
    assert [m.op for m in failure.members if m.type == "AssignAdd"] == ["AssignAdd"]


def test_what_is_there_and_what_was_asked_for() -> None:
    (failure,) = find_failures(samples("2.21")["eager_nogpu"])
    reason = reason_of(failure)
    assert reason.evidence == "GPU:7 was asked for; there is only GPU:0"
    (failure,) = find_failures(samples("2.21")["eager_dtype_without_gpu"])
    assert reason_of(failure).evidence == "GPU:0 was asked for; TensorFlow has no GPU, only CPU:0"


OLD = {
    "1.0, no such device": (
        "Cannot assign a device to node 'save_1/ShardedFilename_1': Could not satisfy explicit "
        "device specification '/device:GPU:0' because no devices matching that specification are "
        "registered in this process; available devices: /job:localhost/replica:0/task:0/cpu:0\n",
        ("save_1/ShardedFilename_1", None, "no-gpu"),
    ),
    "1.0, no kernel, wrapped": (
        "Cannot assign a device to node 'save_1/ShardedFilename_1':\n"
        "Could not satisfy explicit device specification '/device:GPU:0'\n"
        "because no supported kernel for GPU devices is available.\n\n"
        "Colocation Debug Info:\n"
        "Colocation group had the following types and devices:\n"
        "Identity: CPU\nShardedFilename: CPU\n"
        '\t [[Node: save_1/ShardedFilename_1 = ShardedFilename[_device="/device:GPU:0"](a, b)]]\n',
        ("save_1/ShardedFilename_1", "ShardedFilename", "no-kernel"),
    ),
    "1.4, explicitly assigned": (
        "InvalidArgumentError (see above for traceback): Cannot assign a device for operation "
        "'fake_var_3': Operation was explicitly assigned to /device:GPU:0 but available devices "
        "are [ /job:localhost/replica:0/task:0/cpu:0 ]. Make sure the device specification refers "
        "to a valid device.\n"
        '\t [[Node: fake_var_3 = VariableV2[dtype=DT_FLOAT, _device="/device:GPU:0"]()]]\n',
        ("fake_var_3", "VariableV2", "no-gpu"),
    ),
    "1.15, with the line": (
        "Cannot assign a device for operation gpu_0/res1/L2Loss: node gpu_0/res1/L2Loss (defined "
        "at /code/ops.py:128) was explicitly assigned to /device:GPU:0 but available devices are "
        "[ /job:localhost/replica:0/task:0/device:CPU:0, "
        "/job:localhost/replica:0/task:0/device:XLA_GPU:0 ].\n\t [[gpu_0/res1/L2Loss]]\n",
        ("gpu_0/res1/L2Loss", None, "no-gpu"),
    ),
    "1.4, two that can't be together": (
        "Cannot colocate nodes 'm_0/global_norm/L2Loss' and 'm_0/CudnnRNNBackprop' because no "
        "device type supports both of those nodes and the other nodes colocated with them.\n"
        "Colocation Debug Info:\n"
        "Colocation group had the following types and devices:\n"
        "CudnnRNNBackprop: GPU\nIdentity: GPU CPU\nL2Loss: CPU\n",
        ("m_0/global_norm/L2Loss", None, "colocated"),
    ),
    "2.x, a GPU op without a GPU": (
        "No OpKernel was registered to support Op 'CudnnRNN' used by {{node rnn}} with these "
        "attrs: [T=DT_FLOAT] Registered devices: [CPU] Registered kernels:\n"
        "  <no registered kernels>\n\n\t [[rnn]]\n",
        ("rnn", "CudnnRNN", "no-gpu"),
    ),
}


@pytest.mark.parametrize("name", OLD)
def test_what_older_ones_said(name: str) -> None:
    text, expected = OLD[name]
    (failure,) = find_failures(text)
    assert (failure.op, failure.type, reason_of(failure, Known(None)).code) == expected


def test_an_xla_gpu_is_no_gpu() -> None:
    (failure,) = find_failures(OLD["1.15, with the line"][0])
    assert "an XLA_GPU is no GPU" in reason_of(failure).evidence


def test_kernels_of_another_release_prove_nothing() -> None:
    text = (
        "Cannot assign a device for operation a: Could not satisfy explicit device specification "
        "'/device:GPU:0' because no supported kernel for GPU devices is available.\n"
        "Colocation group had the following types and devices:\nSegmentSum: CPU\n"
        "Colocation members and user-requested devices:\n  a (SegmentSum) /device:GPU:0\n"
    )
    (failure,) = find_failures(text)
    other = reason_of(failure, Known(for_version("2.21"), "2.21", same=False))
    assert other.code == "no-kernel"
    assert "in TensorFlow 2.21 it has for" in other.evidence
    same = reason_of(failure, Known(for_version("2.21"), "2.21"))
    assert same.code == "dtype"


@pytest.mark.parametrize("prefix", ["", "worker_1  | ", "[1,0]<stderr>:", "> "])
def test_what_was_put_before_each_line(prefix: str) -> None:
    text = samples("2.21")["function_dtype"]
    decorated = "\n".join(prefix + line for line in text.splitlines())
    assert find_failures(decorated) == find_failures(text)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_message_that_breaks_off_is_no_wrong_one(cut: int) -> None:
    whole = samples("2.21")["function_dtype"]
    lines = whole.splitlines()[:cut]
    for failure in read_failures(lines):
        assert failure.op == "prod"
        reason = reason_of(failure, Known(for_version("2.21"), "2.21"))
        assert reason.code == ("dtype" if failure.type or failure.types else "no-kernel")


def test_the_start_of_a_message_says_nothing() -> None:
    assert find_failures("Cannot assign a device for operation prod: Could not satisfy expl") == []


def test_other_text_is_none() -> None:
    text = (
        "prod: (MatMul): /job:localhost/replica:0/task:0/device:GPU:0\n"
        "ValueError: Could not find a matching function\n"
        "  device='GPU'; T in [DT_FLOAT]\nCould not satisfy my wishes\n"
    )
    assert find_failures(text) == []


def test_the_same_message_twice_is_one() -> None:
    text = samples("2.21")["s_v_int"]
    assert len(find_failures(text + "\n" + text)) == 1


def test_a_group_of_any_size_is_bounded() -> None:
    reader = FailureReader()
    found = list(reader.line("Failed to place the graph without changing the devices of some"
                             " resources. Current candidate devices are ["))  # fmt: skip
    found += reader.line("Colocation members, user-requested devices, and framework assigned")
    for number in range(100_000):
        found += reader.line(f"  op_{number} (MatMul) /device:GPU:0")
    (failure,) = [*found, *reader.end()]
    assert len(failure.members) == 200
