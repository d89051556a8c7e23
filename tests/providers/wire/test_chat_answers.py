from __future__ import annotations

from typing import Any

import pytest

from tests.providers.wire.reading import Answer, a_request, data, read, read_whole
from tests.tables import each_row
from workbench.providers.model import ModelError
from workbench.providers.wire.repairs import REPEATED_TEXT
from workbench.trajectory.events import Message, ToolCall, ToolDefinition, Usage

OSLO = '{"city": "Oslo"}'
STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def chunk(finish_reason: str | None = None, /, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def call(**entry: Any) -> dict[str, Any]:
    """One fragment of a call: `name` and `arguments` belong to its function."""
    function = {key: entry.pop(key) for key in ("name", "arguments") if key in entry}
    return {**entry, "function": function}


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    return chunk(tool_calls=list(entries))


def answer(*chunks: object) -> Answer:
    return read("openai", data(*chunks, STOP, "[DONE]"))


# Text and reasoning


def test_text_comes_piece_by_piece() -> None:
    got = answer(chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo"))
    assert got.text == "Hello"
    assert [type(event).__name__ for event in got.events] == ["TextDelta", "TextDelta", "AnswerFinished"]
    assert got.end.stop_reason == "answered"
    assert got.end.provider_state is None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_has_two_names(field: str) -> None:
    got = answer(chunk(**{field: "Hm"}), chunk(content="Yes"))
    assert (got.reasoning, got.text) == ("Hm", "Yes")


def test_reasoning_that_comes_under_both_names_is_shown_once() -> None:
    assert answer(chunk(reasoning_content="Hm", reasoning="Hm")).reasoning == "Hm"


def test_details_of_reasoning_are_shown_when_nothing_else_is() -> None:
    detail = {"type": "reasoning.summary", "summary": "Hm"}
    assert answer(chunk(reasoning_details=[detail])).reasoning == "Hm"
    assert answer(chunk(reasoning="Hm", reasoning_details=[detail])).reasoning == "Hm"


def test_content_may_be_a_list_of_parts() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    got = answer(chunk(content=[thinking]), chunk(content=[{"type": "text", "text": "Yes"}]))
    assert (got.reasoning, got.text) == ("Hm", "Yes")


def test_halves_of_a_character_in_different_pieces_come_together() -> None:
    assert answer(chunk(content="a\ud83c"), chunk(content="\udf89b")).text == "a🎉b"


def test_a_refusal_is_text_and_ends_the_answer_as_refused() -> None:
    got = answer(chunk(refusal="I can"), chunk(refusal="not."))
    assert (got.text, got.end.stop_reason) == ("I cannot.", "refused")


SENTENCE = "The weather is fine."


@each_row(
    ("pieces", "text", "is_repaired"),
    [
        (["The wea", "The weather is", SENTENCE], SENTENCE, True),
        (["The wea", "The weather is", SENTENCE, SENTENCE], SENTENCE, True),
        ([SENTENCE, f"{SENTENCE} Bye."], f"{SENTENCE} Bye.", True),
        (["The weather", " is", " fine.", SENTENCE], SENTENCE, True),
        (["\n", "\n", "Done."], "\n\nDone.", False),
        (["\n", "\n"], "\n\n", False),
        (["1", "10", "100"], "110100", False),
        (["ha", "haha"], "hahaha", False),
        ([SENTENCE, SENTENCE, " Twice."], f"{SENTENCE}{SENTENCE} Twice.", False),
        ([SENTENCE] * 5, SENTENCE * 5, False),
        (["The weather", " is", " fine.", "The weather"], f"{SENTENCE}The weather", False),
        (["<think>Is it", "<think>Is it fine?</think>", f"<think>Is it fine?</think>{SENTENCE}"], SENTENCE, True),
    ],
)
def test_a_text_that_is_repeated_is_read_once(pieces: list[str], text: str, is_repaired: bool) -> None:
    got = answer(*(chunk(content=piece) for piece in pieces))
    assert got.text == text
    assert (REPEATED_TEXT in {each.kind for each in got.end.deviations}) == is_repaired


def test_a_last_chunk_may_repeat_the_message() -> None:
    message = {"role": "assistant", "content": SENTENCE}
    end = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    assert answer(chunk(content="The weather"), chunk(content=" is fine."), end).text == SENTENCE


# Calls


def test_calls_come_in_fragments_also_interleaved() -> None:
    got = answer(
        calls(call(index=0, id="a", name="get_weather", arguments="")),
        calls(call(index=1, id="b", name="get_weather", arguments='{"city"')),
        calls(call(index=0, arguments='{"city": ')),
        calls(call(index=1, arguments=': "Rome"}'), call(index=0, arguments='"Oslo"}')),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]
    assert got.ids == ["a", "b"]
    assert got.end.stop_reason == "tool calls"


def test_a_call_of_the_older_form_is_one() -> None:
    got = answer(
        chunk(function_call={"name": "get_weather", "arguments": ""}),
        chunk(function_call={"arguments": OSLO[:5]}),
        chunk("function_call", function_call={"arguments": OSLO[5:]}),
    )
    assert (got.calls, got.end.stop_reason) == ([("get_weather", {"city": "Oslo"})], "tool calls")
    both = call(index=0, id="a", name="get_weather", arguments=OSLO)
    assert answer(chunk(tool_calls=[both], function_call=both["function"])).calls == got.calls


def test_a_name_may_repeat_the_name_so_far() -> None:
    for pieces in (("get_", "weather"), ("get_", "get_weather"), ("get_weather", "get_weather")):
        got = answer(*(calls(call(index=0, id="a", name=piece)) for piece in pieces))
        assert got.calls == [("get_weather", {})], pieces


def test_calls_without_index_in_one_chunk_are_two() -> None:
    got = answer(calls(call(id="a", name="get_time"), call(id="b", name="get_weather", arguments=OSLO)))
    assert got.calls == [("get_time", {}), ("get_weather", {"city": "Oslo"})]


def test_fragments_without_index_continue_the_call_of_their_id_or_the_latest() -> None:
    got = answer(
        calls(call(id="a", name="get_weather", arguments='{"city"')),
        calls(call(arguments=": ")),
        calls(call(id="a", arguments='"Oslo"}')),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"})]


def test_calls_without_index_and_id_are_told_apart_by_place_and_name() -> None:
    together = answer(calls(call(name="get_time"), call(name="get_time")))
    apart = answer(calls(call(name="get_time")), calls(call(name="get_weather", arguments=OSLO)))
    assert together.calls == [("get_time", {}), ("get_time", {})]
    assert together.ids == ["call-1", "call-2"]
    assert apart.calls == [("get_time", {}), ("get_weather", {"city": "Oslo"})]


def test_index_0_with_a_new_id_is_a_new_call() -> None:
    got = answer(
        calls(call(index=0, id="a", name="get_weather", arguments=OSLO)),
        calls(call(index=0, id="b", name="get_weather", arguments='{"city":')),
        calls(call(index=0, arguments=' "Rome"}')),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]


def test_index_0_with_another_whole_call_is_a_new_call_without_ids_too() -> None:
    got = answer(
        calls(call(index=0, name="get_weather", arguments=OSLO)),
        calls(call(index=0, name="get_weather", arguments=OSLO)),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"})] * 2


def test_whole_calls_that_share_index_and_id_are_two() -> None:
    entry = call(index=0, id="a", name="get_weather", arguments=OSLO)
    got = answer(calls(entry, entry))
    assert got.calls == [("get_weather", {"city": "Oslo"})] * 2
    assert got.ids == ["a", "call-2"]


def test_a_name_that_is_repeated_with_every_fragment_is_one_call() -> None:
    got = answer(
        calls(call(index=0, id="a", name="get_weather", arguments='{"city":')),
        calls(call(index=0, id="a", name="get_weather", arguments=' "Oslo"}')),
        calls(call(index=0, name="get_weather", arguments="")),
    )
    assert got.calls == [("get_weather", {"city": "Oslo"})]


def test_a_name_may_follow_empty_ones() -> None:
    got = answer(
        calls(call(index=0, id="a", name="")),
        calls(call(index=0, name=None, arguments="")),
        calls(call(index=0, name="get_time", arguments="{}")),
    )
    assert got.calls == [("get_time", {})]


def test_a_name_may_come_in_two_pieces() -> None:
    got = answer(calls(call(index=0, id="a", name="get_")), calls(call(index=0, name="time", arguments="{}")))
    assert got.calls == [("get_time", {})]


def test_a_whole_call_in_one_delta_counts_whatever_the_finish_reason_says() -> None:
    got = answer(calls(call(index=0, id="a", name="get_weather", arguments=OSLO)))
    assert got.end.stop_reason == "tool calls"
    assert got.fragments("a") == OSLO


@pytest.mark.parametrize(
    ("arguments", "read_as"), [({"city": "Oslo"}, {"city": "Oslo"}), (None, {}), ({}, {}), ("", {})]
)
def test_arguments_may_be_an_object_or_nothing(arguments: object, read_as: dict[str, Any]) -> None:
    assert answer(calls(call(index=0, id="a", name="get_weather", arguments=arguments))).calls == [
        ("get_weather", read_as)
    ]


def test_broken_arguments_stay_visible() -> None:
    (finished,) = answer(calls(call(index=0, id="a", name="get_weather", arguments='{"city": "Os'))).finished
    assert (finished.arguments, finished.raw) == ({}, '{"city": "Os')
    assert finished.problem == "JSON that ends too early"


def test_duplicate_ids_and_those_of_earlier_rounds_become_unique() -> None:
    history = Message("assistant", "", (ToolCall("a", "get_time"),))
    entries = [call(index=number, id=call_id, name="get_time") for number, call_id in enumerate(["a", "b", "b"])]
    got = read("openai", data(calls(*entries), STOP), a_request(history, calls_before=1))
    assert got.ids == ["call-2", "b", "call-4"]


def test_names_are_mapped_back() -> None:
    request = a_request(tools=[ToolDefinition("home.set_tv")])
    got = read("openai", data(calls(call(index=0, id="a", name="home_set_tv", arguments="{}")), STOP), request)
    assert got.calls == [("home.set_tv", {})]


# Ends and usage


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", "answered"),
        ("length", "truncated"),
        ("MAX_TOKENS", "truncated"),
        ("model_context_window_exceeded", "truncated"),
        ("content_filter", "refused"),
        ("sensitive", "refused"),
        ("content_filter: PROHIBITED_CONTENT", "refused"),
        ("tool_calls", "tool calls"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "tool calls"),
        ("something new", "answered"),
    ],
)
def test_finish_reasons(reason: str, stop: str) -> None:
    assert read("openai", data(chunk(content="a"), chunk(reason))).end.stop_reason == stop


def test_a_truncated_answer_with_calls_is_truncated() -> None:
    entry = call(index=0, id="a", name="get_weather", arguments='{"ci')
    assert read("openai", data(calls(entry), chunk("length"))).end.stop_reason == "truncated"


@pytest.mark.parametrize("end", [[STOP], ["[DONE]"], [STOP, "[DONE]"]])
def test_one_of_two_marks_ends_an_answer(end: list[object]) -> None:
    assert read("openai", data(chunk(content="a"), *end)).text == "a"


def test_a_model_may_say_nothing() -> None:
    got = answer(chunk(role="assistant", content=""))
    assert (got.text, got.end.stop_reason) == ("", "answered")


def test_usage_is_taken_from_the_last_chunk_that_has_it() -> None:
    got = read(
        "openai",
        data(
            {**chunk(content="a"), "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
            {**STOP, "usage": None},
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 10,
                    "completion_tokens": 7,
                    "prompt_tokens_details": {"cached_tokens": 4},
                    "completion_tokens_details": {"reasoning_tokens": 2},
                },
            },
            "[DONE]",
        ),
    )
    assert got.end.usage == Usage(10, 7, 4, 2)


def test_usage_may_be_partial_odd_or_missing() -> None:
    assert answer({**chunk(content="a"), "usage": {"prompt_tokens": 3, "completion_tokens": None}}).end.usage == Usage(
        3
    )
    assert answer({**chunk(content="a"), "usage": {"prompt_tokens": "3", "completion_tokens": -1}}).end.usage == Usage()
    assert answer({**chunk(content="a"), "usage": {"prompt_cache_hit_tokens": 2}}).end.usage == Usage(0, 0, 2)
    assert answer(chunk(content="a")).end.usage is None


# Ignored parts


@each_row(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{"index": 0, "delta": None}]},
        {"choices": [{"index": 1, "delta": {"content": "the second choice"}}]},
        {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None, "unheard_of": 1}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [None, "x"], "content": 5}}]},
        {"unheard_of": True},
        "null",
        '"keep-alive"',
        "",
    ],
)
def test_what_means_nothing_is_passed_over(odd: object) -> None:
    got = answer(chunk(content="a"), odd, chunk(content="b"))
    assert (got.text, got.calls) == ("ab", [])


