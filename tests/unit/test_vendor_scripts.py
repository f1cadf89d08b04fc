"""The script that fetches what the HTML report carries of others, without a network."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILES = {"package.json": b'{"license": "ISC"}', "LICENSE": b"as you like", "dist/it.js": b"1;\n"}


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "tools" / "vendor_scripts.py"
    spec = importlib.util.spec_from_file_location("vendor_scripts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tool: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A package that an npm of our own packs."""

    def npm(command: list[str], *, cwd: str, **_: Any) -> subprocess.CompletedProcess[str]:
        assert command == ["npm", "pack", "--silent", "it@1.2.3"]
        with tarfile.open(Path(cwd) / "it-1.2.3.tgz", "w:gz") as archive:
            for name, content in FILES.items():
                member = tarfile.TarInfo(f"package/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return subprocess.CompletedProcess(command, 0, "it-1.2.3.tgz\n", "")

    monkeypatch.setattr(tool.subprocess, "run", npm)
    kept = (("dist/it.js", "it.js"), ("LICENSE", "it.LICENSE"))
    return tool.Package("it", "1.2.3", "ISC", kept)


def test_files_are_kept_as_they_were_published(tool: ModuleType, package: Any) -> None:
    assert tool.fetch(package) == {"it.js": b"1;\n", "it.LICENSE": b"as you like"}


def test_another_licence_is_refused(tool: ModuleType, package: Any) -> None:
    other = tool.Package(package.name, package.version, "MIT", package.files)
    with pytest.raises(ValueError, match=r"it@1\.2\.3 is under ISC, not MIT"):
        tool.fetch(other)


def test_versions_and_hashes_are_written_down(
    tool: ModuleType, package: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "PACKAGES", (package,))
    monkeypatch.setattr(tool, "VENDOR", tmp_path)
    tool.main()
    written = json.loads((tmp_path / "VERSIONS.json").read_text())
    assert written["it"]["version"] == "1.2.3"
    assert written["it"]["sha256"]["it.js"] == hashlib.sha256(FILES["dist/it.js"]).hexdigest()
    assert (tmp_path / "it.js").read_bytes() == FILES["dist/it.js"]
