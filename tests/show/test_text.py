"""The text report: the table, the issues of runs that did not pass, gates and totals."""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from tests.results import result
from tests.trajectory.scripts import stamped
from workbench.analysis.gates import quality_of
from workbench.grading.grade import Grade, Issue, RunResult, StepGrade
from workbench.grading.status import Status
from workbench.show.text import Paint
from workbench.show.views.batch_text import Amount, text_report
from workbench.suite.grading_model import Gate
from workbench.suite.settings import DimensionsOptions, Grading
from workbench.trajectory.events import (
    CallFinished,
    CallStarted,
    ExecutionStarted,
    Forked,
    RequestFailed,
    RequestStarted,
    ResponseFinished,
    ResultReceived,
    RunFinished,
    RunStarted,
    Usage,
)
from workbench.trajectory.fold import fold


def lines_of(
    results: list[RunResult], *, width: int = 80, gate: Gate | None = None, amount: Amount = "normal"
) -> list[str]:
    quality = quality_of(results, {"suite.toml": gate} if gate else {})
    names = {"suite.toml": "Weather"}
    paint = Paint(False)
    return list(text_report(results, quality, suite_names=names, width=width, paint=paint, amount=amount))


def failed() -> RunResult:
    issues = (
        Issue("wrong argument", "differs", "get_weather", 0, 0, "city", '"Oslo"', '"Rome"'),
        Issue("missing call", "never called", "set_tv", None, 1),
    )
    return result(Status.FAILED, 0.25, case="b", grade=Grade("critics", 0.25, Status.FAILED, "", (), issues))


def test_issues_stand_under_the_run_they_belong_to() -> None:
    lines = lines_of([result(Status.PASSED, 1.0), failed()])
    assert lines[1].startswith("✓ Weather › Case")
    assert lines[2].startswith("✗ Weather › B")
    assert lines[3] == '    wrong argument: call 1 get_weather.city: expected "Oslo", got "Rome" (differs)'
    assert lines[4] == "    missing call: set_tv (never called)"


def test_the_latency_of_a_run_is_the_time_that_its_limit_is_about() -> None:
    slow = replace(
        result(Status.PASSED, 1.0), trajectory=replace(result(Status.PASSED, 1.0).trajectory, loop_ms=1680.0)
    )
    by_wall = replace(slow, grading=Grading(by="dimensions"))
    by_model = replace(slow, grading=Grading(by="dimensions", dimensions=DimensionsOptions(latency="model")))
    shown = [lines_of([run])[1].split()[-3:-1] for run in (slow, by_wall, by_model)]
    assert shown == [["2", "ms"], ["1.7", "s"], ["2", "ms"]]


def test_forks_are_marked_and_count_apart_unless_all_are_forks() -> None:
    forked = [replace(run, trajectory=replace(run.trajectory, fork=Forked("run-0", "m", 2))) for run in (failed(),) * 2]
    lines = lines_of([result(Status.PASSED, 1.0), *forked])
    assert lines[2].startswith("✗ ↳ fork Weather › B")
    assert "1 run, 2 forks: the forks are not counted in the numbers below or in the exit code" in lines
    assert "1 run: 1 passed, 0 failed" in lines
    lines = lines_of(forked)
    assert "2 forks and no other run: the numbers below are about forks" in lines
    assert "2 runs: 0 passed, 2 failed" in lines


def of_a_chain(status: Status, *issues: Issue) -> RunResult:
    """A run of three steps: one passed, one failed, and one was never reached."""
    wrong = Issue("wrong argument", "differs", "get_weather", 1, 1, "city", '"Oslo"', '"Rome"')
    steps = (
        StepGrade(1, Status.PASSED, 1.0, "right", 0, (), 0),
        StepGrade(2, Status.FAILED, 0.5, "one\x1b\nargument is wrong", 1, (wrong,), 1),
        StepGrade(3, None, None, "never reached", None, (), 2),
    )
    return replace(result(status, 0.5, grade=Grade("critics", 0.5, status, "", (), issues)), steps=steps)  # type: ignore[arg-type]


def test_the_steps_of_a_chain_stand_under_its_run_with_what_is_wrong_in_them() -> None:
    lines = lines_of([of_a_chain(Status.PASSED)])
    assert lines[2:6] == [
        "    ✓ step 1  1.00  right",
        "    ✗ step 2  0.50  one␛⏎argument is wrong",
        '      wrong argument: call 2 get_weather.city: expected "Oslo", got "Rome" (differs)',
        "    – step 3     –  never reached",
    ]


def test_steps_that_all_passed_are_told_only_when_much_is_asked_for() -> None:
    passed = replace(result(Status.PASSED, 1.0), steps=(StepGrade(1, Status.PASSED, 1.0, "right", 0),))
    assert not any("step 1" in line for line in lines_of([passed]))
    assert "    ✓ step 1  1.00  right" in lines_of([passed], amount="much")


