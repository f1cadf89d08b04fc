"""What every file of this package has in common: its kind, its version, how it is read and written.

A file that can't be trusted is refused, with its name and, where there is one, the line: conflict
markers, a version that isn't known, two entries of one name (which a merge may leave behind).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from pytest_tfdevice.serial.codec import FormatError

PREFIX = "pytest-tfdevice "

_MARKER = re.compile(r"^(<{7}|={7}|>{7}|\|{7})(?= |$)", re.MULTILINE)


class FileError(ValueError):
    """A file that can't be read or written; the message names it and says why."""


def envelope(kind: str, version: int) -> dict[str, Any]:
    """The first fields of a file."""
    return {"format": f"{PREFIX}{kind}", "version": version}


def read(path: Path | str) -> dict[str, Any]:
    """The data of any file of this package; :func:`check` says whether it is of the right kind.

    Raises:
        FileError: it can't be read, or is none.
    """
    try:
        raw = Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FileError(f"can't read {path}: {getattr(error, 'strerror', None) or error}") from None
    return parse(raw, str(path))


def parse(raw: bytes | str, name: str) -> dict[str, Any]:
    """The data in a text.

    Raises:
        FileError: the text is no JSON object, or bears the traces of a merge.
    """
    try:
        text = raw.decode("utf-8-sig") if isinstance(raw, bytes) else raw
    except UnicodeDecodeError as error:
        raise FileError(f"{name} is no UTF-8 text: {error.reason}") from None
    marker = _MARKER.search(text)
    if marker is not None:
        line = text.count("\n", 0, marker.start()) + 1
        raise FileError(
            f"{name}:{line}: a merge conflict ({marker[1]}) is not settled; settle it, or delete "
            "the file and record it anew"
        )
    try:
        data = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise FileError(f"{name}:{error.lineno}: no JSON: {error.msg}") from None
    except (FormatError, RecursionError) as error:
        raise FileError(f"{name}{_line_of_double(text, error)}: {error}") from None
    if not isinstance(data, dict):
        raise FileError(f"{name}: no file of pytest-tfdevice: a JSON object is wanted")
    return data


def kind_of(data: dict[str, Any]) -> str | None:
    """``"baseline"`` or ``"report"``; None for what isn't of this package."""
    name = data.get("format")
    return name.removeprefix(PREFIX) if isinstance(name, str) and name.startswith(PREFIX) else None


def check(data: dict[str, Any], kind: str, version: int, name: str, text: str = "") -> None:
    """Makes sure of kind and version.

    Raises:
        FileError: it is another kind, or a version that isn't known; the message names the line
            where ``text`` is given.
    """
    if kind_of(data) != kind:
        found = data.get("format")
        said = f"its format is {found!r}" if found is not None else "it names no format"
        raise FileError(f"{name}: no {kind} of pytest-tfdevice: {said}")
    found = data.get("version")
    if found != version or isinstance(found, bool):
        at = re.search(r'^\s*"version"', text, re.MULTILINE)
        line = f":{text.count(chr(10), 0, at.end()) + 1}" if at else ""
        later = isinstance(found, int) and found > version
        mend = "; a newer pytest-tfdevice wrote it: update this one" if later else ""
        raise FileError(f"{name}{line}: version {found!r} isn't known, only {version} is{mend}")


def write(path: Path, text: str) -> None:
    """Writes a file whole or not at all: whoever reads it finds the old text or the new one.

    Raises:
        FileError: it can't be written; what was there is still there.
    """
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
        temporary = None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(f"can't write {path}: {why}; it is as it was") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise FormatError(f"{key!r} stands there twice; a merge may have left both")
        found[key] = value
    return found


def _no_constant(text: str) -> Any:
    raise FormatError(f"{text} is no number of JSON")


def _line_of_double(text: str, error: Exception) -> str:
    """``":12"``, the second line with the key that the error names."""
    match = re.match(r"'(.*)' stands", str(error))
    if match is None:
        return ""
    key = json.dumps(match[1], ensure_ascii=False)
    lines = [n for n, line in enumerate(text.split("\n"), 1) if line.strip().startswith(f"{key}:")]
    return f":{lines[1]}" if len(lines) > 1 else ""
