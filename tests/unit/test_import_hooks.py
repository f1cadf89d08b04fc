"""Callbacks at the end of an import, tried on modules made here."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_tfdevice import _import_hooks
from pytest_tfdevice._import_hooks import after_import, first_import, watch_import


@pytest.fixture(autouse=True)
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package ``lib`` with parts, a module ``broken``; everything undone afterwards."""
    package = tmp_path / "lib"
    package.mkdir()
    (package / "__init__.py").write_text("from lib import inner\nVALUE = inner.VALUE + 1\n")
    (package / "inner.py").write_text("import lib\nVALUE = 1\n")
    (package / "part.py").write_text("import lib\nSEEN = lib.VALUE\n")
    (tmp_path / "broken.py").write_text("raise OSError('no library')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(_import_hooks, "_waiting", {})
    monkeypatch.setattr(_import_hooks, "_first_imports", {})
    yield
    for name in ("lib", "lib.inner", "lib.part", "broken"):
        sys.modules.pop(name, None)


def test_called_when_the_import_is_complete() -> None:
    seen: list[tuple[str, int]] = []
    after_import("lib", lambda module: seen.append((module.__name__, module.VALUE)))
    assert "lib" not in sys.modules, "waiting must import nothing"
    importlib.import_module("lib")
    assert seen == [("lib", 2)]


def test_called_before_a_part_is_imported() -> None:
    order: list[str] = []
    after_import("lib", lambda _: order.append("lib" if "lib.part" not in sys.modules else "late"))
    part = importlib.import_module("lib.part")
    assert order == ["lib"]
    assert part.SEEN == 2


def test_called_once_and_in_order() -> None:
    order: list[int] = []
    for number in range(3):
        after_import("lib", lambda _, number=number: order.append(number))  # type: ignore[misc]
    importlib.import_module("lib")
    importlib.import_module("lib")
    importlib.reload(sys.modules["lib"])
    assert order == [0, 1, 2]


def test_called_now_where_it_is_imported_already() -> None:
    module = importlib.import_module("lib")
    seen: list[ModuleType] = []
    after_import("lib", seen.append)
    assert seen == [module]


def test_a_removed_hook_is_not_called() -> None:
    order: list[str] = []
    hook = after_import("lib", lambda _: order.append("removed"))
    after_import("lib", lambda _: order.append("kept"))
    hook.remove()
    hook.remove()
    importlib.import_module("lib")
    assert order == ["kept"]


def test_callbacks_may_add_and_remove_callbacks() -> None:
    order: list[str] = []

    def first(_: ModuleType) -> None:
        order.append("first")
        hook.remove()
        removed.remove()
        after_import("lib", lambda module: order.append(f"added {module.VALUE}"))

    hook = after_import("lib", first)
    removed = after_import("lib", lambda _: order.append("removed"))
    after_import("lib", lambda _: order.append("second"))
    importlib.import_module("lib")
    assert order == ["first", "second", "added 2"]


def test_looking_for_a_module_is_not_importing_it(tmp_path: Path) -> None:
    seen: list[ModuleType] = []
    after_import("lib", seen.append)
    spec = importlib.util.find_spec("lib")
    assert spec is not None
    assert spec.loader is not None
    assert spec.loader.is_package("lib")  # type: ignore[attr-defined]
    assert first_import("lib") is None
    assert seen == []
    module = importlib.import_module("lib")
    assert seen == [module]


def test_a_failed_import_calls_nothing_and_keeps_its_error(tmp_path: Path) -> None:
    seen: list[ModuleType] = []
    after_import("broken", seen.append)
    for _ in range(2):
        with pytest.raises(OSError, match="no library"):
            importlib.import_module("broken")
    assert seen == []
    assert "broken" not in sys.modules
    (tmp_path / "broken.py").write_text("VALUE = 'mended'\n")
    importlib.invalidate_caches()
    module = importlib.import_module("broken")
    assert seen == [module]


def test_a_module_that_is_nowhere_stays_an_import_error() -> None:
    after_import("no_such_module_at_all", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        importlib.import_module("no_such_module_at_all")


def test_an_error_in_a_callback_fails_the_import_each_time() -> None:
    order: list[str] = []

    def fail(_: ModuleType) -> None:
        order.append("failing")
        raise LookupError("no GPU")

    after_import("lib", lambda _: order.append("first"))
    hook = after_import("lib", fail)
    after_import("lib", lambda _: order.append("last"))
    for _ in range(2):
        with pytest.raises(LookupError, match="no GPU"):
            importlib.import_module("lib")
    assert order == ["first", "failing", "failing"]
    hook.remove()
    importlib.import_module("lib")
    assert order == ["first", "failing", "failing", "last"]


def test_the_module_sees_its_own_loader() -> None:
    after_import("lib", lambda _: None)
    module = importlib.import_module("lib")
    assert module.__spec__ is not None
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"
    assert module.__loader__ is module.__spec__.loader


def test_a_module_that_is_being_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from pytest_tfdevice._import_hooks import after_import\n"
        "after_import('broken', lambda module: None)\n"
    )
    with pytest.raises(RuntimeError, match="broken is being imported at this moment"):
        importlib.import_module("broken")


def test_the_line_that_imported_it_first_is_known(tmp_path: Path) -> None:
    watch_import("lib")
    assert first_import("lib") is None
    (tmp_path / "broken.py").write_text("\n\nimport lib.part\n")
    importlib.import_module("broken")
    line = first_import("lib")
    assert line is not None
    assert (Path(line.file).name, line.line) == ("broken.py", 3)


def test_nobody_watching_nothing_known() -> None:
    importlib.import_module("lib")
    watch_import("lib")
    assert first_import("lib") is None
