"""A job of GitHub Actions: annotations, the summary, and no command for the runner but our own.

`commands_in` reads output as the runner does: `::command::` at the start of a line, blanks before it left aside, and
`##[command]` anywhere in one.
"""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.sampled_rows import first_of
from tests.show.hostile_texts import HOSTILE, hostile_run, report_on, texts
from workbench.cli.github import EscapedStream
from workbench.show.github import annotation_lines
from workbench.show.workflow_commands import inert, inert_json

EVIL = r"##[add-mask]a ::error::b \n::stop-commands::c\n   ::add-path::/evil ##[set-env name=x]d"
HOSTILE_WEATHER = WEATHER.replace('result = "Rain in {city}"', f'result = "{EVIL}"') + WRONG.replace(
    '"Wrong"', '"::error::name ##[warning]name"'
)


def commands_in(output: str) -> list[str]:
    found = []
    for line in re.split("\r\n|\r|\n", output):
        if (line.lstrip().startswith("::") and "::" in line.lstrip()[2:]) or re.search(r"##\[[^\]]*\]", line):
            found.append(line)
    return found


def properties(command: str) -> dict[str, str]:
    given = command.split("::")[1].partition(" ")[2]
    return dict(each.split("=", 1) for each in given.split(","))


@pytest.fixture
def job(tmp_path: Path) -> Program:
    """The program in a job, whose repository it is in."""
    (tmp_path / ".git").mkdir()
    program = Program(tmp_path, {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")})
    program.write("suites/weather.toml", HOSTILE_WEATHER)
    return program


def test_what_failed_is_annotated_at_the_line_of_its_case_and_nothing_else_is_a_command(job: Program) -> None:
    done = job.run("run", "suites/weather.toml")
    assert done.returncode == 1
    (annotation,) = commands_in(done.stdout + done.stderr)
    assert annotation.startswith("::error ")
    line = 1 + HOSTILE_WEATHER.splitlines().index('name = "::error::name ##[warning]name"')
    given = properties(annotation)
    assert (given["file"], given["line"], given["endLine"]) == ("suites/weather.toml", str(line - 1), str(line - 1))
    assert given["title"] == "%3A %3Aerror%3A%3Aname ## [warning]name [offline] failed"
    assert "wrong argument" in annotation
    assert "add-mask]a" in done.stdout


@pytest.mark.parametrize("form", ["json", "records", "jsonl"])
def test_json_for_a_program_stays_what_it_is_and_holds_no_command(job: Program, form: str) -> None:
    done = job.run("run", "suites/weather.toml", "--format", form, "--report", "a.json")
    whole = json.loads((job.folder / "a.json").read_text())
    assert commands_in(done.stdout) == []
    assert len(commands_in(done.stderr)) == 1
    if form == "json":
        assert json.loads(done.stdout)["runs"] == whole["runs"]
    elif form == "records":
        assert [json.loads(line) for line in done.stdout.splitlines()] == whole["runs"]
    assert all(json.loads(line) for line in done.stdout.splitlines()) if form != "json" else True


@pytest.mark.parametrize(
    "words",
    first_of(
        [
            ["compare", "suites", "--model", "offline,replay:runs"],
            ["grade", "runs"],
            ["history", "show", "1"],
            ["history", "show", "1", "--run", "1"],
            ["history", "show", "1", "--run", "1", "--format", "json"],
            ["history", "list"],
            ["tools", "suites"],
            ["tools", "suites", "--format", "json"],
            ["validate", "suites", "--audit"],
            ["run", "suites", "--case", "::error::x"],
            ["run", "::error::x ##[error]y"],
        ],
        3,
    ),
)
def test_no_command_prints_one_for_the_runner(job: Program, words: list[str]) -> None:
    job.run("run", "suites/weather.toml", "--record", "runs")
    done = job.run(*words)
    found = commands_in(done.stdout + done.stderr)
    assert len(found) == (words[0] == "grade")
    assert all(each.startswith("::error title=") for each in found)


def test_the_summary_is_appended_to_and_its_absence_is_no_failure_of_the_run(job: Program) -> None:
    summary = job.folder / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    job.run("run", "suites/weather.toml", "-q")
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("before\n## ✗ Not everything passed\n")
    job.run("run", "suites/weather.toml", "-q", "--no-step-summary")
    assert summary.read_text(encoding="utf-8") == text
    job.run("compare", "suites", "--model", "offline,replay:runs", "-q")
    summary.unlink()
    summary.mkdir()
    done = job.run("run", "suites/weather.toml", "-q")
    assert done.returncode == 1
    assert f"the summary of the job could not be written to {summary}: Is a directory" in done.stderr


def test_annotations_are_asked_for_anywhere(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    assert commands_in(program.run("run", "weather.toml").stdout) == []
    (annotation,) = commands_in(program.run("run", "weather.toml", "--format", "github").stdout)
    assert annotation.startswith("::error file=weather.toml,line=")


def test_nine_are_annotated_and_the_others_counted() -> None:
    report = report_on(*(hostile_run("x", case=f"case-{number}") for number in range(46)))
    lines = list(annotation_lines(report))
    assert len(lines) == 10
    assert lines[-1] == (
        "::error title=Workbench::and 37 other cases did not pass: the summary of the job has all of them\n"
    )


@given(texts)
def test_an_annotation_is_one_line_whatever_is_in_it(text: str) -> None:
    for line in annotation_lines(report_on(hostile_run(text), lines={text or "case": 3})):
        assert line.endswith("\n") and len(line.splitlines()) == 1
        assert "##[" not in line
        assert set(properties(line)) == {"file", "line", "endLine", "title"}


@given(st.lists(texts | st.text("#[:] \n\rab"), max_size=6))
def test_what_comes_in_pieces_is_no_command_either(pieces: list[str]) -> None:
    written = StringIO(newline="")
    stream = EscapedStream(written)
    for piece in pieces:
        stream.write(piece)
    output = written.getvalue()
    assert "##[" not in output
    assert not [line for line in re.split("\r\n|\r|\n", output) if line.lstrip().startswith("::")]
    assert output.replace(" ", "") == "".join(pieces).replace(" ", "")


@given(texts)
def test_what_is_inert_still_says_the_same(text: str) -> None:
    assert inert(text).replace(" ", "") == text.replace(" ", "")
    assert inert(inert(text)) == inert(text)
    assert json.loads(inert_json(json.dumps(text))) == text
    assert "##[" not in inert_json(json.dumps(text))


def test_all_that_is_hostile_is_broken_up() -> None:
    for text in HOSTILE:
        assert commands_in(inert(text)) == []
