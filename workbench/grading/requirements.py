"""Requirements besides the score, under every grader: prohibitions, extra calls, the final answer, limits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import chain

from workbench.checks.check import (
    EMPTY_CONTEXT,
    Check,
    CheckContext,
    CheckVerdict,
    EqualsRule,
    all_hold,
    asks_for_run,
    by_json,
    describe,
    evaluate,
    with_parts,
)
from workbench.checks.combined_kinds import Judged
from workbench.checks.patterns import CheckError
from workbench.checks.text_kinds import EqualsText
from workbench.checks.value_kinds import Equals
from workbench.checks.values import describe_value
from workbench.grading.critics import ToolRegistry
from workbench.grading.endpoint_faults import endpoint_faults, intended_tool, is_offered
from workbench.grading.extra_call_rule import ExtraCallRule
from workbench.grading.final import final_issues
from workbench.grading.grade import CallPairing, Grade, Issue, Metric, PublishedGrade, calls_of
from workbench.grading.matching import (
    MAX_PAIRS,
    NO_CALL_OF_STEP,
    NOT_ALL_COMPARED,
    best_pairing,
    calls_of_steps_without_call,
    gain_table,
    unused_numbers,
)
from workbench.grading.pairing_issues import ALLOWED_EXTRA_CALL, extra_call, forbidden_call
from workbench.grading.prohibitions import duplicate_issues, offending_calls
from workbench.grading.resolution import expected_errors
from workbench.grading.scoring import known_values
from workbench.grading.status import Status
from workbench.grading.valid_arguments import (
    CheckedCall,
    argument_issues,
    check_calls,
    end_issues,
    error_issues,
    unfinished_answer,
)
from workbench.numerals import counted, duration_text
from workbench.suite.expected_calls import ANY_TOOL, DisallowedCall, ExpectedCall
from workbench.suite.grading_model import GraderName, InvalidArguments, WholeNumbers
from workbench.suite.model import Case
from workbench.suite.settings import Grading, Limits, extra_calls_of, surplus_rule
from workbench.suite.user_model import UserTable
from workbench.trajectory.events import JsonValue, names_of_tools
from workbench.trajectory.json_schema import Schema, properties_of, resolved, type_names
from workbench.trajectory.trajectory import CallRecord, Trajectory, tools_of

_PLAIN_RULES: Mapping[object, ExtraCallRule] = {
    None: ExtraCallRule(None),
    "allow": ExtraCallRule("allow"),
    "forbid": ExtraCallRule("forbid"),
}


def extra_call_rule_of(case: Case, grading: Grading, trajectory: Trajectory) -> ExtraCallRule:
    """Return the rule of a case for the extra calls of a run."""
    written = extra_calls_of(case, grading)
    if written in _PLAIN_RULES:
        return _PLAIN_RULES[written]
    read_only: frozenset[str] = frozenset()
    if written == "allow_read_only":
        read_only = _read_only(trajectory)
    return ExtraCallRule(written, read_only, _corrected(trajectory))


def _corrected(trajectory: Trajectory) -> frozenset[int]:
    if not any(record.result is not None and record.result.is_error for record in trajectory.calls):
        return frozenset()
    return frozenset(index for index, check in enumerate(check_calls(trajectory)) if check.corrected)


def _read_only(trajectory: Trajectory) -> frozenset[str]:
    found = set()
    for tool in trajectory.offered:
        if tool.annotations.get("readOnlyHint") is True:
            # Providers that allow no dots in names get underscores, and models answer with these names.
            found |= {tool.name, tool.name.replace(".", "_")}
    return frozenset(found)


def graded_without_free_calls(
    grader: GraderName,
    case: Case,
    grading: Grading,
    trajectory: Trajectory,
    rule: ExtraCallRule,
    grade: Callable[[Trajectory], Grade],
    *,
    equal: EqualsRule,
    context: CheckContext,
) -> Grade:
    """Grade a run with `grade` as if the extra calls that `rule` frees had not been made.

    Raises CheckError if a check cannot be evaluated."""
    # The whole run is graded first. If no call is free, the result is the run's grade. Otherwise, the result becomes
    # the published grade.
    calls, expected = trajectory.calls, case.expected_calls()
    candidates = rule.free_calls(calls)
    whole = grade(trajectory)
    if not candidates or _computes_as_published(grader, grading):
        return whole
    # `trajectory` itself ignores free calls, unless a free call took the position of another call.
    may_displace = bool(rule.corrected) or any(each.is_any for each in expected)
    if grader == "trajectory" and (whole.verdict == Status.PASSED or not may_displace):
        return whole
    # Only `critics` fills in missing arguments from the defaults of schemas.
    registry = ToolRegistry(trajectory.offered if grader == "critics" else ())
    surplus = _Surplus(expected, calls, candidates, equal, context, registry)
    free = surplus.calls(in_order=_compares_places(grader, case, grading))
    if not free:
        return whole
    kept = unused_numbers(range(len(calls)), free)
    found = _in_the_run(grade(_without(trajectory, free)), kept)
    lines = list(found.pairings)
    for call in sorted(free):
        lines.append(CallPairing(None, call, False, 0.0, 0.0, outcome=ALLOWED_EXTRA_CALL))
    reason = f"{found.reason}; surplus calls that extra_calls frees: {len(free)}"
    if not surplus.is_optimal:
        reason += f"; {NOT_ALL_COMPARED}"
    published = PublishedGrade._make(whole[: len(PublishedGrade._fields)])
    return found._replace(pairings=tuple(lines), reason=reason, published=published)


def _computes_as_published(grader: GraderName, grading: Grading) -> bool:
    if grader == "dimensions":
        return grading.dimensions.repeated_calls == "as published"
    return grader == "critics" and grading.critics.arcade_compatible


def _compares_places(grader: GraderName, case: Case, grading: Grading) -> bool:
    if grader == "trajectory":
        return not case.unordered and all(isinstance(item, ExpectedCall) for item in case.ordered)
    return grader == "decision" or (grader == "accuracy" and grading.accuracy.mode == "exact")


# Surplus calls are found by a separate pairing before any grader runs. It pairs as many expectations as possible with
# the call that meets them best. An expectation that no call meets is paired with some call of its tool. Calls without a
# pair are surplus. So a tool has only as many surplus calls as were made beyond the expected number, and a wrong call
# is graded as wrong, not as surplus.
class _Surplus:
    def __init__(
        self,
        expected: Sequence[ExpectedCall],
        calls: Sequence[CallRecord],
        candidates: frozenset[int],
        equal: EqualsRule,
        context: CheckContext,
        registry: ToolRegistry,
    ) -> None:
        self._expected = expected
        self._calls = calls
        self._candidates = candidates
        self._equal = equal
        self._context = context
        self._registry = registry
        self.is_optimal = True

    def calls(self, *, in_order: bool) -> frozenset[int]:
        """Return the indices of the extra calls.

        `in_order` is for graders that compare calls position by position."""
        rows, columns = range(len(self._expected)), range(len(self._calls))
        if not any(
            self._expected[row].may_be_call_of(self._calls[call].tool) for row in rows for call in self._candidates
        ):
            return self._candidates
        if len(rows) * len(columns) > MAX_PAIRS:
            self.is_optimal = False
            pairs: dict[int, int] = {}
        else:
            gains = gain_table(rows, columns, self._gain)
            found = _best_in_order(gains) if in_order else best_pairing(gains)
            pairs = {}
            for row, column in found:
                if gains[row][column]:
                    pairs[row] = column
        paired = set(pairs.values())
        left = sorted(self._candidates - paired)
        # If an expectation has no call, a call of its tool is at the wrong position, not surplus.
        for row in rows:
            if row not in pairs:
                for call in left:
                    if self._expected[row].may_be_call_of(self._calls[call].tool):
                        left.remove(call)
                        break
        return frozenset(left)

    def _gain(self, row: int, column: int) -> int:
        wanted, record = self._expected[row], self._calls[column]
        if not wanted.may_be_call_of(record.tool):
            return 0
        # The result is one number with three digits. The most important digit says whether the call fits. The next says
        # whether the call would be wrong as a surplus call, because it is not free. The last says how near the call is.
        rows = len(self._expected) + 1
        near, fits = self._nearness(wanted, record)
        return ((fits * rows) + (column not in self._candidates)) * rows * _NEAREST + near

    def _nearness(self, expected_call: ExpectedCall, record: CallRecord) -> tuple[int, bool]:
        """Return how near a call is to an expected call, from 1 to `_NEAREST`, and whether the call fits.

        The number grows with the mean score of the checks, and a failed check counts half. If scores are equal, the
        call with fewer unlisted arguments has the larger number."""
        if record.is_broken:
            return 1, False
        arguments = self._registry.filled(record.tool, record.arguments)
        scores = []
        fits = not expected_call.disallowed_arguments(record.arguments)
        for name, check in (expected_call.args or {}).items():
            verdict = evaluate(check, arguments.get(name), name in arguments, equal=self._equal, context=self._context)
            score = min(max(verdict.score, 0.0), 1.0)
            if not verdict.holds:
                score /= 2
            scores.append(score)
            fits = fits and verdict.holds
        unlisted = len(record.arguments.keys() - (expected_call.args or {}).keys())
        if expected_call.args == {} and unlisted:
            fits = False
        share = sum(scores) / len(scores) if scores else 1.0
        return 1 + int(share * (_NEAREST - _MAX_UNLISTED - 1)) + _MAX_UNLISTED - min(unlisted, _MAX_UNLISTED), fits


_NEAREST = 100_000
"""The nearness of a call that fits without unlisted arguments."""

_MAX_UNLISTED = 1_000
"""The largest number of unlisted arguments that lowers the nearness."""


def _best_in_order(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the pairing with the largest sum of gains that keeps the order of rows and columns.

    The method is a sequence alignment."""
    # The method is dynamic programming, as for a longest common subsequence. `best[row][column]` is the largest sum
    # from this row and column on.
    if not gains:
        return []
    rows, columns = len(gains), len(gains[0])
    best = [[0] * (columns + 1) for _ in range(rows + 1)]
    for row in reversed(range(rows)):
        for column in reversed(range(columns)):
            together = gains[row][column] + best[row + 1][column + 1]
            best[row][column] = max(together, best[row + 1][column], best[row][column + 1])
    pairs = []
    row = column = 0
    while row < rows and column < columns:
        if gains[row][column] and best[row][column] == gains[row][column] + best[row + 1][column + 1]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            row += 1
    return pairs


