"""Frozen dataclasses ⇄ plain data, by their type hints.

A field that has its default is left out, so that files stay small and a later version can add a
field.  What is read is checked against the hints; an error names the place.

A report may hold 50,000 placements of 20 fields: what is to be done with a type is found out once.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

Place = tuple[Any, str]
"""A place in the data: the one that it is in, and what it is there; text only for an error."""
Decoder = Callable[[Any, Place], Any]


class FormatError(ValueError):
    """Data that isn't what it should be; the message says where and why."""


@dataclass(frozen=True)
class Special:
    """How values of one class are written, instead of field by field."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


@dataclass(frozen=True)
class Codec:
    """Encodes and decodes dataclasses; ``special`` classes in their own way.

    ``forward``: classes that type hints name without their module importing them, which would be
    a circle.
    """

    special: Mapping[type, Special] = field(default_factory=dict)
    forward: tuple[type, ...] = ()
    _decoders: dict[Any, Decoder] = field(default_factory=dict, init=False, compare=False)
    _written: dict[type, list[tuple[str, Any, bool]]] = field(
        default_factory=dict, init=False, compare=False
    )

    def encode(self, value: Any) -> Any:
        """Plain data: dicts, lists, text, numbers."""
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None:
            return value
        if kind is tuple:
            return [self.encode(item) for item in value]
        own = self.special.get(kind)
        if own is not None:
            return own.encode(value)
        if dataclasses.is_dataclass(value):
            return self._encode_fields(kind, value)
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
        return cast(T, self._decoder(cls)(data, (None, where)))

    # -------------------------------------------------------------------- encoding
    def _encode_fields(self, kind: type, value: Any) -> dict[str, Any]:
        fields = self._written.get(kind)
        if fields is None:
            fields = self._written[kind] = list(map(_default, dataclasses.fields(value)))
        encoded = {}
        for name, default, optional in fields:
            item = getattr(value, name)
            if optional and type(item) is type(default) and item == default:
                continue
            encoded[name] = self.encode(item)
        return encoded

    # -------------------------------------------------------------------- decoding
    def _decoder(self, hint: Any) -> Decoder:
        known = self._decoders.get(hint)
        if known is None:
            # A class may hold itself: whoever asks meanwhile is sent here again.
            self._decoders[hint] = lambda data, where: self._decoders[hint](data, where)
            known = self._decoders[hint] = self._made(hint)
        return known

    def _made(self, hint: Any) -> Decoder:
        own = self.special.get(hint) if isinstance(hint, type) else None
        if own is not None:
            return _special(own)
        origin = get_origin(hint)
        if origin in (Union, types.UnionType):
            inner = next(arg for arg in get_args(hint) if arg is not types.NoneType)
            return _optional(self._decoder(inner))
        if origin is Literal:
            return _literal(get_args(hint))
        if origin is tuple:
            args = get_args(hint)
            if len(args) == 2 and args[1] is ...:
                return _list_of(self._decoder(args[0]))
            return _list_with([self._decoder(arg) for arg in args])
        if origin is not None:
            return _mapping(self._decoder(get_args(hint)[1]))
        if dataclasses.is_dataclass(hint):
            return self._fields(cast(type, hint))
        return _plain(hint)

    def _fields(self, cls: type) -> Decoder:
        hints = get_type_hints(cls, localns={known.__name__: known for known in self.forward})
        fields = dataclasses.fields(cast(Any, cls))
        decoders = {f.name: self._decoder(hints[f.name]) for f in fields}
        required = [f.name for f in fields if not _default(f)[2]]

        def decode(data: Any, where: Place) -> Any:
            given = _object(data, where)
            for name in required:
                if name not in given:
                    _unknown(given, decoders, where)
                    raise FormatError(f"{_path(where)}: {name!r} is missing")
            _unknown(given, decoders, where)
            read = {name: decoders[name](x, (where, f".{name}")) for name, x in given.items()}
            try:
                return cls(**read)
            except (ValueError, TypeError) as error:
                raise FormatError(f"{_path(where)}: {error}") from None

        return decode


def _default(f: Any) -> tuple[str, Any, bool]:
    """Name and default of a field, and whether it has one."""
    if f.default is not dataclasses.MISSING:
        return f.name, f.default, True
    if f.default_factory is not dataclasses.MISSING:
        return f.name, f.default_factory(), True
    return f.name, None, False


def _special(own: Special) -> Decoder:
    def decode(data: Any, where: Place) -> Any:
        try:
            return own.decode(data)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise FormatError(f"{_path(where)}: {error}") from None

    return decode


def _optional(inner: Decoder) -> Decoder:
    return lambda data, where: None if data is None else inner(data, where)


def _literal(known: tuple[str, ...]) -> Decoder:
    def decode(data: Any, where: Place) -> str:
        if not isinstance(data, str) or data not in known:
            raise FormatError(f"{_path(where)}: {_shown(data)} is none of {', '.join(known)}")
        return data

    return decode


def _list_of(inner: Decoder) -> Decoder:
    def decode(data: Any, where: Place) -> tuple[Any, ...]:
        items = enumerate(_list(data, where))
        return tuple([inner(item, (where, f"[{number}]")) for number, item in items])

    return decode


def _list_with(inner: list[Decoder]) -> Decoder:
    def decode(data: Any, where: Place) -> tuple[Any, ...]:
        if len(_list(data, where)) != len(inner):
            wanted = f"{len(inner)} values are wanted, not {len(data)}"
            raise FormatError(f"{_path(where)}: {wanted}")
        pairs = enumerate(zip(inner, data, strict=True))
        return tuple([one(item, (where, f"[{number}]")) for number, (one, item) in pairs])

    return decode


def _mapping(inner: Decoder) -> Decoder:
    def decode(data: Any, where: Place) -> Mapping[str, Any]:
        read = {key: inner(item, (where, f".{key}")) for key, item in _object(data, where).items()}
        return types.MappingProxyType(read)

    return decode


def _plain(hint: Any) -> Decoder:
    def decode(data: Any, where: Place) -> Any:
        if hint is float and isinstance(data, int) and not isinstance(data, bool):
            return float(data)
        if not isinstance(data, hint) or (isinstance(data, bool) and hint is not bool):
            raise FormatError(f"{_path(where)}: {_shown(data)} is no {hint.__name__}")
        return data

    return decode


def _list(data: Any, where: Place) -> list[Any]:
    if not isinstance(data, list):
        raise FormatError(f"{_path(where)}: a list is wanted, not {_shown(data)}")
    return data


def _object(data: Any, where: Place) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise FormatError(f"{_path(where)}: an object is wanted, not {_shown(data)}")
    return data


def _unknown(given: Mapping[str, Any], known: Mapping[str, Any], where: Place) -> None:
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise FormatError(f"{_path(where)}: unknown field {unknown[0]!r}")


def _path(where: Place | None) -> str:
    """``$.placements[3].device``."""
    parts = []
    while where is not None:
        where, part = where
        parts.append(part)
    return "".join(reversed(parts))


def _shown(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:59] + "…"
