"""Messages of TensorFlow about what it could not place: text of any version → failures.

With soft placement off, or where a colocation group has no device that all its members support,
TensorFlow raises an error instead of placing an op; with soft placement on it warns.  The messages
of 0.5 to 2.21 come in these shapes (``placer.cc``, ``colocation_graph.cc``, ``execute.cc``):

* ``Cannot assign a device for operation NAME: …`` (``to node 'NAME'`` up to 1.0), because of

  - ``no supported kernel for GPU devices is available``,
  - an explicit assignment to a device that isn't among the ``available devices`` (up to 1.2: ``no
    devices matching that specification are registered``),
  - a colocation group ``that required incompatible device '…'``;

* ``Could not satisfy device specification '…'. enable_soft_placement=0.`` (eager ops);
* ``Unable to find any devices for spec …`` (a call of a function);
* ``Cannot colocate nodes …`` and ``… supports both of those nodes``;
* ``Could not find device for node: …`` and ``No registered 'X' OpKernel for GPU devices``;
* ``Failed to place the graph without changing the devices of some resources`` (a warning).

Most are followed by the colocation group and by the op's attributes and registered kernels, over
many lines.  A reader takes a log line by line, whatever else is in it, and keeps no more than
``MAX_MEMBERS`` members of a group.  Knows neither TensorFlow nor pytest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pytest_tfdevice.errors.failure import (
    MAX_MEMBERS,
    Draft,
    Failure,
    Member,
    dtype_name,
    kernel_entry,
    readable,
)
from pytest_tfdevice.model import Device, DeviceError, DeviceSpec, SourceLine

__all__ = ["Failure", "FailureReader", "Member", "find_failures", "read_failures", "readable"]

MAX_LINE = 20_000
"""Of a longer line only this many characters are read."""

_NO_KERNEL = re.compile(r"no supported kernel for \w+ devices is available")
_CANNOT = re.compile(r"Cannot assign a device (?:for operation|to node) '?([^\s':]+)'?:")
_EAGER = re.compile(
    r"Could not satisfy (?:explicit )?device specification '([^']*)'\. enable_soft_placement=\d+\. "
    r"Supported device types \[([^\]]*)\]\. All available devices \[([^\]]*)\]"
)
_NO_SPEC = re.compile(r"Unable to find any devices for spec (\S+)")
_WARNING = re.compile(r"Failed to place the graph without changing the devices of some resources")
_CANNOT_COLOCATE = re.compile(
    r"Cannot colocate nodes (?P<a>\S+ ?[^}]*?\}\}|\S+) and (?P<b>\S+ ?[^}]*?\}\}|\S+?)(?:[ :]|$)"
)
_NO_VALID_DEVICE = re.compile(
    r"Could not find (?:valid )?device for node[:.]?\s*(?:\{\{node ([^}]*)\}\}(?: = (\w+)\[)?)?"
)
_NO_OPKERNEL = re.compile(
    r"No (?:registered '(?P<a>\w+)' OpKernel for '?(?P<device>\w+)'? devices compatible with node "
    r"|OpKernel was registered to support Op '(?P<b>\w+)')"
)
_STARTS = (
    "Cannot assign a device",
    "Could not satisfy",
    "Unable to find any devices",
    "Failed to place the graph",
    "Cannot colocate nodes",
    "Could not find",
    "OpKernel",
)
_EXPLICIT = re.compile(r"Could not satisfy explicit device specification '([^']*)'")
_ASSIGNED = re.compile(
    r"was explicitly assigned to (\S+)(?: \([^)]*\))? but available devices are \[([^\]]*)\]"
)
_REGISTERED = re.compile(r"are registered in this process; available devices: ([^\n]*)")
_USED_BY = re.compile(r"\{\{node ([^}]*)\}\}")
_REGISTERED_DEVICES = re.compile(r"Registered devices: \[([^\]]*)\]")
_REQUIRED = re.compile(r"required incompatible device '([^']*)'")
_ALL_AVAILABLE = re.compile(r"All available devices \[([^\]]*)\]")
_EAGER_OP = re.compile(r"\[Op:([^\]]+)\](?: name: (\S+))?")

_TYPES_HEAD = re.compile(r"Colocation group had the following types and (?:supported )?devices:")
_MEMBERS_HEAD = re.compile(r"Colocation members(?:,| and) user-requested devices")
_ROOT = re.compile(
    r"Root Member\(.*?requested_device_name_='([^']*)'.*?supported_device_types_=\[([^\]]*)\]"
)
_TYPE_ROW = re.compile(r"([A-Za-z_][\w.>]*): ?((?:[A-Z][A-Z_0-9]* ?)*)\Z")
_MEMBER_ROW = re.compile(r"(\S+) \(([A-Za-z_][\w.>]*)\)(?: (.*))?\Z")
_FRAMEWORK = re.compile(r"framework assigned device=(\S+)")
_OP_ROW = re.compile(r"Op: (\w+)\Z")
_ATTRS_ROW = re.compile(r"Node attrs: (.*)\Z")
_KERNELS_HEAD = re.compile(r"(?:Registered kernels:|All kernels registered for op (\w+) ?:)")
_KERNEL_ROW = re.compile(r"device='(\w+)'((?:; \w+ in \[[^\]]*\])*)")
_CANDIDATES = re.compile(r"Current candidate devices are \[(.*)")
_NODE_TAIL = re.compile(r"\[\[\{?\{?(?:node )?([^\s\]}]+?)\}?\}?\]\]")
_NODE_DEF = re.compile(r"\[\[Node: (\S+) = (\w+)\[([^\n]*)")
_DTYPE = re.compile(r"(\w+)=DT_(\w+)")
_CREATION = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_DEFINED = re.compile(r"Detected at node '?([^'\s]+)'? defined at")
_DECORATION = re.compile(r"(?:\[[\d,]+\]<std(?:err|out)>:?|[\w.\-]+\s*\| |>+ |# )")


class FailureReader:
    """Finds the failures in a text that comes line by line."""

    def __init__(self) -> None:
        self._draft: Draft | None = None
        self._detected: tuple[str, SourceLine | None] | None = None

    def line(self, text: str) -> Iterator[Failure]:
        """Takes the next line, without its end; gives what became complete by it."""
        text = text[:MAX_LINE]
        if any(start in text for start in _STARTS):
            draft = _started(text)
            if draft is not None:
                yield from self.end()
                self._draft = draft
                if self._detected is not None and self._detected[0] == draft.op:
                    draft.source = self._detected[1]
                self._detected = None
                if _ends(draft, text):
                    yield from self.end()
                return
        if self._draft is not None:
            if not self._goes_on(self._draft, text):
                yield from self.end()
                self._note_definition(text)
            return
        self._note_definition(text)

    def end(self) -> Iterator[Failure]:
        """Gives what is still open; to be called after the last line."""
        if self._draft is not None:
            draft, self._draft = self._draft, None
            failure = draft.done()
            if failure is not None:
                yield failure

    def _note_definition(self, text: str) -> None:
        """``Detected at node 'prod' defined at (most recent call last):``, and the last line."""
        if "Detected at node" in text and (found := _DEFINED.search(text)):
            self._detected = (found[1].rstrip("'"), None)
        elif self._detected is not None and (place := _CREATION.search(text)):
            line = SourceLine(place[1], int(place[2]), place[3].replace("<module>", ""))
            self._detected = (self._detected[0], line)

    def _goes_on(self, draft: Draft, text: str) -> bool:
        """Reads a line that belongs to the failure; False where it doesn't."""
        text = _DECORATION.sub("", text, count=1) if _DECORATION.match(text) else text
        bare = text.strip()
        if not bare or bare.startswith(("Colocation Debug Info", "See below for details")):
            return True
        if bare.startswith("[[") or "[Op:" in bare:
            return self._tail(draft, bare)
        for head, section in (
            (_TYPES_HEAD, "types"),
            (_MEMBERS_HEAD, "members"),
            (_KERNELS_HEAD, "kernels"),
        ):
            if head.match(bare):
                draft.section = section
                return True
        if found := _ROOT.match(bare):
            draft.wanted = draft.wanted or found[1]
            draft.supported = draft.supported or _words(found[2])
            return True
        if found := _OP_ROW.match(bare):
            draft.type = draft.type or found[1]
            return True
        if found := _ATTRS_ROW.match(bare):
            _read_dtypes(draft, found[1])
            return True
        if bare.startswith("/job:"):  # the rest of "candidate devices are ["
            draft.available = draft.available or _devices(bare)
            return True
        return _row(draft, bare)

    def _tail(self, draft: Draft, bare: str) -> bool:
        """``[[{{node prod}}]] [Op:…]`` ends a failure; 1.x has the whole node there."""
        if found := _NODE_DEF.search(bare):
            draft.op = draft.op or found[1]
            draft.type = draft.type or found[2]
            _read_dtypes(draft, found[3])
        elif found := _NODE_TAIL.search(bare):
            draft.op = draft.op or found[1]
        _read_eager(draft, bare)
        return False


