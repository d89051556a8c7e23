"""A value that became a secret after a batch was stored appears in no output of `workbench history`."""

from __future__ import annotations

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.history.unpacking import texts_in
from tests.sampled_rows import first_of

PASSWORD = "hunter2hunter2zz"
SUITE = WEATHER.replace('"Right"', f'"Right {PASSWORD}"').replace('name = "Weather"', f'name = "Weather {PASSWORD}"')


@pytest.fixture
def program(program: Program) -> Program:
    """A program with two batches, the second of which failed, and a variable that was set later."""
    program.write("weather.toml", SUITE)
    program.run("run", "weather.toml", "--quiet")
    program.write("weather.toml", SUITE.replace('{ city = "Oslo" }', '{ city = "Rome" }'))
    program.run("run", "weather.toml", "--quiet")
    program.write(".env", f"DB_PASSWORD={PASSWORD}\n")
    return program


@pytest.mark.parametrize(
    "words",
    first_of(
        [
            ("list",),
            ("list", "--format", "json"),
            ("show", "2"),
            ("diff", "1", "2"),
            ("diff", "1", "2", "--format", "markdown"),
            ("diff", "1", "2", "--format", "json"),
            ("prune", "--keep", "1", "--yes"),
        ],
        2,
    ),
    ids=" ".join,
)
def test_a_name_with_a_secret_in_it_is_shown_without(program: Program, words: tuple[str, ...]) -> None:
    done = program.run("history", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "$DB_PASSWORD" in done.stdout
    assert PASSWORD not in done.stdout


@pytest.mark.slow
def test_the_plan_that_a_shard_knows_has_no_secret_and_what_is_merged_has_none(program: Program) -> None:
    for index in (1, 2):
        words = ("--shard", f"{index}/2", "--plan", PASSWORD[:8], "--history", f"{index}.sqlite3", "--quiet")
        assert program.run("run", "weather.toml", *words).returncode == 0
    merged = program.run("history", "merge", "1.sqlite3", "2.sqlite3", "--history", "m.sqlite3")
    assert "merged from 2 of 2 shards" in merged.stderr
    for name in ("1", "2", "m"):
        texts = texts_in(program.folder / f"{name}.sqlite3")
        assert any('"version":1' in text and "$DB_PASSWORD" in text for text in texts), "the outline is among them"
        assert not any(PASSWORD in text for text in texts)
