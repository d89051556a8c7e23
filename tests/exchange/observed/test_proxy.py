"""The recording proxy between real SDK programs and a local endpoint."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.providers.server import (
    APIS,
    CUT,
    HANG,
    Answer,
    Api,
    Call,
    Request,
    Server,
    Signal,
    Tell,
    blocks_of,
    document,
    error_document,
    said,
    serve,
    whole_document,
)
from tests.sampled_rows import first_of
from workbench.config.secrets import Secrets
from workbench.engine.recordings import result_of_recording
from workbench.exchange.observed.conversations import (
    ConversationBegan,
    ConversationEnded,
    Destination,
    Observation,
    Observer,
    SaveSummary,
    StepEnded,
    save_observed,
)
from workbench.exchange.observed.proxy import ListenError, RecordingProxy, parse_listen_address, parse_upstream
from workbench.suite.suite_file import load_suite
from workbench.trajectory.recording import read_recording, recordings_in

KEY = "sk-planted-0123456789-abcdef"
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PATHS = {"openai": "/chat/completions", "openai-responses": "/responses", "anthropic": "/v1/messages"}


class Recording:
    """A proxy before a server, its messages, and its files."""

    def __init__(self, upstream: str, folder: Path) -> None:
        self.secrets = Secrets()
        self.seen: list[Observation] = []
        self.said: list[str] = []
        self.folder = folder
        self.ended = asyncio.Event()
        self.observer = Observer(self.secrets, self._see)
        self.proxy = RecordingProxy(upstream, self.observer, self.secrets, self.said.append)
        self.url = ""

    def _see(self, seen: Observation) -> None:
        self.seen.append(seen)
        if isinstance(seen, StepEnded):
            self.ended.set()

    def save(self) -> SaveSummary:
        destination = Destination(self.folder / "made.toml", self.folder / "runs")
        return save_observed(self.observer, destination, self.secrets)

    def check_what_is_written(self, cases: int) -> None:
        """The suite loads, its recordings grade as passed, and nothing holds the key."""
        file = load_suite(self.folder / "made.toml")
        assert file.suite is not None and len(file.suite.cases) == cases, file.problems
        runs = [read_recording(path) for path in recordings_in(self.folder / "runs")]
        assert [result_of_recording(run).status for run in runs] == ["passed"] * len(runs)
        for path in [self.folder / "made.toml", *(self.folder / "runs").iterdir()]:
            assert KEY not in path.read_text(encoding="utf-8")


@asynccontextmanager
async def recording(server: Server, api: Api, folder: Path) -> AsyncGenerator[Recording]:
    made = Recording(server.url if api == "anthropic" else f"{server.url}/v1", folder)
    made.url = await made.proxy.start(parse_listen_address("127.0.0.1:0"))
    try:
        yield made
    finally:
        await made.proxy.close()


async def talk(api: Api, url: str, city: str, *, stream: bool, chained: bool = False) -> None:
    """An agent as people write them, on the vendor's SDK: asks, calls a tool, asks again."""
    request = f"What is the weather in {city}?"
    if api == "anthropic":
        import anthropic  # here: the SDKs take seconds to import, which each worker of the tests would

        async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as client:
            tools: Any = [{"name": "get_weather", "description": "The weather.", "input_schema": SCHEMA}]
            messages: list[Any] = [{"role": "user", "content": request}]
            for _ in range(2):
                asked: Any = {"model": "claude-x", "max_tokens": 99, "system": "Be brief.", "tools": tools}
                if stream:
                    async with client.messages.stream(**asked, messages=messages) as streamed:
                        answer: Any = await streamed.get_final_message()
                else:
                    answer = await client.messages.create(**asked, messages=messages)
                messages.append({"role": "assistant", "content": answer.model_dump()["content"]})
                uses = [block for block in answer.content if block.type == "tool_use"]
                results = [{"type": "tool_result", "tool_use_id": use.id, "content": f"rain {city}"} for use in uses]
                messages.append({"role": "user", "content": results})
        return
    import openai

    async with openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
        function = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
        if api == "openai":
            messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": request}]
            for _ in range(2):
                chat: Any = {"model": "gpt-x", "tools": [{"type": "function", "function": function}]}
                if stream:
                    async with client.chat.completions.stream(**chat, messages=messages) as parts:
                        message: Any = (await parts.get_final_completion()).choices[0].message
                else:
                    message = (await client.chat.completions.create(**chat, messages=messages)).choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or ():
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": f"rain {city}"})
            return
        items: list[Any] = [{"role": "user", "content": request}]
        previous: Any = openai.omit
        for _ in range(2):
            wanted: Any = {"model": "gpt-x", "instructions": "Be brief.", "tools": [{"type": "function", **function}]}
            wanted |= {"input": items, "previous_response_id": previous}
            response: Any
            if stream:
                parts_of_it: Any = await client.responses.create(**wanted, stream=True)
                *_, last = [event async for event in parts_of_it]
                response = last.response
            else:
                response = await client.responses.create(**wanted)
            calls = [item for item in response.output if item.type == "function_call"]
            results = [
                {"type": "function_call_output", "call_id": call.call_id, "output": f"rain {city}"} for call in calls
            ]
            previous = response.id if chained else openai.omit
            items = results if chained else [*items, *(item.model_dump() for item in response.output), *results]


