"""Grading of a run: the grades of all graders, the status, the steps of a chain, and the fault of a single call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from workbench.checks.check import (
    EMPTY_CONTEXT,
    Check,
    CheckContext,
    EqualsRule,
    by_json,
    by_python,
    describe,
    evaluate,
)
from workbench.checks.clock import Clock, fixed_clock
from workbench.checks.patterns import CheckError
from workbench.checks.values import describe_value
from workbench.dataclasses import cached_by_identity, dataclass
from workbench.grading.accuracy import grade_accuracy, with_answer_score
from workbench.grading.at_most import budget_issues
from workbench.grading.critics import equals_by_casting, grade_critics
from workbench.grading.decision import grade_decision
from workbench.grading.dimensions import grade_dimensions, latency_of
from workbench.grading.endpoint_faults import endpoint_faults, fault_as_error
from workbench.grading.extra_call_rule import ExtraCallRule
from workbench.grading.final import early_call_reason, final_issues, is_early_call, transcript_of
from workbench.grading.grade import (
    EXPLAINING_KINDS,
    SIMULATED_USER,
    ArgumentVerdict,
    Grade,
    GradingError,
    Issue,
    JudgementNeededError,
    Metric,
    StepGrade,
    UserFaultError,
    reason_of,
)
from workbench.grading.matching import StepRound, rounds_of_steps
from workbench.grading.pairing_issues import describe_call, describe_expected
from workbench.grading.required_arguments import with_required
from workbench.grading.requirements import (
    common_issues_of,
    extra_call_rule_of,
    graded_without_free_calls,
    issues_with_remedies,
    latency_issue,
    longest_turn_ms,
    metrics_of,
    requirement_issues,
)
from workbench.grading.resolution import resolved_case
from workbench.grading.status import NOT_APPLICABLE, Status
from workbench.grading.trajectory import grade_trajectory
from workbench.grading.valid_arguments import check_calls
from workbench.suite.expected_calls import AnyOrder, ExpectedCall
from workbench.suite.grading_model import GRADERS, GraderName
from workbench.suite.model import Case, Suite
from workbench.suite.settings import USER_REVIEW, CaseSettings, Grading, Limits, settings_of
from workbench.suite.user_model import ScriptedMessage, UserTable
from workbench.trajectory.events import FinishReason, JsonValue, RunFinished
from workbench.trajectory.trajectory import Round, Trajectory


@dataclass(frozen=True, slots=True)
class Grader:
    """A grader: a function from a case and a trajectory to a grade, and its rule of equality for plain values.

    `grade` raises CheckError and GradingError as `grade_run` does."""

    grade: Callable[[Case, CaseSettings, Trajectory, CheckContext], Grade]
    equal: EqualsRule
    scored: frozenset[str] = frozenset()
    """The keys of a case that are part of the grader's score. Their violations do not decide separately."""
    latency: Callable[[Grading, Trajectory], float] = lambda _grading, run: run.model_latency_ms
    """The time that `max_latency_ms` limits, in milliseconds."""


def _by_accuracy(case: Case, grading: Grading, run: Trajectory, context: CheckContext) -> Grade:
    grade = grade_accuracy(case, grading, run, context=context)
    if grading.accuracy.answer_checks == "apart":
        return grade
    return with_answer_score(grade, metrics_of(case, run, context), grading)


