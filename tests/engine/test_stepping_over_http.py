"""The edits of a held run are in the endpoint's next request, word for word and in their place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.stepped import Person, Stepped
from tests.example_counts import examples
from tests.programs import program_of
from tests.providers.server import APIS, Answer, Api, Call, Request, Server, base_url_of, said
from tests.strategies import is_json, json_objects
from workbench.engine.checkpoint import (
    SKIPPED,
    AddMessage,
    AnswerCall,
    Command,
    EditArguments,
    EditResult,
    Regenerate,
    SkipCall,
)
from workbench.providers.wire.messages import NO_TEXT
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.trajectory.events import Paused, Resumed
from workbench.trajectory.fold import fold
from workbench.trajectory.trajectory import Trajectory

OSLO = Call("get_weather", {"city": "Oslo"}, "call_1")
ROME = Call("get_weather", {"city": "Rome"}, "call_2")
SUITE = """
    format = 1
    name = "Weather"
    system = "Be brief."
    tools = [{ name = "get_weather" }]
    mocks = [{ tool = "get_weather", result = "rain in {city}" }]
    cases = [{ name = "Oslo", %s }]
    """
FILE = parse_suite(SUITE % 'user = "Weather in Oslo?"', Path("weather.toml"))
STEPS = '{ user = "Weather in Oslo?", tool = "get_weather" }, { user = "Tomorrow?" }'
CHAIN = parse_suite(SUITE % f"steps = [{STEPS}]", Path("chain.toml"))

AWKWARD = (
    "line\nline\r\nline\rline\u2028end",
    "\"quoted\" 'single' `back` \\ \\n </s> <|im_end|>",
    "🎉👩\u200d👩\u200d👧 é e\u0301 \u202egnihton\u202c \ufeff漢",
    "\x00\x01\x07\x1b[31mred\x1b[0m\x7f\x9b",
    "  blanks around  \n",
    "{city} $HOME %s",
    "half \ud83d alone",
    "x" * 200_000,
)
TEXTS = st.one_of(st.text(max_size=60), st.sampled_from(AWKWARD[:-1]))
MESSAGES = TEXTS.filter(lambda text: text.strip())


@dataclass(frozen=True)
class Said:
    """One thing of a conversation as a request holds it; `to` is the id of the call that is meant."""

    who: str
    what: Any
    to: str = ""
    failed: bool = False


def conversation(api: Api, body: Any) -> list[Said]:
    """Return the messages in a request's body without the system prompt, read as the vendors document them."""
    return {"openai": _chat, "openai-responses": _responses, "anthropic": _messages}[api](body)


def _chat(body: Any) -> list[Said]:
    things: list[Said] = []
    for message in body["messages"][1:]:
        if message["role"] == "tool":
            things.append(Said("result", message["content"], message["tool_call_id"]))
        elif message["content"] is not None:
            things.append(Said(message["role"], message["content"]))
        for call in message.get("tool_calls", ()):
            things.append(Said("call", json.loads(call["function"]["arguments"]), call["id"]))
    return things


def _responses(body: Any) -> list[Said]:
    things: list[Said] = []
    for item in body["input"]:
        if item["type"] == "message":
            things.append(Said(item["role"], item["content"]))
        elif item["type"] == "function_call":
            things.append(Said("call", json.loads(item["arguments"]), item["call_id"]))
        else:
            things.append(Said("result", item["output"], item["call_id"]))
    return things


def _messages(body: Any) -> list[Said]:
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"], "turns alternate and end with the user's"
    things: list[Said] = []
    for message in body["messages"]:
        kinds = [block["type"] for block in message["content"]]
        assert kinds == sorted(kinds, key=lambda kind: kind == "text"), "results stand before what is said after them"
        for block in message["content"]:
            if block["type"] == "tool_use":
                things.append(Said("call", block["input"], block["id"]))
            elif block["type"] == "tool_result":
                failed = block.get("is_error", False)
                things.append(Said("result", block.get("content", ""), block["tool_use_id"], failed))
            else:
                assert block["text"].strip()
                things.append(Said(message["role"], block["text"]))
    return things


