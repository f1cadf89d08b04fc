"""As ``warm``, on the CPU."""

import pytest

pytestmark = [pytest.mark.placement_baseline, pytest.mark.on_device("CPU:0")]


@pytest.fixture
def device():
    return "/CPU:0"


@pytest.fixture
def warm_forward(forward):
    forward()
    return forward


def test_forward(warm_forward):
    warm_forward()
