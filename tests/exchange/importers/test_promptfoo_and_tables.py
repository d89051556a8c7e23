"""Configurations of promptfoo and tables: the resulting cases, and the notes on the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.exchange.importers.samples import FIELDS, PROMPTFOO, PROMPTFOO_RESULTS, TABLE, as_json
from tests.tables import each_row
from workbench.checks.value_kinds import Equals
from workbench.config.secrets import Secrets
from workbench.exchange.importers.forms import format_of
from workbench.exchange.importers.import_files import ImportedSuite, make_suite, run_of
from workbench.exchange.importers.source_files import RefusedError, source_of
from workbench.exchange.importers.tables import fields_of
from workbench.suite.model import Suite
from workbench.trajectory.events import Usage


def made_of(form: str, name: str, content: bytes, fields: dict[str, str] | None = None) -> tuple[Suite, ImportedSuite]:
    source = source_of(Path(name), content, fields)
    made = make_suite(format_of(form).read(source), source.name, Path("made.toml"), Secrets())
    assert made.file.suite is not None
    return made.file.suite, made


def asserting(*asserts: dict[str, Any], variables: dict[str, Any] | None = None) -> tuple[Suite, ImportedSuite]:
    test = {"vars": {"q": "Hi", **(variables or {})}, "assert": list(asserts)}
    return made_of("promptfoo", "p.json", as_json({"prompts": ["{{q}}"], "tests": [test]}))


def test_a_configuration_becomes_a_suite() -> None:
    suite, made = made_of("promptfoo", "promptfooconfig.yaml", PROMPTFOO.encode())
    assert (suite.models, suite.grading.by) == (("openai:gpt-4o-mini",), "trajectory")
    assert [tool.name for tool in suite.tools] == ["get_weather"]
    oslo, rome, bergen = suite.cases
    assert (oslo.name, oslo.user, oslo.extra_calls) == ("Oslo", "Is it raining in Oslo?", "forbid")
    call, repeated = oslo.expected_calls()
    assert repeated.times == (0, float("inf"))
    check = (call.args or {})["city"]
    assert isinstance(check, Equals) and check.equals == "Oslo"
    assert oslo.response_contains == ("rain",)
    assert [case.user for case in (rome, bergen)] == ["Is it raining in Rome?", "Is it raining in Bergen?"]
    assert rome.expected_calls()[0].only_args
    said = [note.why for note in made.cases[1].notes]
    other = "only JavaScript that compares the name or one argument of the first call is supported"
    assert f"javascript: not mapped: {other}" in said
    assert bergen.at_most is not None and "# javascript: not mapped" in made.file.text
    assert [note.why for note in made.notes] == ["not imported: the provider's temperature"]


@each_row(
    ("written", "expected"),
    [
        (
            {"type": "trajectory:tool-used", "value": {"name": "a", "min": 2}},
            'tool = "a" times = [2, inf]',
        ),
        ({"type": "trajectory:tool-used", "value": {"name": "a", "max": 2}}, 'tool = "a" times = [1, 2]'),
        ({"type": "trajectory:tool-used", "value": {"name": "a", "max": 0}}, '[[cases.disallowed]] tool = "a"'),
        (
            {"type": "tool-call-f1", "value": ["a"]},
            'extra_calls = "forbid" [[cases.unordered]] tool = "a" times = [1, inf]',
        ),
        (
            {
                "type": "trajectory:tool-args-match",
                "value": {"name": "a", "args": {"b": {"c": {"d": 1}}}, "mode": "partial"},
            },
            "b = { has_fields = { c = { has_fields = { d = 1 } } } }",
        ),
        (
            {
                "type": "trajectory:tool-args-match",
                "value": {"name": "a", "args": {"b": 1}, "mode": "exact", "ignore": ["id"]},
            },
            "args = { b = 1, id = { present = true, optional = true } } only_args = true",
        ),
        ({"type": "not-trajectory:tool-used", "value": "a"}, 'tool = "a"'),
        (
            {"type": "is-valid-openai-tools-call"},
            'grading = { invalid_arguments = "fail" } [[cases.unordered]] tool = "*" times = [1, inf]',
        ),
        ({"type": "trajectory:tool-sequence", "value": {"steps": ["a"], "mode": "exact"}}, 'extra_calls = "forbid"'),
        ({"type": "trajectory:step-count", "value": {"type": "tool", "max": 3}}, "at_most = { calls = 3 }"),
        ({"type": "latency", "threshold": 900}, "at_most = { latency_ms = 900 }"),
        ({"type": "cost", "threshold": 0.1}, "at_most = { cost_usd = 0.1 }"),
        ({"type": "not-contains", "value": "x"}, 'response = { none_of = [{ contains = "x" }] }'),
        ({"type": "icontains-any", "value": ["X"]}, 'any_of = [{ contains = "X", ignore_case = true }]'),
        ({"type": "contains", "value": "x {{q}}"}, 'response = { contains = "x Hi" }'),
        ({"type": "contains-any", "value": ["x", "y"]}, 'any_of = [{ contains = "x" }, { contains = "y" }]'),
        ({"type": "regex", "value": "^a+$"}, 'response = { pattern = "^a+$" }'),
        ({"type": "starts-with", "value": "A"}, 'response = { prefix = "A" }'),
        ({"type": "llm-rubric", "value": "is kind"}, 'response = { judged = "is kind" }'),
        ({"type": "equals", "value": "f", "transform": "output.name"}, 'tool = "f"'),
        (
            {"type": "similar", "value": "NYC", "threshold": 0.5, "transform": "JSON.parse(output.arguments).location"},
            'args = { location = { similar = "NYC", threshold = 0.5 } }',
        ),
        ({"type": "javascript", "value": "output[0].function.name === 'f'"}, 'tool = "f"'),
    ],
)
def test_an_assertion_with_a_counterpart(written: dict[str, Any], expected: str) -> None:
    _, made = asserting(written)
    assert expected in " ".join(made.file.text.split())


def test_assertions_about_one_tool_are_one_expectation() -> None:
    used = {"type": "trajectory:tool-used", "value": {"name": "a", "min": 2}}
    match = {"type": "trajectory:tool-args-match", "value": {"name": "a", "args": {"b": 1}}}
    for asserts in ([used, match], [match, used]):
        suite, _ = asserting(*asserts)
        assert [bool(call.args) for call in suite.cases[0].expected_calls()] == [True, False]
    once = {"type": "trajectory:tool-used", "value": "a"}
    suite, _ = asserting(match, once)
    assert len(suite.cases[0].expected_calls()) == 1


def matching(args: dict[str, Any], mode: str = "partial") -> dict[str, Any]:
    return {"type": "trajectory:tool-args-match", "value": {"name": "a", "args": args, "mode": mode}}


@each_row(
    ("asserts", "expected", "noted"),
    [
        ([matching({"b": 1}), matching({"b": 1})], [{"b"}], False),
        ([matching({"b": 1}), matching({"b": 1, "c": 2})], [{"b", "c"}], False),
        ([matching({"b": 1, "c": 2}, "exact"), matching({"c": 2})], [{"b", "c"}], False),
        ([matching({"b": 1}), matching({"c": 2})], [{"b", "c"}], True),
        ([matching({"b": 1}), matching({"b": 2})], [{"b"}, {"b"}], False),
        ([matching({"b": 1}, "exact"), matching({"c": 2})], [{"b"}, {"c"}], False),
        (
            [
                {"type": "javascript", "value": "output[0].function.name === 'a'"},
                {"type": "javascript", "value": "JSON.parse(output[0].function.arguments).b === 1"},
                matching({"b": 1, "c": 2}),
            ],
            [{"b", "c"}],
            False,
        ),
    ],
)
def test_one_call_meets_all_assertions_whose_arguments_agree(
    asserts: list[dict[str, Any]], expected: list[set[str]], noted: bool
) -> None:
    suite, made = asserting(*asserts)
    assert [set(call.args or {}) for call in suite.cases[0].expected_calls()] == expected
    assert any("promptfoo also accepts two" in note.why for note in made.cases[0].notes) == noted


@each_row("key", [{"weight": 0}, {"metricOnly": True}])
def test_an_assertion_that_only_measures_is_left_out(key: dict[str, Any]) -> None:
    _, made = asserting({"type": "contains", "value": "x", **key}, {"type": "contains", "value": "y"})
    assert "it never fails" in made.cases[0].notes[0].why
    assert 'response = { contains = "y" }' in made.file.text


def test_a_pattern_names_the_tools_on_offer() -> None:
    used = {"type": "trajectory:tool-used", "value": {"pattern": "get_*"}}
    tools = [{"name": name} for name in ("get_a", "get_b", "put")]
    content = {
        "prompts": ["Hi"],
        "providers": [{"id": "openai:chat:x", "config": {"tools": tools}}],
        "tests": [{"assert": [used]}],
    }
    _, made = made_of("promptfoo", "p.json", as_json(content))
    assert '{ tool = "get_a" }, { tool = "get_b" }' in " ".join(made.file.text.split())


@each_row(
    ("written", "why"),
    [
        ({"type": "tool-call-f1", "value": ["a", "b"], "threshold": 0.7}, "a threshold of 0.7 allows missing"),
        ({"type": "trajectory:tool-used", "value": {"pattern": "get_*"}}, "no offered tool has a name that fits get_*"),
        ({"type": "regex", "value": "("}, "not a regular expression of Python"),
        ({"type": "contains", "value": "file://x"}, "it is a template or a file"),
        ({"type": "is-json"}, "it has no counterpart"),
        ({"type": "python", "value": "True"}, "it has no counterpart"),
    ],
)
def test_an_assertion_without_one_is_reported(written: dict[str, Any], why: str) -> None:
    suite, made = asserting(written)
    assert suite.cases[0].expects_nothing_yet
    assert f"{written['type']}: not mapped: {why}" in made.cases[0].notes[0].why


def test_what_is_in_other_files_is_read(tmp_path: Path) -> None:
    inner = tmp_path / "project"
    (inner / "more").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("secret")
    (inner / "prompts.txt").write_text("Weather in {{city}}?\n---\nRain in {{city}}?\n")
    (inner / "tools.yaml").write_text("- {name: get_weather, parameters: {type: object}}")
    (inner / "default.yaml").write_text("assert: [{type: is-json}]")
    (inner / "city.txt").write_text("Bergen\n")
    (inner / "more" / "a.csv").write_text(
        "city,__expected,__expected2,__description,__metric\n"
        "Oslo,tool-call-f1: get_weather,similar(0.5): rain,In Oslo,m\nRome,sun,,,\n"
    )
    (inner / "more" / "b.json").write_text('[{"vars": {"city": "file://city.txt"}}]')
    config = {
        "prompts": ["file://prompts.txt"],
        "providers": [{"id": "openai:gpt-4o", "config": {"tools": "file://tools.yaml"}}],
        "defaultTest": "file://default.yaml",
        "tests": ["file://more/*", "file://../outside.txt", "file://tests.py:make", "file://nothing.yaml"],
    }
    content = as_json(config)
    source = source_of(inner / "p.json", content)
    made = make_suite(format_of("promptfoo").read(source), "p", Path("made.toml"), Secrets())
    assert made.file.suite is not None
    cases = made.file.suite.cases
    assert [case.user for case in cases[::2]] == ["Weather in Oslo?", "Weather in Rome?", "Weather in Bergen?"]
    assert cases[1].user == "Rain in Oslo?"
    assert [tool.name for tool in made.file.suite.tools] == ["get_weather"]
    assert (cases[0].name, cases[0].expected_calls()[0].tool) == ("In Oslo 1", "get_weather")
    assert 'response = { similar = "rain", threshold = 0.5 }' in made.file.text
    assert 'response = { equals = "sun" }' in made.file.text
    assert "is-json: not mapped" in made.file.text and "# not imported: __metric" in made.file.text
    assert [note.why for note in made.notes] == [
        "not imported: file://../outside.txt: is outside the configuration's folder: copy it there",
        "not imported: file://tests.py:make: is code, and an import runs no code",
        f"not imported: file://nothing.yaml: {inner / 'nothing.yaml'} cannot be read: No such file or directory",
    ]


def test_what_cannot_be_read_is_said_and_the_rest_is_imported() -> None:
    config = {
        "prompts": ["{{q}}", "file://prompt.txt"],
        "providers": ["file://provider.js", {"id": "openai:gpt-4o", "config": {"tools": "file://tools.json"}}],
        "tests": ["file://tests.csv", {"vars": {"q": "Hi"}}, {"vars": {}}],
    }
    suite, made = made_of("promptfoo", "p.json", as_json(config))
    assert [case.user for case in suite.cases] == ["Hi"]
    assert {note.place for note in made.notes} == {
        *("prompts[1]", "providers[0]", "providers[1].config.tools", "tests[0]", "tests[2]")
    }


def test_a_prompt_with_a_conversation_asks_its_last_request() -> None:
    said = [("user", "Hello"), ("assistant", "Hi!"), ("user", "{{q}}")]
    prompt = json.dumps([{"role": role, "content": text} for role, text in said])
    test = {"vars": {"q": "Rain?"}, "assert": [{"type": "icontains", "value": "no"}]}
    suite, _ = made_of("promptfoo", "p.json", as_json({"prompts": [prompt], "tests": [test]}))
    (case,) = suite.cases
    assert (case.user, [message.content for message in case.messages]) == ("Rain?", ["Hello", "Hi!"])


def test_calls_that_stand_in_the_text_of_a_conversation_are_calls() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    said = [("user", "Hello"), ("assistant", json.dumps([call], indent=1)), ("user", "And now?")]
    prompt = json.dumps([{"role": role, "content": text} for role, text in said])
    suite, _ = made_of("promptfoo", "p.json", as_json({"prompts": [prompt], "tests": [{"assert": []}]}))
    _, earlier, result = suite.cases[0].messages
    assert [(each.tool, each.args) for each in earlier.tool_calls] == [("f", {"x": 1})]
    assert (result.role, result.call, result.content) == ("tool", "c1", "")


def test_results_are_cases_with_runs_that_grade() -> None:
    suite, made = made_of("promptfoo", "results.json", as_json(PROMPTFOO_RESULTS))
    assert [case.name for case in suite.cases] == ["Oslo", "Rain in Rome?"]
    oslo, rome = suite.cases
    graded = [run_of(made.file, oslo, run, 0)[2] for run in made.cases[0].runs]
    assert [(each.status, each.trajectory.start and each.trajectory.start.model) for each in graded] == [
        ("passed", "openai:gpt-4o"),
        ("failed", "anthropic:claude-sonnet-4-5"),
    ]
    assert graded[0].trajectory.rounds[0].usage == Usage(20, 10)
    assert graded[0].trajectory.rounds[0].latency_ms == 17
    assert graded[1].trajectory.calls[0].arguments == {"city": "Milan"}
    assert graded[1].trajectory.rounds[0].text == "I look."
    assert "2 results → recordings; promptfoo's verdicts: 1 passed, 1 failed" in map(str, made.cases[0].mapped)
    assert not made.cases[1].runs
    assert "a run is not imported: API error: 401" in [note.why for note in made.cases[1].notes]
    assert rome.response_contains == ("rain",)


def test_a_table_becomes_cases_by_its_map() -> None:
    suite, made = made_of("table", "t.csv", TABLE, FIELDS)
    rain, hello = suite.cases
    assert (rain.user, rain.tags) == ("Is it raining in Oslo?", ("rain", "north"))
    assert rain.expected_calls()[0].tool == "get_weather"
    assert hello.expect_no_calls
    assert [case.place for case in made.cases] == ["line 2", "line 3"]


def test_rows_may_stand_in_a_list_and_fields_inside_others() -> None:
    rows = {"version": "1", "rows": [{"q": "Hi", "expected": {"tools": ["a", "b"]}, "more": 1}, {"expected": 1}]}
    suite, made = made_of("table", "t.json", as_json(rows), {"user": "q", "tool": "expected.tools"})
    assert [call.tool for call in suite.cases[0].expected_calls()] == ["a", "b"]
    assert [note.why for note in made.cases[0].notes] == ["fields without a meaning in --map: more"]
    assert [str(note) for note in made.notes] == [
        "rows[1]: not imported: has no request: the field 'q' is missing or empty"
    ]


EXPECTED = [{"toolName": "a", "input": {"x": 1}}, {"toolName": "b"}]


@pytest.mark.parametrize(
    ("row", "fields", "calls"),
    [
        ({"expected": EXPECTED}, {"tool": "expected.toolName", "args": "expected.input"}, [("a", ["x"]), ("b", None)]),
        ({"expected": []}, {"tool": "expected.toolName", "args": "expected.input"}, []),
        ({"expected": EXPECTED}, {"tool": "expected[1].toolName"}, [("b", None)]),
        (
            {"expected": json.dumps(EXPECTED)},
            {"tool": "expected.0.toolName", "args": "expected.0.input"},
            [("a", ["x"])],
        ),
        ({"expected": {"toolCalls": EXPECTED}}, {"tool": "expected.toolCalls"}, [("a", None), ("b", None)]),
    ],
)
def test_fields_lead_into_lists(row: Any, fields: dict[str, str], calls: list[tuple[str, list[str] | None]]) -> None:
    rows = [{"q": "Hi", **row}, {"q": "Ho", "expected": EXPECTED}]
    suite, _ = made_of("table", "t.json", as_json(rows), {"user": "q", **fields})
    case = suite.cases[0]
    made = [(call.tool, None if call.args is None else [*call.args]) for call in case.expected_calls()]
    assert made == calls and case.expect_no_calls is (not calls)


def test_a_sample_with_instructions_and_a_system_prompt_keeps_both() -> None:
    rows = [
        {"prompt": "Hi", "instructions": "Be brief.", "system": "You help."},
        {"prompt": "Ho", "system": "You help."},
    ]
    fields = fields_of("user=prompt,system=system+instructions")
    suite, made = made_of("table", "t.json", as_json(rows), fields)
    assert [case.system for case in suite.cases] == ["You help.\n\nBe brief.", "You help."]
    assert not any("without a meaning" in note.why for case in made.cases for note in case.notes)


def test_a_column_may_be_empty_and_semicolons_may_separate_columns() -> None:
    fields = {"user": "question", "tool": "tool", "args": "args"}
    suite, _ = made_of("table", "t.csv", b"question,tool,args\nHello,,\nHi,,\n", fields)
    assert [case.expect_no_calls for case in suite.cases] == [True, True]
    suite, _ = made_of("table", "t.csv", b'question;tool;args\n"Hi, you";f;"{""a"": 1}"\n', fields)
    assert (suite.cases[0].user, suite.cases[0].expected_calls()[0].tool) == ("Hi, you", "f")


def test_a_map_that_fits_nothing_is_refused() -> None:
    with pytest.raises(RefusedError, match="'x', which --map names as tool; the fields are: question"):
        made_of("table", "t.csv", TABLE, {"user": "question", "tool": "x"})
    with pytest.raises(RefusedError, match="no row has the field 'x', which --map names as user"):
        made_of("table", "t.csv", TABLE, {"user": "question+x"})
    with pytest.raises(RefusedError, match="the table has no rows"):
        made_of("table", "t.csv", b"question", {"user": "question"})
    with pytest.raises(RefusedError, match="which names the field with the request; the fields are: question"):
        made_of("table", "t.csv", TABLE)
    for words in ("user", "user=", "query=x", "user=a,user=b"):
        with pytest.raises(RefusedError, match="write MEANING=FIELD"):
            fields_of(words)
    assert fields_of("user=a,tool=b.c") == {"user": "a", "tool": "b.c"}
