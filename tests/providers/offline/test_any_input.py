"""Whatever the words, the schemas and the conversation: the offline model answers, and answers the same again."""

from __future__ import annotations

import json
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from tests.providers.offline.asking import Answer, answer_to
from workbench.providers.model import AnswerFinished, ModelRequest
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    JsonValue,
    Message,
    ToolCall,
    ToolDefinition,
)

_PIECES = """
and then , . ? ! 'x y' "Hi there" Seattle New York the weather get set send to from in at of with by about on
5 15 * 23 + 3.5 -7 1,000 99999999999999999999 june 10 June 2026 at 3 pm 2026-13-45 2025-12-01 3:75
@bob a@b.co u-17 owner/name file.txt http://x.y it there result off don't not subject called saying multiply divide
all high open true : ; “ ” ' " ünïcode 東京
"""
_PARAMETER_NAMES = "city to query message a b owner repo due_date timezone user_id limit units tags url"

WORDS = st.sampled_from([*_PIECES.split(), "\n"])
TEXTS = st.text(max_size=60) | st.lists(WORDS, max_size=25).map(" ".join)
NAMES = st.sampled_from(["get_weather", "sendMail", "x", "Divide.Numbers", "search-docs", "Löschen"]) | st.text(
    max_size=12
)
PARAMETER_NAMES = st.sampled_from(_PARAMETER_NAMES.split()) | NAMES
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
SCHEMAS: st.SearchStrategy[JsonValue] = st.deferred(
    lambda: cast(
        "st.SearchStrategy[JsonValue]",
        st.fixed_dictionaries({"type": TYPES | st.lists(TYPES, max_size=3)}, optional=KEYWORDS)
        | st.fixed_dictionaries({"enum": st.lists(JSON, max_size=4)})
        | st.fixed_dictionaries({"anyOf": st.lists(SCHEMAS, max_size=3)})
        | st.fixed_dictionaries({"$ref": st.sampled_from(["#/$defs/A", "#", "#/properties", "other"])})
        | JSON,
    )
)
KEYWORDS: dict[str, st.SearchStrategy[JsonValue]] = {
    "description": TEXTS,
    "format": st.sampled_from(["date", "date-time", "time", "email", "uri", "nonsense"]),
    "enum": st.lists(JSON, max_size=4),
    "minimum": st.integers() | st.text(max_size=2),
    "maxLength": st.integers(min_value=0, max_value=9),
    "items": SCHEMAS,
    "default": JSON,
    "properties": st.dictionaries(PARAMETER_NAMES, SCHEMAS, max_size=3),
    "required": st.lists(PARAMETER_NAMES, max_size=3),
}
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "properties": st.dictionaries(PARAMETER_NAMES, SCHEMAS, max_size=5) | JSON,
        "required": st.lists(PARAMETER_NAMES, max_size=4) | JSON,
        "$defs": st.fixed_dictionaries({"A": SCHEMAS}),
    },
)
TOOLS = st.builds(ToolDefinition, NAMES, TEXTS, PARAMETERS, st.dictionaries(st.just("readOnlyHint"), JSON, max_size=1))
MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), TEXTS)
    | st.builds(
        lambda name, arguments: Message("assistant", "", (ToolCall("c", name, arguments),)),
        NAMES,
        st.dictionaries(PARAMETER_NAMES, JSON, max_size=2),
    )
    | st.builds(lambda content, bad: Message("tool", content, call_id="c", is_error=bad), TEXTS, st.booleans())
    | st.builds(lambda content: Message("tool", json.dumps(content), call_id="c"), JSON),
    max_size=5,
)
REQUESTS = st.builds(
    lambda earlier, user, later, tools: ModelRequest(1, None, (*earlier, Message("user", user), *later), tuple(tools)),
    MESSAGES,
    TEXTS,
    MESSAGES,
    st.lists(TOOLS, max_size=5),
)


def arguments_as_streamed(answer: Answer) -> list[JsonValue]:
    fragments: dict[str, str] = {}
    for event in answer.events:
        if isinstance(event, CallStarted):
            fragments[event.call_id] = ""
        elif isinstance(event, CallArgumentsDelta):
            fragments[event.call_id] += event.fragment
    return [json.loads(text) for text in fragments.values()]


@given(REQUESTS)
def test_every_request_is_answered_to_its_end(request: ModelRequest) -> None:
    answer = answer_to(request)
    last = answer.events[-1]
    assert isinstance(last, AnswerFinished)
    assert last.stop_reason == ("tool calls" if answer.calls else "answered")
    assert bool(answer.text) != bool(answer.calls)
    assert sum(isinstance(event, AnswerFinished) for event in answer.events) == 1


@given(REQUESTS)
def test_the_same_request_gets_the_same_answer(request: ModelRequest) -> None:
    assert answer_to(request).events == answer_to(request).events


@given(REQUESTS)
def test_calls_are_json_objects_for_tools_on_offer_and_stream_as_they_finish(request: ModelRequest) -> None:
    answer = answer_to(request)
    finished = [event for event in answer.events if isinstance(event, CallFinished)]
    assert arguments_as_streamed(answer) == [dict(event.arguments) for event in finished]
    assert {name for name, _ in answer.calls} <= {tool.name for tool in request.tools}
    assert len({event.call_id for event in finished}) == len(finished)


@given(
    TEXTS,
    st.dictionaries(
        st.sampled_from(["city", "count", "ratio", "urgent", "tags", "units", "message"]),
        st.sampled_from(
            [
                {"type": "string"},
                {"type": "integer", "minimum": 0, "maximum": 50},
                {"type": "number"},
                {"type": "boolean"},
                {"type": "array", "items": {"type": "string"}},
                {"enum": ["high", "all", 5, True]},
                {"type": ["string", "null"], "maxLength": 5},
            ]
        ),
    ),
    st.booleans(),
)
def test_arguments_have_the_types_and_choices_of_their_schemas(
    user: str, properties: dict[str, dict[str, JsonValue]], required: bool
) -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {**properties}}
    schema["required"] = [*properties] if required else []
    request = ModelRequest(1, None, (Message("user", f"Send it. {user}"),), (ToolDefinition("send_it", "", schema),))
    for _, arguments in answer_to(request).calls:
        assert set(arguments) <= set(properties)
        for name, value in arguments.items():
            assert_fits(value, properties[name])


def assert_fits(value: JsonValue, schema: dict[str, JsonValue]) -> None:
    match schema:
        case {"enum": list(values)}:
            assert any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)
        case {"type": "integer"}:
            assert isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 50
        case {"type": "number"}:
            assert isinstance(value, int | float) and not isinstance(value, bool)
        case {"type": "boolean"}:
            assert isinstance(value, bool)
        case {"type": "array"}:
            assert isinstance(value, list) and all(isinstance(one, str) for one in value)
        case {"maxLength": int(most)}:
            assert isinstance(value, str) and len(value) <= most
        case _:
            assert isinstance(value, str)
