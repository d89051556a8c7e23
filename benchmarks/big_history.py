"""A history of a million runs and more, or of many batches: what reading and pruning it takes, beside a small one.
Prints, asserts nothing.

`python -m benchmarks.big_history build FOLDER [CASES MODELS BATCHES]` builds one in FOLDER, unless it is there, and
prints its path. `python -m benchmarks.big_history measure FILE…` measures some of them in turns.

The runs are a few real ones of the offline model, packed as always, written by the functions that always write them;
only what ends them differs from run to run.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path

from benchmarks.batches import CASE, SUITE
from benchmarks.history import done_runs, planned, say
from benchmarks.sizes import sized
from workbench.grading.status import Status
from workbench.history.database import open_for_writing, transaction
from workbench.history.edits import remove_batches
from workbench.history.history import History
from workbench.history.packing import PackedRun, RunPacker
from workbench.history.records import NewBatch, NewRun
from workbench.history.rows import SharedTexts, begin_batch, end_batch, write_run
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.tui.comparison.sources import batch_source
from workbench.tui.comparison.state import CompareState
from workbench.tui.history.batches_screen import FIRST_BATCHES
from workbench.tui.run_book.stored_batches import read_batches, read_cases

CASES, MODELS, BATCHES = 50_000, 20, 2
REAL_RUNS = sized(40, 3)
TIMES = sized(3, 1)
TOGETHER = 20_000
"""The number of runs per commit. It is larger than in real batches, and the stored bytes are the same."""

_FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
BEGAN_MS = 1_900_000_000_000.0
GOES_WRONG = 0.08
"""The share of runs that fail. A tenth as many end with an error."""


def suite_of(folder: Path, cases: int) -> SuiteFile:
    """Write a suite with this number of cases."""
    file = folder / f"weather-{cases}.toml"
    text = SUITE + "".join(CASE.replace("NUMBER", str(number)) for number in range(cases))
    file.write_text(text)
    return parse_suite(text, file)


def models_of(count: int) -> tuple[str, ...]:
    return tuple(f"model-{number:02}" for number in range(count))


def new_batch(file: SuiteFile, models: Sequence[str], at: int) -> NewBatch:
    """Return a batch with each case on each model, case by case, as runs are planned."""
    assert file.suite is not None
    pairs = ((case, model) for case in file.suite.cases for model in models)
    return NewBatch(
        "runs",
        (_FIRST_DAY + timedelta(hours=at)).isoformat(timespec="milliseconds"),
        "1",
        {"models": {model: {"provider": "built in"} for model in models}},
        tuple(
            NewRun(f"run-{at}", file, case.id, case.name, model, 0, False) for at, (case, model) in enumerate(pairs, 1)
        ),
        {file.path: file.path.parent},
    )


def endings(packed: Sequence[PackedRun], batch: NewBatch, seed: int) -> Iterator[PackedRun]:
    """Yield a finished run for each planned one. The figures are random but fixed by the seed."""
    chance = random.Random(seed)
    for place, run in enumerate(batch.runs):
        took_ms = round(chance.lognormvariate(6.5, 0.4), 3)
        began_ms = BEGAN_MS + seed * 86_400_000 + place * 20 + round(chance.random(), 3)
        figures = {"began_ms": began_ms, "ended_ms": began_ms + took_ms, "latency_ms": took_ms, "loop_ms": took_ms + 1}
        done = packed[place % len(packed)]
        drawn = chance.random()
        values = {**done.values, **figures}
        status = done.status
        if drawn < GOES_WRONG:
            status = Status.FAILED
            values |= {"status": status, "score": 0.5, "reason": "city should be 'Oslo' and was 'Bergen'"}
        elif drawn < GOES_WRONG * 1.1:
            status = Status.ERROR
            values |= {"status": status, "score": None, "reason": "the endpoint answered 503 three times"}
        yield replace(done, run_id=run.run_id, status=status, values=values)


def build(file: Path, cases: int, models: int, batches: int) -> None:
    """Write a history with batches of one suite by the usual functions, but with few commits."""
    folder = file.parent
    began = time.perf_counter()
    suite = suite_of(folder, cases)
    print(f"{cases:,} cases read in {time.perf_counter() - began:.1f} s", flush=True)
    real = done_runs(folder, planned(folder, REAL_RUNS))
    packer = RunPacker()
    packed = [run for run in map(packer.packed, real) if run is not None]
    with closing(open_for_writing(file, say)) as connection:
        for number in range(batches):
            batch = new_batch(suite, models_of(models), number + 1)
            began = time.perf_counter()
            with transaction(connection):
                stored = begin_batch(connection, file, batch)
            print(
                f"batch {stored} of {len(batch.runs):,} runs begun in {time.perf_counter() - began:.1f} s", flush=True
            )
            runs = enumerate(endings(packed, batch, number))
            while together := list(islice(runs, TOGETHER)):
                with transaction(connection):
                    shared = SharedTexts(connection)
                    for place, run in together:
                        write_run(connection, stored, place, run, shared)
            with transaction(connection):
                end_batch(connection, stored, batch.started_at)
            took_s = time.perf_counter() - began
            if batches < 100:
                print(f"{len(batch.runs) / took_s:,.0f} runs a second, {file.stat().st_size / 1e6:,.0f} MB", flush=True)


def built(folder: Path, cases: int = CASES, models: int = MODELS, batches: int = BATCHES) -> Path:
    """Return the history in a folder. Build it if it is missing."""
    file = folder / f"{cases}x{models}x{batches}.sqlite3"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        build(unfinished, cases, models, batches)
        unfinished.rename(file)
    return file


def read_list(file: Path) -> None:
    """Read what the app's history reads first."""
    read_batches(file, FIRST_BATCHES)


