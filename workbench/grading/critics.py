"""The `critics` grader: weighted critics on arguments, calls paired in the best way, two thresholds (Arcade evals).

`arcade_compatible` restores the published system exactly; without it the grader deviates from it in the points that
`docs/graders/critics.md` lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.checks.describe import describe
from workbench.checks.errors import CheckError
from workbench.checks.evaluate import NOTHING_OUTSIDE, CheckVerdict, Outside, evaluate
from workbench.checks.numbers import closeness
from workbench.grading.assignment import best_pairing
from workbench.grading.casting import by_arcade_casting, by_casting
from workbench.grading.criteria import Critic, critics_of
from workbench.grading.errors import GradingError
from workbench.grading.findings import findings
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Verdict
from workbench.grading.thresholds import ROUNDING_SLACK, verdict_of
from workbench.grading.tool_names import ToolRegistry, normalised_name, same_tool
from workbench.grading.weights import resolve_weights
from workbench.suite.checks import Check, DateTime, Equals, Near, Similar
from workbench.suite.model import Case, ExpectedCall
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory


def grade_critics(case: Case, grading: Grading, trajectory: Trajectory, *, outside: Outside = NOTHING_OUTSIDE) -> Grade:
    """Grade a run by critics. `Grade.pairings` are filled even where a rule decides before anything is scored.

    Raises CheckError when a check cannot be evaluated, and GradingError for critics that `arcade_compatible` refuses.
    """
    if not case.expects_calls_or_none:
        return Grade("critics", None, "not applicable", "the case expects no particular calls")
    expected = tuple(case.expected_calls())
    calls = trajectory.calls
    options = grading.critics
    registry = ToolRegistry(trajectory.start.tools if trajectory.start else ())
    critics = critics_of(expected, registry, arcade_compatible=options.arcade_compatible)
    judging = _Judging(expected, critics, calls, registry, options, outside)
    scored = judging.paired()
    pairings = tuple(pair.shown for pair in scored)
    score, verdict, reason = _decide(expected, critics, calls, scored, grading)
    issues = findings(expected, calls, pairings, quantity_matters=options.fail_on_tool_call_quantity)
    return Grade("critics", score, verdict, reason, pairings, issues)


def judge(
    check: Check, value: JsonValue, given: bool, arcade_compatible: bool, outside: Outside = NOTHING_OUTSIDE
) -> CheckVerdict:
    """One critic on one value. The peer's own critics see an argument that was left out as null.

    The score is in 0..1; with `arcade_compatible` that of a value outside a `value_range` may be negative.
    Raises CheckError as `evaluate` does.
    """
    if not given and isinstance(check, _PEER_CRITICS):
        value, given = None, True
    rule = by_arcade_casting if arcade_compatible else by_casting
    verdict = evaluate(check, value, given, equal=rule, outside=outside)
    if arcade_compatible and isinstance(check, Near) and check.value_range is not None and verdict.measured:
        return replace(verdict, score=closeness(check, value))
    return verdict


_PEER_CRITICS = (Equals, Similar, Near, DateTime)


@dataclass(slots=True)
class _Pair:
    """An expected and an actual call, judged critic by critic; `None` where a critic only records.

    `score` out of `weight` is what the pair earns; `gain` is what the pairing goes by: as `score`, without nulls.
    """

    same_tool: bool
    critics: Sequence[Critic]
    weights: Sequence[float]
    verdicts: list[CheckVerdict | None]
    gain: float
    score: float
    weight: float


@dataclass(frozen=True, slots=True)
class _Scored:
    """One line of the result: what counts towards the score, and what a screen shows."""

    scores: tuple[float, ...]
    weights: tuple[float, ...]
    shown: CallPairing


class _Judging:
    """Judges pairs of expected and actual calls of one case and finds the best pairing."""

    def __init__(
        self,
        expected: Sequence[ExpectedCall],
        critics: Sequence[tuple[Critic, ...]],
        calls: Sequence[CallRecord],
        registry: ToolRegistry,
        options: CriticsOptions,
        outside: Outside,
    ) -> None:
        self._expected = expected
        self._critics = critics
        self._calls = calls
        self._expected_names = [normalised_name(call.tool) for call in expected]
        self._called_names = [normalised_name(record.tool) for record in calls]
        self._filled = [registry.filled(record.tool, record.arguments) for record in calls]
        self._tool_weight = options.tool_selection_weight
        self._compatible = options.arcade_compatible
        self._outside = outside
        self._weights = [_weights_of(own) for own in critics]
        self._optional = [any(critic.check.optional for critic in own) for own in critics]
        total = sum(map(sum, self._weights)) + self._tool_weight * len(expected)
        if not math.isfinite(total * _UNITS):
            raise GradingError("weight: the weights of the case are too large to be added up")

    def paired(self) -> list[_Scored]:
        """The best pairing: pairs and missing calls in the order of the expected calls, then the extra calls."""
        table = [[self._pair(row, column) for column in range(len(self._calls))] for row in range(len(self._expected))]
        alone = [sum(self._weights_alone(row)) for row in range(len(self._expected))]
        partner = dict(best_pairing(_gains(table, alone)))
        lines = [
            self._together(row, partner[row], table[row][partner[row]]) if row in partner else self._missing(row)
            for row in range(len(self._expected))
        ]
        taken = set(partner.values())
        lines += [
            _Scored((), (), CallPairing(None, column, False, 0.0, 0.0))
            for column in range(len(self._calls))
            if column not in taken
        ]
        return lines

    def _pair(self, row: int, column: int) -> _Pair:
        same = self._expected_names[row] == self._called_names[column]
        arguments = self._filled[column]
        critics, weights = self._relevant(row, self._calls[column].arguments)
        verdicts: list[CheckVerdict | None] = []
        gain = score = self._tool_weight if same else 0.0
        possible = self._tool_weight
        for critic, weight in zip(critics, weights, strict=True):
            if not critic.judged:
                verdicts.append(None)
                continue
            name = critic.argument
            value = arguments.get(name)
            try:
                verdict = judge(critic.check, value, name in arguments, self._compatible, self._outside)
            except CheckError as error:
                raise CheckError(f"{self._expected[row].tool}.{name}: {error}") from error
            verdicts.append(verdict)
            earned = verdict.score * weight
            score += earned
            if verdict.measured or not self._compatible:
                possible += weight
            if value is not None and not critic.expects_null:
                gain += earned
        return _Pair(same, critics, weights, verdicts, gain, score, possible)

    def _relevant(self, row: int, arguments: Mapping[str, JsonValue]) -> tuple[Sequence[Critic], Sequence[float]]:
        """The critics of an expected call with their weights, without optional arguments that were left out."""
        critics = self._critics[row]
        if not self._optional[row]:
            return critics, self._weights[row]
        left = [critic for critic in critics if critic.argument in arguments or not critic.check.optional]
        return left, _weights_of(left)

    def _weights_alone(self, row: int) -> tuple[float, ...]:
        """What an expected call weighs without a partner: everything, or nothing with `arcade_compatible`."""
        return () if self._compatible else (self._tool_weight, *self._relevant(row, {})[1])

    def _together(self, row: int, column: int, pair: _Pair) -> _Scored:
        tool_score = self._tool_weight if pair.same_tool else 0.0
        given, filled = self._calls[column].arguments, self._filled[column]
        shown = tuple(
            ArgumentVerdict(
                critic.argument,
                verdict.holds if verdict else None,
                verdict.score * weight if verdict else 0.0,
                weight,
                describe(critic.check),
                filled.get(critic.argument),
                critic.argument in given,
                _why(verdict, critic.argument in given, critic.argument in filled),
                verdict is None or verdict.measured or not self._compatible,
            )
            for critic, weight, verdict in zip(pair.critics, pair.weights, pair.verdicts, strict=True)
        )
        return _Scored(
            (tool_score, *(verdict.score for verdict in shown)),
            (self._tool_weight, *(verdict.weight for verdict in shown if verdict.counted)),
            CallPairing(row, column, pair.same_tool, tool_score, self._tool_weight, shown),
        )

    def _missing(self, row: int) -> _Scored:
        """An expected call without a partner."""
        critics, weights = self._relevant(row, {})
        shown = tuple(
            ArgumentVerdict(
                critic.argument,
                False if critic.judged else None,
                0.0,
                weight,
                describe(critic.check),
                None,
                False,
                "the call is missing",
                not self._compatible,
            )
            for critic, weight in zip(critics, weights, strict=True)
        )
        return _Scored(
            (),
            self._weights_alone(row),
            CallPairing(row, None, False, 0.0, self._tool_weight, shown),
        )


def _weights_of(critics: Sequence[Critic]) -> list[float]:
    return resolve_weights([critic.check.weight for critic in critics])


def _why(verdict: CheckVerdict | None, given: bool, filled: bool) -> str:
    if verdict is None:
        return "recorded, not judged"
    if not given and filled:
        return f"not given, so its default counts{'; ' if verdict.note else ''}{verdict.note}"
    return verdict.note if given or verdict.holds else "not given"


def _gains(table: Sequence[Sequence[_Pair]], alone: Sequence[float]) -> list[list[int]]:
    """What each pair is worth for the pairing, as one integer; `alone` is what each row weighs without a partner.

    The pairing total decides (to 1e-9), as the peer has it. It leaves ties, which are resolved so that the score does
    not depend on the order of the calls: the higher score, then the lower weight, then the right tool, then the order.
    """
    if not table or not table[0]:
        return []
    size = len(table) + len(table[0])
    in_units = [
        [(_in_units(pair.gain), _in_units(pair.score), _in_units(pair.weight - weight)) for pair in row]
        for row, weight in zip(table, alone, strict=True)
    ]
    largest = max(max(map(abs, amounts)) for row in in_units for amounts in row)
    base = 1 + 2 * size * max(largest, 2 * size**3)
    return [
        [
            ((gain * base + score) * base - weight) * base + table[i][j].same_tool * size**3 - (i - j) ** 2
            for j, (gain, score, weight) in enumerate(row)
        ]
        for i, row in enumerate(in_units)
    ]


_UNITS = 1e9
_MOST_NEGATIVE = -1e290


def _in_units(amount: float) -> int:
    return round((amount if amount > _MOST_NEGATIVE else _MOST_NEGATIVE) * _UNITS)


def _decide(
    expected: Sequence[ExpectedCall],
    critics: Sequence[tuple[Critic, ...]],
    calls: Sequence[CallRecord],
    scored: Sequence[_Scored],
    grading: Grading,
) -> tuple[float, Verdict, str]:
    """Score, verdict and reason, by the first rule that applies (grading.md, A 1.2)."""
    options = grading.critics
    if options.fail_on_tool_call_quantity and len(expected) != len(calls):
        return 0.0, "failed", f"quantity: {_calls(len(expected))} expected, {len(calls)} made"
    if not expected and not calls:
        return 1.0, "passed", "no call expected, none made"
    if options.fail_on_tool_selection:
        difference = _selection_difference(expected, calls, options)
        if difference is not None:
            return 0.0, "failed", f"selection: {difference}"
    if not any(critics) and (options.arcade_compatible or len(calls) >= len(expected)):
        return 1.0, "passed", "no argument has a critic"
    score = _score(scored, options)
    slack = 0.0 if options.arcade_compatible else ROUNDING_SLACK
    return score, verdict_of(score, grading, slack), _summary([line.shown for line in scored])


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"


def _selection_difference(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], options: CriticsOptions
) -> str | None:
    """The first names that differ when both lists are sorted, up to the shorter one's length."""
    order = None if options.arcade_compatible else normalised_name
    wanted = sorted((call.tool for call in expected), key=order)
    made = sorted((record.tool for record in calls), key=order)
    for name, other in zip(wanted, made, strict=False):
        if not same_tool(name, other):
            return f"{other!r} called where {name!r} was expected"
    return None


def _score(scored: Sequence[_Scored], options: CriticsOptions) -> float:
    scores = [score for line in scored for score in line.scores]
    weights = [weight for line in scored for weight in line.weights]
    if not options.arcade_compatible:
        weight = math.fsum(weights)
        return min(max(math.fsum(scores) / weight, 0.0), 1.0) if weight else 0.0
    total = possible = 0.0
    for score in scores:
        total += score
    for weight in weights:
        possible += weight
    return total / possible if possible else 0.0


def _summary(pairings: Sequence[CallPairing]) -> str:
    paired = [pairing for pairing in pairings if pairing.expected_call is not None and pairing.call is not None]
    judged = [verdict for pairing in paired for verdict in pairing.arguments if verdict.holds is not None]
    parts = [f"{sum(verdict.holds is True for verdict in judged)} of {len(judged)} arguments right"] if judged else []
    wrong_tools = sum(not pairing.same_tool for pairing in paired)
    if wrong_tools:
        parts.append(f"{_calls(wrong_tools)} of a wrong tool")
    missing = sum(pairing.call is None for pairing in pairings)
    if missing:
        parts.append(f"{_calls(missing)} missing")
    return ", ".join(parts) or "the right tools"
