"""Servers of the protocol's first version, with unusual behaviour."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tools.conftest import QUICK, OpenServer
from workbench.tools.answer import ServerError, ToolAnswer
from workbench.tools.mcp_server import McpServer
from workbench.trajectory.events import JsonValue


def text(said: str) -> dict[str, JsonValue]:
    return {"content": [{"type": "text", "text": said}]}


async def say(server: McpServer, result: JsonValue) -> ToolAnswer:
    return await server.call("say", {"result": result})


async def test_a_server_of_the_first_days_is_listed_and_called(open_server: OpenServer) -> None:
    server = open_server("python", "antique.py")
    await server.start()
    assert [tool.name for tool in server.tools] == ["say"]
    assert await say(server, text("hello")) == ToolAnswer("hello")


@pytest.mark.parametrize("habit", ["twice", "stranger", "binary"])
async def test_answers_that_nobody_asked_for_are_dropped(open_server: OpenServer, log_file: Path, habit: str) -> None:
    server = open_server("python", "antique.py", habit)
    await server.start()
    for said in ("one", "two", "three"):
        assert await say(server, text(said)) == ToolAnswer(said)
    assert ("[stdout] " in log_file.read_text()) == (habit == "binary")


async def test_what_is_no_utf_8_does_not_lose_the_answer(open_server: OpenServer) -> None:
    server = open_server("python", "antique.py", "latin")
    await server.start()
    assert await say(server, text("caf\u00e9")) == ToolAnswer("caf\ufffd")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"a\ud83db", "a\ufffdb"),
        (r"a\u0000b", "a\ufffdb"),
        (r"\u001b[2J", "\x1b[2J"),
    ],
)
async def test_half_characters_and_nul_are_replaced(open_server: OpenServer, said: str, kept: str) -> None:
    server = open_server("python", "antique.py", "raw")
    await server.start()
    assert await say(server, f'{{"content": [{{"type": "text", "text": "{said}"}}]}}') == ToolAnswer(kept)


@pytest.mark.slow
async def test_an_answer_that_is_no_message_is_hinted_at_when_the_call_is_given_up(open_server: OpenServer) -> None:
    server = open_server("python", "antique.py", "mute", limits=replace(QUICK, call_s=1))
    await server.start()
    with pytest.raises(
        ServerError, match=r"within 1 s; it writes to standard output something that is not an MCP message"
    ):
        await say(server, text("hello"))


async def test_numbers_that_json_cannot_say_are_listed_as_null(open_server: OpenServer) -> None:
    server = open_server("python", "antique.py", "nan")
    await server.start()
    assert server.tools[0].parameters == {"type": "object", "default": [None, None]}


async def test_a_server_that_stops_listening_is_down_after_the_next_call(open_server: OpenServer) -> None:
    server = open_server("python", "antique.py", "deaf")
    await server.start()
    with pytest.raises(ServerError, match="server 'bench' "):
        await say(server, text("hello"))
    assert server.down_reason is not None


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ({"content": []}, ToolAnswer("")),
        ({"content": [{"type": "text", "text": ""}], "isError": True}, ToolAnswer("", is_error=True)),
        ({"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "a/b"}]}, ToolAnswer("[a/b, 5 bytes]")),
        ({"content": [{"type": "image", "data": "\u0001junk", "mimeType": ""}]}, ToolAnswer("[image, 3 bytes]")),
        ({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}]}, ToolAnswer("inside")),
        ({"content": [], "structuredContent": {"a": [1, None]}}, ToolAnswer('{"a":[1,null]}')),
        ({"content": [], "unknown": 1, "_meta": {"x": 1}}, ToolAnswer("")),
    ],
)  # fmt: skip
async def test_results_of_every_kind_become_text(
    open_server: OpenServer, result: JsonValue, answer: ToolAnswer
) -> None:
    server = open_server("python", "antique.py")
    await server.start()
    assert await say(server, result) == answer


@pytest.mark.parametrize(
    ("result", "place"),
    [
        ({"content": [{"type": "hologram", "data": "x"}]}, "content"),
        ({"content": "just a text"}, "content"),
        ({"content": [{"type": "text"}]}, "content"),
        ({"content": [], "isError": "perhaps"}, "isError"),
        ({}, "content"),
    ],
)
async def test_a_result_that_is_none_is_a_tool_error_that_says_where(
    open_server: OpenServer, result: JsonValue, place: str
) -> None:
    server = open_server("python", "antique.py")
    await server.start()
    assert await say(server, result) == ToolAnswer(
        f"The tool's answer is not an MCP result: check {place}", is_error=True
    )
    assert await say(server, text("still there")) == ToolAnswer("still there")


@pytest.mark.slow
async def test_a_flood_of_progress_keeps_nobody_waiting(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    told: list[float] = []
    counting = asyncio.create_task(server.call("count", {"to": 3_000}, lambda progress, *_: told.append(progress)))
    assert await server.call("add", {"a": 1, "b": 2}) == ToolAnswer("3")
    assert await counting == ToolAnswer("counted")
    assert told == sorted(told)
    assert told


async def test_a_server_that_does_not_read_holds_up_neither_a_stopped_call_nor_its_own_end(
    open_server: OpenServer,
) -> None:
    server = open_server("python", "antique.py", "deaf")
    await server.start()
    stuck = asyncio.create_task(server.call("say", {"result": "x" * 1_000_000}))
    await asyncio.sleep(0)
    stuck.cancel()
    async with asyncio.timeout(30):
        await asyncio.wait([stuck])
        await server.close()


async def test_a_server_that_says_why_not_at_length_is_quoted_in_part(open_server: OpenServer) -> None:
    server = open_server("python", "antique.py", "windy")
    with pytest.raises(ServerError, match="server 'bench' does not speak MCP as expected: no no ") as caught:
        await server.start()
    assert len(str(caught.value)) < 2000
