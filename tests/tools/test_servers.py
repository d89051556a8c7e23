"""Well-behaved servers: their tools, and the results of their answers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.cli.forking import forked_python
from tests.tools.conftest import SERVERS, OpenServer
from workbench.tools.answer import ServerError, ToolAnswer


async def test_tools_of_the_sdk_are_listed_and_called_under_their_prefixed_names(open_server: OpenServer) -> None:
    server = open_server(*forked_python("sdk_workshop.py"), prefix="shop_")
    await server.start()
    tools = {tool.name: tool for tool in server.tools}
    add = tools["shop_add"]
    assert add.description == "Adds two whole numbers."
    assert add.server == "bench"
    assert add.parameters["required"] == ["a", "b"]
    assert add.annotations == {"readOnlyHint": True}
    assert tools["shop_echo"].annotations == {}
    assert await server.call("shop_add", {"a": 2, "b": 3}) == ToolAnswer("5")
    assert (await server.call("shop_picture", {})).content == "before\n[image/png, 5 bytes]\nafter"
    mistyped = await server.call("shop_add", {"a": "two", "b": 3})
    assert mistyped.is_error
    assert "valid integer" in mistyped.content


@pytest.mark.slow
async def test_a_listing_is_read_to_its_last_page_and_structured_content_is_checked(open_server: OpenServer) -> None:
    server = open_server(*forked_python("catalogue.py"))
    await server.start()
    assert [tool.name for tool in server.tools] == [f"tool_{number}" for number in range(60)]
    assert await server.call("tool_0", {}) == ToolAnswer('{"count":7}')
    broken = await server.call("tool_1", {})
    assert broken.is_error
    assert broken.content == "Invalid structured content returned by tool tool_1: 'many' is not of type 'integer'"
    endless = await server.call("tool_3", {})
    assert endless.is_error
    assert "'^(a|aa)+$' in a text of 61 characters did not end within 0.5 s" in endless.content
    # Its error has the code of a closed connection, but the server is not closed.
    assert await server.call("tool_2", {}) == ToolAnswer("tool_2 is out of stock", is_error=True, code=-32000)
    assert await server.call("tool_0", {}) == ToolAnswer('{"count":7}')
    assert server.down_reason is None


async def test_answers_become_text_however_long(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    assert await server.call("picture", {}) == ToolAnswer("before\n[image/png, 5 bytes]\nafter")
    assert await server.call("echo", {"text": "\x1b[2J [b]"}) == ToolAnswer("\x1b[2J [b]")
    long = "long " * 400_000
    assert (await server.call("echo", {"text": long})).content == long


async def test_what_a_tool_does_wrong_is_for_the_model_to_see(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    refusal = await server.call("refuse", {})
    assert refusal.is_error
    assert "the workshop is closed" in refusal.content
    surrogate = await server.call("echo", {"text": "\ud800"})
    assert surrogate == ToolAnswer("The arguments hold text that is not valid Unicode.", is_error=True)
    assert await server.call("add", {"a": 1, "b": 1}) == ToolAnswer("2")


async def test_one_server_answers_many_calls_at_once(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    answers = await asyncio.gather(*(server.call("add", {"a": number, "b": 1}) for number in range(20)))
    assert [answer.content for answer in answers] == [str(number + 1) for number in range(20)]


async def test_the_server_runs_in_the_suites_folder_and_inherits_only_what_it_is_given(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"PATH": "/usr/bin:/bin", "SHOP_TOKEN": "abc", "OPENAI_API_KEY": "sk-planted"}
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    server = open_server(
        "python", "workshop.py", environment=environment, env={"TOKEN": "Bearer ${SHOP_TOKEN} at $$5", "PLAIN": "yes"}
    )
    await server.start()
    assert Path((await server.call("folder", {})).content) == SERVERS
    assert (await server.call("variable", {"name": "TOKEN"})).content == "Bearer abc at $5"
    assert (await server.call("variable", {"name": "PLAIN"})).content == "yes"
    assert (await server.call("variable", {"name": "OPENAI_API_KEY"})).content == "(not set)"


async def test_a_tool_error_comes_back_as_it_is(open_server: OpenServer) -> None:
    server = open_server(
        "python", "workshop.py", environment={"SHOP_TOKEN": "s3cret-value"}, env={"TOKEN": "$SHOP_TOKEN"}
    )
    await server.start()
    answer = await server.call("leak", {"name": "TOKEN"})
    assert answer.is_error
    assert "bad token s3cret-value" in answer.content


@pytest.mark.slow
async def test_the_published_time_server_answers(open_server: OpenServer) -> None:
    server = open_server("python", "-m", "mcp_server_time", "--local-timezone", "UTC")
    await server.start()
    assert {tool.name for tool in server.tools} == {"get_current_time", "convert_time"}
    answer = await server.call("get_current_time", {"timezone": "Asia/Tokyo"})
    assert json.loads(answer.content)["timezone"] == "Asia/Tokyo"


async def test_the_word_python_means_the_interpreter_that_runs_the_workbench(
    open_server: OpenServer, log_file: Path
) -> None:
    server = open_server("python", "-c", "import sys; sys.stderr.write(sys.executable)")
    with pytest.raises(ServerError):
        await server.start()
    assert sys.executable in log_file.read_text()


async def test_a_closed_server_says_so(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    await server.close()
    with pytest.raises(ServerError, match="server 'bench' was closed"):
        await server.call("add", {"a": 1, "b": 2})
    await server.close()


async def test_a_call_that_is_stopped_leaves_the_server_to_the_others(open_server: OpenServer) -> None:
    server = open_server("python", "workshop.py")
    await server.start()
    waiting = asyncio.create_task(server.call("hang", {}))
    other = await server.call("add", {"a": 1, "b": 2})
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert other == await server.call("add", {"a": 1, "b": 2}) == ToolAnswer("3")


async def test_what_a_server_writes_of_its_secrets_is_in_no_log(open_server: OpenServer, log_file: Path) -> None:
    server = open_server(
        "python", "workshop.py", environment={"SHOP_TOKEN": "sk-planted"}, env={"TOKEN": "$SHOP_TOKEN"}
    )
    await server.start()
    assert (await server.call("variable", {"name": "TOKEN"})).content == "sk-planted"
    assert "sk-planted" not in log_file.read_text(encoding="utf-8")
    assert log_file.stat().st_mode & 0o077 == 0
