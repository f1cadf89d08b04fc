"""Entries of ``allow`` that excused nothing in a whole run, and so may go.

An entry is stale only where every test that has it ran to its end and none of them needed it: a
test that was skipped, deselected or cut short by an error of its own may be the one that does.
Knows neither TensorFlow nor pytest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pytest_tfdevice.results import TestResult


@dataclass(frozen=True)
class StaleAllow:
    """A pattern that excused nothing; ``project``: it is one of ``--tfdevice-allow`` (or its ini
    key), else of the markers of ``tests`` (node ids)."""

    pattern: str
    tests: tuple[str, ...]
    project: bool = False

    def __str__(self) -> str:
        if self.project:
            return f"{self.pattern} (tfdevice_allow)"
        first, more = self.tests[0], len(self.tests) - 1
        return f"{self.pattern} ({first}{f' and {more} more' if more else ''})"


def stale_entries(
    users: Mapping[str, Collection[str]],
    results: Iterable[TestResult],
    project: Collection[str] = (),
) -> tuple[StaleAllow, ...]:
    """The stale ones of the patterns in ``users``, which maps each to the tests that have it.

    ``project``: patterns that every marked test has.
    """
    unused: dict[str, set[str]] = {}
    used: set[str] = set()
    for result in results:
        used.update(result.used_allow)
        for pattern in result.unused_allow:
            unused.setdefault(pattern, set()).add(result.nodeid)
    return tuple(
        StaleAllow(pattern, tuple(sorted(tests)), pattern in project)
        for pattern, tests in sorted(users.items())
        if tests and pattern not in used and set(tests) <= unused.get(pattern, set())
    )
