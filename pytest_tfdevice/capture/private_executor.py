"""The private names of TensorFlow that leave the user's asynchronous eager ops alone.

As in ``private``: each is looked up when it is used, and its absence is a sentence.  Seen on 2.12
to 2.21.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from pytest_tfdevice.capture.private import MissingPrivate, _attribute, _lookup, eager_context

_EAGER = "tensorflow.python.eager.context"
_EXECUTOR = "tensorflow.python.eager.executor"
_PURPOSE = "to leave asynchronous ops alone"


def is_asynchronous() -> bool:
    """True where the calling thread's eager ops return before they have run."""
    _lookup(_EAGER, "Context.is_async", _PURPOSE)
    return bool(eager_context().is_async())


def wait(context: Any) -> Exception | None:
    """Waits until the calling thread's asynchronous ops are done; the error of the first that
    failed, which stays, to be raised where it would have been.

    Other threads run meanwhile: ``Executor.wait`` gives the interpreter away, which an op that
    fails needs for its message, unlike ``EagerTensor.shape``, which waits too.
    """
    if not _attribute(context, "executor.is_async", _PURPOSE, "Context")():
        return None
    try:
        context.executor.wait()
    except Exception as error:
        return error
    return None


@contextlib.contextmanager
def own_executor(context: Any) -> Iterator[None]:
    """Runs what is inside apart from the user's asynchronous ops, once those are done."""
    new_executor = _lookup(_EXECUTOR, "new_executor", _PURPOSE)
    if not _attribute(context, "executor.is_async", _PURPOSE, "Context")():
        yield
        return
    wait(context)
    with _lookup(_EAGER, "executor_scope", _PURPOSE)(new_executor(False)):
        yield


def probe() -> list[str]:
    """Tries every name; what is missing, one message each."""
    missing = []
    for module, path in (
        (_EAGER, "Context.is_async"),
        (_EAGER, "executor_scope"),
        (_EXECUTOR, "new_executor"),
        (_EXECUTOR, "Executor.is_async"),
        (_EXECUTOR, "Executor.wait"),
    ):
        try:
            _lookup(module, path, _PURPOSE)
        except MissingPrivate as error:
            missing.append(str(error))
    return missing
