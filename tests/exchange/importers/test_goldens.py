"""Evaluation sets with references, and the resulting cases."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.importers.samples import (
    ADK,
    ADK_OLD,
    AGENTEVALS,
    GOLDEN,
    LANGSMITH,
    OPENAI,
    PLAIN_GOLDEN,
    as_json,
    as_lines,
)
from tests.exchange.importers.test_traces import made_of, trajectory_of
from tests.tables import each_row
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of, forms_that_fit
from workbench.exchange.importers.import_files import ImportOptions, import_file, make_suite, run_of
from workbench.exchange.importers.match import match_of
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


TRAJECTORY = "tool_trajectory_avg_score"


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({TRAJECTORY: 1.0}, ("exact",)),
        ({TRAJECTORY: {"threshold": 1.0, "match_type": "IN_ORDER"}, "response_match_score": 0.5}, ("in_order", 0.5)),
        (
            {TRAJECTORY: {"threshold": 0.5, "matchType": 2, "ignore_args": True}, "hallucinations_v1": 0.5},
            ("any_order",),
        ),
        ({"response_match_score": 0.5}, ("none", 0.5)),
        ({TRAJECTORY: {"threshold": 1, "match_type": "NEAR"}}, ("refused",)),
    ],
)
def test_criteria_beside_an_adk_set_say_what_is_compared(
    criteria: dict[str, Any], expected: tuple[object, ...], tmp_path: Path
) -> None:
    (tmp_path / "test_config.json").write_bytes(as_json({"criteria": criteria}))
    (tmp_path / "x.evalset.json").write_bytes(as_json(ADK))
    options = ImportOptions(tmp_path / "x.evalset.json", tmp_path / "made.toml", dry_run=True)
    if "refused" in expected:
        with pytest.raises(RefusedError, match="match type 'NEAR' is not one of exact, in_order, any_order"):
            import_file(options, Secrets())
        return
    report = import_file(options, Secrets())
    made = report.made
    assert made.file.suite is not None and made.file.suite.grading.by == "trajectory"
    first, second, _ = made.file.suite.cases
    text = "\n".join(report.lines)
    assert (f"threshold = {expected[-1]}" in made.file.text) is (0.5 in expected)
    if "none" in expected:
        assert not first.expected_calls() and "no calls are compared" in text
    elif "exact" in expected:
        assert first.extra_calls == "forbid" and second.expect_no_calls and first.response is None
    elif "in_order" in expected:
        assert first.extra_calls == "allow" and len(first.ordered) == 2 and first.expected_calls()[0].only_args
    else:
        assert len(first.unordered) == 2 and all(call.args is None for call in first.expected_calls())
        assert "each turn is judged by itself" in text and "not imported: hallucinations_v1" in text


def called(*answers: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """A trajectory of answers with calls, as agentevals has it."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Rain?"}]
    for answer in answers:
        functions = [{"name": name, "arguments": json.dumps(args)} for name, args in answer]
        said.append({"role": "assistant", "tool_calls": [{"id": "c", "function": each} for each in functions]})
    return [*said, {"role": "assistant", "content": "Yes."}]


OSLO: tuple[str, dict[str, Any]] = ("rain", {"city": "Oslo", "at": {"hour": 8, "day": 1}})
ROME: tuple[str, dict[str, Any]] = ("rain", {"city": "Rome"})
NOW: tuple[str, dict[str, Any]] = ("now", {})
REFERENCE = called([OSLO, NOW], [ROME])
OUTPUTS = {
    "same": REFERENCE,
    "swapped in one answer": called([NOW, OSLO], [ROME]),
    "another order": called([ROME], [OSLO, NOW]),
    "apart": called([OSLO], [NOW], [ROME]),
    "less": called([OSLO, NOW]),
    "more": called([OSLO, NOW], [ROME], [NOW]),
    "other hour": called([("rain", {"city": "Oslo", "at": {"hour": 9, "day": 1}}), NOW], [ROME]),
    "fewer arguments": called([("rain", {"city": "Oslo"}), NOW], [ROME]),
    "more arguments": called([OSLO, ("now", {"zone": "UTC"})], [ROME]),
}


