"""The `trajectory` grader (Apple Evaluations): ordered, unordered and disallowed expectations, each met or not.

`docs/graders.md` describes the decisions where the published system leaves a point open. Marks such as (A9) in comments
are tags of the vectors in `tests/conformance/vectors/trajectory.json`."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from workbench.checks.check import EMPTY_CONTEXT, Check, CheckContext, CheckVerdict, describe, evaluate, has_kind
from workbench.checks.combined_kinds import Judged, PythonCheck
from workbench.checks.patterns import CheckError
from workbench.checks.values import canonical, canonical_text
from workbench.dataclasses import cached_by_identity
from workbench.grading.grade import ArgumentVerdict, CallPairing, Grade, GradingError, Issue
from workbench.grading.matching import (
    MAX_PAIRS,
    NO_CALL_OF_STEP,
    NOT_ALL_COMPARED,
    Candidates,
    best_pairing,
    broken_calls,
    calls_of_steps_without_call,
    gain_table,
    greedy_pairs,
    maximum_matching,
    pairs_at,
    unused_numbers,
)
from workbench.grading.pairing_issues import (
    ALLOWED_EXTRA_CALL,
    describe_call,
    describe_expected,
    extra_call,
    forbidden_call,
    pairing_issues,
)
from workbench.grading.prohibitions import offending_calls
from workbench.grading.scoring import unlisted_arguments
from workbench.grading.status import passed_or_failed
from workbench.numerals import counted
from workbench.suite.expected_calls import ANY_TOOL, AnyOrder, ExpectedCall
from workbench.suite.model import Case
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory, tools_of

if TYPE_CHECKING:
    from workbench.grading.extra_call_rule import ExtraCallRule


def grade_trajectory(
    case: Case, rule: ExtraCallRule, trajectory: Trajectory, *, context: CheckContext = EMPTY_CONTEXT
) -> Grade:
    """Grade a run with the `trajectory` grader. `rule` says which extra calls are free.

    The score is `numbers["matched"] / numbers["total"]`, the share of met expectations, or 1 without expectations.
    Prohibitions, forbidden arguments and extra calls are part of the score, so this grader reports their issues itself.

    An unmet expectation is paired with the nearest remaining call of its tool, if any, to show the difference. A
    violated prohibition has a pairing for each call that violates it. The grader does not apply to a case without
    expectations of calls.

    Raises GradingError for a run without any answer of the model, and CheckError if a check cannot be evaluated."""
    if not (case.expects_calls_or_none or case.disallowed or rule.written is not None):
        return Grade("trajectory", None, "not applicable", case.why_no_expected_calls)
    if not trajectory.rounds:
        raise GradingError("trajectory: the model gave no answer, so there is nothing to grade")
    return _Reading(case, trajectory, rule, context).grade()


class _Reading:
    """The comparison of one case's expectations with the calls of one run.

    An expected call is identified by its index in `Case.expected_calls()`. The verdict on a pair is computed when it is
    first needed, and cached."""

    def __init__(self, case: Case, trajectory: Trajectory, rule: ExtraCallRule, context: CheckContext) -> None:
        calls = trajectory.calls
        self._disallowed = case.disallowed
        self._expected = case.expected_calls()
        self._number_ordered = len(self._expected) - len(case.unordered)
        self._calls = calls
        self._wanted = [_wanted(call) for call in self._expected]
        self._called_tools = list(map(canonical_text, tools_of(calls)))
        self._context = context
        self._asking_nobody = CheckContext(search_time=context.search_time, clock=context.clock)
        self._verdicts: dict[tuple[int, int], _Verdicts] = {}
        self._fitting: dict[tuple[int, int], bool] = {}
        expected = [(wanted.tool, call.args) for wanted, call in zip(self._wanted, self._expected, strict=True)]
        made = [(tool, record.arguments) for tool, record in zip(self._called_tools, calls, strict=True)]
        self._among = Candidates(expected, made, distinct=broken_calls(calls))

        self._ordered = self._in_order(case)
        self._call_of = {**self._ordered, **self._in_any_order()}
        self._all_compared = not self._among.exhausted
        # Prohibitions apply to all calls, even to calls that meet an expectation.
        self._offenders: list[list[int]] = []
        for prohibition in case.disallowed:
            self._offenders.append(offending_calls(prohibition, calls, partial(_meets, context=context), context))
        self._why_unexpected = "no calls are expected" if case.expect_no_calls else rule.failure_reason
        suspects: Sequence[int] = ()
        if self._why_unexpected is not None:
            suspects = unused_numbers(range(len(calls)), rule.free_calls(calls))
        if case.steps:
            self._why_unexpected, suspects = NO_CALL_OF_STEP, calls_of_steps_without_call(case, trajectory)
        # A call that violates a prohibition does not also count as unexpected (A14).
        accounted = {*self._call_of.values(), *chain.from_iterable(self._offenders)}
        self._unexpected = dict.fromkeys(unused_numbers(suspects, accounted))

    def grade(self) -> Grade:
        # A prohibition is one expectation, no matter how many calls violate it (A13). Each unexpected call is an
        # expectation that is never met (A15). Without expectations, the score is 1 (A16).
        matched = len(self._call_of) + self._offenders.count([])
        total = len(self._expected) + len(self._disallowed) + len(self._unexpected)
        score = matched / total if total else 1.0
        passed = matched == total
        lines = [*self._lines_of_expected(), *self._lines_of_disallowed()]
        lines += self._lines_of_others(lines)
        reason = _reason(lines, matched, total)
        if not self._all_compared:
            reason += f"; {NOT_ALL_COMPARED}"
        issues: tuple[Issue, ...] = ()
        if not passed:
            issues = tuple(self._issues(lines))
        numbers = {
            "matched": float(matched),
            "total": float(total),
            "unexpected": float(len(self._unexpected)),
            "all_pass": float(passed),
        }
        return Grade("trajectory", score, passed_or_failed(passed), reason, tuple(lines), issues, numbers)

    def _in_order(self, case: Case) -> dict[int, int]:
        """Return the call that meets each expectation in the ordered list, or in the steps of a chain.

        Each position considers only the calls after those of the previous positions."""
        # A single call is a group of one. The call of a step is also a group of one.
        sizes: list[int] = []
        for step in case.steps:
            if step.expects_call:
                sizes.append(1)
        for item in case.ordered:
            sizes.append(len(item.any_order) if type(item) is AnyOrder else 1)
        # The scan is greedy, as published, and does not look for a longest common subsequence. A position without a
        # call leaves the cursor in place, so later positions can still earn credit (A9).
        call_of: dict[int, int] = {}
        first = cursor = 0
        for size in sizes:
            members = range(first, first + size)
            taken = self._taken(members, cursor)
            call_of |= taken
            cursor = max(taken.values(), default=cursor - 1) + 1
            first += size
        return call_of

    def _taken(self, members: range, cursor: int) -> dict[int, int]:
        """Pair the expected calls of one position with calls: as many as possible, and each as early as possible.

        The search begins at the call with the index `cursor`."""
        # A group takes as many calls as possible, as early as possible (A10).
        (first, *others), among = members, self._among
        if others or not among.compares_all or self._wanted[first].uses_outside_service:
            return maximum_matching(members, self._calls_for(members, cursor), self._fits, among)
        # The common case, a single expectation in a small run, needs no search for a pairing.
        for call in range(cursor, len(self._calls)):
            if self._fits(first, call):
                return {first: call}
        return {}

    def _calls_for(self, members: range, cursor: int) -> Iterator[int]:
        lists = {self._among.bucket(member): self._among.calls(member) for member in members}
        later = []
        for bucket, calls in lists.items():
            if not self._among.is_exhausted(bucket):
                later.append(islice(calls, bisect_left(calls, cursor), None))
        return (call for call, _ in groupby(heapq.merge(*later)))

    def _in_any_order(self) -> dict[int, int]:
        members = range(self._number_ordered, len(self._expected))
        if not members:
            return {}
        # Expectations and calls are paired one to one (A11). Calls of the ordered list may be used again but come last.
        # This way, as many calls as possible meet an expectation (A12).
        used = set(self._ordered.values())
        calls = sorted(range(len(self._calls)), key=used.__contains__)
        return maximum_matching(members, calls, self._fits, self._among)

    def _fits(self, expected: int, call: int) -> bool:
        if not self._same_tool(expected, call):
            return False
        fits = self._fitting.get((expected, call))
        if fits is None:
            verdicts: _Verdicts = {}
            fits = arguments_hold(self._expected[expected], self._calls[call], verdicts, self._context)
            self._fitting[expected, call] = fits
            if fits or self._wanted[expected].uses_outside_service:
                self._verdicts[expected, call] = verdicts
        return fits

    def _same_tool(self, expected: int, call: int) -> bool:
        return self._expected[expected].is_any or self._wanted[expected].tool == self._called_tools[call]

    def _lines_of_expected(self) -> Iterator[CallPairing]:
        all_met = len(self._call_of) == len(self._expected)
        early = {} if all_met else self._too_early()
        nearest = {} if all_met else self._nearest(early)
        for index in range(len(self._expected)):
            if index in self._call_of:
                yield self._line(index, self._call_of[index], "matched", 1.0)
            elif index in early:
                yield self._line(index, early[index], _WRONG_ORDER)
            elif index in nearest:
                yield self._line(index, nearest[index], "unmet")
            else:
                yield CallPairing(index, None, False, 0.0, 0.0, outcome="unmet")

    def _too_early(self) -> dict[int, int]:
        unmet = unused_numbers(range(self._number_ordered), self._call_of)
        if not unmet:
            return {}
        calls = unused_numbers(range(len(self._calls)), set(self._ordered.values()))
        return maximum_matching(unmet, calls, self._would_fit, self._among)

    def _nearest(self, early: Mapping[int, int]) -> dict[int, int]:
        """Return, for each expectation that no call meets, the nearest unused call of the same tool.

        Expectations in `early`, whose calls came too early, are left out."""
        found = {*self._call_of, *early}
        unmet = unused_numbers(range(len(self._expected)), found)
        if not unmet:
            return {}
        met = {*self._call_of.values(), *early.values()}
        left: dict[str, list[int]] = {}
        for call, tool in enumerate(self._called_tools):
            if call not in met:
                left.setdefault(tool, []).append(call)
        rows_of: dict[str, list[int]] = {}
        for index in unmet:
            rows_of.setdefault(self._wanted[index].tool, []).append(index)
        nearest: dict[int, int] = {}
        # Wildcards come last because any remaining call may be shown next to them.
        for tool, rows in sorted(rows_of.items(), key=lambda each: each[0] == ANY_TOOL):
            columns = left.get(tool, [])
            if tool == ANY_TOOL:
                columns = sorted(set(range(len(self._calls))) - met - set(nearest.values()))
            if len(rows) * len(columns) > MAX_PAIRS:
                nearest |= greedy_pairs(rows, columns, self._nearness)
            elif columns:
                nearest |= pairs_at(rows, columns, best_pairing(gain_table(rows, columns, self._nearness)))
        return nearest

    def _would_fit(self, expected: int, call: int) -> bool:
        """Return whether a call at the wrong position meets the expectation, without asking a judge."""
        # Judges and functions are not called merely for display.
        if not self._same_tool(expected, call):
            return False
        known = self._fitting.get((expected, call))
        if known is not None:
            return known
        try:
            return arguments_hold(self._expected[expected], self._calls[call], {}, self._asking_nobody)
        except CheckError:
            return True

    def _nearness(self, expected: int, call: int) -> int:
        verdicts = self._verdicts_of(expected, call).values()
        return 1 + sum([verdict is not None and verdict.holds for verdict in verdicts])

    def _line(self, expected: int, call: int, outcome: str, credit: float = 0.0) -> CallPairing:
        return CallPairing(expected, call, True, 0.0, 0.0, self._arguments(expected, call), credit, outcome)

    def _arguments(self, expected: int, call: int) -> tuple[ArgumentVerdict, ...]:
        arguments = self._calls[call].arguments
        verdicts = self._verdicts_of(expected, call)
        shown = []
        for asked in self._wanted[expected].checks:
            if asked.argument in arguments or not asked.check.optional:
                shown.append(_shown(asked.argument, verdicts[asked.argument], asked.described, arguments))
        unwanted = self._expected[expected].disallowed_arguments(arguments)
        for name in unwanted:
            shown.append(_shown(name, _FORBIDDEN, "not to be given", arguments))
        if self._expected[expected].args == {}:
            shown += unlisted_arguments({*unwanted}, arguments)
        return tuple(shown)

    def _verdicts_of(self, expected: int, call: int) -> _Verdicts:
        """Return the verdict of every check of a call, or `None` for a judge or function that was not asked."""
        verdicts = self._verdicts.setdefault((expected, call), {})
        for asked in self._wanted[expected].checks:
            if asked.argument not in verdicts:
                try:
                    verdicts[asked.argument] = _verdict(asked, self._calls[call].arguments, self._asking_nobody)
                except CheckError:
                    verdicts[asked.argument] = None
        return verdicts

    def _lines_of_disallowed(self) -> Iterator[CallPairing]:
        for index, offenders in enumerate(self._offenders):
            if not offenders:
                yield CallPairing(None, None, False, 0.0, 0.0, credit=1.0, outcome="kept", prohibition=index)
            for call in offenders:
                yield CallPairing(None, call, True, 0.0, 0.0, outcome="broken", prohibition=index)

    def _lines_of_others(self, lines: Sequence[CallPairing]) -> Iterator[CallPairing]:
        """Yield pairings without an expected call.

        They are for unexpected calls, and for calls that no pairing in `lines` has."""
        shown = {line.call for line in lines}
        for call in range(len(self._calls)):
            if call in self._unexpected:
                yield CallPairing(None, call, False, 0.0, 0.0, outcome="unexpected")
            elif call not in shown:
                yield CallPairing(None, call, False, 0.0, 0.0, outcome=ALLOWED_EXTRA_CALL)

    def _issues(self, lines: Sequence[CallPairing]) -> Iterator[Issue]:
        in_place = [line for line in lines if line.outcome != _WRONG_ORDER]
        yield from pairing_issues(self._expected, self._calls, in_place)
        for line in lines:
            if line.call is None:
                continue
            record = self._calls[line.call]
            if line.prohibition is not None:
                yield forbidden_call(self._disallowed[line.prohibition], record, line.call)
            elif line.outcome == _WRONG_ORDER and line.expected_call is not None:
                yield Issue(
                    "wrong order",
                    "called before an expected call that must come first",
                    tool=record.tool,
                    call=line.call,
                    expected_call=line.expected_call,
                    expected=f"{describe_expected(self._expected[line.expected_call])} later",
                    got=f"{describe_call(record)} too early",
                )
        for call in self._unexpected:
            yield extra_call(self._calls, call, self._why_unexpected or "", is_deciding=True)


_Arguments = Mapping[str, JsonValue]
_Verdicts = dict[str, CheckVerdict | None]
"""The verdicts of the checks of a call, by argument."""

_WRONG_ORDER = "wrong order"
_FORBIDDEN = CheckVerdict(0.0, False, "this argument must not be given")


def _reason(lines: Sequence[CallPairing], matched: int, total: int) -> str:
    if not total:
        return "the case expects nothing of the calls"
    if matched == total:
        return f"{matched} of {total} met"
    counts: Counter[str] = Counter()
    prohibitions = set()
    for line in lines:
        counts[line.outcome] += 1
        if line.outcome == "broken":
            prohibitions.add(line.prohibition)
    broken = len(prohibitions)
    parts = [f"{matched} of {total} met"]
    if counts["unmet"] and counts["unmet"] != total - matched:
        parts.append(f"{counts['unmet']} unmet")
    if counts[_WRONG_ORDER]:
        parts.append(f"{counts[_WRONG_ORDER]} in the wrong order")
    if broken:
        parts.append(f"{counted(broken, 'prohibition')} broken")
    if counts["unexpected"]:
        parts.append(counted(counts["unexpected"], "unexpected call"))
    return ", ".join(parts)


class _Asked(NamedTuple):
    """The check of one argument, and its description. If `compares_texts` is true, the check's texts are in NFC."""

    argument: str
    check: Check
    compares_texts: bool
    described: str


