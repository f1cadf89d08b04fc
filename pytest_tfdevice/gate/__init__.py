"""The merge gate: what a run owes to the files that stand in the repository, and what it was
promised.

``checks`` compares a test's record with its baseline, in the process that runs the test; ``keeper``
gathers what came of it, in the process that runs the session, and writes; ``collected`` knows which
tests there are; ``promise`` is for the GPUs that must be there, ``skips`` for the tests that may
skip.  ``hooks`` ties them to pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_tfdevice.gate.checks import Compared

COMPARED: pytest.StashKey[list[Compared]] = pytest.StashKey()
"""Where a test's comparisons are kept until it is reported."""
