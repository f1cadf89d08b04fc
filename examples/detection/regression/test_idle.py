"""Planted: the memory of the GPU is taken, and the work is done on the CPU."""

import detector
import pytest


@pytest.mark.on_gpu
@pytest.mark.gpu_memory(max_fraction=0.9)
def test_left_on_the_cpu(frozen_detector, images):
    """The graph was loaded for the CPU; the Session takes 90 % of the GPU all the same."""
    service = detector.Detector(detector.load(frozen_detector, device="/cpu:0"))
    service(images)
    service.close()