class _Wanted(NamedTuple):
    """An expected call prepared for comparison. `in_turn` has its checks in the order of evaluation."""

    tool: str
    checks: tuple[_Asked, ...]
    in_turn: tuple[_Asked, ...]
    uses_outside_service: bool


def _made_ready(expected: ExpectedCall) -> _Wanted:
    checks = []
    for name, check in (expected.args or {}).items():
        checks.append(_Asked(name, check.canonical(), check.compares_texts, describe(check)))
    uses_outside_service = any(asked.check.uses_outside_service for asked in checks)
    in_turn = checks
    if uses_outside_service:
        # A judge costs the most, and a Python function may be slow. So functions follow the other checks, and judges
        # come last: they are called only if all checks before them hold.
        in_turn = sorted(checks, key=lambda asked: (has_kind(asked.check, Judged), has_kind(asked.check, PythonCheck)))
    return _Wanted(canonical_text(expected.tool), tuple(checks), tuple(in_turn), uses_outside_service)


_wanted: Callable[[ExpectedCall], _Wanted] = cached_by_identity(_made_ready)


def _meets(expected: ExpectedCall, record: CallRecord, *, context: CheckContext) -> bool:
    same = expected.is_any or _wanted(expected).tool == canonical_text(record.tool)
    # A prohibition without `args` is about the call with any arguments.
    return same and ((record.is_broken and expected.args is None) or arguments_hold(expected, record, {}, context))


