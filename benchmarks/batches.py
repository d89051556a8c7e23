"""The cost of a run besides its model and tools: a batch of the offline model on mocks.

Prints figures; asserts nothing."""

from __future__ import annotations

import queue
import tempfile
import time
from pathlib import Path

from benchmarks.sizes import sized
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.engine.events import BatchDone, BatchEvent, RunDone
from workbench.engine.plan import plan_runs
from workbench.evaluation.approval import Needs
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.suite.suite_file import parse_suite

CASES = sized(500, 5)
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
"""
CASE = """
[[cases]]
name = "Case NUMBER"
user = "What is the weather in Oslo?"
ordered = [{ tool = "get_weather", args = { city = "Oslo" } }]
"""


def main() -> None:
    text = SUITE + "".join(CASE.replace("NUMBER", str(number)) for number in range(CASES))
    runs = plan_runs([parse_suite(text, Path("weather.toml"))])
    events: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        program = create_program(Folders(*[Path(folder)] * 4), {})
        session = Runtime(events.put, program)
        began, cpu = time.perf_counter(), time.process_time()
        session.start(Plan.of(runs, program), Needs.of_runs(runs, program).approved(()))
        said = done = 0
        while not isinstance(event := events.get(), BatchDone):
            said += 1
            done += isinstance(event, RunDone)
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
        session.close()
    print(f"{done} runs of two rounds and one mocked call, {said} events")
    print(f"{wall / done * 1000:.2f} ms wall and {cpu / done * 1000:.2f} ms CPU a run, {done / wall:.0f} runs a second")


if __name__ == "__main__":
    main()
