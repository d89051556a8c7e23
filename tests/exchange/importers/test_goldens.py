"""Evaluation sets with references: what is asked for becomes what."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pytest

from tests.exchange.importers.samples import (
    ADK,
    ADK_OLD,
    AGENTEVALS,
    GOLDEN,
    LANGSMITH,
    PLAIN_GOLDEN,
    as_json,
    as_lines,
)
from tests.exchange.importers.test_traces import made_of, trajectory_of
from workbench.exchange.importers.forms import forms_that_fit
from workbench.exchange.importers.import_files import run_of
from workbench.exchange.importers.source_files import RefusedError, source_of


def test_each_turn_of_an_adk_set_is_a_case() -> None:
    suite, made = made_of("adk", "x.evalset.json", as_json(ADK))
    first, second, third = suite.cases
    assert [case.id for case in suite.cases] == ["oslo-1", "oslo-2", "oslo-3"]
    assert [(call.tool, call.only_args) for call in first.expected_calls()] == [("get_weather", True), ("now", True)]
    assert first.extra_calls == "forbid" and len(first.mocks) == 1
    assert 'response = { similar = "Yes, it is raining in Oslo.", threshold = 0.8 }' in made.file.text
    assert [message.role for message in second.messages] == ["user", "assistant", "tool", "assistant"]
    assert second.expect_no_calls and not second.messages[2].content.startswith("$")
    assert third.expects_nothing_yet and third.user == "And in Rome?"
    assert "a part that is not text: left out" in str([*map(str, made.cases[2].notes)])
    assert [str(note) for note in made.notes] == [
        "eval_cases[0]: not imported: session_input",
        "eval_cases[1]: not imported: its requests come from a simulated user, not from the file",
    ]


@pytest.mark.parametrize("value", [ADK_OLD, ADK_OLD[0]["data"]])
def test_an_old_adk_set_is_read_too(value: object) -> None:
    content = as_json(value)
    assert forms_that_fit(source_of(Path("x.test.json"), content)) == ["adk"]
    suite, _ = made_of("adk", "x.test.json", content)
    first, second = suite.cases
    assert [call.tool for call in first.expected_calls()] == ["get_weather"]
    assert second.expect_no_calls and [message.role for message in second.messages] == [
        "user",
        "assistant",
        "assistant",
    ]


def as_csv(*goldens: Mapping[str, object]) -> bytes:
    text = StringIO()
    rows = csv.DictWriter(text, [*GOLDEN])
    rows.writeheader()
    for golden in goldens:
        rows.writerow({key: json.dumps(value) if isinstance(value, list) else value for key, value in golden.items()})
    return text.getvalue().encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", as_json([GOLDEN, PLAIN_GOLDEN])),
        ("x.jsonl", as_lines(GOLDEN, PLAIN_GOLDEN)),
        ("x.csv", as_csv(GOLDEN, PLAIN_GOLDEN)),
    ],
)
def test_goldens_of_deepeval_are_cases_in_all_three_forms(name: str, content: bytes) -> None:
    assert forms_that_fit(source_of(Path(name), content)) == ["deepeval"]
    suite, made = made_of("deepeval", name, content)
    first, second = suite.cases
    assert [(call.tool, [*(call.args or {})]) for call in first.expected_calls()] == [("get_weather", ["city"])]
    assert len(first.mocks) == 1
    assert [call.call.tool for call in trajectory_of(suite, made).calls] == ["get_weather"]
    assert trajectory_of(suite, made).final_answer == "Yes, it is."
    assert run_of(made.file, first, made.cases[0].runs[0], 0)[2].status in ("passed", "failed")
    notes = [note.why for note in made.cases[0].notes]
    assert "not imported: context" in notes
    assert not second.unordered and not second.expect_no_calls and not made.cases[1].runs
    assert "no expected_tools: DeepEval leaves them out also where no call is expected" in made.file.text


def test_conversational_goldens_are_refused_with_the_reason() -> None:
    golden = {"scenario": "Asks for rain.", "turns": None, "expected_outcome": "Knows.", "user_description": None}
    assert forms_that_fit(source_of(Path("x.json"), as_json([golden]))) == ["deepeval"]
    with pytest.raises(RefusedError, match="a conversational golden: its requests come from a simulated user"):
        made_of("deepeval", "x.json", as_json([golden]))


def test_outputs_of_an_example_of_langsmith_are_the_reference() -> None:
    texts = {"inputs": {"question": "Hello?"}, "outputs": {"answer": "Hello!"}}
    calls = {"inputs": {"question": "Rain?"}, "outputs": {"tool_calls": [{"name": "get_weather", "args": {}}]}}
    both = {"inputs": {"question": "Rain?", "city": "Oslo"}, "outputs": {"answer": "Yes"}}
    content = as_lines(LANGSMITH, texts, calls, both)
    assert forms_that_fit(source_of(Path("x.jsonl"), content)) == ["langsmith"]
    assert forms_that_fit(source_of(Path("x.jsonl"), as_lines({**AGENTEVALS, "dataset_id": "d"}))) == ["agentevals"], (
        "its outputs were compared with reference_outputs"
    )
    suite, made = made_of("langsmith", "x.jsonl", content)
    first, second, third = suite.cases
    assert (first.user, first.tags, [call.tool for call in first.expected_calls()]) == (
        "Is it raining in Oslo?",
        ("base",),
        ["get_weather"],
    )
    assert len(first.mocks) == 1 and 'response = { similar = "Yes, it is raining." }' in made.file.text
    assert second.user == "Hello?" and 'response = { similar = "Hello!" }' in made.file.text
    assert [call.tool for call in third.expected_calls()] == ["get_weather"]
    assert not any(case.runs for case in made.cases)
    (refused,) = made.notes
    assert "--map user=inputs.NAME names the request" in refused.why