def answer_to(api: Api, request: Request) -> Answer:
    """Answer with two calls, or with text after their results."""
    done = any(thing.who == "result" for thing in conversation(api, request.json))
    return said(api, "It rains.") if done else said(api, calls=[OSLO, ROME])


class Endpoint:
    """One API on a real server, and a user who steps through runs."""

    def __init__(self, api: Api, folder: Path) -> None:
        self.api = api
        self.person = Person(program_of(folder))
        self.server = Server(lambda request: answer_to(api, request))

    @property
    def model(self) -> str:
        """The name of the endpoint's model."""
        return f"{self.api}:test-model@{base_url_of(self.server, self.api)}"

    def run(self, file: SuiteFile = FILE, **does: list[Command]) -> tuple[list[list[Said]], Stepped]:
        """Make a run with commands by place, such as `call_1`. Return the messages of its requests, and the run."""
        before = len(self.server.requests)
        places = {place.replace("_", " "): commands for place, commands in does.items()}
        stepped = self.person.run(file, self.model, places)
        assert stepped.result.error is None
        return [conversation(self.api, request.json) for request in self.server.requests[before:]], stepped

    def failed(self, text: str) -> Said:
        """Return a failed result as this API expresses it. OpenAI's APIs have no field for a failure."""
        return Said("result", text, "call_1", failed=self.api == "anthropic")


@pytest.fixture(scope="module", params=APIS)
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    endpoint = Endpoint(request.param, tmp_path_factory.mktemp("endpoint"))
    with endpoint.server:
        yield endpoint
        endpoint.person.session.close()


