"""The `critics` grader: weighted critics on arguments, calls paired optimally, two thresholds (Arcade evals).

`arcade_compatible` reproduces the published system exactly. Without it the grader deviates from it in the points that
`docs/graders/critics.md` lists.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import reduce

from workbench.checks.check import EMPTY_CONTEXT, CheckContext
from workbench.grading.candidates import NOT_ALL_COMPARED
from workbench.grading.criteria import CallCritics, critics_of
from workbench.grading.critic_pairing import CriticPairing
from workbench.grading.findings import findings
from workbench.grading.grade import CallPairing, Grade, Verdict
from workbench.grading.scoring import NO_OBJECT, ROUNDING_SLACK, verdict_of
from workbench.grading.tool_names import ToolRegistry, normalised_name, same_tool
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall
from workbench.suite.numerals import counted
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.trajectory import CallRecord, Trajectory


def grade_critics(
    case: Case, grading: Grading, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> Grade:
    """Grade a run by critics. `Grade.pairings` are filled even where a rule decides before anything is scored.

    Raises CheckError when a check cannot be evaluated, and GradingError for critics that `arcade_compatible` refuses.
    """
    if not case.expects_calls_or_none:
        return Grade("critics", None, "not applicable", case.why_no_expected_calls)
    expected = case.expected_calls()
    calls = trajectory.calls
    options = grading.critics
    registry = ToolRegistry(trajectory.start.tools if trajectory.start else ())
    critics = critics_of(expected, registry, arcade_compatible=options.arcade_compatible)
    pairing = CriticPairing(expected, critics, calls, registry, options, context)
    pairings = pairing.lines()
    score, verdict, reason, numbers = _decide(expected, critics, calls, pairings, grading)
    if numbers and not pairing.surely_best:
        reason += f"; {NOT_ALL_COMPARED}"
    issues = findings(expected, calls, pairings, extras_matter=options.fail_on_tool_call_quantity, closed=True)
    return Grade("critics", score, verdict, reason, pairings, issues, numbers)


def _decide(
    expected: Sequence[ExpectedCall],
    critics: Sequence[CallCritics],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    grading: Grading,
) -> tuple[float, Verdict, str, Mapping[str, float]]:
    """Returns score, verdict, reason and the sums behind the score, by the first rule that applies
    (docs/graders/critics.md)."""
    options = grading.critics
    if options.fail_on_tool_call_quantity and len(expected) != len(calls):
        return 0.0, "failed", f"quantity: {_calls(len(expected))} expected, {len(calls)} made", {}
    if not expected and not calls:
        return 1.0, "passed", "no call expected, none made", {}
    if not expected and not options.arcade_compatible:
        return 0.0, "failed", f"no call expected, {len(calls)} made", {}
    if options.fail_on_tool_selection:
        difference = _selection_difference(expected, calls, options)
        if difference is not None:
            return 0.0, "failed", f"selection: {difference}", {}
    whole = len(calls) >= len(expected) and not any(line.outcome == NO_OBJECT for line in pairings)
    if not any(own.critics for own in critics) and (options.arcade_compatible or whole):
        return 1.0, "passed", "no argument is checked", {}
    earned, possible = _sums(pairings, options)
    score = earned / possible if possible else 0.0
    if not options.arcade_compatible:
        score = min(max(score, 0.0), 1.0)
    slack = 0.0 if options.arcade_compatible else ROUNDING_SLACK
    numbers = {"earned": earned, "possible": possible}
    counts = possible or not any(line.expected_call is not None and line.call is not None for line in pairings)
    reason = _summary(pairings) if counts else "nothing has a weight, so nothing counts"
    return score, verdict_of(score, grading, slack), reason, numbers


def _calls(number: int) -> str:
    return counted(number, "call")


def _selection_difference(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], options: CriticsOptions
) -> str | None:
    """Returns the first names that differ when both lists are sorted, up to the length of the shorter one."""
    if [call.tool for call in expected] == [record.tool for record in calls]:
        return None
    order = None if options.arcade_compatible else normalised_name
    wanted = sorted((call.tool for call in expected), key=order)
    made = sorted((record.tool for record in calls), key=order)
    if ANY_TOOL in wanted:
        return _beyond_wildcards(wanted, made)
    for name, other in zip(wanted, made, strict=False):
        if not same_tool(name, other):
            return f"{other!r} called where {name!r} was expected"
    return None


def _beyond_wildcards(wanted: Sequence[str], made: Sequence[str]) -> str | None:
    """Returns the first of the named tools that was not called although more calls are left than those of any tool may
    take."""
    left = list(made)
    missing: list[str] = []
    for name in wanted:
        if name != ANY_TOOL:
            found = next((other for other in left if same_tool(name, other)), None)
            missing.append(name) if found is None else left.remove(found)
    if not missing or len(left) <= wanted.count(ANY_TOOL):
        return None
    return f"{left[0]!r} called where {missing[0]!r} was expected"


def _sums(pairings: Sequence[CallPairing], options: CriticsOptions) -> tuple[float, float]:
    """Returns what was earned and what could be earned. A missing call counts towards the latter, except as
    published."""
    earned: list[float] = []
    possible: list[float] = []
    for line in pairings:
        if line.expected_call is None or (line.call is None and options.arcade_compatible):
            continue
        earned.append(line.tool_score)
        possible.append(line.tool_weight)
        for verdict in line.arguments:
            earned.append(verdict.score)
            if verdict.counted:
                possible.append(verdict.weight)
    add = _added_in_turn if options.arcade_compatible else math.fsum
    return add(earned), add(possible)


def _added_in_turn(amounts: Sequence[float]) -> float:
    """Returns the sum as a loop computes it, which is less exact than Python's own sums."""
    return reduce(operator.add, amounts, 0.0)


def _summary(pairings: Sequence[CallPairing]) -> str:
    paired = [pairing for pairing in pairings if pairing.expected_call is not None and pairing.call is not None]
    judged = [verdict for pairing in paired for verdict in pairing.arguments if verdict.holds is not None]
    parts = []
    if judged:
        right = [verdict.holds for verdict in judged].count(True)
        parts = [f"{right} of {counted(len(judged), 'argument')} right"]
    wrong_tools = sum([not pairing.same_tool for pairing in paired])
    if wrong_tools:
        parts.append(f"{_calls(wrong_tools)} to a wrong tool")
    missing = sum([pairing.call is None for pairing in pairings])
    if missing:
        parts.append(f"{_calls(missing)} missing")
    return ", ".join(parts) or "the right tools"
