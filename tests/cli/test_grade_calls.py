"""`workbench grade --calls`: what an agent did elsewhere is graded by the cases of a suite, without a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from workbench.evaluation.calls_file import read_calls
from workbench.evaluation.file_schemas import file_schema
from workbench.trajectory.recording import RecordingError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "your-agent.md").read_text(encoding="utf-8")
EXAMPLE, LINES = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:2]
OTHERS = """
[[cases]]
name = "Oslo"
user = "What is the weather in Oslo?"
ordered = [{ tool = "get_weather", args = { city = "Oslo" } }]
[[cases]]
name = "Bergen"
user = "What is the weather in Bergen?"
response_contains = ["Rain"]
ordered = [{ tool = "get_weather", args = { city = "Bergen" } }]
[[cases]]
name = "Small talk"
user = "Hello"
expect_no_calls = true
"""
SUITE = WEATHER.partition("[[cases]]")[0] + OTHERS


def test_the_example_of_the_page_gives_the_report_of_a_run(program: Program) -> None:
    program.write("weather.toml", SUITE)
    program.write("calls.json", EXAMPLE)
    done = program.run("grade", "--suite", "weather.toml", "--calls", "calls.json", "--report", "r.json")
    assert (done.returncode, done.stderr) == (3, "")  # one run ended in an error
    assert "4 runs: 3 passed, 0 failed, 1 in error" in done.stdout
    assert "recorded one" not in done.stdout
    report = json.loads((program.folder / "r.json").read_text())
    jsonschema.validate(report, json.loads((ROOT / "docs" / "grade-report.schema.json").read_text()))
    bergen, talk, broken = report["runs"][1:]
    assert (bergen["model"], bergen["latency_ms"], bergen["rounds"][0]["calls"][0]["result"]) == (
        "checkout v2",
        1840,
        "Rain",
    )
    assert (talk["status"], broken["status"], broken["error"]) == ("passed", "error", "the agent crashed")
    assert report["regraded"] == []


CHECKED = """
[[cases]]
name = "Booked"
user = "Book for tomorrow."
clock = "Europe/Oslo"
grading = { invalid_arguments = "ignore" }
[[cases.ordered]]
tool = "get_weather"
args = { day = { datetime = "today+1d" } }
is_error = false
"""


def test_what_a_file_lacks_for_results_and_relative_dates_is_named(program: Program) -> None:
    program.write("weather.toml", WEATHER.partition("[[cases]]")[0] + CHECKED)
    made = {"tool": "get_weather", "arguments": {"day": "2026-06-10"}}

    def grade(**run: object) -> tuple[int, str, str]:
        program.write("calls.json", json.dumps({"cases": {"booked": {"calls": [made], **run}}}))
        done = program.run("grade", "--suite", "weather.toml", "--calls", "calls.json")
        return done.returncode, done.stdout, done.stderr

    code, out, err = grade()
    assert (code, "which is not known: write it in `clock`" in out) == (2, True), out
    assert '$.cases["booked"]: the case checks results of calls, and no call has one' in err
    made["result"] = "ok"
    assert grade(started_at="2026-06-09T10:00:00+02:00")[0] == 0
    assert "write the time with an offset" in grade(started_at="2026-06-09T10:00:00")[2]


def test_cases_that_one_side_lacks_are_named_and_gates_count(program: Program) -> None:
    program.write("weather.toml", SUITE)
    program.write("calls.jsonl", LINES.replace('"oslo", "calls": []', '"small-tlak", "calls": []'))
    done = program.run("grade", "--suite", "weather.toml", "--calls", "calls.jsonl")
    assert done.returncode == 2
    assert "line 2: weather.toml has no case 'small-tlak': did you mean 'small-talk'?" in done.stderr
    assert "there are no calls for 2 cases: bergen, small-talk" in done.stderr
    assert "1 run: 1 passed" in done.stdout
    left_out = {"cases": {"oslo": [{"tool": "get_weather"}], "bergen": None, "small-talk": None}}
    program.write("calls.json", json.dumps(left_out))
    missed = program.run("grade", "--suite", "weather.toml", "--calls", "calls.json", "--min-score", "0.9")
    assert (missed.returncode, missed.stderr) == (1, "")
    assert "--suite FILE" in program.run("grade", "--calls", "calls.json").stderr


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ({"x": [{"tool": "a"}, {}, {"tool": "c"}]}, '$.cases["x"][1].tool is missing'),
        ({"x": [[{"tool": 4}]]}, '$.cases["x"][0][0].tool must be a text, not a number'),
        ({"x": [{"tool": "a", "arguments": ["b"]}]}, '$.cases["x"][0].arguments must be an object, or the JSON text'),
        ({"x": {"calls": [], "answr": "b"}}, '$.cases["x"].answr is an unknown key (did you mean `answer`?)'),
        ({"x": {"runs": []}}, '$.cases["x"].runs must not be empty'),
        ({"x": {"runs": [{"usage": {"input": 3}}]}}, '$.cases["x"].runs[0].usage.input is an unknown key'),
        ({"x": 5}, '$.cases["x"] must be an object, not a number'),
        ([], "$.cases must be an object, not a list"),
    ],
)
def test_what_is_wrong_has_its_place_and_the_schema_agrees(tmp_path: Path, cases: Any, said: str) -> None:
    (tmp_path / "calls.json").write_text(json.dumps({"cases": cases}))
    with pytest.raises(RecordingError, match=re.escape(said)):
        read_calls(tmp_path / "calls.json")
    assert not jsonschema.Draft202012Validator(file_schema("calls")).is_valid({"cases": cases})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ('{"cases":\n {"x": [}}', "line 2, column 9 is not JSON"),
        ('{"case": "x", "calls": []}\n{"case": 3}\n', "line 2: $.case must be a text, not a number"),
        ('{"case": "x"}\n{"case": \n', "line 2 is not JSON"),
        ('[{"case": "x"}, 5]', "$[1] must be an object, not a number"),
    ],
)
def test_files_that_cannot_be_read_say_on_which_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "calls.json").write_text(text)
    with pytest.raises(RecordingError, match=re.escape(said)):
        read_calls(tmp_path / "calls.json")


def test_the_schema_takes_the_example_and_so_does_the_reader(tmp_path: Path) -> None:
    jsonschema.validate(json.loads(EXAMPLE), file_schema("calls"))
    (tmp_path / "calls.json").write_text(EXAMPLE)
    given = read_calls(tmp_path / "calls.json")
    assert (given.agent, {case: len(runs) for case, runs in given.runs.items()}) == (
        "checkout v2",
        {"oslo": 1, "bergen": 1, "small-talk": 2},
    )


PAYMENTS = """
format = 1
name = "Shop"
[grading]
fail_threshold = 0.8
warn_threshold = 0.8

