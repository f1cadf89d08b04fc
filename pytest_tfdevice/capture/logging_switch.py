"""Switches TensorFlow's placement logging on and off in the middle of a process.

``tf.debugging.set_log_device_placement`` works only before TensorFlow's eager context exists.
Later it switches *soft placement*, not logging (its Python binding calls the C function
``TFE_ContextSetSoftDevicePlacement``; TensorFlow 2.12 to 2.21), so that a late ``False`` breaks
every later test of the process.  Here the C function itself is called.

What the switch reaches: eager ops and function calls of every thread; the bodies of functions
instantiated from now on in this thread (another thread keeps the options that it has cached); v1
Sessions created without a config of their own.  A Session whose ConfigProto says False stays
silent.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from pytest_tfdevice.capture import private
from pytest_tfdevice.capture.output import GiveBack, OutputCapture, give_back_all

_probes = itertools.count()
_ours: list[bool] = []  # what the blocks in force have set, innermost last


@contextlib.contextmanager
def placement_logging(enabled: bool = True, give_back: GiveBack = give_back_all) -> Iterator[None]:
    """Placement logging is on (or off) inside the block, and what it was afterwards.

    Initialises nothing: where the eager context doesn't exist yet, it will be made with logging on
    if the block makes it, and switched back afterwards.  ``give_back`` serves the probe of
    ``is_logging``.

    Raises:
        MissingPrivate: this TensorFlow lacks a name that is needed; nothing has been changed.
    """
    context = private.eager_context()
    before_flag = private.log_flag(context)
    before = _ours[-1] if _ours else is_logging(give_back)
    _switch(context, enabled, enabled)
    _ours.append(enabled)
    try:
        yield
    finally:
        _ours.pop()
        _switch(context, before, before_flag)


def is_logging(give_back: GiveBack = give_back_all) -> bool:
    """Whether eager ops are logged *now*.

    There is no getter in C, and Python's own answers what was last asked for, not what is: after a
    late ``set_log_device_placement`` the two differ.  Where that could be so, an op is run and its
    output looked at; ``give_back`` says what of that output goes on to where it was bound.
    """
    context = private.eager_context()
    flag = private.log_flag(context)
    if flag is None:
        return False
    import tensorflow as tf

    if not private.context_is_initialized(context) or not tf.executing_eagerly():
        return flag
    with OutputCapture(give_back) as capture, tf.device("/CPU:0"):
        # An attribute value never used before: no cached kernel, so the placer prints the node to
        # stdout, which no log level silences.
        separator = f"pytest-tfdevice probe {next(_probes)}"
        tf.raw_ops.StringJoin(inputs=[tf.constant("x")], separator=separator)
    return b"StringJoin" in capture.stdout


def _switch(context: Any, in_c: bool, flag: bool | None) -> None:
    if private.context_is_initialized(context):
        private.set_c_logging(context, in_c)
    private.set_log_flag(context, flag)
    private.forget_function_options(context)
