"""Planted: this test must fail.  Without the marker it passes, and training is slower."""

import model
import pytest
from offloaded import OffloadedHead


@pytest.mark.on_gpu
def test_offloaded_head():
    network = model.build(head=OffloadedHead, jit_compile=False)
    history = network.fit(*model.samples(), epochs=2, batch_size=16, verbose=0)
    assert len(history.history["loss"]) == 2