def _without(trajectory: Trajectory, calls: Collection[int]) -> Trajectory:
    rounds, first = [], 0
    for each in trajectory.rounds:
        kept = []
        for index, record in enumerate(each.calls, first):
            if index not in calls:
                kept.append(record)
        first += len(each.calls)
        rounds.append(replace(each, calls=tuple(kept)))
    return replace(trajectory, rounds=tuple(rounds))


def _in_the_run(grade: Grade, kept_calls: Sequence[int]) -> Grade:
    lines = []
    for line in grade.pairings:
        if line.call is not None:
            line = line._replace(call=kept_calls[line.call])
        lines.append(line)
    issues = []
    for issue in grade.issues:
        if issue.call is not None:
            issue = issue._replace(call=kept_calls[issue.call])
        issues.append(issue)
    return grade._replace(pairings=tuple(lines), issues=tuple(issues))


def issues_with_remedies(grade: Grade, case: Case, grading: Grading, trajectory: Trajectory) -> tuple[Issue, ...]:
    """Return the issues of a grade. The issue of an extra call names the `extra_calls` value that would allow it."""
    if not any(issue.kind == "extra call" for issue in grade.issues):
        return grade.issues
    if extra_calls_of(case, grading) is not None or not case.expected_calls() or case.steps or grading.is_compatible:
        return grade.issues
    costs = f"under `{grade.grader}` {surplus_rule(grading, grade.grader)}"
    refused = Counter(trajectory.calls[call].tool for call in _corrected(trajectory))
    surplus = Counter(issue.tool for issue in grade.issues if issue.kind == "extra call")
    by_read_only = set(_read_only(trajectory))
    # With "allow_read_only", calls that were refused and then corrected also cost nothing. A tool whose surplus calls
    # were all corrected therefore needs no stronger rule.
    for tool, count in refused.items():
        if surplus[tool] <= count:
            by_read_only.add(tool)
    issues = []
    for issue in grade.issues:
        if issue.kind == "extra call" and not issue.decides:
            value = f'["{issue.tool}"]'
            if issue.tool in by_read_only:
                value = '"allow_read_only"'
            issue = issue._replace(why=f"{issue.why}: {costs}; extra_calls = {value} frees it")
        issues.append(issue)
    return tuple(issues)


