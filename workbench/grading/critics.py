"""The `critics` grader (Arcade evals). It pairs calls optimally and scores their arguments by weighted critics.

Two thresholds turn the score into a verdict. `arcade_compatible` reproduces the published system exactly. Without it,
the grader differs in the points listed in `docs/graders.md`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

from workbench.checks.check import EMPTY_CONTEXT, Check, CheckContext, CheckVerdict, describe, evaluate, has_kind
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Equals
from workbench.checks.values import json_equal, spelled_number
from workbench.dataclasses import cached_by_identity, kept_property
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, GradingError
from workbench.grading.matching import (
    MAX_PAIRS,
    NOT_ALL_COMPARED,
    Candidates,
    best_pairing,
    certain_pairs,
    clear_pairing,
    gain_table,
    greedy_pairs,
    large_pairing,
    maximum_matching,
    pairs_at,
    unused_numbers,
)
from workbench.grading.pairing_issues import pairing_issues
from workbench.grading.scoring import NO_OBJECT, ROUNDING_SLACK, is_required, resolve_weights, verdict_of
from workbench.grading.status import Status, Verdict
from workbench.numerals import counted
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall, comparable_name, same_tool
from workbench.suite.model import Case
from workbench.suite.settings import CriticsOptions, Grading
from workbench.trajectory.events import JsonValue, ToolDefinition
from workbench.trajectory.json_schema import properties_of
from workbench.trajectory.trajectory import CallRecord, Trajectory, tools_of


class ToolRegistry:
    """The tools offered in a run, and the defaults that their schemas give for omitted arguments."""

    def __init__(self, tools: Iterable[ToolDefinition]) -> None:
        self._tools: dict[str, ToolDefinition] = {}
        for tool in tools:
            self._tools.setdefault(tool.name, tool)

    def resolve(self, name: str) -> ToolDefinition | None:
        """Return the offered tool with a name, or `None`.

        A name with underscores also matches a tool with dots, because some providers allow no dots in names. If two
        tools match, the one that was offered first is returned."""
        return self._tools.get(name) or self._by_underscores.get(name)

    @kept_property
    def _by_underscores(self) -> dict[str, ToolDefinition]:
        tools: dict[str, ToolDefinition] = {}
        for tool in self._tools.values():
            tools.setdefault(tool.name.replace(".", "_"), tool)
        return tools

    def defaults(self, name: str) -> Mapping[str, JsonValue]:
        """Return the defaults of a tool's arguments by name, or an empty mapping for an unknown tool."""
        tool = self.resolve(name)
        return _NO_DEFAULTS if tool is None else _defaults_of(tool)

    def filled(self, name: str, arguments: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Return the arguments of a call, with defaults in place of missing arguments and nulls."""
        defaults = self.defaults(name)
        if not defaults:
            return arguments
        filled = dict(arguments)
        for argument, default in defaults.items():
            if filled.get(argument) is None:
                filled[argument] = default
        return filled


_NO_DEFAULTS: Mapping[str, JsonValue] = MappingProxyType({})


def _schema_defaults(tool: ToolDefinition) -> dict[str, JsonValue]:
    defaults = {}
    for name, definition in properties_of(tool.parameters).items():
        if isinstance(definition, dict) and "default" in definition:
            defaults[name] = definition["default"]
    return defaults


_defaults_of: Callable[[ToolDefinition], dict[str, JsonValue]] = cached_by_identity(_schema_defaults)


# A critic is the check of an argument with its weight. Without `arcade_compatible`, an expected call has a critic for
# each written argument. With `arcade_compatible`, a case has one critic for each argument name, as in Arcade. This
# critic judges all calls of the case, and expects null in calls without the argument.


class Critic(NamedTuple):
    """The check of one argument of an expected call, with its weight.

    If the suite expects null, `check` expects the default in the tool's schema. Without a default, `expects_null` is
    true. `judged` is false for a weight of zero: the argument is then only recorded. The run fails if a `required`
    critic does not hold."""

    argument: str
    check: Check
    expects_null: bool
    judged: bool
    required: bool = False
    weight: float = 0.0


class CallCritics(NamedTuple):
    """The critics of an expected call.

    `weight` is the sum of the critics' weights. `pairing_arguments` are the arguments that influence the pairing.
    `always_all` is true if every critic applies to every call: none is optional, and none expects null."""

    critics: tuple[Critic, ...]
    weight: float
    pairing_arguments: frozenset[str]
    has_optional: bool
    always_all: bool

    def judging(self, arguments: Mapping[str, JsonValue]) -> CallCritics:
        """Return the critics that apply to a call with these arguments. Omitted optional arguments have no critic."""
        if not self.has_optional:
            return self
        judging = []
        for critic in self.critics:
            if critic.argument in arguments or not critic.check.optional:
                judging.append(critic)
        # The weight of an omitted argument is distributed among the other critics.
        return _weighted(judging)


def _weighted(critics: Sequence[Critic]) -> CallCritics:
    weights = resolve_weights([critic.check.weight for critic in critics])
    weighted, pairing_arguments = [], set()
    has_optional = expects_null = False
    for critic, weight in zip(critics, weights, strict=True):
        weighted.append(Critic(*critic[:-1], weight))
        has_optional = has_optional or critic.check.optional
        expects_null = expects_null or critic.expects_null
        if critic.judged and not critic.expects_null:
            pairing_arguments.add(critic.argument)
    always_all = not (has_optional or expects_null)
    return CallCritics(tuple(weighted), sum(weights), frozenset(pairing_arguments), has_optional, always_all)


def critics_of(calls: Sequence[ExpectedCall], registry: ToolRegistry, *, arcade_compatible: bool) -> list[CallCritics]:
    """Return the critics of each expected call. A call without `args` has none, because any arguments are right.

    An argument that the suite does not list, but that has a default in the tool's schema, gets a critic without weight.
    Raises GradingError if `arcade_compatible` is set and an argument name has different checks or weights within the
    case."""
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
    for name, default in defaults.items():
        if name not in call.args:
            critics.append(_recorder(name, default))
    return _weighted(critics)


_as_written: Callable[[ExpectedCall], CallCritics] = cached_by_identity(lambda call: _with_defaults(call, {}))


def _by_name_over_the_case(calls: Sequence[ExpectedCall], registry: ToolRegistry) -> list[tuple[Critic, ...]]:
    templates: dict[str, Check] = {}
    for call in calls:
        for name, check in (call.args or {}).items():
            # Arcade reads an argument that a call lacks as null and judges it, so the check cannot be optional.
            template = check.model_copy(update={"optional": False}) if check.optional else check
            first = templates.setdefault(name, template)
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
    critics = []
    for name, template in templates.items():
        default = defaults.get(name)
        if name in call.args:
            critics.append(_critic(name, call.args[name], default, arcade_compatible=True))
        else:
            critics.append(Critic(name, with_expected_value(template, default), default is None, template.weight != 0))
    return tuple(critics)


def _critic(name: str, check: Check, default: JsonValue, *, arcade_compatible: bool = False) -> Critic:
    """Return the critic for the check of an argument.

    A check that expects null expects the schema's default instead."""
    required = is_required(check, without_weight=not arcade_compatible)
    if check.expects_null:
        return Critic(name, with_expected_value(check, default), default is None, check.weight != 0, required)
    return Critic(name, check, False, check.weight != 0, required)


def _recorder(name: str, default: JsonValue) -> Critic:
    return Critic(name, Equals(equals=default, weight=0), default is None, False)


def with_expected_value(check: Check, value: JsonValue) -> Check:
    """Return the check with another expected value, even a value that suites cannot write, such as null.

    A check that is a critic in Arcade keeps its kind. Any other check becomes a comparison with the value."""
    if check.is_critic:
        return check.bound_to(value)
    return Equals(equals=value, weight=check.weight, optional=check.optional)


# Equality under `critics`: the actual value is cast to the type of the expected value.


def equals_by_casting(check: Equals, value: JsonValue) -> bool:
    """Return whether a value equals the expected value under `critics` without `arcade_compatible`.

    An expected boolean equals its text in any letter case. An expected integer such as 5 equals the text `5` and the
    number 5.0. An expected fraction equals its text. An expected text equals a number or a boolean that Python writes
    as this text. Everything else is compared as JSON: null equals only null, a boolean is not a number, and containers
    are not cast. With `cast = false`, every value is compared as JSON."""
    # Arcade's own casts treat any non-empty text as true, and cut 5.9 down to 5: see `equals_by_arcade_casting`.
    expected = check.equals
    if check.cast and isinstance(value, str) and isinstance(expected, bool):
        return value.lower() == str(expected).lower()
    if check.cast and isinstance(value, str) and isinstance(expected, int | float):
        number = spelled_number(value)
        return number == expected and (isinstance(number, int) or isinstance(expected, float))
    if check.cast and isinstance(expected, str) and isinstance(value, bool | int | float):
        return expected == str(value)
    return json_equal(expected, value)


def equals_by_arcade_casting(check: Equals, value: JsonValue) -> bool:
    """Return whether a value equals the expected value by Arcade's binary critic, with its published oddities.

    Raises OverflowError if Arcade's critic fails with an error."""
    # The steps and their order are Arcade's. The text "None" counts as null only when deciding whether to cast. The
    # expected value itself is never cast. So an expected "None" matches nothing, while an expected null matches the
    # text "None".
    expected = check.equals
    if not check.cast:
        return expected == value
    actual = None if value == "None" else value
    if expected is None or expected == "None" or actual is None:
        return expected == actual
    return expected == _cast(expected, actual)


def _cast(expected: JsonValue, value: JsonValue) -> JsonValue:
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


def judge(
    check: Check, value: JsonValue, is_given: bool, arcade_compatible: bool, context: CheckContext = EMPTY_CONTEXT
) -> CheckVerdict:
    """Evaluate the check of one argument on one value.

    The score is in 0..1. With `arcade_compatible`, the score of a value outside a `value_range` may be negative. Raises
    CheckError as `evaluate` does."""
    # Arcade's critics read an argument with `args.get(name)`, so an omitted argument is null.
    if not is_given and check.is_critic:
        value, is_given = None, True
    if arcade_compatible and is_given:
        return check.arcade_verdict(value, equals_by_arcade_casting, context)
    return evaluate(check, value, is_given, equal=equals_by_casting, context=context)


_OF_ANOTHER_TOOL = CheckVerdict(0.0, False, "not judged, because another tool was called")


# Arcade pairs expected and actual calls so that the sum of the pairs' gains is the largest (an assignment problem). The
# gains leave out nulls, but the score counts them. Several pairings therefore often have the same sum and different
# scores, and Arcade's solver picks any of them. Here the same search also resolves ties: gain, score, cost and distance
# of a pair become the digits of one integer. The base is larger than any sum of lower digits (`_exact_gains`). So the
# pairing with the largest sum of these integers has the largest gain, and among equal gains the largest score, and so
# on.
#
# Most runs need no search. Either every expected call pairs perfectly with the call at its position, or every expected
# call has a clearly best call that no other expected call wants. In the remaining runs, pairs that are part of every
# best pairing are fixed before the search.
#
# Cases with more than `MAX_PAIRS` pairs are not compared pair by pair. Right pairs are found by buckets (see
# `Candidates`), and the other calls are paired in turn, tool by tool. `is_optimal` says whether the result is known to
# be the best.
class CriticPairing:
    """The pairing of expected calls (rows) with actual calls (columns) that earns the most credit.

    Raises GradingError if the weights of the case are too large to add up."""

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
        self._expected_names = list(map(comparable_name, tools_of(expected)))
        self._called_names = list(map(comparable_name, tools_of(calls)))
        self._filled = [registry.filled(record.tool, record.arguments) for record in calls]
        self._tool_weight = options.tool_selection_weight
        self._compatible = options.arcade_compatible
        self._broken = [record.is_broken and not options.arcade_compatible for record in calls]
        self._context = context
        self._verdicts: dict[tuple[int, int, str], CheckVerdict] = {}
        self.is_optimal = True
        """Whether the pairing is known to be the best."""
        # Gains are converted to integer units, so they must be finite.
        total = sum([own.weight for own in critics]) + self._tool_weight * len(expected)
        if not math.isfinite(total * _UNITS):
            raise GradingError("weight: the weights of the case are too large to add up; write smaller weights")

    def lines(self) -> tuple[CallPairing, ...]:
        """Return the best pairing: pairs and missing calls in the order of the expected calls, then the extra calls."""
        rows, columns = range(len(self._expected)), range(len(self._calls))
        partner = self._best()
        taken = set(partner.values())
        lines = []
        for row in rows:
            if row in partner:
                lines.append(self._together(row, partner[row]))
            else:
                lines.append(self._missing(row))
        return (*lines, *map(_extra, unused_numbers(columns, taken)))

    def _is_perfect_in_order(self) -> bool:
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

    def _is_right(self, row: int, column: int) -> bool:
        """Return whether a call meets an expected call, perhaps with optional arguments omitted or null as expected.

        Such a call scores everything, but it need not have the largest gain."""
        if self._broken[column] or not self._same_tool(row, column):
            return False
        for critic in self._critics[row].judging(self._calls[column].arguments).critics:
            if critic.judged and self._verdict(row, column, critic).score != 1.0:
                return False
        return True

    def _best(self) -> dict[int, int]:
        rows, columns = range(len(self._expected)), range(len(self._calls))
        if self._is_perfect_in_order():
            return dict(zip(rows, rows, strict=True))
        if len(rows) * len(columns) <= MAX_PAIRS:
            return self._exactly(rows, columns)
        found = large_pairing(
            rows, columns, self._right_pairs(), self._exactly, self._in_turn, self._gain, self._most_of_row
        )
        self.is_optimal = found.is_optimal
        return found.pairs

    def _exactly(self, rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        gains = gain_table(rows, columns, self._gain)
        pairs = clear_pairing(gains, _CLEARLY)
        if pairs is not None:
            return pairs_at(rows, columns, pairs)
        sure = certain_pairs(gains, _CLEARLY)
        found = pairs_at(rows, columns, sure.items())
        rest = unused_numbers(range(len(rows)), sure)
        others = unused_numbers(range(len(columns)), set(sure.values()))
        rows_left = [rows[number] for number in rest]
        columns_left = [columns[number] for number in others]
        gains_left = gain_table(rest, others, lambda row, column: gains[row][column])
        exact = self._exact_gains(gains_left, rows_left, columns_left)
        return found | pairs_at(rows_left, columns_left, best_pairing(exact))

    def _right_pairs(self) -> dict[int, int]:
        wanted = [(name, call.args) for name, call in zip(self._expected_names, self._expected, strict=True)]
        made = list(zip(self._called_names, self._filled, strict=True))
        distinct = {column for column, is_broken in enumerate(self._broken) if is_broken}
        if any(own.has_optional for own in self._critics):
            # An optional argument that is omitted is not judged, although a default of the schema fills it.
            given = [record.arguments for record in self._calls]
            distinct |= {column for column, filled in enumerate(self._filled) if filled != given[column]}
        among = Candidates(wanted, made, distinct=distinct, ask_outside=False)
        return maximum_matching(range(len(self._expected)), range(len(self._calls)), self._is_right, among)

    def _most_of_row(self, row: int) -> float:
        return self._tool_weight + self._critics[row].weight

    def _in_turn(self, rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        """Pair the expected calls of each tool, then the expected calls of any tool (`"*"`), then the rest in order."""
        columns_of: dict[str, list[int]] = {}
        for column in columns:
            columns_of.setdefault(self._called_names[column], []).append(column)
        rows_of: dict[str, list[int]] = {}
        for row in rows:
            rows_of.setdefault(self._expected_names[row], []).append(row)
        # Wildcards come last because they could take a call that a named expectation needs.
        of_any = rows_of.pop(ANY_TOOL, [])
        paired: dict[int, int] = {}
        for name, of_tool in rows_of.items():
            paired.update(greedy_pairs(of_tool, columns_of.get(name, []), self._gain))
        paired.update(greedy_pairs(of_any, unused_numbers(columns, set(paired.values())), self._gain))
        rest = zip(unused_numbers(rows, paired), unused_numbers(columns, set(paired.values())), strict=False)
        return paired | dict(rest)

    def _gain(self, row: int, column: int) -> float:
        """Return the credit of a pair, ignoring arguments that are null or expected to be null."""
        # As published, Arcade skips nulls while pairing but judges them when it scores the pairs.
        if self._broken[column]:
            return 0.0
        gain = self._tool_weight if self._same_tool(row, column) else 0.0
        own, arguments = self._critics[row], self._filled[column]
        if own.pairing_arguments.isdisjoint(arguments):
            return gain
        for critic in own.judging(self._calls[column].arguments).critics:
            if critic.argument in own.pairing_arguments and arguments.get(critic.argument) is not None:
                gain += self._verdict(row, column, critic).score * critic.weight
        return gain

    def _same_tool(self, row: int, column: int) -> bool:
        return self._expected[row].is_any or self._expected_names[row] == self._called_names[column]

    def _verdict(self, row: int, column: int, critic: Critic) -> CheckVerdict:
        # The verdict on a missing argument is the same for every call, so all calls share one cache entry.
        verdict_column = column if critic.argument in self._filled[column] else _NO_COLUMN
        place = (row, verdict_column, critic.argument)
        verdict = self._verdicts.get(place)
        if verdict is None:
            verdict = self._verdicts[place] = self._judged(row, column, critic)
        return verdict

    def _judged(self, row: int, column: int, critic: Critic) -> CheckVerdict:
        name, arguments = critic.argument, self._filled[column]
        if not self._same_tool(row, column) and has_kind(critic.check, Judged):
            return _OF_ANOTHER_TOOL
        try:
            return judge(critic.check, arguments.get(name), name in arguments, self._compatible, self._context)
        except CheckError as error:
            raise CheckError(f"{self._expected[row].tool}.{name}: {error}") from error

    def _exact_gains(
        self, gains: Sequence[Sequence[float]], rows: Sequence[int], columns: Sequence[int]
    ) -> list[list[int]]:
        """Return the gain of each pair of the rows and columns as one integer that also breaks ties.

        `gains` are the plain gains of these pairs. If gains are equal (to 1e-9), the higher score comes first. Further
        ties are broken by the lower weight, the right tool, and the smaller distance between the positions of the two
        calls."""
        if not rows or not columns:
            return []
        size = len(self._expected) + len(self._calls)
        largest = 0
        in_units: list[list[tuple[int, int, int]]] = []
        for row, of_row in zip(rows, gains, strict=True):
            amounts = []
            for column, gain in zip(columns, of_row, strict=True):
                score, cost = self._score_and_cost(row, column)
                digits = (_in_units(gain), _in_units(score), _in_units(cost))
                largest = max(largest, *map(abs, digits))
                amounts.append(digits)
            in_units.append(amounts)
        # At most `size` pairs are added up, and size**3 exceeds the sum of their squared distances. No digit therefore
        # carries into the next digit. The distance is the last digit, so equal calls are paired in order.
        base = 1 + 2 * size * max(largest, 2 * size**3)
        exact = []
        for row, amounts in zip(rows, in_units, strict=True):
            numbers = []
            for column, (gain, score, cost) in zip(columns, amounts, strict=True):
                place = self._same_tool(row, column) * size**3 - (row - column) ** 2
                numbers.append(((gain * base + score) * base - cost) * base + place)
            exact.append(numbers)
        return exact

    def _score_and_cost(self, row: int, column: int) -> tuple[float, float]:
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
        if self._compatible:
            # As published, an expected call without a partner has no weight.
            return score, weight
        return score, weight - self._tool_weight - self._critics[row].judging({}).weight

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
            name = critic.argument
            if not critic.judged:
                shown.append(self._recorded(critic, filled.get(name), name in given))
                continue
            verdict = self._verdict(row, column, critic)
            score = verdict.score * critic.weight
            credit += score
            right = right and verdict.score == 1.0
            shown.append(
                ArgumentVerdict(
                    name,
                    verdict.holds,
                    score,
                    critic.weight,
                    describe(critic.check),
                    filled.get(name),
                    name in given,
                    _why(verdict, name in given, name in filled),
                    # As in Arcade, the weight of a critic does not count if the value cannot be measured, such as a
                    # text instead of a number.
                    verdict.measured or not self._compatible,
                    required=critic.required,
                )
            )
        outcome = "wrong tool"
        if right:
            outcome = "right"
        elif same_tool:
            outcome = "not all arguments right"
        return CallPairing(row, column, same_tool, tool_score, self._tool_weight, tuple(shown), credit, outcome)

    def _recorded(self, critic: Critic, value: JsonValue, is_given: bool) -> ArgumentVerdict:
        return ArgumentVerdict(
            critic.argument,
            None,
            0.0,
            critic.weight,
            describe(critic.check),
            value,
            is_given,
            "recorded, not judged",
            required=critic.required,
        )

    def _missing(self, row: int) -> CallPairing:
        return self._earning_nothing(row, "the call is missing")._replace(outcome="missing")

    def _earning_nothing(self, row: int, reason: str) -> CallPairing:
        shown = []
        for critic in self._critics[row].judging({}).critics:
            holds = False if critic.judged else None
            shown.append(
                ArgumentVerdict(
                    critic.argument,
                    holds,
                    0.0,
                    critic.weight,
                    describe(critic.check),
                    None,
                    False,
                    reason,
                    not self._compatible,
                    required=critic.required,
                )
            )
        return CallPairing(row, None, False, 0.0, self._tool_weight, tuple(shown), 0.0, reason)


def _extra(column: int) -> CallPairing:
    return CallPairing(None, column, False, 0.0, 0.0, outcome="extra")


def _why(verdict: CheckVerdict, is_given: bool, is_filled: bool) -> str:
    if is_given:
        return verdict.note
    if is_filled:
        return "; ".join(filter(None, ("not given, so its default is used", verdict.note)))
    if verdict.holds:
        return verdict.note
    return "not given"


_NO_COLUMN = -1

_UNITS = 1e9
"""Units per credit. Gains that differ by less than 1e-9 count as equal."""

_CLEARLY = 1e-8
"""The smallest difference that rounding to units cannot reverse."""

# Arcade's numeric critic can score minus infinity for a value far outside its range.
_MOST_NEGATIVE = -1e290


def _in_units(amount: float) -> int:
    return round(max(_MOST_NEGATIVE, amount) * _UNITS)


def grade_critics(
    case: Case, grading: Grading, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> Grade:
    """Grade a run with the `critics` grader.

    The score is `numbers["earned"] / numbers["possible"]`: the sum of the scores of tools and arguments, divided by the
    sum of their weights. If a rule decides before scoring, `numbers` is empty, but `pairings` are filled.

    Raises CheckError if a check cannot be evaluated. Raises GradingError for critics that `arcade_compatible` refuses,
    and for weights that are too large to add up."""
    if not case.expects_calls_or_none:
        return Grade("critics", None, "not applicable", case.why_no_expected_calls)
    expected = case.expected_calls()
    calls = trajectory.calls
    options = grading.critics
    registry = ToolRegistry(trajectory.offered)
    critics = critics_of(expected, registry, arcade_compatible=options.arcade_compatible)
    pairing = CriticPairing(expected, critics, calls, registry, options, context)
    pairings = pairing.lines()
    score, verdict, reason, numbers = _decide(expected, critics, calls, pairings, grading)
    if numbers and not pairing.is_optimal:
        reason += f"; {NOT_ALL_COMPARED}"
    issues = pairing_issues(expected, calls, pairings, extras_matter=options.fail_on_tool_call_quantity, closed=True)
    return Grade("critics", score, verdict, reason, pairings, issues, numbers)


def _decide(
    expected: Sequence[ExpectedCall],
    critics: Sequence[CallCritics],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    grading: Grading,
) -> tuple[float, Verdict, str, Mapping[str, float]]:
    """Return score, verdict, reason, and the earned and possible credit. The first rule that applies decides.

    `docs/graders.md` lists the rules. The credit is missing if a rule decides before scoring."""
    # The order of the rules is Arcade's: quantity, both empty, selection, no critics, then the pairs.
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
    slack = 0.0
    if not options.arcade_compatible:
        score = min(max(score, 0.0), 1.0)
        slack = ROUNDING_SLACK
    reason = _summary(pairings)
    if not possible and any(line.expected_call is not None and line.call is not None for line in pairings):
        reason = "nothing has a weight, so nothing counts"
    return score, verdict_of(score, grading, slack), reason, {"earned": earned, "possible": possible}


def _calls(number: int) -> str:
    return counted(number, "call")


def _selection_difference(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], options: CriticsOptions
) -> str | None:
    wanted, made = tools_of(expected), tools_of(calls)
    if wanted == made:
        return None
    # Arcade sorts the names as written but compares them normalised, so `b-c` and `B.c` may be sorted apart.
    order = None if options.arcade_compatible else comparable_name
    named, called = sorted(wanted, key=order), sorted(made, key=order)
    if ANY_TOOL in named:
        return _beyond_wildcards(named, called)
    for name, other in zip(named, called, strict=False):
        if not same_tool(name, other):
            return f"{other!r} called where {name!r} was expected"
    return None


def _beyond_wildcards(expected: Sequence[str], actual: Sequence[str]) -> str | None:
    left = list(actual)
    missing: list[str] = []
    for name in expected:
        if name != ANY_TOOL:
            for other in left:
                if same_tool(name, other):
                    left.remove(other)
                    break
            else:
                missing.append(name)
    if not missing or len(left) <= expected.count(ANY_TOOL):
        return None
    return f"{left[0]!r} called where {missing[0]!r} was expected"


def _sums(pairings: Sequence[CallPairing], options: CriticsOptions) -> tuple[float, float]:
    earned: list[float] = []
    possible: list[float] = []
    for line in pairings:
        # As published, a missing call costs nothing. Without `arcade_compatible`, it costs its full weight.
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
    # Arcade adds up in a loop and compares its score without tolerance. `sum` would return another last digit, because
    # it compensates for rounding since Python 3.12.
    return reduce(operator.add, amounts, 0.0)


def _summary(pairings: Sequence[CallPairing]) -> str:
    judged: list[bool] = []
    wrong_tools = missing = 0
    for pairing in pairings:
        if pairing.call is None:
            missing += 1
        elif pairing.expected_call is not None:
            wrong_tools += not pairing.same_tool
            for verdict in pairing.arguments:
                if verdict.holds is not None:
                    judged.append(verdict.holds)
    parts = []
    if judged:
        parts = [f"{judged.count(True)} of {counted(len(judged), 'argument')} right"]
    if wrong_tools:
        parts.append(f"{_calls(wrong_tools)} to a wrong tool")
    if missing:
        parts.append(f"{_calls(missing)} missing")
    return ", ".join(parts) or "the right tools"