def test_what_is_told_of_a_step_is_not_told_of_the_whole_run_again() -> None:
    (wrong,) = of_a_chain(Status.FAILED).steps[1].issues
    said = '      wrong argument: call 2 get_weather.city: expected "Oslo", got "Rome" (differs)'
    other = Issue("extra call", "nobody expects it", "set_tv", 2)
    for amount in ("normal", "much"):
        lines = lines_of([of_a_chain(Status.FAILED, wrong._replace(why="put otherwise"), other)], amount=amount)
        assert [line for line in lines if "wrong argument" in line] == [said]
        assert "    extra call: call 3 set_tv (nobody expects it)" in lines


def test_the_lines_of_steps_say_which_failed_and_which_were_never_reached() -> None:
    missing = Issue("missing call", "no call matches it", "set_tv", None, 2)
    failed_step = Issue("failed step", "step 2: one argument is wrong", "get_weather", 1, 1, decides=True)
    lines = lines_of([of_a_chain(Status.FAILED, failed_step, missing)])
    assert not [line for line in lines if "missing call" in line or "failed step" in line]
    assert [line[:12] for line in lines[2:5]] == ["    ✓ step 1", "    ✗ step 2", "      wrong "]


def test_a_run_in_which_a_person_had_a_hand_says_so() -> None:
    run = result(Status.PASSED, 1.0)
    first, *others = run.trajectory.rounds
    touched = replace(run.trajectory, rounds=(replace(first, added=("Hurry.",)), *others))
    said = "    a person edited this run: the result is not the model's alone"
    assert said in lines_of([replace(run, trajectory=touched)])
    assert said not in lines_of([run])


def test_what_the_model_never_read_is_said() -> None:
    run = result(Status.PASSED, 1.0)
    unread = replace(run, trajectory=replace(run.trajectory, finish=RunFinished("steps done"), added=("Hurry.",)))
    said = "    the model never read the last message of a person: no request followed it"
    assert said in lines_of([unread])
    assert said not in lines_of([run])


def test_quiet_leaves_out_what_passed_but_counts_it() -> None:
    lines = lines_of([result(Status.PASSED, 1.0), failed()], amount="little")
    assert not [line for line in lines if line.startswith("✓")]
    assert "2 runs: 1 passed, 1 failed" in lines


def test_issues_of_passed_runs_are_shown_only_when_much_is_asked_for() -> None:
    slow = Issue("latency exceeded", "the run took longer than its budget", expected="at most 5 ms", got="9 ms")
    passed = result(Status.PASSED, 1.0, grade=Grade("critics", 1.0, Status.PASSED, "", (), (slow,)))
    said = "    latency exceeded: expected at most 5 ms, got 9 ms (the run took longer than its budget)"
    assert said in lines_of([passed], amount="much")
    assert said not in lines_of([passed])


def test_an_issue_that_decides_alone_says_so() -> None:
    forbidden = Issue("forbidden call", "it must not be made", "unlock", 0, decides=True)
    run = result(Status.FAILED, 1.0, grade=Grade("critics", 1.0, Status.PASSED, "", (), (forbidden,)))
    assert "    forbidden call: call 1 unlock (it must not be made; this alone fails the case)" in lines_of([run])


def test_infrastructure_errors_and_skip_reasons_are_said_in_words() -> None:
    lines = lines_of(
        [result(Status.ERROR, error="no route to host"), result(Status.SKIPPED, case="b", error="needs a key")]
    )
    assert "    error: no route to host" in lines
    assert "    skipped: needs a key" in lines
    assert "2 runs: 0 passed, 0 failed, 1 in error, 1 skipped" in lines


def test_gates_say_what_was_demanded_and_reached() -> None:
    lines = lines_of([failed()], gate=Gate(min_score=0.85, min_pass_rate=0.5))
    assert "gate of Weather: mean score 0.25, 0.85 required: missed" in lines
    assert "gate of Weather: pass rate 0.0% of 1 graded run, 50% required: missed" in lines


def test_several_models_have_totals_of_their_own() -> None:
    lines = lines_of([result(Status.PASSED, 1.0, model="a"), result(Status.FAILED, 0.0, model="b")])
    at = lines.index("model  passed  failed  pass rate  mean score  latency p50     cost")
    assert lines[at + 1 : at + 4] == [
        "a           1       0     100.0%        1.00         2 ms  unknown",
        "b           0       1       0.0%        0.00         2 ms  unknown",
        "2 runs: 1 passed, 1 failed",
    ]


