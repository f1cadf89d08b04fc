"""Command line and ini file → one frozen :class:`Settings`.

Every option has an ini key of the same name without dashes (``--tfdevice-watch`` is
``tfdevice_watch``).  Options default to None, so that the command line goes before the ini file,
and the ini file before the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tfdevice.units import format_size, parse_size

if TYPE_CHECKING:
    from pytest_tfdevice.patterns import Pattern

DEFAULT_MEMORY = 16 * 2**30
DEFAULT_TOP = 10

ISOLATED = "tfdevice-isolated"
"""pytest's name for the plugin of a process that runs one test for another one."""


@dataclass(frozen=True)
class Simulate:
    """How many simulated GPUs, and how much memory each has, in bytes."""

    count: int
    memory: int = DEFAULT_MEMORY

    @classmethod
    def parse(cls, text: str) -> Simulate | None:
        """Reads ``N`` or ``N:MEMORY``; None for 0, which switches the simulation off.

        Raises:
            ValueError: ``text`` is neither; the message says what is wrong.
        """
        number, colon, memory = text.strip().partition(":")
        if not (number.isascii() and number.isdigit()):
            raise ValueError(f"{text!r} is not N or N:MEMORY, such as 2 or '2:8 GiB'")
        count = int(number)
        if count > 64:
            raise ValueError(f"{count} simulated GPUs are more than the 64 that can be had")
        if not count:
            return None
        if colon and not memory.strip():
            raise ValueError(f"{text!r} has no memory after its colon")
        return cls(count, parse_size(memory) if colon else DEFAULT_MEMORY)

    def __str__(self) -> str:
        return f"{self.count}:{format_size(self.memory)}"


@dataclass(frozen=True)
class Require:
    """How many GPUs a run was promised, and whether simulated ones will do."""

    count: int
    simulated: bool = False

    @classmethod
    def parse(cls, text: str) -> Require:
        """Reads ``gpu:N`` or ``any:N``.

        Raises:
            ValueError: ``text`` is neither; the message says what is wrong.
        """
        kind, _, number = text.strip().partition(":")
        known = kind in ("gpu", "any") and number.isascii() and number.isdigit()
        if not known or not 1 <= int(number) <= 1000:
            raise ValueError(
                f"{text!r} is neither gpu:N, for real GPUs, nor any:N, for simulated ones too, "
                "N being 1 or more"
            )
        return cls(int(number), kind == "any")

    def __str__(self) -> str:
        return f"{'any' if self.simulated else 'gpu'}:{self.count}"


BASELINE_MODES = ("check", "create", "update", "off")
GITHUB_MODES = ("auto", "off")


@dataclass(frozen=True)
class Settings:
    """What was asked for, by command line or ini file.

    Attributes:
        simulate: the simulated GPUs, None for none.
        watch: watch every test, and report only.
        enforce: judge every test that uses TensorFlow as if it were marked ``on_gpu``.
        strict: ``strict`` for every marker that doesn't say otherwise.
        allow: added to the ``allow`` of every marker.
        baseline: what is done with baselines, one of ``BASELINE_MODES``.
        baseline_dir: where they are kept instead of beside the tests.
        require: the GPUs that were promised.
        expected_skips: the file that lists the marked tests that may skip.
        gpu_memory_fraction: limit on the peak of every marked test, as a share of the GPU's memory;
            None for none.
        top: how many tests the table of memory and transfers shows; 0 for no table.
        report: the files that the run's report is written to, each by its ending.
        github: whether GitHub Actions, where it runs the tests, gets annotations and a job summary;
            one of ``GITHUB_MODES``.
        junit: whether the properties of watched tests, which ``--junitxml`` writes, tell where they
            ran.
        logdir: where graphs are written for TensorBoard, None for nowhere.
    """

    simulate: Simulate | None = None
    watch: bool = False
    enforce: bool = False
    strict: bool = False
    allow: tuple[Pattern, ...] = ()
    baseline: str = "check"
    baseline_dir: Path | None = None
    require: Require | None = None
    expected_skips: Path | None = None
    gpu_memory_fraction: float | None = None
    top: int = DEFAULT_TOP
    report: tuple[Path, ...] = ()
    github: str = "auto"
    junit: bool = True
    logdir: Path | None = None

    @classmethod
    def of(cls, config: pytest.Config) -> Settings:
        """The settings of a run.

        Raises:
            pytest.UsageError: a value can't be read; the message names the option.
        """
        texts = {field.name: _value(config, field.name) for field in fields(cls)}
        return cls(
            simulate=_read("simulate", texts["simulate"] or "0", Simulate.parse),
            watch=bool(texts["watch"]),
            enforce=bool(texts["enforce"]),
            strict=bool(texts["strict"]),
            allow=tuple(_read("allow", text, _pattern) for text in texts["allow"] or ()),
            baseline=_read("baseline", texts["baseline"] or "check", _mode),
            baseline_dir=_path(config, "baseline_dir", texts["baseline_dir"]),
            require=_read("require", texts["require"], Require.parse) if texts["require"] else None,
            expected_skips=_path(config, "expected_skips", texts["expected_skips"]),
            gpu_memory_fraction=_optional(
                "gpu_memory_fraction", texts["gpu_memory_fraction"], _fraction
            ),
            top=_optional("top", texts["top"], _number, DEFAULT_TOP),
            report=_reports(config, texts["report"] or ()),
            github=_read("github", texts["github"] or "auto", _github_mode),
            junit=texts["junit"] is None or bool(texts["junit"]),
            logdir=_path(config, "logdir", texts["logdir"]),
        )

    @property
    def wants_github(self) -> bool:
        """True on GitHub Actions, which sets ``GITHUB_ACTIONS=true``."""
        return self.github == "auto" and os.environ.get("GITHUB_ACTIONS") == "true"

    @property
    def wants_outputs(self) -> bool:
        """True for a run that leaves something outside the terminal."""
        return bool(self.report) or self.wants_github

    def effective(self) -> list[str]:
        """What isn't the default, as ``name=value``, for the header."""
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            if isinstance(value, tuple):
                value = ",".join(map(str, value))
            if value is False:
                value = "off"
            shown.append(field.name if value is True else f"{field.name}={value}")
        return shown


