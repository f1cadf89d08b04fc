"""Channels-first operations, which TensorFlow implements only for GPUs."""

from __future__ import annotations

import importlib.util

import pytest
from simulator_process import Results, run_script

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="needs TensorFlow"
)

TOLERANCE = 1e-3
"""Of gradients that are sums of some hundred products, in float32."""


@pytest.fixture(scope="module")
def seen() -> Results:
    return run_script("channels_first")


@pytest.mark.parametrize(
    "name",
    ["dilated_convolution", "depthwise_convolution", "convolution_3d", "space_to_depth", "fused"],
)
def test_as_channels_last_on_the_cpu(seen: Results, name: str) -> None:
    device, difference = seen[name]
    assert device == "GPU:0"
    assert difference < TOLERANCE


@pytest.mark.parametrize(
    ("name", "variants"),
    [("convolution", 6), ("pooling", 4), ("batch_norm", 2), ("fused_batch_norm", 2)],
)
def test_variants_as_channels_last_on_the_cpu(seen: Results, name: str, variants: int) -> None:
    found = seen[name]
    assert len(found) == variants
    assert {device for device, _ in found.values()} == {"GPU:0"}
    assert {variant: d for variant, (_, d) in found.items() if d >= TOLERANCE} == {}