def unknown_tools(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield an issue for each call of a tool that is neither offered nor named in the case.

    Such an issue does not fail the run. The score and the other requirements decide how the call affects the grade."""
    tools = trajectory.offered
    if not tools or all(is_offered(record.tool, tools) for record in trajectory.calls):
        return
    names = names_of_tools(tools)
    written = tools_of((*case.expected_calls(), *case.disallowed))
    for index, record in enumerate(trajectory.calls):
        name = record.tool
        if name in written or is_offered(name, tools) or intended_tool(name, names) is not None:
            continue
        nearest = _nearest(name, names)
        why = "no tool has this name"
        if nearest is not None:
            why += f"; the nearest is {nearest}"
        yield Issue("unknown tool", why, tool=name, call=index)


def _nearest(name: str, names: list[str]) -> str | None:
    from rapidfuzz import fuzz, process  # lazy import: only calls of unknown tools need it

    found = process.extractOne(name, names, scorer=fuzz.WRatio, processor=str.lower, score_cutoff=60)
    if found is None:
        return None
    return found[0]


def run_as_json(case: Case, trajectory: Trajectory) -> dict[str, JsonValue]:
    """Return a run as the JSON that the Python function of a check receives.

    `request` is the message of the user. For a chain or a conversation, it has one line for each message. `calls` are
    in order, and a call without a result has the result `None`. `answer` is empty if the run has no final answer."""
    said = [case.request, *(step.user for step in case.steps), *(turn.text for turn in trajectory.user_turns)]
    request = "\n".join(known_values(said))
    calls = list(map(_seen_call, trajectory.calls))
    return {"case": case.id, "request": request, "calls": calls, "answer": trajectory.final_answer}


def _seen_call(record: CallRecord) -> JsonValue:
    result = is_error = None
    if record.result is not None:
        result, is_error = record.result.content, record.result.is_error
    return {
        "tool": record.tool,
        "arguments": dict(record.arguments),
        "result": result,
        "is_error": is_error,
    }


# The notation of integers, checked as by the Berkeley Function Calling Leaderboard. JSON has a single type for numbers.
# The leaderboard, however, compares the Python types of values, so 5 and 5.0 differ.


def written_integer_issues(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield an issue that fails the run, for each argument whose numbers do not have the Python type of its schema.

    Examples are 5.0 for an integer, and 5 in a list of fractions. A single 5 is accepted as a fraction. The type of an
    expected value is accepted as well as the declared type."""
    tools = {tool.name: tool.parameters for tool in trajectory.offered}
    expected = _expected_types(case)
    for index, record in enumerate(trajectory.calls):
        schema = tools.get(record.tool, {})
        for name, value in record.arguments.items():
            declared = resolved(properties_of(schema).get(name, {}), schema)
            if (why := _wrong(value, declared, schema, expected[record.tool, name])) is not None:
                got = describe_value(value)
                yield Issue("schema violation", why, tool=record.tool, call=index, argument=name, got=got, decides=True)


def _expected_types(case: Case) -> Mapping[tuple[str, str], set[type]]:
    """Return the types of the expected values by tool and argument. A list has the type of its first item."""
    types: defaultdict[tuple[str, str], set[type]] = defaultdict(set)
    alternatives = chain.from_iterable(call.alternatives for call in case.expected_calls())
    for call in alternatives:
        for name, check in (call.args or {}).items():
            for part in with_parts(check):
                match part:
                    case EqualsText(equals_text=[first, *_]) | Equals(equals=first):
                        types[call.tool, name].add(type(first))
    return types


def _wrong(value: JsonValue, schema: Schema, root: Schema, expected: Set[type]) -> str | None:
    declared = type_names(schema)
    if declared == ("integer",) and isinstance(value, float) and float not in expected:
        return "a whole number is expected, and this is written with a fraction"
    if not isinstance(value, list):
        return None
    types = set(map(type, value)) - expected
    of_items = type_names(resolved(schema.get("items", {}), root))
    if of_items == ("integer",) and float in types:
        return "whole numbers are expected in the list, and one is written with a fraction"
    if of_items == ("number",) and int in types:
        return "fractions are expected in the list, and one is written as a whole number"
    return None


def requirement_issues(
    case: Case,
    limits: Limits,
    trajectory: Trajectory,
    pairings: Sequence[CallPairing] = (),
    *,
    equal: EqualsRule = by_json,
    context: CheckContext = EMPTY_CONTEXT,
    scored: Container[str] = (),
    common_issues: Sequence[Issue] | None = None,
    invalid_arguments: InvalidArguments = "fail",
    extra_calls: ExtraCallRule | None = None,
) -> tuple[Issue, ...]:
    """Return the issues of a run that do not come from its score. Issues with `decides` fail the run.

    `pairings` come from the grader and show which calls meet expectations. `equal` is the grader's rule of equality for
    plain values in prohibitions. `scored` names the keys of a case that are part of the grader's score. A violation of
    `response_contains` or `forbidden_args` is then an issue that does not fail the run, and the grader itself reports
    calls that violate `disallowed` or `extra_calls`. `common_issues` are the issues that are the same under every
    grader, if they are already computed. `extra_calls` is the rule about extra calls, by default the rule of the case.

    Raises CheckError if a check cannot be evaluated."""
    if common_issues is None:
        common_issues = common_issues_of(case, limits, trajectory, context, invalid_arguments=invalid_arguments)
    rule = extra_calls or extra_call_rule_of(case, Grading(), trajectory)
    why = "no calls are expected" if case.expect_no_calls else rule.failure_reason
    if why is None and not case.makes_demands:
        return tuple(common_issues)
    issues: list[Issue] = []
    forbidden: set[int | None] = set()
    if case.disallowed and "disallowed" not in scored:
        issues += _forbidden_calls(case.disallowed, trajectory.calls, equal, context)
        forbidden = calls_of(issues)
    expected = case.expected_calls()
    if any(call.limits_args for call in expected):
        decides = "forbidden_args" not in scored
        issues += _forbidden_arguments(expected, trajectory.calls, pairings, is_deciding=decides)
    if why is not None and "extra_calls" not in scored:
        wanted = () if case.expect_no_calls else expected
        issues += _extra_calls(why, wanted, trajectory.calls, pairings, forbidden, rule)
    if case.steps:
        for index in calls_of_steps_without_call(case, trajectory):
            issues.append(extra_call(trajectory.calls, index, NO_CALL_OF_STEP, is_deciding=True))
    if case.duplicate_calls == "forbid":
        issues += _other_duplicates(duplicate_issues(trajectory.calls, pairings), issues)
    if case.response_contains:
        issues += _keyword_issues(case, trajectory, is_deciding="response_contains" not in scored)
    return (*issues, *common_issues)


def common_issues_of(
    case: Case,
    limits: Limits,
    trajectory: Trajectory,
    context: CheckContext = EMPTY_CONTEXT,
    metrics: Sequence[Metric] | None = None,
    checked: Sequence[CheckedCall] | None = None,
    *,
    invalid_arguments: InvalidArguments = "fail",
    whole_numbers: WholeNumbers = "as JSON",
) -> tuple[Issue, ...]:
    """Return the issues of requirements that are the same under every grader.

    `metrics` are the named checks of the answer, and `checked` are the schema checks of the calls. Pass both if they
    are already known. Raises CheckError."""
    context = _context_with_run(trajectory, case, context)
    if metrics is None:
        metrics = metrics_of(case, trajectory, context)
    if checked is None:
        checked = check_calls(trajectory)
    may_fail = expected_errors(case, trajectory, context) if case.needs_resolving else frozenset()
    found = [
        *endpoint_faults(trajectory),
        *end_issues(trajectory),
        *unknown_tools(case, trajectory),
    ]
    for issue in argument_issues(trajectory, checked, invalid_arguments):
        if issue.call not in may_fail:
            found.append(issue)
    if whole_numbers == "as BFCL":
        found += written_integer_issues(case, trajectory)
    return (
        *found,
        *error_issues(trajectory, calls_of(found) | may_fail),
        *_answer_issues(case, trajectory, context, metrics),
        *final_issues(case, trajectory, context),
        *_limit_issues(case, limits, trajectory),
    )


def _forbidden_calls(
    disallowed: Sequence[DisallowedCall], calls: Sequence[CallRecord], equal: EqualsRule, context: CheckContext
) -> Iterator[Issue]:
    def fits(call: ExpectedCall, record: CallRecord) -> bool:
        return _fits(call, record, equal, context)

    found = []
    for prohibition in disallowed:
        found += [(index, prohibition) for index in offending_calls(prohibition, calls, fits, context)]
    for index, prohibition in sorted(found, key=lambda each: each[0]):
        yield forbidden_call(prohibition, calls[index], index)


def _other_duplicates(duplicates: Iterable[Issue], issues: Iterable[Issue]) -> Iterator[Issue]:
    reported = calls_of(issues)
    for issue in duplicates:
        if issue.call not in reported:
            yield issue


def _fits(prohibition: ExpectedCall, record: CallRecord, equal: EqualsRule, context: CheckContext) -> bool:
    if not prohibition.may_be_call_of(record.tool):
        return False
    if prohibition.disallowed_arguments(record.arguments):
        return False
    # A prohibition without `args` forbids every call of the tool, even one with broken arguments.
    if prohibition.args is None:
        return True
    if record.is_broken:
        return False
    if not prohibition.args:
        return not record.arguments
    try:
        return all_hold(prohibition.args, record.arguments, equal=equal, context=context)
    except CheckError as error:
        raise CheckError(f"disallowed {prohibition.tool}: {error}") from error


def _forbidden_arguments(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing], *, is_deciding: bool
) -> Iterator[Issue]:
    for pairing in pairings:
        if pairing.expected_call is None or pairing.call is None or not pairing.same_tool:
            continue
        record = calls[pairing.call]
        wanted = expected[pairing.expected_call]
        for name in wanted.disallowed_arguments(record.arguments):
            yield Issue(
                "forbidden argument",
                "this argument must not be given",
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                argument=name,
                got=describe_value(record.arguments[name]),
                decides=is_deciding,
                because=wanted.reason_for(name),
            )


