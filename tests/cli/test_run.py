"""`workbench run` as a user and as CI meet it: exit codes, selection, reports, trust, interruption."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli.forking import ForkedProgram
from tests.cli.program import COMMAND, Program, read_until
from tests.cli.suites import SLOW, TOO_LATE, WEATHER, WRONG
from tests.sampled_rows import first_of, first_rows
from tests.schemas import fits

SERVED = """
format = 1
name = "Served"
[[servers]]
name = "gone"
command = ["no-such-program-anywhere", "--flag"]
[[cases]]
name = "A"
user = "Do it."
expect_no_calls = true
"""

WORKSHOP = Path(__file__).parents[1] / "tools" / "servers" / "workshop.py"
STUBBORN = """
format = 1
name = "Served"
[[servers]]
name = "stubborn"
command = ["python", "WORKSHOP", "stubborn", "FOLDER"]
[[cases]]
name = "Nothing to do"
user = "Write a poem about autumn leaves"
expect_no_calls = true
"""


def test_steps_stream_then_a_table_and_totals_and_zero(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == 'Right  → get_weather(city="Oslo")'
    assert lines[1].startswith("Right  ← suite mock")
    assert lines[1].endswith("Rain in Oslo")
    assert "✓ passed 1.00" in done.stdout
    assert "1 run: 1 passed, 0 failed" in lines
    assert "\x1b" not in done.stdout


def test_a_failed_case_answers_one_and_shows_its_issue(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    done = program.run("run", "weather.toml", "--no-history")
    assert done.returncode == 1
    summary = done.stdout.split("\n\n")[1]
    assert 'expected "Nowhere", got "Oslo"' in done.stdout
    assert summary.startswith("✗ 1 of 2 cases failed\n2 runs: 1 passed, 1 failed\n")


@pytest.mark.parametrize(
    ("words", "code", "lines"),
    [
        (["run", "weather.toml"], 1, "✗ 1 of 2 cases failed\nfailed: wrong\ndetails: workbench history show 1\n"),
        (
            ["run", "weather.toml", "--case", "right", "--report", "r.html", "--no-history"],
            0,
            "✓ Everything passed: 1 of 1 graded run passed or warned\ndetails: r.html\n",
        ),
        (
            ["compare", "weather.toml", "--model", "offline,offline:hasty", "--no-history"],
            0,
            "pass rates on 2 cases: offline 50.0%, offline:hasty 50.0%\n",
        ),
    ],
)
def test_quiet_is_three_lines(program: Program, words: list[str], code: int, lines: str) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    done = program.run(*words, "--quiet")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.startswith(lines)
    assert done.stdout.count("\n") <= 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gate", "options", "code"),
    [
        ("", ["--min-score", "0.75"], 0),
        ("", ["--min-score", "0.8"], 1),
        ("[gate]\nmin_score = 0.75", [], 0),
        ("[gate]\nmin_pass_rate = 0.75", [], 1),
        ("[gate]\nmin_score = 0.99", ["--min-score", "0.5"], 0),
    ],
)
def test_demands_decide_instead_of_statuses(program: Program, gate: str, options: list[str], code: int) -> None:
    program.write("weather.toml", WEATHER.replace("[[tools]]", f"{gate}\n[[tools]]", 1) + WRONG)
    done = program.run("run", "weather.toml", *options)
    assert done.returncode == code, done.stdout
    assert "required: " in done.stdout


def test_aggregates_are_told_and_their_gates_decide(program: Program) -> None:
    gated = "[[aggregates]]\nname = 'Strict'\nof = 'trajectory'\nstatistics = ['mean']\nabove = { mean = LIMIT }\n"
    suite = WEATHER.replace("[[tools]]", f"{gated}\n[[tools]]", 1) + WRONG
    program.write("weather.toml", suite.replace("LIMIT", "0.4"))
    done = program.run("run", "weather.toml")
    assert done.returncode == 0, done.stdout
    assert "Strict of Weather: trajectory, 2 runs: mean 0.50\n  mean 0.50, above 0.4 required: met\n" in done.stdout
    program.write("weather.toml", suite.replace("LIMIT", "0.5"))
    done = program.run("run", "weather.toml", "--format", "json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    fits(report, "report")
    [aggregate] = report["aggregates"]
    assert (aggregate["name"], aggregate["count"], aggregate["statistics"]) == ("Strict", 2, {"mean": 0.5})
    assert aggregate["gates"] == [
        {"statistic": "mean", "threshold": 0.5, "strictly": True, "at_most": False, "reached": 0.5, "met": False}
    ]


def test_failures_stand_by_cause_below_the_totals_and_in_the_json_report(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    said = program.run("run", "weather.toml").stdout.partition("Failures by cause: 1 of 2 graded runs\n")[2]
    assert said.splitlines()[0] == "wrong argument  1 run  get_weather.city 1×"
    assert "→ this baseline matches words: write the request in words of the tool, or choose a model" in said
    assert "→" not in program.run("run", "weather.toml", "--quiet").stdout.partition("Failures by cause")[2]
    (cause,) = json.loads(program.run("run", "weather.toml", "--format", "json").stdout)["failures"]["causes"]
    assert (cause["cause"], cause["runs"], cause["main"]) == ("wrong argument", [1], [1])
    assert cause["meaning"] == "An argument has a different value than expected."


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "code"), [("every", 1), ("last", 1), ("mean", 0), ("majority", 0)])
def test_a_case_that_runs_several_times_counts_by_its_rule(program: Program, rule: str, code: int) -> None:
    program.write("weather.toml", WEATHER + f"[grading]\nrepeat_rule = '{rule}'\n")
    program.write("checks.py", "calls = iter([True, True, False])\ndef answer(value):\n    return next(calls)\n")
    text = (program.folder / "weather.toml").read_text(encoding="utf-8")
    program.write(
        "weather.toml", text.replace('city = "Oslo"', 'city = { python = "checks:answer", required = false }')
    )
    done = program.run("run", "weather.toml", "--repeats", "3", "--trust", "--concurrency", "1")
    assert f"    3 runs by {rule}: " in done.stdout
    assert "2/3 passed or warned · flaky · mean 0.83 ± 0.24" in done.stdout
    assert "pass rate 66.7% of 3 graded runs" in done.stdout
    assert done.returncode == code
    other = "last" if code == 0 else "majority"
    said = program.run("run", "weather.toml", "--repeats", "3", "--trust", "--concurrency", "1", "--repeat-rule", other)
    assert f"    3 runs by {other}: " in said.stdout
    assert said.returncode == 1 - code


def test_an_infrastructure_error_wins_over_a_failed_case(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG + TOO_LATE)
    done = program.run("run", "weather.toml")
    assert done.returncode == 3
    assert "not finished within 0.05 s" in done.stdout
    assert "1 in error" in done.stdout


def test_an_unknown_model_is_refused_before_anything_runs(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", "--model", "offline", "--model", "no-such-model")
    assert done.returncode == 2
    assert "there is no model 'no-such-model'" in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.toml"], "nowhere.toml"),
        (["broken.toml"], "broken.toml:1"),
        (["weather.toml", "--case", "left"], "no case selected: there is no case 'left'; there are right"),
        (["weather.toml", "--tag", "none"], "there is no tag 'none'; there are demo, easy"),
        (["weather.toml", "--case", "right", "--case", "renamed"], "there is no case 'renamed'"),
        (["weather.toml", "--case", "Rihgt"], "there is no case 'Rihgt'; did you mean right?"),
        ([""], "an empty path is not allowed"),
        (["weather.toml", "--output", "no/such/folder.json"], "cannot write"),
        (["empty"], "no suite at empty"),
    ],
)
def test_what_cannot_be_run_answers_two_and_says_why(program: Program, words: list[str], said: str) -> None:
    program.write("weather.toml", WEATHER)
    program.write("broken.toml", "format = \n")
    (program.folder / "empty").mkdir()
    done = program.run("run", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


BROKEN_LINE = "1 suite has errors and was not run: broken.toml"


@pytest.mark.parametrize(
    ("words", "shown"),
    first_rows(
        [
            (["run"], "✓ Weather › Right"),
            (["run", "--quiet"], f"▲ {BROKEN_LINE}\n"),
            (["run", "--format", "junit"], '<testsuite name="broken suites" tests="1" failures="0" errors="1"'),
            (["run", "--format", "markdown"], BROKEN_LINE),
            (["run", "--format", "github"], "title=a suite with errors was not run::broken.toml:3: error: "),
            (["compare", "--model", "offline,offline:hasty", "--format", "text"], BROKEN_LINE),
            (["tools"], "get_weather"),
        ],
        3,
    ),
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_broken_suite_stops_no_other_and_is_named_first_and_last(
    program: Program, words: list[str], shown: str
) -> None:
    program.write("weather.toml", WEATHER)
    program.write("broken.toml", 'format = 1\nname = "Broken"\n[[cases]]\nusr = "Hi"\n')
    done = program.run(words[0], ".", *words[1:])
    assert done.returncode == 2
    assert shown in done.stdout
    assert done.stderr.startswith("broken.toml:3: error: ")
    # The errors come first, and are all named again at the end.
    last = [*done.stdout.splitlines()[-1:], *done.stderr.splitlines()[-1:], *done.stdout.splitlines()[:1]]
    assert any(BROKEN_LINE in line for line in last)


def test_the_json_of_a_run_and_of_a_comparison_name_broken_suites(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    program.write("broken.toml", "format = \n")
    for words in (("run",), ("compare", "--model", "offline,offline:hasty")):
        report = json.loads(program.run(words[0], ".", *words[1:], "--format", "json").stdout)
        (broken,) = report["broken_suites"]
        assert (report["exit_code"], broken["suite"]) == (2, "broken.toml")
        assert broken["problems"][0].startswith("broken.toml:1: error: ")


def test_cases_are_chosen_by_id_and_tag(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    assert program.run("run", "weather.toml", "--tag", "easy").returncode == 0
    assert program.run("run", "weather.toml", "--case", "wrong").returncode == 1
    assert "2 runs" in program.run("run", "weather.toml", "--tag", "demo").stdout


def test_the_json_report_is_all_of_standard_output_and_fits_its_schema(program: Program) -> None:
    program.write("weather.toml", WEATHER + WRONG)
    done = program.run("run", "weather.toml", "--format", "json")
    report = json.loads(done.stdout)
    fits(report, "report")
    assert (done.returncode, report["exit_code"], report["interrupted"]) == (1, 1, False)
    assert [run["status"] for run in report["runs"]] == ["passed", "failed"]


def test_a_report_goes_to_a_file_while_the_steps_go_to_the_terminal(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", "--format", "json", "--output", "report.json")
    assert done.returncode == 0
    assert "→ get_weather" in done.stdout
    fits(json.loads((program.folder / "report.json").read_text(encoding="utf-8")), "report")
    program.run("run", "weather.toml", "--output", "report.txt")
    assert "1 run: 1 passed, 0 failed" in (program.folder / "report.txt").read_text(encoding="utf-8")


def test_names_and_texts_cannot_act_on_the_terminal(program: Program) -> None:
    hostile = WEATHER.replace('name = "Right"', 'name = "\\u001b[2J\\u202eRight"').replace(
        "Rain in", "\\u001b]0;x\\u0007"
    )
    program.write("weather.toml", hostile)
    done = program.run("run", "weather.toml", "--verbose")
    assert done.returncode == 0
    assert not {"\x1b", "\u202e", "\x07"}.intersection(done.stdout)
    assert "␛[2J<U+202E>Right" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_batch_reports_what_is_done(program: Program, number: signal.Signals) -> None:
    program.write("weather.toml", WEATHER + SLOW + WRONG)
    running = program.start("run", "weather.toml", "--concurrency", "1", "--verbose")
    read_until(running, 'get_weather(city="Bergen")')
    running.send_signal(number)
    rest, complaints = running.communicate()
    assert running.returncode == 130
    assert "3 runs: 1 passed, 0 failed, 2 stopped" in rest
    assert complaints.splitlines() == ["stopping; finished runs are kept", "to resume: workbench run --resume 1"]


def test_what_the_caller_ignores_stays_ignored(program: Program) -> None:
    program.write("weather.toml", WEATHER + SLOW.replace("60000", "500"))
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    running = program.start("run", "weather.toml", first=ignoring)
    read_until(running, 'get_weather(city="Bergen")')
    running.send_signal(signal.SIGHUP)
    rest, complaints = running.communicate()
    assert (running.returncode, complaints) == (0, "")
    assert "2 runs: 2 passed" in rest


@pytest.mark.parametrize("number", first_of([signal.SIGINT, signal.SIGTERM], 1))
def test_a_signal_while_servers_are_closed_costs_no_report_and_leaves_no_server(
    program: Program, number: signal.Signals
) -> None:
    served = STUBBORN.replace("WORKSHOP", str(WORKSHOP)).replace("FOLDER", program.folder.name)
    program.write("served.toml", served)
    brief = "from workbench.tools.connection import TimeLimits as Limits\n"
    brief += (
        "Limits.__init__.__defaults__ = (*Limits.__init__.__defaults__[:2], 1, 0.3, *Limits.__init__.__defaults__[4:])"
    )
    running = program.start("run", "served.toml", "--trust", first=brief)
    read_until(running, "passed 1.00")
    running.send_signal(number)
    rest, _ = running.communicate()
    assert running.returncode in (0, 130)
    assert "1 run: 1 passed, 0 failed" in rest
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"stubborn {program.folder.name}" not in left


def test_what_python_of_a_suite_prints_does_not_spoil_the_report(program: Program) -> None:
    program.write("mine.py", "def answers(arguments):\n    print('chatter')\n    return 'rain'\n")
    program.write("weather.toml", WEATHER.replace('result = "Rain in {city}"', 'python = "mine:answers"'))
    done = program.run("run", "weather.toml", "--trust", "--format", "json")
    assert json.loads(done.stdout)["runs"][0]["rounds"][0]["calls"][0]["result"] == "rain"
    assert done.stderr == "chatter\n"


@pytest.mark.parametrize(
    "option", [("--min-score", "x"), ("--min-score", "2"), ("--concurrency", "0"), ("--repeats", "1001")]
)
def test_a_wrong_number_is_refused_in_plain_words(program: Program, option: tuple[str, str]) -> None:
    program.write("weather.toml", WEATHER)
    done = program.run("run", "weather.toml", *option)
    assert done.returncode == 2
    assert f", not '{option[1]}'" in done.stderr


FULL = (2, "cannot continue: [Errno 28] No space left on device\n")


@pytest.mark.slow
def test_closed_and_full_outputs_are_no_crash(program: Program) -> None:
    program.write("weather.toml", WEATHER)

    def validate(redirection: str) -> tuple[int, str]:
        words = ["sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, "validate", "weather.toml"]
        done = subprocess.run(
            words, cwd=program.folder, env=program.environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stderr

    assert (validate(">&-")[0], validate(">&- 2>&-")[0]) == (0, 0)
    assert validate(">/dev/full") == FULL
    for closed in (("stdout",), ("stdout", "stderr")):
        first = "".join(f"import sys; sys.{name}.close(); sys.{name} = None\n" for name in closed)
        assert program.run("run", "weather.toml", first=first).returncode == 0
    full = program.run("run", "weather.toml", first="import os; os.dup2(os.open('/dev/full', os.O_WRONLY), 1)")
    assert (full.returncode, full.stderr) == FULL


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_crash(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "run", "weather.toml"],
        cwd=program.folder,
        env=program.environment,
        stdout=writing,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_without_a_terminal_an_untrusted_suite_starts_nothing_and_says_what_it_would_have(program: Program) -> None:
    program.write("served.toml", SERVED)
    done = program.run("run", "served.toml")
    assert done.returncode == 2
    assert "no-such-program-anywhere --flag" in done.stderr
    assert "--trust" in done.stderr


def test_a_trusted_server_that_is_missing_is_an_error_in_one_sentence(program: Program) -> None:
    program.write("served.toml", SERVED)
    done = program.run("run", "served.toml", "--trust")
    assert done.returncode == 3
    assert "no-such-program-anywhere" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_trust_is_asked_once_on_a_terminal_and_again_when_the_command_changes(program: Program) -> None:
    suite = program.write("served.toml", SERVED)

    def ask(answer: str | None) -> int:
        dialogue = program.ask("run", "served.toml")
        if answer is not None:
            dialogue.wait_for("[yes/no] ")
            dialogue.answer(answer)
        dialogue.end()
        return dialogue.wait()

    assert ask("no") == 2
    assert ask("yes") == 3
    assert ask(None) == 3
    suite.write_text(SERVED.replace("--flag", "--other"), encoding="utf-8")
    assert ask("no") == 2


def test_colour_is_for_terminals_only(program: Program) -> None:
    program.write("weather.toml", WEATHER)
    controller, terminal = pty.openpty()
    shown = []
    for variables in ({"NO_COLOR": "1"}, {}):
        streams = [0, terminal, 2]
        running = ForkedProgram(["run", "weather.toml"], streams, program.folder, program.environment | variables)
        assert running.wait(60) == 0
        shown.append(os.read(controller, 65536))
    os.close(controller)
    os.close(terminal)
    plain, coloured = shown
    assert b"\x1b" not in plain
    assert b"\x1b[32m" in coloured


def test_the_app_is_not_opened_without_a_terminal(program: Program) -> None:
    done = program.run()
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == "the app cannot be shown: standard input is not a terminal; 'workbench run' needs no terminal\n"
    )


def test_another_grader_decides_a_run_and_its_recording(program: Program) -> None:
    program.write("weather.toml", WEATHER.replace('"Oslo" }', '"Oslo", days = 3 }'))
    assert program.run("run", "weather.toml").returncode == 1
    done = program.run("run", "weather.toml", "--by", "dimensions", "--record", "out")
    assert (done.returncode, "✓ passed 0.85" in done.stdout) == (0, True), done.stdout
    assert "graded by dimensions" in done.stdout
    again = program.run("grade", "out")
    assert (again.returncode, "graded by dimensions" in again.stdout) == (0, True), again.stdout
    assert again.stdout.endswith("no grade differs from the recorded one\n")
    assert program.run("grade", "out", "--suite", "weather.toml").returncode == 1


PARTS = {
    "critics": "critics: tools 1 of 1 · arguments 0 of 1 · earned 1 of 2",
    "decision": "decision: should call 1 · tool 1 · arguments 0",
    "accuracy": "accuracy: matches 0 · name only 1 · extras 0 · missing 0",
    "trajectory": "trajectory: met 0 of 1 · unexpected 0",
    "dimensions": "dimensions: precision 1 · recall 1 · parameters 0.5 · content 1",
}


def test_verbose_shows_the_parts_of_the_grader_that_decides_and_json_those_of_all(program: Program) -> None:
    suite = WEATHER.split("\n[[cases]]")[0] + WRONG + "[grading.accuracy]\nmode = 'flexible'\n"
    for grader, line in PARTS.items():
        program.write("weather.toml", suite + f"[grading]\nby = '{grader}'\n")
        assert f"    {line}\n" in program.run("run", "weather.toml", "--verbose").stdout
        assert line not in program.run("run", "weather.toml").stdout
    program.write("weather.toml", suite + "[grading]\nby = 'accuracy'\n")
    report = json.loads(program.run("run", "weather.toml", "--format", "json").stdout)
    numbers = {grade["grader"]: grade["numbers"] for grade in report["runs"][0]["grades"]}
    assert numbers["decision"].items() >= {"should_call": 1, "tool_name": 1, "arguments": 0}.items()
    assert numbers["dimensions"].items() >= {"precision": 1, "recall": 1, "parameters": 0.5, "content": 1}.items()
    (summary,) = report["published"]
    assert summary["numbers"]["evals"][0]["metadata"]["details"] == {
        "matches": [],
        "nameOnlyMatches": [{"toolName": "get_weather", "input": {"city": "Oslo"}}],
        "extras": [],
        "missingToolCalls": [{"toolName": "get_weather", "input": {"city": "Nowhere"}}],
    }
