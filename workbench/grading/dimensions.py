"""The `dimensions` grader. The score adds up precision, recall, parameters and content. Latency is only reported.

It is the published five-dimension tool evaluator, with the repairs listed in `docs/graders.md`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from workbench.checks.check import (
    EMPTY_CONTEXT,
    Check,
    CheckContext,
    Checks,
    CheckVerdict,
    FunctionRaisedError,
    by_python,
    describe,
    evaluate,
)
from workbench.checks.combined_kinds import AllOf
from workbench.checks.patterns import CheckError
from workbench.dataclasses import dataclass
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, Issue
from workbench.grading.matching import (
    MAX_PAIRS,
    NOT_ALL_COMPARED,
    ActualCall,
    Candidates,
    best_pairing,
    gain_table,
    greedy_pairs,
    large_pairing,
    maximum_matching,
    pairs_at,
)
from workbench.grading.pairing_issues import argument_issue, extra_call, missing_call
from workbench.grading.scoring import NO_OBJECT, ROUNDING_SLACK, is_required
from workbench.grading.status import PASS_SCORE, Status, Verdict
from workbench.numerals import score_text
from workbench.suite.expected_calls import ANY_TOOL, ExpectedCall
from workbench.suite.model import Case
from workbench.suite.settings import DimensionsOptions, Limits
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory, tools_of

SHARES = {"precision": 0.3, "recall": 0.3, "parameters": 0.3, "content": 0.1}
"""The weight of each dimension in the score. The fifth dimension, latency, has no weight."""

_DEFAULTS = DimensionsOptions()


def grade_dimensions(
    case: Case,
    limits: Limits,
    trajectory: Trajectory,
    options: DimensionsOptions = _DEFAULTS,
    *,
    context: CheckContext = EMPTY_CONTEXT,
) -> Grade:
    """Grade a run with the `dimensions` grader.

    The score is the sum of the dimensions in `numbers`, each 0..1, weighted by `SHARES` and rounded to 3 digits. The
    run passes from 0.8 on if every expected tool was called. If a case expects no calls, only the keywords of its
    answer count. If a case forbids all calls, any call fails the run.

    This grader follows a published system, whose validators are `optional` checks here. If the Python function of an
    `optional` check raises an error, the check counts as failed. Keywords and limits produce no issues here because
    they are requirements under every grader.

    Raises CheckError if a check cannot be evaluated."""
    calls = trajectory.calls
    expected = case.expected_calls()
    keywords, found, content = len(case.response_contains), 0, 1.0
    if keywords:
        found = keywords - len(case.missing_keywords(trajectory.final_answer))
        content = found / keywords
    latency_ms = latency_of(options, trajectory)
    latency = {"latency_ms": latency_ms, "latency_ok": float(latency_ms <= limits.max_latency_ms)}
    # The published system has two branches before its formula: all calls are forbidden, or no call is expected.
    if calls and case.forbids_all_calls:
        lines = tuple(_all_alone(calls, "must not be called"))
        reason = "tools were called, but none are allowed"
        return Grade("dimensions", 0.0, Status.FAILED, reason, lines, (), dict.fromkeys(SHARES, 0.0) | latency)
    if not expected:
        lines = tuple(_all_alone(calls, "not looked at"))
        numbers = {"precision": 1.0, "recall": 1.0, "parameters": 1.0, "content": content, **latency}
        reason = "no call is expected"
        if keywords:
            reason += f", {found} of {keywords} keywords found"
        if found == keywords:
            return Grade("dimensions", 1.0, Status.PASSED, reason, lines, (), numbers)
        return Grade("dimensions", 0.5, Status.FAILED, reason, lines, (), numbers)
    as_published = options.repeated_calls == "as published"
    pairings, missing, is_optimal = _paired(expected, calls, context, first_call_for_all=as_published)
    made = tools_of(calls)
    wanted = set(tools_of(expected))
    if ANY_TOOL in wanted:
        wanted = set(made)
    of_expected_tools = sum(map(wanted.__contains__, made))
    # A tool that is expected twice and called once is missing once. The published system counts every call of an
    # expected tool. Its recall may therefore exceed 1, and repeated calls of one tool may hide a missing tool.
    recalled = len(expected) - len(missing)
    if as_published:
        recalled = of_expected_tools
    precision = of_expected_tools / len(calls) if calls else 1.0
    amounts = {
        "precision": precision,
        "recall": recalled / len(expected),
        "parameters": math.fsum([line.credit for line in pairings]) / len(expected),
        "content": content,
    }
    # The dimensions are added in this order, as published, because the last digit may decide how the score is rounded.
    score = sum([SHARES[name] * amount for name, amount in amounts.items()])
    passed = score >= PASS_SCORE - ROUNDING_SLACK and not missing
    worst_first = sorted(amounts.items(), key=lambda each: each[1])
    reason = ", ".join(f"{name} {score_text(amount)}" for name, amount in worst_first)
    if missing:
        reason = f"not called: {', '.join(missing)}; {reason}"
    if not is_optimal:
        reason += f"; {NOT_ALL_COMPARED}"
    issues = tuple(_issues(expected, calls, pairings, wanted))
    verdict: Verdict = Status.PASSED if passed else Status.FAILED
    return Grade("dimensions", round(score, 3), verdict, reason, pairings, issues, amounts | latency)


def latency_of(options: DimensionsOptions, trajectory: Trajectory) -> float:
    """Return the latency of a run in milliseconds.

    Depending on `options`, it is the latency of the model's answers or the duration of the whole agent loop."""
    if options.latency == "model":
        return trajectory.model_latency_ms
    return trajectory.loop_ms


