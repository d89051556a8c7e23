from __future__ import annotations

from typing import Any

import pytest

from tests.providers.wire.reading import Answer, named, read, read_whole
from tests.tables import each_row
from workbench.providers.model import ModelError
from workbench.trajectory.events import Usage

OSLO = '{"city": "Oslo"}'
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "get_weather", "arguments": OSLO}
MESSAGE = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hello"}]}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm"}],
    "encrypted_content": "gAAA",
    "content": None,
}
USAGE = {
    "input_tokens": 10,
    "output_tokens": 7,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens_details": {"reasoning_tokens": 2},
}


def event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def added(index: int, item: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return event("output_item.added", output_index=index, item={**item, **changes})


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return event("output_item.done", output_index=index, item=item)


def completed(status: str = "completed", **response: Any) -> dict[str, Any]:
    return event(status, response={"status": status, "error": None, **response})


def answer(*events: dict[str, Any]) -> Answer:
    return read("openai-responses", named(event("created", response={}), *events, completed()))


def test_text_comes_piece_by_piece() -> None:
    got = answer(
        added(0, MESSAGE, content=[]),
        event("output_text.delta", output_index=0, delta="Hel"),
        event("output_text.delta", output_index=0, delta="lo"),
        event("output_text.done", output_index=0, text="Hello"),
        done(0, MESSAGE),
    )
    assert (got.text, got.end.stop_reason) == ("Hello", "answered")


@pytest.mark.parametrize("kind", ["reasoning_summary_text", "reasoning_text"])
def test_reasoning_comes_as_summary_or_as_it_is(kind: str) -> None:
    got = answer(
        event("reasoning_summary_part.added", output_index=0, summary_index=0),
        event(f"{kind}.delta", output_index=0, delta="Hm"),
        event("reasoning_summary_part.added", output_index=0, summary_index=1),
        event(f"{kind}.delta", output_index=0, delta="Ah"),
        done(0, REASONING),
    )
    assert got.reasoning == "Hm\n\nAh"


def test_a_refusal_is_text_and_ends_the_answer_as_refused() -> None:
    got = answer(event("refusal.delta", output_index=0, delta="No."), event("refusal.done", output_index=0))
    assert (got.text, got.end.stop_reason) == ("No.", "refused")


def test_calls_come_in_fragments_also_interleaved() -> None:
    got = answer(
        added(0, CALL, arguments=""),
        added(1, CALL, arguments="", call_id="b", id="fc_2"),
        event("function_call_arguments.delta", output_index=0, delta='{"city": '),
        event("function_call_arguments.delta", output_index=1, delta='{"city": "Ro'),
        event("function_call_arguments.delta", output_index=0, delta='"Oslo"}'),
        event("function_call_arguments.done", output_index=0, arguments=OSLO),
        done(0, CALL),
        event("function_call_arguments.delta", output_index=1, delta='me"}'),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]
    assert got.ids == ["a", "b"]
    assert got.fragments("a") == OSLO
    assert got.end.stop_reason == "tool calls"


def test_items_that_come_whole_need_no_deltas() -> None:
    got = answer(done(0, REASONING), done(1, MESSAGE), done(2, CALL))
    assert (got.reasoning, got.text, got.calls) == ("Hm", "Hello", [("get_weather", {"city": "Oslo"})])
    assert got.fragments("a") == OSLO


def test_a_refusal_may_come_whole() -> None:
    item = {"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}
    got = answer(done(0, item))
    assert (got.text, got.end.stop_reason) == ("No.", "refused")


def test_items_may_stand_in_the_last_event_only() -> None:
    stream = named(completed(output=[REASONING, MESSAGE, CALL]))
    got = read("openai-responses", stream)
    assert (got.reasoning, got.text, got.calls) == ("Hm", "Hello", [("get_weather", {"city": "Oslo"})])


def test_items_that_came_are_not_said_again_at_the_end() -> None:
    events = [event("output_text.delta", output_index=0, delta="Hello"), added(1, CALL), done(2, REASONING)]
    got = read("openai-responses", named(*events, completed(output=[MESSAGE, CALL, REASONING])))
    assert (got.reasoning, got.text, len(got.calls)) == ("Hm", "Hello", 1)


def test_several_items_of_a_kind_may_stand_in_the_last_event_only() -> None:
    nameless = {**CALL, "call_id": None}
    stream = named(completed(output=[MESSAGE, MESSAGE, CALL, CALL, nameless, nameless]))
    got = read("openai-responses", stream)
    assert (got.text, got.ids) == ("HelloHello", ["a", "call-2", "call-3", "call-4"])


def test_a_call_that_only_the_last_event_holds_is_not_lost() -> None:
    got = read("openai-responses", named(done(0, CALL), completed(output=[CALL, {**CALL, "call_id": "b"}])))
    assert got.ids == ["a", "b"]


def test_items_without_output_index_are_told_apart_by_their_ids() -> None:
    got = answer(
        event("output_item.added", item={**CALL, "arguments": ""}),
        event("output_item.added", item={**CALL, "arguments": "", "id": "fc_2", "call_id": "b"}),
        event("function_call_arguments.delta", item_id="fc_2", delta='{"city": "Rome"}'),
        event("function_call_arguments.delta", item_id="fc_1", delta=OSLO),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]


def test_an_output_index_that_is_used_again_is_a_new_item() -> None:
    second = {**CALL, "call_id": "b", "id": "fc_2"}
    got = answer(added(0, CALL), done(0, CALL), added(0, second), done(0, second))
    assert got.ids == ["a", "b"]


def test_the_arguments_at_the_end_are_what_counts() -> None:
    got = answer(
        added(0, CALL, arguments=""), event("function_call_arguments.delta", output_index=0, delta="{"), done(0, CALL)
    )
    assert got.calls == [("get_weather", {"city": "Oslo"})]


def test_usage_has_all_counts() -> None:
    stream = named(event("output_text.delta", output_index=0, delta="a"), completed(usage=USAGE))
    assert read("openai-responses", stream).end.usage == Usage(10, 7, 4, 2)


@each_row(
    ("end", "stop"),
    [
        (completed(), "answered"),
        (completed("incomplete", incomplete_details={"reason": "max_output_tokens"}), "truncated"),
        (completed("incomplete", incomplete_details={"reason": "content_filter"}), "refused"),
        (completed("incomplete"), "truncated"),
        (event("completed", response={"status": "incomplete"}), "truncated"),
        (event("completed"), "answered"),
    ],
)
def test_ends(end: dict[str, Any], stop: str) -> None:
    stream = named(event("output_text.delta", output_index=0, delta="a"), end)
    assert read("openai-responses", stream).end.stop_reason == stop


def test_unknown_events_and_items_are_passed_over() -> None:
    search = {"type": "web_search_call", "id": "ws_1"}
    got = answer(event("brand_new.delta", delta="x"), added(0, search), done(0, search), done(1, MESSAGE))
    assert got.text == "Hello"


def test_a_model_may_say_nothing() -> None:
    assert answer().end.stop_reason == "answered"


@each_row(
    ("stream", "message", "passing"),
    [
        ("", "the stream held no answer", True),
        (named(event("created", response={})), "ended too early: neither response.completed", True),
        (
            named(event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "oh"}})),
            "mine reports: oh",
            True,
        ),
        (
            named(event("failed", response={"error": {"code": "invalid_prompt", "message": "no"}})),
            "mine reports: no",
            False,
        ),
        (named({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}), "mine reports: slow", True),
        (named(completed("cancelled")), "ended its answer early: the response was cancelled", True),
        ("data: {oops\n\n", "not JSON: '{oops'", False),
    ],
)
def test_errors_say_what_came(stream: str, message: str, passing: bool) -> None:
    with pytest.raises(ModelError) as caught:
        read("openai-responses", stream)
    assert message in str(caught.value)
    assert caught.value.retryable is passing


def test_a_plain_json_answer_is_read_as_well() -> None:
    got = read_whole("openai-responses", {"status": "completed", "output": [MESSAGE, CALL], "usage": USAGE})
    assert (got.text, got.calls) == ("Hello", [("get_weather", {"city": "Oslo"})])
    assert got.end.usage == Usage(10, 7, 4, 2)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"error": {"message": "no such model"}}, "mine reports: no such model"),
        ({"status": "failed", "output": [], "error": {"message": "oh"}}, "mine reports: oh"),
        ({"status": "queued", "output": []}, "ended too early"),
        ({"models": []}, "is not an answer"),
    ],
)
def test_other_documents_are_errors(document: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_whole("openai-responses", document)
