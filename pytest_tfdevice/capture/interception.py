"""What op callbacks don't tell: other threads, ``py_function`` bodies, and calls that raise.

Op callbacks belong to a thread, and are called for what succeeded.  While a window is open, three
functions of TensorFlow's are wrapped:

* the executor that calls functions: a thread that passes through it gets the callbacks too, and a
  function that raises is told;
* the registry that calls the Python side of a ``py_function``: what runs inside is marked;
* the one place where a failed eager op becomes an exception: it names the op and its device.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from pytest_tfdevice.capture import graphs, private

FAILED_OP = re.compile(
    r"\{\{function_node __wrapped__(?P<type>\w+?)_device_(?P<device>[^}\s]+)\}\}"
)
"""In the message of an eager op's error: which op it was, and where it ran (2.12 to 2.21)."""


class Interception:
    """Wraps TensorFlow's functions from :meth:`install` to :meth:`remove`.

    ``callback`` is the op callback that threads get; ``on_call_raised`` gets a function's name and
    its inputs, ``on_op_raised`` an op's type and device, each on the thread where it happened.
    ``is_own`` says whether the calling thread runs something of this package's.
    """

    def __init__(
        self,
        callback: Callable[..., Any],
        on_call_raised: Callable[[str, Any], None],
        on_op_raised: Callable[[str, str], None],
        is_own: Callable[[], bool],
    ) -> None:
        self._callback = callback
        self._on_call_raised = on_call_raised
        self._on_op_raised = on_op_raised
        self._is_own = is_own
        self._local = threading.local()
        self._epoch = 0
        self._lists: list[list[Any]] = []
        self._originals: list[tuple[Any, str, Any]] = []

    def install(self) -> None:
        """Wraps the functions."""
        self._epoch += 1
        private.use_callbacks(self._execute)
        self._replace(private.py_function_registry(), "__call__", self._py_function)
        self._replace(private.op_errors(), "raise_from_not_ok_status", self._raise)

    def remove(self) -> None:
        """Gives the functions back, and takes the callbacks out of every thread."""
        for owner, name, original in self._originals:
            setattr(owner, name, original)
        self._originals.clear()
        for callbacks in self._lists:
            if self._callback in callbacks:
                callbacks.remove(self._callback)
        self._lists.clear()
        private.use_callbacks(bool(private.eager_context().op_callbacks))

    @property
    def in_py_function(self) -> bool:
        """True on a thread that runs the Python side of a ``py_function``."""
        return bool(getattr(self._local, "py_functions", 0))

    def watch_thread(self) -> None:
        """Has the calling thread's ops told, until :meth:`remove`."""
        callbacks = private.eager_context().op_callbacks
        if self._callback not in callbacks:
            callbacks.append(self._callback)
            self._lists.append(callbacks)

    def _replace(self, owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
        original = owner.__dict__[name]
        self._originals.append((owner, name, original))

        def replacement(*args: Any, **kwargs: Any) -> Any:
            return wrapper(original, *args, **kwargs)

        setattr(owner, name, replacement)

    def _execute(
        self,
        op_name: str,
        num_outputs: int,
        inputs: Any,
        attrs: Any,
        ctx: Any,
        name: str | None = None,
    ) -> Any:
        """``execute_with_callbacks``, for every thread."""
        run = private.execute_with_callbacks()
        if self._is_own():
            return run(op_name, num_outputs, inputs, attrs, ctx, name)
        if getattr(self._local, "epoch", 0) != self._epoch:
            self._local.epoch = self._epoch  # once: where somebody clears the callbacks, it is told
            self.watch_thread()
        try:
            return run(op_name, num_outputs, inputs, attrs, ctx, name)
        except Exception:
            self._on_call_raised(op_name, inputs)
            raise

    def _py_function(self, original: Any, registry: Any, token: Any, device: Any, args: Any) -> Any:
        if self._is_own():
            return original(registry, token, device, args)
        self.watch_thread()
        self._local.py_functions = getattr(self._local, "py_functions", 0) + 1
        try:
            return original(registry, token, device, args)
        finally:
            self._local.py_functions -= 1

    def _raise(self, original: Any, error: Any, name: Any) -> Any:
        found = FAILED_OP.search(str(getattr(error, "message", "")))
        if found is not None and not self._is_own():
            self._on_op_raised(graphs.plain_type(found["type"]), found["device"])
        return original(error, name)
