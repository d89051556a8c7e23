"""Results that Evalite 1.0.0-beta.16 wrote (`evalite_results.json`), imported and graded to the scores that it gave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of, forms_that_fit
from workbench.exchange.importers.import_files import ImportedSuite, make_suite, run_of
from workbench.exchange.importers.source_files import source_of

RESULTS = (Path(__file__).parent / "evalite_results.json").read_bytes()


def made_of(content: bytes) -> ImportedSuite:
    source = source_of(Path("results.json"), content)
    assert forms_that_fit(source) == ["evalite"]
    form = format_of("evalite")
    imported = replace(form.read(source), suite={"grading": dict(form.grading)})
    return make_suite(imported, "Evals", Path("made.toml"), Secrets())


def test_every_run_has_the_score_that_evalite_gave_it() -> None:
    made = made_of(RESULTS)
    assert made.file.suite is not None
    compared = 0
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        for repeat, run in enumerate(imported.runs):
            _, _, result = run_of(made.file, case, run, repeat)
            (theirs,) = [metric.value for metric in result.metrics if metric.about is not None]
            assert result.score == pytest.approx(theirs, abs=1e-9), case.name
            compared += 1
    assert compared == 11


def test_an_eval_becomes_what_its_scorers_compare() -> None:
    suite = made_of(RESULTS).file.suite
    assert suite is not None
    cases = {case.name: case for case in suite.cases}
    flexible = cases["What calendar events do I have today?"]
    assert flexible.grading.accuracy.mode == "flexible"
    assert [call.tool for call in flexible.expected_calls()] == ["createTask", "getCalendarEvents", "sendEmail"]
    assert [name for name, _ in cases["And of Italy?"].answer_checks] == ["Exact Match", "Contains"]
    (any_input,) = cases["List recent TILs"].expected_calls()
    assert any_input.args is None and cases["hi"].expect_no_calls


def a_result(**eval_: Any) -> bytes:
    evals = [{"input": "Hi", "output": "Ho", "expected": "", "scores": [], **eval_}]
    return json.dumps({"run": {"runType": "full"}, "suites": [{"name": "S", "evals": evals}]}).encode()


@each_row(
    ("given", "key", "value", "noted"),
    [
        ({}, "expect_nothing_yet", True, "expects nothing yet"),
        ({"output": None}, "expect_nothing_yet", True, "the task ended with an error"),
        ({"input": {"city": "Oslo"}}, "user", '{"city":"Oslo"}', "expects nothing yet"),
        ({"expected": "Ho"}, "response", {"expected": {"similar": "Ho", "required": False}}, "compared by `similar`"),
        ({"output": 5, "expected": []}, "expect_no_calls", True, "the output is not a run"),
        (
            {"expected": "Ho", "scores": [{"name": "Levenshtein", "score": 1}]},
            "response",
            {"Levenshtein": {"similar": "Ho", "required": False}},
            "compares words: its scores differ",
        ),
        ({"scores": [{"name": "Factuality", "score": 1}]}, "expect_nothing_yet", True, "'Factuality' is not mapped"),
    ],
)
def test_what_an_eval_lacks_is_noted(given: dict[str, Any], key: str, value: object, noted: str) -> None:
    (case,) = made_of(a_result(**given)).cases
    assert case.table[key] == value
    assert any(noted in note.why for note in case.notes), case.notes
