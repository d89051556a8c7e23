"""Further reports in files, of every command that has them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.show.html_page import Page, elements_of
from tests.show.markdown import tables


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_a_run_is_reported_in_several_forms_at_once(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    files = ["a.json", "b.jsonl", "c.csv", "d.txt"]
    words = [word for file in files for word in ("--report", file)]
    done = program.run("run", "weather.toml", *words)
    assert done.returncode == 1
    assert "2 runs: 1 passed, 1 failed" in done.stdout
    whole, lines, table, text = ((program.folder / file).read_text() for file in files)
    runs = json.loads(whole)["runs"]
    assert [json.loads(line) for line in lines.splitlines()] == runs
    assert [row["status"] for row in rows(table)] == [run["status"] for run in runs] == ["passed", "failed"]
    assert [row["line"] for row in rows(table)] == [str(run["line"]) for run in runs]
    written = (WEATHER + WRONG).splitlines()
    assert [written[run["line"] - 1] for run in runs] == ["[[cases]]", "[[cases]]"]
    assert "2 runs: 1 passed, 1 failed" in text
    assert not [each.name for each in program.folder.iterdir() if each.name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["x.nothing"], "cannot write x.nothing: its ending means no format; end the name in .txt, .json, "),
        (["plain"], "cannot write plain: its ending means no format"),
        (["nowhere/x.csv"], "cannot write nowhere/x.csv: there is no folder nowhere"),
        (["a.csv", "./a.csv"], "a.csv is named twice: give each report a file of its own"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_runs(
    program: Program, files: Sequence[str], said: str
) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", *(word for file in files for word in ("--report", file)))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_a_report_in_a_folder_that_nobody_may_write_is_refused(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    # Even a user who may write everywhere cannot write here.
    done = program.run("run", "weather.toml", "--report", "/proc/x.csv")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot write /proc/x.csv: cannot create a file in /proc" in done.stderr


@pytest.mark.slow
def test_comparisons_grades_batches_and_their_changes_are_reported_too(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    assert program.run("run", "weather.toml", "--record", "runs").returncode == 1
    models = ("--model", "offline,replay:runs")
    compared = program.run("compare", "weather.toml", *models, "--report", "c.csv", "--report", "c.jsonl")
    assert compared.returncode == 0, compared.stderr
    cells = [json.loads(line) for line in (program.folder / "c.jsonl").read_text().splitlines()]
    assert [(cell["case_id"], cell["model"]) for cell in cells] == [
        (row["case_id"], row["model"]) for row in rows((program.folder / "c.csv").read_text())
    ]
    assert len(cells) == 4
    assert program.run("grade", "runs", "--report", "g.csv", "--report", "g.json").returncode == 1
    assert len(rows((program.folder / "g.csv").read_text())) == 2
    assert len(json.loads((program.folder / "g.json").read_text())["regraded"]) == 2
    shown = program.run("history", "show", "1", "--report", "s.csv", "--report", "s.jsonl", "--report", "s.txt")
    assert shown.returncode == 0, shown.stderr
    assert (program.folder / "s.txt").read_text() == shown.stdout
    assert [row["status"] for row in rows((program.folder / "s.csv").read_text())] == ["passed", "failed"]
    diff = program.run("history", "diff", "1", "2", "--report", "d.csv", "--report", "d.jsonl", "--report", "d.md")
    assert diff.returncode == 0, diff.stderr
    changes = [json.loads(line)["kind"] for line in (program.folder / "d.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows((program.folder / "d.csv").read_text())] == changes
    refused = program.run("history", "show", "1", "--run", "1", "--report", "s.csv")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--report reports on a whole batch" in refused.stderr


def test_records_and_rows_stand_on_standard_output_alone(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    done = program.run("run", "weather.toml", "--format", "records")
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["passed", "failed"]
    assert [row["status"] for row in rows(program.run("run", "weather.toml", "--format", "csv").stdout)] == [
        "passed",
        "failed",
    ]
    written = program.run("run", "weather.toml", "-q", "--format", "records", "-o", "runs.jsonl")
    assert written.returncode == 1
    assert len((program.folder / "runs.jsonl").read_text().splitlines()) == 2


EXPECTED = ['Expectedget_weatherordered 1city"Oslo"', 'get_weatherordered 1city"Oslo"']
"""Return the user message of the first run in a page."""


def test_a_page_is_written_for_runs_grades_and_batches(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    assert program.run("run", "weather.toml", "--record", "runs", "--report", "r.html").returncode == 1
    assert program.run("grade", "runs", "--report", "g.html").returncode == 1
    assert program.run("history", "show", "1", "--report", "s.htm").returncode == 0
    pages = [Page((program.folder / name).read_text(encoding="utf-8")) for name in ("r.html", "g.html", "s.htm")]
    assert ["✗1 of 2 cases failed" in page.said for page in pages] == [True] * 3
    assert [[fact["status"] for fact in page.records("facts")] for page in pages] == [["passed", "failed"]] * 3
    assert [elements_of(page.records("runs")[0]["view"], "expected") for page in pages] == [EXPECTED] * 3
    assert "no grade differs from the recorded one" in pages[1].said


def test_a_page_of_a_comparison_unfolds_every_run(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    assert program.run("run", "weather.toml", "--record", "runs").returncode == 1
    models = ("--model", "offline,replay:runs")
    done = program.run("compare", "weather.toml", *models, "--only-differences", "--report", "c.html")
    assert done.returncode == 0, done.stderr
    again = program.run("compare", "--resume", "2", "-o", "again.html")
    assert again.returncode == 0, again.stderr
    for name in ("c.html", "again.html"):
        page = Page((program.folder / name).read_text(encoding="utf-8"))
        assert page.head["only_differences"] is (name == "c.html")
        assert "2 models compared on 2 cases" in page.said and "✗2 models" not in page.said
        assert "exit code 0" in page.said
        assert page.head["models"] == ["offline", "replay:runs"]
        facts = [(fact["case"], fact["model"], fact["status"]) for fact in page.records("facts")]
        assert [case["case_name"] for case in page.records("cases")] == ["Right", "Wrong"]
        assert sorted(facts) == [(0, 0, "passed"), (0, 1, "passed"), (1, 0, "failed"), (1, 1, "failed")]
        assert elements_of(page.records("runs")[0]["view"], "expected") == EXPECTED


def test_a_page_of_two_batches_has_the_runs_of_both(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    assert program.run("run", "weather.toml").returncode == 1
    program.write("weather.toml", WEATHER + WRONG.replace("Nowhere", "Oslo"))
    assert program.run("run", "weather.toml").returncode == 0
    done = program.run("history", "diff", "1", "2", "--report", "d.html")
    assert done.returncode == 0, done.stderr
    page = Page((program.folder / "d.html").read_text(encoding="utf-8"))
    assert "0 broke · 1 fixed · 0 moved · 1 as before#1 (" in page.said
    assert "What changedwhatcasehowfixedWeather › Wrong" in page.said
    assert "#run=4&beside=2" in [attributes.get("href") for attributes, _ in page.of("a")]
    assert page.head["models"] == ["offline (#1)", "offline"]
    cells = [[cell["status"] for cell in case["cells"]] for case in page.records("cases")]
    assert cells == [["passed", "passed"], ["failed", "passed"]]
    checks = [elements_of(run["view"], "checks") for run in page.records("runs")]
    assert checks == [['city"Oslo"'], ['city"Nowhere"'], ['city"Oslo"'], ['city"Oslo"']]


def test_a_pull_request_is_told_what_broke_and_which_demand_was_missed(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    assert program.run("run", "weather.toml").returncode == 0
    program.write("weather.toml", WEATHER.replace('city = "Oslo" }', 'city = "Bergen" }') + WRONG)
    words = ("--baseline", "1", "--fail-on", "regression", "--min-score", "0.9", "--report", "pr.md")
    assert program.run("run", "weather.toml", *words).returncode == 1
    text = (program.folder / "pr.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "## ✗ Not everything passed",
        "### ✗ Gates",
        "### ✗ regression: 1 case broke since the baseline `#1`",
        "### Why",
        "### 2 cases that did not pass",
    ]
    assert re.search(r"^- --min-score: mean score [^\n]*0\.9 required: missed$", text, re.MULTILINE)
    changes = tables(text)[1]
    assert [row[:2] for row in changes[1:]] == [["broke", "Weather › Right"], ["new", "Weather › Wrong"]]