def weather(api: Api, *, stream: bool, compressed: bool = False) -> Server:
    """An endpoint that calls the tool for the city it is asked about, then answers."""
    numbers = iter(range(100))

    def answer_to(request: Request) -> Answer:
        assert KEY in request.headers.get("authorization", request.headers.get("x-api-key", ""))
        text = request.body.decode()
        results = "rain " in text.replace("rain in", "")
        city = "Oslo" if "Oslo" in text else "Rome"
        calls = [] if results else [Call("get_weather", {"city": city}, f"call_{city}")]
        said_text = "It rains." if results else ""
        if not stream:
            made = document(whole_document(api, said_text, calls))
        else:
            made = Answer(tuple(blocks_of(api, said_text, calls)))
        own_id = b"resp_%d" % next(numbers)
        pieces = tuple(each.replace(b"resp_1", own_id) for each in made.pieces if isinstance(each, bytes))
        if compressed:
            body = gzip.compress(b"".join(pieces))
            return replace(made, pieces=(body[:30], body[30:]), headers={**made.headers, "content-encoding": "gzip"})
        return replace(made, pieces=pieces)

    return Server(answer_to)


@pytest.mark.parametrize("api", first_of(APIS, 1))
@pytest.mark.parametrize("stream", first_of([True, False], 1))
async def test_parallel_conversations_become_cases_that_pass(api: Api, stream: bool, tmp_path: Path) -> None:
    with weather(api, stream=stream, compressed=api == "openai") as server:
        async with recording(server, api, tmp_path) as made:
            chained = api == "openai-responses" and stream
            cities = ["Oslo", "Rome"]
            await asyncio.gather(*(talk(api, made.url, city, stream=stream, chained=chained) for city in cities))
    saved = made.save()
    assert saved.cases == saved.runs == len(cities), saved.lines
    made.check_what_is_written(len(cities))
    assert [type(each) for each in made.seen].count(ConversationBegan) == len(cities)
    (first, *_), last = [e.answer for e in made.seen if isinstance(e, StepEnded)], made.seen[-1]
    assert first.calls[0].tool == "get_weather" and first.usage is not None and first.usage.input_tokens == 11
    assert isinstance(last, ConversationEnded) and last.case is not None
    table = last.case.table
    tools = table["tools"]
    assert table["system"] == "Be brief." and isinstance(tools, list)
    assert [tool["name"] for tool in tools] == ["get_weather"]
    text = (tmp_path / "made.toml").read_text(encoding="utf-8")
    assert all(f"rain {city}" in text for city in cities)
    run = read_recording(recordings_in(tmp_path / "runs")[0]).trajectory
    assert [each.usage is not None and bool(each.latency_ms) for each in run.rounds] == [True, True]


