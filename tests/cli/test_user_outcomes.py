"""Users who gave up or spoilt a run, in reports, comparisons and the history, and after regrading and merging."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conversations import HEAD, PLAYED, SCRIPTED, desk
from tests.cli.program import Program

# The agent asks for the order, and the second message does not answer that.
GIVES_UP = """
[[cases]]
name = "Nothing fits"
response = { contains = "order" }

[cases.user]
patience = 1

[[cases.user.messages]]
say = "Hello."

[[cases.user.messages]]
say = "Blue."
when = { answer = { contains = "colour" } }
"""
# Everything is done after the third turn, but the user has another message.
GOES_ON = SCRIPTED.replace("max_turns = 6", "max_turns = 3")
WHY = 'user gave up (no message of the script fits in turn 3 after the answer "Which order is it?")'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with desk(tmp_path_factory.mktemp("users"), GIVES_UP + GOES_ON) as (made, _):
        assert made.run("run", "desk.toml", "--trust", "-q", "--model", "agent").returncode == 3
        yield made


def output(program: Program, *words: str) -> str:
    return program.run(*words).stdout


RUN = ("run", "desk.toml", "--trust", "--model", "agent", "--case", "nothing-fits")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (RUN, f"    {WHY}"),
        ((*RUN, "-q", "--format", "markdown"), f"- Nothing fits, agent: {WHY}"),
        ((*RUN, "-q", "--format", "markdown"), "| ✓ | Nothing fits | `agent` | n/a, the user gave up |"),
        ((*RUN, "--repeats", "2", "-q", "--format", "markdown"), "| n/a, the user gave up in 2 of 2 runs |"),
        (("history", "show", "1"), "Nothing fits        agent  the user gave up"),
        (("history", "show", "1", "--case", "nothing-fits"), "passed: the user gave up"),
        (("history", "show", "1", "--format", "markdown"), "| n/a, the user gave up |"),
        (("history", "list"), "✓1 1 !"),
        (("history", "list"), "the user spoilt 1 run · the user gave up in 1 run"),
    ],
)
def test_a_passed_run_whose_user_gave_up_says_so(program: Program, words: tuple[str, ...], shown: str) -> None:
    assert shown in output(program, *words)


def test_a_comparison_says_in_which_cells_the_user_gave_up(tmp_path: Path) -> None:
    with desk(tmp_path, GIVES_UP) as (program, _):
        words = ("compare", "desk.toml", "--trust", "--model", "agent,player")
        for form in ("text", "markdown"):
            row, *_ = [
                line for line in output(program, *words, "--format", form).splitlines() if "Nothing fits" in line
            ]
            assert row.count("the user gave up") == 1
        shown = json.loads(output(program, *words, "--format", "json"))
    assert [(cell["gave_up"], cell["user_errors"]) for cell in shown["cases"][0]["cells"]] == [(1, 0), (0, 0)]


def counts(program: Program, batch: int) -> tuple[int, int, int]:
    """Return the numbers of errors, of users' errors and of users who gave up in a batch, from the list of batches."""
    listed = json.loads(output(program, "history", "list", "--format", "json"))["batches"]
    [part] = next(each for each in listed if each["number"] == batch)["parts"]
    return part["error"], part["user_errors"], part["gave_up"]


def test_the_history_counts_what_users_spoilt_apart_from_other_errors(program: Program) -> None:
    assert counts(program, 1) == (1, 1, 1)
    head, *rows = output(program, "history", "list", "--format", "csv").splitlines()
    at = [head.split(",").index(name) for name in ("error", "user_errors", "gave_up")]
    assert [rows[-1].split(",")[each] for each in at] == ["1", "1", "1"]
    runs = json.loads(output(program, "history", "show", "1", "--format", "json"))["runs"]
    assert [run["user_outcome"] for run in runs] == ["gave up", "error"]


def test_reports_are_the_same_with_facts_and_where_only_the_runs_themselves_have_them(tmp_path: Path) -> None:
    with desk(tmp_path, GIVES_UP + GOES_ON + PLAYED) as (program, _):
        kept = ("--history", "kept.sqlite3")
        program.run("run", "desk.toml", "--trust", "-q", "--model", "agent,player", *kept)
        forms = ("csv", "markdown", "junit", "records")
        with_facts = [output(program, "history", "show", "1", "--format", form, *kept) for form in forms]
        with closing(sqlite3.connect(tmp_path / "kept.sqlite3")) as connection, connection:
            assert connection.execute("UPDATE details SET facts = NULL").rowcount == 6
        assert [output(program, "history", "show", "1", "--format", form, *kept) for form in forms] == with_facts
    assert "the user gave up" in with_facts[1] and ",3," in with_facts[0]


def test_a_regraded_and_a_merged_batch_count_their_users(tmp_path: Path) -> None:
    with desk(tmp_path, GIVES_UP + GOES_ON) as (program, _):
        for shard in ("1/2", "2/2"):
            one = ("--shard", shard, "--history", f"{shard[0]}.sqlite3")
            program.run("run", "desk.toml", "--trust", "-q", "--model", "agent", *one)
        done = program.run("history", "merge", "1.sqlite3", "2.sqlite3")
        assert done.returncode == 3, done.stderr
        assert counts(program, 1) == (1, 1, 1)
        # `final` requires nothing any more, so the user no longer continued after everything was done.
        suite = HEAD + GIVES_UP + GOES_ON
        program.write("desk.toml", suite[: suite.index("[cases.final]")] + 'response = { contains = "Done" }\n')
        assert program.run("grade", "1", "--suite", "desk.toml").returncode in (0, 1)
        runs = json.loads(output(program, "history", "show", "1", "--grading", "1", "--format", "json"))["runs"]
        outcomes = {run["case_id"]: (run["status"], run["user_outcome"]) for run in runs}
        assert outcomes == {"nothing-fits": ("passed", "gave up"), "cancel-after-a-yes": ("failed", None)}
