"""Records, verdicts and reports become JSON and come back the same."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from random_records import RECORDS, REPORTS

from pytest_tfdevice.model import Device, DeviceSpec, Placement, Record
from pytest_tfdevice.patterns import Rule, parse_patterns
from pytest_tfdevice.rules import judge
from pytest_tfdevice.serial import documents, records
from pytest_tfdevice.serial.codec import FormatError
from pytest_tfdevice.serial.documents import FileError
from pytest_tfdevice.serial.run_report import RunReport

GPU = Device("localhost", 0, 0, "GPU", 0)


def through_text(data: Any) -> Any:
    return json.loads(json.dumps(data))


def schema(name: str) -> Any:
    text = resources.files("pytest_tfdevice").joinpath(f"schemas/{name}-1.json").read_text()
    return json.loads(text)


def validate(data: Any, name: str) -> None:
    pytest.importorskip("jsonschema").Draft202012Validator(schema(name)).validate(data)


@given(RECORDS)
@settings(deadline=None)
def test_a_record_comes_back_the_same(record: Record) -> None:
    assert records.record_from_json(through_text(records.record_to_json(record))) == record


@given(RECORDS)
@settings(deadline=None, max_examples=50)
def test_a_record_keeps_its_schema(record: Record) -> None:
    validate(through_text(records.record_to_json(record)), "record")


@given(REPORTS)
@settings(deadline=None)
def test_a_report_comes_back_the_same(report: RunReport) -> None:
    assert RunReport.from_json(through_text(report.to_json())) == report


@given(REPORTS)
@settings(deadline=None, max_examples=50)
def test_a_report_keeps_its_schema(report: RunReport) -> None:
    validate(through_text(report.to_json()), "report")


@given(RECORDS)
@settings(deadline=None)
def test_a_verdict_comes_back_the_same(record: Record) -> None:
    rule = Rule(
        DeviceSpec(type="GPU"), parse_patterns(["MatMul"]), parse_patterns(["Relu", "name:*"])
    )
    verdict = judge(record, rule)
    data = through_text(records.verdict_to_json(verdict, record))
    assert records.verdict_from_json(data, record) == verdict


def test_the_schema_refuses_what_is_no_record() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    data = records.record_to_json(Record((Placement("a", "MatMul", GPU),)))
    data["placements"][0]["device"] = "GPU:0"
    with pytest.raises(jsonschema.ValidationError):
        validate(data, "record")


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.5])
def test_another_version_is_refused(version: object) -> None:
    data = records.record_to_json(Record())
    with pytest.raises(FileError, match=r"r\.json: version .* isn't known, only 1 is"):
        records.record_from_json({**data, "version": version}, "r.json")


def test_another_kind_is_refused() -> None:
    with pytest.raises(FileError, match="no report of pytest-tfdevice: its format is"):
        RunReport.from_json(records.record_to_json(Record()), "r.json")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"placements": 3}, r"\$\.placements: a list is wanted, not 3"),
        ({"placements": [{"op": "a", "type": "b"}]}, r"\$\.placements\[0\]: 'device' is missing"),
        (
            {"placements": [{"op": "a", "type": "b", "device": "nonsense!"}]},
            r"\$\.placements\[0\]\.device: .*nonsense",
        ),
        (
            {"placements": [{"op": "a", "type": "b", "device": None, "kind": "guessed"}]},
            r"\$\.placements\[0\]\.kind: 'guessed' is none of placed, executed",
        ),
        ({"tensorflow": 2}, r"\$\.tensorflow: 2 is no str"),
        ({"calls": {"f": True}}, r"\$\.calls\.f: True is no int"),
        ({"surprise": 1}, r"\$: unknown field 'surprise'"),
        ({"notes": ["a", 1]}, r"\$\.notes\[1\]: 1 is no str"),
    ],
)
def test_what_is_no_record_is_refused_with_the_place(change: Any, complaint: str) -> None:
    with pytest.raises(FileError, match=complaint):
        records.record_from_json({**records.record_to_json(Record()), **change})


def test_a_verdict_on_another_record_is_refused() -> None:
    record = Record((Placement("a", "MatMul", GPU),))
    data = records.verdict_to_json(judge(record, Rule(DeviceSpec(type="GPU"))), record)
    with pytest.raises(FormatError, match="there is no placement 0 in the record"):
        records.verdict_from_json(data, Record())


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "r.json"
    documents.write(path, "old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        FileError, match=r"can't write .*: No space left on device; it is as it was"
    ):
        documents.write(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["r.json"]


def test_a_file_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("")
    path.chmod(0o640)
    documents.write(path, "x")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{}\n<<<<<<< HEAD\n", r"f:2: a merge conflict \(<<<<<<<\) is not settled"),
        ("{}\n=======\n", r"f:2: a merge conflict \(=======\)"),
        ('{\n"a": 1,\n"a": 2}', r"f:3: 'a' stands there twice"),
        ('{"a": NaN}', r"NaN is no number"),
        ("{\n'a'}", r"f:2: no JSON"),
        (b"\xff{}", r"f is no UTF-8 text"),
        ("[" * 100_000, r"f"),
    ],
)
def test_what_can_not_be_trusted_is_refused(text: str | bytes, complaint: str) -> None:
    with pytest.raises(FileError, match=complaint):
        documents.parse(text, "f")


def test_equals_signs_in_a_value_are_no_conflict() -> None:
    assert documents.parse('{"a": "======="}', "f") == {"a": "======="}
