"""The reasons for which an op can be off its device: their codes, and one with its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

ReasonCode = Literal[
    "requested-elsewhere",
    "no-kernel",
    "dtype",
    "colocated",
    "host-memory",
    "no-gpu",
    "moved",
    "xla",
    "unknown",
]
REASON_CODES: tuple[str, ...] = get_args(ReasonCode)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an op is not on the device that it should be on.

    ``evidence`` and ``mend`` are one line each: how that is known, and how to change it.
    ``cause``: for ``colocated`` the own reason of the op that it is tied to.
    """

    code: ReasonCode
    evidence: str
    mend: str
    cause: Reason | None = None

    @property
    def root(self) -> ReasonCode:
        """The code at the end of a chain of colocations."""
        return self.cause.root if self.cause is not None else self.code
