"""The one error of the simulated GPU."""

from __future__ import annotations


class SimulatorError(RuntimeError):
    """The simulated GPU can't be built or loaded; the message says why and what to do."""