def read_first(file: Path) -> None:
    """Read what the app reads of a batch before its screen opens."""
    CompareState(batch_source(file, read_cases(file, 1, first=True)))


def read_opened(file: Path, words: str = "") -> None:
    """Read what the app reads of a batch once its screen is open."""
    CompareState(batch_source(file, read_cases(file, 1, None, words)))


def read_searched(file: Path) -> None:
    """Filter for a word that is in a tenth of the cases."""
    read_opened(file, "model-07:failed")


def read_one(file: Path) -> None:
    """Read the last run of the first batch with all its events."""
    with History(file) as history:
        run = history.run_at(1, history.batch("1").planned - 1)
        assert run is not None
        history.recording(run)


def read_each(file: Path) -> None:
    """Read the figures of all runs of a batch."""
    with History(file) as history:
        for _ in history.each_run(1):
            pass


def weigh(file: Path) -> None:
    """Compute the space that removing the first batch would free."""
    with History(file) as history:
        history.bytes_of([history.batch("1")])


def remove(file: Path) -> None:
    """Remove the first batch from a copy."""
    remove_batches(file, [1], say)


WORKS: tuple[Callable[[Path], None], ...] = (
    *(read_list, read_first, read_opened, read_searched, read_one, read_each, weigh, remove),
)
COMMANDS = (("list",), ("show", "1"), ("show", "1", "--run", "7"))


def once(file: Path, *words: str) -> tuple[float, float]:
    """Return the milliseconds of CPU and the peak MB of a function or a command, in its own process."""
    program = "benchmarks.big_history" if words[0] == "once" else "workbench"
    process = subprocess.Popen([sys.executable, "-m", program, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, words
    return (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024


def measure(files: Sequence[Path]) -> None:
    """Print the costs of each function on each file, measured in turn. The minimum of several times counts."""
    for words in (
        *(("once", work.__name__) for work in WORKS),
        *(("history", *command, "--history") for command in COMMANDS),
    ):
        taken: dict[Path, list[tuple[float, float]]] = {file: [] for file in files}
        for _ in range(1 if words[1] == "remove" else TIMES):
            for file in files:
                here = file
                if words[1] == "remove":
                    here = Path(shutil.copy(file, file.with_suffix(".copy")))
                taken[file].append(once(here, *words, str(here)))
                if here != file:
                    here.unlink()
        cells = [
            f"{min(cpu for cpu, _ in times):9,.0f} ms {max(mb for _, mb in times):6,.0f} MB" for times in taken.values()
        ]
        print(f"{' '.join(words).removesuffix(' --history'):28}{''.join(cells)}", flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["build", folder, *numbers]:
            print(built(Path(folder), *map(int, numbers)))
        case ["measure", *files]:
            measure([Path(file) for file in files])
        case ["once", name, file]:
            next(work for work in WORKS if work.__name__ == name)(Path(file))
        case _:
            print(__doc__)


if __name__ == "__main__":
    main()