def _extra_calls(
    rule_name: str,
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    forbidden: Container[int | None],
    rule: ExtraCallRule,
) -> Iterator[Issue]:
    """Yield an issue for each call that meets no expectation, except for forbidden calls.

    The reasons of the issues name `rule_name`."""
    accounted: set[int | None] = set()
    met: set[int] = set()
    for pairing in pairings:
        # `dimensions` as published may pair one call with several expected calls. The call meets only the first of
        # them.
        if pairing.same_tool and pairing.expected_call is not None and pairing.call not in accounted:
            accounted.add(pairing.call)
            met.add(pairing.expected_call)
    # A call at the wrong position counts for an unmet expected call of its tool.
    elsewhere: Counter[str] = Counter()
    for row, call in enumerate(expected):
        if row not in met:
            elsewhere[call.tool] += 1
    for index, record in enumerate(calls):
        if index in accounted or index in forbidden or rule.is_free(index, record.tool):
            continue
        named = record.tool if elsewhere[record.tool] else ANY_TOOL
        if elsewhere[named]:
            elsewhere[named] -= 1
        else:
            yield extra_call(calls, index, rule_name, is_deciding=True)


def _keyword_issues(case: Case, trajectory: Trajectory, *, is_deciding: bool) -> Iterator[Issue]:
    for keyword in case.missing_keywords(trajectory.final_answer):
        expected = f"containing {describe_value(keyword)}"
        yield _answer_issue(expected, trajectory, "not in the final answer", is_deciding=is_deciding)


