"""The command line: ``pytest-tfdevice COMMAND``, the same as ``python -m pytest_tfdevice COMMAND``.

Each command is a small function that takes the parsed arguments and returns the exit code; what it
works with is imported inside it, so that no command pays for another, and none but those that need
it imports TensorFlow.

Exit codes: 0 done, 1 a command's own "no", 2 wrong usage or input that can't be read,
130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pytest_tfdevice.logs.facts import LogFacts
    from pytest_tfdevice.model import Placement

PROG = "pytest-tfdevice"
COLUMNS = ("op", "type", "device", "kind")

BAD_INPUT = 2
INTERRUPTED = 130
BROKEN_PIPE = 141

NO_PLACEMENT = """\
no placement found. Check that the program that wrote the log
  - had placement logging on before TensorFlow ran anything:
    tf.debugging.set_log_device_placement(True), or ConfigProto(log_device_placement=True)
  - wrote both its stdout and its stderr to the log (2>&1)
  - ended by itself: what a killed program had not flushed is lost (python -u avoids that)"""

Row = dict[str, "str | None"]
Handler = Callable[[argparse.Namespace], int]


class InputError(Exception):
    """Input that can't be used; the message is for the user."""


@dataclass(frozen=True)
class Command:
    """A subcommand: its help line, what it does, and what adds its arguments."""

    help: str
    run: Handler
    arguments: Callable[[argparse.ArgumentParser], None] = lambda parser: None


def main(argv: list[str] | None = None) -> int:
    """Runs the command that ``argv`` names and returns its exit code.

    Raises:
        SystemExit: with 2 on wrong usage, with 0 after ``--help``; argparse has printed why.
    """
    args = _parser().parse_args(argv)
    # Op names are ASCII, function names need not be, and neither need the terminal be UTF-8.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    run: Handler = args.run
    try:
        code = run(args)
        sys.stdout.flush()
        return code
    except InputError as error:
        _flush_quietly()
        _remark(str(error))
        return BAD_INPUT
    except BrokenPipeError:
        _discard_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _remark(f"can't write the output: {error.strerror or error}")
        _discard_stdout()
        return BAD_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROG, description="Tells where TensorFlow ran.")
    _add(parser, COMMANDS)
    return parser


def _add(parser: argparse.ArgumentParser, commands: dict[str, Command]) -> None:
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in commands.items():
        one = subparsers.add_parser(name, help=command.help, description=command.help)
        one.set_defaults(run=command.run)
        command.arguments(one)


def _remark(message: str) -> None:
    print(f"{PROG}: {message}", file=sys.stderr)


