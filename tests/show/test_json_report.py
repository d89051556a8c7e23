"""The committed schema of the JSON report equals the one of the models, and reports match it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import validators

from tests.example_counts import examples
from tests.grading.cases import call, case_of
from tests.results import result
from tests.schemas import fits, with_defaults
from tests.show.test_steps import BY_HAND
from tests.strategies import is_finite, json_values
from tests.trajectory.scripts import scripts, stamped
from workbench.analysis.failures import failures_of
from workbench.analysis.gates import quality_of
from workbench.analysis.totals import totals_by_model
from workbench.config.secrets import Secrets
from workbench.dataclasses import json_text
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue, PublishedGrade, RunResult
from workbench.grading.repeats import case_result
from workbench.grading.status import Status
from workbench.show.json.lean import lean_pieces, lean_schema
from workbench.show.json.records import document_pieces
from workbench.show.json.report import (
    BatchFacts,
    RegradeReport,
    ReportDocument,
    report_of,
    report_records,
    report_without_records,
)
from workbench.suite.grading_model import Gate
from workbench.trajectory.fold import fold

CASE = case_of(call("t", {"city": "Oslo"}))
SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "report.schema.json"


FACTS = BatchFacts(program_version="1.2.3", started_at="2026-01-01T00:00:00+00:00", interrupted=False, exit_code=0)


def written(results: list[RunResult]) -> dict[str, Any]:
    quality = quality_of(results, {"suite.toml": Gate(min_score=0.5)})
    report = report_of(
        results,
        quality,
        failures_of((result, CASE) for result in results).numbers,
        FACTS,
    )
    loaded: dict[str, Any] = json.loads(json_text(report.model_dump(mode="json"), indent=2))
    return loaded


@pytest.mark.parametrize(
    ("model", "file"),
    [
        (ReportDocument, SCHEMA_FILE),
        (RegradeReport, SCHEMA_FILE.with_name("grade-report.schema.json")),
    ],
)
def test_the_committed_schema_is_true(model: type[ReportDocument], file: Path) -> None:
    schema = json_text(model.model_json_schema(mode="serialization"), indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        file.write_text(schema, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == schema, "run the tests once with UPDATE_GOLDENS=1"


def test_the_committed_schema_of_lean_reports_is_true() -> None:
    file = SCHEMA_FILE.with_name("lean-report.schema.json")
    schema = json_text(lean_schema(), indent=2) + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        file.write_text(schema, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == schema, "run the tests once with UPDATE_GOLDENS=1"


@pytest.mark.slow
@pytest.mark.parametrize("file", sorted(SCHEMA_FILE.parent.glob("*.schema.json")), ids=lambda file: file.name)
def test_each_committed_schema_is_one(file: Path) -> None:
    schema = json.loads(file.read_text(encoding="utf-8"))
    validators.validator_for(schema).check_schema(schema)


def test_a_report_of_a_later_version_with_more_keys_fits_the_schema_of_today() -> None:
    report = written([result(Status.PASSED, 1.0)])
    report["totals"]["new"] = report["new"] = 1
    fits(report, "report")


WRONG_CITY = CallPairing(
    0, 0, True, 1.0, 1.0, (ArgumentVerdict("city", False, 0, 1, '"Oslo"', "Rome", True, "differs"),)
)


def test_a_report_fits_its_schema_and_says_what_happened() -> None:
    grade = Grade(
        "critics",
        0.5,
        Status.FAILED,
        "one argument is wrong",
        (WRONG_CITY,),
        (Issue("wrong argument", "differs", "t", 0, 0, "city", '"Oslo"', '"Rome"'),),
    )
    report = written(
        [
            result(Status.FAILED, 0.5, rounds=2, grade=grade, cost_usd=0.125),
            result(Status.ERROR, case="b", error="no route"),
        ]
    )
    fits(report, "report")
    assert report["totals"]["errors"] == 1
    gate = {"suite": "suite.toml", "model": "offline", "measure": "mean score", "minimum": 0.5, "reached": 0.5}
    assert report["gates"] == [gate | {"met": True, "counted_zero": 0, "watched": None}]
    failed, broken = report["runs"]
    assert (failed["cost_usd"], broken["cost_usd"]) == (0.125, 0)
    assert (report["totals"]["cost_usd"], report["totals"]["runs_of_unknown_cost"]) == (0.125, 0)
    assert failed["rounds"][0]["calls"][0]["result"] == "ok"
    assert failed["grades"][0]["issues"][0]["argument"] == "city"
    assert (broken["status"], broken["error"], broken["rounds"]) == ("error", "no route", [])


def test_a_result_that_a_person_changed_stands_beside_what_it_was() -> None:
    report = written([replace(result(Status.PASSED, 1.0), trajectory=fold(stamped(BY_HAND)))])
    (call,) = report["runs"][0]["rounds"][0]["calls"]
    assert (call["result"], call["is_error"]) == ("broken", True)
    assert (call["unedited"], call["unedited_is_error"]) == ("ok", False)


SECRETS = Secrets()
SECRETS.add("KEY", 'hunter"2\nhunter-3')
SECRETS.add("PIN", "47110815")

texts = st.text(st.characters(), max_size=5) | st.sampled_from(['hunter"2\nhunter-3', "my 47110815!", "%s", "\\n"])
amounts = st.floats(allow_nan=False) | st.integers(-3, 3)
finite = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e16, 1e-7, 47110815])
values = json_values.filter(is_finite) | texts | st.just({"pin": [47110815], 'hunter"2\nhunter-3': {}})
places = st.none() | st.integers(0, 3)
issues = st.builds(Issue, st.just("response"), texts, st.none() | texts, places, got=st.none() | texts)
verdicts = st.builds(
    ArgumentVerdict, texts, st.none() | st.booleans(), amounts, finite, texts, values, st.booleans(), texts
)
pairings = st.builds(
    CallPairing,
    *(places, places, st.booleans(), amounts, amounts),
    st.lists(verdicts, max_size=2).map(tuple),
    amounts,
    texts,
    parts=st.dictionaries(texts, amounts, max_size=2),
)
of_grade = (
    st.just("critics"),
    st.none() | amounts,
    st.sampled_from([Status.PASSED, Status.ERROR]),
    texts,
    st.lists(pairings, max_size=2).map(tuple),
    st.lists(issues, max_size=2).map(tuple),
    st.dictionaries(texts, amounts, max_size=2),
)
grades = st.builds(Grade, *of_grade, st.none(), st.none() | st.builds(PublishedGrade, *of_grade))
runs_made_up = st.builds(
    RunResult,
    *(texts, st.sampled_from(["suite.toml", "47110815.toml"]), texts, texts, texts, st.integers(0, 2)),
    st.sampled_from([Status.PASSED, Status.FAILED, Status.ERROR, Status.SKIPPED]),
    scripts().map(fold),
    st.lists(grades, max_size=2).map(tuple),
    st.none() | texts,
    st.none() | finite,
)


@settings(max_examples=examples(100))
@given(runs_made_up, st.integers(0, 2))
def test_a_report_written_run_by_run_is_laid_out_as_the_whole(run: RunResult, number: int) -> None:
    runs, cases = [run] * number, [case_result(TWO_REPEATS)] * number
    records = report_records(runs, cases)
    document = report_without_records([], totals_by_model([]), quality_of([], {}), failures_of([]).numbers, FACTS)
    whole = document.model_copy(update={name: tuple(each) for name, each in records.items()})
    text = json_text(SECRETS.redacted(whole).model_dump(mode="json"), indent=2) + "\n"
    pieces = "".join(document_pieces(document, records, SECRETS))
    assert json.loads(pieces) == json.loads(text)
    lines = pieces.split("\n")
    in_lists = 2 * (number + 1) if number else 0
    assert len(lines) == len("{}") + len(ReportDocument.model_fields) + in_lists + 1


@settings(max_examples=examples(50))
@given(runs_made_up)
def test_a_lean_report_says_each_argument_once_and_all_that_the_report_says(run: RunResult) -> None:
    records = report_records([run], [])
    document = report_without_records([], totals_by_model([]), quality_of([], {}), failures_of([]).numbers, FACTS)
    whole = json.loads("".join(document_pieces(document, records, SECRETS)))
    lean = json.loads("".join(lean_pieces(document, records, SECRETS)))
    fits(lean, "lean-report")
    with_defaults(lean, "LeanReportDocument")
    checked = lean["runs"][0].pop("checked")
    texts = [json.dumps(each, sort_keys=True) for each in checked]
    assert len(set(texts)) == len(texts)
    for grade in lean["runs"][0]["grades"]:
        for pairing in grade["pairings"]:
            for argument in pairing["arguments"]:
                said = dict(checked[argument.pop("checked")])
                assert (said.pop("expected_call"), said.pop("call")) == (pairing["expected_call"], pairing["call"])
                argument |= said
    assert lean.pop("regraded") == []
    assert lean == whole | {"version": 3}


TWO_REPEATS = [
    replace(
        result(Status.FAILED, score, grade=Grade("critics", score, Status.FAILED, "", (WRONG_CITY,))), repeat=repeat
    )
    for repeat, score in enumerate((0.5, 0.25))
]


@given(st.text(st.characters()))
def test_any_text_can_be_written_and_read_back(text: str) -> None:
    report = written([result(Status.ERROR, error=text)])
    assert report["runs"][0]["error"] == text
    assert json_text(report).encode()
