"""Resuming a large batch of which most runs are over: what it takes until the first new run is over, and the report.
Prints, asserts nothing.

Goal: a second of CPU until the first new run, with 23,776 of 30,000 runs over.

`python -m benchmarks.resuming [--brief]`
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.batches import CASE, SUITE
from benchmarks.history import done_runs, planned, say
from benchmarks.sizes import sized
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.engine.events import RunDone
from workbench.evaluation.approval import needs_of_plan
from workbench.evaluation.options import Resume, RunOptions
from workbench.evaluation.planner import plan
from workbench.evaluation.run import Evaluation
from workbench.history.database import open_for_writing, transaction
from workbench.history.packing import RunPacker
from workbench.history.records import NewBatch, NewRun
from workbench.history.rows import SharedTexts, begin_batch, write_run
from workbench.suite.suite_file import load_suite
from workbench.trajectory.events import JsonValue

CASES, REPEATS, OVER = sized((300, 100, 23_776), (3, 4, 9))
REAL_RUNS = sized(40, 3)


def build(folder: Path) -> Path:
    """Build a history with one batch, most of whose runs have ended."""
    suite, history = folder / "weather.toml", folder / "history.sqlite3"
    suite.write_text(SUITE + "".join(CASE.replace("NUMBER", str(number)) for number in range(CASES)))
    file = load_suite(suite)
    assert file.suite is not None
    each = ((case, repeat) for case in file.suite.cases for repeat in range(REPEATS))
    runs = tuple(
        NewRun(f"run-{number}", file, case.id, case.name, "offline", repeat, False)
        for number, (case, repeat) in enumerate(each, 1)
    )
    settings: dict[str, JsonValue] = {"models": {"offline": {"provider": "built in"}}}
    batch = NewBatch("runs", "2030-01-01T00:00:00.000+00:00", "1", settings, runs, {suite: folder})
    packer = RunPacker()
    packed = [run for run in map(packer.packed, done_runs(folder, planned(folder, REAL_RUNS))) if run is not None]
    with closing(open_for_writing(history, say)) as connection, transaction(connection):
        number, shared = begin_batch(connection, history, batch), SharedTexts(connection)
        for place, run in enumerate(islice(runs, OVER)):
            done = replace(packed[place % len(packed)], run_id=run.run_id)
            write_run(connection, number, place, done, shared)
    return history


async def measure(folder: Path, history: Path) -> None:
    """Resume the batch, and print the time until the first new run and until the end."""
    program = create_program(Folders(*[folder] * 4), {})
    options = RunOptions(history=history, resume=Resume("1", True))
    began, cpu = time.perf_counter(), time.process_time()
    made = plan(options, program)
    _say("planned", began, cpu)
    async with Evaluation(made, needs_of_plan(made).approved(())) as going:
        async for event in going:
            if isinstance(event, RunDone):
                break
        _say("the first new run is over", began, cpu)
        await asyncio.wait(going.runs.values())
        _say(f"{len(going.runs):,} new runs are over", began, cpu)
        report = await going.report()
        _say(f"the report on {len(report.runs):,} runs is there", began, cpu)


def _say(what: str, began: float, cpu: float) -> None:
    print(f"{what:<44}{time.perf_counter() - began:7.2f} s{time.process_time() - cpu:7.2f} s of CPU")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = build(Path(folder))
        asyncio.run(measure(Path(folder), history))


if __name__ == "__main__":
    main()
