from __future__ import annotations

import pytest

from tests.providers.offline.asking import choice, number, text, tool
from workbench.providers.offline.clauses import Clause, clauses_of
from workbench.providers.offline.tools import ToolIndex

INDEX = ToolIndex(
    (
        tool("set_lights", "Set the lights of a room.", room=text()),
        tool("lock_door", "Lock a door.", door=text()),
        tool("calculate", "Arithmetic.", operation=choice("add", "divide"), a=number(), b=number()),
        tool("get_weather", "Weather at a place.", place=text()),
        tool("post_message", "Post a message.", message=text()),
    )
)


def clauses(request: str) -> list[str]:
    return [clause.text for clause in clauses_of(request, INDEX)]


@pytest.mark.parametrize(
    ("request_text", "parts"),
    [
        ("turn off the lights and lock the door", ["turn off the lights", "lock the door"]),
        ("Lock the door, then turn off the lights.", ["Lock the door", "turn off the lights"]),
        ("Please lock the door. Could you also set the lights?", ["lock the door", "set the lights"]),
        ("What's the weather in Paris and what is 2 + 2?", ["What's the weather in Paris", "what is 2 + 2"]),
        ("Weather in Paris and the kitchen lights", ["Weather in Paris", "the kitchen lights"]),
    ],
)
def test_each_part_that_asks_for_a_tool_is_a_clause(request_text: str, parts: list[str]) -> None:
    assert clauses(request_text) == parts


@pytest.mark.parametrize(
    "request_text",
    [
        "Compare the weather in Seattle and Portland",
        "I'm heading out, lock the door",
        "Weather in Paris? In celsius, if you can",
        "Post the message 'lock the door, then go. And set the lights'",
        "Tell the team that the lights are on and the weather is fine",
    ],
)
def test_parts_that_no_tool_fits_and_quoted_words_stay_with_their_clause(request_text: str) -> None:
    assert len(clauses(request_text)) == 1


@pytest.mark.parametrize(
    ("request_text", "parts"),
    [
        ("Lock the door, but don't touch the lights", ["Lock the door"]),
        ("Do not lock the door.", []),
        ("Don't forget to lock the door", ["Don't forget to lock the door"]),
    ],
)
def test_what_is_forbidden_is_not_asked_for(request_text: str, parts: list[str]) -> None:
    assert clauses(request_text) == parts


def test_then_marks_what_is_to_come_after() -> None:
    found = clauses_of("Add 5 and 10. Then divide the result by 3, and lock the door", INDEX)
    assert [clause.after for clause in found] == [False, True, False]


def test_a_clause_knows_where_its_evidence_stands() -> None:
    second = clauses_of("Lock the door and get the weather in New York", INDEX)[1]
    (name,) = second.evidence
    assert second.text[name.start : name.end] == name.value == "New York"


@pytest.mark.parametrize(
    ("words", "refers"),
    [("the weather there", True), ("post it", True), ("post 'it is there'", False), ("post", False)],
)
def test_a_clause_knows_whether_it_refers_back(words: str, refers: bool) -> None:
    assert clauses_of(words, INDEX)[0].refers_back is refers


def test_an_empty_request_has_no_clauses() -> None:
    assert clauses(" \n ") == []
    assert Clause("").operations == ()