def find_failures(text: str) -> list[Failure]:
    """Every failure in a text, in order; the same one told twice is there once."""
    return list(dict.fromkeys(read_failures(text.splitlines())))


def read_failures(lines: Iterable[str]) -> Iterator[Failure]:
    """Failures of a text that comes in lines."""
    reader = FailureReader()
    for line in lines:
        yield from reader.line(line)
    yield from reader.end()


def _started(text: str) -> Draft | None:
    """The failure that a line begins, with what that line says of it."""
    if found := _EAGER.search(text):
        available, supported = _devices(found[3]), _words(found[2])
        draft = Draft("no-kernel", wanted=found[1], available=available, supported=supported)
        if not _is_there(found[1], available):
            draft.problem = "no-device"
        _read_eager(draft, text)
        return draft
    if found := _CANNOT.search(text):
        return _cannot_assign(found[1], text[found.end() :])
    if found := _NO_SPEC.search(text):
        draft = Draft("no-device", wanted=found[1])
        _read_eager(draft, text)
        return draft
    if _WARNING.search(text):
        draft = Draft("warned")
        if found := _CANDIDATES.search(text):
            draft.available = _devices(found[1])
        return draft
    if found := _CANNOT_COLOCATE.search(text):
        draft = Draft("colocated", op=_bare_node(found["a"]), partner=_bare_node(found["b"]))
        return draft
    if found := _NO_OPKERNEL.search(text):
        if found["device"] == "CPU":
            return None
        draft = Draft("no-kernel", type=found["a"] or found["b"], wanted=found["device"] or "")
        if node := _USED_BY.search(text):
            draft.op = node[1]
        if "Registered kernels:" in text:
            draft.section = "kernels"
        if present := _REGISTERED_DEVICES.search(text):
            draft.supported = _words(present[1])
            if "GPU" not in draft.supported:
                draft.problem, draft.available = "no-device", ("/job:localhost/device:CPU:0",)
        return draft
    if found := _NO_VALID_DEVICE.search(text):
        draft = Draft("no-kernel", op=found[1] or "", type=found[2])
        _read_dtypes(draft, text)
        return draft
    return None


