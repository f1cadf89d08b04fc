"""``--tfdevice-simulate``: has the simulated GPU loaded as soon as TensorFlow is imported.

TensorFlow isn't imported by this.  What can be known without it is checked at the start, so that a
run that can't have its GPU ends before any test.
"""

from __future__ import annotations

import contextlib
import importlib.util

import pytest

from pytest_tfdevice.config import Settings


class Simulation:
    """What the run asks of the simulated GPU."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def prepare(self) -> None:
        """Arranges for the load.  Without the option, or without TensorFlow, it does nothing.

        Raises:
            pytest.UsageError: it can't be had; the message says why and what to do.
        """
        wanted = Settings.of(self._config).simulate
        if wanted is None or importlib.util.find_spec("tensorflow") is None:
            return
        from pytest_tfdevice import simulator
        from pytest_tfdevice._import_hooks import watch_import
        from pytest_tfdevice.simulator import cache, toolchain

        watch_import("tensorflow")
        try:
            self._check_version()
            toolchain.find_compiler()
            cache.prepare(cache.cache_folder())
            simulator.load_on_import(wanted.count, wanted.memory, self._say)
        except simulator.SimulatorError as error:
            raise pytest.UsageError(f"--tfdevice-simulate {wanted}: {error}") from None

    def _check_version(self) -> None:
        from pytest_tfdevice import kernels
        from pytest_tfdevice.simulator import SimulatorError
        from pytest_tfdevice.versions import installed_tensorflow

        version = installed_tensorflow()
        if version is None:
            return
        try:
            kernels.table_text(version)
        except kernels.NoTableError as error:
            raise SimulatorError(str(error)) from None

    def _say(self, line: str) -> None:
        """Shows progress at once, past the capture of output: compiling takes a while."""
        manager = self._config.pluginmanager.getplugin("capturemanager")
        free = manager.global_and_fixture_disabled() if manager else contextlib.nullcontext()
        with free:
            print(f"tfdevice: {line}", flush=True)
