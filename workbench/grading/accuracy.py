"""The `accuracy` grader (Evalite's `toolCallAccuracy`), which compares calls in order or in any order.

A call with the right name but wrong arguments earns partial credit. A call's arguments are right as a whole or not at
all: every listed argument must match, and no other argument may be given."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence

from workbench.checks.check import EMPTY_CONTEXT, CheckContext, Checks, by_json
from workbench.checks.value_kinds import Equals
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, GradingError, Issue, Metric
from workbench.grading.matching import NOT_ALL_COMPARED, Candidates, broken_calls, maximum_matching, unused_numbers
from workbench.grading.pairing_issues import outcomes_text, pairing_issues
from workbench.grading.scoring import judge_arguments, unlisted_arguments, verdict_of
from workbench.numerals import score_text
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import AccuracyOptions, Grading
from workbench.trajectory.trajectory import CallRecord, Trajectory

EXACT, NAME_ONLY, MISSING = "exact", "right name only", "missing"
WRONG, SURPLUS = "wrong", "extra, counts twice"
EXTRA = "extra"
"""The outcomes of a pairing. `WRONG` and `SURPLUS` occur only in exact mode, and `EXTRA` only in flexible mode."""


def grade_accuracy(
    case: Case, grading: Grading, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> Grade:
    """Grade a run with the `accuracy` grader. The suite's thresholds decide the verdict.

    The score is the sum of the credits of `pairings` divided by `numbers["expected"]`, clamped to 0..1.

    Raises CheckError if a check cannot be evaluated, and GradingError if the weights are too large to add up."""
    if not case.expects_calls_or_none:
        return Grade("accuracy", None, "not applicable", case.why_no_expected_calls)
    expected = case.expected_calls()
    calls = trajectory.calls
    numbers = {"expected": float(len(expected)), "made": float(len(calls))}
    # As published, a case without expected or actual calls is decided before the mode applies.
    if not expected or not calls:
        lines = (*_missing(expected, range(len(expected))), *_alone(range(len(calls)), EXTRA, 0.0))
        score = 0.0 if lines else 1.0
        reason = _without_either(len(expected), len(calls))
    else:
        options = grading.accuracy
        reading = _Reading(expected, calls, options, context)
        lines = reading.in_any_order() if options.mode == "flexible" else reading.in_order()
        counts = _counts(lines, options.mode)
        score = _score(counts, len(expected), options)
        numbers |= counts
        reason = f"{len(expected)} expected: {outcomes_text(lines, (EXACT,))}"
        if not reading.is_optimal:
            reason += f"; {NOT_ALL_COMPARED}"
    issues: tuple[Issue, ...] = ()
    if numbers.get("exact") != len(lines):
        issues = pairing_issues(expected, calls, lines, extras_matter=True)
    return Grade("accuracy", score, verdict_of(score, grading), reason, lines, issues, numbers)


def with_answer_score(grade: Grade, metrics: Sequence[Metric], grading: Grading) -> Grade:
    """Return the grade of a run's calls, averaged with the scores of the named checks of the answer.

    The calls and each named check count equally, like the scorers of an Evalite eval. `numbers["calls"]` keeps the
    score of the calls. The key is missing if no calls are expected."""
    if not metrics:
        return grade
    parts = {metric.name: metric.value for metric in metrics}
    numbers = dict(grade.numbers)
    scores = list(parts.values())
    if grade.score is not None:
        numbers["calls"] = grade.score
        scores.insert(0, grade.score)
        parts = {"calls": grade.score} | parts
    score = statistics.fmean(scores)
    reason = "mean of " + ", ".join(f"{name} {score_text(part)}" for name, part in parts.items())
    return grade._replace(score=score, verdict=verdict_of(score, grading), reason=reason, numbers=numbers)


class _Reading:
    def __init__(
        self,
        expected: Sequence[ExpectedCall],
        calls: Sequence[CallRecord],
        options: AccuracyOptions,
        context: CheckContext,
    ) -> None:
        self._expected = expected
        self._calls = calls
        self._options = options
        self._context = context
        self._verdicts: dict[tuple[int, int], tuple[ArgumentVerdict, ...]] = {}
        self.is_optimal = True
        """Whether the number of exact pairs is known to be the largest."""

    def in_order(self) -> tuple[CallPairing, ...]:
        lines = []
        for index, (wanted, record) in enumerate(zip(self._expected, self._calls, strict=False)):
            if not (wanted.is_any or wanted.tool == record.tool):
                lines.append(CallPairing(index, index, False, 0.0, 0.0, (), -self._options.wrong_penalty, WRONG))
            else:
                verdicts = self._judged(index, index)
                # In this mode, an expected call without `args` matches any arguments.
                listed = wanted.args is None or (_lists_all(wanted.args, record) and _all_hold(verdicts))
                exact = listed and not record.is_broken
                lines.append(self._together(index, index, exact, verdicts))
        size = len(lines)
        lines += _missing(self._expected, range(size, len(self._expected)))
        # As published, a surplus call counts as wrong twice: it has no partner at its position, and it makes the list
        # too long. A missing call merely earns nothing.
        twice = -2 * self._options.wrong_penalty
        lines += _alone(range(size, len(self._calls)), SURPLUS, twice)
        return tuple(lines)

    def in_any_order(self) -> tuple[CallPairing, ...]:
        """Pair calls regardless of their positions (the flexible mode).

        As many equal calls as possible are paired first. The remaining calls are paired by tool name, earlier calls
        first. Expectations of any tool (`"*"`) are paired last."""
        expected = [(wanted.tool, wanted.args) for wanted in self._expected]
        made = [(record.tool, record.arguments) for record in self._calls]
        apart = set(broken_calls(self._calls))
        for index, record in enumerate(self._calls):
            # A call without input differs from a call with an empty object (see `_lists_all`).
            if record.call.raw == "":
                apart.add(index)
        among = Candidates(expected, made, distinct=apart)
        exact: dict[int, int] = {}
        partner: dict[int, int] = {}
        extra = list(range(len(self._calls)))
        for is_any in (False, True):
            rows = [index for index, wanted in enumerate(self._expected) if wanted.is_any is is_any]
            found = maximum_matching(rows, extra, self._equal, among)
            exact |= found
            partner |= found
            still_open: dict[str, list[int]] = {}
            for index in rows:
                if index not in found:
                    still_open.setdefault(self._expected[index].tool, []).append(index)
            taken = set(found.values())
            for call in extra:
                waiting = still_open.get(ANY_TOOL if is_any else self._calls[call].tool)
                if call not in taken and waiting:
                    partner[waiting.pop(0)] = call
                    taken.add(call)
            extra = unused_numbers(extra, taken)
        self.is_optimal = not among.exhausted
        lines = []
        for index, wanted in enumerate(self._expected):
            if index in partner:
                column = partner[index]
                lines.append(self._together(index, column, index in exact, self._shown(index, column)))
            else:
                lines.append(_missing_line(index, wanted))
        lines += _alone(extra, EXTRA, -self._options.extra_penalty)
        return tuple(lines)

    def _together(self, row: int, column: int, exact: bool, verdicts: tuple[ArgumentVerdict, ...]) -> CallPairing:
        if exact:
            return CallPairing(row, column, True, 0.0, 0.0, verdicts, 1.0, EXACT)
        verdicts += unlisted_arguments((self._expected[row].args or {}).keys(), self._calls[column].arguments)
        return CallPairing(row, column, True, 0.0, 0.0, verdicts, self._options.name_only, NAME_ONLY)

    def _equal(self, row: int, column: int) -> bool:
        """Return whether tool and arguments are equal in flexible mode.

        An expected call without `args` equals only a call without arguments, as in Evalite, unless it accepts any
        tool."""
        wanted, record = self._expected[row], self._calls[column]
        if record.is_broken or not (wanted.is_any or wanted.tool == record.tool):
            return False
        if wanted.args is None:
            return wanted.is_any or not record.arguments
        if not _lists_all(wanted.args, record):
            return False
        arguments = record.arguments
        for name, check in wanted.args.items():
            # Most differing calls differ in a plain value. Plain values can be compared without evaluating checks.
            if type(check) is Equals and name in arguments and not by_json(check, arguments[name]):
                return False
        verdicts = self._judged(row, column)
        if not _all_hold(verdicts):
            return False
        self._verdicts[row, column] = verdicts
        return True

    def _shown(self, row: int, column: int) -> tuple[ArgumentVerdict, ...]:
        known = self._verdicts.get((row, column))
        if known is None:
            return self._judged(row, column)
        return known

    def _judged(self, row: int, column: int) -> tuple[ArgumentVerdict, ...]:
        wanted, arguments = self._expected[row], self._calls[column].arguments
        return judge_arguments(
            wanted.tool, wanted.args or {}, arguments, equal=by_json, context=self._context, all_or_nothing=True
        )


def _lists_all(checks: Checks, record: CallRecord) -> bool:
    # The published system distinguishes a call without input (`raw` is empty) from a call with an empty object.
    return record.call.raw != "" and record.arguments.keys() <= checks.keys()


def _all_hold(verdicts: Sequence[ArgumentVerdict]) -> bool:
    return all(verdict.holds for verdict in verdicts)


def _missing(expected: Sequence[ExpectedCall], places: range) -> Iterator[CallPairing]:
    for index in places:
        yield _missing_line(index, expected[index])


def _missing_line(index: int, expected: ExpectedCall) -> CallPairing:
    arguments = judge_arguments(expected.tool, expected.args or {}, {}, equal=by_json, context=EMPTY_CONTEXT)
    return CallPairing(index, None, False, 0.0, 0.0, arguments, outcome=MISSING)


def _alone(calls: Iterable[int], outcome: str, credit: float) -> Iterator[CallPairing]:
    for call in calls:
        yield CallPairing(None, call, False, 0.0, 0.0, credit=credit, outcome=outcome)


def _counts(lines: Sequence[CallPairing], mode: str) -> dict[str, float]:
    """Return the quantities in the formula of a mode.

    In exact mode, there is no quantity of missing calls, because missing calls cost nothing."""
    outcomes = [line.outcome for line in lines]
    matched = {"exact": float(outcomes.count(EXACT)), "name_only": float(outcomes.count(NAME_ONLY))}
    if mode == "flexible":
        return {**matched, "extra": float(outcomes.count(EXTRA)), "missing": float(outcomes.count(MISSING))}
    return {**matched, "wrong": float(outcomes.count(WRONG) + 2 * outcomes.count(SURPLUS))}


def _score(counts: dict[str, float], expected: int, options: AccuracyOptions) -> float:
    earned = (counts["exact"] + counts["name_only"] * options.name_only) / expected
    if "wrong" in counts:
        lost = options.wrong_penalty * counts["wrong"] / expected
    else:
        lost = options.extra_penalty * counts["extra"] / expected
    if not math.isfinite(earned - lost):
        raise GradingError("grading.accuracy: the weights are too large to add up; write smaller weights")
    return min(max(earned - lost, 0.0), 1.0)


def _without_either(expected: int, actual: int) -> str:
    if not expected and not actual:
        return "no call expected, none made"
    if expected:
        return f"{expected} expected, no call made"
    return f"no call expected, {actual} made"