def test_only_the_first_choice_of_a_chunk_counts() -> None:
    both = [{"index": 1, "delta": {"content": "second"}}, {"index": 0, "delta": {"content": "first"}}]
    assert answer({"choices": both}).text == "first"


# Errors


@each_row(
    ("stream", "message", "passing"),
    [
        ("", "the stream held no answer", True),
        (": OPENROUTER PROCESSING\n\n", "the stream held no answer", True),
        (data("[DONE]"), "the stream held no answer", True),
        (data({"choices": [], "usage": {"prompt_tokens": 1}}, "[DONE]"), "the stream held no answer", True),
        (data(chunk(content="a")), "mine ended too early: neither finish_reason nor [DONE]", True),
        (data(chunk(content="a"), "{oops"), "contains something that is not JSON: '{oops'", False),
        (data("<html>\x1b[31m" + "x" * 200), "not JSON: '<html> [31m" + "x" * 68 + "…'", False),
        (data(chunk("error")), "ended its answer early: finish_reason error", True),
        (data(chunk("abort")), "ended its answer early: finish_reason abort", True),
        (data({"error": {"message": "out of memory"}}), "mine reports: out of memory", False),
        (data({"error": "out of memory"}), "mine reports: out of memory", False),
        (data({"error": {"message": "slow down", "code": 429}}), "slow down", True),
        (data({"error": {"message": "bad gateway", "code": "502"}}), "bad gateway", True),
        (data({"error": {"message": "no money", "code": "insufficient_quota", "status": 429}}), "no money", False),
        (data({**chunk("error"), "error": {"code": 502, "message": "upstream"}}), "reports: upstream", True),
        (data({"choices": [{"index": 0, "error": {"code": 400, "message": "inner"}}]}), "reports: inner", False),
        (data({"object": "error", "message": "too long", "code": 400}), "reports: too long", False),
        (data([{"error": {"message": "in a list"}}]), "reports: in a list", False),
        ('event: error\ndata: {"message": "bare", "code": 500}\n\n', "reports: bare", True),
        ("event: error\ndata: Internal failure\n\n", "reports: Internal failure", False),
        ('{"error": "no data field"}\n', "reports: no data field", False),
    ],
)
def test_errors_say_what_came(stream: str, message: str, passing: bool) -> None:
    with pytest.raises(ModelError) as caught:
        read("openai", stream)
    assert message in str(caught.value)
    assert caught.value.retryable is passing


# Whole documents


def test_a_plain_json_answer_is_read_as_well() -> None:
    message = {
        "role": "assistant",
        "content": "Look:",
        "reasoning": "Hm",
        "tool_calls": [call(id="a", name="get_weather", arguments=OSLO), call(id="b", name="get_time", arguments="{}")],
    }
    got = read_whole(
        "openai",
        {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        },
    )
    assert (got.text, got.reasoning) == ("Look:", "Hm")
    assert got.calls == [("get_weather", {"city": "Oslo"}), ("get_time", {})]
    assert got.end.usage == Usage(3, 4)


@each_row(
    ("document", "message"),
    [
        ({"error": {"message": "no such model"}}, "mine reports: no such model"),
        ({"error": "no such model"}, "mine reports: no such model"),
        ({"object": "error", "message": "no such model"}, "mine reports: no such model"),
        (
            {"models": []},
            "is not an answer: '{\"models\": []}' (is http://localhost:1/v1 the base URL of the Chat Completions",
        ),
        ([], "is not an answer"),
        (None, "is not an answer"),
        ({"choices": [None]}, "held no answer"),
    ],
)
def test_other_documents_are_errors(document: Any, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_whole("openai", document)
    assert message in str(caught.value)