ASKED = Said("user", "Weather in Oslo?")
CALLS = [Said("call", {"city": "Oslo"}, "call_1"), Said("call", {"city": "Rome"}, "call_2")]
RESULTS = [Said("result", "rain in Oslo", "call_1"), Said("result", "rain in Rome", "call_2")]
TWICE_ASKED = settings(
    max_examples=examples(75), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


def test_a_run_stepped_through_without_edits_says_what_an_unstepped_one_says(endpoint: Endpoint) -> None:
    requests, stepped = endpoint.run()
    assert requests == [[ASKED], [ASKED, *CALLS, *RESULTS]]
    assert stepped.held == ["request 1", "call 1", "result 1", "call 1", "result 1", "request 2"]
    plain = endpoint.person.run(FILE, endpoint.model, until="end")
    assert plain.held == []
    assert [request.json for request in endpoint.server.requests[-4:-2]] == [
        request.json for request in endpoint.server.requests[-2:]
    ]
    assert without_times(stepped.result.trajectory) == without_times(plain.result.trajectory)
    assert _kinds(stepped) == _kinds(plain)
    assert fold(stepped.events) == stepped.result.trajectory


def _kinds(made: Stepped) -> list[type]:
    """Return the types of a run's events without holds. Consecutive pieces count once."""
    kinds = (type(event.payload) for event in made.events)
    return [kind for kind, _ in groupby(kind for kind in kinds if kind not in (Paused, Resumed))]


def test_a_chain_stepped_through_says_what_an_unstepped_one_says_and_what_was_added_behind_its_own_message(
    endpoint: Endpoint,
) -> None:
    requests, stepped = endpoint.run(CHAIN)
    asked = [ASKED, *CALLS, *RESULTS, Said("user", "Tomorrow?")]
    assert requests == [[ASKED], asked]
    plain = endpoint.person.run(CHAIN, endpoint.model, until="end")
    assert without_times(stepped.result.trajectory) == without_times(plain.result.trajectory)
    (_, second), _ = endpoint.run(CHAIN, result_1=[AddMessage("In Celsius!")])
    assert second == [*asked, Said("user", "In Celsius!")]


def without_times(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory without times and run id."""
    rounds = tuple(
        replace(
            done,
            latency_ms=None,
            first_token_ms=None,
            calls=tuple(
                replace(call, result=replace(call.result, latency_ms=0.0) if call.result else None)
                for call in done.calls
            ),
        )
        for done in trajectory.rounds
    )
    return replace(trajectory, run_id="", rounds=rounds, duration_ms=0.0, loop_ms=0.0, held_ms=0.0)


@TWICE_ASKED
@given(arguments=json_objects.filter(is_json), text=TEXTS)
def test_edited_arguments_stand_in_the_place_of_the_model_s(
    endpoint: Endpoint, arguments: dict[str, Any], text: str
) -> None:
    edited = {**arguments, "text": text, text: [text, {"inner": text}]}
    (_, second), stepped = endpoint.run(call_1=[EditArguments(edited)])
    sent = second[1]
    assert (sent.who, sent.to, json.dumps(sent.what)) == ("call", "call_1", json.dumps(edited))
    assert [thing.to for thing in second] == ["", "call_1", "call_2", "call_1", "call_2"]
    assert second[2] == CALLS[1]
    assert stepped.result.trajectory.calls[0].arguments == {"city": "Oslo"}, "what the model wrote is graded"


@TWICE_ASKED
@given(text=TEXTS, failed=st.booleans())
def test_an_edited_result_stands_in_the_place_of_the_tool_s(endpoint: Endpoint, text: str, failed: bool) -> None:
    (_, second), _ = endpoint.run(result_1=[EditResult("not yet"), EditResult(text, failed)])
    assert second == [ASKED, *CALLS, as_read(endpoint, text, failed), RESULTS[1]]


@TWICE_ASKED
@given(text=TEXTS, failed=st.booleans())
def test_a_person_s_answer_stands_where_the_tool_s_would(endpoint: Endpoint, text: str, failed: bool) -> None:
    (_, second), _ = endpoint.run(call_1=[AnswerCall(text, failed)])
    assert second == [ASKED, *CALLS, as_read(endpoint, text, failed), RESULTS[1]]


def as_read(endpoint: Endpoint, text: str, failed: bool) -> Said:
    """Return a result as a request holds it. Messages accepts no blank text, so it is left out, or replaced for a
    failure."""
    if endpoint.api == "anthropic" and not text.strip():
        text = NO_TEXT if failed else ""
    return endpoint.failed(text) if failed else Said("result", text, "call_1")


@TWICE_ASKED
@given(texts=st.lists(MESSAGES, min_size=1, max_size=3), later=MESSAGES)
def test_added_messages_follow_the_results_in_order(endpoint: Endpoint, texts: list[str], later: str) -> None:
    (_, second), _ = endpoint.run(call_1=[*map(AddMessage, texts)], request_2=[AddMessage(later)])
    assert second == [ASKED, *CALLS, *RESULTS, *(Said("user", text) for text in (*texts, later))]


@pytest.mark.parametrize("text", AWKWARD, ids=range(len(AWKWARD)))
def test_awkward_texts_of_every_kind_come_through(endpoint: Endpoint, text: str) -> None:
    (first, second), _ = endpoint.run(
        request_1=[AddMessage(text)], call_1=[EditArguments({"city": text})], result_1=[EditResult(text)]
    )
    asked = [ASKED, Said("user", text)]
    assert first == asked
    assert second == [
        *asked,
        Said("call", {"city": text}, "call_1"),
        CALLS[1],
        Said("result", text, "call_1"),
        RESULTS[1],
    ]


def test_a_skipped_call_is_answered_by_that_it_was_skipped(endpoint: Endpoint) -> None:
    (_, second), _ = endpoint.run(call_1=[SkipCall()])
    assert second == [ASKED, *CALLS, endpoint.failed(SKIPPED), RESULTS[1]]


def test_a_round_is_asked_again_by_the_same_request(endpoint: Endpoint) -> None:
    requests, stepped = endpoint.run(result_1=[Regenerate()])
    assert requests == [[ASKED], [ASKED], [ASKED, *CALLS, *RESULTS]]
    first, second, _ = (request.body for request in endpoint.server.requests[-3:])
    assert first == second
    assert len(stepped.result.trajectory.rounds[0].superseded) == 1


def test_what_was_said_before_a_round_is_asked_again_goes_with_it(endpoint: Endpoint) -> None:
    requests, _ = endpoint.run(call_1=[AddMessage("In Celsius!"), Regenerate()])
    added = [ASKED, Said("user", "In Celsius!")]
    assert requests == [[ASKED], added, [*added, *CALLS, *RESULTS]]
