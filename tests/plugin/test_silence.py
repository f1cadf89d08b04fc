"""Silence is never success: warm functions, empty tests, any log level, dead captures."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_process import Run, needs_simulator, run_simulated

needs_simulator()

SUITE = """
import pytest, sys, os, tensorflow as tf

on_gpu = pytest.mark.on_gpu

@tf.function
def pinned(x):
    with tf.device("/CPU:0"):
        return tf.matmul(x, x)

@tf.function
def free(x):
    return tf.matmul(x, x)

@tf.function(jit_compile=True)
def compiled(x):
    return tf.matmul(x, x)

@pytest.fixture(scope="module", autouse=True)
def warm():
    x = tf.random.uniform([4, 4])
    for _ in range(3):
        pinned(x), free(x), compiled(x)
    return x

def test_calls_it_first(warm):
    pinned(warm)

@on_gpu
def test_warm_pinned(warm):
    pinned(warm)

@on_gpu
def test_warm_pinned_again(warm):
    pinned(warm)

@on_gpu("MatMul")
def test_warm_free(warm):
    free(warm)

@on_gpu("MatMul")
def test_warm_compiled(warm):
    compiled(warm)

@on_gpu
def test_nothing():
    assert 1 + 1 == 2

@on_gpu
def test_nothing_but_numpy():
    import numpy as np
    np.ones([2, 2]) @ np.ones([2, 2])

@on_gpu
def test_only_traces(warm):
    pinned.get_concrete_function(tf.TensorSpec([7, 7]))

@on_gpu
def test_only_datasets():
    for _ in tf.data.Dataset.range(3):
        pass

@on_gpu
def test_switches_the_log_off(warm):
    tf.debugging.set_log_device_placement(False)
    pinned(warm)

@on_gpu
def test_switches_the_log_on(warm):
    tf.debugging.set_log_device_placement(True)
    try:
        pinned(warm)
    finally:
        tf.debugging.set_log_device_placement(False)

@on_gpu
def test_clears_callbacks(warm):
    from tensorflow.python.framework import op_callbacks
    op_callbacks.clear_op_callbacks()
    tf.exp(warm)

@on_gpu
def test_clears_callbacks_at_the_end(warm):
    from tensorflow.python.framework import op_callbacks
    tf.exp(warm)
    op_callbacks.clear_op_callbacks()

@on_gpu
def test_disables_collection(warm):
    from tensorflow.python.eager import context
    context.context().disable_graph_collection()
    pinned(warm)

@on_gpu
def test_disables_collection_by_the_class(warm):
    from tensorflow.python.eager import context
    context.Context.disable_graph_collection(context.context())
    pinned(warm)

@on_gpu
def test_traces_on_its_own(warm, tmp_path):
    writer = tf.summary.create_file_writer(str(tmp_path))
    tf.summary.trace_on(graph=True, profiler=False)
    pinned(warm)
    with writer.as_default():
        tf.summary.trace_export("mine", step=0)
    writer.close()
    from tensorflow.python.summary import summary_iterator
    graphs = [v for f in tmp_path.iterdir() for e in summary_iterator.summary_iterator(str(f))
              for v in e.summary.value if v.tag == "mine"]
    assert graphs, "the user's own trace is lost"

@on_gpu
def test_output(warm, capfd):
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"raw one\\n")
    os.system("echo from a child")
    tf.print("by tf.print", output_stream=sys.stdout)
    free(warm)
    out, err = capfd.readouterr()
    assert "to stdout" in out and "raw one" in out and "from a child" in out
    assert "to stderr" in err

@on_gpu
def test_resets_the_context():
    from tensorflow.python.eager import context
    tf.exp(tf.ones([2, 2]))
    context._reset_context()
    tf.exp(tf.ones([2, 2]))
"""
PINNED = "MatMul"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_simulated(tmp_path_factory.mktemp("silence"), SUITE)


@pytest.mark.parametrize(
    "name",
    [
        "test_warm_pinned",
        "test_warm_pinned_again",
        "test_switches_the_log_off",
        "test_switches_the_log_on",
        "test_disables_collection",
        "test_traces_on_its_own",
    ],
)
def test_a_pinned_op_is_seen_all_the_same(run: Run, name: str) -> None:
    test = run[name]
    assert test.outcome == "failed"
    assert "MatMul" in test.said, test.text
    assert "requested-elsewhere" in test.said
    assert "test_it.py:8" in test.said
    assert "own trace is lost" not in test.text


@pytest.mark.parametrize(
    "name", ["test_warm_free", "test_warm_compiled", "test_only_datasets", "test_output"]
)
def test_what_is_well_passes(run: Run, name: str) -> None:
    assert run[name].outcome == "passed", run[name].text


@pytest.mark.parametrize("name", ["test_nothing", "test_nothing_but_numpy", "test_only_traces"])
def test_nothing_ran(run: Run, name: str) -> None:
    test = run[name]
    assert test.outcome == "failed"
    assert "nothing ran on TensorFlow while this test was watched" in test.said
    assert test.result is not None
    assert test.result["outcome"] == "error"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("test_clears_callbacks", "op callbacks were cleared"),
        ("test_clears_callbacks_at_the_end", "op callbacks were cleared"),
        ("test_disables_collection_by_the_class", "graph collection was switched off"),
        ("test_resets_the_context", "eager context was replaced"),
    ],
)
def test_a_dead_capture_is_an_error(run: Run, name: str, says: str) -> None:
    test = run[name]
    assert test.outcome == "failed"
    assert says in test.said, test.text


def test_the_summary_tells_what_could_not_be_judged(run: Run) -> None:
    assert "tests could not be judged" in run.summary


LEVELS = SUITE.partition("@on_gpu\ndef test_only_traces")[0] + (
    """
@on_gpu
def test_writes():
    print("USER OUT"); print("USER ERR", file=sys.stderr)
    os.write(1, b"RAW OUT\\\\n")
    tf.exp([[1.0]])
    raise RuntimeError("to see the output")
"""
)


@pytest.mark.parametrize(
    ("args", "level"),
    [
        (["-s"], "3"),
        (["--capture=no"], "0"),
        (["--capture=fd"], "3"),
        (["--capture=sys"], "3"),
        (["--capture=tee-sys"], "1"),
        (["-p", "no:terminal"], "2"),
    ],
)
def test_each_capture_mode_and_log_level(tmp_path: Path, args: list[str], level: str) -> None:
    done = run_simulated(tmp_path, LEVELS, *args, env={"TF_CPP_MIN_LOG_LEVEL": level})
    assert done["test_warm_pinned"].outcome == "failed"
    assert "MatMul" in done["test_warm_pinned"].said
    assert done["test_warm_free"].outcome == "passed", done["test_warm_free"].text
    assert "nothing ran on TensorFlow" in done["test_nothing"].said
    shown = done.output if args[0] in ("-s", "--capture=no") else _captured(done, "test_writes")
    assert "USER OUT" in shown
    assert "USER ERR" in shown
    assert "RAW OUT" in shown + done.output


def _captured(done: Run, name: str) -> str:
    return "\n".join(text for _, text in done[name].sections)
