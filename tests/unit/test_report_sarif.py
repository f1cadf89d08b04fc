"""The SARIF report, held to the rules of the standard (OASIS SARIF 2.1.0)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hostile_reports import CPU, HOSTILE, hostile_report, offending
from hypothesis import given, settings
from random_records import REPORTS

from pytest_tfdevice.model import Placement, SourceLine
from pytest_tfdevice.reason import REASON_CODES, Reason
from pytest_tfdevice.reports.sarif import MAX_RESULTS, document, page
from pytest_tfdevice.serial.run_report import RunReport, SkippedTest

WHY = Reason("dtype", "MatMul has no GPU kernel for T=int32", "cast int32 to float32")


def matmul(line: int, file: str = "model.py", function: str = "call") -> Placement:
    return Placement("a", "MatMul", CPU, source=SourceLine(file, line, function))


def run_of(report: RunReport) -> Any:
    data = json.loads(page(report))
    assert data["version"] == "2.1.0"
    assert data["$schema"].endswith("sarif-schema-2.1.0.json")
    (run,) = data["runs"]
    return run


def results(*tests: Any, **more: Any) -> list[Any]:
    found: list[Any] = run_of(RunReport(tests=tests, **more))["results"]
    return found


def check(run: Any) -> None:
    """What the standard demands of the parts that are used."""
    rules = run["tool"]["driver"]["rules"]
    ids = [rule["id"] for rule in rules]
    assert len(ids) == len(set(ids))
    assert isinstance(run["invocations"][0]["executionSuccessful"], bool)
    bases = run["originalUriBaseIds"]
    for result in run["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        placeholders = result["message"]["text"].replace("{{", "").replace("}}", "")
        assert not set("{}") & set(placeholders), "3.11.5: doubled, or it is a placeholder"
        for location in result.get("locations", []):
            physical = location["physicalLocation"]
            assert physical["region"]["startLine"] >= 1
            artifact = physical["artifactLocation"]
            uri = artifact["uri"]
            assert uri.isascii()
            assert not set(' <>"{}|\\^`\n\r\x00') & set(uri), "RFC 3986"
            if "uriBaseId" in artifact:
                assert artifact["uriBaseId"] in bases
                assert not uri.startswith(("/", "file:"))
            else:
                assert uri.startswith("file:///")


def test_each_reason_is_a_rule_with_help() -> None:
    rules = {rule["id"]: rule for rule in run_of(RunReport())["tool"]["driver"]["rules"]}
    assert set(REASON_CODES) <= set(rules)
    for rule in rules.values():
        assert rule["shortDescription"]["text"].endswith(".")
        assert rule["help"]["text"].endswith(".")


def test_a_result_is_at_the_line_of_the_op() -> None:
    (result,) = results(offending(matmul(12), matmul(12), reason=WHY))
    assert (result["ruleId"], result["level"]) == ("dtype", "error")
    assert result["message"]["text"].splitlines() == [
        "MatMul ×2 are on CPU:0, not on GPU: dtype",
        "MatMul has no GPU kernel for T=int32",
        "mend: cast int32 to float32",
        "in tests/test_a.py::test_step",
    ]
    (location,) = result["locations"]
    physical = location["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "model.py", "uriBaseId": "SRCROOT"}
    assert physical["region"] == {"startLine": 12}


def test_files_are_named_from_the_root_of_the_repository() -> None:
    (result,) = results(offending(matmul(1, "a b/#m.py"), reason=WHY), root="services/x")
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "services/x/a%20b/%23m.py"


def test_a_file_elsewhere_is_named_in_full() -> None:
    (result,) = results(offending(matmul(1, "/opt/lib/l.py"), reason=WHY), root="x")
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///opt/lib/l.py"}


def test_a_fingerprint_outlives_a_shift_of_lines_and_tells_complaints_apart() -> None:
    def prints(*placements: Placement) -> list[str]:
        found = results(offending(*placements, reason=WHY))
        return [result["partialFingerprints"]["tfdevice/v1"] for result in found]

    assert prints(matmul(12)) == prints(matmul(40))
    two = prints(matmul(12), matmul(13))
    assert len(set(two)) == 2
    assert two == prints(matmul(22), matmul(23))
    other = [matmul(12, "other.py"), matmul(12, function="fit")]
    assert len({*prints(matmul(12)), *prints(other[0]), *prints(other[1])}) == 3


def test_what_fails_no_test_is_a_note() -> None:
    (result,) = results(offending(matmul(1), reason=WHY, outcome="watched", checks=()))
    assert result["level"] == "note"


def test_a_run_that_did_not_end_is_no_success() -> None:
    invocation = run_of(RunReport(ended="KeyboardInterrupt", exit_status=2))["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 2
    notices = [one["message"]["text"] for one in invocation["toolExecutionNotifications"]]
    assert "the run ended early: KeyboardInterrupt" in notices
    assert "no test was watched" in notices


def test_skipped_tests_are_notices() -> None:
    report = RunReport(skipped=(SkippedTest("t.py::x", "no GPU"),), exit_status=0)
    invocation = run_of(report)["invocations"][0]
    notices = [one["message"]["text"] for one in invocation["toolExecutionNotifications"]]
    assert "t.py::x was skipped: no GPU" in notices
    assert invocation["executionSuccessful"] is True


def test_more_results_than_github_shows_are_left_out_and_counted() -> None:
    tests = [
        offending(*map(matmul, range(n * 1000, n * 1000 + 1000)), reason=WHY, nodeid=f"t.py::{n}")
        for n in range(6)
    ]
    run = run_of(RunReport(tests=tuple(tests)))
    assert len(run["results"]) == MAX_RESULTS
    notices = run["invocations"][0]["toolExecutionNotifications"]
    assert [one["message"]["text"] for one in notices] == ["1000 of 6000 results are left out"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name: str) -> None:
    run = run_of(hostile_report(name))
    check(run)
    assert {result["ruleId"] for result in run["results"]} >= {
        "colocated",
        "memory-limit",
        "transfer-limit",
        "baseline",
        "not-judged",
    }


@given(REPORTS)
@settings(deadline=None, max_examples=100)
def test_any_run_keeps_the_standard(report: RunReport) -> None:
    check(json.loads(json.dumps(document(report)))["runs"][0])
