"""When and how the simulated GPU is loaded: on import, too late, beside a real GPU."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)


def test_loaded_by_the_import_of_a_part_of_tensorflow() -> None:
    seen = run_script("import_orders", "loaded-on-import")
    assert seen["not_imported_by_asking"] == [False, True]
    assert seen["devices"] == [2, ["/device:GPU:0", "/device:GPU:1"]]


def test_loaded_where_tensorflow_was_imported_and_had_listed_its_devices() -> None:
    seen = run_script("import_orders", "imported-before")
    assert seen["devices"] == [2, ["/device:GPU:0", "/device:GPU:1"]]


def test_too_late_names_the_line_that_imported_tensorflow() -> None:
    message = run_script("import_orders", "too-late-watched")["too_late"]
    assert "TensorFlow has initialised its devices already" in message
    assert "first imported at" in message
    assert "import_orders.py:" in message


def test_too_late_names_the_modules_that_use_tensorflow() -> None:
    message = run_script("import_orders", "too-late")["too_late"]
    assert "TensorFlow has initialised its devices already" in message
    assert "It is used by __main__" in message
    assert "import_orders.py" in message


@pytest.fixture(scope="module")
def beside_real() -> Results:
    return run_script("real_gpu")


def test_a_real_gpu_is_refused(beside_real: Results) -> None:
    message, nothing_loaded, environment = beside_real["refused"]
    assert "TensorFlow sees 2 real GPU(s)" in message
    assert "hide_real_gpu=True" in message
    assert nothing_loaded
    assert environment is None, "refusing must leave the environment alone"


def test_a_real_gpu_is_hidden(beside_real: Results) -> None:
    assert beside_real["hidden"] == [1, ["/device:GPU:0"], "GPU:0", "-1"]
