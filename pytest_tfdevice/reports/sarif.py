"""A run as SARIF 2.1.0, the format of code scanning (OASIS Standard, 27 March 2020).

Each reason is a rule.  Results are at the line of the user's code; those without one at their test.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from pytest_tfdevice.model import SourceLine
from pytest_tfdevice.reports.findings import Finding, findings, said
from pytest_tfdevice.reports.rule_texts import RULES, RuleText
from pytest_tfdevice.serial.run_report import RunReport

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "SRCROOT"
FINGERPRINT = "tfdevice/v1"
MAX_RESULTS = 5000
"""GitHub shows as many of a run, the worst first, and refuses more than 25,000."""
MAX_TESTS = 100
"""Named of a result; a line of a model may be run by every test."""
INTERRUPTED = 2
"""Exit status of pytest, and all above: the run did not come to its end."""


def page(report: RunReport) -> str:
    """The document."""
    return json.dumps(document(report), indent=1) + "\n"


def document(report: RunReport) -> dict[str, Any]:
    """The document as plain data."""
    found = findings(report)
    driver: dict[str, Any] = {
        "name": "pytest-tfdevice",
        "rules": [_rule(name, text) for name, text in RULES.items()],
    }
    if report.plugin:
        driver["version"] = report.plugin
    run = {
        "tool": {"driver": driver},
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The root of the repository, else that of the run."}}
        },
        "invocations": [_invocation(report, len(found))],
        "results": _results(found[:MAX_RESULTS], report.root),
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(name: str, text: RuleText) -> dict[str, Any]:
    return {
        "id": name,
        "name": "".join(part.capitalize() for part in name.split("-")),
        "shortDescription": {"text": text.short},
        "fullDescription": {"text": text.short},
        "help": {"text": text.help, "markdown": text.help},
        "defaultConfiguration": {"level": "error"},
    }


def _invocation(report: RunReport, found: int) -> dict[str, Any]:
    notices = []
    if report.ended:
        notices.append(f"the run ended early: {said(report.ended)}")
    if not report.tests:
        notices.append("no test was watched")
    if found > MAX_RESULTS:
        notices.append(f"{found - MAX_RESULTS} of {found} results are left out")
    notices += [f"{test.nodeid} was skipped: {test.reason}" for test in report.skipped]
    complete = not report.ended and (report.exit_status or 0) < INTERRUPTED
    invocation: dict[str, Any] = {
        "executionSuccessful": complete,
        "toolExecutionNotifications": [
            {"level": "note", "message": {"text": said(notice)}} for notice in notices
        ],
    }
    if report.exit_status is not None:
        invocation["exitCode"] = report.exit_status
    return invocation


def _results(found: Iterable[Finding], root: str) -> list[dict[str, Any]]:
    numbers = {name: number for number, name in enumerate(RULES)}
    seen: Counter[str] = Counter()
    results = []
    for finding in found:
        fingerprint = _fingerprint(finding)
        seen[fingerprint] += 1
        result: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": numbers[finding.rule],
            "level": finding.level,
            "message": {"text": _message(finding)},
            "partialFingerprints": {FINGERPRINT: f"{fingerprint}:{seen[fingerprint]}"},
            "properties": {"tests": [said(test) for test in finding.tests[:MAX_TESTS]]},
        }
        if finding.source is not None:
            result["locations"] = [_location(finding.source, root)]
        results.append(result)
    return results


def _message(finding: Finding) -> str:
    text = "\n".join([finding.title, *finding.details, finding.where])
    return (
        "".join(f"\\{c}" if c in "[]\\" else c for c in text).replace("{", "{{").replace("}", "}}")
    )


def _location(source: SourceLine, root: str) -> dict[str, Any]:
    artifact = {"uri": uri(source.file, root)}
    if not artifact["uri"].startswith("file:"):
        artifact["uriBaseId"] = ROOT
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": artifact,
            "region": {"startLine": max(source.line, 1)},
        }
    }
    if source.function:
        location["logicalLocations"] = [{"name": said(source.function), "kind": "function"}]
    return location


def uri(file: str, root: str) -> str:
    """Of a file that is named from the root of the run, from that of the repository."""
    path = file.replace("\\", "/")
    if path.startswith("/"):
        return f"file://{quote(path, errors='surrogatepass')}"
    return quote(f"{root}/{path}" if root else path, errors="surrogatepass")


def _fingerprint(finding: Finding) -> str:
    """The same as long as the complaint is: line numbers are no part of it."""
    source = finding.source
    parts = [finding.rule, finding.device, *finding.types]
    parts += [source.file, source.function] if source is not None else []
    parts += [] if finding.is_own else finding.tests
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
