"""Calls back as soon as a module has been imported, without importing it.

Importing TensorFlow takes seconds, so nothing here may do it; but what wants to change it must do
so before the code that imported it can touch a device.  :func:`after_import` calls back at the end
of the import itself, before the ``import`` statement returns.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_tfdevice.model import SourceLine

Callback = Callable[[ModuleType], object]


class Hook:
    """A callback that waits for a module; ``remove()`` calls it off."""

    def __init__(self, name: str, callback: Callback) -> None:
        self.name = name
        self.callback = callback

    def remove(self) -> None:
        """Calls the callback off.  Does nothing where it has run already."""
        hooks = _waiting.get(self.name, [])
        if self in hooks:
            hooks.remove(self)


_waiting: dict[str, list[Hook]] = {}
_running: set[str] = set()
"""Modules whose callbacks are running: one that is added by a callback joins them."""
_first_imports: dict[str, SourceLine] = {}


def after_import(name: str, callback: Callback) -> Hook:
    """Calls ``callback(module)`` once, when the module ``name`` has been imported; now, where it
    has been.

    Callbacks run in the order in which they were registered.  An error in one leaves the
    ``import`` statement, which so fails; the next attempt to import calls all of them that have not
    run without an error.  An import that fails by itself calls none.

    Raises:
        RuntimeError: the module is being imported at this moment, so that it can be neither waited
            for nor used.
    """
    hook = Hook(name, callback)
    module = sys.modules.get(name)
    if module is None or name in _running:
        _install()
        _waiting.setdefault(name, []).append(hook)
    elif getattr(getattr(module, "__spec__", None), "_initializing", False):
        raise RuntimeError(f"{name} is being imported at this moment")
    else:
        callback(module)
    return hook


def watch_import(name: str) -> None:
    """Notes who imports ``name`` first, for :func:`first_import`."""
    if name not in sys.modules:
        _install()
        _waiting.setdefault(name, [])


def first_import(name: str) -> SourceLine | None:
    """The line that imported the module first; None where nobody was watching then."""
    return _first_imports.get(name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules that are waited for, as the finders after it do, and wraps their loader."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _waiting:
            return None
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(importlib.abc.Loader):
    """Loads a module by its own loader, then runs the callbacks."""

    def __init__(self, original: importlib.abc.Loader) -> None:
        self.original = original

    def __getattr__(self, name: str) -> Any:
        # Whoever only looks for the module (importlib.util.find_spec) may ask its loader for more.
        return getattr(self.original, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.original.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The module must not see the wrapper: it may look for files through its loader.
        if module.__spec__ is not None:
            module.__spec__.loader = self.original
        module.__loader__ = self.original
        importer = _importing_line(sys._getframe(1))
        if importer is not None:
            _first_imports.setdefault(module.__name__, importer)
        self.original.exec_module(module)
        _run_callbacks(module)


def _run_callbacks(module: ModuleType) -> None:
    hooks = _waiting.get(module.__name__, [])
    _running.add(module.__name__)
    try:
        while hooks:
            # Removed only when it has run: after an error the import fails, and the next one tries
            # again instead of going on without it.
            hook = hooks[0]
            hook.callback(module)
            hook.remove()
    finally:
        _running.discard(module.__name__)


_finder = _Finder()


def _install() -> None:
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def _importing_line(frame: FrameType | None) -> SourceLine | None:
    """The first frame that isn't the import system's or this module's."""
    from pytest_tfdevice.model import SourceLine

    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith("<frozen importlib") and file != __file__:
            return SourceLine(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return None
