"""Imported conversations, including requests that our own providers write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exchange.importers.samples import ANTHROPIC, OPENAI, RESPONSES, as_json, as_lines
from tests.strategies import is_json, json_objects
from workbench.config.models import ModelSpec, Provider
from workbench.config.secrets import Secrets
from workbench.exchange.importers.conversations import ImportedCase
from workbench.exchange.importers.forms import format_of, forms_that_fit
from workbench.exchange.importers.import_files import ImportedSuite, make_suite, run_of
from workbench.exchange.importers.messages import conversation_of
from workbench.exchange.importers.source_files import Node, RefusedError, source_of
from workbench.providers.http.endpoints import wire_of
from workbench.providers.model import ModelRequest
from workbench.trajectory.events import JsonValue, Message, ToolCall, ToolDefinition, Usage


def made_of(*values: object, form: str = "openai", lines: bool = False) -> ImportedSuite:
    content = as_lines(*values) if lines else as_json(values[0])
    source = source_of(Path("chats.json"), content)
    return make_suite(format_of(form).read(source), source.name, Path("chats.toml"), Secrets())


def only(made: ImportedSuite) -> ImportedCase:
    (case,) = made.cases
    return case


@pytest.mark.parametrize(
    ("form", "value", "result"), [("openai", OPENAI, '{"rain":true}'), ("anthropic", ANTHROPIC, "rain")]
)
def test_a_conversation_is_a_case_and_a_run_of_it(form: str, value: object, result: str) -> None:
    made = made_of(value, form=form)
    assert made.file.suite is not None
    (case,) = made.file.suite.cases
    assert (case.user, case.system) == ("Is it raining in Oslo?", "Be brief.")
    (expected,) = case.expected_calls()
    assert expected.tool == "get_weather"
    (run,) = only(made).runs
    _, _, graded = run_of(made.file, case, run, 0)
    assert graded.status == "passed"
    trajectory = graded.trajectory
    assert [call.arguments for call in trajectory.calls] == [{"city": "Oslo"}]
    assert trajectory.calls[0].result is not None and trajectory.calls[0].result.content == result
    assert trajectory.final_answer == "Yes."
    assert trajectory.start is not None and [tool.name for tool in trajectory.start.tools] == ["get_weather"]
    assert "the expected calls are those that the run made" in made.file.text


def test_what_came_before_the_last_request_is_the_conversation() -> None:
    messages = [
        *OPENAI["messages"],
        {"role": "user", "content": "And in Rome and Bergen?"},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}},
                {"id": "c2", "function": {"name": "get_weather", "arguments": '{"city": "Ber'}},
            ],
        },
        {"role": "user", "content": "Hello?"},
    ]
    made = made_of({"messages": messages})
    assert made.file.suite is not None
    (case,) = made.file.suite.cases
    assert case.user == "And in Rome and Bergen?"
    assert [message.role for message in case.messages] == ["user", "assistant", "tool", "assistant"]
    assert len(case.expected_calls()) == 1
    notes = [note.why for note in only(made).notes]
    assert "the call of get_weather is not expected: its arguments are JSON that ends too early" in notes
    assert "1 message of the user after it, which no answer followed, left out" in notes
    assert "no definitions of tools: write [[tools]] or [[servers]] into the suite" in notes
    (run,) = only(made).runs
    assert run.rounds[0].calls[0].id == "c1-2", "the id was taken"
    assert run_of(made.file, case, run, 0)[2].trajectory.calls[1].call.raw == '{"city": "Ber'


def test_tools_that_cases_share_stand_once_in_the_suite() -> None:
    other = {**OPENAI, "tools": []}
    made = made_of(OPENAI, OPENAI, other, lines=True)
    assert made.file.suite is not None
    assert [tool.name for tool in made.file.suite.tools] == ["get_weather"]
    assert [case.id for case in made.file.suite.cases] == [f"is-it-raining-in-oslo{end}" for end in ("", "-2", "-3")]
    assert [case.place for case in made.cases] == ["line 1", "line 2", "line 3"]


def test_nobody_asks_anything() -> None:
    with pytest.raises(RefusedError, match="no user message"):
        made_of([{"role": "assistant", "content": "Hi"}])
    made = made_of([{"role": "user", "content": "Hi"}])
    assert made.file.suite is not None
    assert made.file.suite.cases[0].expects_nothing_yet
    assert not only(made).runs


def test_what_is_wrong_is_said_with_its_place() -> None:
    with pytest.raises(RefusedError, match=r"messages\[1\]\.role: not imported: must be a text, not a number"):
        made_of({"messages": [{"role": "user", "content": "Hi"}, {"role": 5}]})
    made = made_of(OPENAI, {"messages": 3}, lines=True)
    assert [str(note) for note in made.notes] == ["line 2.messages: not imported: must be a list, not a number"]


def test_null_that_toml_lacks_is_a_check() -> None:
    arguments = '{"a": null, "b": {"c": null, "d": {"e": 1}}, "f": [1, null]}'
    call = {"id": "c", "function": {"name": "put", "arguments": arguments}}
    made = made_of([{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]}])
    text = " ".join(made.file.text.split())
    assert "a = { equals_null = true }" in text
    assert "has_fields = { c = { equals_null = true }, d = { equals = { e = 1 } } }" in text
    assert "same_elements = [1, { equals_null = true }]" in text


_texts = st.text(min_size=1, max_size=8).filter(str.strip)
_calls = st.lists(st.tuples(st.sampled_from(["get", "put"]), json_objects.filter(is_json)), max_size=3)
_rounds = st.lists(st.tuples(_texts, _calls, st.booleans()), max_size=4)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@given(asked=_texts, rounds=_rounds, tools=st.booleans())
def test_what_a_wire_writes_is_the_same_conversation_when_it_is_read(
    provider: Provider, asked: str, rounds: list[tuple[str, list[tuple[str, dict[str, JsonValue]]], bool]], tools: bool
) -> None:
    messages = [Message("user", asked)]
    number = 0
    for text, made, failed in rounds:
        calls = tuple(ToolCall(f"c{number + at}", tool, arguments) for at, (tool, arguments) in enumerate(made))
        number += len(calls)
        messages.append(Message("assistant", text, calls))
        is_error = failed and provider == "anthropic"  # a tool's message of OpenAI cannot say so
        messages += [Message("tool", f"result of {call.id}", call_id=call.id, is_error=is_error) for call in calls]
        if not calls:
            messages.append(Message("user", text))
    offered = (ToolDefinition("get", "Gets.", {"type": "object", "properties": {}}),) if tools else ()
    spec = ModelSpec("m", provider, "m", "http://localhost")
    body = wire_of(spec).body(ModelRequest(1, "Be brief.", tuple(messages), offered))
    read = conversation_of(Node(json.loads(body)))
    assert read.messages == tuple(messages)
    assert read.system == "Be brief."
    assert [tool["name"] for tool in read.tools] == [tool.name for tool in offered]


def test_a_role_of_any_kind_makes_no_recognition_fail() -> None:
    assert forms_that_fit(source_of(Path("x.json"), b'[{"role": []}]')) == []


def test_items_of_responses_are_a_case_and_a_run_of_it() -> None:
    made = made_of(RESPONSES)
    assert made.file.suite is not None
    (case,) = made.file.suite.cases
    assert (case.user, case.system) == ("Is it raining in Oslo or Rome?", "Be brief.")
    assert [tool.name for tool in made.file.suite.tools] == ["get_weather"]
    (run,) = only(made).runs
    graded = run_of(made.file, case, run, 0)[2]
    first, last = graded.trajectory.rounds
    assert graded.status == "passed"
    assert [(call.arguments, call.result and call.result.content) for call in first.calls] == [
        ({"city": "Oslo"}, "rain"),
        ({"city": "Rome"}, "sun"),
    ]
    assert (first.reasoning, last.text, last.usage) == ("I look.", "In Oslo.", Usage(90, 7, 0, 3))
    assert "# an item of the type 'web_search_call' is the provider's own: left out" in made.file.text


@pytest.mark.parametrize("lines", [True, False])
def test_items_alone_are_a_conversation(lines: bool) -> None:
    items = RESPONSES["request"]["input"]
    made = made_of(*([{"input": items}] if lines else [items]), lines=lines)
    assert only(made).runs[0].rounds[0].calls[1].arguments == {"city": "Rome"}
    with pytest.raises(RefusedError, match="has no user message"):
        made_of(RESPONSES["response"])