def metrics_of(case: Case, trajectory: Trajectory, context: CheckContext = EMPTY_CONTEXT) -> tuple[Metric, ...]:
    """Return the values of the named checks of the final answer.

    Raises CheckError if a check cannot be evaluated."""
    if not isinstance(case.response, dict):
        return ()
    answer, context = trajectory.final_answer, _context_with_run(trajectory, case, context)
    return tuple(_metric(name, check, answer, context) for name, check in case.response.items())


def _metric(name: str, check: Check, answer: str, context: CheckContext) -> Metric:
    verdict = _answer_verdict(f"response.{name}", check, answer, context)
    scale = number = None
    if isinstance(check, Judged) and check.scale is not None:
        scale, number = check.scale, verdict.number
    return Metric(name, verdict.score, verdict.holds, number, scale, describe(check), verdict.note)


def _context_with_run(trajectory: Trajectory, case: Case, context: CheckContext) -> CheckContext:
    if context.run is None and any(asks_for_run(check) for _, check in case.answer_checks):
        return replace(context, run=run_as_json(case, trajectory))
    return context


def _answer_issues(
    case: Case, trajectory: Trajectory, context: CheckContext, metrics: Sequence[Metric]
) -> Iterator[Issue]:
    if isinstance(case.response, dict):
        for metric in metrics:
            if not metric.holds:
                decides = case.response[metric.name].required is not False
                expected, why = f"{metric.name}: {metric.expected}", f"{metric.name}: {metric.why}"
                because = case.response[metric.name].because
                yield _answer_issue(expected, trajectory, why, is_deciding=decides)._replace(because=because)
    elif case.response is not None:
        verdict_note = _answer_check(case.response, trajectory.final_answer, context)
        if verdict_note is not None:
            issue = _answer_issue(describe(case.response), trajectory, verdict_note)
            yield issue._replace(because=case.response.because)


