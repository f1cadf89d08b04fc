"""What a TensorFlow log says besides placements: its version, its GPUs, why it has none, failures.

Knows neither TensorFlow nor pytest.  A log is taken in pieces of any size and in bounded memory.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

from pytest_tfdevice.errors.placement import MAX_LINE, Failure, FailureReader
from pytest_tfdevice.placement_log.text import clean

MAX_FAILURES = 50
MAX_GPUS = 64
MAX_FOLLOWED = 10_000
"""How many ops that follow another are remembered."""

PLACER_LINES: dict[int, str] = {
    289: "0.5 or 0.6",
    818: "0.9 or 0.10",
    819: "0.11",
    827: "0.12",
    841: "1.0 or 1.1",
    847: "1.2",
    872: "1.3",
    875: "1.3",
    874: "1.4 to 1.7",
    886: "1.8 or 1.9",
    927: "1.12",
    935: "1.12",
    1059: "1.13",
    54: "1.14 or 1.15",
    114: "2.5 to 2.12",
    125: "2.15",
    162: "2.18 to 2.21",
}
"""The line of (simple_)placer.cc that prints a placement, and the releases where it was seen."""

EXECUTE_LINES: dict[int, str] = {
    571: "1.14 or 1.15",
    1445: "2.12",
    1525: "2.12",
    1750: "2.15",
    1746: "2.18",
    1775: "2.21",
}
"""The same of execute.cc, for "Executing op"."""

_PLACER = re.compile(r"\bplacer\.cc:(\d+)\] (?!Ignoring)|simple_placer\.cc:(\d+)\] (?!Ignoring)")
_EXECUTE = re.compile(r"\bexecute\.cc:(\d+)\] Executing op ")
_MAPPING = re.compile(r"(/job:\S+/(?:device:)?(?:GPU|gpu):\d+) -> (?:device: \d+, )?name: ([^,]+)")
_CREATED = re.compile(
    r"Creat(?:ed|ing) (?:TensorFlow )?device \(?((?:/job:[^\s)]*)?/(?:device:)?(?:GPU|gpu):\d+)"
    r".*?name: ([^,)]+)"
)
_NO_DEVICES = "Device mapping: no known devices"
_FOLLOWS = re.compile(
    r"Ignoring device specification (\S+) for node '([^']+)' because the input edge from "
    r"'([^']+)' is a reference connection and already has a device field set to (\S+)"
)
_CAUSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"Could not (?:load|find) dynamic library '?([^';]+)'?"),
        "TensorFlow could not load {0}",
    ),
    (re.compile(r"Cannot dlopen some GPU libraries"), "a CUDA library could not be loaded"),
    (re.compile(r"Could not find cuda drivers on your machine"), "no CUDA driver was found"),
    (re.compile(r"failed call to cuInit: ([^\s:]+(?:: [^\n]{0,80})?)"), "cuInit failed: {0}"),
    (re.compile(r"no NVIDIA GPU device is present"), "no NVIDIA GPU is in the machine"),
    (
        re.compile(r"kernel driver does not appear to be running"),
        "the NVIDIA kernel driver is not running",
    ),
    (
        re.compile(r"The requested device appears to be a GPU, but CUDA is not enabled"),
        "this TensorFlow was built without CUDA",
    ),
)
_TRIGGERS = (
    *("placer.cc:", "execute.cc:", "vice", "Ignoring", "dynamic library", "dlopen", "cuInit"),
    *("NVIDIA", "kernel driver", "cuda drivers", "using XLA"),
)


class LogFacts:
    """Reads a log as it goes by: ``feed`` it, then ``close`` it."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._cut = False
        self._reader = FailureReader()
        self._failures: dict[Failure, int] = {}
        self.lost_failures = 0
        self.gpus: dict[str, str] = {}
        """Names of the GPUs, by device as the log has it ("GPU:0")."""
        self.no_devices = False
        """True where a Session said that it knows no devices but the CPU."""
        self.causes: dict[str, None] = {}
        """Why there is no GPU, in the log's own words put plainly."""
        self.follows: dict[str, tuple[str, str]] = {}
        """Ops whose request was ignored: the op that they follow, and its device."""
        self.versions: dict[str, None] = {}
        """Releases of TensorFlow that print lines like these."""
        self.compiled = False
        """True where XLA compiled something."""

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What could not be placed, each once, in order of first appearance."""
        return tuple(self._failures)

    @property
    def version(self) -> str:
        """The releases that the log is from; "" where its lines don't tell, or contradict."""
        return next(iter(self.versions)) if len(self.versions) == 1 else ""

    def passing(self, chunks: Iterator[str | bytes]) -> Iterator[str | bytes]:
        """Hands ``chunks`` on, reading them on the way."""
        for chunk in chunks:
            self.feed(chunk)
            yield chunk
        self.close()

    def feed(self, chunk: str | bytes) -> None:
        """Takes the next piece."""
        text = chunk if isinstance(chunk, str) else self._decoder.decode(chunk)
        *lines, rest = (self._pending + text.replace("\0", "").replace("\r", "\n")).split("\n")
        for line in lines:
            if not self._cut:
                self._line(line)
            self._cut = False
        if len(rest) > MAX_LINE:
            if not self._cut:
                self._line(rest[:MAX_LINE])
            self._cut, rest = True, ""
        self._pending = rest

    def close(self) -> None:
        """Takes the end of the log."""
        if self._pending and not self._cut:
            self._line(self._pending)
        self._pending = ""
        self._note(self._reader.end())

    def _line(self, line: str) -> None:
        for part in clean(line) if "\\" in line or "<" in line or "\x1b" in line else (line,):
            self._note(self._reader.line(part))
            if any(trigger in part for trigger in _TRIGGERS):
                self._facts(part[:MAX_LINE])

    def _note(self, failures: Iterator[Failure]) -> None:
        for failure in failures:
            if failure in self._failures or len(self._failures) < MAX_FAILURES:
                self._failures[failure] = self._failures.get(failure, 0) + 1
            else:
                self.lost_failures += 1

    def _facts(self, line: str) -> None:
        self._version(line)
        for pattern in (_MAPPING, _CREATED):
            if (found := pattern.search(line)) and len(self.gpus) < MAX_GPUS:
                self.gpus.setdefault("GPU:" + found[1].rpartition(":")[2], found[2].strip())
        if "Compiled cluster using XLA" in line:
            self.compiled = True
        if _NO_DEVICES in line:
            self.no_devices = True
        for cause, words in _CAUSES:
            if (found := cause.search(line)) and len(self.causes) < MAX_GPUS:
                self.causes[words.format(*(group.strip() for group in found.groups()))] = None
        if (found := _FOLLOWS.search(line)) and len(self.follows) < MAX_FOLLOWED:
            self.follows[found[2]] = (found[3], found[4])

    def _version(self, line: str) -> None:
        for pattern, known in ((_PLACER, PLACER_LINES), (_EXECUTE, EXECUTE_LINES)):
            found = pattern.search(line)
            if found is None:
                continue
            version = known.get(int(next(g for g in found.groups() if g is not None)))
            if version and not any(_within(version, v) for v in self.versions):
                # The narrower of two that agree is the better one.
                for wider in [v for v in self.versions if _within(v, version)]:
                    del self.versions[wider]
                self.versions[version] = None


def _within(wide: str, narrow: str) -> bool:
    """True where the releases ``narrow`` are among ``wide``: "2.15" in "2.15 to 2.18"."""
    low, high = _bounds(wide)
    first, last = _bounds(narrow)
    return low <= first and last <= high


def _bounds(text: str) -> tuple[tuple[int, int], tuple[int, int]]:
    numbers = [(int(a), int(b)) for a, b in re.findall(r"(\d+)\.(\d+)", text)]
    return numbers[0], numbers[-1]
