"""Planted: these tests must fail.  Without the marker they pass, and the CPU is busy."""

import detector
import pytest


@pytest.mark.on_gpu
def test_integer_masks(frozen_with_integer_masks, images):
    """A refactor made the masks int32, for whose MatMul there is no GPU kernel."""
    service = detector.Detector(detector.load(frozen_with_integer_masks))
    service(images)
    service.close()


@pytest.mark.on_gpu
def test_integer_counter(placement_session, frozen_detector, images):
    """The counter went to where the model is, but an int32 variable can't be on the GPU."""
    graph = detector.load(frozen_detector)
    count = detector.count_frames(graph, device="/gpu:0")
    with placement_session(graph, memory_fraction=0.9) as session:
        session.run(graph.get_operation_by_name("frames/Assign"))
        session.run([count, "scores:0"], {"images:0": images})
