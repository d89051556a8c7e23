"""The steps of a chain: the deciding grader judges each step, besides the chain as a whole."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grading.cases import QUANTITY_FREE, call
from tests.strategies import checks, json_values
from tests.trajectories import CallSpec
from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.grading.grade import JudgementNeededError, StepGrade, reason_of
from workbench.grading.run import GRADERS_BY_NAME, grade_by, grade_run_and_steps, grade_step, grade_whole
from workbench.grading.run import grade_steps as grade_steps_by
from workbench.grading.status import Status
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case, Suite
from workbench.suite.settings import settings_of
from workbench.trajectory.events import FinishReason, JsonValue, RunFinished, RunStarted, StepStarted, ToolCall
from workbench.trajectory.trajectory import CallRecord, Round, Trajectory

EVERY_GRADER = pytest.mark.parametrize("by", list(GRADERS_BY_NAME))

A = call("a", {"x": 1})
B = call("b", {"y": 2})
MADE_A: CallSpec = ("a", {"x": 1})
MADE_B: CallSpec = ("b", {"y": 2})


def chain(*steps: dict[str, Any], by: str = "critics", **more: Any) -> tuple[Suite, Case]:
    grading = {"by": by, **more.pop("grading", {})}
    first, *rest = steps
    case = Case.model_validate({"name": "chain", "steps": [{"user": "go", **first}, *rest], **more})
    return Suite.model_validate({"format": 1, "name": "suite", "grading": grading, "cases": [case]}), case


def run_of(*rounds: list[CallSpec], reason: FinishReason = "steps done", old: bool = False) -> Trajectory:
    """Return a chain's run with these calls in its rounds. In an `old` run, the rounds do not name their steps."""
    made = tuple(
        Round(
            number,
            calls=tuple(CallRecord(ToolCall(f"{number}.{at}", *spec), number) for at, spec in enumerate(calls)),
            stop_reason="tool calls" if calls else "answered",
            step=None if old else StepStarted(number),
        )
        for number, calls in enumerate(rounds, 1)
    )
    return Trajectory("run", RunStarted("", "", "", "", None, (), ()), made, RunFinished(reason))


def grade_steps(
    suite: Suite, case: Case, run: Trajectory, context: CheckContext = EMPTY_CONTEXT
) -> tuple[StepGrade, ...]:
    """Those of the grader that decides."""
    settings = settings_of(suite, case)
    return grade_steps_by(settings.grading.by, case, settings, run, context)


def statuses(steps: tuple[StepGrade, ...]) -> list[str | None]:
    return [step.status for step in steps]


def kinds(step: StepGrade) -> list[tuple[str, int | None, int | None]]:
    return [(issue.kind, issue.call, issue.expected_call) for issue in step.issues]


@EVERY_GRADER
def test_each_step_passes_or_fails_by_its_own_answer(by: str) -> None:
    steps = grade_steps(*chain(A, B, A, by=by), run_of([MADE_A], [("c", {})], [MADE_A]))
    assert statuses(steps) == ["passed", "failed", "passed"]
    assert [step.call for step in steps] == [0, 1, 2]
    assert steps[0].score == steps[2].score == 1


def test_a_case_that_is_no_chain_has_no_steps() -> None:
    suite = Suite.model_validate({"format": 1, "name": "s", "cases": [{"name": "c", "user": "go", "ordered": [A]}]})
    assert grade_steps(suite, suite.cases[0], run_of([MADE_A])) == ()


@EVERY_GRADER
def test_a_step_without_a_tool_expects_no_call(by: str) -> None:
    steps = grade_steps(*chain(A, {}, by=by), run_of([MADE_A], []))
    assert statuses(steps) == ["passed", "passed"]
    steps = grade_steps(*chain(A, {}, by=by), run_of([MADE_A], [MADE_B]))
    assert statuses(steps) == ["passed", "failed"]
    assert ("extra call", 1, None) in kinds(steps[1])


@EVERY_GRADER
def test_a_call_where_a_step_expects_none_fails_the_chain_too(by: GraderName) -> None:
    suite, case = chain(A, {}, by=by, grading={"critics": QUANTITY_FREE, "fail_threshold": 0.0, "warn_threshold": 0.0})
    grade = grade_by(by, case, settings_of(suite, case), run_of([MADE_A], [MADE_B]), CheckContext())
    extra = [issue for issue in grade.issues if issue.kind == "extra call"]
    assert [(issue.call, issue.why, issue.decides) for issue in extra] == [(1, "the step expects no call", True)]
    assert grade.status == "failed"