def _answer_check(check: Check, answer: str, context: CheckContext) -> str | None:
    # Models may end answers with blank lines, so a plain text is compared with the trimmed answer.
    if isinstance(check.bare_value, str):
        if check.bare_value.strip() == answer.strip():
            return None
        return "not the expected text"
    verdict = _answer_verdict("response", check, answer, context)
    if verdict.holds:
        return None
    return verdict.note


def _answer_verdict(key: str, check: Check, answer: str, context: CheckContext) -> CheckVerdict:
    # A function that receives the run is called even without an answer, because it may judge the whole run.
    given = bool(answer) or asks_for_run(check)
    try:
        return evaluate(check, answer, given, context=context)
    except CheckError as error:
        raise CheckError(f"{key}: {error}") from error


def _answer_issue(expected: str, trajectory: Trajectory, reason: str, *, is_deciding: bool = True) -> Issue:
    answer, finish = trajectory.final_answer, trajectory.finish
    got = describe_value(answer) if answer else unfinished_answer(trajectory) or "no final answer"
    if not answer and finish is not None and finish.reason == "step failed":
        reason = "none was requested: the chain stopped at a failed step"
    return Issue("response", reason, expected=expected, got=got, decides=is_deciding)


def latency_issue(limits: Limits, latency_ms: float) -> Issue:
    """Return the issue of a run that took longer than `max_latency_ms`.

    `latency_ms` is the time of the run, which each grader measures in its own way."""
    return Issue(
        "latency exceeded",
        "the run took longer than its budget",
        expected=f"at most {duration_text(limits.max_latency_ms)}",
        got=duration_text(latency_ms),
    )


