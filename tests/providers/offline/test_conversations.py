from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.providers.offline.asking import ToolFailedError, answer_to, ask, choice, converse, number, text, tool
from workbench.providers.model import ModelRequest
from workbench.providers.offline.model import NO_TOOLS, NOTHING_FITS
from workbench.trajectory.events import JsonValue, Message, ToolCall

WEATHER = tool("get_weather", "Current weather.", city=text())
CALCULATE = tool(
    "calculate", "Arithmetic.", operation=choice("add", "subtract", "multiply", "divide"), a=number(), b=number()
)
MESSAGE = tool("send_dm", "Send a direct message to a user.", username=text(), message=text())
LIGHTS = tool("set_lights", "Set the lights of a room.", room=text())
DOOR = tool("lock_door", "Lock a door.", door=choice("front", "back"))


def working(name: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
    if name != "calculate":
        return {"ok": True, "conditions": "rain"}
    match arguments:
        case {"operation": operation, "a": float() | int() as a, "b": float() | int() as b}:
            return {
                "result": {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / (b or 1)}[str(operation)]
            }
    raise ToolFailedError("unreadable")


def test_cities_strung_together_become_several_calls() -> None:
    assert ask("Compare the weather in Seattle, Portland and Boise", WEATHER).calls == [
        ("get_weather", {"city": "Seattle"}),
        ("get_weather", {"city": "Portland"}),
        ("get_weather", {"city": "Boise"}),
    ]
    assert [arguments for _, arguments in ask("weather in tokyo and paris", WEATHER).calls] == [
        {"city": "tokyo"},
        {"city": "paris"},
    ]
    assert [arguments for _, arguments in ask("Lock the front and back doors", DOOR).calls] == [
        {"door": "front"},
        {"door": "back"},
    ]


def test_numbers_that_belong_to_one_call_stay_together() -> None:
    assert ask("Add 5 and 10", CALCULATE).calls == [("calculate", {"operation": "add", "a": 5, "b": 10})]


def test_two_tools_are_called_for_two_requests() -> None:
    assert ask("Turn off the lights in the kitchen and lock the front door", DOOR, LIGHTS).calls == [
        ("set_lights", {"room": "kitchen"}),
        ("lock_door", {"door": "front"}),
    ]


def test_what_needs_a_result_waits_for_it() -> None:
    rounds, answer = converse("Multiply 15 by 23, then divide the result by 5", [CALCULATE], working)
    assert rounds == [
        [("calculate", {"operation": "multiply", "a": 15, "b": 23})],
        [("calculate", {"operation": "divide", "a": 345, "b": 5})],
    ]
    assert "69" in answer


@pytest.mark.parametrize(
    ("request_text", "second"),
    [
        ("Calculate 5 * 10, then add 25", {"operation": "add", "a": 50, "b": 25}),
        ("Calculate 5 * 10. Then subtract 7 from the result.", {"operation": "subtract", "a": 50, "b": 7}),
        ("Calculate 5 * 10 and divide it by 2", {"operation": "divide", "a": 50, "b": 2}),
    ],
)
def test_the_result_takes_its_place_among_the_numbers(request_text: str, second: dict[str, JsonValue]) -> None:
    rounds, _ = converse(request_text, [CALCULATE], working)
    assert rounds[1:] == [[("calculate", second)]]


def test_what_needs_no_result_is_called_at_once() -> None:
    rounds, _ = converse("Add 2 and 3, then multiply the result by 4. Weather in Paris?", [CALCULATE, WEATHER], working)
    assert [[name for name, _ in calls] for calls in rounds] == [["calculate", "get_weather"], ["calculate"]]


def test_a_result_may_be_the_text_of_the_next_call() -> None:
    rounds, _ = converse("Get the weather in Paris and send it to @alice", [WEATHER, MESSAGE], working)
    assert rounds[1] == [("send_dm", {"username": "alice", "message": "ok true, conditions rain"})]


def test_a_result_may_hold_the_parameter_of_the_next_call_by_name() -> None:
    search = tool("search_books", "Search books.", query=text())
    details = tool("get_details", "Details of a book.", bookId=text())
    rounds, _ = converse(
        "Search books about whales, then get its details",
        [search, details],
        lambda name, arguments: [{"book_id": "b-17", "title": "Moby Dick"}],
    )
    assert rounds == [[("search_books", {"query": "whales"})], [("get_details", {"bookId": "b-17"})]]


def test_after_the_results_it_answers_with_them() -> None:
    rounds, answer = converse("Weather in Paris?", [WEATHER], working)
    assert len(rounds) == 1
    assert answer == "get_weather(Paris): ok true, conditions rain"


def test_a_tool_error_is_reported_and_not_tried_again() -> None:
    def failing(name: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
        raise ToolFailedError("503 Service Unavailable")

    rounds, answer = converse("Multiply 15 by 23, then divide the result by 5", [CALCULATE], failing)
    assert len(rounds) == 1
    assert answer == "calculate failed: 503 Service Unavailable"


def test_without_a_result_message_it_says_so() -> None:
    call = ToolCall("c1", "get_weather", {"city": "Paris"})
    messages = (Message("user", "Weather in Paris?"), Message("assistant", "", (call,)))
    assert answer_to(ModelRequest(2, None, messages, (WEATHER,))).text == "get_weather gave no result."


def test_a_long_result_is_told_in_short() -> None:
    _, answer = converse("Weather in Paris?", [WEATHER], lambda name, arguments: "word " * 1000)
    assert answer.startswith("get_weather(Paris): word word") and answer.endswith("…") and len(answer) < 450


def test_a_call_is_never_repeated() -> None:
    rounds, _ = converse("Weather in Paris, and then the weather in Paris", [WEATHER], working)
    assert rounds == [[("get_weather", {"city": "Paris"})]]


def test_there_means_the_place_spoken_of_before() -> None:
    before = (Message("user", "I'm traveling to Tokyo next week."), Message("assistant", "A great destination!"))
    assert ask("What about the weather there?", WEATHER, before=before).calls == [("get_weather", {"city": "Tokyo"})]


def test_the_latest_fitting_word_is_meant() -> None:
    before = (Message("user", "I was in Oslo."), Message("user", "I am in Paris."), Message("assistant", "Noted."))
    assert ask("Weather there?", WEATHER, before=before).calls == [("get_weather", {"city": "Paris"})]


def test_without_a_word_that_refers_back_nothing_is_taken_from_before() -> None:
    assert ask("What's the weather?", WEATHER, before=(Message("user", "I am in Paris."),)).calls == []


def test_it_may_stand_for_something_earlier_in_the_same_request() -> None:
    get = tool("get_user", "Show a user.", user_id=text())
    delete = tool("delete_user", "Delete a user.", user_id=text())
    assert ask("Show user u-17 and delete that user", get, delete).calls == [
        ("get_user", {"user_id": "u-17"}),
        ("delete_user", {"user_id": "u-17"}),
    ]


def test_a_bare_follow_up_asks_for_the_same_tool_again() -> None:
    call = ToolCall("c1", "get_weather", {"city": "Paris"})
    before = (
        Message("user", "Weather in Paris?"),
        Message("assistant", "", (call,)),
        Message("tool", json.dumps("rain"), call_id="c1"),
        Message("assistant", "Rain."),
    )
    assert ask("And in Oslo?", WEATHER, CALCULATE, before=before).calls == [("get_weather", {"city": "Oslo"})]


def test_of_tools_that_fit_alike_the_one_whose_arguments_are_all_given_is_called() -> None:
    forecast = tool("weather_forecast", "Weather in a city.", city=text(), days={"type": "integer"})
    current = tool("weather_now", "Weather in a city.", city=text())
    assert ask("Weather in Paris", forecast, current).calls == [("weather_now", {"city": "Paris"})]
    assert ask("Weather in Paris for 3 days", forecast, current).calls == [
        ("weather_forecast", {"city": "Paris", "days": 3})
    ]


@pytest.mark.parametrize("request_text", ["Write a poem about autumn", "What is 2 + 2?", "Hello!", "", "?!"])
def test_it_declines_when_nothing_fits(request_text: str) -> None:
    answer = ask(request_text, WEATHER, MESSAGE)
    assert answer.calls == []
    assert answer.text == NOTHING_FITS


def test_it_never_calls_without_tools() -> None:
    answer = ask("Weather in Paris?")
    assert answer.calls == []
    assert answer.text == NO_TOOLS
