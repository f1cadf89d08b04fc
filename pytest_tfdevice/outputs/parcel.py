"""A test's report as it travels with pytest's own report of the test.

pytest-xdist carries text; what a model of 50,000 operations ran is megabytes of JSON, and mostly
repetition.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import replace

from pytest_tfdevice.model import Device, DeviceInfo
from pytest_tfdevice.serial.run_report import RunReport

LEVEL = 1
"""Of compression: the fastest."""


def pack(report: RunReport) -> str:
    """ASCII text."""
    data = json.dumps(report.to_json(), separators=(",", ":")).encode()
    return base64.b85encode(zlib.compress(data, LEVEL)).decode("ascii")


def unpack(text: str) -> RunReport:
    """The inverse of :func:`pack`."""
    return RunReport.from_json(json.loads(zlib.decompress(base64.b85decode(text))))


def joined(parts: Iterable[RunReport], whole: RunReport) -> RunReport:
    """``whole``, and the tests of all parts, by node id, and what they ran on."""
    devices: dict[Device, DeviceInfo] = {}
    tests = {test.nodeid: test for test in whole.tests}
    tensorflow = whole.tensorflow
    for part in parts:
        devices |= {info.device: info for info in part.devices}
        tests |= {test.nodeid: test for test in part.tests}
        tensorflow = tensorflow or part.tensorflow
    return replace(
        whole,
        tensorflow=tensorflow,
        devices=tuple(devices[device] for device in sorted(devices)),
        tests=tuple(tests[nodeid] for nodeid in sorted(tests)),
    )
