"""Frozen dataclasses ⇄ plain data, by their type hints.

A field that has its default is left out, so that files stay small and a later version can add a
field.  What is read is checked against the hints; an error names the place.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class FormatError(ValueError):
    """Data that isn't what it should be; the message says where and why."""


@dataclass(frozen=True)
class Special:
    """How values of one class are written, instead of field by field."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


@dataclass(frozen=True)
class Codec:
    """Encodes and decodes dataclasses; ``special`` classes in their own way."""

    special: Mapping[type, Special] = field(default_factory=dict)

    def encode(self, value: Any) -> Any:
        """Plain data: dicts, lists, text, numbers."""
        own = self.special.get(type(value))
        if own is not None:
            return own.encode(value)
        if dataclasses.is_dataclass(value):
            return {
                f.name: self.encode(getattr(value, f.name))
                for f in dataclasses.fields(value)
                if not _is_default(f, getattr(value, f.name))
            }
        if isinstance(value, tuple):
            return [self.encode(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.encode(item) for key, item in sorted(value.items())}
        return value

    def decode(self, cls: type[T], data: Any, where: str = "$") -> T:
        """The inverse of :meth:`encode`.

        Raises:
            FormatError: ``data`` isn't that of a ``cls``.
        """
        return cast(T, self._decode(cls, data, where))

    def _decode(self, hint: Any, data: Any, where: str) -> Any:
        own = self.special.get(hint) if isinstance(hint, type) else None
        if own is not None:
            try:
                return own.decode(data)
            except (ValueError, TypeError, AttributeError, LookupError) as error:
                raise FormatError(f"{where}: {error}") from None
        origin = get_origin(hint)
        if origin in (Union, types.UnionType):
            return self._optional(hint, data, where)
        if origin is Literal:
            if not isinstance(data, str) or data not in get_args(hint):
                raise FormatError(f"{where}: {_shown(data)} is none of {', '.join(get_args(hint))}")
            return data
        if origin is tuple:
            return self._tuple(get_args(hint), data, where)
        if origin is not None:
            return self._mapping(get_args(hint)[1], data, where)
        if dataclasses.is_dataclass(hint):
            return self._dataclass(hint, data, where)
        return _plain(hint, data, where)

    def _optional(self, hint: Any, data: Any, where: str) -> Any:
        if data is None:
            return None
        inner = [arg for arg in get_args(hint) if arg is not types.NoneType]
        return self._decode(inner[0], data, where)

    def _tuple(self, args: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(data, list):
            raise FormatError(f"{where}: a list is wanted, not {_shown(data)}")
        if len(args) == 2 and args[1] is ...:
            return tuple(self._decode(args[0], x, f"{where}[{i}]") for i, x in enumerate(data))
        if len(data) != len(args):
            raise FormatError(f"{where}: {len(args)} values are wanted, not {len(data)}")
        return tuple(
            self._decode(arg, x, f"{where}[{i}]")
            for i, (arg, x) in enumerate(zip(args, data, strict=True))
        )

    def _mapping(self, value: Any, data: Any, where: str) -> Mapping[str, Any]:
        read = {k: self._decode(value, v, f"{where}.{k}") for k, v in _object(data, where).items()}
        return types.MappingProxyType(read)

    def _dataclass(self, cls: Any, data: Any, where: str) -> Any:
        hints = _hints(cls)
        given = _object(data, where)
        unknown = sorted(set(given) - set(hints))
        if unknown:
            raise FormatError(f"{where}: unknown field {unknown[0]!r}")
        for name, required in _fields(cls):
            if required and name not in given:
                raise FormatError(f"{where}: {name!r} is missing")
        read = {name: self._decode(hints[name], x, f"{where}.{name}") for name, x in given.items()}
        try:
            return cls(**read)
        except (ValueError, TypeError) as error:
            raise FormatError(f"{where}: {error}") from None


@cache
def _hints(cls: Any) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


@cache
def _fields(cls: Any) -> tuple[tuple[str, bool], ...]:
    """Names, and whether the field must be given."""
    missing = dataclasses.MISSING
    return tuple(
        (f.name, f.default is missing and f.default_factory is missing)
        for f in dataclasses.fields(cls)
    )


def _is_default(f: Any, value: Any) -> bool:
    if f.default is not dataclasses.MISSING:
        return bool(value == f.default and type(value) is type(f.default))
    if f.default_factory is not dataclasses.MISSING:
        return bool(value == f.default_factory())
    return False


def _object(data: Any, where: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise FormatError(f"{where}: an object is wanted, not {_shown(data)}")
    return data


def _plain(hint: Any, data: Any, where: str) -> Any:
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    wrong_bool = isinstance(data, bool) and hint is not bool
    if not isinstance(data, hint) or wrong_bool:
        raise FormatError(f"{where}: {_shown(data)} is no {hint.__name__}")
    return data


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:59] + "…"