@dataclass(slots=True)
class _Compared:
    """The comparison of an expected call with an actual call.

    `score` is the mean credit of the arguments. `entries` is the number of credits in the mean. `halves` is their sum
    times two, an integer, so sums are exact. `found` lists each argument with its check, its verdict and its credit
    times two. The credit is `None` for an argument that is not in the mean."""

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
    """Pair the expected calls with actual calls.

    Returns the pairings of all calls, the tools that were called too few times, and whether no other pairing can have a
    better parameter score. With `first_call_for_all`, all expected calls of a tool are compared with its first call, as
    in the published system."""
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
            if calls[column].is_broken and not first_call_for_all:
                judged = _without_object(expected[row], calls[column], context)
            else:
                judged = _compared(expected[row], calls[column], context, as_published=first_call_for_all)
            known[row, column] = judged
        return judged

    def score(row: int, column: int) -> float:
        return judged_on(row, column).score

    def best(rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        return pairs_at(rows, columns, _best(gain_table(rows, columns, judged_on)))

    def turn_by_turn(rows: Sequence[int], columns: Sequence[int]) -> dict[int, int]:
        return dict(greedy_pairs(rows, columns, score))

    # A tool that is expected m times is compared with its first m calls, so a corrected retry does not help. For m = 1,
    # this is the published rule. Wildcards come last and take the calls left by named expectations.
    is_optimal = True
    for tool, rows in sorted(rows_of.items(), key=lambda each: each[0] == ANY_TOOL):
        columns = made.get(tool, [])[: len(rows)]
        if tool == ANY_TOOL:
            columns = sorted({*range(len(calls))}.difference(partner.values()))[: len(rows)]
        if first_call_for_all:
            if columns:
                partner |= dict.fromkeys(rows, columns[0])
            continue
        in_turn = list(zip(rows, columns, strict=False))
        is_complete = len(in_turn) == len(rows)
        if is_complete and (len(rows) == 1 or all(judged_on(*pair).score == 1 for pair in in_turn)):
            partner.update(in_turn)
        elif len(rows) * len(columns) <= MAX_PAIRS:
            partner.update(best(rows, columns))
        else:
            perfect = _perfect(expected, rows, calls, columns, judged_on)
            found = large_pairing(rows, columns, perfect, best, turn_by_turn, score, lambda row: 1.0)
            is_optimal = is_optimal and found.is_optimal
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
            outcome = "unexpected"
            if calls[column].tool in rows_of or ANY_TOOL in rows_of:
                outcome = "a further call, not compared"
            lines.append(_alone(call=column, outcome=outcome))
    return tuple(lines), missing, is_optimal


def _perfect(
    expected: Sequence[ExpectedCall],
    rows: Sequence[int],
    calls: Sequence[CallRecord],
    columns: Sequence[int],
    judged_on: Callable[[int, int], _Compared],
) -> dict[int, int]:
    """Pair as many expected calls as possible with calls whose parameters are correct.

    All rows and columns must belong to one tool."""
    # All rows and columns belong to one tool, so an empty name stands for it.
    wanted = [("", expected[row].args) for row in rows]
    made: list[ActualCall] = []
    broken = set()
    for place, column in enumerate(columns):
        made.append(("", calls[column].arguments))
        if calls[column].is_broken:
            broken.add(place)
    among = Candidates(wanted, made, distinct=broken, ask_outside=False)

    def fits(row: int, column: int) -> bool:
        return judged_on(rows[row], columns[column]).score == 1

    pairs = maximum_matching(range(len(rows)), range(len(columns)), fits, among)
    return pairs_at(rows, columns, pairs.items())


def _all_alone(calls: Sequence[CallRecord], outcome: str) -> Iterator[CallPairing]:
    for index in range(len(calls)):
        yield _alone(call=index, outcome=outcome)


def _alone(*, expected_call: int | None = None, call: int | None = None, outcome: str) -> CallPairing:
    return CallPairing(expected_call, call, False, 0.0, 0.0, outcome=outcome, parts={"parameters": 0.0})


def _together(row: int, column: int, judged: _Compared, arguments: Mapping[str, JsonValue]) -> CallPairing:
    credit = judged.score
    outcome = "all parameters right" if credit == 1 else "not all parameters right"
    parts = {"parameters": credit}
    return CallPairing(row, column, True, 0.0, 0.0, _shown(judged, arguments), credit, outcome, None, parts)


def _best(table: Sequence[Sequence[_Compared]]) -> list[tuple[int, int]]:
    """Return the pairs of rows (expected calls) and columns (calls) with the largest sum of scores.

    Ties are broken row by row: the first row is paired if possible, with the earliest column, then the second row."""
    if not table or not table[0]:
        return []
    rows, columns = len(table), len(table[0])
    # Scores become integers over a common denominator, so equal sums compare as equal. Below the score, each row has
    # its own digit to resolve ties. The base of the digits is larger than the number of columns.
    denominators: set[int] = set()
    for line in table:
        denominators.update(2 * (judged.entries or 1) for judged in line)
    scale = math.lcm(*denominators)
    base = columns + 1
    gains: list[list[int]] = []
    for row, line in enumerate(table):
        tie_break = base ** (rows - 1 - row)
        shares = [_share(judged, scale) * base**rows for judged in line]
        gains.append([share + (columns - column) * tie_break for column, share in enumerate(shares)])
    return best_pairing(gains)


def _share(verdicts: _Compared, scale: int) -> int:
    if not verdicts.entries:
        return scale
    return verdicts.halves * scale // (2 * verdicts.entries)


_RIGHT, _WRONG, _NOTHING = 2, 1, 0
"""The credit of an argument in halves: for a right value, for a wrong value, and for an absent or forbidden
argument."""


def _published_parts(args: Checks) -> Iterator[tuple[str, Check]]:
    """Split the checks of arguments into the parts of the published system: a required value, and separate validators.

    A suite writes the value and its validators as `all_of`, with the value first."""
    for name, check in args.items():
        if not isinstance(check, AllOf) or check.optional:
            yield name, check
            continue
        value, *validators = check.all_of
        yield name, value.model_copy(update={"required": check.required})
        for validator in validators:
            yield name, validator.model_copy(update={"optional": True})


def _compared(
    expected: ExpectedCall, record: CallRecord, context: CheckContext, *, as_published: bool = False
) -> _Compared:
    """Compare an expected call with an actual call.

    A right argument earns a credit of 1, a wrong value earns ½, and an absent argument earns 0. A forbidden argument
    that was given and a validator that fails each add a credit of 0 to the mean. With `as_published`, a value and its
    validators are judged separately."""
    arguments = record.arguments
    found: list[tuple[str, Check | None, CheckVerdict, int | None]] = []
    halves = entries = 0
    checks: Iterable[tuple[str, Check]] = (expected.args or {}).items()
    if as_published:
        checks = _published_parts(expected.args or {})
    for name, check in checks:
        given = name in arguments
        if check.optional and not given:
            continue
        try:
            verdict = evaluate(check, arguments.get(name), given, equal=by_python, context=context)
        except CheckError as error:
            verdict = _without_verdict(check, error, f"{expected.tool}.{name}")
        earned: int | None = _WRONG
        if check.optional:
            # As published, a validator that holds adds no credit to the mean, so validators can only lower the mean.
            earned = None if verdict.holds else _NOTHING
        elif verdict.holds:
            earned = _RIGHT
        elif not given:
            earned = _NOTHING
        found.append((name, check, verdict, earned))
        if earned is not None:
            halves += earned
            entries += 1
    for name in expected.disallowed_arguments(arguments):
        found.append((name, None, _FORBIDDEN, _NOTHING))
        entries += 1
    score = halves / (2 * entries) if entries else 1.0
    return _Compared(halves, entries, score, found)


def _without_object(expected: ExpectedCall, record: CallRecord, context: CheckContext) -> _Compared:
    verdict = CheckVerdict(0.0, False, NO_OBJECT)
    found: list[tuple[str, Check | None, CheckVerdict, int | None]] = []
    for name, check in (expected.args or {}).items():
        if not check.optional:
            found.append((name, check, verdict, _NOTHING))
    return _Compared(0, max(len(found), 1), 0.0, found)


_FORBIDDEN = CheckVerdict(0.0, False, "this argument must not be given")


def _without_verdict(check: Check, error: CheckError, place: str) -> CheckVerdict:
    """Return a failed verdict for a validator whose function raised. Raise CheckError for any other check."""
    if check.optional and isinstance(error, FunctionRaisedError):
        return CheckVerdict(0.0, False, str(error))
    raise CheckError(f"{place}: {error}") from error


def _shown(judged: _Compared, arguments: Mapping[str, JsonValue]) -> tuple[ArgumentVerdict, ...]:
    share = 1 / judged.entries if judged.entries else 0.0
    shown = []
    for name, check, verdict, earned in judged.found:
        counts = earned is not None
        expected, required = "not to be given", False
        if check is not None:
            expected, required = describe(check), is_required(check)
        shown.append(
            ArgumentVerdict(
                name,
                verdict.holds,
                share * (earned or 0) / 2,
                share * counts,
                expected,
                arguments.get(name),
                name in arguments,
                verdict.note,
                counts,
                required=required,
            )
        )
    return tuple(shown)


def _issues(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing], tools: set[str]
) -> Iterator[Issue]:
    for line in pairings:
        if line.expected_call is None:
            if line.call is not None and calls[line.call].tool not in tools:
                yield extra_call(calls, line.call, "this tool is not expected")
        elif line.call is None:
            yield missing_call(expected[line.expected_call], line.expected_call)
        elif line.credit != 1:
            yield from _argument_issues(expected[line.expected_call], calls[line.call], line)


def _argument_issues(expected: ExpectedCall, record: CallRecord, line: CallPairing) -> Iterator[Issue]:
    checks = expected.args or {}
    compared: set[str] = set()
    for verdict in line.arguments:
        is_validator = verdict.argument in compared
        compared.add(verdict.argument)
        # `requirements` reports forbidden arguments because they are an issue under every grader.
        if verdict.holds is False and not (verdict.given and expected.disallowed_arguments([verdict.argument])):
            issue = argument_issue(expected, record, line, verdict)
            if is_validator or checks[verdict.argument].optional:
                issue = issue._replace(kind="invalid argument")
            yield issue
