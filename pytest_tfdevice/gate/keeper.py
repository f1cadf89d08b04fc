"""Gathers what tests ran, where the session is run, and writes the baselines when it ends.

With pytest-xdist that is the controller: workers ship their entries with their reports.  A run that
is interrupted writes what had passed until then.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_tfdevice.config import Settings
from pytest_tfdevice.gate.checks import Seen, command
from pytest_tfdevice.gate.collected import Collected, Module
from pytest_tfdevice.gate.places import SUFFIX, place_of
from pytest_tfdevice.reports.words import count

Key = tuple[str, str]


@dataclass(frozen=True)
class Stale:
    """An entry, or a file where ``test`` is empty, of which no test is left."""

    file: str
    test: str
    environment: str
    why: str


@dataclass
class Keeper:
    """The baselines of a run.

    ``lines`` are for the end of the run, ``failed`` where it must not end well.
    """

    settings: Settings
    root: Path
    collected: Collected = field(default_factory=Collected)
    lines: list[str] = field(default_factory=list)
    failed: bool = False
    _seen: dict[tuple[str, str, str], Seen] = field(default_factory=dict)
    _passed: set[tuple[str, str]] = field(default_factory=set)

    def add(self, test: str, file: str, seen: Iterable[Mapping[str, Any]]) -> None:
        """What came of a test that passed."""
        self._passed.add((file, test))
        for data in seen:
            one = Seen.from_json(data)
            self._seen[one.file, one.test, one.environment] = one

    def finish(self) -> None:
        """Writes what is to be written, and says so; looks for entries that no test is left of."""
        if self.settings.baseline == "off":
            return
        stale = list(self._stale())
        self._write(stale if self.settings.baseline == "update" else [])
        if self.settings.baseline != "update":
            self._report(stale)
        for _, one in sorted(self._seen.items()):
            self.lines += one.remarks

    # --------------------------------------------------------------------- writing
    def _write(self, stale: list[Stale]) -> None:
        if not stale and not self._seen:
            return
        from pytest_tfdevice.baseline import files
        from pytest_tfdevice.baseline.entries import Entry
        from pytest_tfdevice.serial.documents import FileError

        entries: dict[str, dict[Key, Entry | None]] = defaultdict(dict)
        actions: dict[str, list[str]] = defaultdict(list)
        for (file, test, environment), one in sorted(self._seen.items()):
            if one.action != "checked":
                entries[file][test, environment] = one.entry
                actions[file].append(one.action)
        for old in stale:
            if not old.test:
                entries[old.file] |= dict.fromkeys(_keys(old.file))
            else:
                entries[old.file][old.test, old.environment] = None
            actions[old.file].append("removed")
        for file, found in sorted(entries.items()):
            try:
                changed = files.change(Path(file), _with_reasons(file, found))
            except FileError as error:
                self._fail(f"error: {error}")
            else:
                self._say(file, actions[file], changed)

    def _say(self, file: str, actions: list[str], changed: bool) -> None:
        done = ", ".join(
            f"{count(actions.count(action), 'entry').replace('entrys', 'entries')} {action}"
            for action in ("created", "updated", "removed")
            if action in actions
        )
        what = "commit it" if changed else "nothing changed"
        self.lines.append(f"{_shown(file)}: {done}; {what}")

    # ----------------------------------------------------------------------- stale
    def _stale(self) -> Iterable[Stale]:
        environments = self._environments()
        known: dict[str, str] = {}
        for name, module in sorted(self.collected.modules.items()):
            path = place_of(Path(name), self.settings.baseline_dir, self.root)
            known[str(path)] = name
            if module.whole and path.exists():
                from pytest_tfdevice.baseline import files
                from pytest_tfdevice.serial.documents import FileError

                try:
                    stored = files.read(path)
                except FileError as error:
                    self._fail(f"error: {error}")
                    continue
                yield from self._stale_in(str(path), stored.tests, module, environments)
        yield from self._orphans(known)

    def _stale_in(
        self, file: str, tests: Mapping[str, Any], module: Module, environments: set[str]
    ) -> Iterable[Stale]:
        for test, found in sorted(tests.items()):
            owner = test if test in module.tests else test.rpartition("#")[0] or test
            for environment in sorted(environments & set(found)):
                if owner not in module.tests:
                    yield Stale(file, test, environment, "there is no such test")
                elif owner not in module.baselines:
                    yield Stale(file, test, environment, "the test asks for no baseline")
                elif (file, owner) in self._passed and (file, test, environment) not in self._seen:
                    yield Stale(file, test, environment, "the test passed without this check")

    def _orphans(self, known: Mapping[str, str]) -> Iterable[Stale]:
        """Files beside those of this run whose module is gone."""
        folders = {str(Path(file).parent): Path(name).parent for file, name in known.items()}
        for folder, modules in sorted(folders.items()):
            if not any(Path(f) in (modules, *modules.parents) for f in self.collected.folders):
                continue
            for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
                if str(path) not in known and not (modules / f"{path.stem}.py").exists():
                    yield Stale(str(path), "", "", f"there is no {path.stem}.py")

    def _environments(self) -> set[str]:
        """The environments of this run: as seen, else as far as it is known without TensorFlow."""
        found = {environment for _, _, environment in self._seen}
        if not found and self.settings.simulate is not None and self._has_files():
            from pytest_tfdevice.baseline.entries import SIMULATED, Environment, minor
            from pytest_tfdevice.versions import installed_tensorflow

            version = installed_tensorflow()
            if version is not None:
                found = {Environment(SIMULATED, minor(version)).key}
        return found

    def _has_files(self) -> bool:
        return any(
            place_of(Path(name), self.settings.baseline_dir, self.root).exists()
            for name in self.collected.modules
        )

    def _report(self, stale: list[Stale]) -> None:
        for old in stale:
            what = f", {old.test}, {old.environment}" if old.test else ""
            self._fail(f"stale: {_shown(old.file)}{what}: {old.why}")
        if stale:
            modules = sorted({self._module_of(old.file) for old in stale})
            self.lines.append(
                f"  remove what is stale: {command('update', self.settings, *modules)}"
            )

    def _module_of(self, file: str) -> str:
        """What to name on the command line so that a file is looked at."""
        for name in self.collected.modules:
            path = place_of(Path(name), self.settings.baseline_dir, self.root)
            if str(path) == file:
                return _shown(name)
        return _shown(next(iter(self.collected.folders), "."))

    def _fail(self, line: str) -> None:
        self.failed = True
        if line not in self.lines:
            self.lines.append(line)


def _with_reasons(file: str, entries: dict[Key, Any]) -> dict[Key, Any]:
    """Entries with the reasons that stand in the file, if they were written by hand."""
    from pytest_tfdevice.baseline import files
    from pytest_tfdevice.baseline.entries import keep_reasons

    stored = files.read(Path(file))
    return {
        (test, environment): entry
        and keep_reasons(entry, stored.get(test, environment), *stored.others(test, environment))
        for (test, environment), entry in entries.items()
    }


def _keys(file: str) -> list[Key]:
    """Every key of a file, none of one that can't be read."""
    from pytest_tfdevice.baseline import files
    from pytest_tfdevice.serial.documents import FileError

    try:
        tests = files.read(Path(file)).tests
    except FileError:
        return []
    return [(test, environment) for test, found in tests.items() for environment in found]


def _shown(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