[[tools]]
name = "find"
annotations = { readOnlyHint = true }

[[tools]]
name = "pay"
parameters = { type = "object", properties = { amount = { type = "number" } } }

[[cases]]
name = "Pay"
user = "Pay 21"
ordered = [{ tool = "pay", args = { amount = { near = 21, value_range = [11, 31], weight = 0.5 } } }]
"""


def graded(program: Program, *calls: tuple[str, dict[str, int]], verbose: bool = False) -> str:
    made = [{"tool": tool, "arguments": arguments} for tool, arguments in calls]
    program.write("calls.json", json.dumps({"cases": {"pay": {"runs": [{"calls": made, "answer": "Done."}]}}}))
    return program.run("grade", "--suite", "s.toml", "--calls", "calls.json", *["-v"] * verbose).stdout


def test_a_look_up_passes_and_a_second_payment_fails_where_the_suite_says_so(program: Program) -> None:
    pay = ("pay", {"amount": 21})
    find: tuple[str, dict[str, int]] = ("find", {})
    program.write("s.toml", PAYMENTS)
    unwritten = graded(program, find, pay)
    assert 'under `critics` a further call scores 0 for the run; extra_calls = "allow_read_only" frees it' in unwritten
    program.write("s.toml", PAYMENTS.replace("[grading]", '[grading]\nextra_calls = "allow_read_only"'))
    free = graded(program, find, pay)
    assert "1 run: 1 passed, 0 failed" in free
    # The published system knows no such rule.
    published = graded(program, find, pay, verbose=True)
    assert "as Arcade evals reports it: 1 case, 0 passed, 1 failed, pass rate 0.00%" in published
    assert "1 run: 0 passed, 1 failed" in graded(program, pay, pay)


def test_what_earned_a_part_shows_it_and_a_run_says_why_it_passed_nevertheless(program: Program) -> None:
    program.write("s.toml", PAYMENTS)
    lines = graded(program, ("pay", {"amount": 27}), verbose=True).splitlines()
    [wrong] = [line for line in lines if "wrong argument" in line]
    assert wrong.endswith("got 27 (closeness 0.70; earns 70% of its weight)")
    assert lines[lines.index(wrong) + 1] == "    passed: score 0.90 meets the threshold 0.8"
