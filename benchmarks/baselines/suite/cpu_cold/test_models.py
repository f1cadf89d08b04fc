"""As ``cold``, on the CPU: there TensorFlow fuses, and oneDNN rewrites, more than on a GPU."""

import pytest

pytestmark = [pytest.mark.placement_baseline, pytest.mark.on_device("CPU:0")]


@pytest.fixture
def device():
    return "/CPU:0"


def test_forward(forward):
    forward()
