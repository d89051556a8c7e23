"""Hand-made batches, for tests of the writer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.history.batches import SUITE
from tests.results import result
from workbench.grading.status import Status
from workbench.history.records import NewBatch, NewRun, RunWithEvents
from workbench.suite.suite_file import SuiteFile, parse_suite

FILE = parse_suite(SUITE, Path("/project/weather.toml"))


def batch_of(runs: int, *, file: SuiteFile = FILE, started_at: str = "2030-01-01T00:00:00.000+00:00") -> NewBatch:
    """Return a batch with the repeats of the first case. Its runs are called run-0, run-1, …."""
    return NewBatch(
        kind="runs",
        started_at=started_at,
        program="1",
        settings={},
        runs=tuple(NewRun(f"run-{number}", file, "paris", "Paris", "offline", number, False) for number in range(runs)),
        projects={file.path: file.path.parent},
    )


def done(number: int) -> RunWithEvents:
    """Return a passed run with this number."""
    passed = result(Status.PASSED, 1.0, case="paris", suite="weather.toml", repeat=number)
    return RunWithEvents(f"run-{number}", passed, (), 1000.0 * number, 1000.0 * number + 5)


_CHILD = """\
import os, resource, signal, sys
from pathlib import Path
from tests.history.entries import batch_of, done
from workbench.history.history import History
from workbench.history.packing import grading_from
from workbench.history.writer import HistoryWriter
grading_from("{}")  # loads what reading needs: as another user, the sources may be out of reach
def say(said): print(said, flush=True)
file = Path(sys.argv[1])
"""

ROOT = Path(__file__).parents[2]


def child(program: str, *arguments: str | Path) -> subprocess.Popen[str]:
    """Start another program that uses the history `file`, its first argument. The program prints texts with `say`."""
    return subprocess.Popen(
        [sys.executable, "-B", "-c", _CHILD + program, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def lines_of(program: str, *arguments: str | Path) -> list[str]:
    """Return the lines that another program prints until its end."""
    with child(program, *arguments) as running:
        said, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    return said.splitlines()