@EVERY_GRADER
def test_a_step_that_fails_fails_the_chain_whatever_the_score(by: GraderName) -> None:
    suite, case = chain(A, B, by=by, grading={"fail_threshold": 0.0, "warn_threshold": 0.0})
    run = run_of([MADE_B], [MADE_A])
    (grade, *_), status, steps = grade_run_and_steps(suite, case, run)
    whole = grade_whole(by, case, settings_of(suite, case), run, CheckContext())
    failed = [issue for issue in grade.issues if issue.kind == "failed step"]
    assert [(issue.call, issue.expected_call, issue.decides) for issue in failed] == [
        (step.call, step.expected_call, True) for step in steps if step.status == "failed"
    ]
    assert [issue.why for issue in failed] == [
        f"step {step.step}: {step.why}" for step in steps if step.status == "failed"
    ]
    assert (grade.score, grade.verdict) == (whole.score, whole.verdict)
    assert status == ("failed" if failed else whole.status)
    assert failed or by in ("decision", "accuracy")  # under which the thresholds let the steps pass


def test_each_grader_judges_the_steps_by_itself() -> None:
    suite, case = chain(A, B, grading={"critics": QUANTITY_FREE})
    run = run_of([MADE_A, MADE_B], [MADE_B])
    grades, status, steps = grade_run_and_steps(suite, case, run)
    assert (status, statuses(steps)) == ("passed", ["passed", "passed"])
    failing = {grade.grader for grade in grades if "failed step" in {issue.kind for issue in grade.issues}}
    assert failing == {"accuracy"}
    assert all(grade.status == "failed" for grade in grades if grade.grader in failing)


def test_the_reason_of_a_chain_that_would_pass_names_the_step_that_failed() -> None:
    (grade, *_), _, _ = grade_run_and_steps(*chain(A, B), run_of([MADE_B], [MADE_A]))
    assert grade.verdict == Status.PASSED
    assert reason_of(grade) == "failed step: step 1: selection: 'b' called where 'a' was expected and 1 more"


def test_an_answer_for_which_nobody_asked_is_said_to_be_missing_for_that() -> None:
    suite, case = chain(A, B, response_contains=["x"], stop_on_failure=True)
    (grade, *_), status, _ = grade_run_and_steps(suite, case, run_of([MADE_B], reason="step failed"))
    first, *_, last = [issue for issue in grade.issues if issue.decides]
    assert (status, first.kind, last.kind) == ("failed", "failed step", "response")
    assert last.why == "none was requested: the chain stopped at a failed step"


@EVERY_GRADER
def test_an_error_says_in_which_step_it_is(by: str) -> None:
    def function(_reference: str, value: JsonValue) -> bool:
        raise KeyError(str(value))

    suite, case = chain(A, call("b", {"y": {"python": "m:f"}}), by=by)
    run = run_of([MADE_A], [MADE_B])
    with pytest.raises(CheckError, match=r"^step 2 cannot be judged: b\.y: "):
        grade_run_and_steps(suite, case, run, context=CheckContext(function))


@EVERY_GRADER
def test_a_step_that_was_never_reached_has_no_status(by: str) -> None:
    suite, case = chain(A, B, {}, by=by)
    first, *others = grade_steps(suite, case, run_of([("c", {})], reason="step failed"))
    assert first.status == "failed"
    assert [(step.status, step.score, step.call, step.issues) for step in others] == [(None, None, None, ())] * 2
    assert {step.why for step in others} == {"never reached: the chain stops at the first step that fails"}
    refused = grade_steps(suite, case, run_of([MADE_A], reason="refused"))
    assert refused[1].why == "never reached: the model refused before this step"


@EVERY_GRADER
def test_the_first_call_of_an_answer_is_the_one_that_is_judged(by: str) -> None:
    free = {"critics": QUANTITY_FREE, "accuracy": {"mode": "flexible", "extra_penalty": 0.0}}
    (step,) = grade_steps(*chain(A, by=by, grading=free), run_of([("c", {}), MADE_A]))
    assert (step.status, step.call) == ("failed", 0)


@pytest.mark.parametrize(
    ("by", "status", "score"),
    [
        ("critics", "failed", 0.0),
        ("decision", "passed", 1.0),
        ("accuracy", "failed", 0.5),
        ("trajectory", "passed", 1.0),
        ("dimensions", "passed", 0.85),
    ],
)
def test_further_calls_of_an_answer_cost_what_extra_calls_cost_under_the_grader(
    by: str, status: str, score: float
) -> None:
    (step,) = grade_steps(*chain(A, by=by), run_of([MADE_A, MADE_B]))
    assert (step.status, step.score) == (status, score)


def test_issues_name_calls_as_they_are_counted_in_the_whole_run() -> None:
    suite, case = chain(A, {}, B)
    *_, last = grade_steps(suite, case, run_of([MADE_A, MADE_A], [], [("b", {"y": 3})]))
    assert (last.call, kinds(last)) == (2, [("wrong argument", 2, 1)])


@EVERY_GRADER
def test_an_argument_that_must_not_be_given_fails_its_step(by: str) -> None:
    steps = grade_steps(*chain(A, call("b", forbidden_args=["y"]), by=by), run_of([MADE_A], [MADE_B]))
    assert statuses(steps) == ["passed", "failed"]
    assert ("forbidden argument", 1, 1) in kinds(steps[1]) or by == "trajectory"


