"""Turns the expected calls of a case into the plain list of calls that graders compare with a run.

The published graders know only such a list. Alternatives (`any_of`), `optional` calls and `times` are therefore
resolved against the calls of the run, and the graders grade the resulting list. The results of calls and `parallel`
become requirements in addition to the score."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from workbench.checks.check import Check, CheckContext, CheckVerdict, EqualsRule, evaluate
from workbench.checks.patterns import CheckError
from workbench.checks.value_kinds import Equals
from workbench.checks.values import canonical_text, cut_text
from workbench.dataclasses import dataclass
from workbench.grading.call_results import alternatives_of, result_mismatch
from workbench.grading.critics import ToolRegistry, critics_of, equals_by_casting, judge
from workbench.grading.grade import EXPLAINING_KINDS, CallPairing, Grade, GradingError, Issue
from workbench.grading.matching import (
    NOT_ALL_COMPARED,
    Bucket,
    Candidates,
    IncrementalMatching,
    broken_calls,
    rounds_of_steps,
    unused_numbers,
)
from workbench.grading.pairing_issues import describe_call, describe_expected, expected_result
from workbench.grading.status import Status
from workbench.grading.trajectory import arguments_hold
from workbench.numerals import counted
from workbench.suite.expected_calls import AnyOrder, ExpectedCall, comparable_name
from workbench.suite.grading_model import GraderName
from workbench.suite.model import Case, Step
from workbench.suite.settings import Grading, extra_calls_of
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory

_NAME_OF: Mapping[str, Callable[[str], str]] = {"critics": comparable_name, "trajectory": canonical_text}
"""Converts tool names for comparison, by grader. Other graders compare names unchanged."""


@dataclass(frozen=True, slots=True)
class ResolvedCase:
    """A case whose alternatives, optional calls and repeated calls are resolved against one run.

    `case` expects only plain calls: no `any_of`, `optional` or `times`. `written[i]` is the index, in the original
    case, of the call from which the plain call `i` was made. `issues` are the violated requirements, with indices of
    the original case."""

    case: Case
    written: tuple[int, ...]
    issues: tuple[Issue, ...]
    made: Mapping[int, int]
    """The number of fitting calls, by the index of the written call."""
    is_optimal: bool = True
    """Whether the choice of calls is known to be the best."""

    def as_written(self, grade: Grade, expected: Sequence[ExpectedCall]) -> Grade:
        """Convert the grade of the resolved case to a grade of the original case, and add the violated requirements.

        `expected` are the expected calls of the original case."""
        published = grade.published
        if published is not None:
            published = published._replace(
                pairings=self._pairings(published.pairings), issues=self._issues(published.issues, expected)
            )
        issues = self._issues(grade.issues, expected)
        status = grade.status
        if self.issues:
            status = Status.FAILED
            # A call beyond `times` already has an issue, so it is not reported again as a surplus call.
            beyond = {issue.call for issue in self.issues if issue.kind == "too many calls"}
            kept = [issue for issue in issues if issue.kind != "extra call" or issue.call not in beyond]
            issues = tuple(sorted((*kept, *self.issues), key=lambda issue: issue.kind not in EXPLAINING_KINDS))
        reason = grade.reason
        if not self.is_optimal and NOT_ALL_COMPARED not in reason:
            reason += f"; {NOT_ALL_COMPARED}"
        return grade._replace(
            reason=reason,
            pairings=self._pairings(grade.pairings),
            issues=issues,
            status=status,
            published=published,
        )

    def _pairings(self, pairings: Iterable[CallPairing]) -> tuple[CallPairing, ...]:
        lines = []
        for line in pairings:
            if line.expected_call is not None:
                line = line._replace(expected_call=self.written[line.expected_call])
            lines.append(line)
        return tuple(lines)

    def _issues(self, issues: Iterable[Issue], expected: Sequence[ExpectedCall]) -> tuple[Issue, ...]:
        found = []
        for issue in issues:
            if issue.expected_call is not None:
                index = self.written[issue.expected_call]
                issue = issue._replace(expected_call=index)
                if issue.kind == "missing call":
                    issue = self._missing(issue, index, expected[index])
            found.append(issue)
        # A call that is expected several times is reported as missing only once.
        return tuple(dict.fromkeys(found))

    def _missing(self, issue: Issue, index: int, expected: ExpectedCall) -> Issue:
        why = issue.why
        if expected.times is not None:
            why = f"called {counted(self.made.get(index, 0), 'time')}, at least {expected.fewest}"
        return issue._replace(tool=expected.tool_text, expected=describe_expected(expected), why=why)


def resolved_case(
    grader: GraderName, case: Case, grading: Grading, trajectory: Trajectory, equal: EqualsRule, context: CheckContext
) -> ResolvedCase:
    """Resolve a case's expected calls against a run, comparing tool names and values by the rules of a grader.

    Raises CheckError if a check cannot be evaluated. Raises GradingError under `arcade_compatible`, because Arcade has
    no expectations that must be resolved."""
    if grader == "critics" and grading.critics.arcade_compatible:
        raise GradingError(
            "grading.critics.arcade_compatible: Arcade has no `any_of`, `optional`, `times`, `result`, `is_error` or "
            "`parallel`; remove them, or switch arcade_compatible off"
        )
    calls = _Calls(grader, trajectory, equal, context)
    if case.steps:
        return _resolved_steps(case, trajectory, calls)
    return _Resolution(case, calls).resolved(grader, grading)


def expected_errors(case: Case, trajectory: Trajectory, context: CheckContext) -> frozenset[int]:
    """Return the indices of the calls that returned an expected error. Their arguments may be invalid.

    Raises CheckError if a check cannot be evaluated."""
    found: set[int] = set()
    calls: _Calls | None = None
    for expected in case.expected_calls():
        if not any(each.is_error for each in alternatives_of(expected)):
            continue
        # The rules of `critics` apply because they compare names and values most loosely.
        calls = calls or _Calls("critics", trajectory, equals_by_casting, context)
        for call, fit in calls.fits(expected).items():
            if fit.returned and alternatives_of(expected)[fit.alternative].is_error:
                found.add(call)
    return frozenset(found)


# How well a call fits an expected call. A grader's rules compare tool and arguments, and then the result is checked.


class _Fit(NamedTuple):
    alternative: int
    returned: bool
    """Whether the result is as expected."""


class _Calls:
    def __init__(self, grader: GraderName, trajectory: Trajectory, equal: EqualsRule, context: CheckContext) -> None:
        self.records = trajectory.calls
        self.name: Callable[[str], str] = _NAME_OF.get(grader, str)
        self._by = grader
        self._equal = equal
        self._context = context
        # Only `critics` fills in missing arguments from the defaults of schemas.
        self._registry = ToolRegistry(trajectory.offered if grader == "critics" else ())
        self._of_tool: dict[str, list[int]] = {}
        made = [(record.tool, record.arguments) for record in self.records]
        candidates = Candidates((), made, distinct=broken_calls(self.records))
        self._identities = [candidates.identity(index) for index in range(len(made))]
        for index, record in enumerate(self.records):
            self._of_tool.setdefault(self.name(record.tool), []).append(index)

    def of_tool(self, call: ExpectedCall) -> Sequence[int]:
        if call.is_any:
            return range(len(self.records))
        return self._of_tool.get(self.name(call.tool), ())

    def fits(self, expected: ExpectedCall) -> dict[int, _Fit]:
        """Return the calls that fit an expected call, each with the alternative that it fits best.

        Only tool and arguments must fit. Among several alternatives that fit, one whose expected result fits too is
        preferred, and then one that lists all arguments."""
        found: dict[int, tuple[bool, bool, int]] = {}
        for number, alternative in enumerate(alternatives_of(expected)):
            checks = self._checks(alternative)
            # Calls with equal arguments are compared once.
            known: dict[Hashable, bool] = {}
            for index in self.of_tool(alternative):
                record, identity = self.records[index], self._identities[index]
                if identity not in known:
                    known[identity] = self._arguments_fit(alternative, checks, record)
                if not known[identity]:
                    continue
                lists_all = record.arguments.keys() <= (alternative.args or {}).keys()
                # The index of the alternative is negated, so the first of equal alternatives wins.
                rank = (self.result_mismatch(alternative, record) is None, lists_all, -number)
                found[index] = max(rank, found.get(index, rank))
        return {index: _Fit(-found[index][2], found[index][0]) for index in sorted(found)}

    def nearest(self, expected: ExpectedCall, call: int) -> int:
        """Return the index of the alternative most similar to a call. No judge or function is asked."""
        nearest, most = 0, -1.0
        record = self.records[call]
        for number, alternative in enumerate(alternatives_of(expected)):
            if call not in self.of_tool(alternative):
                continue
            checks = self._checks(alternative)
            right = sum(self._holds_for_show(name, check, record) for name, check in checks.items())
            share = right / len(checks) if checks else 0.0
            if share > most:
                nearest, most = number, share
        return nearest

    def result_mismatch(self, expected: ExpectedCall, record: CallRecord) -> str | None:
        return result_mismatch(expected, record, self._context)

    def _checks(self, expected: ExpectedCall) -> Mapping[str, Check]:
        if self._by != "critics":
            return expected.args or {}
        # Arguments with a weight of 0 are only recorded. A null stands for the default of the schema.
        critics = critics_of([expected], self._registry, arcade_compatible=False)[0].critics
        return {critic.argument: critic.check for critic in critics if critic.judged}

    def _arguments_fit(self, expected: ExpectedCall, checks: Mapping[str, Check], record: CallRecord) -> bool:
        if self._by == "trajectory":
            return arguments_hold(expected, record, {}, self._context)
        if record.is_broken or expected.disallowed_arguments(record.arguments):
            return False
        if expected.args is None:
            return True
        if not expected.args:
            return not record.arguments
        arguments = self._registry.filled(record.tool, record.arguments)
        asking = []
        for name, check in checks.items():
            if type(check) is Equals and name in arguments:
                if not self._equal(check, arguments[name]):
                    return False
            elif check.uses_outside_service:
                asking.append(name)
            elif not self._verdict(expected, name, check, arguments).holds:
                return False
        # Functions and judges come last and are called only if everything else holds.
        return all(self._verdict(expected, name, checks[name], arguments).holds for name in asking)

    def _verdict(
        self, expected: ExpectedCall, name: str, check: Check, arguments: Mapping[str, JsonValue]
    ) -> CheckVerdict:
        value, given = arguments.get(name), name in arguments
        try:
            if self._by == "critics":
                return judge(check, value, given, False, self._context)
            return evaluate(check, value, given, equal=self._equal, context=self._context)
        except CheckError as error:
            raise CheckError(f"{expected.tool}.{name}: {error}") from error

    def _holds_for_show(self, name: str, check: Check, record: CallRecord) -> bool:
        asking_nobody = CheckContext(search_time=self._context.search_time, clock=self._context.clock)
        arguments = self._registry.filled(record.tool, record.arguments)
        try:
            verdict = evaluate(check, arguments.get(name), name in arguments, equal=self._equal, context=asking_nobody)
        except CheckError:
            return False
        return verdict.holds


def _result_issue(expected: ExpectedCall, index: int, record: CallRecord, call: int, reason: str) -> Issue:
    got = None if record.result is None else cut_text(record.result.content)
    return Issue(
        "wrong result",
        reason,
        tool=record.tool,
        call=call,
        expected_call=index,
        expected=expected_result(expected.result, expected.is_error),
        got=got,
        decides=True,
    )


# Steps of a chain: the first call of an answer is compared with the expected call of its step.


def _resolved_steps(case: Case, trajectory: Trajectory, calls: _Calls) -> ResolvedCase:
    steps: list[Step] = []
    issues: list[Issue] = []
    index = 0
    for step, reached in zip(case.steps, rounds_of_steps(case, trajectory), strict=True):
        expected = step.expected_call
        if expected is None:
            steps.append(step)
            continue
        chosen = 0
        if reached is not None and reached.round.calls:
            call = reached.first_call
            fit = calls.fits(expected).get(call)
            chosen = calls.nearest(expected, call) if fit is None else fit.alternative
            if fit is not None and not fit.returned:
                alternative, record = alternatives_of(expected)[chosen], calls.records[call]
                reason = calls.result_mismatch(alternative, record)
                issues.append(_result_issue(alternative, index, record, call, reason or ""))
        if expected.any_of:
            plain = alternatives_of(expected)[chosen]
            keys = ("tool", "args", "forbidden_args", "only_args")
            step = step.model_copy(update={"any_of": (), **{key: getattr(plain, key) for key in keys}})
        steps.append(step)
        index += 1
    return ResolvedCase(case.model_copy(update={"steps": tuple(steps)}), tuple(range(index)), tuple(issues), {})


# The resolution of lists. An expected call has slots: `fewest` required slots, and optional slots up to `most`. The
# best choice of calls fills the most required slots, then the most optional slots, and then uses the earliest calls.
#
# The ordered list is a table over its positions and the calls (dynamic programming). `best[n]` is the largest number of
# slots that the positions so far can fill with the first n calls. It is written as one number: required slots times a
# base, plus optional slots.
#
# A single expected call takes consecutive calls among the calls that fit it, from `first` to `last`. Each of the first
# `fewest` calls is worth the base, and each further call 1. Both values are linear in `first`, so the best `first` for
# each `last` is a maximum in a sliding window (a queue of falling values). A position therefore costs time linear in
# the calls, for any `times`.
#
# A group takes a window of calls and pairs its slots with them. Two pairings grow call by call: one of required slots,
# and one of all slots. The slots that calls can fill are a matroid, so filling required slots first loses no optional
# slot. A window begins where `best` rises, because any other beginning only loses calls.
#
# The unordered list is such a pairing over all calls. A call may serve both lists, as under `trajectory`, but only for
# a required slot without another call.


class _Resolution:
    """Chooses the calls of a run that meet the ordered and the unordered list of a case."""

    def __init__(self, case: Case, calls: _Calls) -> None:
        self._case = case
        self._calls = calls
        self._wanted = case.expected_calls()
        self._fits = [calls.fits(expected) for expected in self._wanted]
        self._fitting: list[list[int]] = []
        """The calls that fit an expected call with their results, in order."""
        for fits in self._fits:
            self._fitting.append([call for call, fit in fits.items() if fit.returned])
        self._ordered = list(_positions(case.ordered, 0))
        self._unordered = list(_positions(case.unordered, sum(map(len, self._ordered))))
        self._base = len(calls.records) + 1
        self._all_compared = True

    def resolved(self, grader: GraderName, grading: Grading) -> ResolvedCase:
        taken = self._best()
        tried = self._tried(taken)
        written: list[int] = []
        lists: list[tuple[ExpectedCall | AnyOrder, ...]] = []
        for items, positions in ((self._case.ordered, self._ordered), (self._case.unordered, self._unordered)):
            plain_items: list[ExpectedCall | AnyOrder] = []
            for item, position in zip(items, positions, strict=True):
                plain: list[ExpectedCall] = []
                for index in position:
                    of_call = self._plain(index, taken[index], tried.get(index, []))
                    plain += of_call
                    written += [index] * len(of_call)
                if isinstance(item, AnyOrder) and len(plain) > 1 and items is self._case.ordered:
                    plain_items.append(AnyOrder.model_construct(any_order=tuple(plain), parallel=False))
                else:
                    plain_items += plain
            lists.append(tuple(plain_items))
        update: dict[str, object] = {"ordered": lists[0], "unordered": lists[1]}
        if not written:
            update |= _expecting_nothing(self._case, grader, grading)
        issues = (*self._result_issues(taken, tried), *self._too_many(taken, tried), *self._apart(taken))
        made = {index: len(calls) for index, calls in enumerate(taken)}
        return ResolvedCase(self._case.model_copy(update=update), tuple(written), issues, made, self._all_compared)

    def _plain(self, index: int, assigned: Sequence[int], attempts: Sequence[int]) -> list[ExpectedCall]:
        expected = self._wanted[index]
        alternatives = alternatives_of(expected)
        plain = []
        for call in sorted((*assigned, *attempts)):
            fit = self._fits[index].get(call)
            number = fit.alternative if fit is not None else self._calls.nearest(expected, call)
            plain.append(alternatives[number])
        plain += [alternatives[0]] * (expected.fewest - len(plain))
        return plain

    def _best(self) -> list[list[int]]:
        first = [self._none() for _ in range(3)]
        self._take_in_order(first[0], True, ())
        self._take_unordered(first[0], _union(first[0]))
        if not (self._ordered and self._unordered):
            return first[0]
        # Either list may take a call that the other list needs, and the best choice for both at once has no fast
        # algorithm. Therefore, several choices are compared: the ordered list first, the unordered list first, and the
        # ordered list's required calls first and its optional calls last.
        self._take_unordered(first[1], ())
        self._take_in_order(first[1], True, _union(first[1]))
        self._take_in_order(first[2], False, ())
        self._take_unordered(first[2], _union(first[2]))
        last = self._none()
        for position in self._unordered:
            for index in position:
                last[index] = first[2][index]
        self._take_in_order(last, True, _union(last))
        return max((*first, last), key=self._worth)

    def _none(self) -> list[list[int]]:
        return [[] for _ in self._wanted]

    def _worth(self, assigned: Sequence[Sequence[int]]) -> tuple[int, int, int]:
        required = sum(min(len(calls), wanted.fewest) for calls, wanted in zip(assigned, self._wanted, strict=True))
        total = sum(map(len, assigned))
        return required, len(_union(assigned)) - total, total

    def _take_in_order(self, assigned: list[list[int]], with_optional: bool, used: Collection[int]) -> None:
        best = [0] * self._base
        windows: list[_Windows] = []
        for position in self._ordered:
            best, found = self._after(position, best, with_optional, used)
            windows.append(found)
        end = len(best) - 1
        for position, found in zip(reversed(self._ordered), reversed(windows), strict=True):
            window = found[end]
            if window is not None:
                first, last = window
                within = [call for call in range(first, last + 1) if call not in used]
                for index, calls in self._filled(position, within, with_optional).items():
                    assigned[index] = calls
                end = first

    def _after(
        self, position: Sequence[int], best: Sequence[int], optional: bool, used: Collection[int]
    ) -> tuple[list[int], _Windows]:
        ends: dict[int, tuple[int, int]] = {}
        for worth, first, last in self._windows(position, best, optional, used):
            if worth > ends.get(last, (0, 0))[0]:
                ends[last] = (worth, first)
        after, windows = list(best), _Windows([None])
        most = 0
        window: tuple[int, int] | None = None
        for last in range(len(best) - 1):
            if last in ends and ends[last][0] > most:
                most, window = ends[last][0], (ends[last][1], last)
            if most > best[last + 1]:
                after[last + 1] = most
                windows.append(window)
            else:
                windows.append(None)
        return after, windows

    def _windows(
        self, position: Sequence[int], best: Sequence[int], optional: bool, used: Collection[int]
    ) -> Iterator[tuple[int, int, int]]:
        if len(position) == 1:
            (index,) = position
            fitting = unused_numbers(self._fitting[index], used)
            wanted = self._wanted[index]
            most = min(wanted.most if optional else wanted.fewest, len(fitting))
            yield from _windows_of_one(fitting, best, min(wanted.fewest, len(fitting)), int(most), self._base)
            return
        slots = _Slots(position, self._wanted, self._fitting, optional)
        calls = unused_numbers(sorted(slots.wants_of), used)
        starts = [start for start in range(len(best)) if not start or best[start] > best[start - 1]]
        every_nth = -(-len(starts) * len(calls) // _MAX_TRIED)
        if every_nth > 1:
            starts = starts[::every_nth]
            self._all_compared = False
        for start in starts:
            required, every = slots.pairing(slots.required), slots.pairing(slots.all)
            demanded = filled = 0
            for call in calls[bisect_left(calls, start) :]:
                before = demanded, filled
                if demanded < len(slots.required):
                    required.add(call)
                    demanded = len(required.call_of)
                every.add(call)
                filled = len(every.call_of)
                if (demanded, filled) != before:
                    yield best[start] + demanded * self._base + filled - demanded, start, call
                if filled == len(slots.all):
                    break

    def _filled(self, position: Sequence[int], calls: Sequence[int], optional: bool) -> dict[int, list[int]]:
        slots = _Slots(position, self._wanted, self._fitting, optional)
        return slots.filled(calls, calls)

    def _take_unordered(self, assigned: list[list[int]], used: Collection[int]) -> None:
        flat = [index for position in self._unordered for index in position]
        if not flat:
            return
        slots = _Slots(flat, self._wanted, self._fitting, True)
        calls = unused_numbers(range(len(self._calls.records)), used)
        for index, found in slots.filled((*calls, *sorted(used)), calls).items():
            assigned[index] = found

    def _tried(self, assigned: Sequence[Sequence[int]]) -> dict[int, list[int]]:
        """Find, for each expected call with unfilled slots, unused calls that were probably meant as this call.

        Calls with the same arguments come first, and then calls of the same tool. The grade reports them as wrong
        calls, in place of a missing call."""
        left = dict.fromkeys(unused_numbers(range(len(self._calls.records)), _union(assigned)))
        tried: dict[int, list[int]] = {}
        required_first = sorted(range(len(self._wanted)), key=lambda index: self._wanted[index].fewest == 0)
        for by_arguments in (True, False):
            for index in required_first:
                expected = self._wanted[index]
                candidates: Iterable[int] = self._fits[index]
                if not by_arguments:
                    candidates = sorted({call for each in expected.alternatives for call in self._calls.of_tool(each)})
                missing = max(expected.fewest, 1) - len(assigned[index]) - len(tried.get(index, ()))
                for call in candidates:
                    if missing <= 0:
                        break
                    if call in left:
                        del left[call]
                        tried.setdefault(index, []).append(call)
                        missing -= 1
        return tried

    def _result_issues(
        self, assigned: Sequence[Sequence[int]], attempts: Mapping[int, Sequence[int]]
    ) -> Iterator[Issue]:
        for index, calls in sorted(attempts.items()):
            for call in calls:
                fit = self._fits[index].get(call)
                if fit is None:
                    continue
                expected, record = alternatives_of(self._wanted[index])[fit.alternative], self._calls.records[call]
                if not fit.returned:
                    reason = self._calls.result_mismatch(expected, record)
                    yield _result_issue(expected, index, record, call, reason or "")
                elif self._differs_by_result(index, call, assigned):
                    # A call that fits but was not taken is at the wrong position. The grader reports the wrong position
                    # itself, unless only the result distinguishes the call from a call at the right position.
                    reason = "its result was expected after that of an equal call, but came before it"
                    yield _result_issue(expected, index, record, call, reason)._replace(kind="wrong order")

    def _differs_by_result(self, index: int, call: int, assigned: Sequence[Sequence[int]]) -> bool:
        """Return whether a call differs only by its result from a call that another expected call took."""
        fits = self._fits
        for other, calls in enumerate(assigned):
            if call not in fits[other]:
                continue
            for made in calls:
                if made in fits[index] and not (fits[index][made].returned and fits[other][call].returned):
                    return True
        return False

    def _too_many(self, assigned: Sequence[Sequence[int]], attempts: Mapping[int, Sequence[int]]) -> Iterator[Issue]:
        used = _union((*assigned, *attempts.values()))
        for index, expected in enumerate(self._wanted):
            if expected.times is None:
                continue
            made = sorted((*assigned[index], *unused_numbers(self._fitting[index], used)))
            if len(made) > expected.most:
                record = self._calls.records[made[int(expected.most)]]
                yield Issue(
                    "too many calls",
                    f"called {counted(len(made), 'time')}, at most {int(expected.most)}",
                    tool=record.tool,
                    call=made[int(expected.most)],
                    expected_call=index,
                    expected=describe_expected(expected),
                    got=describe_call(record),
                    decides=True,
                )

    def _apart(self, assigned: Sequence[Sequence[int]]) -> Iterator[Issue]:
        for item, position in zip(
            (*self._case.ordered, *self._case.unordered), (*self._ordered, *self._unordered), strict=True
        ):
            if not isinstance(item, AnyOrder) or not item.parallel:
                continue
            if any(len(assigned[index]) < self._wanted[index].fewest for index in position):
                continue
            made = {index: len(assigned[index]) for index in position if assigned[index]}
            if not made or any(self._holds_all(made, calls) for calls in self._calls_of_answers()):
                continue
            call = max(call for index in made for call in assigned[index])
            record = self._calls.records[call]
            index = next(index for index in made if call in assigned[index])
            yield Issue(
                "not parallel",
                "not in one answer",
                tool=record.tool,
                call=call,
                expected_call=index,
                expected=f"in one answer: {', '.join(describe_expected(self._wanted[each]) for each in made)}",
                got=f"{describe_call(record)} in answer {record.round}",
                decides=True,
            )

    def _calls_of_answers(self) -> Iterable[list[int]]:
        answers: dict[int, list[int]] = {}
        for index, record in enumerate(self._calls.records):
            answers.setdefault(record.round, []).append(index)
        return answers.values()

    def _holds_all(self, counts: Mapping[int, int], calls: Sequence[int]) -> bool:
        """Return whether one answer has enough calls for each expectation of a group."""
        slots = _Slots(counts, self._wanted, self._fitting, False, counts)
        pairing = slots.pairing(slots.all)
        for call in calls:
            pairing.add(call)
        return len(pairing.call_of) == len(slots.all)


_MAX_TRIED = 20_000
"""The largest number of search steps for all windows of a group together."""


_Windows = list[tuple[int, int] | None]
"""For each number of calls: the first and the last call that a position takes, or `None` if it takes no call."""


def _union(groups: Iterable[Iterable[int]]) -> set[int]:
    return set(chain.from_iterable(groups))


def _positions(items: Iterable[ExpectedCall | AnyOrder], first: int) -> Iterator[tuple[int, ...]]:
    """Yield the indices of the expected calls at each position of a list. `first` is the first index."""
    for item in items:
        size = len(item.any_order) if isinstance(item, AnyOrder) else 1
        yield tuple(range(first, first + size))
        first += size


def _windows_of_one(
    fitting: Sequence[int], best: Sequence[int], minimum: int, maximum: int, base: int
) -> Iterator[tuple[int, int, int]]:
    worths = [best[call] for call in fitting]
    # A window has two pieces: the required calls, and the further calls. Each piece has four numbers: its fewest and
    # its most calls, the value of one more call, and the value that is added for the piece before it.
    pieces = [(1, minimum, base, 0), (minimum + 1, maximum, 1, minimum * (base - 1))]
    queues: list[deque[tuple[int, int]]] = [deque(), deque()]
    for last, call in enumerate(fitting):
        found = (-1, 0)
        for (low, high, each, ahead), queue in zip(pieces, queues, strict=True):
            first = last + 1 - low
            if high < low:
                continue
            if first >= 0:
                worth = worths[first] - first * each
                while queue and queue[-1][0] < worth:
                    queue.pop()
                queue.append((worth, first))
            while queue and queue[0][1] < last + 1 - high:
                queue.popleft()
            if queue:
                found = max(found, (queue[0][0] + (last + 1) * each + ahead, -queue[0][1]))
        if found[0] >= 0:
            yield found[0], fitting[-found[1]], call


class _Slots:
    """Slots to be filled with calls: one for each time that an expected call must or may be made.

    Required slots come first. Slots are numbered from 0. For the pairing of slots with calls, each expected call is a
    bucket."""

    def __init__(
        self,
        indices: Iterable[int],
        expected: Sequence[ExpectedCall],
        fitting_calls: Sequence[Sequence[int]],
        with_optional: bool,
        sizes: Mapping[int, int] | None = None,
    ) -> None:
        self._owners: list[int] = []
        further: list[int] = []
        self.wants_of: dict[int, list[int]] = {}
        """The expected calls that each call fits, by index of the call."""
        for index in indices:
            fewest = expected[index].fewest if sizes is None else sizes[index]
            self._owners += [index] * fewest
            if with_optional:
                further += [index] * (int(min(expected[index].most, len(fitting_calls[index]))) - fewest)
            for call in fitting_calls[index]:
                self.wants_of.setdefault(call, []).append(index)
        self.required = range(len(self._owners))
        self._owners += further
        self.all = range(len(self._owners))

    def pairing(self, slots: Sequence[int], paired: Mapping[int, int] | None = None) -> IncrementalMatching:
        return IncrementalMatching(slots, lambda slot, call: True, self, paired)

    def filled(self, for_required: Iterable[int], for_optional: Iterable[int]) -> dict[int, list[int]]:
        """Fill required slots with calls, then optional slots. Return the calls of each expected call."""
        required = self.pairing(self.required)
        for call in for_required:
            required.add(call)
        every = self.pairing(self.all, required.call_of)
        used = set(required.call_of.values())
        for call in for_optional:
            if call not in used:
                every.add(call)
        found: dict[int, list[int]] = {}
        for slot, call in every.call_of.items():
            found.setdefault(self._owners[slot], []).append(call)
        return {index: sorted(calls) for index, calls in found.items()}

    # The following methods implement `BucketIndex`.
    def bucket(self, expected: int) -> Bucket:
        return (self._owners[expected],)

    def buckets(self, call: int) -> Sequence[Bucket]:
        return [(index,) for index in self.wants_of.get(call, ())]

    def identity(self, call: int) -> Hashable:
        return tuple(self.wants_of.get(call, ()))

    def may_compare(self, bucket: Bucket) -> bool:
        return True


def _expecting_nothing(case: Case, grader: GraderName, grading: Grading) -> dict[str, object]:
    """Return changes to a case that make it expect no calls.

    The changes apply to a run that made none of the case's expected calls, which are all optional."""
    if grader == "trajectory":
        # Under `trajectory`, surplus calls cost nothing by themselves.
        return {"extra_calls": "allow"} if extra_calls_of(case, grading) is None else {}
    return {"expect_no_calls": True}