async def exchanged(
    url: str, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes, bool]:
    """Send a request without a client library. Return the status, the relevant headers, the received bytes, and whether
    they are complete."""
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.post(f"{url}{path}", data=body, headers=headers) as answer,
    ):
        got, whole = b"", True
        try:
            async for chunk in answer.content.iter_any():
                got += chunk
        except aiohttp.ClientError:
            whole = False
        kept = {name.lower(): value for name, value in answer.headers.items() if name not in ("Date", "Server")}
        return answer.status, kept, got, whole


def body_of(api: Api, text: str) -> bytes:
    messages = [{"role": "user", "content": text}]
    if api == "openai-responses":
        return json.dumps({"model": "m", "stream": True, "input": messages}).encode()
    return json.dumps({"model": "m", "stream": True, "messages": messages}).encode()


@pytest.mark.parametrize("api", first_of(APIS, 1))
async def test_the_program_gets_what_it_would_get_without(api: Api, tmp_path: Path) -> None:
    half = said(api, "It rains", end=False)
    answers: Sequence[tuple[Answer, str]] = [
        (said(api, "Ünïted words."), ""),
        (said(api, "Ünïted words.").in_pieces_of(7), ""),
        (replace(half, pieces=(*half.pieces, CUT)), "closed the connection in the middle"),
        (half, "ended too early"),
        (document(error_document(api, f"Wrong key {KEY}"), 401), "answered 401: Wrong key $RECORDED_KEY"),
        (document({"odd": [1]}, 200, {"x-request-id": "r1", "set-cookie": "a=b"}), "is not an answer"),
        (Answer((b"\x00\x01",), 200, {"content-encoding": "br"}, "length"), "compressed as br"),
        (Answer((b"<html>", b"</html>"), 500, {}, "close"), "answered 500"),
    ]
    script = [answer for answer, _ in answers for _ in range(2)]
    headers = {"authorization": f"Bearer {KEY}", "accept-encoding": "gzip, br"}
    with Server(script) as server:
        async with recording(server, api, tmp_path) as made:
            for number, (_, problem) in enumerate(answers):
                body = body_of(api, f"Question {number}")
                upstream = server.url if api == "anthropic" else f"{server.url}/v1"
                direct = await exchanged(upstream, PATHS[api], body, headers)
                through = await exchanged(made.url, PATHS[api], body, headers)
                direct[1].pop("connection", None), direct[1].pop("transfer-encoding", None)
                through[1].pop("transfer-encoding", None), through[1].pop("connection", None)
                if "content-type" not in direct[1]:
                    through[1].pop("content-type", None)
                assert direct == through, problem
                step = made.seen[-1]
                assert isinstance(step, StepEnded) and problem in step.answer.problem
                assert bool(problem) == bool(step.answer.problem) and KEY not in step.answer.problem
            sent, passed = server.requests[0], server.requests[1]
            assert sent.body == passed.body and passed.headers["accept-encoding"] == "gzip"
            assert passed.headers["host"] == sent.headers["host"]
            unread = await exchanged(made.url, PATHS[api], b"{", headers)
            assert unread[0] == 500 and "not JSON" in str(made.observer.notes[0])
    saved = made.save()
    assert saved.cases == 2 and len([line for line in saved.lines if line.startswith("✗ conversation")]) == 6
    assert "request 9: not recorded: is not JSON" in "\n".join(saved.lines)
    made.check_what_is_written(2)


