"""What keeping every run costs, and how fast the history is read: 1,000 batches of 200 runs. Prints, asserts nothing.

Goals: listing all batches and opening one run each within 50 ms of CPU; the time of a batch grows with its cases, and
its memory by as little for each of 10,000 cases as for each of 1,000.

`python -m benchmarks.history [BATCHES]`; `python -m benchmarks.history growth CASES with|without` is one line of the
last table.
"""

from __future__ import annotations

import gc
import queue
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from benchmarks.batches import CASE, SUITE
from benchmarks.sizes import sized
from workbench.config.folders import Folders
from workbench.config.program import create_program
from workbench.engine.events import BatchDone, BatchEvent, HistoryProblem, RunDone, RunEvent
from workbench.engine.plan import PlannedRun, plan_runs
from workbench.engine.recordings import result_of_recording
from workbench.evaluation.approval import Needs
from workbench.evaluation.plan import Plan
from workbench.evaluation.runtime import Runtime
from workbench.history.database import open_for_writing, transaction
from workbench.history.history import History
from workbench.history.packing import PackedRun, RunPacker
from workbench.history.records import NewBatch, NewRun, RunWithEvents
from workbench.history.rows import SharedTexts, begin_batch, end_batch, write_run
from workbench.history.writer import BatchHandle, BeginBatch, EndBatch, HistoryWriter, OpenHistory, WriteRun
from workbench.suite.suite_file import parse_suite
from workbench.trajectory.events import Event

BATCHES, RUNS = sized((1_000, 200), (3, 4))
GROWTH = sized((100, 1_000, 10_000), (2, 3, 4))
TIMES = sized(9, 1)
LOOK_INTERVAL_S = 0.02
"""The interval in which events arrive, in bursts as on the command line."""


def say(said: str) -> None:
    print(said)


def planned(folder: Path, cases: int) -> tuple[PlannedRun, ...]:
    """Return one run for each of the cases of a suite without a file."""
    text = SUITE + "".join(CASE.replace("NUMBER", str(number)) for number in range(cases))
    return plan_runs([parse_suite(text, folder / "weather.toml")])


def runs_made(
    folder: Path, runs: tuple[PlannedRun, ...], history: Path | None, each: Callable[[BatchEvent], None]
) -> None:
    """Run a batch of the offline model."""
    said: queue.SimpleQueue[BatchEvent] = queue.SimpleQueue()
    program = create_program(Folders(*[folder] * 4), {})
    with closing(Runtime(said.put, program, history=history)) as session:
        session.start(Plan.of(runs, program), Needs.of_runs(runs, program).approved(()))
        while True:
            if said.empty():
                time.sleep(LOOK_INTERVAL_S)
            event = said.get()
            each(event)
            if isinstance(event, BatchDone):
                return
            if isinstance(event, HistoryProblem):
                say(event.text)


def done_runs(folder: Path, runs: tuple[PlannedRun, ...]) -> list[RunWithEvents]:
    """Return finished runs with real events."""
    events: dict[str, list[Event]] = {}
    done: list[RunWithEvents] = []

    def take(event: BatchEvent) -> None:
        if isinstance(event, RunEvent):
            events.setdefault(event.event.run_id, []).append(event.event)
        elif isinstance(event, RunDone):
            run_id = event.result.run_id
            done.append(RunWithEvents(run_id, event.result, tuple(events.pop(run_id)), 0.0, 1.0))

    runs_made(folder, runs, None, take)
    return done


def batch_of(runs: tuple[PlannedRun, ...]) -> NewBatch:
    return NewBatch(
        "runs",
        "2030-01-01T00:00:00.000+00:00",
        "1",
        {"models": {"offline": {"provider": "built in"}}},
        tuple(NewRun(run.run_id, run.file, run.case.id, run.case.name, run.model, run.repeat, True) for run in runs),
        {run.file.path: run.file.path.parent for run in runs},
    )


