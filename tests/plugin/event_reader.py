"""``python event_reader.py LOGDIR``: what the event files in a folder hold, as JSON on stdout.

Read with TensorFlow's own reader of event files.  By folder, TensorBoard's run: the nodes of the
graph, each as ``{"op", "device", "inputs", "attrs", "shape"}``, the tags of traced runs with the
nodes that have statistics, and the text.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

v1 = tf.compat.v1


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"nodes": {}, "functions": {}, "runs": {}, "text": "", "bytes": 0}
    found["bytes"] = file.stat().st_size
    for event in v1.train.summary_iterator(str(file)):
        if event.graph_def:
            graph = v1.GraphDef.FromString(event.graph_def)
            found["nodes"] = {node.name: describe(node) for node in graph.node}
            found["repeated"] = len(graph.node) - len(found["nodes"])
            for function in graph.library.function:
                nodes = {node.name: describe(node) for node in function.node_def}
                found["functions"][function.signature.name] = nodes
        if event.HasField("tagged_run_metadata"):
            metadata = v1.RunMetadata.FromString(event.tagged_run_metadata.run_metadata)
            found["runs"][event.tagged_run_metadata.tag] = sorted(
                {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
            )
        for value in event.summary.value:
            found["text"] += tf.make_ndarray(value.tensor).item().decode()
    return found


def describe(node: Any) -> dict[str, Any]:
    shape = None
    if node.op == "Const":
        tensor = node.attr["value"].tensor
        shape = [dim.size for dim in tensor.tensor_shape.dim]
    return {
        "op": node.op,
        "device": node.device.rpartition("device:")[2],
        "inputs": list(node.input),
        "left_out": node.attr["_left_out"].s.decode() if "_left_out" in node.attr else "",
        "shape": shape,
    }


def main(folder: Path) -> None:
    files = sorted(folder.rglob("*tfevents*"))
    runs = {str(file.parent.relative_to(folder)): read(file) for file in files}
    print(json.dumps({"runs": runs, "files": len(files)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
