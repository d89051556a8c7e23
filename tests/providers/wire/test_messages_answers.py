from __future__ import annotations

from typing import Any

import pytest

from tests.providers.wire.reading import Answer, named, read, read_whole
from tests.tables import each_row
from workbench.providers.model import ModelError
from workbench.trajectory.events import JsonValue, Usage

OSLO = '{"city": "Oslo"}'
STOP = {"type": "message_stop"}


def begin(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"content": [], "stop_reason": None, "usage": usage}}


def start(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": f"{kind}_delta", **fields}}


def text(index: int, words: str) -> dict[str, Any]:
    return delta(index, "text", text=words)


def call(index: int, call_id: str = "a") -> dict[str, Any]:
    return start(index, "tool_use", id=call_id, name="get_weather", input={})


def arguments(index: int, piece: str) -> dict[str, Any]:
    return delta(index, "input_json", partial_json=piece)


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def end(reason: str | None = "end_turn", **usage: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def answer(*events: dict[str, Any]) -> Answer:
    return read("anthropic", named(begin(), *events, end(), STOP))


def test_text_comes_piece_by_piece() -> None:
    got = answer(start(0, "text", text=""), text(0, "Hel"), {"type": "ping"}, text(0, "lo"), stop(0))
    assert (got.text, got.end.stop_reason, got.end.provider_state) == ("Hello", "answered", None)


def test_thinking_is_reasoning() -> None:
    got = answer(start(0, "thinking", thinking=""), delta(0, "thinking", thinking="Hm"), stop(0))
    assert got.reasoning == "Hm"


def test_calls_come_in_fragments_also_interleaved() -> None:
    got = answer(
        call(0),
        arguments(0, ""),
        arguments(0, '{"city": "Os'),
        call(1, "b"),
        arguments(1, '{"city": "Rome"}'),
        arguments(0, 'lo"}'),
        stop(1),
        stop(0),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]
    assert got.ids == ["a", "b"]
    assert got.end.stop_reason == "tool calls"


def test_a_call_is_finished_when_its_block_is() -> None:
    got = answer(call(0), arguments(0, OSLO), stop(0), start(1, "text", text="Then"))
    assert [type(event).__name__ for event in got.events[:4]] == [
        "CallStarted",
        "CallArgumentsDelta",
        "CallFinished",
        "TextDelta",
    ]


def test_a_block_may_come_whole_at_its_start() -> None:
    whole = start(1, "tool_use", id="a", name="get_weather", input={"city": "Oslo"})
    got = answer(start(0, "text", text="Look:"), stop(0), whole, stop(1))
    assert (got.text, got.calls) == ("Look:", [("get_weather", {"city": "Oslo"})])


def test_arguments_that_break_off_stay_visible() -> None:
    got = read("anthropic", named(begin(), call(0), arguments(0, '{"city": "Os'), end("max_tokens"), STOP))
    assert got.finished[0].raw == '{"city": "Os'
    assert got.end.stop_reason == "truncated"


@each_row(
    ("reason", "expected"),
    [
        ("end_turn", "answered"),
        ("stop_sequence", "answered"),
        ("something_new", "answered"),
        ("max_tokens", "truncated"),
        ("model_context_window_exceeded", "truncated"),
        ("pause_turn", "answered"),
        ("compaction", "answered"),
        ("refusal", "refused"),
        ("tool_use", "tool calls"),
    ],
)
def test_stop_reasons(reason: str, expected: str) -> None:
    assert read("anthropic", named(begin(), text(0, "a"), end(reason))).end.stop_reason == expected


@pytest.mark.parametrize("ending", [[end()], [STOP], [end(None), STOP]])
def test_one_of_two_marks_ends_an_answer(ending: list[dict[str, Any]]) -> None:
    assert read("anthropic", named(begin(), text(0, "a"), *ending)).text == "a"


def test_a_model_may_say_nothing() -> None:
    assert answer().end.stop_reason == "answered"


def test_usage_is_cumulative_and_counts_the_cache_as_input() -> None:
    opening = begin(input_tokens=10, cache_creation_input_tokens=5, cache_read_input_tokens=3, output_tokens=1)
    ending = end(output_tokens=20, input_tokens=None, output_tokens_details={"thinking_tokens": 6})
    assert read("anthropic", named(opening, text(0, "a"), ending, STOP)).end.usage == Usage(18, 20, 3, 6)


def test_usage_may_be_missing() -> None:
    assert answer(text(0, "a")).end.usage is None


@each_row(
    "odd",
    [
        {"type": "brand_new"},
        delta(9, "input_json", partial_json="{}"),
        delta(9, "citations", citation={}),
        stop(9),
        {"type": "content_block_delta", "index": {}, "delta": None},
        {"type": "message_delta", "delta": None, "usage": None},
    ],
)
def test_what_means_nothing_is_passed_over(odd: dict[str, Any]) -> None:
    got = answer(text(0, "a"), odd, text(0, "b"))
    assert (got.text, got.calls) == ("ab", [])


@each_row(
    ("stream", "message", "passing"),
    [
        ("", "the stream held no answer", True),
        (named({"type": "ping"}), "the stream held no answer", True),
        (named(begin(), text(0, "a")), "ended too early: neither stop_reason nor message_stop", True),
        (named({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "Overloaded", True),
        (named({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}), "reports: slow", True),
        (named({"type": "error", "error": {"type": "api_error", "message": "oh"}}), "reports: oh", True),
        (named({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}), "reports: no", False),
        ("event: error\ndata: {}\n\n", "reports: an error without a message: '{}'", False),
        ("data: {oops\n\n", "not JSON: '{oops'", False),
    ],
)
def test_errors_say_what_came(stream: str, message: str, passing: bool) -> None:
    with pytest.raises(ModelError) as caught:
        read("anthropic", stream)
    assert message in str(caught.value)
    assert caught.value.retryable is passing


def test_a_plain_json_answer_is_read_as_well() -> None:
    content: JsonValue = [
        {"type": "thinking", "thinking": "Hm", "signature": "sig"},
        {"type": "text", "text": "Look:"},
        {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}},
    ]
    got = read_whole(
        "anthropic", {"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    )
    assert (got.reasoning, got.text, got.calls) == ("Hm", "Look:", [("get_weather", {"city": "Oslo"})])
    assert got.end.usage == Usage(3)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}, "reports: no such model"),
        ({"models": []}, "is not an answer"),
        ("hello", "is not an answer"),
    ],
)
def test_other_documents_are_errors(document: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_whole("anthropic", document)
