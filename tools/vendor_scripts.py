"""Fetches the scripts of others that the HTML report carries, with their licences.

It needs ``npm``, which asks the registry that it is configured for::

    python tools/vendor_scripts.py

Nothing is built: each file is the one that its authors published.  ``VERSIONS.json`` says which
version it is, and the SHA-256 of each file, which ``tests/unit/test_html_page.py`` checks.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[1] / "pytest_tfdevice" / "reports" / "html" / "vendor"


@dataclass(frozen=True)
class Package:
    """A package of npm at one version, and which of its files are kept under which names."""

    name: str
    version: str
    licence: str
    files: tuple[tuple[str, str], ...]


PACKAGES = (
    Package(
        "d3-hierarchy",
        "3.1.3",
        "ISC",
        (
            ("dist/d3-hierarchy.min.js", "d3-hierarchy.min.js"),
            ("LICENSE", "d3-hierarchy.LICENSE"),
        ),
    ),
)


def fetch(package: Package) -> dict[str, bytes]:
    """The files of a package, by the name that they are kept under.

    Raises:
        CalledProcessError: npm doesn't have it.
        ValueError: it has another licence than expected.
        KeyError: a file is no longer in it.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted = f"{package.name}@{package.version}"
        packed = subprocess.run(
            ["npm", "pack", "--silent", wanted],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        with tarfile.open(Path(folder) / packed.stdout.split()[-1]) as archive:
            read = {
                member.name.partition("/")[2]: archive.extractfile(member).read()  # type: ignore[union-attr]
                for member in archive
                if member.isfile()
            }
    licence = json.loads(read["package.json"])["license"]
    if licence != package.licence:
        raise ValueError(
            f"{wanted} is under {licence}, not {package.licence}: look before you take it"
        )
    return {kept: read[path] for path, kept in package.files}


def main() -> None:
    VENDOR.mkdir(exist_ok=True)
    versions = {}
    for package in PACKAGES:
        files = fetch(package)
        for name, content in files.items():
            (VENDOR / name).write_bytes(content)
        versions[package.name] = {
            "version": package.version,
            "licence": package.licence,
            "sha256": {
                name: hashlib.sha256(content).hexdigest() for name, content in files.items()
            },
        }
        print(f"{package.name} {package.version}: {', '.join(files)}")
    (VENDOR / "VERSIONS.json").write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
