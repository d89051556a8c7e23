"""Builds a history of a million runs and more, for measurements. Prints, asserts nothing.

`python -m benchmarks.big_history build FOLDER [CASES MODELS BATCHES]` builds one in FOLDER, unless it is there.

The runs are a few real ones of the offline model, packed as always, written by the functions that always write them;
only what ends them differs from run to run.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

from benchmarks.batches import CASE, SUITE
from benchmarks.history import done_runs, planned, say
from workbench.history.database import open_for_writing, transaction
from workbench.history.records import NewBatch, NewRun
from workbench.history.rows import begin_batch, end_batch, write_run
from workbench.history.run_packing import PackedRun, RunPacker
from workbench.suite.loading import SuiteFile, parse_suite

CASES, MODELS, BATCHES = 50_000, 20, 2
REAL_RUNS = 40
TOGETHER = 20_000
"""So many runs are committed at once: faster than in life, with the same bytes."""

BEGAN_MS = 1_900_000_000_000.0
GOES_WRONG = 0.08
"""The share of runs that fail; a tenth as many end in an error."""


def suite_of(folder: Path, cases: int) -> SuiteFile:
    """A suite of so many cases, in a file."""
    file = folder / f"weather-{cases}.toml"
    text = SUITE + "".join(CASE.replace("NUMBER", str(number)) for number in range(cases))
    file.write_text(text)
    return parse_suite(text, file)


def models_of(count: int) -> tuple[str, ...]:
    return tuple(f"model-{number:02}" for number in range(count))


def batch_of(file: SuiteFile, models: Sequence[str], day: int) -> NewBatch:
    """Each case of the suite on each model, case by case, as runs are planned."""
    assert file.suite is not None
    pairs = ((case, model) for case in file.suite.cases for model in models)
    return NewBatch(
        "runs",
        f"2030-01-{day:02}T00:00:00.000+00:00",
        "1",
        {"models": {model: {"provider": "built in"} for model in models}},
        tuple(
            NewRun(f"run-{at}", file, case.id, case.name, model, 0, False) for at, (case, model) in enumerate(pairs, 1)
        ),
        {file.path: file.path.parent},
    )


def endings(packed: Sequence[PackedRun], batch: NewBatch, seed: int) -> Iterator[PackedRun]:
    """One run for each that is planned. The figures are random, and the same for the same seed."""
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
            status = "failed"
            values |= {"status": status, "score": 0.5, "reason": "city should be 'Oslo' and was 'Bergen'"}
        elif drawn < GOES_WRONG * 1.1:
            status = "error"
            values |= {"status": status, "score": None, "reason": "the endpoint answered 503 three times"}
        yield replace(done, run_id=run.run_id, status=status, values=values)


def build(file: Path, cases: int, models: int, batches: int) -> None:
    """A history of so many batches of one suite, written as they always are, but with few commits."""
    folder = file.parent
    began = time.perf_counter()
    suite = suite_of(folder, cases)
    print(f"{cases:,} cases read in {time.perf_counter() - began:.1f} s", flush=True)
    real = done_runs(folder, planned(folder, REAL_RUNS))
    packer = RunPacker()
    packed = [run for run in map(packer.packed, real) if run is not None]
    with closing(open_for_writing(file, say)) as connection:
        for number in range(batches):
            batch = batch_of(suite, models_of(models), number + 1)
            began = time.perf_counter()
            with transaction(connection):
                stored = begin_batch(connection, file, batch)
            print(
                f"batch {stored} of {len(batch.runs):,} runs begun in {time.perf_counter() - began:.1f} s", flush=True
            )
            runs = enumerate(endings(packed, batch, number))
            while together := list(islice(runs, TOGETHER)):
                with transaction(connection):
                    for place, run in together:
                        write_run(connection, stored, place, run)
            with transaction(connection):
                end_batch(connection, stored, batch.started_at)
            took_s = time.perf_counter() - began
            print(f"{len(batch.runs) / took_s:,.0f} runs a second, {file.stat().st_size / 1e6:,.0f} MB", flush=True)


def built(folder: Path, cases: int = CASES, models: int = MODELS, batches: int = BATCHES) -> Path:
    """The history in a folder, built where it is missing."""
    file = folder / f"{cases}x{models}x{batches}.sqlite3"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".part")
        unfinished.unlink(missing_ok=True)
        build(unfinished, cases, models, batches)
        unfinished.rename(file)
    return file


def main() -> None:
    folder, numbers = Path(sys.argv[2]), [int(word) for word in sys.argv[3:]]
    print(built(folder, *numbers))


if __name__ == "__main__":
    main()
