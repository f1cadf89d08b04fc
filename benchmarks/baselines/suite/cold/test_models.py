"""Each function is traced while it is watched."""

import pytest

pytestmark = pytest.mark.placement_baseline


def test_forward(forward):
    forward()


def test_train(train):
    train()