def test_a_title_without_room_is_cut_of_the_suite_first() -> None:
    late = result(Status.PASSED, 1.0, case="refund of a late order")
    row = next(line for line in lines_of([late], width=56) if line.startswith("✓"))
    assert row.startswith("✓ Refund Of A Late Order ")


def test_no_row_of_the_table_is_wider_than_the_terminal() -> None:
    long = result(
        Status.FAILED, 0.0, case="東京 " * 40, model="provider:a-model-with-a-very-long-name-indeed", cost_usd=1.0
    )
    for width in (60, 80, 120):
        rows = [line for line in lines_of([long, failed()], width=width) if line.startswith("✗")]
        assert [cell_len(row) for row in rows] == [width, width]


def test_what_runs_cost_is_in_the_table_and_in_the_totals_of_each_model() -> None:
    lines = lines_of(
        [
            result(Status.PASSED, 1.0, model="a", cost_usd=0.000012),
            result(Status.PASSED, 1.0, model="a", cost_usd=12.5),
            result(Status.PASSED, 1.0, model="b"),
        ]
    )
    assert [line.split()[-1] for line in lines[:4]] == ["cost", "$0.000012", "$12.50", "unknown"]
    assert [line.split()[-1] for line in lines if line[:3] in ("a  ", "b  ")] == ["$12.50", "unknown"]
    assert "  9 tokens in, 15 out · $12.50 without 1 run of unknown cost" in lines


def test_a_cost_that_is_unknown_is_not_shown_at_all() -> None:
    assert not [line for line in lines_of([result(Status.PASSED, 1.0)]) if "cost" in line]


def test_a_run_without_an_answer_has_no_latency() -> None:
    failed = fold(
        stamped(
            [
                RunStarted("h", "c", "C", "m", None, (), ()),
                RequestStarted(1),
                RequestFailed(1, "401"),
                RunFinished("error", "401"),
            ]
        )
    )
    assert lines_of([result(Status.ERROR, error="401", trajectory=failed)])[1].split()[-2:] == ["–", "0"]


def test_names_cannot_act_on_the_terminal() -> None:
    hostile = result(Status.ERROR, case="\x1b[2J", error="\x1b]52;c;AAAA\x07")
    assert "\x1b" not in "".join(lines_of([hostile]))


def test_retries_executions_and_special_tokens_are_in_the_totals_and_each_notice_once() -> None:
    run = fold(
        stamped(
            [
                RunStarted("h", "c", "C", "m", None, (), (), notices=("seed is not sent",)),
                RequestStarted(1),
                RequestFailed(1, "503"),
                RequestStarted(1),
                CallStarted(1, "a", "t"),
                CallFinished("a", {}),
                ResponseFinished(1, "tool calls", Usage(1_200, 40, 1_000, 30), 1.0, 2.0),
                ExecutionStarted("a", "home"),
                ResultReceived("a", "ok", False, "server", 1.0),
                RequestStarted(2),
                RequestFailed(2, "401"),
                RunFinished("error", "401"),
            ]
        )
    )
    lines = lines_of(
        [result(Status.ERROR, error="401", trajectory=run), result(Status.ERROR, case="b", trajectory=run)]
    )
    assert "▲ seed is not sent (2 runs)" in lines
    assert "  2,400 tokens in (2,000 cached), 80 out (60 reasoning)" in lines
    assert "  requests retried: 2 · calls executed: 2" in lines


def test_a_gate_shows_as_many_digits_as_tell_what_was_reached_from_what_was_demanded() -> None:
    runs = [
        result(Status.PASSED, 1.0, case="a"),
        result(Status.PASSED, 1.0, case="b"),
        result(Status.FAILED, 1.0, case="c"),
    ]
    lines = lines_of(runs, gate=Gate(min_pass_rate=0.667))
    assert "gate of Weather: pass rate 66.67% of 3 graded runs, 66.7% required: missed" in lines


def test_a_rate_that_counts_warned_runs_says_so() -> None:
    assert "  pass rate 100.0% of 1 graded run, 1 warned · mean score 0.88" in lines_of([result(Status.WARNED, 0.88)])


def test_repeats_are_joined_under_the_last_one_that_is_shown_also_where_its_secrets_are_left_out() -> None:
    runs = [result(Status.PASSED, 1.0, repeat=0), result(Status.FAILED, 0.0, repeat=1)]
    shown = [runs[0], replace(runs[1], trajectory=replace(runs[1].trajectory))]
    lines = list(
        text_report(shown, quality_of(runs, {}), suite_names={}, width=80, paint=Paint(False), amount="normal")
    )
    assert [line for line in lines if "2 runs by" in line] == [
        "    2 runs by every: ✗ failed · 1/2 passed or warned · flaky · mean 0.50 ± 0.50"
    ]
