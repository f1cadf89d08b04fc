"""The training step stays on the GPU: with Keras' default settings, and without XLA."""

import model
import pytest


@pytest.mark.on_gpu("Conv2D", "MatMul")
def test_default_settings():
    history = model.build().fit(*model.samples(), epochs=2, batch_size=16, verbose=0)
    assert len(history.history["loss"]) == 2


@pytest.mark.on_gpu("Conv2D", "MatMul")
def test_without_xla():
    network = model.build(jit_compile=False)
    history = network.fit(*model.samples(), epochs=2, batch_size=16, verbose=0)
    assert len(history.history["loss"]) == 2
