"""Graphs that a window saw run → event files, as TensorBoard reads them.

An event file is a TFRecord file of ``Event`` messages.  Neither a summary op nor a Session is
needed to write one, so that nothing runs on TensorFlow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_tfdevice.capture.graph_log import LEFT_OUT, WatchedGraph
from pytest_tfdevice.units import format_size

VERSION = "brain.Event:2"
"""What the first event of a file says (``EventsWriter`` of TensorFlow, 2.12 to 2.21)."""
TAG = "tfdevice"


def write(path: Path, graph: WatchedGraph, test: str) -> None:
    """Writes a graph, its traced runs, and a text on them to a new file; makes its folder.

    Raises:
        OSError: it can't be written.
    """
    import tensorflow as tf

    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for event in _events(graph, test):
                writer.write(event.SerializeToString())
    except tf.errors.OpError as error:
        raise OSError(error.message) from error


def _events(graph: WatchedGraph, test: str) -> Iterator[Any]:
    import tensorflow as tf

    event = tf.compat.v1.Event
    now = time.time()
    yield event(wall_time=now, file_version=VERSION)
    yield event(wall_time=now, graph_def=graph.graph)
    for number, run in enumerate(graph.runs, 1):
        traced = event(wall_time=now, step=number)
        traced.tagged_run_metadata.tag = f"run {number}"
        traced.tagged_run_metadata.run_metadata = run
        yield traced
    about = event(wall_time=now)
    value = about.summary.value.add(tag=TAG)
    value.metadata.plugin_data.plugin_name = "text"
    value.tensor.CopyFrom(tf.make_tensor_proto(describe(graph, test, tf.__version__), shape=[]))
    yield about


def describe(graph: WatchedGraph, test: str, tensorflow: str) -> str:
    """Which test ran the graph, how many nodes are where, and what was left out; in Markdown."""
    nodes = ", ".join(
        f"{number:,} on {device.rpartition('device:')[2] or 'no device'}"
        for device, number in graph.devices.most_common()
    )
    lines = [
        f"`{graph.name}` of `{test}`",
        f"TensorFlow {tensorflow}; nodes: {nodes or 'none'}",
    ]
    if graph.values_left_out:
        lines.append(
            f"{graph.values_left_out:,} attributes that TensorBoard would not show are left out, "
            f"{format_size(graph.bytes_left_out)}; their nodes have `{LEFT_OUT}`"
        )
    if graph.traced > len(graph.runs):
        lines.append(f"of {graph.traced:,} traced runs, {len(graph.runs)} are kept")
    return "\n\n".join(lines)
