"""The frozen detector stays on the GPU, in a logging session and in the service's own."""

import detector
import pytest


@pytest.mark.on_gpu("Conv2D", "NonMaxSuppression*", "CropAndResize", "name:second_stage/masked_sum")
def test_through_a_logging_session(placement_session, frozen_detector, images):
    graph = detector.load(frozen_detector)
    with placement_session(graph, memory_fraction=0.9) as session:
        boxes = session.run("boxes:0", {"images:0": images})
        scores = session.run("scores:0", {"images:0": images})
        assert len(boxes) == len(scores)
        # What TensorFlow's own log said, op by op:
        assert session.devices_by_op["second_stage/masked_sum"].short == "GPU:0"
        assert session.devices_by_op["backbone/conv0/conv"].short == "GPU:0"
        # The fraction was in force: nothing had taken the GPU before.
        assert session.notes == ()


@pytest.mark.on_gpu("Conv2D", "NonMaxSuppression*", "CropAndResize", "name:second_stage/masked_sum")
@pytest.mark.gpu_memory(max_fraction=0.9)
@pytest.mark.gpu_transfers(max_count=4)  # images; boxes and scores; the crops' image numbers
def test_through_the_service(frozen_detector, images):
    service = detector.Detector(detector.load(frozen_detector))
    boxes, scores = service(images)
    service.close()
    assert boxes.shape[1:] == (4,)
    assert scores.shape[1:] == (3,)