def runs_for_another(config: pytest.Config) -> bool:
    """True in a worker of pytest-xdist, and in the own process of an isolated test: another process
    looks after what belongs to the run."""
    return hasattr(config, "workerinput") or is_isolated(config)


def is_isolated(config: pytest.Config) -> bool:
    """True in the own process of an isolated test."""
    return bool(config.pluginmanager.has_plugin(ISOLATED))


def _value(config: pytest.Config, name: str) -> Any:
    given = config.getoption(f"tfdevice_{name}", default=None)
    if given is None:
        # While plugins are still being loaded, values stand in `known_args_namespace` only.
        given = getattr(config.known_args_namespace, f"tfdevice_{name}", None)
    if given is not None:
        return given
    try:
        return config.getini(f"tfdevice_{name}")
    except (TypeError, ValueError, pytest.UsageError) as error:  # pytest's, which name no key
        raise pytest.UsageError(f"ini key tfdevice_{name}: {error}") from None


def _pattern(text: str) -> Pattern:
    from pytest_tfdevice.patterns import Pattern

    return Pattern.parse(text)


def _fraction(text: str) -> float:
    """A share above 0, at most 1."""
    try:
        fraction = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
    if not 0 < fraction <= 1:  # also for NaN
        raise ValueError(f"{text!r} is no share of a GPU's memory: above 0, at most 1")
    return fraction


def _number(text: str) -> int:
    """A whole number from 0 up."""
    if not (text.strip().isascii() and text.strip().isdigit()):
        raise ValueError(f"{text!r} is no number of tests: a whole number from 0 up")
    return int(text)


def _optional(name: str, text: Any, parse: Any, default: Any = None) -> Any:
    """As :func:`_read`; the default where nothing was given."""
    return default if text is None or text == "" else _read(name, text, parse)


def _read(name: str, text: Any, parse: Any) -> Any:
    try:
        return parse(text)
    except ValueError as error:  # PatternError and SizeError too
        option = f"--tfdevice-{name.replace('_', '-')}"
        raise pytest.UsageError(f"{option} (ini: tfdevice_{name}): {error}") from None


def _mode(text: str) -> str:
    return _one_of(BASELINE_MODES, text)


def _github_mode(text: str) -> str:
    return _one_of(GITHUB_MODES, text)


def _one_of(known: tuple[str, ...], text: str) -> str:
    if text not in known:
        raise ValueError(f"{text!r} is none of {', '.join(known)}")
    return text


def _reports(config: pytest.Config, texts: Iterable[str]) -> tuple[Path, ...]:
    """Each file once."""
    found = [_path(config, "report", _read("report", text, _report)) for text in texts]
    return tuple(dict.fromkeys(path for path in found if path is not None))


def _report(text: str) -> str:
    from pytest_tfdevice.outputs.writers import check_ending

    check_ending(text)
    return text


def _path(config: pytest.Config, name: str, text: str | None) -> Path | None:
    """A path of the command line is relative to where pytest was started, one of the ini file to
    that file's folder."""
    if not text:
        return None
    on_command_line = config.getoption(f"tfdevice_{name}", default=None) is not None
    ini = config.inipath.parent if config.inipath is not None else config.rootpath
    return (config.invocation_params.dir if on_command_line else ini) / text