def _cannot_assign(op: str, rest: str) -> Draft:
    draft = Draft("no-kernel" if _NO_KERNEL.search(rest) else None, op=op)
    if found := _EXPLICIT.search(rest):
        draft.wanted = found[1]
    if found := _ASSIGNED.search(rest):
        draft.problem, draft.wanted = "no-device", found[1]
        draft.available = _devices(found[2])
    elif found := _REGISTERED.search(rest):
        draft.problem, draft.available = "no-device", _devices(found[1])
    elif found := _REQUIRED.search(rest):
        draft.problem, draft.wanted = "colocated", found[1]
        if found := _ALL_AVAILABLE.search(rest):
            draft.available = _devices(found[1])
        if draft.available and not _is_there(draft.wanted, draft.available):
            draft.problem = "no-device"
    _read_eager(draft, rest)
    return draft


def _ends(draft: Draft, text: str) -> bool:
    """True where nothing follows the first line of such a message."""
    return "[Op:" in text or _NO_SPEC.search(text) is not None or (_EAGER.search(text) is not None)


def _row(draft: Draft, bare: str) -> bool:
    if draft.section == "members" and (found := _MEMBER_ROW.match(bare)):
        device = found[3] or ""
        if framework := _FRAMEWORK.search(device):
            device = framework[1]
        if len(draft.members) < MAX_MEMBERS:
            draft.members.append(Member(found[1], found[2], device.strip()))
        return True
    if draft.section == "kernels" and (found := _KERNEL_ROW.match(bare)):
        if len(draft.kernels) < MAX_MEMBERS:
            draft.kernels.append(kernel_entry(draft.type or "", found[1], found[2]))
        return True
    if draft.section == "kernels" and bare.startswith("<no registered kernels>"):
        return True
    if draft.section == "types" and (found := _TYPE_ROW.match(bare)):
        if len(draft.types) < MAX_MEMBERS:
            draft.types[found[1]] = _words(found[2])
        return True
    if draft.section == "" and (found := _REGISTERED.search(bare)):
        draft.problem, draft.available = "no-device", _devices(found[1])
        return True
    # Up to 1.3 a message was wrapped in front of each clause by those who quoted it.
    if draft.section == "" and (found := _EXPLICIT.search(bare)):
        draft.wanted = draft.wanted or found[1]
        return True
    if draft.section == "" and _NO_KERNEL.search(bare):
        draft.problem = "no-kernel"
        return True
    return draft.section == "" and bare.startswith("because ")


def _read_eager(draft: Draft, text: str) -> None:
    """``[Op:MatMul] name: mm`` and ``[Op:__inference_step_19]``."""
    found = _EAGER_OP.search(text)
    if found is None:
        return
    if found[1].startswith("__"):
        draft.function = found[1]
    else:
        draft.type = draft.type or found[1]
        draft.op = draft.op or (found[2] or "").rstrip("/")


def _read_dtypes(draft: Draft, text: str) -> None:
    for attr, dtype in _DTYPE.findall(text):
        draft.dtypes.setdefault(attr, dtype_name(dtype))


def _bare_node(text: str) -> str:
    return re.sub(r"\{\{(?:colocation_)?node |\}\}|'", "", text).strip()


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _devices(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"/job:[^\s,\]]+", text))


def _is_there(wanted: str, available: Iterable[str]) -> bool:
    try:
        spec = DeviceSpec.parse(wanted)
        return any(spec.matches(Device.parse(name)) for name in available)
    except DeviceError:
        return True
