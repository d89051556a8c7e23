"""The `dimensions` grader: precision, recall, parameters and content make the score; latency is reported with it.

It is the published five-dimension tool evaluator, with the repairs that `docs/graders.md` lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from workbench.checks.check import (
    EMPTY_CONTEXT,
    Check,
    CheckContext,
    CheckVerdict,
    FunctionRaisedError,
    by_python,
    describe,
    evaluate,
)
from workbench.checks.patterns import CheckError
from workbench.dataclasses import dataclass
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue
from workbench.grading.pairing import (
    MAX_PAIRS,
    NOT_ALL_COMPARED,
    Candidates,
    argument_issue,
    best_pairing,
    extra_call,
    large_pairing,
    missing_call,
    paired_in_turn,
    pairs_in_turn,
)
from workbench.grading.scoring import NO_OBJECT, ROUNDING_SLACK, is_required
from workbench.grading.status import PASS_SCORE, Status, Verdict
from workbench.numerals import score_text
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall
from workbench.suite.settings import DimensionsOptions, Limits
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory

SHARES = {"precision": 0.3, "recall": 0.3, "parameters": 0.3, "content": 0.1}
"""The weight of each dimension in the score. Latency, the fifth, has none."""

_DEFAULTS = DimensionsOptions()


def grade_dimensions(
    case: Case,
    limits: Limits,
    trajectory: Trajectory,
    options: DimensionsOptions = _DEFAULTS,
    *,
    context: CheckContext = EMPTY_CONTEXT,
) -> Grade:
    """Grade a run by dimensions.

    Every case can be graded: one that expects no calls is graded by its keywords alone.

    A check that is `optional` corresponds to one of the published system's validators; its Python function counts as
    failed when it raises. Keywords and limits are not issues of this grade, because they are among the requirements of
    every grader.

    Raises CheckError when a check cannot be evaluated.
    """
    calls = trajectory.calls
    expected = case.expected_calls()
    keywords = len(case.response_contains)
    found = keywords - len(case.missing_keywords(trajectory.final_answer))
    content = found / keywords if keywords else 1.0
    latency_ms = latency_of(options, trajectory)
    latency = {"latency_ms": latency_ms, "latency_ok": float(latency_ms <= limits.max_latency_ms)}
    if calls and case.forbids_all_calls:
        lines = tuple(_alone(call=index, outcome="must not be called") for index in range(len(calls)))
        reason = "tools were called, but none are allowed"
        return Grade("dimensions", 0.0, Status.FAILED, reason, lines, (), dict.fromkeys(SHARES, 0.0) | latency)
    if not expected:
        lines = tuple(_alone(call=index, outcome="not looked at") for index in range(len(calls)))
        numbers = {"precision": 1.0, "recall": 1.0, "parameters": 1.0, "content": content, **latency}
        reason = "no call is expected"
        if keywords:
            reason += f", {found} of {keywords} keywords found"
        if found == keywords:
            return Grade("dimensions", 1.0, Status.PASSED, reason, lines, (), numbers)
        return Grade("dimensions", 0.5, Status.FAILED, reason, lines, (), numbers)
    as_published = options.repeated_calls == "as published"
    pairings, missing, surely_best = _paired(expected, calls, context, first_call_for_all=as_published)
    wanted = {call.tool for call in expected}
    if ANY_TOOL in wanted:
        wanted = {record.tool for record in calls}
    of_expected_tools = sum([record.tool in wanted for record in calls])
    recalled = len(expected) - len(missing)
    if as_published:
        # Every call of an expected tool counts, so that recall may exceed 1.
        recalled = of_expected_tools
    amounts = {
        "precision": of_expected_tools / len(calls) if calls else 1.0,
        "recall": recalled / len(expected),
        "parameters": math.fsum([line.credit for line in pairings]) / len(expected),
        "content": content,
    }
    # A plain sum in this order, as published: the last digit decides how the score is rounded.
    score = sum([SHARES[name] * amount for name, amount in amounts.items()])
    passed = score >= PASS_SCORE - ROUNDING_SLACK and not missing
    worst_first = sorted(amounts.items(), key=lambda each: each[1])
    reason = ", ".join(f"{name} {score_text(amount)}" for name, amount in worst_first)
    if missing:
        reason = f"not called: {', '.join(missing)}; {reason}"
    if not surely_best:
        reason += f"; {NOT_ALL_COMPARED}"
    issues = tuple(_issues(expected, calls, pairings, wanted))
    verdict: Verdict = Status.PASSED if passed else Status.FAILED
    return Grade("dimensions", round(score, 3), verdict, reason, pairings, issues, amounts | latency)


def latency_of(options: DimensionsOptions, trajectory: Trajectory) -> float:
    """Return the run's latency in milliseconds as the options ask for it."""
    if options.latency == "model":
        return trajectory.model_latency_ms
    return trajectory.loop_ms