async def test_a_conversation_goes_on_although_its_answers_were_repaired(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "w", "parameters": SCHEMA}}]
    arguments = json.dumps(json.dumps({"city": "Oslo"}))
    thoughts = "<think>Hm</think>Let me look."
    answers = [said("openai", thoughts, [Call("w", arguments)]), said("openai", "<think>Ah</think>Rain.")]
    with serve(*answers) as server:
        async with recording(server, "openai", tmp_path) as made:
            messages: list[Any] = [{"role": "user", "content": "Go"}]
            for _ in range(2):
                body = json.dumps({"messages": messages, "tools": tools}).encode()
                await exchanged(made.url, "/chat/completions", body, {})
                call = {"id": "call_1", "function": {"name": "w", "arguments": arguments}}
                messages += [
                    {"role": "assistant", "content": thoughts, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
                ]
    assert made.save().cases == 1
    made.check_what_is_written(1)
    (run,) = [read_recording(path).trajectory for path in recordings_in(tmp_path / "runs")]
    assert [dict(call.arguments) for call in run.calls] == [{"city": "Oslo"}]
    assert (run.rounds[0].text, run.final_answer) == ("Let me look.", "Rain.")
    assert [[each.kind for each in round_.deviations] for round_ in run.rounds] == [
        ["thoughts in the answer", "arguments encoded twice"],
        ["thoughts in the answer"],
    ]
    assert run.rounds[0].deviations[1].call_id == run.calls[0].call.id


async def test_what_is_under_way_when_it_ends_is_broken_off_and_said(tmp_path: Path) -> None:
    came = Signal()
    answers = [said("openai", calls=[Call("w", {})]), Answer((b": waits\n\n", Tell(came), HANG))]
    with Server(answers) as server:
        async with recording(server, "openai", tmp_path) as made:
            messages: list[Any] = [{"role": "user", "content": "Go"}]
            await exchanged(made.url, "/chat/completions", json.dumps({"messages": messages}).encode(), {})
            call = {"id": "call_1", "function": {"name": "w", "arguments": "{}"}}
            messages += [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1"}]
            body = json.dumps({"messages": messages}).encode()
            waiting = asyncio.create_task(exchanged(made.url, "/chat/completions", body, {}))
            await asyncio.to_thread(came.wait)
        assert not (await waiting)[3]
    saved = made.save()
    assert saved.cases == 1 and any("its last request has no complete answer" in line for line in saved.lines), (
        saved.lines
    )
    made.check_what_is_written(1)


async def test_a_program_that_leaves_and_a_base_url_that_is_wrong_are_said(tmp_path: Path) -> None:
    came = Signal()
    answers = [Answer((b": waits\n\n", Tell(came), HANG)), document({}, 404)]
    with Server(answers) as server:
        async with recording(server, "openai", tmp_path) as made:
            body = body_of("openai", "Hello")
            leaving = asyncio.create_task(exchanged(made.url, "/chat/completions", body, {}))
            await asyncio.to_thread(came.wait)
            leaving.cancel()
            await asyncio.wait_for(made.ended.wait(), 30)
            ended = made.seen[-1]
            assert isinstance(ended, StepEnded) and "disconnected before the answer ended" in ended.answer.problem
            root = made.url.removesuffix("/v1")
            assert (await exchanged(root, "/chat/completions", body, {}))[0] == 404
    assert made.said == ["404 for POST /chat/completions: the base URL that the program was given must end with /v1"]


async def test_only_this_machine_is_served_and_a_dead_endpoint_is_said(tmp_path: Path) -> None:
    for text in ("0.0.0.0:1", "192.168.0.1:80", "example.com:80"):
        with pytest.raises(ListenError, match="this machine only"):
            parse_listen_address(text)
    with pytest.raises(ListenError, match="openai or anthropic"):
        parse_upstream("nothing")
    with Server([]) as server:
        dead = server.url
    made = Recording(f"{dead}/v1", tmp_path)
    made.url = await made.proxy.start(parse_listen_address("127.0.0.1:0"))
    try:
        body = body_of("openai", "Hello")
        for headers, why in (
            ({"Host": "evil.test"}, "the Host evil.test"),
            ({"Origin": "https://evil.test"}, "the Origin https://evil.test"),
        ):
            status, _, text_of, _ = await exchanged(made.url, "/chat/completions", body, headers)
            assert status == 403 and why in text_of.decode()
        status, _, text_of, _ = await exchanged(made.url, "/chat/completions", body, {})
        assert status == 502 and "refuses connections: start the server, or correct the endpoint" in text_of.decode()
        with pytest.raises(ListenError, match="name another port"):
            await Recording("http://localhost:1", tmp_path).proxy.start(parse_listen_address(made.url.split("/")[2]))
    finally:
        await made.proxy.close()
    assert made.save().lines[-1].startswith("no conversation can be used")
