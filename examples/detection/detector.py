"""Runs a frozen detector, as services written for TensorFlow 1 do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def load(path: Path, device: str = "/gpu:0") -> tf.Graph:
    """The graph in a frozen ``.pb``, on ``device``."""
    frozen = v1.GraphDef.FromString(path.read_bytes())
    with tf.Graph().as_default() as graph, tf.device(device):
        tf.import_graph_def(frozen, name="")
    return graph


def count_frames(graph: tf.Graph, device: str | None = None) -> tf.Tensor:
    """Adds a counter of the frames that were seen, an int32 variable; gives what counts one up."""
    with graph.as_default(), tf.device(device):
        frames = v1.Variable(0, dtype=tf.int32, use_resource=False, name="frames")
        return v1.assign_add(frames, 1, name="next_frame")


class Detector:
    """A Session on a frozen graph that takes up to 90 % of the GPU's memory."""

    def __init__(self, graph: tf.Graph) -> None:
        config = v1.ConfigProto(log_device_placement=True, allow_soft_placement=True)
        config.gpu_options.per_process_gpu_memory_fraction = 0.9
        self._count = count_frames(graph)
        self._session = v1.Session(graph=graph, config=config)
        self._session.run(graph.get_operation_by_name("frames/Assign"))

    def __call__(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Boxes and scores."""
        boxes, scores, _ = self._session.run(
            ["boxes:0", "scores:0", self._count], {"images:0": images}
        )
        return boxes, scores

    def close(self) -> None:
        self._session.close()
