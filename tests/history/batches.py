"""Batches for tests of the history: real runs of the offline model, stored as the command line stores them."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tests.programs import begin, program_of
from workbench.engine.events import BatchDone, BatchEvent, HistoryProblem, RunDone
from workbench.engine.plan import plan_runs
from workbench.evaluation.runtime import Runtime
from workbench.grading.grade import RunResult
from workbench.suite.suite_file import load_suite

HEAD = """\
format = 1
name = "Weather"
models = ["offline"]

[[tools]]
name = "get_weather"
description = "The weather of a city."
[tools.parameters]
type = "object"
required = ["city"]
[tools.parameters.properties]
city = { type = "string", description = "A city" }
"""
"""A suite without its cases."""

SUITE = f"""\
{HEAD}
[[cases]]
name = "Paris"
user = "What is the weather in the city of Paris? Call get_weather."
[[cases.ordered]]
tool = "get_weather"
args = {{ city = "Paris" }}

[[cases]]
name = "Nowhere"
user = "What is the weather in the city of Berlin? Call get_weather."
[[cases.ordered]]
tool = "get_weather"
args = {{ city = "Rome" }}
"""


def run_kept(
    folder: Path, history: Path, *, suite: str = SUITE, repeats: int | None = None, models: Sequence[str] = ()
) -> tuple[list[RunResult], list[str]]:
    """Run a suite and store the batch. Return the results and the messages about the history."""
    file = folder / "weather.toml"
    file.write_text(suite, encoding="utf-8")
    runs = plan_runs([load_suite(file)], repeats=repeats, models=models)
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    with closing(Runtime(said.put, program_of(folder), history=history)) as session:
        begin(session, runs)
        events = [said.get(timeout=20)]
        while not isinstance(events[-1], BatchDone):
            events.append(said.get(timeout=20))
    while not said.empty():
        events.append(said.get())
    results = [event.result for event in events if isinstance(event, RunDone)]
    return results, [event.text for event in events if isinstance(event, HistoryProblem)]