def fill(file: Path, batch: NewBatch, done: list[RunWithEvents], batches: int) -> None:
    """Write batches of the same runs as usual, but without a commit for each run."""
    places = {run.run_id: place for place, run in enumerate(batch.runs)}
    packed = [run for run in map(RunPacker().packed, done) if run is not None]
    with closing(open_for_writing(file, say)) as connection:
        for _ in range(batches):
            with transaction(connection):
                number, shared = begin_batch(connection, file, batch), SharedTexts(connection)
                for run in packed:
                    write_run(connection, number, places[run.run_id], run, shared)
                end_batch(connection, number, batch.started_at)


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the median CPU time of a function in milliseconds."""
    taken = []
    for _ in range(TIMES):
        gc.collect()
        began = time.process_time()
        work()
        taken.append((time.process_time() - began) * 1000)
    return statistics.median(taken)


def command_ms(*words: str) -> float:
    """Return the user and system time of the program in milliseconds."""
    taken = []
    for _ in range(TIMES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "workbench", *words], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return statistics.median(taken)


def reading(file: Path, batches: int) -> None:
    def list_all() -> None:
        with History(file) as history:
            assert len(history.batches()) == batches

    def open_run() -> None:
        with History(file) as history:
            result_of_recording(history.recording(run))

    def runs_of_batch() -> None:
        with History(file) as history:
            history.runs(batches // 2)

    def case_over_time() -> None:
        with History(file) as history:
            history.runs_of_case(run.suite.key, run.case_id, 50, damaged=print)

    with History(file) as history:
        run = history.runs(batches // 2)[RUNS // 2]
    print(f"{batches:,} batches of {RUNS} runs, {file.stat().st_size / 1e6:.0f} MB; CPU, file opened each time")
    for label, work in (
        ("list all batches", list_all),
        ("open one run", open_run),
        ("list the runs of a batch", runs_of_batch),
        ("one case over 50 runs", case_over_time),
    ):
        print(f"  {label:34} {cpu_ms(work):7.1f} ms")
    print(f"  {'workbench --version':34} {command_ms('--version'):7.1f} ms")
    print(f"  {'workbench history list':34} {command_ms('history', 'list', '--history', str(file)):7.1f} ms")


def sqlite_alone(folder: Path, packed: list[PackedRun], synchronous: str) -> float:
    """Return the commits per second of the same bytes with SQLite alone."""
    with closing(sqlite3.connect(folder / f"{synchronous}.sqlite3", isolation_level=None)) as bare:
        bare.executescript(
            f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous};"
            "CREATE TABLE runs (id INTEGER PRIMARY KEY, score REAL, text BLOB)"
        )
        began = time.perf_counter()
        for _ in range(10):
            for small in packed:
                bare.execute("BEGIN IMMEDIATE")
                bare.execute(
                    "INSERT INTO runs (score, text) VALUES (?, ?)", (small.values["score"], small.block.packed)
                )
                bare.execute("COMMIT")
        return 10 * len(packed) / (time.perf_counter() - began)


def writing(folder: Path, batch: NewBatch, done: list[RunWithEvents]) -> None:
    """Print the runs per second of the writer, and of SQLite alone with the same rows."""
    began = time.perf_counter()
    writer = HistoryWriter(folder / "writer.sqlite3", say)
    for _ in range(10):
        handle = writer.begin(batch)
        for run in done:
            writer.write_run(handle, run)
        writer.end(handle, batch.started_at)
    assert writer.close()
    through_writer = 10 * len(done) / (time.perf_counter() - began)

    packed = [run for run in map(RunPacker().packed, done) if run is not None]
    with closing(OpenHistory(folder / "packed.sqlite3", say)) as open_file:
        began = time.perf_counter()
        for _ in range(10):
            handle = BatchHandle(places={run.run_id: place for place, run in enumerate(batch.runs)})
            open_file.write([BeginBatch(handle, batch)])
            for small in packed:
                open_file.write([WriteRun(handle, small)])
            open_file.write([EndBatch(handle, batch.started_at)])
        through_file = 10 * len(packed) / (time.perf_counter() - began)
    limits = {synchronous: sqlite_alone(folder, packed, synchronous) for synchronous in ("NORMAL", "FULL")}
    packing = cpu_ms(lambda: list(map(RunPacker().packed, done))) / len(done) * 1000
    print("runs a second; the writer alone commits several together")
    for synchronous, limit in limits.items():
        print(f"  {f'SQLite alone, synchronous = {synchronous}':34} {limit:7,.0f}")
    print(f"  {'FULL costs a run':34} {1e6 / limits['FULL'] - 1e6 / limits['NORMAL']:7.0f} µs")
    print(f"  {'the tables of a history':34} {through_file:7,.0f}")
    print(f"  {'HistoryWriter, from events on':34} {through_writer:7,.0f}")
    print(f"  {'of which packing a run takes':34} {packing:7.0f} µs")


def growth_of(cases: int, kept: bool) -> None:
    """Print the costs of a batch with this number of cases, in its own process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = planned(folder, cases)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wall, cpu = time.perf_counter(), time.process_time()
        runs_made(folder, runs, folder / "history.sqlite3" if kept else None, lambda _: None)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        more_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    print(
        f"  {cases:6,} cases {'with' if kept else 'without':>7} history "
        f"{wall / cases * 1000:6.2f} ms wall {cpu / cases * 1000:6.2f} ms CPU {more_kb / cases:7.2f} kB a case",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["growth"]:
        growth_of(int(sys.argv[2]), sys.argv[3] == "with")
        return
    batches = int(sys.argv[1]) if len(sys.argv) > 1 else BATCHES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = planned(folder, RUNS)
        done = done_runs(folder, runs)
        fill(folder / "history.sqlite3", batch_of(runs), done, batches)
        reading(folder / "history.sqlite3", batches)
        writing(folder, batch_of(runs), done)
    print("growth of a batch of the offline model; the case itself stays in memory, as part of its suite", flush=True)
    for cases in GROWTH:
        for kept in ("without", "with"):
            subprocess.run(
                [sys.executable, "-m", "benchmarks.history", "growth", str(cases), kept],
                check=True,
            )


if __name__ == "__main__":
    main()
