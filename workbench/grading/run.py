"""Grade a run: one grade of each grader, and the status; for a chain, its steps too.

Of a run that still goes on, the deciding grader finds what is wrong with a call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from workbench.checks.check import EMPTY_CONTEXT, CheckContext, EqualsRule, by_json, by_python
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value
from workbench.dataclasses import ByIdentity, dataclass
from workbench.grading.accuracy import grade_accuracy
from workbench.grading.critics import by_casting, grade_critics
from workbench.grading.decision import grade_decision
from workbench.grading.dimensions import grade_dimensions, latency_of
from workbench.grading.endpoint_faults import endpoint_faults, fault_as_error
from workbench.grading.grade import (
    FIRST_KINDS,
    ArgumentVerdict,
    Grade,
    GradingError,
    Issue,
    JudgementNeededError,
    Metric,
    StepGrade,
    reason_of,
)
from workbench.grading.pairing import StepRound, describe_call, describe_expected, rounds_of_steps
from workbench.grading.requirements import (
    graded_without_free_calls,
    issues_of_any_grader,
    latency_issue,
    metrics_of,
    requirement_issues,
    rule_of,
    with_required,
    with_way_out,
)
from workbench.grading.status import NOT_APPLICABLE, Status
from workbench.grading.trajectory import grade_trajectory
from workbench.grading.valid_arguments import check_calls
from workbench.suite.model import GRADERS, Case, ExpectedCall, GraderName, Step, Suite
from workbench.suite.settings import CaseSettings, Grading, Limits, settings_of
from workbench.trajectory.events import FinishReason, RunFinished
from workbench.trajectory.trajectory import Round, Trajectory


@dataclass(frozen=True, slots=True)
class Grader:
    """One published system's way to grade a run, and its rule of equality for plain values.

    `grade` raises CheckError and GradingError as `grade_run` does."""

    grade: Callable[[Case, CaseSettings, Trajectory, CheckContext], Grade]
    equal: EqualsRule
    scored: frozenset[str] = frozenset()
    """The keys of a case that are part of its score, and so decide nothing besides it."""
    latency: Callable[[Grading, Trajectory], float] = lambda _grading, run: run.model_latency_ms
    """The time that `max_latency_ms` limits, in milliseconds."""


GRADER_OF: Mapping[str, Grader] = {
    "critics": Grader(lambda case, of, run, context: grade_critics(case, of.grading, run, context=context), by_casting),
    "decision": Grader(
        lambda case, of, run, context: grade_decision(case, of.grading, run, context=context), by_python
    ),
    "accuracy": Grader(lambda case, of, run, context: grade_accuracy(case, of.grading, run, context=context), by_json),
    "trajectory": Grader(
        lambda case, of, run, context: grade_trajectory(case, rule_of(case, of.grading, run), run, context=context),
        by_json,
        frozenset({"disallowed", "extra_calls", "forbidden_args"}),
    ),
    "dimensions": Grader(
        lambda case, of, run, context: grade_dimensions(case, of.limits, run, of.grading.dimensions, context=context),
        by_python,
        frozenset({"response_contains", "forbidden_args"}),
        lambda grading, run: latency_of(grading.dimensions, run),
    ),
}
"""Every grader. How it is shown is its object of `grading.traits`."""


def graded_whole(
    name: GraderName,
    case: Case,
    settings: CaseSettings,
    trajectory: Trajectory,
    context: CheckContext,
    of_any_grader: Sequence[Issue] | None = None,
) -> Grade:
    """Return the grade of one grader, with the issues of the requirements and the status.

    For a chain it covers the whole, not its steps. `of_any_grader` is that of `requirement_issues`. Raises as
    `grade_run` does."""
    grader = GRADER_OF[name]
    grade = graded_without_free_calls(
        *(name, case, settings.grading, trajectory),
        lambda run: grader.grade(case, settings, run, context),
        equal=grader.equal,
        context=context,
    )
    demands = requirement_issues(
        case,
        settings.limits,
        trajectory,
        grade.pairings,
        equal=grader.equal,
        context=context,
        scored=grader.scored,
        of_any_grader=of_any_grader,
        invalid_arguments=settings.grading.invalid_arguments,
        extra_calls=rule_of(case, settings.grading, trajectory),
    )
    latency_ms = grader.latency(settings.grading, trajectory)
    if latency_ms > settings.limits.max_latency_ms:
        demands = (*demands, latency_issue(settings.limits, latency_ms))
    issues = with_required(case, grade)
    return Grade(
        name,
        grade.score,
        grade.verdict,
        grade.reason,
        grade.pairings,
        _merged(issues, demands) if demands else issues,
        grade.numbers,
        _status(grade, (*issues, *demands)),
        grade.published,
    )


def _merged(found: tuple[Issue, ...], demands: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """Return all issues.

    A call that a requirement already calls wrong is not called an extra one a second time; those that explain others
    come first."""
    wrong = {issue.call for issue in demands if issue.kind in ("extra call", "forbidden call")}
    own = (issue for issue in found if issue.kind != "extra call" or issue.call not in wrong)
    return tuple(sorted((*own, *demands), key=lambda issue: issue.kind not in FIRST_KINDS))


def _status(grade: Grade, issues: tuple[Issue, ...]) -> Status:
    if issues and any(issue.decides for issue in issues):
        return Status.FAILED
    if grade.verdict == NOT_APPLICABLE:
        return Status.PASSED
    return grade.verdict


def grade_steps(
    by: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> tuple[StepGrade, ...]:
    """Grade every step of a chain by a grader.

    Returns nothing for a case that is no chain. Raises as `grade_run` does; the error names the step."""
    rounds = rounds_of_steps(case, trajectory) if case.steps else ()
    return tuple(
        _named(by, case, settings, number, reached, trajectory, context) for number, reached in enumerate(rounds, 1)
    )


def grade_step(
    suite: Suite, case: Case, trajectory: Trajectory, step: int, context: CheckContext = EMPTY_CONTEXT
) -> StepGrade:
    """Grade one step, counted from 1, by the deciding grader; the run may still be going on.

    Raises as `grade_run` does."""
    settings = settings_of(suite, case)
    reached = rounds_of_steps(case, trajectory)[step - 1]
    return _graded(settings.grading.by, case, settings, step, reached, trajectory, context)


def _named(
    by: GraderName,
    case: Case,
    settings: CaseSettings,
    step: int,
    reached: StepRound | None,
    trajectory: Trajectory,
    context: CheckContext,
) -> StepGrade:
    try:
        return _graded(by, case, settings, step, reached, trajectory, context)
    except (CheckError, GradingError) as error:
        raise type(error)(f"step {step} cannot be judged: {error}") from error


_WHY_NOT_REACHED: dict[FinishReason, str] = {
    "step failed": "never reached: the chain stops at the first step that fails",
    "refused": "never reached: the model refused before it",
    "truncated": "never reached: an answer was cut off before it",
}


def _never_reached(step: int, trajectory: Trajectory, expected_call: int | None) -> StepGrade:
    finish = trajectory.finish
    why = _WHY_NOT_REACHED.get(finish.reason) if finish is not None else None
    return StepGrade(step, None, None, why or "never reached: the run ended before it", None, (), expected_call)


_NO_LIMITS = Limits(max_tool_calls=sys.maxsize, max_latency_ms=sys.float_info.max)
"""Calls and latency are limited in the run as a whole."""


def _graded(
    by: GraderName,
    case: Case,
    settings: CaseSettings,
    step: int,
    reached: StepRound | None,
    trajectory: Trajectory,
    context: CheckContext,
) -> StepGrade:
    calls_before = sum(earlier.tool is not None for earlier in case.steps[: step - 1])
    expected_call = calls_before if case.steps[step - 1].tool is not None else None
    if reached is None:
        return _never_reached(step, trajectory, expected_call)
    limitless = replace(settings, limits=_NO_LIMITS)
    # `decision` has rules of its own for the steps of chains.
    alone = (_chains_of_one if by == "decision" else _cases_of_steps)(case)[step - 1]

    def grade(answer: Round) -> Grade:
        # As the only round it is that of the only step.
        run = replace(trajectory, rounds=(replace(answer, step=None),), finish=_DONE)
        return graded_whole(by, alone, limitless, run, context)

    grades = [grade(reached.round)]
    if len(reached.round.calls) > 1:
        # The first call is the one that is graded, even where the grader would prefer a later one.
        grades.append(grade(replace(reached.round, calls=reached.round.calls[:1])))
    worst = min(grades, key=_how_good)
    return StepGrade(
        step,
        worst.status,
        worst.score,
        reason_of(worst),
        reached.first_call if reached.round.calls else None,
        tuple(_in_the_run(issue, reached.first_call, calls_before) for issue in worst.issues),
        expected_call,
    )


_DONE = RunFinished("steps done")
_FROM_THE_WORST: tuple[Status, ...] = (Status.FAILED, Status.WARNED, Status.PASSED)


def _how_good(grade: Grade) -> tuple[int, float]:
    assert grade.status is not None and grade.score is not None, "a step says what is expected"
    return _FROM_THE_WORST.index(grade.status), grade.score


def _in_the_run(issue: Issue, first_call: int, calls_before: int) -> Issue:
    """Return an issue of a step with its calls and expected calls counted in the whole run."""
    return issue._replace(
        call=None if issue.call is None else issue.call + first_call,
        expected_call=None if issue.expected_call is None else issue.expected_call + calls_before,
    )


_WHOLE_RUN = {"response": None, "response_contains": (), "stop_on_failure": False}
"""The keys of a case that concern the run as a whole, without values."""

_chains_of_one: ByIdentity[Case, tuple[Case, ...]] = ByIdentity(
    lambda case: tuple(case.model_copy(update={**_WHOLE_RUN, "steps": (step,)}) for step in case.steps)
)
_cases_of_steps: ByIdentity[Case, tuple[Case, ...]] = ByIdentity(
    lambda case: tuple(
        case.model_copy(update={**_WHOLE_RUN, "steps": (), **_expectations(step)}) for step in case.steps
    )
)


def _expectations(step: Step) -> dict[str, object]:
    expected = step.expected_call
    if expected is None:
        return {"expect_no_calls": True}
    return {"ordered": (expected,)}


def fault_of_call(
    suite: Suite, case: Case, trajectory: Trajectory, call: int, context: CheckContext = EMPTY_CONTEXT
) -> str | None:
    """Describe the fault of a call, by its index in `Trajectory.calls`, in a few words; `None` when nothing is.

    That is an argument that does not hold, an issue about the call that decides, or the step of a chain that fails by
    it. Raises as `grade_run` does.
    """
    settings = settings_of(suite, case)
    grade = graded_whole(settings.grading.by, case, settings, trajectory, context)
    expected = case.expected_calls()
    for pairing in grade.pairings:
        # A call of another tool is in this place only until the right one comes.
        if pairing.call == call and pairing.expected_call is not None and pairing.same_tool:
            wrong = next((verdict for verdict in pairing.arguments if verdict.holds is False), None)
            if wrong is not None:
                return _said(wrong, expected[pairing.expected_call])
    for issue in grade.issues:
        if issue.call == call and issue.decides:
            return f"{issue.tool}: {issue.argument + ': ' if issue.argument else ''}{issue.why}"
    return _of_step(suite, case, trajectory, call, context)


def _said(wrong: ArgumentVerdict, wanted: ExpectedCall) -> str:
    if not wrong.listed:
        return f"{wrong.argument} is not expected"
    if not wrong.given:
        return f"{wrong.argument} is not given"
    check = (wanted.args or {}).get(wrong.argument)
    fails = "fails" if check is None else check.failing
    return f"{wrong.argument} {describe_value(wrong.got)} {fails} {wrong.expected}"


def _of_step(suite: Suite, case: Case, trajectory: Trajectory, call: int, context: CheckContext) -> str | None:
    for number, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        if reached is not None and 0 <= call - reached.first_call < len(reached.round.calls):
            step = grade_step(suite, case, trajectory, number, context)
            named = {step.call, *(issue.call for issue in step.issues)}
            if step.status == Status.FAILED and call in named:
                return f"step {number} fails: {step.why}"
            return None
    return None


def grade_run(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status]:
    """Grade a run that ended without a fault of the infrastructure.

    Returns the grades; the first one decides.

    Each grade's issues include the requirements besides the score and the steps of a chain that fail under that grader.
    Issues that decide make the status failed, whatever the score, which stays the grader's own. A case to which the
    grader does not apply passes or fails by its requirements alone. A grader that does not decide and cannot grade the
    case has the verdict `error`. A run of a case that expects nothing yet has no grades, and is `not graded`.

    Raises CheckError when a check cannot be evaluated and GradingError when the case cannot be graded as written;
    either ends the run with status `error`. Raises JudgementNeededError, for any grader, when a judge must be asked
    first.
    """
    return grade_run_and_steps(suite, case, trajectory, context=context)[:2]


def grade_run_and_steps(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status, tuple[StepGrade, ...]]:
    """Grade a run as `grade_run` does, and the steps of a chain as the deciding grader judges them."""
    return graded_run(suite, case, trajectory, context=context)[:3]


class GradedRun(NamedTuple):
    """The result of grading a run: the parts of a `RunResult` of these names."""

    grades: tuple[Grade, ...]
    status: Status
    steps: tuple[StepGrade, ...] = ()
    metrics: tuple[Metric, ...] = ()
    valid_arguments: tuple[bool | None, ...] = ()


def graded_run(suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT) -> GradedRun:
    """Grade a run as `grade_run` does, with the steps of its chain and the named checks of its final answer.

    The steps are judged by the deciding grader."""
    if case.expects_nothing_yet:
        return GradedRun((), Status.NOT_GRADED, metrics=source_metrics(trajectory))
    trajectory = _without_too_much(trajectory)
    if suite.gate.endpoint_faults == "error" and (faults := endpoint_faults(trajectory)):
        raise GradingError(fault_as_error(faults[0]))
    settings = settings_of(suite, case)
    if context.verdicts is None:
        context = CheckContext(context.call_python, context.judge, {}, {})
    metrics = metrics_of(case, trajectory, context)
    checked = check_calls(trajectory)
    of_any_grader = issues_of_any_grader(
        *(case, settings.limits, trajectory, context, metrics, checked),
        invalid_arguments=settings.grading.invalid_arguments,
        whole_numbers=settings.grading.whole_numbers,
    )
    run = _Graded(case, settings, trajectory, context, of_any_grader)
    deciding = settings.grading.by
    first, steps = run.by(deciding)
    assert first.status is not None
    grades = (first, *(run.attempted_by(name) for name in GRADERS if name != deciding))
    own = source_metrics(trajectory)
    return GradedRun(grades, first.status, steps, (*metrics, *own), tuple(call.valid for call in checked))


def source_metrics(trajectory: Trajectory) -> tuple[Metric, ...]:
    """Return the scores that the system that made an imported run gave it."""
    scores = trajectory.start.source_scores if trajectory.start is not None else ()
    return tuple(Metric(each.name, each.value, each.passed, about=each.about) for each in scores)


def _without_too_much(trajectory: Trajectory) -> Trajectory:
    """Return the trajectory without the part that was read of an answer over the limits."""
    finish = trajectory.finish
    if finish is None or finish.reason != "sent too much" or not trajectory.rounds:
        return trajectory
    *before, last = trajectory.rounds
    return replace(trajectory, rounds=(*before, replace(last, text="", reasoning="", calls=())))


def graded_by(
    name: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> Grade:
    """Return the grade of one grader, with the issues that decide besides its score and the status.

    Raises as `grade_run` does."""
    of_any_grader = issues_of_any_grader(
        *(case, settings.limits, trajectory, context),
        invalid_arguments=settings.grading.invalid_arguments,
        whole_numbers=settings.grading.whole_numbers,
    )
    return _Graded(case, settings, trajectory, context, of_any_grader).by(name)[0]


@dataclass(frozen=True, slots=True)
class _Graded:
    """A run to grade, with its issues that do not depend on the grader."""

    case: Case
    settings: CaseSettings
    trajectory: Trajectory
    context: CheckContext
    of_any_grader: tuple[Issue, ...]

    def by(self, name: GraderName) -> tuple[Grade, tuple[StepGrade, ...]]:
        # The steps come first, so that an error of a step names the step.
        of_run = self.case, self.settings, self.trajectory, self.context
        steps = grade_steps(name, *of_run) if self.case.steps else ()
        grade = graded_whole(name, *of_run, self.of_any_grader)
        grade = grade._replace(issues=with_way_out(grade, self.case, self.settings.grading, self.trajectory))
        if not steps:
            return grade, ()
        failed = tuple(_failed_steps(self.case, self.trajectory, steps))
        issues = sorted((*failed, *grade.issues), key=lambda issue: issue.kind not in FIRST_KINDS)
        return (grade._replace(issues=tuple(issues), status=Status.FAILED) if failed else grade), steps

    def attempted_by(self, name: GraderName) -> Grade:
        try:
            return self.by(name)[0]
        except JudgementNeededError:
            raise
        except (CheckError, GradingError) as error:
            return Grade(name, None, Status.ERROR, str(error), status=Status.ERROR)


def _failed_steps(case: Case, trajectory: Trajectory, steps: Sequence[StepGrade]) -> Iterator[Issue]:
    for wanted, step in zip(case.steps, steps, strict=True):
        if step.status == Status.FAILED:
            record = trajectory.calls[step.call] if step.call is not None else None
            expected = wanted.expected_call
            yield Issue(
                "failed step",
                f"step {step.step}: {step.why}",
                tool=record.tool if record is not None else wanted.tool,
                call=step.call,
                expected_call=step.expected_call,
                expected="no call" if expected is None else describe_expected(expected),
                got="no call" if record is None else describe_call(record),
                decides=True,
            )
