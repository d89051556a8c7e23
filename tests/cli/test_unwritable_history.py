"""A history that cannot be written: no file is created for it alone, and no message claims that it has a batch."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.cli.test_resume_of_odd_batches import MODEL, lose
from tests.providers.server import Answer, Call, Request, Server, said
from workbench.history.history import History

IMPATIENT = """
from workbench.history import database
database.BUSY_TIMEOUT_S = 0.05
"""
"""To begin a program with that waits for another program's lock for a moment only."""

LACKING = 2


@pytest.fixture
def file(program: Program) -> Path:
    """The history of a project."""
    program.write("weather.toml", WEATHER)
    file = program.folder / ".workbench" / "history.sqlite3"
    file.parent.mkdir()
    return file


class Model:
    """Calls the tool, then ends. With `lock`, another program starts an endless write to the history at the first
    request."""

    def __init__(self) -> None:
        self.lock: sqlite3.Connection | None = None

    def __call__(self, request: Request) -> Answer:
        if self.lock is not None and not self.lock.in_transaction:
            self.lock.execute("BEGIN IMMEDIATE")
        if request.json["messages"][-1]["role"] == "tool":
            return said("openai", "Done.")
        return said("openai", calls=[Call("get_weather", {"city": "Oslo"})])


def run(program: Program, *words: str) -> subprocess.CompletedProcess[str]:
    return program.run("run", *words, "--model", "local", "--trust", "--quiet", first=IMPATIENT)


@pytest.fixture
def model(program: Program, file: Path) -> Iterator[tuple[Model, Server]]:
    """The model of a batch that lacks two of its runs."""
    model = Model()
    with Server(model) as server:
        program.write("workbench.toml", MODEL.format(url=server.url))
        assert run(program, "weather.toml", "--repeats", "4").stdout.endswith("details: workbench history show 1\n")
        lose(program, 1)
        lose(program, 3)
        server.requests.clear()
        yield model, server


def missing(file: Path) -> int:
    with History(file) as history:
        return history.batch("1").missing


def test_nothing_is_asked_for_a_batch_that_cannot_be_written(
    program: Program, file: Path, model: tuple[Model, Server]
) -> None:
    _, server = model
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        refused = run(program, "--resume", "1")
    assert (refused.returncode, refused.stdout) == (2, "")
    locked = f"the history {file} is locked by another program: end that program, or wait and try again"
    assert refused.stderr == f"nothing was run: {locked}\n"
    assert (server.requests, missing(file)) == ([], LACKING)
    assert run(program, "--resume", "1").stdout.endswith("details: workbench history show 1\n")
    assert (len(server.requests), missing(file)) == (2 * LACKING, 0)


def test_a_batch_is_not_said_to_be_where_its_runs_are_not(
    program: Program, file: Path, model: tuple[Model, Server]
) -> None:
    does, _ = model
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as does.lock:
        done = run(program, "--resume", "1")
    assert f"2 runs of batch 1 are not in the history {file}: 'workbench run --resume 1'" in done.stderr
    assert done.stdout.endswith("batch 1 lacks 2 runs in the history\n")
    assert (done.returncode, missing(file)) == (2, LACKING)
