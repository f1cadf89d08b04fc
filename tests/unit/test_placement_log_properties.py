"""What holds for any input, and for any record in any of the shapes."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tfdevice.model import Device, Placement
from pytest_tfdevice.placement_log import parse, parse_stream, split_output

NAME_START = string.ascii_letters + string.digits + "_"
names = st.builds(
    "/".join,
    st.lists(
        st.builds(
            str.__add__,
            st.sampled_from(NAME_START),
            st.text(string.ascii_letters + string.digits + "_.-", max_size=12),
        ),
        min_size=1,
        max_size=4,
    ),
)
types = st.builds(
    str.__add__,
    st.sampled_from(string.ascii_uppercase + "_"),
    st.text(string.ascii_letters, max_size=9),
)
devices = st.builds(
    Device,
    job=st.sampled_from(["localhost", "worker", "ps", "my-job.1"]),
    replica=st.integers(0, 3),
    task=st.integers(0, 20),
    type=st.sampled_from(["CPU", "GPU", "TPU", "TPU_SYSTEM", "XLA_GPU", "MY_DEVICE"]),
    index=st.integers(0, 40),
)
headers = st.sampled_from(
    [
        "2026-12-01 12:04:58.248168: I tensorflow/core/common_runtime/placer.cc:114] ",
        "2026-12-01 12:04:58.248168: I c:\\build\\tensorflow\\core\\placer.cc:886] ",
        "I0000 00:00:1796126634.311341    7231 placer.cc:162] ",
        "I0000 00:00:1796126634.311341 1330299 execute.cc:1775] ",
    ]
)
old_headers = st.just("I tensorflow/core/common_runtime/simple_placer.cc:818] ")
prefixes = st.sampled_from(
    ["", "> ", "[1,0]<stderr>:", "trainer_1  | ", "\x1b[32m", "(pid=4) ", "# ", "    ", "12: "]
)
ends = st.sampled_from(["\n", "\r\n", " \n", "\x1b[0m\n"])
# No "job:", so that it is no placement by chance; the lookalikes are in test_placement_log.py.
chatter = st.text(st.characters(exclude_characters="\n\r"), max_size=60).filter(
    lambda text: "job" not in text
)

Fields = tuple[str, "str | None", Device, str]
Form = Callable[[str, str, str], str]

FORMS: dict[str, Form] = {
    "P1": lambda name, type_, device: f"{name}: ({type_}): {device}",
    "P3": lambda name, type_, device: f"{name}: ({type_}){device}",
    "P4": lambda name, type_, device: f"{name}: {device}",
    "P5": lambda name, type_, device: f"{name}({type_}) placed on: {device}",
    "E": lambda name, type_, device: f"Executing op {type_} in device {device}",
}


@dataclass(frozen=True)
class Line:
    """A line of a log, and what it says."""

    text: str
    header: str
    form: str
    fields: Fields


@st.composite
def lines(draw: st.DrawFn, forms: str = "P1 P3 P4 P5 E") -> Line:
    form = draw(st.sampled_from(forms.split()))
    name, type_, device = draw(names), draw(types), draw(devices)
    spelled = device.canonical
    if form in ("P3", "P4") and device.type in ("CPU", "GPU") and draw(st.booleans()):
        head, _, tail = spelled.rpartition("/device:")
        spelled = f"{head}/{tail.lower()}"
    header = draw(old_headers if form == "P4" else headers)
    if form != "P4" and draw(st.booleans()):
        header = ""
    kind = "executed" if form == "E" else "placed"
    fields = (
        type_ if form == "E" else name,
        None if form in ("P4", "E") else type_,
        device,
        kind,
    )
    return Line(FORMS[form](name, type_, spelled), header, form, fields)


def fields_of(placements: list[Placement]) -> list[Fields]:
    found = []
    for placement in placements:
        assert placement.device is not None
        found.append((placement.op, placement.type, placement.device, placement.kind))
    return found


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.binary(max_size=400), st.text(max_size=400)))
def test_anything_can_be_read(data: str | bytes) -> None:
    assert isinstance(parse(data), list)
    placements, rest = split_output(data)
    assert placements or rest == data


PIECES = [
    *("/job:", "/job:a", "/replica:0", "/task:0", "/device:GPU:0", "gpu:0"),
    *(":", "(", ")", "(Add)", "):", "placed"),
    *("on", "in", "device", "Executing", "op", "x:"),
    *("placer.cc:1]", "simple_placer.cc:1]", "2026-12-01", "12:04:58.248168:", "I", "I0000"),
    *("->", "\\n", "\\", "&", "&gt;", "&#47;"),
    *("<", ">", "<br>", "<stdout>", "\x1b[0m", "[0m"),
    *(".", "..", "-", "Device", "mapping:"),
]
fragments = st.one_of(
    st.sampled_from([*PIECES, " ", "\n", "\r", "/job:a/replica:0/task:0/"]), st.text(max_size=3)
)


@settings(max_examples=300, deadline=None)
@given(st.lists(fragments, max_size=40).map("".join), st.data())
def test_pieces_of_records_never_raise_nor_depend_on_chunks(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    whole = parse(text)
    assert list(parse_stream([text[:cut], text[cut:]])) == whole
    assert list(parse_stream(iter(text))) == whole
    for placement in whole:
        assert placement.op
        assert " " not in placement.op
        assert placement.device is not None
        assert Device.parse(placement.device.canonical) == placement.device


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), lines(), st.integers(0, 300), st.integers(1, 7))
def test_chunking_of_bytes_changes_nothing(noise: bytes, line: Line, at: int, size: int) -> None:
    data = noise[:at] + b"\n" + (line.header + line.text).encode() + b"\n" + noise[at:]
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    assert list(parse_stream(chunks)) == parse(data)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(prefixes, lines(), ends, chatter), max_size=8))
def test_every_shape_is_read_back(parts: list[tuple[str, Line, str, str]]) -> None:
    text = "".join(f"{prefix}{x.header}{x.text}{end}{noise}\n" for prefix, x, end, noise in parts)
    expected = list(dict.fromkeys(x.fields for _, x, _, _ in parts))
    assert fields_of(parse(text)) == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(lines("P1"), min_size=1, max_size=5))
def test_a_record_printed_twice_is_one_placement(parts: list[Line]) -> None:
    once = "".join(f"{x.text}\n" for x in parts)
    header = "2026-12-01 12:04:58.248168: I tensorflow/core/common_runtime/placer.cc:114] "
    twice = "".join(f"{x.text}\n{header}{x.text}\n" for x in parts)
    assert parse(twice) == parse(once)
    assert parse(once + once) == parse(once)


@settings(max_examples=150, deadline=None)
@given(st.lists(lines("P1"), min_size=1, max_size=12), st.integers(40, 200))
def test_a_merged_pipe_invents_nothing(parts: list[Line], block: int) -> None:
    """``2>&1 | tee``: stdout in blocks that end anywhere, between the lines of stderr."""
    header = "2026-12-01 12:04:58.248168: I tensorflow/core/common_runtime/placer.cc:114] "
    text = buffered = ""
    for line in parts:
        buffered += line.text + "\n"
        while len(buffered) >= block:
            text += buffered[:block]
            buffered = buffered[block:]
        text += f"{header}{line.text}\n"
    assert set(fields_of(parse(text + buffered))) == {line.fields for line in parts}


@settings(max_examples=150, deadline=None)
@given(lines("P1 P3 P5 E"), st.data())
def test_a_cut_log_invents_nothing(line: Line, data: st.DataObject) -> None:
    """A program that was killed: the log stops anywhere."""
    text = f"{line.header}{line.text}\n"
    cut = data.draw(st.integers(0, len(text)))
    found = fields_of(parse(text[:cut]))
    assert found in ([], [line.fields])
    assert cut < len(text) or found == [line.fields]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(lines("P1 P5 E"), headers, chatter, st.booleans()), max_size=8), chatter)
def test_split_output_gives_the_rest_back(
    parts: list[tuple[Line, str, str, bool]], last: str
) -> None:
    text = rest = ""
    for line, header, noise, glued in parts:
        # Behind unfinished output of the user's only a header shows where TensorFlow's begins.
        has_header = glued or line.form == "P5" or bool(line.header)
        noise = noise if glued else noise + "\n"
        text += noise + (header if has_header else "") + line.text + "\n"
        rest += noise
    placements, left = split_output(text + last)
    assert left == rest + last
    assert fields_of(placements) == list(dict.fromkeys(line.fields for line, *_ in parts))
    surrogates = (text + last).encode("utf-8", "surrogatepass")
    assert split_output(surrogates)[1] == (rest + last).encode("utf-8", "surrogatepass")
