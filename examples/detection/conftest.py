"""Freezes the graphs.  Its being here also lets the tests import ``detector``."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FREEZE = Path(__file__).with_name("freeze.py")


def frozen(folder, *options):
    """In a process of its own: a Session here would fix the GPU's memory fraction."""
    path = folder / "detector.pb"
    subprocess.run([sys.executable, str(FREEZE), str(path), *options], check=True)
    return path


@pytest.fixture(scope="session")
def frozen_detector(tmp_path_factory):
    """The detector as it should be."""
    return frozen(tmp_path_factory.mktemp("detector"))


@pytest.fixture(scope="session")
def frozen_with_integer_masks(tmp_path_factory):
    """The detector after a refactor that made its masks int32."""
    return frozen(tmp_path_factory.mktemp("integer_masks"), "--integer-masks")


@pytest.fixture
def images():
    return np.random.default_rng(0).random((1, 64, 64, 3), dtype=np.float32)