def _discard_stdout() -> None:
    """Python flushes stdout once more at exit, and would complain then, and exit with 120."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush_quietly() -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()


# parse


def _parse_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="a log file, or - for standard input")
    parser.add_argument(
        "--format", choices=WRITERS, default="json", help="how to print it (default: %(default)s)"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="list the arguments and results of functions too (_Arg, _Retval, …)",
    )


def _parse(args: argparse.Namespace) -> int:
    from pytest_tfdevice.placement_log import is_pseudo

    shown = hidden = 0

    def rows() -> Iterator[Row]:
        nonlocal shown, hidden
        for placement in _placements(args.log):
            if is_pseudo(placement) and not args.all:
                hidden += 1
                continue
            shown += 1
            yield _row(placement)

    WRITERS[args.format](rows())
    if not shown and hidden:
        _remark(f"only arguments and results of functions found ({hidden}): --all lists them")
    elif not shown:
        _remark(NO_PLACEMENT)
    return 0


def _placements(log: str, facts: LogFacts | None = None) -> Iterator[Placement]:
    """Placements of a log; ``facts`` gets everything else that it says."""
    from pytest_tfdevice.placement_log import blocks, parse_stream

    name = "standard input" if log == "-" else log
    try:
        with _opened(log) as file:
            yield from parse_stream(file if facts is None else facts.passing(blocks(file)))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name.
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"can't read {name}: {reason}") from error


def _opened(log: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if log == "-":
        if sys.stdin is None:
            raise InputError("can't read standard input: it is closed")
        return contextlib.nullcontext(sys.stdin.buffer)
    return open(log, "rb")


def _row(placement: Placement) -> Row:
    device = None if placement.device is None else placement.device.canonical
    return {
        "op": placement.op,
        "type": placement.type,
        "device": device,
        "kind": placement.kind,
    }


def _write_json(rows: Iterable[Row]) -> None:
    """A list with one placement a line, written as they come."""
    before = "[\n  "
    for row in rows:
        sys.stdout.write(before + json.dumps(row))
        before = ",\n  "
    sys.stdout.write("[]\n" if before == "[\n  " else "\n]\n")


def _write_csv(rows: Iterable[Row]) -> None:
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _write_table(rows: Iterable[Row]) -> None:
    """Aligned columns; the only format that has to have all rows first."""
    cells = [COLUMNS, *(tuple(row[column] or "-" for column in COLUMNS) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")


WRITERS: dict[str, Callable[[Iterable[Row]], None]] = {
    "json": _write_json,
    "table": _write_table,
    "csv": _write_csv,
}


# explain


def _explain_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="a log file, or - for standard input")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print")
    parser.add_argument(
        "--tensorflow",
        metavar="VERSION",
        help="the release whose GPU kernels are asked (default: the log's own, if it tells)",
    )


def _explain(args: argparse.Namespace) -> int:
    from pytest_tfdevice.kernels.ops import shipped_signatures
    from pytest_tfdevice.kernels.shipped import NoTableError, table_text
    from pytest_tfdevice.logs.explain import explain_log
    from pytest_tfdevice.logs.facts import LogFacts
    from pytest_tfdevice.logs.kernels import choose_kernels
    from pytest_tfdevice.reports import log_text
    from pytest_tfdevice.versions import installed_tensorflow

    try:
        if args.tensorflow is not None:
            table_text(args.tensorflow)
    except NoTableError as error:
        raise InputError(str(error)) from error
    facts = LogFacts()
    found = explain_log(
        _placements(args.log, facts),
        facts,
        shipped_signatures(),
        lambda: choose_kernels(facts.version, args.tensorflow, installed_tensorflow()),
    )
    if args.format == "json":
        print(json.dumps(log_text.log_json(found), indent=1))
    else:
        print(log_text.log_text(found))
    if not (found.total or found.set_apart or found.functions or found.failures):
        _remark(NO_PLACEMENT)
    return 0


# check


def _check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a SavedModel, .keras, .h5 or frozen .pb")
    parser.add_argument(
        "--simulate",
        metavar="N[:MEMORY]",
        default="0",
        help="check on N simulated GPUs instead of real ones",
    )
    parser.add_argument(
        "--import",
        metavar="MODULE",
        dest="imports",
        action="append",
        default=[],
        help="import the module of the model's custom layers or ops first; repeatable",
    )
    parser.add_argument(
        "--allow",
        metavar="PATTERN",
        action="append",
        default=[],
        help="an operation that may be elsewhere: an op type, name:PATTERN or reason:CODE",
    )
    parser.add_argument("--strict", action="store_true", help="all but structural operations count")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print")


def _check(args: argparse.Namespace) -> int:
    from pytest_tfdevice.modelcheck import ModelError, check_model
    from pytest_tfdevice.patterns import PatternError, parse_patterns
    from pytest_tfdevice.reports import model_text

    number, _, memory = args.simulate.partition(":")
    if not number.isdigit():
        raise InputError(f"--simulate {args.simulate}: no N or N:MEMORY, such as 1 or '1:8 GiB'")
    try:
        done = check_model(
            args.model,
            simulate=int(number),
            memory=memory or "16 GiB",
            imports=args.imports,
            allow=parse_patterns(args.allow),
            strict=args.strict,
        )
    except (ModelError, PatternError) as error:
        raise InputError(str(error)) from error
    if args.format == "json":
        print(json.dumps(model_text.model_json(done), indent=1))
    else:
        print(model_text.model_text(done))
    return {"passed": 0, "failed": 1}.get(done.outcome, BAD_INPUT)


# diff


def _diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD.json", help="a report or a baseline")
    parser.add_argument("new", metavar="NEW.json", help="the one to compare with it")
    parser.add_argument(
        "--format", choices=("text", "markdown", "json"), default="text", help="how to print it"
    )
    parser.add_argument(
        "--max-growth",
        metavar="PERCENT|off",
        default="10",
        help="how much more memory and transfers a test may take (default 10); off: any amount",
    )


def _diff(args: argparse.Namespace) -> int:
    from pytest_tfdevice.baseline import diff
    from pytest_tfdevice.baseline.amounts import parse_growth
    from pytest_tfdevice.reports import diff as texts

    try:
        growth = parse_growth(args.max_growth)
        old, new = diff.read(args.old), diff.read(args.new)
    except ValueError as error:  # FileError too
        raise InputError(str(error)) from None
    found = diff.diff(old, new, growth)
    if old and new and not found.compared:
        raise InputError(f"no test of {args.old} is in {args.new}: there is nothing to compare")
    if args.format == "json":
        print(json.dumps(diff.to_json(found), indent=1))
    else:
        print((texts.text if args.format == "text" else texts.markdown)(found), end="")
    return int(found.is_regression)


# devices, simulator


def _devices(args: argparse.Namespace) -> int:
    print(importlib.import_module("pytest_tfdevice.devices").find_devices().describe())
    return 0


def _simulator(name: str) -> Handler:
    def run(args: argparse.Namespace) -> int:
        commands = importlib.import_module("pytest_tfdevice.simulator.commands")
        return int(getattr(commands, name)())

    return run


def _simulator_arguments(parser: argparse.ArgumentParser) -> None:
    _add(
        parser,
        {
            "build": Command("build the simulated GPU for this TensorFlow", _simulator("build")),
            "info": Command("say what is built, and where", _simulator("info")),
            "clean": Command("remove what was built", _simulator("clean")),
        },
    )


def _no_command(args: argparse.Namespace) -> int:
    raise AssertionError("argparse requires one of the subcommands")


COMMANDS: dict[str, Command] = {
    "parse": Command("print the op to device map of a placement log", _parse, _parse_arguments),
    "explain": Command(
        "say what a placement log shows on the CPU, and why", _explain, _explain_arguments
    ),
    "check": Command(
        "say which operations of a saved model don't go to the GPU, and why",
        _check,
        _check_arguments,
    ),
    "diff": Command("tell what moved between two reports or baselines", _diff, _diff_arguments),
    "devices": Command("say what devices are here, and what is missing", _devices),
    "simulator": Command(
        "build, show or remove the simulated GPU", _no_command, _simulator_arguments
    ),
}
