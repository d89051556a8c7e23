"""How near the engine comes to what the endpoint's latency allows: 200 one-call cases, and 200 chains of four rounds.

Runs are streamed, graded and recorded, on a server in a process of its own that takes 50 ms for each answer; beside
them, in turn, a plain loop over the openai SDK's streaming that only collects the arguments. Start-up is not counted.
Prints figures; asserts nothing. Aims: 1.2 and 1.1 times the ideal, half the loop's CPU.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.batches.events import BatchDone, BatchEvent, RunDone
from workbench.batches.plan import plan_runs
from workbench.batches.recordings import RecordingLines, Recordings
from workbench.config.folders import Folders
from workbench.config.program import program_in
from workbench.evaluation.approval import Needs
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.suite.loading import SuiteFile, parse_suite

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CASES = 200
CONCURRENCY = 20
LATENCY_S = 0.05
REPEATS = 5
SUITE = """
format = 1
name = "Weather"
[[tools]]
name = "get_weather"
description = "Current weather for a city."
parameters = { type = "object", required = ["city"], properties = { city = { type = "string" } } }
[[mocks]]
tool = "get_weather"
result = "Rain in {city}"
[limits]
max_rounds = ROUNDS
"""
CASE = """
[[cases]]
name = "Case NUMBER"
user = "What is the weather in Oslo?"
ordered = [CALLS]
"""
CALL = '{ tool = "get_weather", args = { city = "Oslo" } }'
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Current weather for a city.",
        "parameters": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}},
    },
}


def suite_of(rounds: int, calls: int) -> SuiteFile:
    case = CASE.replace("CALLS", ", ".join([CALL] * calls))
    text = SUITE.replace("ROUNDS", str(rounds))
    file = parse_suite(text + "".join(case.replace("NUMBER", str(n)) for n in range(CASES)), Path("weather.toml"))
    assert file.suite is not None, file.problems
    return file


@contextmanager
def server(calls: int) -> Iterator[str]:
    """The base URL of an endpoint that calls a tool in so many rounds, then answers in words."""
    words = [sys.executable, "-m", "tests.providers.server", f"--latency-ms={LATENCY_S * 1000}", f"--rounds={calls}"]
    root = Path(__file__).parent.parent
    with subprocess.Popen(words, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate()


@contextmanager
def engine(base_url: str, file: SuiteFile, folder: Path) -> Iterator[Callable[[], None]]:
    """Makes all runs of the suite, each time it is called."""
    results: list[RunResult] = []
    over = threading.Event()

    def listen(event: BatchEvent) -> None:
        if isinstance(event, RunDone):
            results.append(event.result)
        elif isinstance(event, BatchDone):
            over.set()

    program = program_in(Folders(state=folder, log=folder, config=folder, data=folder), {})
    session = Runtime(listen, program)

    def make_all() -> None:
        runs = plan_runs([file], models=[f"openai:test-model@{base_url}"])
        recordings = Recordings(folder / "recordings", RecordingLines(program.secrets, lambda: "2026-01-01T00:00:00Z"))
        (folder / "recordings").mkdir(exist_ok=True)
        results.clear()
        over.clear()
        approval = Needs.of_runs(runs, program).approved(())
        session.start(Plan.of(runs, program, concurrency=CONCURRENCY), approval, record=recordings)
        assert over.wait(120)
        assert [result.status for result in results] == ["passed"] * CASES
        assert recordings.problem is None

    yield make_all
    session.close()


@contextmanager
def sdk_loop(base_url: str, rounds: int) -> Iterator[Callable[[], None]]:
    """Asks as often, with nothing around it."""
    from openai import AsyncOpenAI, DefaultAsyncHttpx2Client

    runner = asyncio.Runner()
    client = AsyncOpenAI(
        base_url=base_url, api_key="none", max_retries=0, http_client=DefaultAsyncHttpx2Client(trust_env=False)
    )

    async def ask_all() -> None:
        left = iter(range(CASES))

        async def work() -> None:
            for _ in left:
                await _chain(client, rounds)

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))

    yield lambda: runner.run(ask_all())
    runner.run(client.close())
    runner.close()


async def _chain(client: AsyncOpenAI, rounds: int) -> None:
    messages: Any = [{"role": "user", "content": "What is the weather in Oslo?"}]
    for _ in range(rounds):
        stream = await client.chat.completions.create(
            model="test-model",
            messages=messages,
            tools=[TOOL],
            stream=True,
            stream_options={"include_usage": True},
        )
        call_id, arguments = "", ""
        async for chunk in stream:
            for fragment in (chunk.choices[0].delta.tool_calls or ()) if chunk.choices else ():
                call_id = fragment.id or call_id
                arguments += (fragment.function.arguments or "") if fragment.function else ""
        if not call_id:
            break
        assert json.loads(arguments) == {"city": "Oslo"}
        function = {"name": "get_weather", "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": "Rain in Oslo"})


def measured(work: Callable[[], None]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def main() -> None:
    for name, rounds, calls in (("one call", 1, 1), ("chain of four rounds", 4, 3)):
        ideal_s = CASES / CONCURRENCY * LATENCY_S * rounds
        with (
            tempfile.TemporaryDirectory() as folder,
            server(calls) as base_url,
            engine(base_url, suite_of(rounds, calls), Path(folder)) as ours,
            sdk_loop(base_url, rounds) as loop,
        ):
            ways = {"workbench": ours, "openai SDK loop": loop}
            for work in ways.values():
                work()
            taken = [{way: measured(work) for way, work in ways.items()} for _ in range(REPEATS)]
        print(f"{CASES} times {name}, {CONCURRENCY} at a time; the ideal is {ideal_s:g} s")
        for way in ways:
            wall_s = statistics.median(one[way][0] for one in taken)
            cpu_ms = statistics.median(one[way][1] for one in taken) / CASES / rounds * 1000
            print(
                f"  {way:<16} {wall_s:6.3f} s wall, {wall_s / ideal_s:.2f} times the ideal, {cpu_ms:.2f} ms CPU a call"
            )


if __name__ == "__main__":
    main()