@dataclass(slots=True)
class _Compared:
    """An expected call compared with an actual one: its parameter score as `halves` of `entries`.

    `found` has each argument with its verdict and the halves it earned, `None` where it makes no entry."""

    halves: int
    entries: int
    score: float
    found: list[tuple[str, Check | None, CheckVerdict, int | None]]


def _paired(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    context: CheckContext,
    *,
    first_call_for_all: bool = False,
) -> tuple[tuple[CallPairing, ...], list[str], bool]:
    """Pair the expected calls with actual ones.

    Returns a line for each expected call and each remaining call, the tools that were called too few times, and whether
    no other pairing can have better parameters. With `first_call_for_all`, all expected calls of a tool are compared
    with its first call, as published."""
    made: dict[str, list[int]] = {}
    for index, record in enumerate(calls):
        made.setdefault(record.tool, []).append(index)
    rows_of: dict[str, list[int]] = {}
    for row, call in enumerate(expected):
        rows_of.setdefault(call.tool, []).append(row)
    partner: dict[int, int] = {}
    known: dict[tuple[int, int], _Compared] = {}

    def judged_on(row: int, column: int) -> _Compared:
        judged = known.get((row, column))
        if judged is None:
            broken = calls[column].is_broken and not first_call_for_all
            compared = _without_object if broken else _compared
            judged = known[row, column] = compared(expected[row], calls[column], context)
        return judged

    def score(row: int, column: int) -> float:
        return judged_on(row, column).score

    def best(rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        if not rows or not columns:
            return {}
        table = []
        for row in rows:
            table.append([judged_on(row, column) for column in columns])
        return {rows[row]: columns[column] for row, column in _best(table)}

    def turn_by_turn(rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        return dict(pairs_in_turn(rows, columns, score))

    surely_best = True
    for tool, rows in sorted(rows_of.items(), key=lambda each: each[0] == ANY_TOOL):
        columns = made.get(tool, [])[: len(rows)]
        if tool == ANY_TOOL:
            columns = sorted({*range(len(calls))}.difference(partner.values()))[: len(rows)]
        if first_call_for_all:
            partner.update((row, columns[0]) for row in rows if columns)
            continue
        in_turn = list(zip(rows, columns, strict=False))
        if len(in_turn) == len(rows) and (len(rows) == 1 or all(judged_on(*pair).score == 1 for pair in in_turn)):
            partner.update(in_turn)
        elif len(rows) * len(columns) <= MAX_PAIRS:
            partner.update(best(rows, columns))
        else:
            perfect = _perfect(expected, rows, calls, columns, judged_on)
            found = large_pairing(rows, columns, perfect, best, turn_by_turn, score, lambda row: 1.0)
            surely_best = surely_best and found.surely_best
            partner.update(found.pairs)
    lines: list[CallPairing] = []
    missing: list[str] = []
    for row, call in enumerate(expected):
        if row in partner:
            column = partner[row]
            lines.append(_together(row, column, judged_on(row, column), calls[column].arguments))
        else:
            lines.append(_alone(expected_call=row, outcome="missing"))
            missing.append(call.tool_text)
    if len(partner) < len(calls):
        for column in sorted({*range(len(calls))}.difference(partner.values())):
            is_expected = calls[column].tool in rows_of or ANY_TOOL in rows_of
            lines.append(_alone(call=column, outcome="a further call, not looked at" if is_expected else "unexpected"))
    return tuple(lines), missing, surely_best


def _perfect(
    expected: Sequence[ExpectedCall],
    rows: Sequence[int],
    calls: Sequence[CallRecord],
    columns: Sequence[int],
    judged_on: Callable[[int, int], _Compared],
) -> dict[int, int]:
    """Return as many pairs of expected calls and calls of one tool as possible in which all parameters are correct."""
    among = Candidates(
        [("", expected[row].args) for row in rows],
        [("", calls[column].arguments) for column in columns],
        apart={place for place, column in enumerate(columns) if calls[column].is_broken},
        ask_outside=False,
    )

    def fits(row: int, column: int) -> bool:
        return judged_on(rows[row], columns[column]).score == 1

    pairs = paired_in_turn(range(len(rows)), range(len(columns)), fits, among)
    return {rows[row]: columns[column] for row, column in pairs.items()}


def _alone(*, expected_call: int | None = None, call: int | None = None, outcome: str) -> CallPairing:
    return CallPairing(expected_call, call, False, 0.0, 0.0, outcome=outcome, parts={"parameters": 0.0})


def _together(row: int, column: int, judged: _Compared, arguments: Mapping[str, JsonValue]) -> CallPairing:
    credit = judged.score
    outcome = "all parameters right" if credit == 1 else "not all parameters right"
    parts = {"parameters": credit}
    return CallPairing(row, column, True, 0.0, 0.0, _shown(judged, arguments), credit, outcome, None, parts)


def _best(table: Sequence[Sequence[_Compared]]) -> list[tuple[int, int]]:
    """Return the pairs of rows (expected calls) and columns (calls) with the largest sum of scores.

    Among equal sums the one that pairs the first row wins, else the second one and so on, each with the earliest
    column."""
    rows, columns = len(table), len(table[0])
    # Scores as whole numbers, so that equal sums are equal; lower digits break ties row by row.
    scale = math.lcm(*(2 * (judged.entries or 1) for row in table for judged in row))
    base = columns + 1
    gains: list[list[int]] = []
    for row, line in enumerate(table):
        tie_break = base ** (rows - 1 - row)
        shares = [_share(judged, scale) * base**rows for judged in line]
        gains.append([share + (columns - column) * tie_break for column, share in enumerate(shares)])
    return best_pairing(gains)


def _share(judged: _Compared, scale: int) -> int:
    if not judged.entries:
        return scale
    return judged.halves * scale // (2 * judged.entries)


_RIGHT, _WRONG, _NOTHING = 2, 1, 0
"""The credit of an argument, in halves."""


def _compared(expected: ExpectedCall, record: CallRecord, context: CheckContext) -> _Compared:
    """Return the parameter score.

    Required arguments earn 1, ½ or 0; forbidden and invalid ones count as further zeros."""
    arguments = record.arguments
    found: list[tuple[str, Check | None, CheckVerdict, int | None]] = []
    halves = entries = 0
    for name, check in (expected.args or {}).items():
        given = name in arguments
        if check.optional and not given:
            continue
        try:
            verdict = evaluate(check, arguments.get(name), given, equal=by_python, context=context)
        except CheckError as error:
            verdict = _without_verdict(check, error, f"{expected.tool}.{name}")
        earned: int | None = _WRONG
        if check.optional:
            # A validator that holds makes no entry: it can only lower the mean.
            earned = None if verdict.holds else _NOTHING
        elif verdict.holds:
            earned = _RIGHT
        elif not given:
            earned = _NOTHING
        found.append((name, check, verdict, earned))
        if earned is not None:
            halves += earned
            entries += 1
    for name in expected.unwanted(arguments):
        found.append((name, None, _FORBIDDEN, _NOTHING))
        entries += 1
    return _Compared(halves, entries, halves / (2 * entries) if entries else 1.0, found)


def _without_object(expected: ExpectedCall, record: CallRecord, context: CheckContext) -> _Compared:
    """Return the parameter score of a call whose arguments are no JSON object: each expected one earns nothing."""
    verdict = CheckVerdict(0.0, False, NO_OBJECT)
    found: list[tuple[str, Check | None, CheckVerdict, int | None]] = []
    for name, check in (expected.args or {}).items():
        if not check.optional:
            found.append((name, check, verdict, _NOTHING))
    return _Compared(0, max(len(found), 1), 0.0, found)


_FORBIDDEN = CheckVerdict(0.0, False, "this argument must not be given")


def _without_verdict(check: Check, error: CheckError, place: str) -> CheckVerdict:
    """Count a validator whose function raised as failed; any other check that cannot be evaluated is an error."""
    if check.optional and isinstance(error, FunctionRaisedError):
        return CheckVerdict(0.0, False, str(error))
    raise CheckError(f"{place}: {error}") from error


def _shown(judged: _Compared, arguments: Mapping[str, JsonValue]) -> tuple[ArgumentVerdict, ...]:
    weight = 1 / judged.entries if judged.entries else 0.0
    return tuple(
        [
            ArgumentVerdict(
                name,
                verdict.holds,
                weight * (earned or 0) / 2,
                0.0 if earned is None else weight,
                describe(check) if check is not None else "not to be given",
                arguments.get(name),
                name in arguments,
                verdict.note,
                earned is not None,
                required=check is not None and is_required(check),
            )
            for name, check, verdict, earned in judged.found
        ]
    )


def _issues(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing], wanted: set[str]
) -> Iterator[Issue]:
    for line in pairings:
        if line.expected_call is None:
            if line.call is not None and calls[line.call].tool not in wanted:
                yield extra_call(calls, line.call, "this tool is not expected")
        elif line.call is None:
            yield missing_call(expected[line.expected_call], line.expected_call)
        elif line.credit != 1:
            yield from _argument_issues(expected[line.expected_call], calls[line.call], line)


def _argument_issues(expected: ExpectedCall, record: CallRecord, line: CallPairing) -> Iterator[Issue]:
    """Forbidden arguments are not included: they are an issue under every grader."""
    checks = expected.args or {}
    for verdict in line.arguments:
        if verdict.holds is False and not (verdict.given and expected.unwanted([verdict.argument])):
            issue = argument_issue(expected, record, line, verdict)
            if checks[verdict.argument].optional:
                issue = issue._replace(kind="invalid argument")
            yield issue
