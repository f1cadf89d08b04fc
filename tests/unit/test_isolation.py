"""What goes over the socket of an isolated test, and how its process may end."""

from __future__ import annotations

import enum
import socket
from pathlib import PurePosixPath
from types import MappingProxyType, SimpleNamespace

import pytest

from pytest_tfdevice.config import Settings
from pytest_tfdevice.isolation import private, wire
from pytest_tfdevice.isolation.process import describe_end
from pytest_tfdevice.marks import Requirement, plan


class Name(str):
    pass


class Level(enum.IntEnum):
    HIGH = 3


def local() -> object:
    class Local:
        def __repr__(self) -> str:
            return "a local one"

    return Local()


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (("a.py", 3, "why"), ("a.py", 3, "why")),
        ({"a": [1, 2.5, None, True, b"\x00"]}, {"a": [1, 2.5, None, True, b"\x00"]}),
        (MappingProxyType({"a": (1,)}), {"a": (1,)}),
        (Name("x"), "x"),
        (PurePosixPath("/a/b"), "/a/b"),
        (Level.HIGH, repr(Level.HIGH)),
        ([local()], ["a local one"]),
    ],
)
def test_only_pythons_own_types_are_sent(value: object, sent: object) -> None:
    found = wire.plain(value)
    assert found == sent
    assert type(found) is type(sent)


def test_messages_are_put_together_from_pieces() -> None:
    messages = [("report", {"a": "ß" * 1000}), ("stop", None), ("warning", list(range(100)))]
    data = b"".join(map(wire.encode, messages))
    for size in (1, 7, 4096, len(data)):
        reader = wire.Reader()
        found = [m for at in range(0, len(data), size) for m in reader.feed(data[at : at + size])]
        assert found == messages


def test_descriptors_travel_with_a_message(tmp_path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "file").open("w") as file:
        wire.send(theirs, ("captured", None), (file.fileno(),))
        data, (descriptor,), *_ = socket.recv_fds(ours, 1000, 1)
        assert list(wire.Reader().feed(data)) == [("captured", None)]
        with open(descriptor, "w") as same:
            same.write("written")
    assert (tmp_path / "file").read_text() == "written"


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (-11, "died by SIGSEGV"),
        (-9, "died by SIGKILL"),
        (-200, "died by signal 200"),
        (0, "ended with exit status 0"),
        (3, "ended with exit status 3"),
        (None, "had not ended 60 s later, and was killed"),
    ],
)
def test_how_a_process_ended(status: int | None, text: str) -> None:
    assert describe_end(status) == text


def test_the_private_names_are_there(pytestconfig: pytest.Config) -> None:
    assert private.probe(pytestconfig) == []


def gpu_memory(*args: object, **kwargs: object) -> SimpleNamespace:
    return SimpleNamespace(name="gpu_memory", args=args, kwargs=kwargs)


@pytest.mark.parametrize(
    ("marks", "isolated"),
    [
        ([gpu_memory(isolated=True)], True),
        ([gpu_memory("1 GiB")], False),
        ([gpu_memory("1 GiB"), gpu_memory(isolated=True)], True),
        ([gpu_memory("1 GiB", isolated=False), gpu_memory(isolated=True)], False),
    ],
)
def test_the_nearest_marker_that_says_so_wins(marks: list[SimpleNamespace], isolated: bool) -> None:
    item = SimpleNamespace(
        nodeid="test_it.py::test_it",
        iter_markers=lambda name: [mark for mark in marks if mark.name == name],
    )
    found = plan(item, Settings())
    assert found.isolated is isolated
    assert found.requirement == Requirement(count=1)
