from __future__ import annotations

import time

from tests.providers.offline.asking import answer_to, ask, text, tool
from workbench.providers.model import AnswerFinished, Model, ModelRequest
from workbench.providers.offline.model import OfflineModel
from workbench.trajectory.events import (
    CallArgumentsDelta,
    CallFinished,
    CallStarted,
    Message,
    ReasoningDelta,
    TextDelta,
)

WEATHER = tool("get_weather", "Current weather.", city=text())
REQUEST = ModelRequest(1, None, (Message("user", "Compare the weather in Seattle and Portland"),), (WEATHER,))


def test_it_is_a_model_named_offline() -> None:
    model: Model = OfflineModel()
    assert model.name == "offline"


def test_an_answer_streams_its_reasoning_then_each_call_piece_by_piece() -> None:
    kinds = [type(event) for event in answer_to(REQUEST).events]
    one_call = [CallStarted, CallArgumentsDelta, CallArgumentsDelta, CallFinished]
    assert kinds == [ReasoningDelta, *one_call, *one_call, AnswerFinished]


def test_text_streams_word_by_word() -> None:
    answer = ask("Write a poem", WEATHER)
    pieces = [event.text for event in answer.events if isinstance(event, TextDelta)]
    assert pieces == ["None ", "of ", "the ", "tools ", "on ", "offer ", "fits ", "this ", "request."]
    assert answer.events[-1] == AnswerFinished("answered")


def test_every_piece_belongs_to_the_round_that_was_asked_for() -> None:
    later = ModelRequest(3, None, REQUEST.messages, (WEATHER,), calls_before=4)
    events = answer_to(later).events
    assert {event.round for event in events if isinstance(event, ReasoningDelta | CallStarted)} == {3}


def test_call_ids_go_on_from_the_calls_before() -> None:
    first = [event.call_id for event in answer_to(REQUEST).events if isinstance(event, CallStarted)]
    later = ModelRequest(2, None, REQUEST.messages, (WEATHER,), calls_before=len(first))
    second = [event.call_id for event in answer_to(later).events if isinstance(event, CallStarted)]
    assert len({*first, *second}) == len(first) + len(second)


def test_no_tokens_are_claimed() -> None:
    last = answer_to(REQUEST).events[-1]
    assert last == AnswerFinished("tool calls", usage=None)


async def test_a_pace_puts_a_pause_between_pieces() -> None:
    began = time.monotonic()
    pieces = [piece async for piece in OfflineModel(pace_ms=2).stream(REQUEST)]
    assert time.monotonic() - began >= 0.002 * (len(pieces) - 1)


async def test_one_model_serves_requests_with_different_tools() -> None:
    model = OfflineModel()
    docs = tool("search_docs", "Search documents.", query=text())
    asked = [(WEATHER, "Weather in Paris"), (docs, "Search documents about Paris"), (WEATHER, "Weather in Oslo")]
    called = [
        piece.tool
        for definition, words in asked
        async for piece in model.stream(ModelRequest(1, None, (Message("user", words),), (definition,)))
        if isinstance(piece, CallStarted)
    ]
    assert called == ["get_weather", "search_docs", "get_weather"]