def _limit_issues(case: Case, limits: Limits, trajectory: Trajectory) -> Iterator[Issue]:
    finish = trajectory.finish
    if finish is not None and finish.reason == "sent too much":
        yield Issue("sent too much", finish.error or "", decides=True)
    made, most_calls = len(trajectory.calls), limits.max_tool_calls
    if case.steps:
        # A chain may make one call for each expected call, even if the limit is lower.
        most_calls = max(most_calls, len(case.expected_calls()))
    if case.conversation is not None:
        made = max([len(calls) for calls in _calls_of_turns(trajectory).values()], default=0)
    if made > most_calls:
        where = "in one turn " if case.conversation is not None else ""
        yield Issue(
            "over calling",
            f"more calls {where}than the limit",
            expected=f"at most {most_calls}",
            got=str(made),
        )
    if case.conversation is not None:
        yield from _end_of_conversation(case.conversation, limits, trajectory)
        return
    # A case with one round and no check of the answer tests only the calls. It needs no final answer.
    is_decision = limits.max_rounds == 1 and not case.steps and not case.checks_answer
    if not is_decision and finish is not None and finish.reason in ("decided", "rounds exhausted"):
        yield Issue(
            "rounds exhausted",
            "the model still called tools in its last allowed round",
            expected=f"an answer within {counted(limits.max_rounds, 'round')}",
        )


