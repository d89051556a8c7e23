"""Histories written by another user: a batch with a missing run, of any suite at any path."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from tests.history.batches import run_kept

ONE_CASE = '[[cases]]\nname = "Paris"\nuser = "What is the weather in Paris?"\n'
HEAD = 'format = 1\nname = "Theirs"\nmodels = ["offline"]\n'


def starting(command: str) -> str:
    """Return a suite whose server is a shell command."""
    return f'{HEAD}[[servers]]\nname = "theirs"\ncommand = ["sh", "-c", "{command}"]\n{ONE_CASE}'


def foreign_history(file: Path, suite: Path, text: str, model: str = "offline") -> None:
    """Write a history whose only run is missing. Its suite had this text at this path, and it claims that the user
    named its model."""
    file.parent.mkdir(exist_ok=True)
    run_kept(file.parent, file, suite=HEAD + ONE_CASE)
    (file.parent / "weather.toml").unlink()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(
            "UPDATE suites SET project = ?, path = ?, hash = ?, text = ?, blocks = NULL",
            (str(suite.parent), suite.name, hashlib.sha256(text.encode()).hexdigest(), zlib.compress(text.encode())),
        )
        connection.execute("UPDATE runs SET status = NULL, model = ?, model_of_suite = 0", (model,))
        connection.execute("UPDATE parts SET passed = 0, failed = 0, model = ?", (model,))
        connection.execute("DELETE FROM details")
        connection.execute("UPDATE batches SET ended_at = NULL")
