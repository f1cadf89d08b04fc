"""``pytest-tfdevice parse``: in process, and from outside."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import pytest_tfdevice
from pytest_tfdevice import cli
from pytest_tfdevice.cli import main

LOGS = Path(__file__).parent.parent / "data" / "logs"
# Where the package that is tested lies: the source tree, or tox's site-packages.
ROOT = Path(pytest_tfdevice.__file__).resolve().parents[1]
CASES = json.loads((LOGS / "index.json").read_text(encoding="utf-8"))["cases"]
EAGER = str(LOGS / "030-directml-plugin-repl.txt")
GPU0 = "/job:localhost/replica:0/task:0/device:GPU:0"

Capture = pytest.CaptureFixture[str]


def module(*args: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "pytest_tfdevice", *args]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_json_of_every_sample(case: dict[str, str], capsys: Capture) -> None:
    assert main(["parse", str(LOGS / case["file"]), "--all"]) == 0
    expected = [
        {"op": e["op"], "type": e["type"], "device": e["canonical"], "kind": e["kind"]}  # type: ignore[index]
        for e in case["expected"]
    ]
    out, err = capsys.readouterr()
    assert json.loads(out) == expected
    assert bool(err) == (not expected)


def test_arguments_and_results_only_with_all(capsys: Capture) -> None:
    assert main(["parse", EAGER]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(row["op"], row["type"], row["kind"]) for row in shown] == [
        ("MatMul", "MatMul", "placed"),
        ("MatMul", None, "executed"),
    ]
    main(["parse", EAGER, "--all"])
    everything = json.loads(capsys.readouterr().out)
    assert [row["type"] for row in everything] == ["_Arg", "MatMul", "_Retval", None]


def test_csv(capsys: Capture) -> None:
    main(["parse", EAGER, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(row["op"], row["type"], row["kind"]) for row in rows] == [
        ("MatMul", "MatMul", "placed"),
        ("MatMul", "", "executed"),
    ]
    assert {row["device"] for row in rows} == {GPU0[:-1] + "1"}


def test_table(capsys: Capture) -> None:
    main(["parse", str(LOGS / "006-tf012-worker-task2.txt"), "--format", "table"])
    assert capsys.readouterr().out.splitlines() == [
        "op                     type      device                                     kind",
        "Adam/epsilon           Const     /job:worker/replica:0/task:2/device:CPU:0  placed",
        "global/value/b/Adam_1  Variable  /job:ps/replica:0/task:0/device:CPU:0      placed",
    ]


@pytest.mark.parametrize("format_", ["json", "csv", "table"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe\x80" * 999, b"no placement here\n"])
def test_log_without_placements(
    tmp_path: Path, capsys: Capture, content: bytes, format_: str
) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(content)
    assert main(["parse", str(log), "--format", format_]) == 0
    out, err = capsys.readouterr()
    assert out.strip().replace(" ", "") in ("[]", "op,type,device,kind", "optypedevicekind")
    assert "no placement found" in err
    assert "set_log_device_placement(True)" in err


def test_log_with_nothing_but_arguments_says_so(tmp_path: Path, capsys: Capture) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"x: (_Arg): {GPU0}\n")
    assert main(["parse", str(log)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == []
    assert "--all" in err
    assert "no placement found" not in err


@pytest.mark.parametrize("name", ["missing.log", ".", "nul\0.log"])
def test_unreadable_log(tmp_path: Path, capsys: Capture, name: str) -> None:
    assert main(["parse", str(tmp_path / name)]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith("pytest-tfdevice: can't read ")
    assert err.count("\n") == 1


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["parse", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["parse"], ["parse", "x", "--format", "xml"], ["simulator"]])
def test_wrong_usage(argv: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert "usage: pytest-tfdevice" in capsys.readouterr().err


def test_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(rows: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(cli.WRITERS, "json", interrupted)
    assert main(["parse", EAGER]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["build", "info", "clean"])
def test_simulator_commands_are_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    commands = types.ModuleType("commands")
    for index, each in enumerate(["build", "info", "clean"]):
        setattr(commands, each, lambda each=each, index=index: calls.append(each) or index)
    monkeypatch.setitem(sys.modules, "pytest_tfdevice.simulator.commands", commands)
    assert main(["simulator", name]) == ["build", "info", "clean"].index(name)
    assert calls == [name]


def test_devices_are_described(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    devices = types.ModuleType("devices")
    report = types.SimpleNamespace(describe=lambda: "one GPU")
    devices.find_devices = lambda: report  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pytest_tfdevice.devices", devices)
    assert main(["devices"]) == 0
    assert capsys.readouterr().out == "one GPU\n"


# From outside


def test_standard_input_in_a_terminal_without_unicode() -> None:
    log = f"Executing op __inference_größe_1 in device {GPU0}\n".encode()
    env = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    done = module("parse", "-", "--format", "csv", input=log, env=env)
    assert done.returncode == 0
    assert (
        done.stdout.splitlines()[1]
        == b"__inference_gr\\xf6\\xdfe_1,," + GPU0.encode() + b",executed"
    )


def test_no_framework_is_imported_for_parse() -> None:
    code = (
        "import sys; from pytest_tfdevice.cli import main; code = main(sys.argv[1:]);"
        "bad = {'tensorflow', 'pytest', 'numpy'} & set(sys.modules);"
        "sys.exit(f'{bad}' if bad else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "parse", EAGER], cwd=ROOT, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(json.loads(done.stdout)) == 2


def test_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"layer{i}: (Add): {GPU0}\n" for i in range(20_000)))
    command = [sys.executable, "-m", "pytest_tfdevice", "parse", str(log)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"[\n"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_full_disk_is_told(unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pytest_tfdevice", "parse", EAGER],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"can't write the output: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
