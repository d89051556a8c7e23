"""The measure "valid arguments" and errors of tools, from runs to every report, the history and the diff of batches."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

import workbench
from tests.cli.program import Program
from tests.sampled_rows import first_rows
from tests.show.html_page import Page

LAMPS = """format = 1
name = "Lamps"

[[aggregates]]
name = "arguments"
of = "valid_arguments"
statistics = ["mean"]
at_least = { mean = 0.9 }

[[tools]]
name = "set_lamp"
description = "Set the level of a lamp."
parameters = { type = "object", required = ["level"], properties = { level = { type = "integer", maximum = 100 } } }

[[tools]]
name = "odd"
description = "A tool whose schema refers to itself without end."
parameters = { type = "object", properties = { a = { "$ref" = "#/properties/a" } } }

[[cases]]
name = "Bright"
user = "bright"
ordered = [{ tool = "set_lamp" }]

[[cases]]
name = "Odd"
user = "odd"
ordered = [{ tool = "odd" }]

[[cases]]
name = "Nothing"
user = "nothing"
expect_no_calls = true
"""


def agent_of(level: int) -> workbench.Agent:
    async def agent(request: workbench.AgentRequest) -> workbench.AgentAnswer:
        asked = request.messages[-1]
        if asked.role != "user" or asked.content == "nothing":
            return workbench.AgentAnswer("done")
        if asked.content == "odd":
            return workbench.AgentAnswer("", [workbench.call("odd", a=1)])
        return workbench.AgentAnswer("", [workbench.call("set_lamp", level=level)])

    return workbench.Agent(agent, name=f"level-{level}")


@pytest.fixture
def suite(program: Program) -> Path:
    return program.write("lamps.toml", LAMPS)


def evaluated(suite: Path, *levels: int, **options: Any) -> workbench.Report:
    return workbench.evaluate(suite, models=[agent_of(level) for level in levels], **options)


def forms_of(report: workbench.Report) -> dict[str, str]:
    """Return the report in each form, with the visible text of Markdown and HTML."""
    forms = {name: "".join(report.pieces(name)) for name in ("markdown", "junit", "csv", "records", "html")}
    page = Page(forms["html"])
    return {
        **forms,
        "markdown": forms["markdown"].replace("\\", ""),
        "html": "\n".join((page.said, *page.runs)),
    }


WHY = "the arguments of odd were not checked: its schema is invalid: the schema is nested too deeply"


def test_every_report_has_the_rate_of_each_model_and_tool(suite: Path) -> None:
    report = evaluated(suite, 50, 500)
    assert report.totals.valid_arguments.rate == 0.5
    assert {model: each.valid_arguments.rate for model, each in report.totals_per_model.items()} == {
        "level-50": 1.0,
        "level-500": 0.0,
    }
    assert [tuple(tool) for tool in report.totals.valid_arguments.tools] == [("set_lamp", 1, 2, 0), ("odd", 0, 0, 2)]
    assert report.mean("valid_arguments") == 0.5
    assert [each.statistics["mean"] for each in report.aggregates] == [1.0, 0.0]
    assert [each.met for each in report.aggregates] == [True, False]

    text = report.text()
    assert "valid arguments 50.0% of 2 calls (set_lamp 1 of 2)" in text
    assert text.count(WHY) == 1, "said once"
    place = "schema violation: call 1 set_lamp.level: got 500 (the tool's schema refuses it (maximum)"
    forms = forms_of(report)
    assert all("schema violation" in form and "(maximum)" in form for form in forms.values())
    assert place in text and "set_lamp.level" in forms["markdown"] and place in forms["junit"]
    assert "| 100.0% of 1 |" in forms["markdown"] and "| 0.0% of 1 |" in forms["markdown"]
    assert WHY in forms["markdown"] and WHY in forms["html"]
    assert '<property name="valid_calls" value="0"/>' in forms["junit"]
    rows = [*csv.DictReader(forms["csv"].splitlines())]
    assert sorted((row["model"], row["valid_calls"], row["checked_calls"]) for row in rows if row["calls"]) == [
        *[("level-50", "0", "0"), ("level-50", "1", "1")],
        *[("level-500", "0", "0"), ("level-500", "0", "1")],
    ]
    document = json.loads(report.json())
    assert document["totals_per_model"]["level-500"]["valid_arguments"]["rate"] == 0
    assert sorted(map(str, (run["valid_arguments"] for run in document["runs"]))) == sorted(
        ["[True]", "[False]", "[None]", "[None]", "[]", "[]"]
    )


def test_a_violation_that_is_only_noted_stands_in_every_report(program: Program) -> None:
    suite = program.write(
        "noted.toml", LAMPS.replace("[[aggregates]]", "[grading]\ninvalid_arguments = 'note'\n[[aggregates]]")
    )
    report = evaluated(suite, 500, cases=["bright"])
    assert [run.status for run in report.results] == ["passed"]
    place = "schema violation: call 1 set_lamp.level: got 500 (the tool's schema refuses it (maximum)"
    forms = forms_of(report)
    assert place in report.text()
    assert all(place in forms[form] for form in ("markdown", "junit", "html"))
    assert all("schema violation" in form for form in forms.values())


def test_an_unknown_schema_fails_nothing_and_runs_without_calls_say_nothing(suite: Path) -> None:
    report = evaluated(suite, 500, cases=["odd"])
    assert [run.status for run in report.results] == ["passed"]
    assert "valid arguments unknown" in report.text()
    assert report.mean("valid_arguments") is None
    assert "valid arguments" not in evaluated(suite, 500, cases=["nothing"]).text()


@pytest.mark.slow
def test_clusters_and_recordings_keep_the_measure(suite: Path, program: Program) -> None:
    many = workbench.evaluate(suite, models=["offline"], cluster="local:2", record=program.folder / "runs")
    assert [run.valid_arguments for run in many.results] == [
        run.valid_arguments for run in workbench.evaluate(suite, models=["offline"]).results
    ]
    assert any(run.valid_arguments for run in many.results)
    kept = [
        json.loads(file.read_text().splitlines()[-1]) for file in sorted((program.folder / "runs").rglob("*.jsonl"))
    ]
    assert any("valid_arguments" in json.dumps(each) for each in kept)


def shown(program: Program, *words: str) -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(program.run("history", *words, "--format", "json").stdout)
    return found


@pytest.mark.slow
def test_the_history_has_it_lists_it_and_compares_it(suite: Path, program: Program) -> None:
    history = program.folder / "h.sqlite3"
    at = ("--history", str(history))
    evaluated(suite, 50, history=history)
    evaluated(suite, 500, history=history)
    listed = shown(program, "list", *at)
    assert [batch["valid_arguments"] for batch in listed["batches"]] == [0.0, 1.0]
    assert "valid arguments 0.0%" in program.run("history", "list", *at).stdout
    assert "valid arguments 0.0% of 1 call (set_lamp 0 of 1)" in program.run("history", "show", "2", *at).stdout
    runs = shown(program, "show", "2", *at)["runs"]
    assert runs[0]["tool_arguments"] == [{"tool": "set_lamp", "valid": 0, "checked": 1, "unknown": 0}]
    compared = "valid arguments of #2 against #1: -100.0 points on the mean of one case"
    assert compared in program.run("history", "diff", "1", "2", *at).stdout
    (test,) = shown(program, "diff", "1", "2", *at)["tests"]
    assert (test["arguments_difference"], test["p_arguments"]) == (-1.0, 1.0)

    program.run("grade", "2", *at)
    assert [part["checked_calls"] for part in shown(program, "show", "2", *at)["parts"]] == [1]
    assert "valid arguments 0.0%" in program.run("history", "show", "2", *at).stdout


def test_of_earlier_runs_nothing_is_known(suite: Path, program: Program) -> None:
    history = program.folder / "h.sqlite3"
    evaluated(suite, 500, history=history)
    with closing(sqlite3.connect(history)) as connection:
        connection.execute("UPDATE runs SET arguments = NULL")
        connection.execute("UPDATE parts SET valid_calls = 0, checked_calls = 0")
        connection.commit()
    at = ("--history", str(history))
    assert shown(program, "list", *at)["batches"][0]["valid_arguments"] is None
    assert "valid arguments" not in program.run("history", "show", "1", *at).stdout


TIME = f"""format = 1
name = "Time"
execute = true
[[servers]]
name = "time"
command = [{json.dumps(sys.executable)}, "-m", "mcp_server_time"]
[[cases]]
name = "Mars"
user = "mars"
ordered = [{{ tool = "convert_time" }}]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("time", "status", "issue"),
    first_rows(
        [
            ("12:00", "passed", "tool error: call 1 convert_time (the tool answered: "),
            (25, "failed", "schema violation: call 1 convert_time.time: got 25 (the tool's schema refuses it (type)"),
        ],
        1,
    ),
)
def test_an_error_of_a_real_server_stands_at_its_call_in_every_report(
    program: Program, time: JsonValue, status: str, issue: str
) -> None:
    async def agent(request: workbench.AgentRequest) -> workbench.AgentAnswer:
        if request.messages[-1].role != "user":
            return workbench.AgentAnswer("It is late on Mars.")
        arguments: dict[str, JsonValue] = {"source_timezone": "Mars/X", "time": time, "target_timezone": "Europe/Paris"}
        return workbench.AgentAnswer("", [workbench.call("convert_time", arguments)])

    suite = program.write("time.toml", TIME)
    report = workbench.evaluate(suite, model=agent, approve=workbench.ALL, execute_all=True)
    (run,) = report.results
    assert (run.status, run.score) == (status, 1.0)
    assert issue in report.text(), "without -v, though the run passed"
    assert issue in report.text(amount="much")
    kind = issue.partition(":")[0]
    forms = forms_of(report)
    assert all(kind in form for form in forms.values())
    assert "error Error executing tool convert_time" in forms["junit"]
