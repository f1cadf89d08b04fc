"""``docs/verdict.md``: the report excerpts in its table of reasons are what is really printed.

Each program below leaves the GPU for one reason; the excerpt that the page shows for it must be in
its report.  Dtypes and kernels differ between releases: the page is of 2.21.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tf_process import Facts, needs_tensorflow, run

from pytest_tfdevice.reason import REASON_CODES

needs_tensorflow()

PAGE = Path(__file__).parents[2] / "docs" / "verdict.md"

SCRIPT = """
have_simulated()
if facts["simulated"]:
    import dataclasses
    import tensorflow as tf
    import pytest_tfdevice
    from pytest_tfdevice import simulator
    from pytest_tfdevice.kernels.current import gpu_kernels
    from pytest_tfdevice.model import Device
    from pytest_tfdevice.patterns import Rule
    from pytest_tfdevice.model import DeviceSpec
    from pytest_tfdevice.reports.text import failure
    from pytest_tfdevice.rules import judge
    tf1 = tf.compat.v1

    def requested():
        with tf.device("/CPU:0"):
            tf.matmul(x, x)

    def kernel():
        tf.image.resize(tf.ones([1, 8, 8, 3]), [4, 4], method="bicubic")

    def dtype():
        ids = tf.ones([4, 4], tf.int32)
        tf.matmul(ids, ids)

    def colocated():
        with tf.Graph().as_default():
            with tf.device("/GPU:0"):
                counter = tf1.get_variable("counter", [2], tf.int32, use_resource=False,
                                           initializer=tf1.zeros_initializer())
                step = tf1.placeholder(tf.int32, [2])
                up = tf1.assign_add(counter, step)
                with tf1.colocate_with(counter):
                    share = tf.sin(tf1.placeholder(tf.float32, [2], name="part"), name="share")
            with tf1.Session(config=tf1.ConfigProto(allow_soft_placement=True)) as session:
                session.run(tf1.global_variables_initializer())
                session.run([up, share], {step: [1, 1], "part:0": [1.0, 1.0]})

    def host_memory():
        with tf.device("/GPU:0"):
            mask = tf.ones([4, 4], tf.int32)
            tf.add(mask, mask)

    def absent():
        with tf.device("/GPU:7"):
            tf.matmul(x, x)

    def compiled():
        @tf.function(jit_compile=True)
        def step(v):
            return tf.matmul(v, v)
        with tf.device("/CPU:0"):
            step(x)

    def told(program, strict=False, on="GPU", change=lambda r: r, kernels=True):
        with pytest_tfdevice.watch(on) as watched:
            program()
        record = change(watched.record)
        rule = Rule(DeviceSpec.parse(on), strict=strict, marker="on_gpu()")
        verdict = judge(record, rule, gpu_kernels() if kernels else None)
        return failure(verdict, record)

    def moved(record):
        def change(p):
            if p.type != "MatMul":
                return p
            return dataclasses.replace(p, request=None, placed_on=Device.parse("GPU:0"))
        return dataclasses.replace(record, placements=tuple(map(change, record.placements)))

    with tf.device("/GPU:0"):
        x = tf.ones([4, 4])
    facts["version"] = tf.__version__
    facts["requested-elsewhere"] = told(requested)
    facts["no-kernel"] = told(kernel)
    facts["dtype"] = told(dtype)
    facts["colocated"] = told(colocated)
    facts["host-memory"] = told(host_memory, strict=True)
    facts["no-gpu"] = told(absent, on="GPU:7")
    facts["moved"] = told(requested, change=moved)
    facts["xla"] = told(compiled)
    facts["unknown"] = told(kernel, kernels=False)
"""


@pytest.fixture(scope="module")
def facts() -> Facts:
    found = run(SCRIPT, level=3)
    if not found["simulated"]:
        pytest.skip(found["not_simulated"])
    return found


def excerpts() -> dict[str, str]:
    """By reason: the block that follows its heading."""
    pattern = re.compile(r"^### `([a-z-]+)`.*?^```text\n(.*?)^```", re.M | re.S)
    return dict(pattern.findall(PAGE.read_text(encoding="utf-8")))


def plain(text: str) -> str:
    """Without line breaks; the program above and that of the page have other lines."""
    text = re.sub(r"\S*\.py:\d+", "FILE", " ".join(text.split()))
    return re.sub(r"(?<= line: FILE in )\w+", "FUNCTION", text)


def test_every_reason_has_its_excerpt() -> None:
    assert set(excerpts()) == set(REASON_CODES)


@pytest.mark.parametrize("reason", REASON_CODES)
def test_the_excerpt_is_what_is_printed(facts: Facts, reason: str) -> None:
    if not facts["version"].startswith("2.21"):
        pytest.skip("the page is of TensorFlow 2.21")
    assert plain(excerpts()[reason]) in plain(facts[reason])


@pytest.mark.parametrize("reason", REASON_CODES)
def test_every_release_gives_that_reason(facts: Facts, reason: str) -> None:
    assert f": {reason}" in plain(facts[reason])


def test_the_page_is_one_page() -> None:
    rule = PAGE.read_text(encoding="utf-8").partition("## The reasons")[0]
    assert len(rule.split()) < 900
