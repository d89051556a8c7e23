"""The offline model in chains: one step after another, continuing from earlier results."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import assume, given

from tests.providers.offline.asking import Call, answer_to, ask, choice, converse, number, text, tool
from tests.providers.offline.test_any_input import REQUESTS
from workbench.engine.turns import CONTINUE
from workbench.providers.model import ModelRequest
from workbench.providers.offline.model import NOTHING_FITS
from workbench.trajectory.events import JsonValue, Message, ToolCall

CALCULATE = tool(
    "calculate", "Arithmetic.", operation=choice("add", "subtract", "multiply", "divide"), a=number(), b=number()
)
SEARCH = tool("search_docs", "Search the company's documents.", query=text("Words to look for"))
TASK = tool("create_task", "Create a task.", title=text("Title"))
WEATHER = tool("get_weather", "Current weather.", city=text())
LIST = tool("list_tasks", "List all tasks.")
ALL = (CALCULATE, SEARCH, TASK, WEATHER, LIST)

MULTIPLY: Call = ("calculate", {"operation": "multiply", "a": 15, "b": 23})
DIVIDE: Call = ("calculate", {"operation": "divide", "a": 345, "b": 5})
REQUEST = Message("user", "Calculate 15 * 23, then divide the result by 5")
GO_ON = Message("user", CONTINUE)


def made(call: Call, answer: str, *, failed: bool = False, call_id: str = "c1") -> tuple[Message, Message]:
    return (
        Message("assistant", "", (ToolCall(call_id, *call),)),
        Message("tool", answer, call_id=call_id, is_error=failed),
    )


def calls_after(*messages: Message) -> list[Call]:
    return answer_to(ModelRequest(2, None, messages, ALL)).calls


def say(name: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
    return 345


def test_what_comes_after_then_comes_in_a_step_of_its_own() -> None:
    rounds, _ = converse(
        "Calculate 15 * 23, then search the documents for 'travel', and finally create a task called 'Pay'",
        ALL,
        say,
    )
    assert [[name for name, _ in calls] for calls in rounds] == [["calculate"], ["search_docs"], ["create_task"]]


def test_what_is_joined_to_it_comes_with_it() -> None:
    rounds, _ = converse("Weather in Paris. Then create a task called 'Pack' and search for 'travel'", ALL, say)
    assert [[name for name, _ in calls] for calls in rounds] == [["get_weather"], ["create_task", "search_docs"]]


def test_told_to_go_on_it_does_what_is_left_of_the_request() -> None:
    answered = Message("assistant", "That makes 345.")
    assert calls_after(REQUEST, *made(MULTIPLY, "345"), answered, GO_ON) == [DIVIDE]


@pytest.mark.parametrize("said", [CONTINUE, "Go on.", "OK, please continue.", "Yes, go ahead with the next step!"])
def test_to_go_on_is_no_request(said: str) -> None:
    before = (Message("user", "Weather in Paris?"), *made(("get_weather", {"city": "Paris"}), "rain"))
    answer = answer_to(ModelRequest(2, None, (*before, Message("assistant", "Rain."), Message("user", said)), ALL))
    assert (answer.calls, answer.text) == ([], "get_weather(Paris): rain")


def test_to_go_on_with_something_else_is_one() -> None:
    assert calls_after(REQUEST, *made(MULTIPLY, "345"), Message("user", "Continue with the weather in Oslo")) == [
        ("get_weather", {"city": "Oslo"})
    ]


def test_to_go_on_is_one_where_a_tool_is_for_that() -> None:
    playback = tool("continue_playback", "Continue playing the music.")
    assert ask("Continue", playback, before=(Message("user", "Hello!"),)).calls == [("continue_playback", {})]


def test_told_to_go_on_first_of_all_it_has_nothing_to_do() -> None:
    assert ask(CONTINUE, CALCULATE, SEARCH).text == NOTHING_FITS


def test_a_call_that_failed_is_tried_again_only_when_it_is_told_to_go_on() -> None:
    failed = made(MULTIPLY, "503", failed=True)
    assert calls_after(REQUEST, *failed) == []
    assert calls_after(REQUEST, *failed, Message("assistant", "503"), GO_ON) == [MULTIPLY]
    again = made(MULTIPLY, "345", call_id="c2")
    assert calls_after(REQUEST, *failed, Message("assistant", "503"), GO_ON, *again) == [DIVIDE]


def test_a_call_that_someone_changed_was_made_all_the_same() -> None:
    changed: Call = ("calculate", {"operation": "multiply", "a": 15, "b": 30})
    by_five: Call = ("calculate", {"operation": "divide", "a": 450, "b": 5})
    assert calls_after(REQUEST, *made(changed, "450")) == [by_five]
    assert calls_after(REQUEST, *made(changed, "450"), *made(by_five, "90", call_id="c2")) == []


@pytest.mark.parametrize(
    ("follow_up", "arguments"),
    [
        ("Now divide the result by 5", {"operation": "divide", "a": 345, "b": 5}),
        ("Divide it by 5", {"operation": "divide", "a": 345, "b": 5}),
        ("And then add 25", {"operation": "add", "a": 345, "b": 25}),
        ("What is the result of 2 + 3?", {"operation": "add", "a": 2, "b": 3}),
    ],
)
def test_a_message_that_follows_up_takes_the_last_result(follow_up: str, arguments: dict[str, JsonValue]) -> None:
    before = (Message("user", "Calculate 15 * 23"), *made(MULTIPLY, '{"result": 345}'))
    assert calls_after(*before, Message("user", follow_up)) == [("calculate", arguments)]


def test_a_result_that_failed_is_not_taken() -> None:
    before = (Message("user", "Calculate 15 * 23"), *made(MULTIPLY, "error 42", failed=True))
    assert calls_after(*before, Message("user", "Now divide the result by 5")) == []


@given(REQUESTS)
def test_to_be_told_to_go_on_changes_nothing_where_nothing_failed(request: ModelRequest) -> None:
    assume(not any(message.is_error for message in request.messages))
    told = ModelRequest(2, None, (*request.messages, GO_ON), request.tools)
    assert answer_to(told).events == answer_to(ModelRequest(2, None, request.messages, request.tools)).events
