"""What a run's report says at its head, in words: for every form of it."""

from __future__ import annotations

from collections import Counter

from pytest_tfdevice.reports.findings import said
from pytest_tfdevice.reports.words import count
from pytest_tfdevice.serial.run_report import RunReport, TestReport


def conclusion(report: RunReport) -> str:
    """``2 of 5 judged tests left the device``; ``no test was watched``."""
    outcomes = Counter(test.outcome for test in report.tests)
    if not report.tests:
        return "no test was watched"
    judged = len(report.tests) - outcomes["watched"] - outcomes["expected"]
    if not judged and not outcomes["expected"]:
        return f"{count(len(report.tests), 'test')} watched, none judged"
    kinds = Counter(fault for test in report.tests if test.outcome == "failed" for fault in
                    dict.fromkeys(faults(test)))  # fmt: skip
    parts = [f"{number} {what}" for what, number in kinds.most_common()]
    if parts:
        parts[0] = parts[0].replace(" ", f" of {count(judged, 'judged test')} ", 1)
    elif judged - outcomes["error"]:
        parts = [f"{count(judged - outcomes['error'], 'judged test')} kept to the device"]
    if outcomes["error"]:
        parts.append(f"{count(outcomes['error'], 'test')} could not be judged")
    if outcomes["expected"]:
        parts.append(f"{count(outcomes['expected'], 'test')} failed as expected (xfail)")
    if outcomes["watched"]:
        parts.append(f"{outcomes['watched']} more watched only")
    return "; ".join(parts)


def faults(test: TestReport) -> list[str]:
    """What a test fails for, each as a phrase."""
    found = []
    for check in test.checks:
        if check.outcome == "failed":
            found.append("left the device" if check.kind == "placement" else "exceeded a limit")
    if not all(baseline.passed for baseline in test.baselines):
        found.append("failed against the baseline")
    if not found and test.outcome == "failed":
        found.append("could not be placed")
    return found


def environment(report: RunReport) -> str:
    """``TensorFlow 2.21.0, Python 3.13.0, 1 simulated GPU``."""
    parts = [f"TensorFlow {report.tensorflow}"] if report.tensorflow else []
    if report.python:
        parts.append(f"Python {report.python}")
    gpus = [info for info in report.devices if info.device.type == "GPU"]
    if gpus:
        names = sorted({info.description for info in gpus} - {""})
        kind = "simulated GPU" if report.simulated else "GPU"
        parts.append(count(len(gpus), kind) + (f" ({', '.join(names)})" if names else ""))
    elif report.devices:
        parts.append("no GPU")
    return ", ".join(parts)


def totals(report: RunReport) -> str:
    """``1,204 on GPU:0, 3 on CPU:0``; empty where nothing was seen."""
    devices: Counter[str] = Counter()
    for test in report.tests:
        devices.update(test.devices)
    return ", ".join(f"{number:,} on {device}" for device, number in devices.most_common())


def remarks(report: RunReport) -> list[str]:
    """What to know of the run as a whole."""
    found = []
    if report.ended:
        found.append(f"The run ended early ({said(report.ended)}): tests are missing here.")
    if report.exit_status is not None and report.exit_status in NO_END:
        found.append(f"The run did not come to its end: {NO_END[report.exit_status]}.")
    if not report.tests and report.ran:
        found.append(f"{count(report.ran, 'test')} ran; none was both marked and run.")
    return found


NO_END = {3: "pytest had an internal error", 4: "pytest was used wrongly"}
"""Exit statuses of pytest that a report needs to explain."""
