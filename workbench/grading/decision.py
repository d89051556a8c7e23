"""The `decision` grader (Toolvaluator): one third each for the decision to call, the tool's name, and the arguments.

Expected and actual calls are compared position by position. Each step of a chain is compared with the first call of its
round."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from workbench.checks.check import EMPTY_CONTEXT, CheckContext, Checks, by_python
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue
from workbench.grading.matching import rounds_of_steps
from workbench.grading.pairing_issues import outcomes_text, pairing_issues
from workbench.grading.scoring import judge_arguments, unlisted_arguments, verdict_of
from workbench.numerals import score_text
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import Grading
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import Trajectory

EXTRA_COST = 0.5
"""The cost of an unexpected argument, as a share of the credit for an expected argument."""


def grade_decision(
    case: Case, grading: Grading, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> Grade:
    """Grade a run with the `decision` grader. The suite's thresholds decide the verdict.

    The score is `numbers["total"] / numbers["items"]`: the mean over all decisions. Each expected call, or each step of
    a chain, is a decision with a credit of 0..1. Each extra call is a decision with credit 0.

    Raises CheckError if a check cannot be evaluated."""
    if not case.expects_calls_or_none:
        return Grade("decision", None, "not applicable", case.why_no_expected_calls)
    decisions = _steps if case.steps else _calls
    items = list(decisions(case, trajectory, context))
    total = math.fsum([item.credit for item in items])
    score = total / len(items)
    # An item with neither an expected nor an actual call is a correct refusal: it counts, but has no pairing.
    lines = tuple([line for line in items if line.expected_call is not None or line.call is not None])
    issues: tuple[Issue, ...] = ()
    if total != len(items):
        issues = pairing_issues(case.expected_calls(), trajectory.calls, lines, extras_matter=True)
    numbers = {"items": float(len(items)), "total": total, **_means(items)}
    return Grade("decision", score, verdict_of(score, grading), _reason(items), lines, issues, numbers)


def _means(items: Sequence[CallPairing]) -> Mapping[str, float]:
    means = {}
    for part in items[0].parts:
        means[part] = math.fsum([item.parts[part] for item in items]) / len(items)
    return means


class Decision(NamedTuple):
    """A graded decision: the credits of its three parts, each 0..1, and the verdicts on the arguments."""

    should_call: float
    tool_name: float
    arguments: float
    verdicts: tuple[ArgumentVerdict, ...] = ()

    @property
    def score(self) -> float:
        return (self.should_call + self.tool_name + self.arguments) / 3


def judge_decision(
    expected: ExpectedCall | None,
    has_called: bool,
    tool: str,
    arguments: Mapping[str, JsonValue],
    context: CheckContext = EMPTY_CONTEXT,
    *,
    is_broken: bool = False,
) -> Decision:
    """Grade one decision: whether to call a tool, the tool's exact name, and the arguments.

    `expected` is `None` if no call is expected. Arguments are broken if they are not a JSON object, and earn nothing.
    Raises CheckError if a check cannot be evaluated."""
    # As published, the arguments are graded even without a call. They then count as empty arguments.
    if expected is None:
        # A correct refusal has no arguments, and its tool does not matter.
        return Decision(float(not has_called), 1.0, *judge_expected_arguments(tool, {}, arguments))
    same = expected.is_any or expected.tool == tool
    share, verdicts = judge_expected_arguments(expected.tool, expected.args, arguments, same_tool=same, context=context)
    if is_broken:
        share = 0.0
    return Decision(float(has_called), float(same), share, verdicts)


def judge_expected_arguments(
    tool: str,
    checks: Checks | None,
    arguments: Mapping[str, JsonValue],
    *,
    same_tool: bool = True,
    context: CheckContext = EMPTY_CONTEXT,
) -> tuple[float, tuple[ArgumentVerdict, ...]]:
    """Return the credit of a call's arguments, 0..1, and a verdict for each argument.

    With n expected arguments, the credit is `max(0, right / n - 0.5 * unexpected / n)`. If `checks` is `None`,
    arguments do not matter and the credit is 1. If no arguments are expected, the credit is 1 for a call without
    arguments and 0 for any other call.

    The scores of the verdicts add up to the credit before clamping. If no arguments are expected, the scores add up to
    the lost credit, as a negative number. Judges are asked only if `same_tool` is true."""
    if checks is None:
        return 1.0, ()
    verdicts = judge_arguments(
        tool, checks, arguments, equal=by_python, context=context, shared=1.0, same_tool=same_tool
    )
    if not verdicts and not arguments:
        return 1.0, ()
    if not verdicts:
        return 0.0, unlisted_arguments(set(), arguments, 1 / len(arguments))
    right = [verdict.holds for verdict in verdicts].count(True)
    extra = unlisted_arguments(checks.keys(), arguments, EXTRA_COST / len(verdicts))
    return max(0.0, (right - EXTRA_COST * len(extra)) / len(verdicts)), verdicts + extra


def _calls(case: Case, trajectory: Trajectory, context: CheckContext) -> Iterator[CallPairing]:
    """Yield the decisions of a case without steps, comparing the k-th expected call with the k-th actual call."""
    expected = case.expected_calls()
    calls = trajectory.calls
    # A case without expected calls is one decision. The first call, if there is one, is compared with a refusal to
    # call.
    decisions = len(expected) or 1
    for index, (wanted, record) in enumerate(zip_longest(expected or (None,), calls)):
        if index >= decisions:
            yield _line(None, index, Decision(0.0, 0.0, 0.0), "too many")
        elif wanted is None and record is None:
            yield _line(None, None, judge_decision(None, False, "", {}), "right not to call")
        elif wanted is None:
            assert record is not None
            judged = judge_decision(None, True, "", record.arguments)
            yield _line(None, index, judged, "called where nothing should be")
        elif record is None:
            # The published evaluation offers one tool, so a model without a call cannot name a wrong tool. The part for
            # the tool's name stays 1, and the arguments are graded as empty.
            yield _line(index, None, judge_decision(wanted, False, wanted.tool, {}), "not called")
        else:
            judged = judge_decision(wanted, True, record.tool, record.arguments, context, is_broken=record.is_broken)
            yield _line(index, index, judged, _outcome(judged.tool_name, judged.arguments, judged.verdicts))


def _line(expected_call: int | None, call: int | None, judged: Decision, outcome: str) -> CallPairing:
    parts = {"should_call": judged.should_call, "tool_name": judged.tool_name, "arguments": judged.arguments}
    return _pairing(expected_call, call, judged.verdicts, judged.score, outcome, parts)


def _steps(case: Case, trajectory: Trajectory, context: CheckContext) -> Iterator[CallPairing]:
    """Yield the decisions of a chain, comparing each step with the first call of its round.

    As published, a step has two parts, the tool and the arguments. The decision to call is not a part."""
    expected_calls = 0
    for step, reached in zip(case.steps, rounds_of_steps(case, trajectory), strict=True):
        wanted: int | None = None
        expected = step.args
        if step.tool is None:
            # A step without an expected call is right if there is no call. Then its arguments are right too.
            expected = {}
        else:
            wanted = expected_calls
            expected_calls += 1
        if reached is None:
            yield _pairing(wanted, None, (), 0.0, "never reached", {"tool_name": 0.0, "arguments": 0.0})
            continue
        call: int | None = None
        arguments: Mapping[str, JsonValue] = {}
        is_broken = False
        right_tool = step.tool is None
        if reached.round.calls:
            first, call = reached.round.calls[0], reached.first_call
            arguments, is_broken = first.arguments, first.is_broken
            right_tool = step.tool in (ANY_TOOL, first.tool)
        score, verdicts = judge_expected_arguments(
            step.tool or "", expected, arguments, same_tool=right_tool, context=context
        )
        if is_broken:
            score = 0.0
        if call is None:
            outcome = "right not to call" if right_tool else "not called"
        elif step.tool is None:
            outcome = "called where nothing should be"
        else:
            outcome = _outcome(float(right_tool), score, verdicts)
        parts = {"tool_name": float(right_tool), "arguments": score}
        yield _pairing(wanted, call, verdicts, (parts["tool_name"] + score) / 2, outcome, parts)


def _pairing(
    expected_call: int | None,
    call: int | None,
    verdicts: tuple[ArgumentVerdict, ...],
    credit: float,
    outcome: str,
    parts: Mapping[str, float],
) -> CallPairing:
    same_tool = expected_call is not None and call is not None and parts["tool_name"] == 1
    return CallPairing(expected_call, call, same_tool, 0.0, 0.0, verdicts, credit, outcome, None, parts)


def _outcome(tool_name: float, arguments: float, verdicts: tuple[ArgumentVerdict, ...]) -> str:
    if tool_name < 1:
        return "wrong tool"
    if arguments == 1:
        return "right"
    if all(verdict.holds for verdict in verdicts if verdict.listed):
        return "right tool, too many arguments"
    if arguments == 0:
        return "right tool, wrong arguments"
    return "right tool, in part"


def _reason(items: list[CallPairing]) -> str:
    if len(items) == 1:
        (item,) = items
        if item.expected_call is None and item.call is None:
            return "no call expected, none made"
        worst_first = sorted(item.parts.items(), key=lambda part: part[1])
        return f"{item.outcome}: " + ", ".join(f"{_NAMES[part]} {score_text(amount)}" for part, amount in worst_first)
    return f"{len(items)} decisions: {outcomes_text(items, _AS_EXPECTED)}"


_AS_EXPECTED = ("right", "right not to call")
_NAMES = {"should_call": "should call", "tool_name": "tool", "arguments": "arguments"}
