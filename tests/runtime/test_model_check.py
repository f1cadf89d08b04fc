"""``pytest-tfdevice check`` on models that are made here, with Keras 2 or 3 as installed.

One process makes all models; one more checks them all, as the command does, but for the exit codes
and texts of the command itself, which are tried on few.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tf_process import ROOT, Facts, needs_tensorflow, run

needs_tensorflow()

MAKE = """
os.chdir(os.environ["MODELS"])
import tensorflow as tf
tf1 = tf.compat.v1

class Module(tf.Module):
    def __init__(self):
        self.w = tf.Variable(tf.ones([4, 3]))
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def clean(self, x):
        return {"y": tf.nn.relu(tf.matmul(x, self.w))}
    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids"),
                                  tf.TensorSpec([], tf.string, name="tag")])
    def ids(self, ids, tag):
        product = tf.cast(tf.matmul(ids, ids, name="product"), tf.float32)
        return {"y": product * tf.reduce_sum(self.w), "t": tf.strings.upper(tag)}
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def pinned(self, x):
        with tf.device("/CPU:0"):
            h = tf.matmul(x, self.w, name="pinned_mm")
        h = tf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h)), [0, h])[1]
        return {"y": tf.nn.relu(h)}
    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, 4], name="x")])
    def compiled(self, x):
        return {"y": tf.nn.relu(tf.matmul(x, self.w))}
    @tf.function
    def apart(self, x):
        x = tf.reshape(tf.matmul(x, self.w), [1, -1, 3, 1])
        return tf.image.resize(x, [2, 2], method="bicubic")
    @tf.function(input_signature=[tf.TensorSpec([None, 4], name="x")])
    def calling(self, x):
        return {"y": self.apart(x)}
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="jpeg")])
    def pictures(self, jpeg):
        # Made-up bytes are no picture: running this on them would raise.
        decoded = tf.map_fn(lambda b: tf.cast(tf.io.decode_jpeg(b, 3), tf.float32)[:4, :4], jpeg,
                            fn_output_signature=tf.TensorSpec([None, None, 3], tf.float32))
        return {"y": tf.nn.conv2d(decoded, tf.ones([3, 3, 3, 4]), 1, "SAME")}

module = Module()
for name in ("clean", "pinned", "compiled", "calling", "pictures"):
    tf.saved_model.save(module, name, signatures={"serving_default": getattr(module, name)})
tf.saved_model.save(module, "two", signatures={"a": module.clean, "b": module.ids})

from tensorflow.core.protobuf import saved_model_pb2
saved = saved_model_pb2.SavedModel()
with open("calling/saved_model.pb", "rb") as file:
    saved.ParseFromString(file.read())
for function in saved.meta_graphs[0].graph_def.library.function:
    if "apart" in function.signature.name:
        function.attr["_noinline"].b = True
with open("calling/saved_model.pb", "wb") as file:
    file.write(saved.SerializeToString())

class Sideways(tf.keras.layers.Layer):
    def call(self, x):
        with tf.device("/CPU:0"):
            return tf.sinh(x)

layers = tf.keras.layers
plain = tf.keras.Sequential([layers.Input((8, 8, 3)), layers.Conv2D(4, 3), layers.Flatten(),
                             layers.Dense(2)])
plain.save("plain.keras"); plain.save("plain.h5")
a, b = tf.keras.Input((None,), dtype="int32", name="ids"), tf.keras.Input((3,), name="f")
embedded = layers.LSTM(5)(layers.Embedding(10, 4)(a))
tf.keras.Model({"ids": a, "f": b}, layers.Concatenate()([embedded, b])).save("inputs.keras")
x = tf.keras.Input((4,))
tf.keras.Model(x, Sideways(name="sideways")(layers.Dense(3)(x))).save("custom.keras")

with tf.Graph().as_default() as graph:
    tf1.disable_control_flow_v2()
    x = tf1.placeholder(tf.float32, [None, 16, 16, 3], name="image")
    c = tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]), 1, "SAME", name="Extractor/conv")
    c = tf1.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, tf.tanh(h)), [0, c], name="loop")[1]
    tf.reduce_mean(c, name="mean")
    tf.image.resize(x, [32, 32], method="bicubic", name="up")
    tf.io.write_graph(graph.as_graph_def(), ".", "frozen.pb", as_text=False)
    custom = graph.as_graph_def()
    custom.node[-1].op = "NoSuchOp"
    tf.io.write_graph(custom, ".", "unknown_op.pb", as_text=False)
"""

CUSTOM = """
import tensorflow as tf

class Sideways(tf.keras.layers.Layer):
    def call(self, x):
        with tf.device("/CPU:0"):
            return tf.sinh(x)