def arguments_hold(expected: ExpectedCall, record: CallRecord, verdicts: _Verdicts, context: CheckContext) -> bool:
    """Return whether the arguments of a call are as expected.

    `verdicts` receives the verdict of each check, up to the first check that fails. Raises CheckError if a check cannot
    be evaluated."""
    arguments = record.arguments
    if expected.disallowed_arguments(arguments):
        return False
    if record.is_broken:
        return False
    if not expected.args:
        return expected.args is None or not arguments
    for asked in _wanted(expected).in_turn:
        try:
            verdict = verdicts[asked.argument] = _verdict(asked, arguments, context)
        except CheckError as error:
            raise CheckError(f"{expected.tool}.{asked.argument}: {error}") from error
        if not verdict.holds:
            return False
    return True


def _verdict(expected: _Asked, arguments: _Arguments, context: CheckContext) -> CheckVerdict:
    value = arguments.get(expected.argument)
    if expected.compares_texts:
        value = canonical(value)
    return evaluate(expected.check, value, expected.argument in arguments, context=context)


def _shown(name: str, verdict: CheckVerdict | None, described: str, arguments: _Arguments) -> ArgumentVerdict:
    got, given = arguments.get(name), name in arguments
    if verdict is None:
        return ArgumentVerdict(
            name, None, 0.0, 1.0, described, got, given, "not judged, because the call does not count"
        )
    return ArgumentVerdict(name, verdict.holds, float(verdict.holds), 1.0, described, got, given, verdict.note)
