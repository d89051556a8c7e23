"""A provider gets back exactly what it sent, in every form and however it arrives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.making import Made, make
from tests.example_counts import examples
from tests.providers.http.runs import TWICE, run_alone, spec_of
from tests.providers.server import Answer, Api, Call, Server, said, serve
from tests.providers.server.formats import sse
from tests.tables import each_row
from workbench.config.models import ModelSpec
from workbench.config.secrets import Secrets
from workbench.engine.fork import Fork, ForkPoint
from workbench.limits import MAX_PAUSES
from workbench.providers.http.endpoints import Endpoints
from workbench.show.views.run_lines import lines_of
from workbench.show.views.run_view import RunView
from workbench.trajectory.events import AnswerPaused
from workbench.trajectory.fold import fold
from workbench.trajectory.recording import event_from_line, event_to_line

Item = dict[str, Any]

WORDS = st.text(alphabet="abcdefg \n€", min_size=1, max_size=12).filter(str.strip)
NAMES = st.text(alphabet="abcdef", min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
FIELDS = st.dictionaries(NAMES.map("x_{}".format), JSON, max_size=2)
INPUT = st.dictionaries(NAMES, JSON, max_size=2)
SIZES = st.integers(1, 200)


def block(kind: str | st.SearchStrategy[str], more: st.SearchStrategy[Item] = FIELDS, **fields: Any) -> Any:
    drawn = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in fields.items()}
    named = st.fixed_dictionaries({"type": kind if isinstance(kind, st.SearchStrategy) else st.just(kind), **drawn})
    return st.builds(lambda own, other: {**own, **other}, named, more)


NOTHING: st.SearchStrategy[Item] = st.just({})
CITATIONS = st.lists(st.fixed_dictionaries({"type": st.just("web_search_result_location"), "cited_text": WORDS}))
RESULTS = st.sampled_from(["web_search_tool_result", "web_fetch_tool_result", "bash_code_execution_tool_result"])
BLOCKS = st.lists(
    st.one_of(
        block("text", NOTHING, text=WORDS),
        block("text", NOTHING, text=WORDS, citations=CITATIONS.filter(bool)),
        block("thinking", NOTHING, thinking=WORDS, signature=WORDS),
        block("redacted_thinking", NOTHING, data=WORDS),
        block("server_tool_use", id="s1", name=NAMES, input=INPUT),
        block(RESULTS, tool_use_id="s1", content=JSON),
        block("mcp_tool_use", id="s2", name=NAMES, server_name=NAMES, input=INPUT),
        block("mcp_tool_result", tool_use_id="s2", is_error=st.booleans(), content=JSON),
        block(NAMES.map("new_{}".format)),
    ),
    max_size=5,
)
TOOL_USE = block("tool_use", id="t1", name="get_weather", input={"city": "Oslo"})


def streamed(blocks: Sequence[Item], reason: str, piece: int) -> Answer:
    """Stream the blocks as Messages does, in pieces of `piece` bytes."""
    events: list[Item] = [{"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}]
    for index, whole in enumerate(blocks):
        begun, deltas = dict(whole), []
        for name, kind in (("text", "text_delta"), ("thinking", "thinking_delta"), ("input", "input_json_delta")):
            if name in whole and whole["type"] != "redacted_thinking":
                text = json.dumps(whole[name]) if name == "input" else whole[name]
                begun[name] = {} if name == "input" else ""
                field = "partial_json" if name == "input" else name
                deltas += [{"type": kind, field: text[at : at + 3]} for at in range(0, len(text), 3)]
        if whole["type"] == "thinking":
            begun["signature"] = ""
            deltas.append({"type": "signature_delta", "signature": whole["signature"]})
        if whole["type"] == "text" and "citations" in whole:
            begun["citations"] = []
            # The first citation has a field that the API refuses in a request.
            deltas += [
                {"type": "citations_delta", "citation": {**each, "file_id": None}} for each in whole["citations"]
            ]
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events += [{"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]
    return Answer(tuple(sse(event, event["type"]) for event in events)).in_pieces_of(piece)


def run(api: Api, *answers: Answer, **settings: Any) -> tuple[Made, Server]:
    """Make a run on these answers, one for each request."""
    with serve(*answers) as server:
        made = asyncio.run(run_alone(spec_of(server, api, **settings)))
    return made, server


@settings(max_examples=examples(75), deadline=None)
@given(paused=BLOCKS, blocks=BLOCKS, call=TOOL_USE, piece=SIZES, pauses=st.integers(0, 2))
def test_blocks_of_messages_go_back_as_they_came(
    paused: list[Item], blocks: list[Item], call: Item, piece: int, pauses: int
) -> None:
    before = [{"type": "server_tool_use", "id": "s0", "name": "search", "input": {}}, *paused]
    made, server = run(
        "anthropic",
        *[streamed(before, "pause_turn", piece)] * pauses,
        streamed([*blocks, call], "tool_use", piece),
        said("anthropic", "Rain."),
    )
    assert made.trajectory.final_answer == "Rain."
    assert [each.tool for each in made.trajectory.calls] == ["get_weather"]
    assert len(made.trajectory.rounds) == 2
    assert [event.payload.times for event in made.events if isinstance(event.payload, AnswerPaused)] == [
        *range(1, pauses + 1)
    ]
    answers = [*[before] * pauses, [*blocks, call]]
    for number, request in enumerate(server.requests):
        messages = request.json["messages"]
        assert [each["content"] for each in messages if each["role"] == "assistant"] == answers[:number]
    assert [each["role"] for each in server.requests[pauses].json["messages"]] == ["user", *["assistant"] * pauses]


ITEMS = st.lists(
    st.one_of(
        block("reasoning", NOTHING, id="rs_1", summary=[], encrypted_content=WORDS),
        block(
            "message", NOTHING, id="msg_1", role="assistant", status="completed", phase="commentary", content=[]
        ).flatmap(lambda item: WORDS.map(lambda text: {**item, "content": [{"type": "output_text", "text": text}]})),
        block("web_search_call", id="ws_1", status="completed", action=INPUT),
        block("file_search_call", id="fs_1", status="completed", queries=[], results=None),
        block("code_interpreter_call", id="ci_1", status="completed", code=WORDS, container_id="c", outputs=[]),
        block("image_generation_call", id="ig_1", status="completed", result=WORDS),
        block("mcp_list_tools", id="ml_1", server_label="s", tools=[]),
        block("mcp_call", id="mc_1", server_label="s", name=NAMES, arguments="{}", output=WORDS),
        block("computer_call", id="cc_1", call_id="c9", status="completed", action=INPUT),
        block(NAMES.map("new_{}".format), id="n_1"),
    ),
    max_size=5,
)
FUNCTION_CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "get_weather",
    "status": "completed",
    "arguments": '{"city":"Oslo"}',
}


def in_response(items: Sequence[Item], piece: int, only_at_end: bool) -> Answer:
    """The items as Responses streams them, with the fields that it refuses in a request."""
    sent = []
    for item in items:
        more = {"created_by": "the model"}
        if item["type"] == "reasoning":
            more["status"] = "completed"
        sent.append({**item, **more})
    events: list[Item] = []
    if not only_at_end:
        for place, item in enumerate(sent):
            events.append({"type": "response.output_item.added", "output_index": place, "item": item})
            for part in item.get("content", ()) if item["type"] == "message" else ():
                events.append({"type": "response.output_text.delta", "output_index": place, "delta": part["text"]})
            events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    events.append({"type": "response.completed", "response": {"status": "completed", "output": sent}})
    return Answer(tuple(sse(event, event["type"]) for event in events)).in_pieces_of(piece)


@settings(max_examples=examples(75), deadline=None)
@given(items=ITEMS, piece=SIZES, only_at_end=st.booleans())
def test_items_of_responses_go_back_as_they_came(items: list[Item], piece: int, only_at_end: bool) -> None:
    items = [*items, FUNCTION_CALL]
    made, server = run("openai-responses", in_response(items, piece, only_at_end), said("openai-responses", "Rain."))
    assert made.trajectory.final_answer == "Rain."
    assert [each.tool for each in made.trajectory.calls] == ["get_weather"]
    _user, *back, result = server.requests[1].json["input"]
    assert back == [{name: value for name, value in item.items() if value is not None} for item in items]
    assert (result["type"], result["call_id"]) == ("function_call_output", "c1")


async def fork_on(spec: ModelSpec, fork: Fork) -> Made:
    """Make a fork on a model."""
    endpoints = Endpoints(Secrets())
    try:
        return await make(endpoints.open(spec, {}), TWICE, fork=fork)
    finally:
        await endpoints.close()


SEARCH: list[Item] = [
    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "oslo"}},
    {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"title": "Oslo", "encrypted_content": "E"}]},
    {"type": "mcp_tool_result", "tool_use_id": "s9", "is_error": True, "content": [{"type": "text", "text": "gone"}]},
    {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"city": "Oslo"}},
]


def test_calls_of_the_provider_are_shown_recorded_and_forked_and_answered_by_nobody() -> None:
    made, _server = run("anthropic", streamed(SEARCH, "tool_use", 99), said("anthropic", "Rain."))
    assert [event_from_line(event_to_line(event)) for event in made.events] == made.events
    assert fold(made.events) == made.trajectory
    view = RunView()
    for event in made.events:
        view.add(event)
    shown = ["".join(span.text for span in line).strip() for item in view.items for line in lines_of(item, 90)]
    for line in (
        "→ web_search  run by the provider",
        'query  "oslo"',
        '← provider  [{"title":"Oslo"}]',
        "→ mcp  run by the provider",
        "← provider  error  gone",
    ):
        assert line in shown
    # A user cannot step back to a call that is not in the run, but can step back to its round.
    places = [view.place(index) for index in range(len(view.items))]
    assert {place.call_index for place in places if place is not None} == {None, 0}
    with serve(said("anthropic", "Sun.")) as server:
        fork = Fork(made.trajectory, ForkPoint(2))
        forked = asyncio.run(fork_on(spec_of(server, "anthropic"), fork))
    assert server.requests[0].json["messages"][1]["content"] == SEARCH
    assert forked.trajectory.rounds[0].not_offered == made.trajectory.rounds[0].not_offered


AT_CALL = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
CHAT: list[tuple[list[Item], Item, Item]] = [
    ([{"reasoning_content": "H"}, {"reasoning_content": "m"}], {}, {"reasoning_content": "Hm"}),
    (
        [{"reasoning_details": [{"type": "reasoning.encrypted", "data": "E", "index": 0}]}],
        {},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "E", "index": 0}]},
    ),
    (
        [
            {"thinking_blocks": [{"type": "thinking", "thinking": "H"}]},
            {"thinking_blocks": [{"type": "thinking", "thinking": "m"}]},
            {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": "S"}]},
            {"thinking_blocks": [{"type": "redacted_thinking", "data": "R"}]},
        ],
        {},
        {
            "thinking_blocks": [
                {"type": "thinking", "thinking": "Hm", "signature": "S"},
                {"type": "redacted_thinking", "data": "R"},
            ]
        },
    ),
    (
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m"}]}]},
            {"content": "Look:"},
        ],
        {},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
                {"type": "text", "text": "Look:"},
            ]
        },
    ),
    ([{"extra_content": {"google": {"thought": True}}}], {}, {"extra_content": {"google": {"thought": True}}}),
    ([], AT_CALL, {}),
    ([], {"provider_specific_fields": {"thought_signature": "c2ln"}}, {}),
    ([], {"type": "builtin_function"}, {}),
    ([{"annotations": [{"type": "url_citation"}]}], {}, {}),
]


@each_row(("deltas", "at_call", "back"), CHAT)
def test_fields_of_chat_completions_that_an_endpoint_requires_go_back(
    deltas: list[Item], at_call: Item, back: Item
) -> None:
    function = {"name": "get_weather", "arguments": '{"city":"Oslo"}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function, **at_call}
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in [*deltas, {"tool_calls": [call]}]]
    answer = Answer((*map(sse, chunks), sse("[DONE]")))
    made, server = run("openai", answer, said("openai", "Rain."))
    assert made.trajectory.final_answer == "Rain."
    sent = server.requests[1].json["messages"][-2]
    expected = {"id": "c1", "type": "function", "function": function, **at_call}
    assert sent == {"role": "assistant", "content": None, "tool_calls": [expected], **back}


def test_an_answer_that_never_ends_its_pauses_fails_the_run() -> None:
    searching = streamed([{"type": "server_tool_use", "id": "s1", "name": "search", "input": {}}], "pause_turn", 4096)
    made, server = run("anthropic", *[searching] * (MAX_PAUSES + 1))
    assert made.trajectory.finish is not None
    assert made.trajectory.finish.reason == "sent too much"
    assert made.trajectory.finish.error == MAX_PAUSES.reached()
    assert len(server.requests) == MAX_PAUSES + 1


CONTAINER = {"id": "container_1", "expires_at": "2999-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("container", "params", "sent"),
    [
        (CONTAINER, {}, "container_1"),
        (CONTAINER, {"container": {"skills": []}}, {"skills": [], "id": "container_1"}),
        (CONTAINER, {"container": "mine"}, "mine"),
        ({**CONTAINER, "expires_at": "2020-01-01T00:00:00Z"}, {}, None),
        (None, {}, None),
    ],
)
def test_code_that_waits_for_a_result_goes_on_in_its_container(container: Any, params: Item, sent: object) -> None:
    called = said("anthropic", calls=[Call("get_weather", {"city": "Oslo"})])
    delta = {"type": "message_delta", "delta": {"stop_reason": "tool_use", "container": container}}
    *begin, _delta, end = called.pieces
    made, server = run(
        "anthropic", Answer((*begin, sse(delta, "message_delta"), end)), said("anthropic", "Rain."), params=params
    )
    assert made.trajectory.final_answer == "Rain."
    assert server.requests[1].json.get("container") == sent


def test_reasoning_that_cannot_go_back_takes_the_ids_of_its_answer_with_it() -> None:
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    _made, server = run(
        "openai-responses", in_response([bare, FUNCTION_CALL], 4096, False), said("openai-responses", "Rain.")
    )
    _user, *back, _result = server.requests[1].json["input"]
    assert back == [{name: value for name, value in FUNCTION_CALL.items() if name != "id"}]
