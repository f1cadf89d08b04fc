"""What goes over the socket between a test's process and the one that started it.  Knows no pytest.

A message is a kind and its content, pickled, after its length.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Message = tuple[str, Any]

_LENGTH = struct.Struct("!Q")
_PLAIN = (type(None), bool, int, float, str, bytes)


def plain(value: Any) -> Any:
    """``value`` with nothing in it but Python's own types, which any process can read.

    What a test put into its report may be of a class that can't be pickled, or imported by the
    other process.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {plain(key): plain(content) for key, content in value.items()}
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, list | set | frozenset):
        return [plain(content) for content in value]
    if isinstance(value, str):
        return str.__str__(value)
    return str(value) if hasattr(value, "__fspath__") else repr(value)


def encode(message: Message) -> bytes:
    """The bytes of a message."""
    data = pickle.dumps(message)
    return _LENGTH.pack(len(data)) + data


def send(sock: socket.socket, message: Message, descriptors: Sequence[int] = ()) -> None:
    """Sends a message whole, and file descriptors with it."""
    data = memoryview(encode(message))
    if descriptors:
        data = data[socket.send_fds(sock, [data], list(descriptors)) :]
    sock.sendall(data)


class Reader:
    """Puts messages together again."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterable[Message]:
        """The messages that are whole now."""
        self._data += data
        while len(self._data) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._data)[0]
            if len(self._data) < end:
                return
            message = pickle.loads(self._data[_LENGTH.size : end])
            del self._data[:end]
            yield message
