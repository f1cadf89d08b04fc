"""The parser against the collected logs, and against what other programs do to a log."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
from pathlib import Path

import pytest

from pytest_tfdevice.model import Placement
from pytest_tfdevice.placement_log import PSEUDO_TYPES, is_pseudo, parse, parse_stream, split_output
from pytest_tfdevice.placement_log.reader import Reader, Seen
from pytest_tfdevice.placement_log.text import BLOCK

LOGS = Path(__file__).parent.parent / "data" / "logs"
CASES = json.loads((LOGS / "index.json").read_text(encoding="utf-8"))["cases"]

GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"
GPU1 = "/job:localhost/replica:0/task:0/device:GPU:1"
OLD = "/job:localhost/replica:0/task:0/gpu:0"
STAMP = "2026-12-01 12:04:58.248168: I tensorflow/core/common_runtime/"
ABSL = "I0000 00:00:1796126634.311341    7231 "

Fields = tuple[str, "str | None", str, str]


def fields(placement: Placement) -> Fields:
    assert placement.device is not None
    return placement.op, placement.type, placement.device.canonical, placement.kind


def ops(text: str | bytes) -> list[tuple[str, str | None]]:
    return [(placement.op, placement.type) for placement in parse(text)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_sample(case: dict[str, object]) -> None:
    expected = [
        (entry["op"], entry["type"], entry["canonical"], entry["kind"])
        for entry in case["expected"]  # type: ignore[attr-defined]
    ]
    assert [fields(p) for p in parse((LOGS / str(case["file"])).read_bytes())] == expected


def test_there_are_samples_of_every_kind() -> None:
    entries = [entry for case in CASES for entry in case["expected"]]
    assert len(CASES) >= 50
    assert {entry["kind"] for entry in entries} == {"placed", "executed"}
    assert {entry["type"] for entry in entries} >= {"_Arg", "_Retval", "_DeviceArg", None, "MatMul"}


def test_pseudo_nodes_are_told_apart() -> None:
    found = parse("".join(f"x: ({type_}): {GPU0}\n" for type_ in (*sorted(PSEUDO_TYPES), "_Send")))
    assert [is_pseudo(p) for p in found] == [True, True, True, True, False]


@pytest.mark.parametrize(
    "prefix",
    [
        "\x1b[36m(pid=4711)\x1b[0m ",
        "\x1b[1;32m",
        "[32m",
        "\\u001b[32m",
        "#033[32m",
        "Jun 18 14:28:35 host python[4711]: ",
        "2023-06-15T14:44:15.0540270Z ",
        "2023-06-15T14:44:15.054027001Z stderr F ",
        "[1,0]<stdout>:",
        "[1,0]<stdout>",
        "trainer-1  | ",
        "(RayTrainWorker pid=1, ip=10.0.0.1) ",
        "INFO:root:",
        "0: ",
        "train.log:12:",
        "\t",
        ">>> ",
        ">> ",
        "&gt; ",
        "# ",
        "// ",
        "- ",
        "+",
        '"',
        "'",
        "`",
        "│ ",
        '<span class="line">',
        '{"textPayload": "',
        "In [3]: ",
        "50%|#####     | 5/10 [00:01<00:01]",
        "Thu Jun 18 14:28:35 2020[1,1]<stdout>:",
    ],
)
@pytest.mark.parametrize("header", ["", STAMP + "placer.cc:114] ", ABSL + "placer.cc:162] "])
def test_prefix_is_no_part_of_the_name(prefix: str, header: str) -> None:
    assert ops(f"{prefix}{header}a/MatMul: (MatMul): {GPU0}\n") == [("a/MatMul", "MatMul")]


@pytest.mark.parametrize(
    "suffix",
    [
        "\n",
        "\r\n",
        "\r",
        " \n",
        "'\n",
        " |\n",
        "\x1b[0m\n",
        "[0m\n",
        '\\n",\n',
        "<br/>",
        "</pre>",
        "2026-12-01 12:04:58.2: I other.cc:1] x\n",
        "I0000 00:00:1.2  1 other.cc:1] x\n",
    ],
)
@pytest.mark.parametrize("index", [0, 1, 10])
def test_suffix_is_no_part_of_the_device(suffix: str, index: int) -> None:
    device = GPU0[:-1] + str(index)
    assert [fields(p) for p in parse(f"x: (Add): {device}{suffix}")] == [
        ("x", "Add", device, "placed")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            rf'{{"log":"a: (Const): {GPU0}\nb: (Add): {GPU0}\n","stream":"stdout"}}',
            [("a", "Const"), ("b", "Add")],
            id="docker-json",
        ),
        pytest.param(
            f"a: (Const): {GPU0}<br>b: (Add): {GPU0}<br>", [("a", "Const"), ("b", "Add")], id="html"
        ),
        pytest.param(
            f"x&gt;y: (Addons&gt;Gelu): {GPU0}\n", [("x>y", "Addons>Gelu")], id="html-names"
        ),
        pytest.param(
            f"product\\_RetVal: (\\_Retval): {GPU0}\n",
            [("product_RetVal", "_Retval")],
            id="markdown-escapes",
        ),
        pytest.param(
            f"a: (Const): {GPU0} {STAMP}placer.cc:1] b: (Add): {GPU0} 3.0\n",
            [("a", "Const"), ("b", "Add")],
            id="line-ends-became-blanks",
        ),
        pytest.param(
            f"a: (Const): {GPU0}\r\n".encode("utf-16"), [("a", "Const")], id="powershell-utf16"
        ),
        pytest.param(
            f"{STAMP}eager/execute.cc:1] Executing op __inference_<lambda>_12 in device {GPU0}\n",
            [("__inference_<lambda>_12", None)],
            id="lambda",
        ),
        pytest.param(f"x: (my_function_12): {GPU0}\n", [("x", "my_function_12")], id="defun"),
        pytest.param(
            f"#  b: {OLD}\n#  a: {OLD}\n", [("b", None), ("a", None)], id="untyped-comment"
        ),
        pytest.param(
            f"Device mapping:\n{GPU0} -> device: 0, name: Tesla K40c\nb: {GPU0}\n",
            [("b", None)],
            id="guide-of-1.x",
        ),
    ],
)
def test_rewritten_text(text: str | bytes, expected: list[tuple[str, str | None]]) -> None:
    assert ops(text) == expected


@pytest.mark.parametrize("typed", [f"a/b: (Const): {GPU1}", f"a/b: (Const){OLD}"])
@pytest.mark.parametrize("indent", ["", "  ", "> "])
def test_record_wrapped_anywhere_behind_its_header(typed: str, indent: str) -> None:
    line = f"{STAMP}simple_placer.cc:847] {typed}"
    for cut in range(len(line) - len(typed), len(line)):
        inside_name = cut - line.index("a/b") in (1, 2)
        torn = line[:cut] + "\n" + ("" if inside_name else indent) + line[cut:] + "\n"
        if line[cut:].isdigit():
            continue  # "…/device:GPU:" and "1": no wrap, but a device without an index.
        assert ops(torn) == [("a/b", "Const")], torn


@pytest.mark.parametrize("cut", range(len("Executing op "), 60))
def test_executed_record_wrapped_anywhere(cut: int) -> None:
    line = f"Executing op MatMul in device {GPU0}"
    assert ops(f"{line[:cut]}\n{line[cut:]}\n") == [("MatMul", None)]


@pytest.mark.parametrize("header", ["", f"{STAMP}placer.cc:114] "])
def test_name_wrapped_many_times_by_a_terminal(header: str) -> None:
    name = "tower/" + "x" * 600
    line = f"{header}{name}: (Const): {GPU0}"
    wrapped = "\n".join(line[i : i + 80] for i in range(0, len(line), 80))
    assert ops(wrapped + "\n") == [(name, "Const")]


def test_nothing_is_joined_over_a_record() -> None:
    record = f"y: (Mul): {GPU0}\n"
    assert ops(f"{record}x: (Add):\n{record}{GPU0}\n") == [("y", "Mul")]


@pytest.mark.parametrize("cut", range(len(f"d28/y: (Const): {GPU0}")))
def test_record_torn_by_a_merged_pipe(cut: int) -> None:
    """stdout stops anywhere, its stderr twin follows, and the rest comes many lines later."""
    record = f"d28/y: (Const): {GPU0}"
    twin = f"{STAMP}placer.cc:114] {record}\n"
    others = "".join(f"{STAMP}placer.cc:114] e{i}: (Const): {GPU0}\n" for i in range(3))
    text = f"{record[:cut]}{twin}{others}{record[cut:]}\nz: (Add): {GPU0}\n"
    assert ops(text) == [("d28/y", "Const"), *((f"e{i}", "Const") for i in range(3)), ("z", "Add")]


def test_end_of_a_torn_record_is_dropped_once() -> None:
    known = f"28/y: (Const): {GPU0}\ndz: (Add): {GPU0}\n"
    torn = f"d{STAMP}placer.cc:114] d28/y: (Const): {GPU0}\n28/y: (Const): {GPU0}\n"
    assert [name for name, _ in ops(f"{known}{torn}z: (Add): {GPU0}\n")] == [
        *("28/y", "dz", "d28/y", "z"),
    ]


def test_eager_record_torn_in_a_notebook() -> None:
    text = f"AdExecuting op Relu in device {GPU0}\ndV2: (AddV2): {GPU0}\n"
    assert ops(text) == [("Relu", None)]


def test_unfinished_output_of_the_user_costs_no_record() -> None:
    text = f"Hello{STAMP}placer.cc:1] x: (Add): {GPU0}\ny: (Add): {GPU0}\n"
    assert ops(text) == [("x", "Add"), ("y", "Add")]


@pytest.mark.parametrize(
    "text",
    [
        f"device: {GPU0}\n",
        f"using device: {OLD}\n",
        f"x: (Add): {GPU1}",  # GPU:12, cut off?
        "x: (Add): /job:localhost/replica:0/task:0/device:GPU:2026-12-01 12:04:58.2: I x.cc:1] y\n",
        f"Executing op A in device (unspecified)\n{GPU0}",
        "x: (Add): /job:localhost/replica:0/task:0\n",
        "x: (Add): /job:localhost/replica:0/task:0/replica:5\n",
        "x: (Add): /job:localhost/replica:0/task:0/device:5\n",
        f"a: (Const): /job:localb: (Const): {GPU0}\nhost/replica:0/task:0/device:GPU:0\n",
        f"a: (Consb: (Const): {GPU0}\n",
        f"r): {GPU0}\n",
        f"(MatMul): {GPU0}\n",
        f": (MatMul): {GPU0}\n",
        f"/MatMul: (MatMul): {GPU0}\n",
        f"placed on: {GPU0}\n",
        f"x: (Add): {GPU0} -> device: 0\n",
        f"input_producer/epochs (VariableV2) {GPU0}\n",
        f'[[{{{{node a}}}} = Const[_device="{GPU0}"]()]]\n',
        f"OOM when allocating tensor with shape[1] and type float on {GPU0} by allocator x\n",
        "x: (Add): /job:localhost/replica:0/task:0/cpu:" + "1" * 5000 + "\n",
        "&#" + "9" * 5000 + ";" + f"{GPU0}\n",
    ],
)
def test_no_placement(text: str) -> None:
    assert parse(text) == []


def test_typed_log_has_no_untyped_records() -> None:
    assert ops(f"x: (Add): {GPU0}\ndevice: {OLD}\n") == [("x", "Add")]


def test_bytes_and_text_agree() -> None:
    text = f"größe 50%\rx: (Add): {GPU0}\n"
    assert parse(text) == parse(text.encode())
    assert list(parse_stream(io.StringIO(text))) == list(parse_stream(io.BytesIO(text.encode())))


def test_stream_yields_before_it_ends() -> None:
    def endless() -> object:
        yield f"x: (Add): {GPU0}\n"
        raise AssertionError("read on although a record was there")

    assert next(parse_stream(endless())).op == "x"  # type: ignore[arg-type]


# Time and memory

HOSTILE = {
    "name": "a" * 64,
    "devices": GPU0,
    "records": f"x: (Add): {GPU0}",
    "half-devices": "/job:a/replica:0/task:0/device:",
    "half-records": "x: (Y): /job:\n",
    "digits": "1" * 64,
    "executing": "Executing op ",
    "parentheses": "((((((((): /job:",
    "backslashes": "\\" * 64,
    "entities": "&&&&#&#&#x",
    "tags": "<p<br<a ",
    "escapes": "\x1b[[\x1b[1;1;",
    "headers": STAMP,
    "full-width-names": "a" * 80 + "\n",
    "line-ends": "\n\r\r\n",
}


def _seconds(text: str) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        parse(text)
        split_output(text)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("start", ["", f"x: (Add): {GPU0[:-1]}"], ids=["", "in-device"])
def test_time_is_linear(unit: str, start: str) -> None:
    """Eight times the text takes eight times as long; with quadratic work it would be 64."""
    small = start + unit * (60_000 // len(unit))
    large = start + unit * (480_000 // len(unit))
    assert _seconds(large) < 24 * max(_seconds(small), 0.002)


def test_memory_is_bounded_without_a_line_end() -> None:
    assert _peak(b"x" * 65536 for _ in range(400)) < 3_000_000  # of 26 MB


def test_memory_is_bounded_over_distinct_records() -> None:
    lines = (f"layer{i}: (Add): {GPU0}\n" for i in range(20_000))
    assert _peak(lines, distinct=500) < 1_000_000


def test_memory_is_bounded_over_distinct_devices() -> None:
    lines = (f"x: (Add): /job:worker/replica:0/task:{i}/device:GPU:0\n" for i in range(12_000))
    assert _peak(lines, distinct=500) < 4_000_000


def test_record_behind_a_very_long_line_start_is_found() -> None:
    filler = ["%" * 50_000] * 5
    found = list(parse_stream([*filler, f"x: (Add): {GPU1}", *filler, f" y: (Add): {GPU1}\n"]))
    assert [p.op for p in found] == ["x", "y"]


def test_end_of_a_very_long_line_is_no_line() -> None:
    assert parse(f"Using {' ' * 70_000}device: {OLD}\n") == []
    executed = f"Executing op A in device {GPU0}"
    for filler in ("", "%" * (BLOCK - len(executed) - 4)):
        assert ops(f"{filler}{executed} device: {OLD}\n") == [("A", None)]


def _peak(chunks: object, distinct: int = 1000) -> int:
    tracemalloc.start()
    try:
        for _ in Reader(distinct).read(chunks):  # type: ignore[arg-type]
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_seen_forgets_only_what_is_long_ago() -> None:
    seen = Seen(distinct=10)
    assert [seen.add(str(i)) for i in range(10)] == [True] * 10
    assert [seen.add(str(i)) for i in range(10)] == [False] * 10
    assert all(seen.add(f"new{i}") for i in range(1000))
    assert len(seen) <= 20
    assert seen.add("0")


# split_output


def test_split_output_gives_the_user_his_own_output_back() -> None:
    logged = [
        f"x: (Add): {GPU0}\n",
        f"{STAMP}placer.cc:114] x: (Add): {GPU0}\n",
        f"{STAMP}placer.cc:124] x(Add) placed on: {GPU0}\n",
        f"{ABSL}placer.cc:162] y: (Mul): {GPU0}\n",
        f"{ABSL}execute.cc:1775] Executing op __inference_f_12 in device {GPU0}\n",
        f"Executing op MatMul in device {GPU0}\n",
        f"{ABSL}direct_session.cc:382] Device mapping: no known devices.\n",
        f"{ABSL}direct_session.cc:382] Device mapping:\n{GPU0} -> device: 0, name: A100\n\n",
    ]
    user = ["step 1\n", "\n", "50% ", "a\r\n", "Device mapping:\n", f"device: {GPU0}\n", "ü"]
    text = "".join(a + b for a, b in zip(user, logged, strict=False)) + logged[-1]
    placements, rest = split_output(text)
    assert rest == "".join(user)
    assert [p.op for p in placements] == ["x", "y", "__inference_f_12", "MatMul"]
    assert split_output(text.encode()) == (placements, rest.encode())


def test_split_output_keeps_bytes_that_are_no_text() -> None:
    data = b"\xff\xfe\x00" + f"\nx: (Add): {GPU0}\n".encode() + b"\x80 end"
    placements, rest = split_output(data)
    assert [p.op for p in placements] == ["x"]
    assert rest == b"\xff\xfe\x00\n\x80 end"


@pytest.mark.parametrize(
    "text",
    [
        "x: (Add): /job:localhost/replica:0/task:0/device:GP",
        f"x: (Add): {GPU0} is what I saw\n",
        f"b: {OLD}\n",
        f"x(Add) placed on: {GPU0}\n",
        f"{GPU0} -> device: 0\n",
        "Device mapping:\n",
        f"{STAMP}other.cc:1] nothing\n",
        "",
    ],
)
def test_split_output_leaves_everything_else(text: str) -> None:
    assert split_output(text)[1] == text