@each_row(
    ("match", "passed"),
    [
        ("strict", ["same", "swapped in one answer"]),
        ("unordered", ["same", "swapped in one answer", "another order", "apart"]),
        ("subset", ["same", "swapped in one answer", "another order", "apart", "less"]),
        ("superset", ["same", "swapped in one answer", "another order", "apart", "more"]),
        ("exact", ["same", "apart"]),
        ("in_order", ["same", "apart", "more"]),
        ("any_order", ["same", "swapped in one answer", "another order", "apart", "more"]),
        ("exact,args=subset", ["same", "apart", "fewer arguments"]),
        ("exact,args=superset", ["same", "apart", "more arguments"]),
        ("exact,args=ignore", ["same", "apart", "other hour", "fewer arguments", "more arguments"]),
        ("exact,rain=city", ["same", "apart", "other hour", "fewer arguments"]),
        ("exact,now=ignore", ["same", "apart", "more arguments"]),
    ],
)
def test_calls_of_a_reference_are_compared_as_match_says(match: str, passed: list[str]) -> None:
    rows = [{"outputs": outputs, "reference_outputs": REFERENCE} for outputs in OUTPUTS.values()]
    source = replace(source_of(Path("x.jsonl"), as_lines(*rows)), match=match)
    form = format_of("agentevals")
    imported = replace(form.read(source), suite={"grading": form.grading})
    made = make_suite(imported, "X", Path("made.toml"), Secrets())
    assert made.file.suite is not None and not made.file.errors
    found = []
    for name, case, imported_case in zip(OUTPUTS, made.file.suite.cases, made.cases, strict=True):
        if run_of(made.file, case, imported_case.runs[0], 0)[2].status == "passed":
            found.append(name)
    assert found == passed


def test_paths_of_arguments_are_compared_one_by_one() -> None:
    match = match_of("superset,rain=city+at.day")
    call: dict[str, object] = {"tool": "rain", "args": OSLO[1]}
    assert match.expected(call)["args"] == {"city": "Oslo", "at": {"has_fields": {"day": {"equals": 1}}}}
    with pytest.raises(RefusedError, match=r"the reference's call of rain has no at\.day, which --match compares"):
        match.expected({"tool": "rain", "args": ROME[1]})


@pytest.mark.parametrize("words", ["near", "strict,args=most", "strict,rain", "strict,=city", ""])
def test_a_match_that_cannot_be_read_is_refused(words: str) -> None:
    with pytest.raises(RefusedError, match="--match"):
        match_of(words)


def test_forms_without_a_reference_take_no_match(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(as_json(OPENAI))
    options = ImportOptions(tmp_path / "x.json", tmp_path / "made.toml", match="strict")
    with pytest.raises(RefusedError, match=r"--match is for agentevals, .*, and this file is openai"):
        import_file(options, Secrets())


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
    # DeepEval does not count further calls.
    assert (first.extra_calls, second.extra_calls) == ("allow", None)
    assert len(first.mocks) == 1
    assert [call.call.tool for call in trajectory_of(suite, made).calls] == ["get_weather"]
    assert trajectory_of(suite, made).final_answer == "Yes, it is."
    assert run_of(made.file, first, made.cases[0].runs[0], 0)[2].status in ("passed", "failed")
    notes = [note.why for note in made.cases[0].notes]
    assert "not imported: context" in notes
    assert not second.unordered and not second.expect_no_calls and not made.cases[1].runs
    assert "no expected_tools: DeepEval omits the key also where no call is expected" in made.file.text


def test_conversational_goldens_are_refused_with_the_reason() -> None:
    golden = {"scenario": "Asks for rain.", "turns": None, "expected_outcome": "Knows.", "user_description": None}
    assert forms_that_fit(source_of(Path("x.json"), as_json([golden]))) == ["deepeval"]
    with pytest.raises(RefusedError, match="is a conversational golden: its requests come from a simulated user"):
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
