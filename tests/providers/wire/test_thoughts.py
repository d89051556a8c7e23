"""Thoughts within the text of an answer are reasoning, and go back to the model as they were written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.providers.wire.reading import Answer, a_request, a_spec, body_of, data, named
from tests.providers.wire.reading import read as read_stream
from tests.providers.wire.test_repairs import split
from workbench.config.models import OWN_URLS, Provider
from workbench.providers.http.answers import SseParser
from workbench.providers.http.endpoints import wire_of
from workbench.providers.wire.repairs import DETAILS, THOUGHTS, AnswerText, split_thoughts
from workbench.trajectory.events import Deviation, Message, ReasoningDelta, TextDelta, TextWasReasoning

NOTED = (Deviation(THOUGHTS, DETAILS[THOUGHTS]),)


def chat(*pieces: str) -> str:
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    return data(*chunks, {"choices": [{"delta": {}, "finish_reason": "stop"}]}, "[DONE]")


def messages(*pieces: str) -> str:
    deltas = ({"type": "text_delta", "text": piece} for piece in pieces)
    return named(
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": each} for each in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )


def responses(*pieces: str) -> str:
    content = [{"type": "output_text", "text": "".join(pieces)}]
    return named(
        *({"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": content}},
        {"type": "response.completed", "response": {"status": "completed"}},
    )


STREAMS: dict[Provider, Callable[..., str]] = {
    "openai": chat,
    "anthropic": messages,
    "openai-responses": responses,
}
every_api = pytest.mark.parametrize("provider", OWN_URLS)


def said(provider: Provider, *pieces: str) -> Answer:
    return read_stream(provider, STREAMS[provider](*pieces))


def told(answer: Answer) -> tuple[str, str]:
    """Return the complete reasoning and text."""
    text, reasoning = "", ""
    for event in answer.events:
        match event:
            case TextDelta(text=piece):
                text += piece
            case ReasoningDelta(text=piece):
                reasoning += piece
            case TextWasReasoning():
                text, reasoning = "", reasoning + text
            case _:
                pass
    return reasoning, text


def sent_back(provider: Provider, answer: Answer) -> Any:
    """The text of the answer in the next request."""
    message = Message("assistant", told(answer)[1], provider_state=answer.end.provider_state)
    body = body_of(a_spec(provider), a_request(Message("user", "hi"), message, Message("user", "more")))
    sent = body["input" if provider == "openai-responses" else "messages"][1]["content"]
    return sent if isinstance(sent, str) else "".join(part["text"] for part in sent)


MARKED = [
    ("<think>\nHm.\n\nYes.\n</think>\n\nNo.", "Hm.\n\nYes.", "No."),
    ("\n <think>Hm</think>No.", "Hm", "No."),
    ("<think>\n\n</think>\n\nNo.", "", "No."),
    ("<think>never ends", "never ends", ""),
    ("<thinking>Hm</thinking>No </think> there", "Hm", "No </think> there"),
    ("<|think|>Hm<|/think|>No.", "Hm", "No."),
    ("[THINK]Hm[/THINK]No.", "Hm", "No."),
    ("◁think▷Hm◁/think▷No.", "Hm", "No."),
    ("<reasoning>Hm</reasoning>No.", "Hm", "No."),
    ("<|channel>thought\nHm<channel|>No.", "Hm", "No."),
    ("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>No.", "Hm", "No."),
    ("<|channel|>analysis<|message|>Hm<|channel|>commentary to=functions.f", "Hm", "to=functions.f"),
    ("<think>a < b</thin</think>\nNo.", "a < b</thin", "No."),
    ("Hm, yes.\n</think>\n\nNo.", "Hm, yes.\n", "No."),
    ("Hm, yes.</think>No.", "Hm, yes.", "No."),
    ("</think>\n\nNo.", "", "No."),
    ("Hm, yes.\n</think>", "Hm, yes.\n", ""),
]


@every_api
@pytest.mark.parametrize(("written", "thoughts", "answer"), MARKED, ids=lambda text: repr(text)[:20])
def test_thoughts_are_reasoning_however_they_come(provider: Provider, written: str, thoughts: str, answer: str) -> None:
    for pieces in ([written], list(written), [written[:7], written[7:]]):
        got = said(provider, *pieces)
        assert told(got) == (thoughts, answer)
        assert got.end.deviations == NOTED
        assert sent_back(provider, got) == written


ORDINARY = [
    "",
    "  ",
    "No.",
    " \n No. \n",
    "<",
    "<thin",
    "<thinly veiled>",
    "<b>No.</b>",
    "[THIN ice]",
    "The mark `</think>` ends the thoughts of a model.",
    'It ends with "</think>".',
    "Write </think> behind the thoughts.",
    "Thoughts stand between <think> and </think>\nin such models.",
    "```html\nHm\n</think>\n```\nThat is all.",
    "An answer, and then <think>a thought</think> in it.",
]


@every_api
@pytest.mark.parametrize("written", ORDINARY, ids=repr)
def test_ordinary_texts_are_never_changed(provider: Provider, written: str) -> None:
    for pieces in ([written], list(written)):
        got = said(provider, *pieces)
        assert told(got) == ("", written)
        assert (got.end.deviations, got.end.provider_state) == ((), None)


@settings(max_examples=examples(120))
@given(st.data(), st.text(st.sampled_from("<>/|[]think THINK◁▷ \n"), max_size=40))
def test_pieces_make_no_difference(drawn: st.DataObject, written: str) -> None:
    whole = said("openai", written)
    assert told(said("openai", *drawn.draw(split(written))))[1] == told(whole)[1]
    assert told(whole) == split_thoughts(written)


def test_thoughts_come_while_they_are_thought() -> None:
    text = AnswerText(1, apart=True)
    came = [text.add(piece) for piece in ("<thi", "nk>\nHm, ", "yes", " </", "think>\n", "\nNo", ".")]
    assert came == [
        [],
        [ReasoningDelta(1, "Hm,")],
        [ReasoningDelta(1, " yes")],
        [],
        [],
        [TextDelta(1, "No")],
        [TextDelta(1, ".")],
    ]


@every_api
def test_thoughts_may_be_left_in_the_answer(provider: Provider) -> None:
    written = "<think>Hm</think>No."
    reader = wire_of(replace(a_spec(provider), thoughts="answer")).reader(a_request())
    parser = SseParser()
    for event in parser.feed(STREAMS[provider](written).encode()):
        reader.feed(event)
    reader.finish()
    answer = Answer(reader.events)
    assert told(answer) == ("", written)
    assert (answer.end.deviations, sent_back(provider, answer)) == ((), written)
