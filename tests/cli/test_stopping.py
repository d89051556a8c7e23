"""Batches that stop as soon as they are decided: `--until decided` of `compare` and `run`."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

import pytest

from tests.cli.batches import wait_until_one_is_kept
from tests.cli.program import Program
from tests.sampled_rows import first_rows
from tests.schemas import fits
from tests.show.html_page import Page
from workbench.history.history import History
from workbench.history.records import RunRow

CASES = 60

SUITE = """
format = 1
name = "Light"

[[tools]]
name = "paint"
description = "Set the colour of the light."
[tools.parameters]
type = "object"
required = ["colour"]
[tools.parameters.properties]
colour = { type = "string", enum = ["red", "green"] }
"""

CASE = """
[[cases]]
name = "Light {number}"
user = "Set the colour of the light to '{colour}'."
[[cases.ordered]]
tool = "paint"
args = {{ colour = {{ one_of = ["red", "green"] }} }}
"""


STUCK_SOMETIMES = """
from asyncio import Event
from itertools import count
from workbench.tools.mocks import Mocks
numbers = count(1)
async def rarely(_seconds):
    if next(numbers) > 5:
        await Event().wait()
Mocks.__init__.__defaults__ = (rarely,)
"""
"""To begin a program with in which all but the first few mocks with a delay never answer."""


def suite(colours: tuple[str, ...] = ("violet", "red"), gate: str = "") -> str:
    """Cases of which `offline` passes all, and `offline:careless` those with a colour that is listed."""
    cases = (CASE.format(number=number, colour=colours[number % len(colours)]) for number in range(CASES))
    return SUITE + gate + "".join(cases)


def compared(program: Program, *words: str) -> dict[str, Any]:
    done = program.run("compare", *words, "--format", "json", "--quiet")
    report: dict[str, Any] = json.loads(done.stdout)
    fits(report, "compare")
    return report


def watched(report: dict[str, Any]) -> dict[str, Any]:
    (pair,) = report["pairs"]
    found: dict[str, Any] = pair["watched"]
    assert pair["p_status"] is pair["p_score"] is pair["more_cases"] is None
    return found


MODELS = ("--model", "offline", "--model", "offline:careless")
BOTH = ("--until", "decided", *MODELS)


def test_a_clear_difference_stops_a_comparison_and_what_is_spared_is_neither_missing_nor_an_error(
    program: Program,
) -> None:
    program.write("light.toml", suite())
    report = compared(program, "light.toml", *BOTH, "--report", "light.html")
    found = watched(report)
    assert found["decided"] is True
    assert (found["better"], found["p"] <= 0.05) == (0, True)
    assert 8 <= found["cases"] < 30 and found["of"] == CASES
    totals = {each["model"]: each for each in report["totals"]}
    assert sum(each["skipped"] for each in totals.values()) == found["saved"] > CASES // 2
    assert all(each["interval"] is None for each in totals.values()), "an interval does not hold after stopping"
    assert all(each["stopped"] == each["errors"] == 0 for each in totals.values())
    # No run is missing: there is nothing to resume, and the report from the history is the same.
    assert "nothing to resume" in program.run("compare", "--resume").stderr
    again = compared(program, "--resume", "1")
    assert watched(again) == found
    text = program.run("compare", "--resume", "1", "--format", "text").stdout
    assert f"decided after {found['cases']} of {CASES} cases: offline:careless better on 0, worse on" in text
    assert f"{found['saved']} runs saved; the pass rates of cases that were" in text
    markdown = program.run("compare", "--resume", "1", "--format", "markdown").stdout
    assert "a real difference at the 5% level (e-value" in markdown
    assert len(re.findall(r"^Light \d+  ", text, re.MULTILINE)) == len(report["cases"]) < CASES
    page = Page((program.folder / "light.html").read_text(encoding="utf-8"))
    assert f"decided after {found['cases']} of {CASES} cases: offline:careless better on 0, worse on" in page.said
    assert "until decided, in a random order with seed" in program.run("history", "show", "1").stdout


@pytest.mark.slow
def test_equal_models_are_not_decided_and_all_runs_are_made(program: Program) -> None:
    program.write("light.toml", suite(("red",)))
    for until in ("decided", "decided,looks=4"):
        report = compared(program, "light.toml", "--until", until, *MODELS)
        found = watched(report)
        assert (found["decided"], found["cases"], found["saved"]) == (False, CASES, 0)
        assert all(each["interval"] is not None for each in report["totals"])
    assert (found["look"], found["looks"], found["rule"]) == (4, 4, "looks")


@pytest.mark.slow
def test_looks_are_taken_after_a_quarter_of_the_cases_and_the_order_follows_the_seed(program: Program) -> None:
    program.write("light.toml", suite())
    found = watched(compared(program, "light.toml", "--until", "decided,looks=4,seed=1", *MODELS))
    assert (found["decided"], found["cases"], found["look"]) == (True, CASES // 2, 2)
    # The values were separate options once.
    compared(program, "light.toml", *BOTH, "--seed", "1", "--looks", "4")
    compared(program, "light.toml", "--until", "decided,looks=4,seed=2", *MODELS)
    orders = [[row.case_name for row in stored(program, number)] for number in (1, 2, 3)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) != orders[0]


@pytest.mark.slow
def test_cases_of_one_cluster_decide_as_one(program: Program) -> None:
    clustered = (f'[[cases]]\ncluster = "k{at // 6}"{part}' for at, part in enumerate(suite().split("[[cases]]")[1:]))
    program.write("light.toml", SUITE + "".join(clustered))
    found = watched(compared(program, "light.toml", *BOTH))
    assert (found["better"], found["worse"], found["cases"]) == (0, 7, 7 * 6)
    order = [row.grading for row in (row.figures for row in stored(program, 1)) if row is not None]
    runs = [key for key, _ in groupby(grading.cluster for grading in order)]
    assert len(runs) == len(set(runs)) == CASES // 6


def stored(program: Program, batch: int) -> Sequence[RunRow]:
    (file,) = program.folder.rglob("*.sqlite3")
    with History(file) as history:
        return history.runs(batch)


@pytest.mark.slow
def test_a_batch_that_was_cut_off_goes_on_in_its_order_to_the_same_decision(program: Program) -> None:
    late = 'mocks = [{ tool = "paint", result = "late", delay_ms = 1 }]\n[[cases.ordered]]'
    text = suite(("violet", "red", "violet", "green"))
    program.write("light.toml", late.join(part for part in text.split("[[cases.ordered]]")))
    words = ("compare", "light.toml", "--until", "decided,seed=5", *MODELS, "--format", "json")
    running = program.start(*words, first=STUCK_SOMETIMES)
    wait_until_one_is_kept(program, running)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    missing = sum(row.missing for row in stored(program, 1))
    found = watched(compared(program, "--resume", "1"))
    assert 0 < missing < 2 * CASES
    assert found["decided"] is True
    whole = watched(compared(program, "light.toml", "--until", "decided,seed=5", *MODELS))
    assert found | {"saved": 0} == whole | {"saved": 0}
    order = [[(row.case_name, row.model) for row in stored(program, batch)] for batch in (1, 2)]
    assert order[0] == order[1]
    assert {row.figures.status for row in stored(program, 1) if row.figures} == {"passed", "failed", "skipped"}


@pytest.mark.parametrize(
    ("values", "model", "code", "verdict"),
    first_rows(
        [
            (",gate=0.95,worse=0.7", "offline", 0, "reached"),
            (",gate=0.95,worse=0.7", "offline:careless", 1, "missed"),
            ("", "offline", 0, "reached"),
            ("", "offline:careless", 1, "missed"),
        ],
        2,
    ),
)
def test_a_gate_is_decided_early_and_decides_the_exit_code(
    program: Program, values: str, model: str, code: int, verdict: str
) -> None:
    program.write("light.toml", suite(gate="" if values else "[gate]\nmin_pass_rate = 0.9\n"))
    done = program.run(
        "run", "light.toml", "--until", f"decided{values}", "--model", model, "--format", "json", "--quiet"
    )
    report = json.loads(done.stdout)
    (gate,) = report["gates"]
    assert (done.returncode, gate["watched"]["verdict"], gate["met"]) == (code, verdict, code == 0)
    assert gate["watched"]["runs"] + gate["watched"]["saved"] <= CASES
    assert gate["watched"]["saved"] == report["totals"]["skipped"] > 0
    text = program.run("history", "show", "1").stdout
    assert f"decided after {gate['watched']['cases']} of {CASES} cases: " in text


@pytest.mark.slow
def test_a_gate_that_stays_open_is_decided_by_all_runs(program: Program) -> None:
    # A twentieth fails, which is between `gate` and `worse`, and there are too few runs.
    program.write("light.toml", suite(("red",) * 14 + ("violet",)))
    former = ("--until", "decided", "--gate", "0.95", "--worse", "0.9")
    done = program.run("run", "light.toml", *former, "--model", "offline:careless", "--quiet", "--format", "text")
    assert "--gate, --worse: now written --until decided,gate=0.95,worse=0.9\n" in done.stderr
    assert done.returncode == 1
    assert f"not decided against 90% after {CASES} cases: 93.3% (95%: 84.7% to 97.8%); the rate " in done.stdout
    # The first run and others are missing. No report decides by the runs after it.
    (file,) = program.folder.rglob("*.sqlite3")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET status = NULL WHERE place < 3")
    shown = json.loads(program.run("history", "show", "1", "--format", "json").stdout)
    assert program.run("export", "1", "-o", "exported", "--format", "json").returncode == 0
    (exported,) = (json.loads(each.read_text()) for each in (program.folder / "exported").iterdir())
    watched_gates = [report["gates"][0]["watched"] for report in (shown, exported)]
    assert (
        watched_gates[0]
        == watched_gates[1]
        == {
            "verdict": None,
            "worse": 0.9,
            "runs": 0,
            "of": CASES,
            "saved": 0,
            "cases": 0,
            "of_cases": CASES,
            "clusters": None,
            "rate": None,
            "interval": None,
        }
    )


def test_repeats_of_a_case_are_made_together_and_a_gate_out_of_reach_is_said_before(program: Program) -> None:
    text = suite(("red",)).split("[[cases]]")
    program.write("light.toml", "[[cases]]".join(text[:21]))
    options = ("--until", "decided,gate=0.95", "--repeats", "3", "--model", "offline")
    done = program.run("run", "light.toml", *options)
    assert "20 cases cannot reach a gate of 0.95 against 0.85 early: that takes at least 21 cases" in done.stderr
    assert "not decided against 85% after 20 cases, 60 runs: 100.0% (95%: " in done.stdout
    assert done.returncode == 0
    order = [row.case_name for row in stored(program, 1)]
    assert [(name, len([*of_case])) for name, of_case in groupby(order)] == [(name, 3) for name in dict.fromkeys(order)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ["run", "--until", "decided"],
            "needs a pass rate: write --until decided,gate=X, or min_pass_rate into [gate]",
        ),
        (["run", "--until", "decided,gate=0.8,worse=0.9"], "cannot be tested against worse=0.9"),
        (["run", "--until", "0.9"], "'0.9' does not begin with decided: write decided,NAME=… with gate=…, worse=…"),
        (["run", "--until", "decided,gte=0.9"], "Unknown value gte. Did you mean gate?"),
        (["run", "--until", "decided,gate"], "'gate' is not one of its values, which are gate=…, worse=…, seed=…"),
        (["run", "--until", "decided,gate=2"], "gate must be a number between 0 and 1, not '2'"),
        (["run", "--until", "decided,seed=x"], "seed must be a whole number, not 'x'"),
        (["run", "--until", "decided,seed=1,seed=2"], "seed is given twice: omit one of them"),
        (["compare", "--until", "decided,looks=11"], "looks must be a whole number from 1 to 10, not '11'"),
        (["run", "--gate", "0.8"], "--gate applies to a batch that stops early: write --until decided,gate=…"),
        (["run", "--gate", "0.8"], "write min_pass_rate = … into [gate] of the suite; --min-score demands"),
        (["run", "--min-pass-rate", "0.8"], "Unknown option --min-pass-rate. To demand a pass rate of every batch"),
        (["compare", "--looks", "4"], "--looks applies to a batch that stops early: write --until decided,looks=…"),
        (["run", "--until", "decided,gate=0.8", "--min-score", "1"], "leave out either --min-score or --until"),
    ],
)
def test_what_cannot_be_meant_is_refused(program: Program, words: list[str], why: str) -> None:
    program.write("light.toml", suite())
    done = program.run(words[0], "light.toml", *words[1:], "--model", "offline", "--model", "offline:hasty")
    assert done.returncode == 2
    assert why in done.stderr
