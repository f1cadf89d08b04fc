"""Where event files go: safe and unique folders, what is replaced, and folders that won't do."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfdevice import logdir
from pytest_tfdevice.logdir import Logdir, LogdirError, safe_path


@pytest.mark.parametrize(
    ("nodeid", "path"),
    [
        ("test_m.py::test_a", "test_m.py/test_a"),
        ("tests/sub/test_m.py::TestX::test_a", "tests/sub/test_m.py/TestX/test_a"),
        ("test_m.py::test_a[1-x=2.5]", "test_m.py/test_a[1-x=2.5]"),
        ("test_m.py::test_a[float32-(2, 3)]", None),
        ("test_m.py::test_a[a/b]", None),
        ("test_m.py::test_a[a::b]", None),
        ("test_m.py::test_a[../../etc]", None),
    ],
)
def test_folders_are_named_as_the_test(nodeid: str, path: str | None) -> None:
    found = safe_path(nodeid)
    if path is not None:
        assert str(found) == path
    else:  # one folder for the parameters, which says so much of them as it may
        assert found.parent == Path("test_m.py")
        assert found.name.startswith("test_a[")


def test_what_has_to_be_replaced_is_told_apart() -> None:
    ids = [f"test_m.py::test_a[{p}]" for p in ("a/b", "a b", "a_b", "a\\b", "a\nb", "a::b", "a\0b")]
    found = {safe_path(nodeid) for nodeid in ids}
    assert len(found) == len(ids)
    assert Path("test_m.py/test_a[a_b]") in found


def test_long_names_are_cut_and_told_apart() -> None:
    long = "x" * 5000
    one, other = (safe_path(f"test_m.py::test_a[{long}{end}]") for end in "12")
    assert one != other
    assert all(len(path.name.encode()) < 200 for path in (one, other))
    # "é" is two bytes: no half of one may be left
    assert len(safe_path("test_m.py::test_a[" + "é" * 200 + "]").name.encode()) < 200


PIECES = st.text(alphabet="ab._-~ /:[]\\\n\0é", min_size=1, max_size=12)


@given(st.lists(PIECES, min_size=1, max_size=3), PIECES)
def test_no_node_id_leads_out_of_the_folder(names: list[str], parameters: str) -> None:
    path = safe_path("::".join(names) + f"[{parameters}]")
    assert not path.is_absolute()
    assert not {"..", ".", ""} & set(path.parts)
    assert not any("\0" in part or "/" in part or "\n" in part for part in path.parts)


def test_a_test_outside_of_the_root_stays_inside() -> None:
    assert ".." not in safe_path("../other/test_m.py::test_a").parts


def write(folder: Path, log: Logdir, nodeid: str, graph: str = "step") -> Path:
    file = log.file(log.begin(nodeid), graph)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"graph")
    return file.relative_to(folder)


def left(folder: Path) -> set[str]:
    """The folders that have files, TensorBoard's runs."""
    return {str(p.parent.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_tensorboard_takes_the_file_for_an_event_file(tmp_path: Path) -> None:
    file = write(tmp_path, Logdir(tmp_path, "aaaa", "gw0"), "test_m.py::test_a")
    assert str(file.parent) == "test_m.py/test_a/step"
    assert "tfevents" in file.name


def test_a_test_that_runs_again_has_a_folder_of_its_own(tmp_path: Path) -> None:
    log = Logdir(tmp_path, "aaaa", "main")
    for _ in range(3):
        write(tmp_path, log, "test_m.py::test_a")
    write(tmp_path, log, "test_m.py::test_b")
    assert left(tmp_path) == {
        "test_m.py/test_a/step",
        "test_m.py/test_a~2/step",
        "test_m.py/test_a~3/step",
        "test_m.py/test_b/step",
    }


def test_what_an_earlier_run_wrote_is_replaced(tmp_path: Path) -> None:
    first = Logdir(tmp_path, "aaaa", "main")
    for graph in ("step", "gone"):
        first_file = first.file(first.begin("test_m.py::test_a[1]"), graph)
        first_file.parent.mkdir(parents=True)
        first_file.write_bytes(b"old")
    write(tmp_path, first, "test_m.py::test_a[11]")
    write(tmp_path, first, "test_m.py::test_b")
    second = Logdir(tmp_path, "bbbb", "main")
    write(tmp_path, second, "test_m.py::test_a[1]")
    assert left(tmp_path) == {
        "test_m.py/test_a[1]/step",
        "test_m.py/test_a[11]/step",
        "test_m.py/test_b/step",
    }
    (only,) = (tmp_path / "test_m.py/test_a[1]/step").iterdir()
    assert only.read_bytes() == b"graph"


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "test_m.py/test_a/train/events.out.tfevents.1.host.1.0.v2"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    note = tmp_path / "test_m.py/test_a/notes.tfdevice"
    note.write_text("mine")
    write(tmp_path, Logdir(tmp_path, "bbbb", "main"), "test_m.py::test_a")
    assert mine.exists()
    assert note.exists()


def test_workers_of_one_run_do_not_remove_each_others(tmp_path: Path) -> None:
    for worker in ("gw0", "gw1"):
        write(tmp_path, Logdir(tmp_path, "aaaa", worker), "test_m.py::test_a")
    assert len(list((tmp_path / "test_m.py/test_a/step").iterdir())) == 2


def test_a_folder_that_will_do_is_not_made(tmp_path: Path) -> None:
    logdir.check(tmp_path / "a" / "b")
    logdir.check(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_will_not_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "inside", Path("/proc/none/at/all")):
        with pytest.raises(LogdirError, match="can't be written to: "):
            logdir.check(folder)


def test_paths_differ_wherever_node_ids_do() -> None:
    parts = ["a", "a.", "a/b", "..", "~2", "[a]", "a b", "a_b"]
    ids = [f"t.py::{one}[{two}]" for one, two in itertools.product(("x", "x~2", "X"), parts)]
    assert len({safe_path(nodeid) for nodeid in ids}) == len(ids)