GRADERS_BY_NAME: Mapping[str, Grader] = {
    "critics": Grader(
        lambda case, of, run, context: grade_critics(case, of.grading, run, context=context), equals_by_casting
    ),
    "decision": Grader(
        lambda case, of, run, context: grade_decision(case, of.grading, run, context=context), by_python
    ),
    "accuracy": Grader(lambda case, of, run, context: _by_accuracy(case, of.grading, run, context), by_json),
    "trajectory": Grader(
        lambda case, of, run, context: grade_trajectory(
            case, extra_call_rule_of(case, of.grading, run), run, context=context
        ),
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
"""The graders by name. `grading.traits` holds their words for screens."""


def grade_whole(
    name: GraderName,
    case: Case,
    settings: CaseSettings,
    trajectory: Trajectory,
    context: CheckContext,
    common_issues: Sequence[Issue] | None = None,
) -> Grade:
    """Return the grade of one grader, with the issues of the requirements and the status.

    A chain is graded as a whole, without its steps. `common_issues` is passed to `requirement_issues`. Raises the
    errors of `grade_run`."""
    if name == "critics" and settings.grading.critics.weights:
        case = _weighted_case(case, dict(settings.grading.critics.weights))
    rule = extra_call_rule_of(case, settings.grading, trajectory)
    if not case.needs_resolving:
        grade = _graded_plainly(name, case, settings, trajectory, rule, context, common_issues)
    else:
        resolved = resolved_case(name, case, settings.grading, trajectory, GRADERS_BY_NAME[name].equal, context)
        grade = _graded_plainly(name, resolved.case, settings, trajectory, rule, context, common_issues)
        grade = resolved.as_written(grade, case.expected_calls())
    if grade.issues and (reasons := _reasons(case)):
        grade = grade._replace(issues=tuple(_explained(issue, reasons) for issue in grade.issues))
    return grade


def _weighted_case(case: Case, weights: Mapping[str, float | str]) -> Case:
    def call(each: ExpectedCall) -> ExpectedCall:
        args = each.args
        if args is not None:
            args = {name: _with_weight(check, weights.get(name)) for name, check in args.items()}
        return each.model_copy(update={"args": args, "any_of": tuple(map(call, each.any_of))})

    def item(each: ExpectedCall | AnyOrder) -> ExpectedCall | AnyOrder:
        if isinstance(each, AnyOrder):
            return each.model_copy(update={"any_order": tuple(map(call, each.any_order))})
        return call(each)

    update = {"ordered": tuple(map(item, case.ordered)), "unordered": tuple(map(item, case.unordered))}
    return case.model_copy(update=update)


def _with_weight(check: Check, weight: float | str | None) -> Check:
    if weight is None or check.weight is not None:
        return check
    return check.model_copy(update={"weight": weight})


def _reasons_of_calls(case: Case) -> tuple[str | None, ...]:
    reasons = tuple([call.because for call in case.expected_calls()])
    return reasons if any(reasons) else ()


_reasons: Callable[[Case], tuple[str | None, ...]] = cached_by_identity(_reasons_of_calls)
"""Returns the suite's reasons for the expected calls of a case, or an empty tuple if the suite gives no reasons."""


def _explained(issue: Issue, reasons: Sequence[str | None]) -> Issue:
    # The reason for the check of an argument is more specific than the reason for its call.
    if issue.expected_call is None or issue.because is not None:
        return issue
    return issue._replace(because=reasons[issue.expected_call])


def _graded_plainly(
    name: GraderName,
    case: Case,
    settings: CaseSettings,
    trajectory: Trajectory,
    rule: ExtraCallRule,
    context: CheckContext,
    common_issues: Sequence[Issue] | None,
) -> Grade:
    grader = GRADERS_BY_NAME[name]
    if rule.frees_none:
        grade = grader.grade(case, settings, trajectory, context)
    else:
        grade = graded_without_free_calls(
            *(name, case, settings.grading, trajectory, rule),
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
        common_issues=common_issues,
        invalid_arguments=settings.grading.invalid_arguments,
        extra_calls=rule,
    )
    latency_ms = grader.latency(settings.grading, trajectory)
    if case.conversation is not None:
        latency_ms = longest_turn_ms(trajectory)
        demands = (*demands, *_early_calls(case, grade, trajectory))
    if latency_ms > settings.limits.max_latency_ms:
        demands = (*demands, latency_issue(settings.limits, latency_ms))
    issues = with_required(case, grade)
    status = _status(grade, (*issues, *demands))
    if demands:
        issues = _merged(issues, demands)
    return Grade(
        name,
        grade.score,
        grade.verdict,
        grade.reason,
        grade.pairings,
        issues,
        grade.numbers,
        status,
        grade.published,
    )


def _early_calls(case: Case, grade: Grade, trajectory: Trajectory) -> Iterator[Issue]:
    expected = case.expected_calls()
    for line in grade.pairings:
        if line.expected_call is None or line.call is None or not line.same_tool:
            continue
        wanted, record = expected[line.expected_call], trajectory.calls[line.call]
        if is_early_call(wanted, record, trajectory):
            why = early_call_reason(wanted)
            yield Issue("wrong order", why, record.tool, line.call, line.expected_call, decides=True)


def _merged(issues: tuple[Issue, ...], demands: tuple[Issue, ...]) -> tuple[Issue, ...]:
    """Return the issues of a grader and of the requirements. Issues that explain other issues come first."""
    # A call that a requirement reports as extra or forbidden is not reported as extra again.
    wrong = {issue.call for issue in demands if issue.kind in ("extra call", "forbidden call")}
    merged = []
    for issue in issues:
        if issue.kind != "extra call" or issue.call not in wrong:
            merged.append(issue)
    return tuple(sorted((*merged, *demands), key=lambda issue: issue.kind not in EXPLAINING_KINDS))


def _status(grade: Grade, issues: tuple[Issue, ...]) -> Status:
    if issues and any(issue.decides for issue in issues):
        return Status.FAILED
    if grade.verdict == NOT_APPLICABLE:
        return Status.PASSED
    return grade.verdict


def grade_steps(
    grader: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> tuple[StepGrade, ...]:
    """Grade every step of a chain with one grader. Return an empty tuple for a case that is not a chain.

    Raises the errors of `grade_run`, with a message that names the step."""
    if not case.steps:
        return ()
    steps = []
    for number, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        steps.append(_named(grader, case, settings, number, reached, trajectory, context))
    return tuple(steps)


def grade_step(
    suite: Suite, case: Case, trajectory: Trajectory, step: int, context: CheckContext = EMPTY_CONTEXT
) -> StepGrade:
    """Grade one step of a chain with the deciding grader. `step` counts from 1, and the run may still be going on.

    Raises the errors of `grade_run`."""
    settings = settings_of(suite, case)
    context = _timed(context, settings, trajectory)
    reached = rounds_of_steps(case, trajectory)[step - 1]
    return _graded(settings.grading.by, case, settings, step, reached, trajectory, context)


def _named(
    grader: GraderName,
    case: Case,
    settings: CaseSettings,
    step: int,
    round_: StepRound | None,
    trajectory: Trajectory,
    context: CheckContext,
) -> StepGrade:
    try:
        return _graded(grader, case, settings, step, round_, trajectory, context)
    except (CheckError, GradingError) as error:
        raise type(error)(f"step {step} cannot be judged: {error}") from error


_WHY_NOT_REACHED: dict[FinishReason, str] = {
    "step failed": "never reached: the chain stops at the first step that fails",
    "refused": "never reached: the model refused before this step",
    "truncated": "never reached: an answer was cut off before this step",
}


def _never_reached(step: int, trajectory: Trajectory, expected_call: int | None) -> StepGrade:
    why = "never reached: the run ended before this step"
    if trajectory.finish is not None:
        why = _WHY_NOT_REACHED.get(trajectory.finish.reason, why)
    return StepGrade(step, None, None, why, None, (), expected_call)


_NO_LIMITS = Limits(max_tool_calls=sys.maxsize, max_latency_ms=sys.float_info.max)
"""The limits of a single step: none, because calls and latency are limited for the whole run."""


def _graded(
    grader: GraderName,
    case: Case,
    settings: CaseSettings,
    step: int,
    round_: StepRound | None,
    trajectory: Trajectory,
    context: CheckContext,
) -> StepGrade:
    calls_before = sum(earlier.expects_call for earlier in case.steps[: step - 1])
    expected_call = None
    if case.steps[step - 1].expects_call:
        expected_call = calls_before
    if round_ is None:
        return _never_reached(step, trajectory, expected_call)
    limitless = replace(settings, limits=_NO_LIMITS)
    # A step is graded as a separate case. Only `decision` has rules for chains, so it grades a step as a chain of one
    # step.
    alone_of = _chains_of_one if grader == "decision" else _cases_of_steps
    alone = alone_of(case)[step - 1]

    def grade(answer: Round) -> Grade:
        # The round of a case without steps counts as the round of its only step.
        run = replace(trajectory, rounds=(replace(answer, step=None),), finish=_DONE)
        return grade_whole(grader, alone, limitless, run, context)

    grades = [grade(round_.round)]
    if len(round_.round.calls) > 1:
        # The first call of the answer must be right, even if the grader would pair a later call with the step.
        grades.append(grade(replace(round_.round, calls=round_.round.calls[:1])))
    worst = min(grades, key=_how_good)
    call = round_.first_call if round_.round.calls else None
    issues = [_in_the_run(issue, round_.first_call, calls_before) for issue in worst.issues]
    return StepGrade(step, worst.status, worst.score, reason_of(worst), call, tuple(issues), expected_call)


def failed_turns(
    name: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> Iterator[Issue]:
    """Yield an issue for each turn of a conversation that fails the turn's own expectations under a grader.

    A turn is graded as a separate case. Turns whose message was never sent are not graded. Raises the errors of
    `grade_run`, with a message that names the turn."""
    assert case.conversation is not None
    limitless = replace(settings, limits=_NO_LIMITS)
    first_call = 0
    calls_before: dict[int | None, int] = {}
    for round_ in trajectory.rounds:
        calls_before.setdefault(round_.turn, first_call)
        first_call += len(round_.calls)
    for message, alone in zip(case.conversation.messages, _cases_of_messages(case), strict=True):
        turn = _turn_of(message, trajectory)
        if turn is None or not message.expects:
            continue
        rounds = tuple([replace(each, turn=None, said=None) for each in trajectory.rounds if each.turn == turn])
        run = replace(trajectory, rounds=rounds, finish=_ANSWERED, user_turns=())
        try:
            grade = grade_whole(name, alone, limitless, run, context)
        except (CheckError, GradingError) as error:
            raise type(error)(f"turn {turn} cannot be judged: {error}") from error
        if grade.status == Status.FAILED:
            first = next((issue for issue in grade.issues if issue.call is not None), None)
            call = first.call + calls_before[turn] if first is not None and first.call is not None else None
            # The grader's reason may end with "the case expects no calls", although it concerns only a turn here.
            why = f"turn {turn}: {reason_of(grade).removesuffix(f'; {grade.reason}')}"
            expected = f"the turn of {describe_value(message.say)}"
            yield Issue("failed turn", why, call=call, expected=expected, decides=True)


def _turn_of(message: ScriptedMessage, trajectory: Trajectory) -> int | None:
    for turn in trajectory.user_turns:
        said = turn.said
        if said is not None and said.by == "script" and (said.message, said.text) == (message.id, message.say):
            return turn.number
    return None


def _each_message_as_case(case: Case) -> tuple[Case, ...]:
    cases = []
    for message in case.conversation.messages if case.conversation is not None else ():
        expectations = {
            "user": message.say,
            "ordered": message.ordered,
            "unordered": message.unordered,
            "disallowed": message.disallowed,
            "response": message.response,
        }
        kept = {**_WHOLE_RUN, "at_most": None, "variants": (), "expect_no_calls": False}
        cases.append(case.model_copy(update={**kept, **expectations}))
    return tuple(cases)


_cases_of_messages: Callable[[Case], tuple[Case, ...]] = cached_by_identity(_each_message_as_case)

_ANSWERED = RunFinished("answered")
_DONE = RunFinished("steps done")
_FROM_THE_WORST: tuple[Status, ...] = (Status.FAILED, Status.WARNED, Status.PASSED)


def _how_good(grade: Grade) -> tuple[int, float]:
    assert grade.status is not None and grade.score is not None, "a step says what is expected"
    return _FROM_THE_WORST.index(grade.status), grade.score


def _in_the_run(issue: Issue, first_call: int, calls_before: int) -> Issue:
    if issue.call is not None:
        issue = issue._replace(call=issue.call + first_call)
    if issue.expected_call is not None:
        issue = issue._replace(expected_call=issue.expected_call + calls_before)
    return issue


_WHOLE_RUN = {
    "duplicate_calls": None,
    "response": None,
    "response_contains": (),
    "final": None,
    "stop_on_failure": False,
}
"""Empty values for the keys of a case that apply only to the whole run."""


def _each_as_chain(case: Case) -> tuple[Case, ...]:
    return tuple([case.model_copy(update={**_WHOLE_RUN, "steps": (step,)}) for step in case.steps])


def _each_as_case(case: Case) -> tuple[Case, ...]:
    cases = []
    for step in case.steps:
        expectations: dict[str, object] = {"expect_no_calls": True}
        if (expected := step.expected_call) is not None:
            expectations = {"ordered": (expected,)}
        cases.append(case.model_copy(update={**_WHOLE_RUN, "steps": (), **expectations}))
    return tuple(cases)


_chains_of_one: Callable[[Case], tuple[Case, ...]] = cached_by_identity(_each_as_chain)
_cases_of_steps: Callable[[Case], tuple[Case, ...]] = cached_by_identity(_each_as_case)


def fault_of_call(
    suite: Suite, case: Case, trajectory: Trajectory, call: int, context: CheckContext = EMPTY_CONTEXT
) -> str | None:
    """Describe the fault of a call in a few words. Return `None` if the call has no fault.

    `call` is an index in `Trajectory.calls`. A fault is an argument that does not hold, or an issue about the call that
    fails the run. In a chain, a step that fails because of the call is also a fault. The run may still be going on.
    Raises the errors of `grade_run`."""
    settings = settings_of(suite, case)
    context = _timed(context, settings, trajectory)
    grade = grade_whole(settings.grading.by, case, settings, trajectory, context)
    expected = case.expected_calls()
    for pairing in grade.pairings:
        # In an unfinished run, the expected call may still follow, so a call of another tool is not yet a fault.
        if pairing.call == call and pairing.expected_call is not None and pairing.same_tool:
            for verdict in pairing.arguments:
                if verdict.holds is False:
                    return _said(verdict, expected[pairing.expected_call])
    for issue in grade.issues:
        if issue.call == call and issue.decides:
            return ": ".join(filter(None, (issue.tool, issue.argument, issue.reason)))
    return _of_step(suite, case, trajectory, call, context)


def _said(wrong: ArgumentVerdict, expected_call: ExpectedCall) -> str:
    if not wrong.listed:
        return f"{wrong.argument} is not expected"
    if not wrong.given:
        return f"{wrong.argument} is not given"
    fails = "fails"
    for alternative in expected_call.alternatives:
        check = (alternative.args or {}).get(wrong.argument)
        if check is not None and describe(check) == wrong.expected:
            fails = check.failure_verb
    return f"{wrong.argument} {describe_value(wrong.got)} {fails} {wrong.expected}"


def _of_step(suite: Suite, case: Case, trajectory: Trajectory, call: int, context: CheckContext) -> str | None:
    for number, reached in enumerate(rounds_of_steps(case, trajectory), 1):
        if reached is not None and 0 <= call - reached.first_call < len(reached.round.calls):
            step = grade_step(suite, case, trajectory, number, context)
            if step.status == Status.FAILED and call in step.calls:
                return f"step {number} fails: {step.why}"
            return None
    return None


def grade_run(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status]:
    """Grade a run with all graders. The run must have ended without a fault of the infrastructure.

    Returns the grades and the status of the run. The grade of the deciding grader comes first. Each grade's issues
    include the requirements besides the score, and the steps of a chain that fail under that grader. An issue with
    `decides` fails the run regardless of the score. If the grader does not apply to a case, the case passes or fails
    only by its requirements. A grader that does not decide and cannot grade the case has the verdict `error`. A run of
    a case that expects nothing yet has no grades and the status `not graded`.

    Raises CheckError if a check cannot be evaluated and GradingError if the case cannot be graded as written. Either
    error ends the run with status `error`. Raises JudgementNeededError, for any grader, if a judge must be asked
    first."""
    return grade_run_and_steps(suite, case, trajectory, context=context)[:2]


def grade_run_and_steps(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> tuple[tuple[Grade, ...], Status, tuple[StepGrade, ...]]:
    """Return the grades and the status from `grade_run`, and the grades of a chain's steps by the deciding grader."""
    return graded_run(suite, case, trajectory, context=context)[:3]


class GradedRun(NamedTuple):
    """The result of grading a run. Its fields become those of a `RunResult`."""

    grades: tuple[Grade, ...]
    status: Status
    steps: tuple[StepGrade, ...] = ()
    metrics: tuple[Metric, ...] = ()
    valid_arguments: tuple[bool | None, ...] = ()


def graded_run(
    suite: Suite,
    case: Case,
    trajectory: Trajectory,
    *,
    context: CheckContext = EMPTY_CONTEXT,
    cost_usd: float | None = None,
) -> GradedRun:
    """Grade a run as `grade_run` does.

    Add the grades of a chain's steps, the values of the answer's checks and the validity of arguments.

    The deciding grader grades the steps. `cost_usd` is the cost of the run, or `None` if it is unknown. Raises the
    errors of `grade_run`."""
    # Verdicts are cached for the run because all five graders evaluate the same slow checks.
    if context.verdicts is None:
        context = replace(context, verdicts={}, search_time={})
    run, others = grade_by_deciding_grader(suite, case, trajectory, context=context, cost_usd=cost_usd)
    return run._replace(grades=(*run.grades, *others()))


def grade_by_deciding_grader(
    suite: Suite, case: Case, trajectory: Trajectory, *, context: CheckContext, cost_usd: float | None = None
) -> tuple[GradedRun, Callable[[], tuple[Grade, ...]]]:
    """Grade a run as `graded_run` does, but only with the deciding grader.

    Also returns a function that computes the grades of the other graders. Raises the errors of `grade_run`."""
    if case.expects_nothing_yet:
        return GradedRun((), Status.NOT_GRADED, metrics=source_metrics(trajectory)), tuple
    trajectory = _without_too_much(trajectory)
    if suite.gate.endpoint_faults == "error" and (faults := endpoint_faults(trajectory)):
        raise GradingError(fault_as_error(faults[0]))
    settings = settings_of(suite, case)
    context = _timed(context, settings, trajectory)
    if trajectory.finish_reason == "turns exhausted" and case.final is not None:
        _raise_if_done(case, trajectory, context)
    metrics = metrics_of(case, trajectory, context)
    checked = check_calls(trajectory)
    common_issues = common_issues_of(
        *(case, settings.limits, trajectory, context, metrics, checked),
        invalid_arguments=settings.grading.invalid_arguments,
        whole_numbers=settings.grading.whole_numbers,
    )
    common_issues = (*common_issues, *budget_issues(case, trajectory, cost_usd))
    run = _Graded(case, settings, trajectory, context, common_issues)
    deciding = settings.grading.by
    first, steps = run.by(deciding)
    status = first.status
    assert status is not None
    if status == Status.FAILED and case.conversation is not None:
        _raise_if_user_at_fault(case.conversation, trajectory, context)
        first = first._replace(issues=(*first.issues, *_never_asked(case.conversation, trajectory)))
    others = [name for name in GRADERS if name != deciding]
    metrics += source_metrics(trajectory)
    graded = GradedRun((first,), status, steps, metrics, tuple([call.valid for call in checked]))
    return graded, lambda: tuple(map(run.attempted_by, others))


def _raise_if_done(case: Case, trajectory: Trajectory, context: CheckContext) -> None:
    if not any(issue.decides for issue in final_issues(case, trajectory, context)):
        raise UserFaultError("the simulated user went on after everything was done: `final` holds after all turns")


def _raise_if_user_at_fault(user: UserTable, trajectory: Trajectory, context: CheckContext) -> None:
    if user.review != "failed":
        return
    told: dict[str, JsonValue] = {"goal": user.goal, "style": user.style, "opening": user.opening}
    told["facts"] = {name: fact.value for name, fact in user.withheld.items()}
    value: dict[str, JsonValue] = {"instructions": told, "conversation": transcript_of(trajectory)}
    found = evaluate(USER_REVIEW, value, context=context)
    if not found.holds:
        raise UserFaultError(f"{SIMULATED_USER} broke its instructions: {found.note or 'the judge gives no reason'}")


def _never_asked(user: UserTable, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield an issue for each fact that the simulated user withheld because no answer met its condition."""
    requests = [request for turn in trajectory.user_turns for request in turn.requests]
    if not requests:
        return
    kept = [f'"{name}"' for name in user.facts if name not in requests[-1].released]
    if kept:
        their = "their" if len(kept) > 1 else "its"
        yield Issue("never asked", f"the user was never asked for {' and '.join(kept)}: no answer met {their} `when`")


def clock_of_run(settings: CaseSettings, trajectory: Trajectory) -> Clock | None:
    """Return the clock stored with a run, so that its grade stays the same, or else the fixed clock of the case.

    Returns `None` if there is neither. Raises GradingError if the clock cannot be read."""
    now = trajectory.clock or settings.clock
    if now is None:
        return None
    try:
        return fixed_clock(now)
    except ValueError as error:
        raise GradingError(f"the clock of the run cannot be read: {error}") from error


def _timed(context: CheckContext, settings: CaseSettings, trajectory: Trajectory) -> CheckContext:
    clock = clock_of_run(settings, trajectory)
    if clock is None or context.clock is not None:
        return context
    return replace(context, clock=clock)


def source_metrics(trajectory: Trajectory) -> tuple[Metric, ...]:
    """Return the scores that another system gave to an imported run, as metrics."""
    if trajectory.start is None:
        return ()
    scores = trajectory.start.source_scores
    return tuple(Metric(each.name, each.value, each.passed, about=each.about) for each in scores)


def _without_too_much(trajectory: Trajectory) -> Trajectory:
    finish = trajectory.finish
    if finish is None or finish.reason != "sent too much" or not trajectory.rounds:
        return trajectory
    *before, last = trajectory.rounds
    return replace(trajectory, rounds=(*before, replace(last, text="", reasoning="", calls=())))


def grade_by(
    name: GraderName, case: Case, settings: CaseSettings, trajectory: Trajectory, context: CheckContext
) -> Grade:
    """Return the grade of one grader as in `grade_run`, with the issues of the requirements and the status.

    Raises the errors of `grade_run`."""
    context = _timed(context, settings, trajectory)
    common_issues = common_issues_of(
        *(case, settings.limits, trajectory, context),
        invalid_arguments=settings.grading.invalid_arguments,
        whole_numbers=settings.grading.whole_numbers,
    )
    return _Graded(case, settings, trajectory, context, common_issues).by(name)[0]


@dataclass(frozen=True, slots=True)
class _Graded:
    case: Case
    settings: CaseSettings
    trajectory: Trajectory
    context: CheckContext
    common_issues: tuple[Issue, ...]

    def by(self, name: GraderName) -> tuple[Grade, tuple[StepGrade, ...]]:
        case, settings, trajectory, context = self.case, self.settings, self.trajectory, self.context
        # The steps are graded first, so that an error in a step has a message that names the step.
        steps = grade_steps(name, case, settings, trajectory, context) if case.steps else ()
        grade = grade_whole(name, case, settings, trajectory, context, self.common_issues)
        if grade.issues:
            grade = grade._replace(issues=issues_with_remedies(grade, case, settings.grading, trajectory))
        failed = tuple(_failed_steps(case, trajectory, steps)) if steps else ()
        if case.expects_in_turns:
            failed = tuple(failed_turns(name, case, settings, trajectory, context))
        if failed:
            issues = sorted((*failed, *grade.issues), key=lambda issue: issue.kind not in EXPLAINING_KINDS)
            grade = grade._replace(issues=tuple(issues), status=Status.FAILED)
        return grade, steps

    def attempted_by(self, name: GraderName) -> Grade:
        try:
            return self.by(name)[0]
        except JudgementNeededError:
            raise
        except (CheckError, GradingError) as error:
            return Grade(name, None, Status.ERROR, str(error), status=Status.ERROR)


def _failed_steps(case: Case, trajectory: Trajectory, steps: Sequence[StepGrade]) -> Iterator[Issue]:
    for wanted, step in zip(case.steps, steps, strict=True):
        if step.status != Status.FAILED:
            continue
        tool, expected, got = wanted.tool, "no call", "no call"
        if (expected_call := wanted.expected_call) is not None:
            expected = describe_expected(expected_call)
        if step.call is not None:
            record = trajectory.calls[step.call]
            tool, got = record.tool, describe_call(record)
        yield Issue(
            "failed step",
            f"step {step.step}: {step.why}",
            tool=tool,
            call=step.call,
            expected_call=step.expected_call,
            expected=expected,
            got=got,
            decides=True,
        )
