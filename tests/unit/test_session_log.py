"""What a Session's log concludes; the Session is played by writes to descriptor 1."""

from __future__ import annotations

import contextlib
import os

import pytest

from pytest_tfdevice.capture.session_log import DeadCaptureError, SessionLog

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


class Graph:
    """A graph that grows, and a Session that prints all of it when it has."""

    def __init__(self) -> None:
        self.ops: dict[str, str] = {}
        self.told = 0

    def log(self, **more: object) -> SessionLog:
        return SessionLog(lambda: len(self.ops), lambda: set(self.ops), **more)  # type: ignore[arg-type]

    def run(self) -> None:
        if self.told != len(self.ops):
            for name, device in self.ops.items():
                os.write(1, f"{name}: (MatMul): {device}\n".encode())
            self.told = len(self.ops)


def places(log: SessionLog) -> dict[str, str]:
    return {op: device.canonical for op, device in log.devices_by_op.items()}


def test_the_first_run_is_captured_and_the_user_sees_none_of_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    graph = Graph()
    graph.ops = {"a": GPU, "b": CPU}
    log = graph.log()
    with log.run("fetch"):
        os.write(1, b"user\n")
        graph.run()
    assert places(log) == {"a": GPU, "b": CPU}
    assert log.problems == ()
    assert capfd.readouterr().out == "user\n"


def test_a_known_run_is_not_captured(capfd: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    for _ in range(3):
        with log.run("fetch"):
            graph.run()
            os.write(1, b"b: (MatMul): " + CPU.encode() + b"\n")
            inside = capfd.readouterr().out
    assert "b: (MatMul)" in inside  # it went straight to where it was bound
    assert log.text.count("b: (MatMul)") == 1


def test_a_new_signature_is_captured() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    with log.run("one"):
        graph.run()
    with log.run("two"):
        os.write(1, f"body: (Sin): {CPU}\n".encode())
    assert places(log) == {"a": GPU, "body": CPU}


def test_growth_is_told_once() -> None:
    graph = Graph()
    log = graph.log()
    for name in "abc":
        graph.ops[name] = GPU
        with log.run("fetch"):
            graph.run()
    assert [p.op for p in log.placements] == ["a", "b", "c"]
    assert log.growths == 2


def test_silence_is_never_success() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    assert log.placements == ()
    with log.run("fetch"):
        pass
    with pytest.raises(DeadCaptureError, match="printed no placement log"):
        _ = log.placements
    assert len(log.problems) == 1


def test_silence_of_a_remote_names_it() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log(remote="grpc://worker:2222")
    with log.run("fetch"):
        pass
    with pytest.raises(DeadCaptureError, match="placed by grpc://worker:2222"):
        _ = log.placements


def test_an_incomplete_log_is_a_problem() -> None:
    graph = Graph()
    graph.ops = dict.fromkeys("abcde", GPU)
    log = graph.log()
    with log.run("fetch"):
        os.write(1, f"a: (MatMul): {GPU}\n".encode())
    assert log.problems == (
        "4 ops of the graph are missing from its placement log: b, c, d and 1 more",
    )


def test_an_incomplete_log_of_a_pruned_graph_is_none() -> None:
    graph = Graph()
    graph.ops = dict.fromkeys("abcde", GPU)
    log = graph.log(whole_graph=False)
    with log.run("fetch"):
        os.write(1, f"a: (MatMul): {GPU}\n".encode())
    assert log.problems == ()


def test_a_run_that_raises_is_kept_and_not_held_against_the_log() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    with pytest.raises(ZeroDivisionError), log.run("fetch"):
        raise ZeroDivisionError
    assert log.placements == ()
    assert log.problems == ()
    with contextlib.suppress(KeyboardInterrupt), log.run("fetch"):
        graph.run()
        raise KeyboardInterrupt
    assert places(log) == {"a": GPU}


def test_a_run_inside_a_run_counts_growth_once() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    with log.run("one"):
        graph.run()
    graph.ops["b"] = CPU
    with log.run(object(), extends=False), log.run("two"):
        graph.run()
    assert log.growths == 1
    assert places(log) == {"a": GPU, "b": CPU}


def test_a_callable_that_leaves_the_grown_graph_be_is_no_problem() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    with log.run("one"):
        graph.run()
    graph.ops["b"] = CPU
    with log.run("callable", extends=False):
        pass
    assert log.problems == ()
    with log.run("one"):
        graph.run()
    assert places(log) == {"a": GPU, "b": CPU}
    assert log.growths == 1


def test_what_is_printed_while_preparing_is_kept() -> None:
    graph = Graph()
    graph.ops = {"a": GPU}
    log = graph.log()
    with log.prepare():
        graph.run()
    assert places(log) == {"a": GPU}