@EVERY_GRADER
def test_limits_and_the_final_answer_are_the_whole_runs_alone(by: str) -> None:
    whole = {"response": "bye", "limits": {"max_tool_calls": 0, "max_latency_ms": 1}}
    grades, status, steps = grade_run_and_steps(*chain(A, B, by=by, **whole), run_of([MADE_A], [MADE_B]))
    assert "response" in {issue.kind for issue in grades[0].issues}
    assert status == "failed"
    assert statuses(steps) == ["passed", "passed"]
    assert not any(step.issues for step in steps)


def test_a_chain_of_many_steps_is_no_over_calling() -> None:
    suite, case = chain(*[A] * 7)
    grades, _, _ = grade_run_and_steps(suite, case, run_of(*[[MADE_A]] * 7))
    assert grades[0].issues == ()
    grades, _, _ = grade_run_and_steps(suite, case, run_of(*[[MADE_A]] * 6, [MADE_A, MADE_A]))
    assert "over calling" in {issue.kind for issue in grades[0].issues}


def test_a_request_for_the_final_answer_is_no_step_s() -> None:
    suite, case = chain(A, response_contains=["x"])
    run = run_of([MADE_A], [MADE_B])
    asked = Trajectory("run", run.start, (run.rounds[0], Round(2, calls=run.rounds[1].calls)), run.finish)
    assert statuses(grade_steps(suite, case, asked)) == ["passed"]


def test_a_run_that_does_not_say_which_step_a_round_is_has_them_in_order() -> None:
    steps = grade_steps(*chain(A, B), run_of([MADE_A], [MADE_A], old=True))
    assert statuses(steps) == ["passed", "failed"]


def test_a_step_is_graded_while_its_run_goes_on() -> None:
    suite, case = chain(A, B)
    run = run_of([MADE_A], [("c", {})])
    under_way = Trajectory("run", run.start, run.rounds)
    assert [grade_step(suite, case, under_way, step).status for step in (1, 2)] == ["passed", "failed"]
    assert grade_step(suite, case, Trajectory("run", run.start), 1).status is None


@EVERY_GRADER
def test_what_a_check_said_for_the_run_is_not_asked_again_for_the_step(by: str) -> None:
    asked: list[JsonValue] = []

    def function(_reference: str, value: JsonValue) -> bool:
        asked.append(value)
        return True

    suite, case = chain(call("a", {"x": {"python": "m:f"}}), call("a", {"x": {"python": "m:f"}}), by=by)
    run = run_of([("a", {"x": ["one"]})], [("a", {"x": ["two"]})])
    _, status, steps = grade_run_and_steps(suite, case, run, context=CheckContext(function))
    assert (status, statuses(steps)) == ("passed", ["passed", "passed"])
    assert len(asked) <= 4  # of two checks and two values


def test_a_judge_who_is_to_be_asked_first_is_said_so() -> None:
    def ask(check: Judged, value: JsonValue) -> Any:
        raise JudgementNeededError(check, value)

    suite, case = chain(call("a", {"x": {"judged": "polite"}}))
    with pytest.raises(JudgementNeededError):
        grade_steps(suite, case, run_of([MADE_A]), CheckContext(judge=ask))
    with pytest.raises(CheckError):
        grade_steps(suite, case, run_of([MADE_A]))


TOOLS = st.sampled_from(["a", "b"])
NAMES = st.sampled_from(["x", "y"])
STEPS = st.lists(
    st.just({})
    | st.builds(call, TOOLS, st.none() | st.dictionaries(NAMES, checks(), max_size=2), user=st.sampled_from(["go"])),
    min_size=1,
    max_size=4,
)
ROUNDS = st.lists(st.lists(st.tuples(TOOLS, st.dictionaries(NAMES, json_values, max_size=2)), max_size=2), max_size=5)


@given(STEPS, ROUNDS, st.booleans())
def test_under_decision_the_chain_scores_the_mean_of_its_steps(
    steps: list[dict[str, Any]], rounds: list[list[CallSpec]], old: bool
) -> None:
    suite, case = chain(*steps, by="decision")
    context = CheckContext(lambda _reference, _value: True, lambda _check, _value: pytest.fail("nothing is judged"))
    run = run_of(*rounds, old=old)
    (grade, *_), _, graded = grade_run_and_steps(suite, case, run, context=context)
    mean = math.fsum(step.score or 0.0 for step in graded) / len(graded)
    assert math.isclose(mean, grade.score or 0.0, abs_tol=1e-9)
    assert [step.status is None for step in graded] == [number > len(rounds) for number in range(1, len(steps) + 1)]


@EVERY_GRADER
@given(STEPS, ROUNDS)
def test_any_chain_is_graded_step_by_step(by: str, steps: list[dict[str, Any]], rounds: list[list[CallSpec]]) -> None:
    suite, case = chain(*steps, by=by)
    run = run_of(*rounds)
    context = CheckContext(lambda _reference, _value: True)
    for step in grade_steps(suite, case, run, context):
        assert (step.status is None) == (step.score is None)
        assert step.why
        for issue in step.issues:
            assert issue.call is None or issue.tool == run.calls[issue.call].tool
            assert issue.expected_call is None or issue.expected_call < len(case.expected_calls())
