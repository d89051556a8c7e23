"""Why runs fail: each failed run has causes, one of them the main one, and the tools and parameters are named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.runs import GradedRun, called, graded
from tests.grading.cases import QUANTITY_FREE, call, case_of
from tests.trajectories import CallSpec, trajectory_of
from workbench.analysis.causes import ADVICE, CAUSES, SECONDARY_CAUSES, Failures, Subject, advice_text
from workbench.analysis.failures import failures_of
from workbench.grading.grade import Grade, Issue, IssueKind
from workbench.grading.run import GRADERS_BY_NAME
from workbench.grading.status import Status
from workbench.suite.model import Case
from workbench.trajectory.events import FinishReason, RunFinished, ToolCall, ToolDefinition
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

WEATHER = case_of(call("weather", {"city": "Oslo"}))
FREE: dict[str, Any] = {"critics": QUANTITY_FREE, "fail_threshold": 1.0}


def causes_of(*runs: GradedRun) -> list[tuple[str, ...]]:
    """The causes of each failed run, the main one first."""
    return [run.causes for run in failures_of(runs).runs]


def subjects_of(failures: Failures) -> dict[str, list[tuple[str, int]]]:
    """Return the subjects of each cause, with their counts."""
    return {group.cause: [(str(subject), count) for subject, count in group.subjects] for group in failures.groups}


def by_issues(*issues: Issue, case: Case = WEATHER, answer: str = "Done.") -> GradedRun:
    """A failed run whose deciding grade has these issues."""
    run, case = called(case, ("weather", {"city": "Oslo"}), answer=answer)
    return replace(
        run, status=Status.FAILED, grades=(Grade("accuracy", 0.0, Status.FAILED, "too little", issues=issues),)
    ), case


def test_what_passed_is_no_failure() -> None:
    failures = failures_of([called(WEATHER, ("weather", {"city": "Oslo"}))])
    assert (failures.graded, failures.runs, failures.groups) == (1, (), ())


def test_a_wrong_argument_names_tool_and_parameter_with_what_was_expected_and_what_came() -> None:
    failures = failures_of([called(WEATHER, ("weather", {"city": "Rome"}))])
    assert subjects_of(failures) == {"wrong argument": [("weather.city", 1)]}
    (symptom,) = failures.runs[0].symptoms
    assert (symptom.expected, symptom.got) == ('"Oslo"', '"Rome"')


def chain_run(*rounds: list[CallSpec], reason: FinishReason, text: str = "") -> GradedRun:
    """A run of a chain of three steps that stops at the first one that fails."""
    steps = [{"user": "go", **call("weather", {"city": "Oslo"})}, call("warn"), call("rest")]
    case = Case.model_validate({"name": "chain", "steps": steps, "stop_on_failure": True})
    made = tuple(
        Round(
            number,
            calls=tuple(CallRecord(ToolCall(f"{number}.{at}", *spec), number) for at, spec in enumerate(calls)),
            text=text,
        )
        for number, calls in enumerate(rounds, 1)
    )
    return graded(case, replace(trajectory_of(), rounds=made, finish=RunFinished(reason)), fail_threshold=1.0)


def test_what_a_chain_never_came_to_is_no_cause_that_it_failed() -> None:
    run = chain_run([("weather", {"city": "Oslo"})], [("rest", {})], reason="step failed")
    failures = failures_of([run])
    assert subjects_of(failures) == {"wrong tool": [("warn, but rest was called", 1)]}
    assert failures.confusion.counts[("warn", "rest")] == 1
    assert ("rest", None) not in failures.confusion.counts


def test_a_chain_whose_first_step_calls_nothing_gave_up_at_that_step() -> None:
    (run,) = failures_of([chain_run([], reason="step failed", text="Which city?")]).runs
    assert (run.main, run.symptoms[0].why) == ("gave up", "answered without calling anything")
    assert {str(symptom.subject) for symptom in run.symptoms} == {"weather"}


def test_a_chain_that_fails_by_its_steps_alone_has_their_causes() -> None:
    swapped = chain_run([("warn", {})], [("weather", {"city": "Oslo"})], [("rest", {})], reason="steps done")
    assert swapped[0].score == 1
    assert subjects_of(failures_of([swapped])) == {
        "wrong tool": [("warn, but weather was called", 1), ("weather, but warn was called", 1)]
    }


def test_a_chain_that_goes_on_misses_the_calls_of_all_its_steps() -> None:
    assert causes_of(chain_run([("weather", {"city": "Oslo"})], [], [], reason="steps done")) == [("missing call",)]


def test_a_wrong_tool_names_both() -> None:
    failures = failures_of([called(WEATHER, ("forecast", {"city": "Oslo"}))])
    assert subjects_of(failures) == {"wrong tool": [("weather, but forecast was called", 1)]}


def test_a_missing_and_an_extra_call_of_another_tool_are_a_wrong_tool_whatever_the_grader_says() -> None:
    missing = Issue("missing call", "no call matches it", "weather", expected_call=0, expected="weather(…)")
    extra = Issue("extra call", "more than expected", "forecast", call=0, got="forecast()")
    failures = failures_of([by_issues(missing, extra)])
    assert subjects_of(failures) == {"wrong tool": [("weather, but forecast was called", 1)]}


def test_a_second_call_of_the_expected_tool_is_an_extra_call() -> None:
    twice = [("weather", {"city": "Oslo"})] * 2
    assert causes_of(called(WEATHER, *twice)) == [("extra call",)]


def test_an_answer_in_words_where_a_call_was_expected_is_giving_up() -> None:
    failures = failures_of([called(WEATHER, answer="Which city?")])
    (run,) = failures.runs
    assert run.main == "gave up"
    assert run.symptoms[0].why == "answered without calling anything"
    assert subjects_of(failures)["gave up"] == [("weather", 1)]


@pytest.mark.parametrize(
    ("reason", "cause"), [("refused", "refused"), ("truncated", "cut off"), ("rounds exhausted", "gave up")]
)
def test_a_run_that_ended_before_everything_was_there_has_that_as_its_only_cause(
    reason: FinishReason, cause: str
) -> None:
    case = case_of(call("weather", {"city": "Oslo"}), call("mail"), response_contains=["sun"])
    run = graded(case, trajectory_of(("weather", {"city": "Oslo"}), reason=reason))
    assert causes_of(run) == [(cause,)]


WEATHER_TOOL = ToolDefinition("weather", "", {"type": "object", "properties": {"city": {"type": "string"}}})
MAIL_TOOL = ToolDefinition("mail")


@pytest.mark.parametrize("by", GRADERS_BY_NAME)
@pytest.mark.parametrize(
    ("name", "causes", "advice"),
    [
        ("wether", ("unknown tool",), "only the offered tools exist, or offer one named wether"),
        ("weather<|channel|>commentary", ("endpoint",), "choose the tool parser of the model's format"),
    ],
)
def test_a_name_that_no_tool_has_is_a_cause_of_its_own(
    by: str, name: str, causes: tuple[str, ...], advice: str
) -> None:
    made = trajectory_of((name, {"city": "Oslo"}), tools=(WEATHER_TOOL, MAIL_TOOL))
    failures = failures_of([graded(WEATHER, made, by=by)])
    assert [run.causes for run in failures.runs] == [causes]
    assert advice in failures.groups[0].advice


@pytest.mark.parametrize(
    ("trajectory", "advice"),
    [
        (trajectory_of(answer="For which city?"), "put the details that the answer asks for into the request"),
        (trajectory_of(answer="It is sunny."), "should be handled with tools such as weather"),
        (
            trajectory_of(("weather", {"city": "Oslo"}), reason="rounds exhausted"),
            "let the tools' results say that a call worked",
        ),
        (trajectory_of(*[("weather", {"city": "Oslo"})] * 2), "the same call was made again"),
        (trajectory_of(("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})), "when it is not needed"),
    ],
)
def test_the_advice_is_about_what_was_seen(trajectory: Trajectory, advice: str) -> None:
    case = case_of(call("weather", {"city": "Oslo"}), *([call("mail")] if trajectory.calls[1:] == () else []))
    (run,) = failures_of([graded(case, trajectory)]).runs
    assert advice in " ".join(advice_text(each.advice_template, each.cause, each.subject) for each in run.symptoms)


def test_the_baseline_needs_a_model_and_a_model_beside_it_has_the_advice() -> None:
    run, case = called(WEATHER, ("weather", {"city": "Rome"}))
    baseline = replace(run, model="offline")
    (alone,) = failures_of([(baseline, case)]).groups
    assert alone.advice == "this baseline matches words: write the request in words of the tool, or choose a model"
    (both,) = failures_of([(baseline, case), (baseline, case), (run, case)]).groups
    assert both.advice.startswith("describe the values of weather.city")


def test_a_schema_violation_of_an_argument_is_not_a_wrong_argument_too() -> None:
    made = trajectory_of(("weather", {"city": 5}), tools=(WEATHER_TOOL,))
    assert causes_of(graded(WEATHER, made)) == [("schema violation",)]


def test_a_run_that_ended_early_for_no_harm_did_not_give_up() -> None:
    run = graded(WEATHER, trajectory_of(("weather", {"city": "Rome"}), reason="rounds exhausted"))
    assert causes_of(run) == [("wrong argument",)]


def test_with_a_single_round_there_is_nothing_to_give_up() -> None:
    case = case_of(call("weather", {"city": "Oslo"}), call("mail"))
    made = trajectory_of(("weather", {"city": "Oslo"}))
    run = graded(case, replace(made, rounds=made.rounds[:1], finish=RunFinished("rounds exhausted")))
    assert causes_of(run) == [("missing call",)]


def test_no_answer_where_one_was_checked_is_giving_up() -> None:
    case = case_of(call("weather", {"city": "Oslo"}), response_contains=["sun"])
    assert causes_of(called(case, ("weather", {"city": "Oslo"}), answer="")) == [("gave up",)]
    assert causes_of(called(case, ("weather", {"city": "Oslo"}), answer="Rain.")) == [("content",)]


def test_broken_arguments_are_not_missing_too() -> None:
    broken = trajectory_of(ToolCall("c", "weather", {}, '{"city": "Os', "it ends in the middle"))
    assert causes_of(graded(WEATHER, broken)) == [("broken JSON",)]


def test_a_forbidden_call_comes_before_the_tool_it_stands_for() -> None:
    case = case_of(call("weather"), disallowed=[call("delete")])
    assert causes_of(called(case, ("delete", {}))) == [("forbidden call", "wrong tool")]


def test_forbidden_and_unexpected_arguments_are_named() -> None:
    case = case_of(call("weather", {}, forbidden_args=["speed"]), grading={"by": "decision"})
    failures = failures_of([called(case, ("weather", {"speed": 1, "city": "Oslo"}))])
    assert subjects_of(failures) == {
        "forbidden argument": [("weather.speed", 1)],
        "unexpected argument": [("weather.city", 1)],
    }


def test_an_unexpected_argument_that_costs_nothing_is_no_cause() -> None:
    case = case_of(call("weather", {"city": "Oslo"}))
    assert causes_of(called(case, ("weather", {"city": "Rome", "days": 3}))) == [("wrong argument",)]


def test_latency_and_many_calls_are_noted_of_a_failed_run_and_never_its_main_cause() -> None:
    noted = [Issue("latency exceeded", "too slow"), Issue("over calling", "too many")]
    assert causes_of(by_issues(*noted)) == [("low score", "over calling", "latency")]
    wrong = Issue("wrong argument", "not equal", "weather", 0, 0, "city")
    assert causes_of(by_issues(*noted, wrong)) == [("wrong argument", "over calling", "latency")]


def test_what_is_only_near_is_a_low_score_unless_something_is_wrong() -> None:
    near = Issue("partial credit", "holds, but earns 0.30 of 0.50", "weather", 0, 0, "city")
    assert subjects_of(failures_of([by_issues(near)])) == {"low score": [("weather.city", 1)]}
    wrong = Issue("wrong argument", "not equal", "weather", 0, 0, "unit")
    assert causes_of(by_issues(near, wrong)) == [("wrong argument",)]


def test_one_tool_is_one_subject_however_a_provider_spells_it() -> None:
    case = case_of(call("Weather.Get", {"city": "Oslo"}))
    runs = [called(case, (name, {"city": "Rome"}), **FREE) for name in ("Weather.Get", "Weather_Get")]
    assert subjects_of(failures_of(runs)) == {"wrong argument": [("Weather.Get.city", 2)]}


def test_the_first_advice_names_what_is_concerned_most() -> None:
    runs = [called(WEATHER, ("weather", {"city": "Rome"})) for _ in range(2)]
    other = called(case_of(call("mail", {"to": "me"})), ("mail", {"to": "you"}))
    (group,) = failures_of([other, *runs]).groups
    assert group.subjects[0] == (Subject("weather", "city"), 2)
    assert "weather.city" in group.advice
    assert (group.cases, len(group.runs)) == (1, 3)


def test_every_kind_of_issue_belongs_to_a_cause_and_every_cause_has_advice() -> None:
    assert set(ADVICE) == set(CAUSES)
    for kind in get_args(IssueKind):
        (run,) = failures_of([by_issues(Issue(kind, "why", "weather", 0, 0, "city"))]).runs
        assert run.causes, kind


_calls = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.dictionaries(st.sampled_from("xy"), st.integers(0, 1), max_size=2)),
    max_size=4,
)
_reasons = st.sampled_from(["answered", "refused", "truncated", "rounds exhausted"])


@given(
    expected=_calls,
    made=st.lists(st.tuples(_calls, _reasons, st.sampled_from(["", "Done."])), max_size=4),
    more=st.fixed_dictionaries(
        {},
        optional={
            "disallowed": st.just([call("c")]),
            "extra_calls": st.just("forbid"),
            "response_contains": st.just(["done", "well"]),
        },
    ),
    by=st.sampled_from(list(GRADERS_BY_NAME)),
)
def test_every_failed_run_has_a_cause_and_one_main_cause_and_the_counts_add_up(
    expected: list[tuple[str, dict[str, int]]],
    made: list[tuple[list[tuple[str, dict[str, int]]], FinishReason, str]],
    more: dict[str, Any],
    by: str,
) -> None:
    case = case_of(*(call(tool, dict(args)) for tool, args in expected), **more)
    runs = [
        graded(case, trajectory_of(*calls, answer=answer, reason=reason), number, by=by)
        for number, (calls, reason, answer) in enumerate(made)
    ]
    failures = failures_of(runs)
    failed = {run.run_id for run, _ in runs if run.status == "failed"}
    assert {run.result.run_id for run in failures.runs} == failed
    assert {run.result.run_id for group in failures.groups for run in group.runs} == failed
    assert sum(group.main for group in failures.groups) == len(failed)
    assert [group.cause for group in failures.groups] == [
        c for c in CAUSES if any(c in r.causes for r in failures.runs)
    ]
    for run in failures.runs:
        assert run.main == min(run.causes, key=CAUSES.index)
        assert run.main not in SECONDARY_CAUSES
        assert all(run in group.runs for group in failures.groups if group.cause in run.causes)
    if case.expects_calls_or_none:
        counts = failures.confusion.counts
        graded_runs = [run for run, _ in runs if run.grades]
        assert sum(n for (wanted, _), n in counts.items() if wanted) == len(expected) * len(graded_runs)
        assert sum(n for (_, got), n in counts.items() if got) == sum(len(r.trajectory.calls) for r in graded_runs)


@pytest.mark.slow
def test_ten_thousand_runs_take_no_time_worth_speaking_of() -> None:
    run, case = called(WEATHER, ("forecast", {"city": "Oslo"}))
    failures = failures_of([(run, case)] * 10_000)
    assert failures.groups[0].subjects == ((Subject("weather", instead="forecast"), 10_000),)


def test_a_run_of_several_rounds_counts_all_its_calls() -> None:
    made = trajectory_of(("weather", {"city": "Oslo"}))
    again = replace(made.rounds[0], number=2)
    long = replace(made, rounds=(made.rounds[0], again, Round(3, text="Done.", stop_reason="answered")))
    assert failures_of([graded(WEATHER, long)]).confusion.counts == {("weather", "weather"): 1, (None, "weather"): 1}