"""

CHECK = """
os.chdir(os.environ["MODELS"])
have_simulated()
if facts["simulated"]:
    from pytest_tfdevice.modelcheck import ModelError, check_model
    from pytest_tfdevice.patterns import parse_patterns
    from pytest_tfdevice.reports.model_text import model_json, model_text

    def check(name, key=None, **more):
        try:
            done = check_model(name, **more)
        except ModelError as error:
            facts[key or name] = str(error)
            return
        facts[key or name] = model_json(done)
        facts["text of " + (key or name)] = model_text(done)

    for name in ("clean", "two", "pinned", "compiled", "calling", "pictures", "plain.keras",
                 "plain.h5", "inputs.keras", "frozen.pb", "unknown_op.pb"):
        check(name)
    check("pinned", "allowed", allow=parse_patterns(["name:pinned_mm"]))
    check("custom.keras", "custom without its module")
    check("custom.keras", imports=["sideways_layer"])
    check("clean", "no such module", imports=["no_such_module"])
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "sideways_layer.py").write_text(CUSTOM)
    run(MAKE, level=3, env={"MODELS": str(folder)})
    return folder


@pytest.fixture(scope="module")
def facts(models: Path) -> Facts:
    found = run(CHECK, level=3, env={"MODELS": str(models)})
    if not found["simulated"]:
        pytest.skip(found["not_simulated"])
    return found


def offenders(facts: Facts, model: str, number: int = 0) -> dict[str, str]:
    found: list[dict[str, Any]] = facts[model]["signatures"][number]["offenders"]
    return {offender["op"].rpartition("/")[2]: offender["reason"] for offender in found}


@pytest.mark.parametrize(
    "model", ["clean", "compiled", "pictures", "plain.keras", "plain.h5", "inputs.keras"]
)
def test_clean_models(facts: Facts, model: str) -> None:
    assert facts[model]["outcome"] == "passed"
    (signature,) = facts[model]["signatures"]
    assert signature["counting"] == signature["on_gpu"] > 0
    assert not signature["ran"]


def test_an_rnn_is_seen_inside(facts: Facts) -> None:
    assert facts["inputs.keras"]["signatures"][0]["counting"] > 15


def test_each_signature_for_itself(facts: Facts) -> None:
    assert [s["name"] for s in facts["two"]["signatures"]] == ["a", "b"]
    assert offenders(facts, "two", 0) == {}
    assert offenders(facts, "two", 1) == {"product": "dtype"}
    assert facts["two"]["outcome"] == "failed"


def test_a_pin_that_was_saved(facts: Facts) -> None:
    assert offenders(facts, "pinned") == {"pinned_mm": "requested-elsewhere"}


def test_allowed(facts: Facts) -> None:
    assert facts["allowed"]["outcome"] == "passed"
    assert facts["allowed"]["signatures"][0]["allowed"][0]["op"].endswith("/pinned_mm")


def test_a_function_that_is_not_inlined_is_seen_inside(facts: Facts) -> None:
    assert set(offenders(facts, "calling").values()) == {"no-kernel"}


def test_a_frozen_graph_with_a_loop(facts: Facts) -> None:
    (found,) = facts["frozen.pb"]["signatures"][0]["offenders"]
    assert (found["type"], found["reason"]) == ("ResizeBicubic", "no-kernel")
    assert facts["frozen.pb"]["signatures"][0]["counting"] >= 4


def test_a_custom_layer(facts: Facts) -> None:
    assert "--import" in facts["custom without its module"]
    (found,) = facts["custom.keras"]["signatures"][0]["offenders"]
    assert (found["type"], found["reason"]) == ("Sinh", "requested-elsewhere")
    assert "sideways_layer.py" in found["line"]


def test_what_cannot_be_loaded_says_why(facts: Facts) -> None:
    assert "NoSuchOp" in facts["unknown_op.pb"]
    assert facts["no such module"].startswith("--import no_such_module: ")


def test_no_line_is_longer_than_100_columns(facts: Facts) -> None:
    texts = [text for name, text in facts.found.items() if name.startswith("text of ")]
    assert len(texts) > 8
    assert max(len(line) for text in texts for line in text.splitlines()) <= 100


def command(models: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_tfdevice", "check", *arguments],
        cwd=models,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_command(models: Path, facts: Facts) -> None:
    done = command(models, "pinned", "--simulate", "1", "--format", "json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["outcome"] == "failed"
    done = command(models, "clean", "--simulate", "1")
    assert done.returncode == 0
    assert done.stdout.startswith("clean: SavedModel with 1 signature, all that counts")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nowhere", None, "nowhere doesn't exist"),
        ("a.tflite", b"TFL3....", "a TensorFlow Lite model"),
        ("bad.keras", b"no zip", "neither HDF5 nor a zip archive"),
        ("other.xyz", b"12345678", "of no known kind"),
    ],
)
def test_what_is_no_model_is_refused_before_tensorflow(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = command(tmp_path, name)
    assert done.returncode == 2
    assert said in done.stderr


def test_without_a_gpu_it_says_how_to_get_one(models: Path) -> None:
    done = command(models, "clean")
    if done.returncode != 2:
        pytest.skip("there is a GPU here")
    assert "--simulate 1" in done.stderr
