"""Arguments of endpoints that deviate: certain repairs are made and noted, everything else stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.providers.wire.reading import WEATHER, Answer, a_request, a_spec, body_of, data, named, read
from tests.strategies import is_json, json_objects
from workbench.config.models import OWN_URLS
from workbench.limits import MAX_ANSWER_CHARS
from workbench.providers.model import AnswerFinished, AnswerSize, AnswerTooLargeError
from workbench.providers.wire.repairs import (
    CUMULATIVE,
    DETAILS,
    EMPTIED,
    ENCODED,
    ENDED,
    FENCED,
    MARKED,
    REPEATED,
    same_json,
)
from workbench.trajectory.events import (
    REPEATED_KEY,
    CallArgumentsDelta,
    CallFinished,
    Deviation,
    JsonValue,
    Message,
    ToolCall,
)

OSLO = '{"city": "Oslo"}'

objects = json_objects.filter(is_json)
few = settings(max_examples=examples(100))


def chat(*fragments: str) -> Answer:
    head = {"index": 0, "id": "a", "function": {"name": WEATHER.name, "arguments": ""}}
    deltas = [head, *({"index": 0, "function": {"arguments": each}} for each in fragments)]
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"tool_calls": [each]}}]} for each in deltas]
    return read("openai", data(*chunks, {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"))


def messages(*fragments: str) -> Answer:
    block = {"type": "tool_use", "id": "a", "name": WEATHER.name, "input": {}}
    deltas = ({"type": "input_json_delta", "partial_json": each} for each in fragments)
    return read(
        "anthropic",
        named(
            {"type": "message_start", "message": {}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            *({"type": "content_block_delta", "index": 0, "delta": each} for each in deltas),
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ),
    )


def responses(*fragments: str, done: str | None = None) -> Answer:
    whole = "".join(fragments) if done is None else done
    item = {"type": "function_call", "id": "f", "call_id": "a", "name": WEATHER.name}
    kind = "response.function_call_arguments"
    return read(
        "openai-responses",
        named(
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}},
            *({"type": f"{kind}.delta", "output_index": 0, "delta": each} for each in fragments),
            {"type": f"{kind}.done", "output_index": 0, "arguments": whole},
            {"type": "response.output_item.done", "output_index": 0, "item": {**item, "arguments": whole}},
            {"type": "response.completed", "response": {"status": "completed"}},
        ),
    )


every_wire = pytest.mark.parametrize("wire", [chat, messages, responses], ids=["chat", "messages", "responses"])


def repaired_as(answer: Answer, arguments: object, kind: str, raw: str | None) -> None:
    (call,) = answer.finished
    assert same_json(dict(call.arguments), arguments)
    assert (call.raw, call.problem) == (raw, None)
    assert answer.end.deviations == (Deviation(kind, DETAILS[kind], "a"),)


@st.composite
def split(draw: st.DrawFn, text: str) -> list[str]:
    """A text in pieces, none of them empty."""
    cuts = sorted(draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=6)))
    ends = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends)]


@st.composite
def written(draw: st.DrawFn) -> tuple[dict[str, JsonValue], list[str]]:
    """An object, and its text in pieces."""
    value = draw(objects)
    return value, draw(split(json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.none() | st.just(1)))))


def so_far(pieces: Sequence[str]) -> list[str]:
    return ["".join(pieces[: end + 1]) for end in range(len(pieces))]


@every_wire
@few
@given(written())
def test_ordinary_streams_are_never_changed(
    wire: Callable[..., Answer], made: tuple[dict[str, JsonValue], list[str]]
) -> None:
    value, pieces = made
    answer = wire(*pieces)
    (call,) = answer.finished
    assert same_json(dict(call.arguments), value)
    assert (call.raw, call.problem, answer.end.deviations) == (None, None, ())


@every_wire
@few
@given(written().filter(lambda made: len(made[1]) > 1))
def test_arguments_so_far_in_each_chunk(
    wire: Callable[..., Answer], made: tuple[dict[str, JsonValue], list[str]]
) -> None:
    value, pieces = made
    repeated = so_far(pieces)
    if wire is responses:
        repaired_as(responses(*repeated, done=repeated[-1]), value, CUMULATIVE, None)
    else:
        repaired_as(wire(*repeated), value, CUMULATIVE, "".join(repeated))


@every_wire
@few
@given(written())
def test_arguments_once_more_at_the_end(
    wire: Callable[..., Answer], made: tuple[dict[str, JsonValue], list[str]]
) -> None:
    value, pieces = made
    twice = [*pieces, "".join(pieces)]
    repaired_as(wire(*twice), value, REPEATED, "".join(twice))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"city": "Rome", "city": "Oslo"}', {"city": "Oslo"}),
        ('{"to": {"city": "Rome", "c\\u0069ty": "Oslo"}}', {"to": {"city": "Oslo"}}),
        ('[{"a": 1, "a": 1}]', None),
        ('{"at": "10:30"}', None),
        ('{"a": {"b": 1}, "b": {"b": 2}}', None),
    ],
)
@every_wire
def test_a_repeated_key_is_reported(wire: Callable[..., Answer], text: str, value: JsonValue) -> None:
    answer = wire(text[:9], text[9:])
    if value is None:
        assert answer.end.deviations == ()
    else:
        repaired_as(answer, value, REPEATED_KEY, None)


@every_wire
@few
@given(st.data(), objects, st.integers(1, 2))
def test_arguments_encoded_twice(
    wire: Callable[..., Answer], data: st.DataObject, value: dict[str, JsonValue], times: int
) -> None:
    text = json.dumps(value)
    for _ in range(times):
        text = json.dumps(text)
    repaired_as(wire(*data.draw(split(text))), value, ENCODED, text)


@every_wire
@few
@given(st.data(), objects, st.sampled_from(["```json\n{}\n```", "```\n{}```", "```json {} ```", "\n~~~JSON\n{}\n~~~ "]))
def test_arguments_in_a_code_fence(
    wire: Callable[..., Answer], data: st.DataObject, value: dict[str, JsonValue], fence: str
) -> None:
    text = fence.replace("{}", json.dumps(value))
    repaired_as(wire(*data.draw(split(text))), value, FENCED, text)


@every_wire
def test_a_byte_order_mark(wire: Callable[..., Answer]) -> None:
    repaired_as(wire("\ufeff" + OSLO), {"city": "Oslo"}, MARKED, "\ufeff" + OSLO)


@every_wire
@pytest.mark.parametrize("pieces", [["{}", OSLO], ["{}", '{"city":', ' "Oslo"}'], [OSLO, "{}"]], ids=str)
def test_an_empty_object_beside_the_arguments(wire: Callable[..., Answer], pieces: list[str]) -> None:
    repaired_as(wire(*pieces), {"city": "Oslo"}, EMPTIED, "".join(pieces))


@every_wire
@pytest.mark.parametrize("mark", ["</tool_call>", "\n</function>\n</tool_call>", "<|im_end|>", "[/TOOL_CALLS]"])
def test_a_templates_mark_behind_the_arguments(wire: Callable[..., Answer], mark: str) -> None:
    repaired_as(wire(OSLO + mark), {"city": "Oslo"}, ENDED, OSLO + mark)


@every_wire
@pytest.mark.parametrize("text", ["{}" + OSLO + '{"city": "Rome"}', OSLO + "} </b>", OSLO + "</b> or", '{"a": "{}</b>'])
def test_what_is_not_certain_stays_as_it_came(wire: Callable[..., Answer], text: str) -> None:
    (call,) = wire(text).finished
    assert call.problem is not None
    assert call.raw == text


def test_a_last_chunk_with_the_whole_call_is_no_second_call() -> None:
    entry = {"index": 0, "id": "a", "function": {"name": WEATHER.name, "arguments": OSLO}}
    chunks = [{"choices": [{"delta": {"tool_calls": [entry]}}]}] * 2
    repaired_as(read("openai", data(*chunks, "[DONE]")), {"city": "Oslo"}, REPEATED, OSLO * 2)


def test_arguments_that_only_the_final_event_has() -> None:
    item = {"type": "function_call", "id": "f", "call_id": "a", "name": WEATHER.name, "arguments": ""}
    done = {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": OSLO}
    ended = {"type": "response.completed", "response": {"status": "completed"}}
    answer = read(
        "openai-responses",
        named({"type": "response.output_item.added", "output_index": 0, "item": item}, done, ended),
    )
    assert answer.calls == [("get_weather", {"city": "Oslo"})]
    assert answer.end.deviations == ()


@every_wire
@pytest.mark.parametrize(
    "fragments",
    [
        ['{"a": 1}', '{"a": 2}'],
        ['{"a": 1}', '{"a": true}'],
        ['{"a": 1}', " and more"],
        ["[1]"],
        ["[1]", "[1]"],
        ['"text"'],
        ['{"a": 1'],
        ["{", '{"a"', '{"b": 1}'],
        ["```json\n[1]\n```"],
        ["```json\n{}"],
        ["7"],
    ],
    ids=str,
)
def test_what_is_not_certain_stays_broken(wire: Callable[..., Answer], fragments: list[str]) -> None:
    answer = wire(*fragments)
    (call,) = answer.finished
    assert call.problem is not None
    assert (call.arguments, call.raw) == ({}, "".join(fragments))
    assert answer.end.deviations == ()


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        (json.dumps(OSLO), json.dumps(OSLO)),
        (f"```json\n{OSLO}\n```", f"```json\n{OSLO}\n```"),
        (OSLO * 2, '{"city":"Oslo"}'),
        ('{"ci{"city": "Oslo"}', '{"city":"Oslo"}'),
    ],
    ids=["encoded twice", "in a fence", "repeated", "cumulative"],
)
def test_what_the_model_wrote_goes_back(raw: str, sent: str) -> None:
    history = (
        Message("user", "hi"),
        Message("assistant", "", (ToolCall("a", WEATHER.name, {"city": "Oslo"}, raw),)),
        Message("tool", "rain", call_id="a"),
    )
    bodies = {provider: body_of(a_spec(provider), a_request(*history)) for provider in OWN_URLS}
    assert bodies["openai"]["messages"][1]["tool_calls"][0]["function"]["arguments"] == sent
    assert bodies["openai-responses"]["input"][1]["arguments"] == sent
    assert bodies["anthropic"]["messages"][1]["content"][0]["input"] == {"city": "Oslo"}


@pytest.mark.parametrize("wire", [chat, messages, responses])
def test_of_repeated_pieces_only_what_is_new_counts_and_is_shown(wire: Callable[..., Answer]) -> None:
    whole = json.dumps({"text": "It rains. " * 600})
    ends = [*range(4, len(whole), 4), len(whole)]
    pieces = [whole[:end] for end in ends]
    assert sum(map(len, pieces)) > 2 * MAX_ANSWER_CHARS
    answer = responses(*pieces, done=whole) if wire is responses else wire(*pieces)
    size = AnswerSize()
    for event in answer.events:
        if not isinstance(event, AnswerFinished):
            size.add(event)
    shown = [event.fragment for event in answer.events if isinstance(event, CallArgumentsDelta)]
    assert "".join(shown) == whole
    (finished,) = [event for event in answer.events if isinstance(event, CallFinished)]
    assert (finished.arguments, finished.problem) == (json.loads(whole), None)
    assert finished.raw in (None, whole)
    assert [each.kind for each in answer.end.deviations] == [CUMULATIVE]


def test_pieces_that_stop_repeating_count_whole() -> None:
    pieces = ['{"a": "', '{"a": "x', "y" * MAX_ANSWER_CHARS]
    with pytest.raises(AnswerTooLargeError):
        chat(*pieces)
