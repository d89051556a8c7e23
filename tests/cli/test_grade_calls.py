"""`workbench grade --calls` grades the calls of an external agent by the cases of a suite, without a model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER
from tests.schemas import fits, validator_of
from workbench.evaluation.calls_file import read_calls
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
    fits(report, "grade-report")
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
    assert (code, "which is unknown: write it in `clock`" in out) == (2, True), out
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
        ({"x": {"steps": [5]}}, '$.cases["x"].steps is an unknown key'),
        ({"x": {"steps": [{"content": [{"type": "tool-call"}]}]}}, '$.cases["x"].steps is an unknown key'),
        ({"x": [{"role": "assistant", "content": 5}]}, '$.cases["x"][0].tool is missing'),
        ({"x": {"calls": [], "latency_ms": -1}}, '$.cases["x"].latency_ms must not be negative'),
        ({"x": {"calls": [], "answr": "b"}}, '$.cases["x"].answr is an unknown key (did you mean `answer`?)'),
        ({"x": {"runs": []}}, '$.cases["x"].runs must not be empty'),
        ({"x": {"runs": [{"usage": {"input": 3}}]}}, '$.cases["x"].runs[0].usage.input is an unknown key'),
        ({"x": 5}, '$.cases["x"] must be an object, not a number'),
        ({"x": [{"toolName": "a", "input": 3}]}, '$.cases["x"][0].arguments must be an object, or the JSON text'),
        ({"x": {"steps": [{"toolCalls": [{"toolName": 4}], "toolResults": 5}]}}, '$.cases["x"].calls[0][0].tool is'),
        ([], "$.cases must be an object, not a list"),
    ],
)
def test_what_is_wrong_has_its_place_and_the_schema_agrees(tmp_path: Path, cases: Any, said: str) -> None:
    (tmp_path / "calls.json").write_text(json.dumps({"cases": cases}))
    with pytest.raises(RecordingError, match=re.escape(said)):
        read_calls(tmp_path / "calls.json")
    assert not validator_of("calls").is_valid({"cases": cases})


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
    fits(json.loads(EXAMPLE), "calls")
    (tmp_path / "calls.json").write_text(EXAMPLE)
    given = read_calls(tmp_path / "calls.json")
    assert (given.agent, {case: len(runs) for case, runs in given.runs.items()}) == (
        "checkout v2",
        {"oslo": 1, "bergen": 1, "small-talk": 2},
    )


CALL = {"toolName": "get_weather", "toolCallId": "1", "input": {"city": "Oslo"}}
RESULT = {"type": "tool-result", "toolCallId": "1", "toolName": "get_weather"}


@pytest.mark.parametrize(
    ("of_case", "result", "answer"),
    [
        ([CALL], None, ""),
        ([{"toolName": "get_weather", "args": {"city": "Oslo"}}], None, ""),
        ({"calls": [[CALL]], "answer": "Rain"}, None, "Rain"),
        ({"runs": [{"toolCalls": [CALL], "text": "", "finishReason": "tool-calls"}]}, None, ""),
        ({"toolCalls": [CALL], "toolResults": [{"toolCallId": "1", "result": "wet"}], "text": "Rain"}, "wet", "Rain"),
        (
            {"steps": [{"content": [CALL, {**RESULT, "output": {"mm": 3}}]}, {"content": [], "text": "Rain"}]},
            '{"mm":3}',
            "Rain",
        ),
        (
            [
                {"role": "user", "content": "Weather?"},
                {"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool-call", **CALL}]},
                {"role": "tool", "content": [{**RESULT, "output": {"type": "error-text", "value": "down"}}]},
                {"role": "assistant", "content": "Rain"},
            ],
            "down",
            "Rain",
        ),
        (
            {
                "response": {
                    "messages": [
                        {
                            "role": "assistant",
                            "parts": [
                                {"type": "step-start"},
                                {
                                    "type": "tool-get_weather",
                                    "toolCallId": "1",
                                    "input": CALL["input"],
                                    "output": "wet",
                                },
                                {"type": "step-start"},
                                {"type": "text", "text": "Rain"},
                            ],
                        }
                    ]
                }
            },
            "wet",
            "Rain",
        ),
    ],
)
def test_runs_may_have_the_shapes_of_the_ai_sdk(tmp_path: Path, of_case: Any, result: str | None, answer: str) -> None:
    (tmp_path / "calls.json").write_text(json.dumps({"cases": {"oslo": of_case}}))
    ((run,),) = read_calls(tmp_path / "calls.json").runs.values()
    made = [call for each in run.rounds for call in each.calls]
    assert [(call.tool, call.arguments) for call in made] == [("get_weather", {"city": "Oslo"})]
    results = [given for each in run.rounds for given in each.results.values()]
    assert [each.content for each in results] == ([] if result is None else [result])
    assert [each.is_error for each in results] == [result == "down"] * len(results)
    assert run.rounds[-1].text == answer
    if isinstance(of_case, dict):
        (tmp_path / "calls.jsonl").write_text(json.dumps({"case": "oslo", **of_case.get("runs", [of_case])[0]}))
        assert read_calls(tmp_path / "calls.jsonl").runs == {"oslo": (run,)}


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
    # The published system has no such rule.
    published = graded(program, find, pay, verbose=True)
    assert "as Arcade evals reports it: 1 case, 0 passed, 1 failed, pass rate 0.00%" in published
    assert "1 run: 0 passed, 1 failed" in graded(program, pay, pay)


SCORERS = """
[[aggregates]]
name = "Percentage"
of = "trajectory.percentage"
[[cases]]
name = "Pay"
user = "Pay 21"
ordered = [{ tool = "pay", args = { amount = 21 } }]
[cases.response]
"Says so, briefly" = { contains = "paid" }
contains = { contains = "Done" }
brief = { has_length = [1, 9] }
"""


@pytest.mark.parametrize(
    ("checks", "score", "said"),
    [
        ("apart", "0.50", "accuracy: matches 0 · name only 1 · wrong 0"),
        ("averaged", "0.63", "accuracy: calls 0.5 · matches 0 · name only 1 · wrong 0"),
    ],
)
def test_scorers_of_any_name_average_as_evalite_averages_them(
    program: Program, checks: str, score: str, said: str
) -> None:
    grading = f'[grading]\nby = "accuracy"\npublished_report = true\naccuracy.answer_checks = "{checks}"\n'
    program.write("s.toml", PAYMENTS.partition("[grading]")[0] + grading + SCORERS)
    shown = graded(program, ("pay", {"amount": 27}), verbose=True)
    assert said in shown
    assert f"Shop › Pay  given calls   {score}" in shown.replace("≠", "")
    # (0.5 + 0 + 1 + 1) / 4, in either case; the percentage is that of the calls alone.
    assert "as Evalite toolCallAccuracy reports it: score 63%, 1 eval" in shown
    assert "Percentage of Shop: trajectory.percentage, 1 run: mean 0.00" in shown


def test_apple_s_percentage_is_that_of_the_calls_beside_checks_of_the_answer(program: Program) -> None:
    cases = SCORERS.replace('name = "Percentage"', 'name = "Percentage"\nat_least = { mean = 1 }')
    program.write("s.toml", PAYMENTS.partition("[grading]")[0] + '[grading]\nby = "trajectory"\n' + cases)
    shown = graded(program, ("pay", {"amount": 21}), verbose=True)
    assert "Percentage of Shop: trajectory.percentage, 1 run: mean 1.00" in shown
    assert "mean 1.00, at least 1 required: met" in shown
    assert "as Apple Evaluations reports it: 1 of 1 all pass, percentage mean 1.00" in shown
    assert "1 run: 0 passed, 1 failed" in shown


def test_what_earned_a_part_shows_it_and_a_run_says_why_it_passed_nevertheless(program: Program) -> None:
    program.write("s.toml", PAYMENTS)
    lines = graded(program, ("pay", {"amount": 27}), verbose=True).splitlines()
    [wrong] = [line for line in lines if "wrong argument" in line]
    assert wrong.endswith("got 27 (closeness 0.70; earns 70% of its weight)")
    assert lines[lines.index(wrong) + 1] == "    passed: score 0.90 meets the threshold 0.8"
