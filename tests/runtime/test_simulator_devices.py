"""One simulated GPU: what TensorFlow does with it is what it does with a GPU."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)

GPU = ["GPU:0", "GPU:0"]
"""Made by the GPU, and in its memory."""


@pytest.fixture(scope="module")
def seen() -> Results:
    return run_script("one_gpu")


def test_loading_tells_what_it_did(seen: Results) -> None:
    facts = seen["simulation_facts"]
    assert facts["same"], "the same call again has to do nothing"
    assert (facts["count"], facts["memory"]) == (1, 512 * 2**20)
    assert facts["tensorflow"]
    assert facts["added"] > 4000
    assert facts["seconds"] < 2
    assert facts["text"] == "1 simulated GPU of 512 MiB"


def test_other_arguments_are_refused_once_loaded(seen: Results) -> None:
    errors = seen["loading_with_other_arguments"]
    assert len(errors) == 2
    for error in errors:
        assert "1 simulated GPU of 512 MiB already" in error


def test_it_is_listed_and_says_that_it_is_simulated(seen: Results) -> None:
    assert seen["listed"] == ["/physical_device:GPU:0", "Simulated GPU (host memory)", [8, 0]]


def test_memory_growth_can_be_set(seen: Results) -> None:
    assert seen["growth"] == [None, True]


def test_is_simulated(seen: Results) -> None:
    found = seen["is_simulated"]
    assert found["logical"] == {"/device:CPU:0": False, "/device:GPU:0": True}
    assert found["physical"] == [True]
    assert found["names"] == {
        "GPU:0": True,
        "/device:GPU:0": True,
        "/job:localhost/replica:0/task:0/device:GPU:0": True,
        "/job:worker/task:1/device:GPU:0": False,
        "CPU:0": False,
        "nonsense!": False,
    }


def test_matmul_runs_on_it_with_the_right_result(seen: Results) -> None:
    where, difference = seen["matmul"]
    assert where == GPU
    assert difference < 1e-5


def test_copies_to_and_from_it(seen: Results) -> None:
    assert seen["copies"] == [["CPU:0", "CPU:0"], GPU, ["CPU:0", "CPU:0"], True]


def test_host_memory_rules(seen: Results) -> None:
    in_name_only = ["GPU:0", "CPU:0"]
    assert seen["host_memory_rules"] == {
        "float": GPU,
        "int32": in_name_only,
        "shape": in_name_only,
        "range": in_name_only,
    }


def test_variables(seen: Results) -> None:
    found = seen["variables"]
    assert found["float"] == ["GPU:0", [2.0, 3.0, 4.0]]
    assert found["int32"] == "CPU:0", "an int32 variable has no GPU kernel"


def test_gradients(seen: Results) -> None:
    assert seen["gradients"] == [GPU, [2.0, 2.0, 2.0]]


def test_strings_stay_on_the_cpu(seen: Results) -> None:
    assert seen["strings"] == [["CPU:0", "CPU:0"], "ab"]


def test_hash_table(seen: Results) -> None:
    assert seen["hash_table"] == [2, 0]


def test_function(seen: Results) -> None:
    assert seen["function"] == [GPU, 16.0, "GPU:0"]


def test_control_flow_in_a_function(seen: Results) -> None:
    where, stacked, negated = seen["control_flow"]
    assert where == GPU
    assert stacked == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert negated == [-1.0, -1.0]


def test_compiled_functions(seen: Results) -> None:
    assert seen["compiled"] == {
        "gpu": ["GPU:0", 4.0],
        "cpu": ["CPU:0", 4.0],
        "nested": ["GPU:0", 5.0],
    }


def test_a_compiled_function_without_gpu_kernel(seen: Results) -> None:
    assert seen["compiled_without_gpu_kernel"] == ["GPU:0", [[7, 10], [15, 22]]]


def test_checkpoint_and_saved_model(seen: Results) -> None:
    assert seen["saved_and_restored"] == ["GPU:0", GPU, [2.0, 3.0]]


def test_data_pipeline_and_prefetching_to_it(seen: Results) -> None:
    assert seen["data_pipeline"] == ["GPU:0", [1.0, 3.0, 5.0, 7.0]]


def test_many_ops_land_on_it(seen: Results) -> None:
    found = seen["many_ops"]
    assert found.pop("py_function") == "CPU:0"
    assert len(found) >= 15
    assert set(found.values()) == {"GPU:0"}, found


def test_an_op_without_cpu_kernel_fails_only_when_run(seen: Results) -> None:
    not_taken, message = seen["unimplemented_only_when_run"]
    assert not_taken == [1.0, 1.0, 1.0, 1.0]
    assert "Simulated GPU: op CudnnRNNCanonicalToParams" in message
    assert "cannot run here" in message


def test_memory_figures(seen: Results) -> None:
    found = seen["memory"]
    four_mib = 4 * 2**20
    assert four_mib <= found["kept"] < four_mib + 4096
    assert 5 * four_mib <= found["peak"] < 5 * four_mib + 2**20
    assert found["reset"]


def test_out_of_memory_is_as_on_a_gpu_and_survived(seen: Results) -> None:
    message, after = seen["out_of_memory"]
    assert "OOM when allocating tensor with shape[256,1024,1024]" in message
    assert "by allocator GPU_0_bfc" in message
    assert after == 10.0


def test_without_soft_placement_a_string_op_is_an_error(seen: Results) -> None:
    kind, message = seen["soft_placement_off"]
    assert kind in ("InvalidArgumentError", "NotFoundError")
    assert "GPU" in message
