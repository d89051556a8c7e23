"""The JSON of a batch is the same during the batch and later, so scripts can combine the two."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.batches import interrupted
from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "history.schema.json").read_text(encoding="utf-8"))

GATED = """
[gate]
min_score = 0.4
[[aggregates]]
name = "scores"
of = "score"
statistics = ["mean"]
"""

SUITES = ["suites/plain.toml", "suites/gated.toml"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A project with two suites in a folder, and recordings of their runs: a second model to compare with."""
    program = Program(tmp_path_factory.mktemp("project"))
    program.write("workbench.toml", "")
    (program.folder / ".workbench").mkdir()
    head, cases = (WEATHER + WRONG).split("[[tools]]", 1)
    program.write(SUITES[0], WEATHER + WRONG)
    program.write(SUITES[1], f"{head}{GATED}[[tools]]{cases}")
    assert program.run("run", *SUITES, "--record", "recorded", "--no-history").returncode == 1
    return program


MODELS = ("--model", "offline", "--model", "replay:recorded")


def written(program: Program, *words: str) -> dict[str, Any]:
    done = program.run(*words)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def kind(program: Program, name: str, *words: str) -> dict[str, Any]:
    """Return the JSON of a command about batches, which has only this kind of report."""
    report = written(program, *words, "--format", "json")
    choices = SCHEMA["$defs"]
    fitting = [
        ref["$ref"].rsplit("/", 1)[1]
        for ref in SCHEMA["anyOf"]
        if jsonschema.Draft202012Validator({**ref, "$defs": choices}).is_valid(report)
    ]
    assert fitting == [name]
    return report


def named(runs: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return the keys by which a script joins reports."""
    return {(run["suite"], run["case_id"]) for run in runs}


@pytest.fixture(scope="module")
def ran(program: Program) -> dict[str, Any]:
    """The report of the first batch, with two models, by paths as one may write them."""
    paths = ["suites/../suites/plain.toml", str(program.folder / SUITES[1])]
    return written(program, "run", *paths, *MODELS, "--format", "json")


def test_a_batch_is_exported_as_it_was_reported(program: Program, ran: dict[str, Any]) -> None:
    assert {run["suite"] for run in ran["runs"]} == {gate["suite"] for gate in ran["gates"]} | {SUITES[0]} == {*SUITES}
    done = program.run("export", str(ran["batch"]), "-o", "exported", "--format", "json")
    assert done.returncode == 0, done.stderr
    exported = json.loads((program.folder / f"exported/batch-{ran['batch']}.json").read_text(encoding="utf-8"))
    assert exported == ran | {"timing": None}, "how long it took is not kept"


def test_a_comparison_says_the_same_again(program: Program) -> None:
    compared = written(program, "compare", *SUITES, *MODELS, "--format", "json")
    assert {case["suite"] for case in compared["cases"]} == {*SUITES}
    assert written(program, "compare", "--resume", str(compared["batch"]), "--format", "json") == compared


def test_the_words_of_the_history_name_cases_as_the_report_did(program: Program, ran: dict[str, Any]) -> None:
    number = str(ran["batch"])
    cases = named(ran["runs"])
    shown = kind(program, "ShownBatch", "history", "show", number)
    assert (named(shown["runs"]), shown["started_at"]) == (cases, ran["started_at"])
    told = kind(program, "ShownRun", "history", "show", number, "--run", "2")
    assert (named([told]), told["events"][0]["event"]) == (named(ran["runs"][1:2]), "run_started")
    case = kind(program, "ShownCase", "history", "show", "--case", "wrong")
    assert named(case["runs"]) == {(suite, "wrong") for suite in SUITES}
    listed = kind(program, "ListReport", "history", "list")
    assert {part["suite"]["suite"] for part in listed["batches"][-1]["parts"]} == {*SUITES}
    assert {trend["suite"] for trend in listed["trends"]} == {*SUITES}
    graded = kind(program, "RegradedReport", "grade", number)
    assert named(graded["batches"][0]["runs"]) == cases


def test_what_changed_is_named_likewise(program: Program, ran: dict[str, Any]) -> None:
    program.write(SUITES[0], WEATHER.replace('args = { city = "Oslo" }', 'args = { city = "Rome" }') + WRONG)
    again = written(program, "run", *SUITES, *MODELS, "--baseline", str(ran["batch"]), "--format", "json")
    program.write(SUITES[0], WEATHER + WRONG)
    changes = again["baseline"]["changes"]
    assert named(changes) == {(SUITES[0], "right")}
    diff = kind(program, "DiffReport", "history", "diff", str(ran["batch"]), str(again["batch"]))
    assert diff["changes"] == changes


def test_a_link_is_named_by_what_it_leads_to(program: Program) -> None:
    (program.folder / "link.toml").symlink_to(program.folder / SUITES[0])
    ran = written(program, "run", "link.toml", "--format", "json")
    assert named(ran["runs"]) == named(kind(program, "ShownBatch", "history", "show", str(ran["batch"]))["runs"])


def test_paths_are_those_from_the_current_folder(program: Program) -> None:
    (program.folder / "elsewhere").mkdir()
    there = Program(program.folder / "elsewhere", program.environment)
    ran = written(there, "run", f"../{SUITES[0]}", "--format", "json")
    assert {run["suite"] for run in ran["runs"]} == {f"../{SUITES[0]}"}


def test_a_batch_that_was_resumed_began_when_it_began(tmp_path: Path) -> None:
    program = Program(tmp_path)
    interrupted(program, signal.SIGKILL)
    began = written(program, "history", "list", "--format", "json")["batches"][0]["started_at"]
    assert written(program, "run", "--resume", "1", "--format", "json")["started_at"] == began
