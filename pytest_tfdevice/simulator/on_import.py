"""Loads the simulated GPU as soon as TensorFlow is imported, by whomever."""

from __future__ import annotations

from pytest_tfdevice._import_hooks import Hook, after_import
from pytest_tfdevice.simulator.build import Progress
from pytest_tfdevice.simulator.errors import SimulatorError
from pytest_tfdevice.simulator.loading import check_arguments, check_platform, load


def load_on_import(
    count: int = 1,
    memory: str | int = "16 GiB",
    progress: Progress | None = None,
    *,
    hide_real_gpu: bool = False,
) -> Hook:
    """Has :func:`load` called at the end of ``import tensorflow``; now, where that has happened.

    TensorFlow isn't imported by this.  An error in loading leaves the ``import`` statement, so that
    nothing goes on without the GPU that was asked for.  What can be checked without TensorFlow is
    checked now.

    Raises:
        SimulatorError: wrong arguments, an unsupported platform, or where TensorFlow is imported
            already, anything that :func:`load` raises.
    """
    check_arguments(count, memory)
    check_platform()
    failed: list[SimulatorError] = []

    def load_now(_: object) -> None:
        if failed:  # what failed once fails again, and compiling takes a minute
            raise failed[0]
        try:
            load(count, memory, progress, hide_real_gpu=hide_real_gpu)
        except SimulatorError as error:
            failed.append(error)
            raise

    return after_import("tensorflow", load_now)
