"""Asks an endpoint for chains of calls with nothing around it: `minimal_loops WAY URL CASES ROUNDS AT_ONCE`.

The ways: `sockets` writes ready-made requests and reads each answer to its end; `sdk` and `sdk-streamed` are what one
writes first with the openai SDK; `pydantic-evals` evaluates the streamed loop as its task, with one evaluator, and
needs the package of that name. All of them use as many connections as they ask at once.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

QUESTION = {"role": "user", "content": "What is the weather in Oslo?"}
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather for a city.",
        "parameters": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
    },
}
Ask = Callable[[], Awaitable[None]]


def call_and_result(call_id: str, arguments: str) -> list[Any]:
    """Return the two messages that a call and its result add to the conversation."""
    function = {"name": "get_weather", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "Rain in Oslo"},
    ]


async def ask_all(cases: int, at_once: int, worker: Callable[[], Awaitable[Ask]]) -> None:
    """Request chains. Each worker takes the next one when its last has ended."""
    left = iter(range(cases))

    async def work() -> None:
        ask = await worker()
        for _ in left:
            await ask()

    await asyncio.gather(*(work() for _ in range(at_once)))


async def over_sockets(url: str, cases: int, rounds: int, at_once: int) -> None:
    """Send bytes and read bytes, without parsing the answers."""
    address = urlsplit(url)
    messages: list[Any] = [QUESTION]
    requests = []
    for number in range(rounds):
        fields = {"model": "test-model", "messages": messages, "tools": [TOOL], "stream": True}
        body = json.dumps(fields).encode()
        head = f"POST {address.path}/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\ncontent-length: {len(body)}"
        requests.append(head.encode() + b"\r\n\r\n" + body)
        messages += call_and_result(f"call_{number}", '{"city": "Oslo"}')

    async def worker() -> Ask:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)

        async def ask() -> None:
            for request in requests:
                writer.write(request)
                answer = await reader.readuntil(b"\r\n0\r\n\r\n")
                assert answer.startswith(b"HTTP/1.1 200")

        return ask

    await ask_all(cases, at_once, worker)


@asynccontextmanager
async def chains_over_sdk(url: str, rounds: int, *, streamed: bool) -> AsyncGenerator[Ask]:
    """Request chains as one first writes it with the SDK. Only the arguments are collected."""
    from openai import AsyncOpenAI, DefaultAsyncHttpx2Client

    http_client = DefaultAsyncHttpx2Client(trust_env=False)
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, http_client=http_client) as client:

        async def whole(messages: list[Any]) -> tuple[str, str]:
            answer = await client.chat.completions.create(model="test-model", messages=messages, tools=[TOOL])
            calls: Any = answer.choices[0].message.tool_calls
            return (calls[0].id, calls[0].function.arguments) if calls else ("", "")

        async def stream(messages: list[Any]) -> tuple[str, str]:
            chunks = await client.chat.completions.create(
                model="test-model",
                messages=messages,
                tools=[TOOL],
                stream=True,
                stream_options={"include_usage": True},
            )
            call_id, arguments = "", ""
            async for chunk in chunks:
                for fragment in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                    call_id = fragment.id or call_id
                    arguments += (fragment.function.arguments or "") if fragment.function else ""
            return call_id, arguments

        async def chain() -> None:
            messages: list[Any] = [QUESTION]
            for _ in range(rounds):
                call_id, arguments = await (stream if streamed else whole)(messages)
                if not call_id:
                    break
                assert json.loads(arguments) == {"city": "Oslo"}
                messages += call_and_result(call_id, arguments)

        yield chain


async def over_sdk(url: str, cases: int, rounds: int, at_once: int, *, streamed: bool) -> None:
    async with chains_over_sdk(url, rounds, streamed=streamed) as chain:

        async def worker() -> Ask:
            return chain

        await ask_all(cases, at_once, worker)


async def over_pydantic_evals(url: str, cases: int, rounds: int, at_once: int) -> None:
    """Evaluate the streamed chain as the task of a data set. Its calls are checked as in the loop."""
    evals: Any = importlib.import_module("pydantic_evals")
    equals: Any = importlib.import_module("pydantic_evals.evaluators").EqualsExpected
    async with chains_over_sdk(url, rounds, streamed=True) as chain:

        async def task(number: int) -> int:
            await chain()
            return number

        of_data_set = [evals.Case(name=f"Case {each}", inputs=each, expected_output=each) for each in range(cases)]
        data_set = evals.Dataset(name="Weather", cases=of_data_set, evaluators=[equals()])
        await data_set.evaluate(task, max_concurrency=at_once, progress=False)


def main() -> None:
    way, url, *numbers = sys.argv[1:]
    cases, rounds, at_once = map(int, numbers)
    if way == "sockets":
        asyncio.run(over_sockets(url, cases, rounds, at_once))
    elif way == "pydantic-evals":
        asyncio.run(over_pydantic_evals(url, cases, rounds, at_once))
    else:
        asyncio.run(over_sdk(url, cases, rounds, at_once, streamed=way == "sdk-streamed"))


if __name__ == "__main__":
    main()
