"""The `critics` grader: weighted critics on arguments, calls paired optimally, two thresholds (Arcade evals).

`arcade_compatible` reproduces the published system exactly. Without it the grader deviates from it in the points that
`docs/graders.md` lists.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from workbench.checks.check import EMPTY_CONTEXT, Check, CheckContext, CheckVerdict, asks, describe, evaluate
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Equals
from workbench.checks.values import json_equal, spelled_number
from workbench.dataclasses import ByIdentity
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, GradingError
from workbench.grading.pairing import (
    MAX_PAIRS,
    NOT_ALL_COMPARED,
    Candidates,
    best_pairing,
    clear_pairing,
    findings,
    large_pairing,
    paired_in_turn,
    pairs_in_turn,
    sure_pairs,
)
from workbench.grading.scoring import NO_OBJECT, ROUNDING_SLACK, is_required, resolve_weights, verdict_of
from workbench.grading.status import Status, Verdict
from workbench.numerals import counted
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, comparable_name, same_tool
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.trajectory import CallRecord, Trajectory


class ToolRegistry:
    """The offered tools, and the defaults that their schemas give to omitted arguments."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        self._by_underscores: dict[str, ToolDefinition] = {}
        for tool in tools:
            self._tools.setdefault(tool.name, tool)
            self._by_underscores.setdefault(tool.name.replace(".", "_"), tool)
        self._defaults: dict[str, dict[str, JsonValue]] = {}

    def resolve(self, name: str) -> ToolDefinition | None:
        """Return the tool of that name; else the first whose name is equal once dots are written as underscores."""
        return self._tools.get(name) or self._by_underscores.get(name)

    def defaults(self, name: str) -> Mapping[str, JsonValue]:
        """Return the defaults in the schema of the tool that a name means; none for an unknown tool."""
        known = self._defaults.get(name)
        if known is None:
            tool = self.resolve(name)
            known = self._defaults[name] = _schema_defaults(tool.parameters) if tool else {}
        return known

    def filled(self, name: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Return the arguments of a call with missing ones and nulls replaced by their defaults."""
        defaults = self.defaults(name)
        if not defaults:
            return arguments
        return {**arguments, **{key: value for key, value in defaults.items() if arguments.get(key) is None}}


def _schema_defaults(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        name: definition["default"]
        for name, definition in properties_of(schema).items()
        if isinstance(definition, dict) and "default" in definition
    }


# Derives the critics of the `critics` grader: one for each argument of every expected call. A critic is an
# argument's check with its weight. Without `arcade_compatible` each call has the critics that it writes. With it,
# every name that any call of the case writes has a critic in all of them, as in Arcade.


class Critic(NamedTuple):
    """One argument of an expected call.

    `equals_null` is replaced by `Equals(equals=None)`, or the schema's default. `judged` is false for a weight of zero,
    which is only recorded. `weight` is the resolved weight. The run fails when a `required` critic does not hold."""

    argument: str
    check: Check
    expects_null: bool
    judged: bool
    required: bool = False
    weight: float = 0.0


class CallCritics(NamedTuple):
    """The critics of an expected call.

    `weight` is their sum; `speaking` are the arguments that influence the pairing; `always_all` means that none expects
    null and none may be left out."""

    critics: tuple[Critic, ...]
    weight: float
    speaking: frozenset[str]
    some_optional: bool
    always_all: bool

    def judging(self, arguments: Mapping[str, JsonValue]) -> CallCritics:
        """Return the critics that judge a call with these arguments: without optional ones that were left out."""
        if not self.some_optional:
            return self
        return _weighted([c for c in self.critics if c.argument in arguments or not c.check.optional])


def _weighted(critics: Sequence[Critic]) -> CallCritics:
    weights = resolve_weights([critic.check.weight for critic in critics])
    optional = any(critic.check.optional for critic in critics)
    weighted = tuple([Critic(*critic[:-1], weight) for critic, weight in zip(critics, weights, strict=True)])
    needed = frozenset(critic.argument for critic in critics if critic.judged and not critic.expects_null)
    all_needed = not optional and not any(critic.expects_null for critic in critics)
    return CallCritics(weighted, sum(weights), needed, optional, all_needed)


def critics_of(calls: Sequence[ExpectedCall], registry: ToolRegistry, *, arcade_compatible: bool) -> list[CallCritics]:
    """Return the critics of each expected call; none for a call whose arguments do not matter (`args` absent).

    Arguments that the tool's schema fills in are recorded without judging.

    Raises GradingError when, with `arcade_compatible`, one argument name has different checks or weights within the
    case.
    """
    if arcade_compatible:
        return [_weighted(critics) for critics in _by_name_over_the_case(calls, registry)]
    return [_of_call(call, registry) for call in calls]


def _of_call(call: ExpectedCall, registry: ToolRegistry) -> CallCritics:
    defaults = registry.defaults(call.tool)
    if defaults:
        return _with_defaults(call, defaults)
    return _as_written(call)


def _with_defaults(call: ExpectedCall, defaults: Mapping[str, JsonValue]) -> CallCritics:
    if call.args is None:
        return _weighted(())
    critics = []
    for name, check in call.args.items():
        critics.append(_critic(name, check, defaults.get(name)))
    critics += [_recorder(name, default) for name, default in defaults.items() if name not in call.args]
    return _weighted(critics)


_as_written: ByIdentity[ExpectedCall, CallCritics] = ByIdentity(lambda call: _with_defaults(call, {}))


def _by_name_over_the_case(calls: Sequence[ExpectedCall], registry: ToolRegistry) -> list[tuple[Critic, ...]]:
    templates: dict[str, Check] = {}
    for call in calls:
        for name, check in (call.args or {}).items():
            # Where the name is not written, the argument may not be left out: null is expected.
            first = templates.setdefault(
                name, check.model_copy(update={"optional": False}) if check.optional else check
            )
            if first is not check and first.critic_key != check.critic_key:
                raise GradingError(
                    f"grading.critics.arcade_compatible: the argument {name!r} has different checks or weights within "
                    "the case; give it the same ones in every call, or switch arcade_compatible off"
                )
    for call in calls:
        if call.args is not None:
            for name, default in registry.defaults(call.tool).items():
                templates.setdefault(name, _recorder(name, default).check)
    return [_bound_templates(call, templates, registry) for call in calls]


def _bound_templates(call: ExpectedCall, templates: dict[str, Check], registry: ToolRegistry) -> tuple[Critic, ...]:
    if call.args is None:
        return ()
    defaults = registry.defaults(call.tool)
    return tuple(
        _critic(name, call.args[name], defaults.get(name), arcade_compatible=True)
        if name in call.args
        else Critic(name, bound_to(template, defaults.get(name)), defaults.get(name) is None, template.weight != 0)
        for name, template in templates.items()
    )


def _critic(name: str, check: Check, default: JsonValue, *, arcade_compatible: bool = False) -> Critic:
    """Return the critic of a written check.

    Where it expects null, it expects the schema's default instead, if there is one."""
    required = is_required(check, without_weight=not arcade_compatible)
    if check.expects_null:
        return Critic(name, bound_to(check, default), default is None, check.weight != 0, required)
    return Critic(name, check, False, check.weight != 0, required)


def _recorder(name: str, default: JsonValue) -> Critic:
    return Critic(name, Equals(equals=default, weight=0), default is None, False)


def bound_to(check: Check, value: JsonValue) -> Check:
    """Return the same check for another expected value, even one that a suite cannot write there, such as null.

    Checks that Arcade does not know become a comparison."""
    if check.is_critic:
        return check.bound_to(value)
    return Equals(equals=value, weight=check.weight, optional=check.optional)


# The equality rules of the `critics` grader, which casts the actual value to the type of the expected one.


def by_casting(check: Equals, value: JsonValue) -> bool:
    """Return the rule without `arcade_compatible`: casts without surprises.

    A boolean equals the texts true and false in any case; an integer its JSON text and 5.0, but not 5.9; a number its
    JSON text; a text what Python writes for a number or a boolean. Everything else is compared as JSON: null equals
    only null, a boolean is no number, and containers are not cast.
    """
    expected = check.equals
    if check.cast and isinstance(value, str) and isinstance(expected, bool):
        return value.lower() == str(expected).lower()
    if check.cast and isinstance(value, str) and isinstance(expected, int | float):
        number = spelled_number(value)
        return number == expected and (isinstance(number, int) or isinstance(expected, float))
    if check.cast and isinstance(expected, str) and isinstance(value, bool | int | float):
        return expected == str(value)
    return json_equal(expected, value)


def by_arcade_casting(check: Equals, value: JsonValue) -> bool:
    """Arcade's binary critic.

    Raises OverflowError where Arcade's fails with an error.

    The expected value itself is never cast, so the text `None` matches nothing, while null matches `None`.
    """
    expected = check.equals
    if not check.cast:
        return expected == value
    actual = None if value == "None" else value
    if expected is None or expected == "None" or actual is None:
        return expected == actual
    return expected == _cast(expected, actual)


def _cast(expected: JsonValue, value: JsonValue) -> JsonValue:
    """Return `type(expected)(value)`, or the value itself where Python cannot cast it.

    Raises OverflowError."""
    try:
        if isinstance(expected, bool):
            return bool(value)
        if isinstance(expected, str):
            return str(value)
        if isinstance(expected, int):
            return int(value)  # type: ignore[arg-type]
        if isinstance(expected, float):
            return float(value)  # type: ignore[arg-type]
        if isinstance(expected, list):
            return list(value)  # type: ignore[arg-type]
        if isinstance(expected, dict):
            return dict(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    return value


# Pairs calls with expected calls for the `critics` grader, and evaluates the critics of each pair.


def judge(
    check: Check, value: JsonValue, given: bool, arcade_compatible: bool, context: CheckContext = EMPTY_CONTEXT
) -> CheckVerdict:
    """Evaluate one critic on one value.

    Arcade's own critics see an argument that was left out as null.

    The score is in 0..1; with `arcade_compatible` that of a value outside a `value_range` may be negative. Raises
    CheckError as `evaluate` does.
    """
    if not given and check.is_critic:
        value, given = None, True
    if arcade_compatible and given:
        return check.arcade_verdict(value, by_arcade_casting, context)
    return evaluate(check, value, given, equal=by_casting, context=context)


_OF_ANOTHER_TOOL = CheckVerdict(0.0, False, "not judged, because another tool was called")


# Arcade's pairing maximises the sum of what the pairs earn, which often leaves several pairings with the same sum and
# different scores. Here ties are resolved within the same search: a pair's gain, score, cost and place become the
# digits of one integer, whose base is larger than any sum of the digits below, so that the largest sum of the integers
# is the first in this order (`_exact_gains`). Three shortcuts come first: every expected
# call is perfect with the call in its place; every one is clearly best with a call of its own; some pairs are part of
# every best pairing.
#
# Large cases cannot be compared pair by pair. Perfect pairs are found by buckets, and the rest is paired tool by tool
# in turn; `surely_best` says whether that is known to be the best.
class CriticPairing:
    """Evaluates expected calls (rows) on actual calls (columns) of one case, and finds the best pairing.

    Raises GradingError when the weights of the case cannot be added up."""

    def __init__(
        self,
        expected: Sequence[ExpectedCall],
        critics: Sequence[CallCritics],
        calls: Sequence[CallRecord],
        registry: ToolRegistry,
        options: CriticsOptions,
        context: CheckContext,
    ) -> None:
        self._expected = expected
        self._critics = critics
        self._calls = calls
        self._expected_names = [comparable_name(call.tool) for call in expected]
        self._called_names = [comparable_name(record.tool) for record in calls]
        self._filled = [registry.filled(record.tool, record.arguments) for record in calls]
        self._tool_weight = options.tool_selection_weight
        self._compatible = options.arcade_compatible
        self._broken = [record.is_broken and not options.arcade_compatible for record in calls]
        self._context = context
        self._verdicts: dict[tuple[int, int, str], CheckVerdict] = {}
        self.surely_best = True
        """Whether no other pairing of the calls can gain more."""
        total = sum([own.weight for own in critics]) + self._tool_weight * len(expected)
        if not math.isfinite(total * _UNITS):
            raise GradingError("weight: the weights of the case are too large to add up")

    def lines(self) -> tuple[CallPairing, ...]:
        """Return the best pairing: pairs and missing calls in the order of the expected calls, then the extra calls."""
        rows, columns = range(len(self._expected)), range(len(self._calls))
        partner = {row: row for row in rows} if self._is_perfect_in_order() else self._best()
        taken = set(partner.values())
        return (
            *[self._together(row, partner[row]) if row in partner else self._missing(row) for row in rows],
            *[_extra(column) for column in columns if column not in taken],
        )

    def _is_perfect_in_order(self) -> bool:
        """Return whether each expected call earns all it can from the call in its place: no pairing is better then."""
        rows = range(len(self._expected))
        return len(rows) <= len(self._calls) and all(map(self._is_perfect, rows, rows))

    def _is_perfect(self, row: int, column: int) -> bool:
        own, arguments = self._critics[row], self._filled[column]
        if self._broken[column] or not self._same_tool(row, column) or not own.always_all:
            return False
        for critic in own.critics:
            if critic.judged and (
                arguments.get(critic.argument) is None or self._verdict(row, column, critic).score != 1.0
            ):
                return False
        return True

    def _best(self) -> dict[int, int]:
        rows, columns = range(len(self._expected)), range(len(self._calls))
        if len(rows) * len(columns) <= MAX_PAIRS:
            return self._exactly(rows, columns)
        found = large_pairing(
            rows, columns, self._perfect(), self._exactly, self._in_turn, self._gain, self._most_of_row
        )
        self.surely_best = found.surely_best
        return found.pairs

    def _exactly(self, rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        """Return the best pairing of some rows and columns."""
        gains = []
        for row in rows:
            gains.append([self._gain(row, column) for column in columns])
        pairs = clear_pairing(gains, _CLEARLY)
        if pairs is None:
            sure = sure_pairs(gains, _CLEARLY)
            rest = []
            for number in range(len(rows)):
                if number not in sure:
                    rest.append(number)
            others = []
            for number in range(len(columns)):
                if number not in sure.values():
                    others.append(number)
            exact = self._exact_gains(
                [[gains[row][column] for column in others] for row in rest],
                [rows[row] for row in rest],
                [columns[column] for column in others],
            )
            pairs = [*sure.items(), *((rest[row], others[column]) for row, column in best_pairing(exact))]
        return {rows[row]: columns[column] for row, column in pairs}

    def _perfect(self) -> dict[int, int]:
        """Return as many pairs as possible in which everything is correct."""
        among = Candidates(
            [(name, call.args) for name, call in zip(self._expected_names, self._expected, strict=True)],
            list(zip(self._called_names, self._filled, strict=True)),
            apart={column for column, broken in enumerate(self._broken) if broken},
            ask_outside=False,
        )
        return paired_in_turn(range(len(self._expected)), range(len(self._calls)), self._is_perfect, among)

    def _most_of_row(self, row: int) -> float:
        """Return an upper bound for the gain of a row."""
        return self._tool_weight + self._critics[row].weight

    def _in_turn(self, rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        """Pair tool by tool, then the rest in order."""
        columns_of: dict[str, list[int]] = {}
        for column in columns:
            columns_of.setdefault(self._called_names[column], []).append(column)
        rows_of: dict[str, list[int]] = {}
        for row in rows:
            rows_of.setdefault(self._expected_names[row], []).append(row)
        of_any = rows_of.pop(ANY_TOOL, [])
        paired = dict(
            pair
            for name, of_tool in rows_of.items()
            for pair in pairs_in_turn(of_tool, columns_of.get(name, []), self._gain)
        )
        taken = set(paired.values())
        paired |= pairs_in_turn(of_any, [column for column in columns if column not in taken], self._gain)
        taken = set(paired.values())
        rest = [row for row in rows if row not in paired]
        return paired | dict(zip(rest, (each for each in columns if each not in taken), strict=False))

    def _gain(self, row: int, column: int) -> float:
        """Return the gain that the pairing maximises: credit without arguments that are or should be null."""
        if self._broken[column]:
            return 0.0
        gain = self._tool_weight if self._same_tool(row, column) else 0.0
        own, arguments = self._critics[row], self._filled[column]
        if own.speaking.isdisjoint(arguments):
            return gain
        for critic in own.judging(self._calls[column].arguments).critics:
            if critic.argument in own.speaking and arguments.get(critic.argument) is not None:
                gain += self._verdict(row, column, critic).score * critic.weight
        return gain

    def _same_tool(self, row: int, column: int) -> bool:
        return self._expected[row].is_any or self._expected_names[row] == self._called_names[column]

    def _verdict(self, row: int, column: int, critic: Critic) -> CheckVerdict:
        # An argument that is missing is the same in every call.
        place = (row, column if critic.argument in self._filled[column] else _NO_COLUMN, critic.argument)
        verdict = self._verdicts.get(place)
        if verdict is None:
            verdict = self._verdicts[place] = self._judged(row, column, critic)
        return verdict

    def _judged(self, row: int, column: int, critic: Critic) -> CheckVerdict:
        name, arguments = critic.argument, self._filled[column]
        if not self._same_tool(row, column) and asks(critic.check, Judged):
            return _OF_ANOTHER_TOOL
        try:
            return judge(critic.check, arguments.get(name), name in arguments, self._compatible, self._context)
        except CheckError as error:
            raise CheckError(f"{self._expected[row].tool}.{name}: {error}") from error

    def _exact_gains(
        self, gains: Sequence[Sequence[float]], rows: Sequence[int], columns: Sequence[int]
    ) -> list[list[int]]:
        """Return the value of each pair of some rows and columns for the pairing, as one integer.

        `gains` are theirs.

        The pairing total decides (to 1e-9), as in Arcade. Ties are resolved so that the score does not depend on the
        order of the calls: by the higher score, then the lower weight, then the right tool, then the order.
        """
        if not rows or not columns:
            return []
        size = len(self._expected) + len(self._calls)
        in_units = []
        for row, of_row in zip(rows, gains, strict=True):
            in_units.append(
                [
                    (_in_units(gain), *map(_in_units, self._score_and_cost(row, column)))
                    for column, gain in zip(columns, of_row, strict=True)
                ]
            )
        largest = max(max(map(abs, each)) for amounts in in_units for each in amounts)
        base = 1 + 2 * size * max(largest, 2 * size**3)
        return [
            [
                ((gain * base + score) * base - cost) * base + self._same_tool(i, j) * size**3 - (i - j) ** 2
                for j, (gain, score, cost) in zip(columns, amounts, strict=True)
            ]
            for i, amounts in zip(rows, in_units, strict=True)
        ]

    def _score_and_cost(self, row: int, column: int) -> tuple[float, float]:
        """Return the pair's credit, and its weight beyond that of the expected call without a partner."""
        if self._broken[column]:
            return 0.0, 0.0
        score = self._tool_weight if self._same_tool(row, column) else 0.0
        weight = self._tool_weight
        for critic in self._critics[row].judging(self._calls[column].arguments).critics:
            if critic.judged:
                verdict = self._verdict(row, column, critic)
                score += verdict.score * critic.weight
                if verdict.measured or not self._compatible:
                    weight += critic.weight
        alone = 0.0 if self._compatible else self._tool_weight + self._critics[row].judging({}).weight
        return score, weight - alone

    def _together(self, row: int, column: int) -> CallPairing:
        same_tool = self._same_tool(row, column)
        if self._broken[column]:
            return self._earning_nothing(row, NO_OBJECT)._replace(call=column, same_tool=same_tool)
        tool_score = self._tool_weight if same_tool else 0.0
        given, filled = self._calls[column].arguments, self._filled[column]
        credit = tool_score
        right = same_tool
        shown = []
        for critic in self._critics[row].judging(given).critics:
            name, weight = critic.argument, critic.weight
            verdict = self._verdict(row, column, critic) if critic.judged else None
            score = verdict.score * weight if verdict else 0.0
            credit += score
            right = right and (verdict is None or verdict.score == 1.0)
            shown.append(
                ArgumentVerdict(
                    name,
                    verdict.holds if verdict else None,
                    score,
                    weight,
                    describe(critic.check),
                    filled.get(name),
                    name in given,
                    _why(verdict, name in given, name in filled),
                    verdict is None or verdict.measured or not self._compatible,
                    required=critic.required,
                )
            )
        wrong = "not all arguments right" if same_tool else "wrong tool"
        outcome = "right" if right else wrong
        return CallPairing(row, column, same_tool, tool_score, self._tool_weight, tuple(shown), credit, outcome)

    def _missing(self, row: int) -> CallPairing:
        return self._earning_nothing(row, "the call is missing")._replace(outcome="missing")

    def _earning_nothing(self, row: int, why: str) -> CallPairing:
        shown = tuple(
            ArgumentVerdict(
                critic.argument,
                False if critic.judged else None,
                0.0,
                critic.weight,
                describe(critic.check),
                None,
                False,
                why,
                not self._compatible,
                required=critic.required,
            )
            for critic in self._critics[row].judging({}).critics
        )
        return CallPairing(row, None, False, 0.0, self._tool_weight, shown, 0.0, why)


def _extra(column: int) -> CallPairing:
    return CallPairing(None, column, False, 0.0, 0.0, outcome="extra")


def _why(verdict: CheckVerdict | None, given: bool, filled: bool) -> str:
    if verdict is None:
        return "recorded, not judged"
    if not given and filled:
        return f"not given, so its default is used{'; ' if verdict.note else ''}{verdict.note}"
    if given or verdict.holds:
        return verdict.note
    return "not given"


_NO_COLUMN = -1

_UNITS = 1e9
_CLEARLY = 1e-8
"""A difference that rounding to units cannot reverse."""

_MOST_NEGATIVE = -1e290


def _in_units(amount: float) -> int:
    return round((amount if amount > _MOST_NEGATIVE else _MOST_NEGATIVE) * _UNITS)


def grade_critics(
    case: Case, grading: Grading, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> Grade:
    """Grade a run by critics.

    `Grade.pairings` are filled even where a rule decides before anything is scored.

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
    """Return score, verdict, reason and the sums behind the score, by the first rule that applies (docs/graders.md)."""
    options = grading.critics
    if options.fail_on_tool_call_quantity and len(expected) != len(calls):
        return 0.0, Status.FAILED, f"quantity: {_calls(len(expected))} expected, {len(calls)} made", {}
    if not expected and not calls:
        return 1.0, Status.PASSED, "no call expected, none made", {}
    if not expected and not options.arcade_compatible:
        return 0.0, Status.FAILED, f"no call expected, {len(calls)} made", {}
    if options.fail_on_tool_selection:
        difference = _selection_difference(expected, calls, options)
        if difference is not None:
            return 0.0, Status.FAILED, f"selection: {difference}", {}
    whole = len(calls) >= len(expected) and not any(line.outcome == NO_OBJECT for line in pairings)
    if not any(own.critics for own in critics) and (options.arcade_compatible or whole):
        return 1.0, Status.PASSED, "no argument is checked", {}
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
    """Return the first names that differ when both lists are sorted, up to the length of the shorter one."""
    called = [record.tool for record in calls]
    if [call.tool for call in expected] == called:
        return None
    order = None if options.arcade_compatible else comparable_name
    wanted = sorted((call.tool for call in expected), key=order)
    made = sorted((record.tool for record in calls), key=order)
    if ANY_TOOL in wanted:
        return _beyond_wildcards(wanted, made)
    for name, other in zip(wanted, made, strict=False):
        if not same_tool(name, other):
            return f"{other!r} called where {name!r} was expected"
    return None


def _beyond_wildcards(wanted: Sequence[str], made: Sequence[str]) -> str | None:
    """Return the first of the named tools without a call although more calls are left than any one tool may take."""
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
    """Return the earned and the possible credit.

    A missing call counts towards the latter, except as published."""
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
    """Return the sum as a loop computes it, which is less exact than Python's own sums."""
    return reduce(operator.add, amounts, 0.0)


def _summary(pairings: Sequence[CallPairing]) -> str:
    paired = []
    for pairing in pairings:
        if pairing.expected_call is not None and pairing.call is not None:
            paired.append(pairing)
    judged = []
    for pairing in paired:
        for verdict in pairing.arguments:
            if verdict.holds is not None:
                judged.append(verdict)
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
