"""Each function ran before it is watched."""

import pytest

pytestmark = pytest.mark.placement_baseline


@pytest.fixture
def warm_forward(forward):
    forward()
    return forward


@pytest.fixture
def warm_train(train):
    train()
    return train


def test_forward(warm_forward):
    warm_forward()


def test_train(warm_train):
    warm_train()
