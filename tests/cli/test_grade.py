"""`workbench grade`: a recorded run is regraded anywhere, without its suite, its servers or a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.cli.suites import WEATHER, WRONG
from tests.sampled_rows import first_of
from tests.schemas import fits
from workbench.suite.grading_model import GRADERS, REPEAT_RULES

RIGHT = "out/weather.right.offline.1.run.jsonl"
WRONG_ONE = RIGHT.replace("right", "wrong")
PYTHON = WEATHER.replace('args = { city = "Oslo" }', 'args = { city = { python = "looks:like_a_city" } }')


@pytest.fixture
def recorded(program: Program) -> Program:
    """The weather suite, run and recorded."""
    program.write("weather.toml", WEATHER + WRONG)
    program.run("run", "weather.toml", "--record", "out")
    return program


def test_a_recording_alone_is_enough(recorded: Program) -> None:
    shutil.move(recorded.folder / RIGHT, recorded.folder / "sent.run.jsonl")
    (recorded.folder / "weather.toml").unlink()
    done = recorded.run("grade", "sent.run.jsonl")
    assert done.returncode == 0, done.stderr
    assert "✓ Weather › Right" in done.stdout
    assert done.stdout.endswith("no grade differs from the recorded one\n")


def test_a_failed_run_fails_again_and_shows_its_issue(recorded: Program) -> None:
    done = recorded.run("grade", *map(str, sorted((recorded.folder / "out").iterdir())))
    assert done.returncode == 1
    assert 'expected "Nowhere", got "Oslo"' in done.stdout
    assert "2 runs: 1 passed, 1 failed" in done.stdout


def test_a_folder_means_all_recordings_in_it_and_quiet_is_three_lines(recorded: Program) -> None:
    recorded.write("out/notes.txt", "no recording")
    done = recorded.run("grade", "out", RIGHT, "--quiet")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "✗ 1 of 2 cases failed\nfailed: wrong\ndetails: leave out --quiet\n"


def test_verbose_shows_the_issues_of_passed_runs_too(program: Program) -> None:
    program.write(
        "weather.toml",
        WEATHER.replace(
            '"What is the weather in Oslo?"', '"What is the weather in Oslo?"\nlimits = { max_latency_ms = 0.000001 }'
        ),
    )
    program.run("run", "weather.toml", "--record", "out")
    assert "latency exceeded" not in program.run("grade", "out").stdout
    assert "latency exceeded" in program.run("grade", "out", "--verbose").stdout


def test_what_cannot_be_read_is_all_named_and_the_rest_is_graded(recorded: Program) -> None:
    recorded.write("out/a.run.jsonl", "junk")
    recorded.write("out/z.run.jsonl", "")
    (recorded.folder / "empty").mkdir()
    done = recorded.run("grade", "out", "nowhere.run.jsonl", "empty")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "empty contains no recording (a file *.run.jsonl)",
        "out/a.run.jsonl is not a recording: its first line is not JSON",
        "out/z.run.jsonl is empty, not a recording",
        "nowhere.run.jsonl cannot be read: No such file or directory",
    ]
    assert "2 runs: 1 passed, 1 failed" in done.stdout


def test_a_case_that_has_changed_since_moves_the_grade(recorded: Program) -> None:
    recorded.write("weather.toml", WEATHER.replace('city = "Oslo"', 'city = "Bergen"'))
    done = recorded.run("grade", RIGHT, "--suite", "weather.toml")
    assert done.returncode == 1
    assert done.stdout.endswith(f"{RIGHT}: passed 1.00 → failed 0.50\n1 run: passed → failed\n")


def test_the_json_report_says_what_moved(recorded: Program) -> None:
    recorded.write("weather.toml", WEATHER.replace('city = "Oslo"', 'city = "Bergen"'))
    report = json.loads(recorded.run("grade", RIGHT, "--suite", "weather.toml", "--format", "json").stdout)
    assert report["regraded"] == [
        {
            "recording": RIGHT,
            "before": {"status": "passed", "score": 1.0},
            "after": {"status": "failed", "score": 0.5},
            "moved": True,
            "not_regraded": None,
        }
    ]
    assert (report["report"], report["exit_code"], report["runs"][0]["case_id"]) == ("workbench", 1, "right")


def test_a_run_that_ended_in_an_error_keeps_it(program: Program) -> None:
    program.write("weather.toml", WEATHER.replace("[[tools]]", 'models = ["replay:gone.run.jsonl"]\n[[tools]]', 1))
    program.run("run", "weather.toml", "--record", "out")
    [file] = (program.folder / "out").iterdir()
    done = program.run("grade", str(file))
    assert done.returncode == 3
    assert "gone.run.jsonl cannot be read" in done.stdout


def test_a_recording_that_breaks_off_is_an_error_that_was_never_graded(recorded: Program) -> None:
    file = recorded.folder / RIGHT
    *begun, _finished, _result = file.read_text(encoding="utf-8").splitlines(keepends=True)
    recorded.write("cut.run.jsonl", "".join(begun))
    done = recorded.run("grade", "cut.run.jsonl")
    assert done.returncode == 3
    assert "cut.run.jsonl: not graded → error" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.run.jsonl"], "nowhere.run.jsonl cannot be read"),
        (["weather.toml", "--calls", "c.json"], "is a suite, not a recording: give it with --suite weather.toml\n"),
        (["1", "--calls", "c.json"], "'workbench grade 1' and 'workbench grade --suite FILE --calls c.json'\n"),
        (["empty"], "empty contains no recording (a file *.run.jsonl)"),
        ([RIGHT, "--suite", "nowhere.toml"], "there is no such file"),
        ([RIGHT, "--suite", "other.toml"], "a run of the case 'right', but other.toml has no such case: wrong"),
    ],
)
def test_what_cannot_be_graded_answers_two_and_says_why(recorded: Program, words: list[str], said: str) -> None:
    (recorded.folder / "empty").mkdir()
    recorded.write("other.toml", WEATHER[: WEATHER.index("[[cases]]")] + WRONG)
    done = recorded.run("grade", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_a_check_in_python_needs_trust_and_gets_it(program: Program) -> None:
    program.write("weather.toml", PYTHON)
    program.write("looks.py", "def like_a_city(value):\n    print('looking')\n    return value == 'Oslo'\n")
    program.run("run", "weather.toml", "--trust", "--record", "out")
    shutil.move(program.folder / "looks.py", program.folder / "out" / "looks.py")
    refused = program.run("grade", RIGHT)
    assert refused.returncode == 2
    assert "looks:like_a_city" in refused.stderr
    done = program.run("grade", RIGHT, "--trust", "--format", "json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["runs"][0]["status"] == "passed"


def test_grading_starts_no_server_and_so_needs_no_trust_for_one(program: Program, tmp_path: Path) -> None:
    program.write("weather.toml", WEATHER)
    program.run("run", "weather.toml", "--record", "out")
    served = '[[servers]]\nname = "gone"\ncommand = ["no-such-program"]\n[[tools]]'
    program.write("weather.toml", WEATHER.replace("[[tools]]", served, 1))
    assert program.run("grade", RIGHT, "--suite", "weather.toml").returncode == 0


def test_another_grader_decides_and_is_named(recorded: Program) -> None:
    done = recorded.run("grade", "out", "--by", "dimensions")
    assert done.returncode == 0, done.stderr
    assert "graded by dimensions" in done.stdout
    assert "failed 0.50 → passed 0.85" in done.stdout
    report = json.loads(recorded.run("grade", "out", "--by", "accuracy", "--format", "json").stdout)
    assert {run["grades"][0]["grader"] for run in report["runs"]} == {"accuracy"}
    assert [(case["grader"], case["status"]) for case in report["cases"]] == [
        ("accuracy", "passed"),
        ("accuracy", "failed"),
    ]


def test_another_grader_decides_by_a_suite_as_it_is_now(recorded: Program) -> None:
    recorded.write("weather.toml", WEATHER.replace('city = "Oslo"', 'city = "Bergen"'))
    done = recorded.run("grade", RIGHT, "--suite", "weather.toml", "--by", "trajectory")
    assert done.returncode == 1
    assert "graded by trajectory" in done.stdout
    assert f"{RIGHT}: passed 1.00 → failed 0.00\n" in done.stdout


def test_every_grader_can_be_asked_to_decide(program: Program) -> None:
    said = " ".join(program.run("grade", "--help-all").stdout.split())
    assert f"the grader that decides: {', '.join(GRADERS)}" in said
    assert f"the rule for repeats: {', '.join(REPEAT_RULES)}" in said


def test_the_runs_of_one_suite_are_reported_together(recorded: Program) -> None:
    said = recorded.run("grade", "out", "--verbose").stdout
    assert "Weather as Arcade evals reports it: 2 cases, 1 passed, 1 failed, pass rate 50.00%" in said
    assert "as Arcade evals reports it" not in recorded.run("grade", "out").stdout
    report = json.loads(recorded.run("grade", "out", "--format", "json").stdout)
    [published] = report["published"]
    assert published["numbers"]["total"] == 2
    assert {run["suite"] for run in report["runs"]} == {published["suite"]} == {RIGHT}
    fits(report, "grade-report")


DEMANDS = """
[gate]
min_score = 0.7
[[aggregates]]
name = "Easy ones"
tags = ["easy"]
statistics = ["mean"]
at_least = { mean = 1 }
"""


@pytest.mark.parametrize("by_file", first_of([False, True], 1))
def test_gates_and_aggregates_decide_as_they_do_for_run(program: Program, by_file: bool) -> None:
    suite = WEATHER.replace("[[tools]]", f"{DEMANDS}[[tools]]", 1) + WRONG
    program.write("weather.toml", suite)
    assert program.run("run", "weather.toml", "--record", "out").returncode == 0
    words = ["grade", "out", *(["--suite", "weather.toml"] if by_file else [])]
    done = program.run(*words)
    assert "gate of Weather: mean score 0.75, 0.7 required: met" in done.stdout
    assert "Easy ones of Weather: score, tagged easy, 1 run: mean 1.00\n  mean 1.00, at least 1" in done.stdout
    assert done.returncode == 0
    missed = program.run(*words, "--min-score", "0.8")
    assert "required: missed" in missed.stdout
    assert missed.stdout.count(" required") == 1, "what does not count is not said to be demanded"
    assert missed.returncode == 1


def test_a_suite_of_many_cases_is_not_listed_for_every_recording(recorded: Program) -> None:
    others = "".join(WRONG.replace("Wrong", f"Rigth {number}") for number in range(9))
    recorded.write("other.toml", WEATHER.replace('"Right"', '"Rigth"') + others)
    said = recorded.run("grade", RIGHT, "--suite", "other.toml").stderr
    assert said.endswith("but other.toml has no such case among its 10: did you mean 'rigth'?\n")


def test_repeats_that_were_recorded_come_to_what_their_rule_says(program: Program) -> None:
    program.write("weather.toml", WEATHER + "[grading]\nrepeat_rule = 'majority'\n")
    assert program.run("run", "weather.toml", "--repeats", "3", "--record", "out").returncode == 0
    wrong = program.folder / "out/weather.right.offline.2.run.jsonl"
    wrong.write_text(
        wrong.read_text(encoding="utf-8").replace('"arguments":{"city":"Oslo"}', '"arguments":{"city":"Rom"}')
    )
    done = program.run("grade", "out")
    assert "    3 runs by majority: ✓ passed · 2/3 passed or warned · flaky · mean 0.83 ± 0.24" in done.stdout
    assert done.returncode == 0
    every = program.run("grade", "out", "--repeat-rule", "every")
    assert "    3 runs by every: ✗ failed · 2/3 passed or warned" in every.stdout
    assert every.returncode == 1


def test_a_score_that_every_batch_reaches_is_warned_of(recorded: Program) -> None:
    done = recorded.run("grade", "out", "--min-score", "0")
    assert done.returncode == 0
    assert done.stderr == (
        "--min-score 0: every batch reaches 0, so failed cases would not count; give the score to reach\n"
    )
    assert recorded.run("grade", RIGHT, "--min-score", "0.5").stderr == ""


def test_a_fork_is_graded_but_speaks_for_its_case_only_where_nothing_else_does(recorded: Program) -> None:
    *lines, finished, result = (recorded.folder / WRONG_ONE).read_text(encoding="utf-8").splitlines()
    event = json.loads(finished)
    forked = {"event": "forked", "run": event["run"], "seq": event["seq"], "ms": event["ms"]}
    forked |= {"run_id": "run-0", "model": "offline", "round": 2}
    event["seq"] += 1
    text = "\n".join([*lines, *map(json.dumps, (forked, event)), result])
    recorded.write("fork.run.jsonl", text.replace('"wrong"', '"right"').replace("Wrong", "Right"))
    both = recorded.run("grade", RIGHT, "fork.run.jsonl")
    assert "✓ Weather › Right" in both.stdout
    assert "✗ ↳ fork Weather › Right" in both.stdout
    assert "1 run, 1 fork: the fork is not counted in the numbers below or in the exit code" in both.stdout
    assert "1 run: 1 passed, 0 failed\n  pass rate 100.0% of 1 graded run · mean score 1.00" in both.stdout
    assert "Failures by cause" not in both.stdout
    assert both.returncode == 0, both.stdout
    report = json.loads(recorded.run("grade", RIGHT, "fork.run.jsonl", "--format", "json").stdout)
    assert (report["forks"], report["totals"]["runs"], len(report["runs"])) == (1, 1, 2)
    assert (report["failures"]["causes"], report["exit_code"]) == ([], 0)
    assert [summary["numbers"]["total"] for summary in report["published"]] == [1]
    alone = recorded.run("grade", "fork.run.jsonl")
    assert "1 fork and no other run: the numbers below are about forks" in alone.stdout
    assert "1 run: 0 passed, 1 failed" in alone.stdout
    assert alone.returncode == 1
