"""`workbench history flaky` lists cases with varying results although nothing about them changed."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.tables import each_row
from workbench.analysis.over_time import StoredStatus, flaky_cases
from workbench.grading.status import Status

GOOD: Status = Status.PASSED
BAD: Status = Status.FAILED


def stored(*batches: tuple[Status, ...], content: str = "same") -> list[StoredStatus]:
    return [
        StoredStatus("s", "S", "c", "C", "m", content, number, f"2026-01-0{number}", status)
        for number, statuses in enumerate(batches, 1)
        for status in statuses
    ]


@each_row(
    ("batches", "since"),
    [
        (((GOOD,), (GOOD,), (GOOD,)), None),
        (((BAD,), (BAD,)), None),
        (((GOOD,), (BAD,), (BAD,)), None),
        (((GOOD,), (BAD,), (GOOD,)), 2),
        (((GOOD, GOOD), (GOOD, BAD)), 2),
        (((GOOD,), (Status.ERROR,), (GOOD,)), None),
        (((BAD, Status.WARNED), (BAD,)), 1),
    ],
)
def test_one_change_is_no_flakiness_and_two_are(batches: tuple[tuple[Status, ...], ...], since: int | None) -> None:
    found = flaky_cases(stored(*batches))
    assert [flaky.since_batch for flaky in found] == ([] if since is None else [since])


def test_runs_of_another_content_do_not_count() -> None:
    changed = [*stored((GOOD,), (BAD,), content="before"), *stored((GOOD,), (GOOD,))]
    assert flaky_cases(changed) == []


@pytest.mark.slow
def test_a_flaky_case_is_named_with_its_course_until_it_changes(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    (program.folder / ".workbench").mkdir()
    for _ in range(3):
        program.run("run", "weather.toml")
    assert "0 flaky cases in the last 3 batches" in program.run("history", "flaky").stdout
    with closing(sqlite3.connect(program.folder / ".workbench" / "history.sqlite3")) as connection, connection:
        connection.execute("UPDATE runs SET status = 'failed' WHERE batch = 2 AND case_id = 'right'")
    done = program.run("history", "flaky")
    assert done.returncode == 1
    assert "◇ Weather › Right  offline" in done.stdout
    assert "2 of 3 runs good" in done.stdout
    assert "flaky since batch 2" in done.stdout
    assert "#1 1/1 #2 0/1 #3 1/1" in done.stdout
    [case] = json.loads(program.run("history", "flaky", "--format", "json").stdout)["cases"]
    assert (case["case_id"], case["since_batch"], case["good"], case["runs"]) == ("right", 2, 2, 3)
    program.write("weather.toml", (WEATHER + WRONG).replace("City name", "Name of the city"))
    program.run("run", "weather.toml")
    assert "0 flaky cases in the last 4 batches" in program.run("history", "flaky").stdout
    program.write("other.toml", WEATHER.replace('name = "Weather"', 'name = "Other"'))
    program.run("run", "other.toml")
    assert "0 flaky cases in the last 1 batch" in program.run("history", "flaky", "--suite", "Other").stdout
    mistyped = program.run("history", "flaky", "--suite", "wether.toml")
    assert (mistyped.returncode, "no batch of a suite 'wether.toml'" in mistyped.stderr) == (2, True), "not without any"