def _calls_of_turns(trajectory: Trajectory) -> Mapping[int | None, list[CallRecord]]:
    turns: defaultdict[int | None, list[CallRecord]] = defaultdict(list)
    for round_ in trajectory.rounds:
        turns[round_.turn] += round_.calls
    return turns


def longest_turn_ms(trajectory: Trajectory) -> float:
    """Return the longest model latency of a turn of a conversation, in milliseconds."""
    longest = 0.0
    times: dict[int | None, float] = {}
    for round_ in trajectory.rounds:
        times[round_.turn] = times.get(round_.turn, 0.0) + (round_.latency_ms or 0.0)
        longest = max(longest, times[round_.turn])
    return longest


def _end_of_conversation(user: UserTable, limits: Limits, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield an issue if a conversation ended without an answer, without a turn left, or because the user gave up."""
    match trajectory.finish_reason:
        case "rounds exhausted":
            why = "the model still called tools in the last allowed round of a turn"
            expected = f"an answer within {counted(limits.max_rounds, 'round')}"
            yield Issue("rounds exhausted", why, expected=expected, decides=True)
        case "turns exhausted":
            why = "the user still had something to say after the last allowed turn"
            expected = f"an end within {counted(user.max_turns, 'turn')}"
            yield Issue("turns exhausted", why, expected=expected, decides=True)
        case "user gave up":
            ended = trajectory.user_turns[-1].ended
            why = ended.why if ended is not None and ended.why else "the user left without its goal"
            yield Issue("user gave up", why)
