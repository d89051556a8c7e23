"""Pairs calls with expected calls for the `critics` grader, and evaluates the critics of each pair."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.checks.check import EMPTY_CONTEXT, Check, CheckContext, CheckVerdict, asks, describe, evaluate
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.grading.assignment import (
    MAX_PAIRS,
    best_pairing,
    clear_pairing,
    large_pairing,
    pairs_in_turn,
    sure_pairs,
)
from workbench.grading.candidates import Candidates
from workbench.grading.casting import by_arcade_casting, by_casting
from workbench.grading.criteria import CallCritics, Critic
from workbench.grading.grade import ArgumentVerdict, CallPairing, GradingError
from workbench.grading.matching import paired_in_turn
from workbench.grading.scoring import NO_OBJECT
from workbench.grading.tool_names import ToolRegistry, normalised_name
from workbench.suite.model import ANY_TOOL, ExpectedCall
from workbench.suite.settings import CriticsOptions
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import CallRecord


def judge(
    check: Check, value: JsonValue, given: bool, arcade_compatible: bool, context: CheckContext = EMPTY_CONTEXT
) -> CheckVerdict:
    """Evaluate one critic on one value. Arcade's own critics see an argument that was left out as null.

    The score is in 0..1; with `arcade_compatible` that of a value outside a `value_range` may be negative. Raises
    CheckError as `evaluate` does.
    """
    if not given and check.is_critic:
        value, given = None, True
    if arcade_compatible and given:
        return check.arcade_verdict(value, by_arcade_casting, context)
    return evaluate(check, value, given, equal=by_casting, context=context)


_OF_ANOTHER_TOOL = CheckVerdict(0.0, False, "not judged, because another tool was called")


class CriticPairing:
    """Evaluates expected calls (rows) on actual calls (columns) of one case, and finds the best pairing. Raises
    GradingError when the weights of the case cannot be added up."""

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
        self._expected_names = [normalised_name(call.tool) for call in expected]
        self._called_names = [normalised_name(record.tool) for record in calls]
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
        """Returns the best pairing: pairs and missing calls in the order of the expected calls, then the extra
        calls."""
        rows, columns = range(len(self._expected)), range(len(self._calls))
        partner = {row: row for row in rows} if self._is_perfect_in_order() else self._best()
        taken = set(partner.values())
        return (
            *[self._together(row, partner[row]) if row in partner else self._missing(row) for row in rows],
            *[_extra(column) for column in columns if column not in taken],
        )

    def _is_perfect_in_order(self) -> bool:
        """Returns whether each expected call has everything it can in the call of the same place, so that no pairing is
        better."""
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
        """Returns the best pairing of some rows and columns."""
        gains = [[self._gain(row, column) for column in columns] for row in rows]
        pairs = clear_pairing(gains, _CLEARLY)
        if pairs is None:
            sure = sure_pairs(gains, _CLEARLY)
            rest = [number for number in range(len(rows)) if number not in sure]
            others = [number for number in range(len(columns)) if number not in sure.values()]
            exact = self._exact_gains(
                [[gains[row][column] for column in others] for row in rest],
                [rows[row] for row in rest],
                [columns[column] for column in others],
            )
            pairs = [*sure.items(), *((rest[row], others[column]) for row, column in best_pairing(exact))]
        return {rows[row]: columns[column] for row, column in pairs}

    def _perfect(self) -> dict[int, int]:
        """Returns as many pairs as possible in which everything is correct."""
        among = Candidates(
            [(name, call.args) for name, call in zip(self._expected_names, self._expected, strict=True)],
            list(zip(self._called_names, self._filled, strict=True)),
            apart={column for column, broken in enumerate(self._broken) if broken},
            ask_outside=False,
        )
        return paired_in_turn(range(len(self._expected)), range(len(self._calls)), self._is_perfect, among)

    def _most_of_row(self, row: int) -> float:
        """Returns an upper bound for the gain of a row."""
        return self._tool_weight + self._critics[row].weight

    def _in_turn(self, rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        """Pairs tool by tool, then the rest in order."""
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
        """Returns what the pairing optimises: what the pair earns, leaving out arguments that are or should be null."""
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
        """Returns the value of each pair of some rows and columns for the pairing, as one integer. `gains` are theirs.

        The pairing total decides (to 1e-9), as in Arcade. Ties are resolved so that the score does not depend on the
        order of the calls: by the higher score, then the lower weight, then the right tool, then the order.
        """
        if not rows or not columns:
            return []
        size = len(self._expected) + len(self._calls)
        in_units = [
            [
                (_in_units(gain), *map(_in_units, self._score_and_cost(row, column)))
                for column, gain in zip(columns, of_row, strict=True)
            ]
            for row, of_row in zip(rows, gains, strict=True)
        ]
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
        """Returns what the pair earns, and its weight beyond that of the expected call without a partner."""
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
        outcome = "right" if right else "not all arguments right" if same_tool else "wrong tool"
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
    return verdict.note if given or verdict.holds else "not given"


_NO_COLUMN = -1

_UNITS = 1e9
_CLEARLY = 1e-8
"""A difference that rounding to units cannot reverse."""

_MOST_NEGATIVE = -1e290


def _in_units(amount: float) -> int:
    return round((amount if amount > _MOST_NEGATIVE else _MOST_NEGATIVE) * _UNITS)
