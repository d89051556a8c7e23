"""Requirements besides the score, under every grader: prohibitions, extra calls, the final answer, limits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import replace

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
from workbench.checks.values import canonical_text, describe_value
from workbench.dataclasses import ByIdentity
from workbench.grading.endpoint_faults import endpoint_faults
from workbench.grading.extra_calls import ExtraCallRule, rule_of
from workbench.grading.grade import CallPairing, Grade, Issue, Metric
from workbench.grading.pairing import calls_of_silent_steps, describe_call, describe_expected, extra_call
from workbench.grading.text_calls import meant_tool
from workbench.grading.valid_arguments import (
    CheckedCall,
    argument_issues,
    check_calls,
    end_issues,
    error_issues,
    unfinished,
)
from workbench.numerals import counted, duration_text
from workbench.suite.model import ANY_TOOL, Case, ExpectedCall, InvalidArguments, WholeNumbers
from workbench.suite.settings import Grading, Limits
from workbench.suite.tool_names import is_meant, is_offered
from workbench.trajectory.events import JsonValue
from workbench.trajectory.json_schema import Schema, properties_of, resolved, type_names
from workbench.trajectory.trajectory import CallRecord, Trajectory

# Names the calls of tools that do not exist.


def unknown_tools(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield the calls of names that no offered tool has, where the case does not name them either. They decide nothing
    by themselves: the score and the requirements say what such a call costs."""
    tools = trajectory.start.tools if trajectory.start is not None else ()
    if not tools or all(is_offered(record.tool, tools) for record in trajectory.calls):
        return

    names = [tool.name for tool in tools]
    written = {call.tool for call in (*case.expected_calls(), *case.disallowed)}
    for index, record in enumerate(trajectory.calls):
        name = record.tool
        if name in written or is_offered(name, tools) or meant_tool(name, names) is not None:
            continue
        nearest = _nearest(name, names)
        hint = f"; the nearest is {nearest}" if nearest is not None else ""
        yield Issue("unknown tool", f"no tool has this name{hint}", tool=name, call=index)


def _nearest(name: str, names: list[str]) -> str | None:
    """Return the name that is most like another one; `None` where none is like it."""
    from rapidfuzz import fuzz, process  # on use: most runs call tools that exist

    found = process.extractOne(name, names, scorer=fuzz.WRatio, processor=str.lower, score_cutoff=60)
    return found[0] if found is not None else None


# A run as the Python function of a check sees it: the request, the calls and the answer, as JSON.


def seen_run(case: Case, trajectory: Trajectory) -> dict[str, JsonValue]:
    """Returns a run as JSON. `request` is what the user said, for a chain what was said at its steps, one after the
    other; `calls` are in their order, with results as far as there were any; `answer` is empty where there was none."""
    said = [case.user, *(step.user for step in case.steps)]
    return {
        "case": case.id,
        "request": "\n".join(text for text in said if text is not None),
        "calls": [_seen_call(record) for record in trajectory.calls],
        "answer": trajectory.final_answer,
    }


def _seen_call(record: CallRecord) -> JsonValue:
    result = record.result
    return {
        "tool": record.tool,
        "arguments": dict(record.arguments),
        "result": result.content if result is not None else None,
        "is_error": result.is_error if result is not None else None,
    }


# Checks how whole numbers are written, as the Berkeley Function Calling Leaderboard does: JSON has one type of
# numbers, the leaderboard's checker those of Python.


def written_integer_issues(case: Case, trajectory: Trajectory) -> Iterator[Issue]:
    """Yield a deciding issue for each argument whose numbers are of another type in Python than its schema declares:
    5.0 for an integer, and 5 in a list of fractions. Alone, 5 is also a fraction. The type of an expected value is
    accepted beside the declared one."""
    tools = {tool.name: tool.parameters for tool in trajectory.start.tools} if trajectory.start is not None else {}
    expected = _expected_types(case)
    for index, record in enumerate(trajectory.calls):
        schema = tools.get(record.tool, {})
        for name, value in record.arguments.items():
            declared = resolved(properties_of(schema).get(name, {}), schema)
            if (why := _wrong(value, declared, schema, expected[record.tool, name])) is not None:
                got = describe_value(value)
                yield Issue("schema violation", why, tool=record.tool, call=index, argument=name, got=got, decides=True)


def _expected_types(case: Case) -> Mapping[tuple[str, str], set[type]]:
    """Return the types of the values that the case expects of each argument; a list has the type of its first item."""
    types: defaultdict[tuple[str, str], set[type]] = defaultdict(set)
    for call in case.expected_calls():
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
    types = {type(item) for item in value} - expected
    of_items = type_names(resolved(schema.get("items", {}), root))
    if of_items == ("integer",) and float in types:
        return "whole numbers are expected in the list, and one is written with a fraction"
    if of_items == ("number",) and int in types:
        return "fractions are expected in the list, and one is written as a whole number"
    return None


NO_CALL_OF_STEP = "the step expects no call"
"""Why a call is wrong that answers a step of a chain."""


def requirement_issues(
    case: Case,
    limits: Limits,
    trajectory: Trajectory,
    pairings: Sequence[CallPairing] = (),
    *,
    equal: EqualsRule = by_json,
    context: CheckContext = EMPTY_CONTEXT,
    scored: Container[str] = (),
    of_any_grader: Sequence[Issue] | None = None,
    invalid_arguments: InvalidArguments = "fail",
    extra_calls: ExtraCallRule | None = None,
) -> tuple[Issue, ...]:
    """Returns everything that is wrong apart from the score. Issues with `decides` make the status failed.

    `pairings` are those of the deciding grader and show which calls are accounted for; `equal` is its rule of equality
    for plain values in prohibitions. `scored` names keys of the case that are part of its score (`response_contains`,
    `forbidden_args`): a violation is an issue, but decides nothing by itself. With `disallowed` or `extra_calls` among
    them, the grader has already reported the calls that violate those. `of_any_grader` are the issues that are the same
    under every grader, where they are known. `extra_calls` is the rule about surplus calls, else the case's own is.

    Raises CheckError when a check cannot be evaluated.
    """
    if of_any_grader is None:
        of_any_grader = issues_of_any_grader(case, limits, trajectory, context, invalid_arguments=invalid_arguments)
    rule = extra_calls or rule_of(case, Grading(), trajectory)
    why = "no calls are expected" if case.expect_no_calls else rule.why_wrong
    if why is None and not _makes_demands(case):
        return tuple(of_any_grader)
    issues: list[Issue] = []
    forbidden: set[int | None] = set()
    if case.disallowed and "disallowed" not in scored:
        issues += _forbidden_calls(case.disallowed, trajectory.calls, equal, context)
        forbidden = {issue.call for issue in issues}
    expected = case.expected_calls()
    if any(call.limits_args for call in expected):
        decides = "forbidden_args" not in scored
        issues += _forbidden_arguments(expected, trajectory.calls, pairings, decides=decides)
    if why is not None and "extra_calls" not in scored:
        wanted = () if case.expect_no_calls else expected
        issues += _extra_calls(why, wanted, trajectory.calls, pairings, forbidden, rule)
    for index in calls_of_silent_steps(case, trajectory) if case.steps else ():
        issues.append(extra_call(trajectory.calls, index, NO_CALL_OF_STEP, decides=True))
    if case.response_contains:
        issues += _keyword_issues(case, trajectory, decides="response_contains" not in scored)
    return (*issues, *of_any_grader)


_makes_demands: ByIdentity[Case, bool] = ByIdentity(
    lambda case: bool(
        case.disallowed
        or case.response_contains
        or any(step.tool is None for step in case.steps)
        or any(call.limits_args for call in case.expected_calls())
    )
)
"""Returns whether the case has requirements besides the score that depend on the grader."""


def issues_of_any_grader(
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
    """Return the issues besides the score that are the same under every grader. `metrics` are those of the answer and
    `checked` the calls checked against their schemas, where they are known. Raises CheckError."""
    context = _seeing(trajectory, case, context)
    if metrics is None:
        metrics = metrics_of(case, trajectory, context)
    if checked is None:
        checked = check_calls(trajectory)
    found = (
        *endpoint_faults(trajectory),
        *end_issues(trajectory),
        *unknown_tools(case, trajectory),
        *argument_issues(trajectory, checked, invalid_arguments),
        *(written_integer_issues(case, trajectory) if whole_numbers == "as BFCL" else ()),
    )
    return (
        *found,
        *error_issues(trajectory, {issue.call for issue in found}),
        *_answer_issues(case, trajectory, context, metrics),
        *_limit_issues(case, limits, trajectory),
    )


def _forbidden_calls(
    disallowed: Sequence[ExpectedCall], calls: Sequence[CallRecord], equal: EqualsRule, context: CheckContext
) -> Iterator[Issue]:
    for index, record in enumerate(calls):
        for prohibition in disallowed:
            if _fits(prohibition, record, equal, context):
                yield forbidden_call(prohibition, record, index)


def forbidden_call(prohibition: ExpectedCall, record: CallRecord, index: int) -> Issue:
    """Returns the issue of a call, by its index, that violates a prohibition."""
    return Issue(
        "forbidden call",
        "this call must not be made",
        tool=record.tool,
        call=index,
        expected=f"no {describe_expected(prohibition)}",
        got=describe_call(record),
        decides=True,
    )


def _fits(prohibition: ExpectedCall, record: CallRecord, equal: EqualsRule, context: CheckContext) -> bool:
    """Returns whether a call violates a prohibition: its tool, and all its checks on what the model really wrote."""
    if not is_meant(prohibition, record.tool):
        return False
    if prohibition.unwanted(record.arguments):
        return False
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


def missing_keywords(case: Case, answer: str) -> list[str]:
    """Returns the keywords of `response_contains` that the final answer lacks."""
    text = keyword_text(answer)
    return [keyword for keyword in case.response_contains if keyword_text(keyword) not in text]


def keyword_text(text: str) -> str:
    """Returns a text in the form in which keywords are searched: in NFC and lower case, so that "ß" is not "ss"."""
    return canonical_text(canonical_text(text).lower())


def _forbidden_arguments(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing], *, decides: bool
) -> Iterator[Issue]:
    for pairing in pairings:
        if pairing.expected_call is None or pairing.call is None or not pairing.same_tool:
            continue
        record = calls[pairing.call]
        for name in expected[pairing.expected_call].unwanted(record.arguments):
            yield Issue(
                "forbidden argument",
                "this argument must not be given",
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                argument=name,
                got=describe_value(record.arguments[name]),
                decides=decides,
            )


def _extra_calls(
    why: str,
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    forbidden: Container[int | None],
    rule: ExtraCallRule,
) -> Iterator[Issue]:
    """Returns the issues of calls that no expectation accounts for, where those are wrong; a forbidden call is not also
    an extra one.

    A call that is only out of place is accounted for by the expected call of its tool that has no other.
    """
    accounted: set[int | None] = set()
    met: set[int] = set()
    for pairing in pairings:
        # Several expected calls may be compared with one.
        if pairing.same_tool and pairing.expected_call is not None and pairing.call not in accounted:
            accounted.add(pairing.call)
            met.add(pairing.expected_call)
    elsewhere = Counter([call.tool for row, call in enumerate(expected) if row not in met])
    for index, record in enumerate(calls):
        if index in accounted or index in forbidden or rule.frees(index, record.tool):
            continue
        named = record.tool if elsewhere[record.tool] else ANY_TOOL
        if elsewhere[named]:
            elsewhere[named] -= 1
        else:
            yield extra_call(calls, index, why, decides=True)


def _keyword_issues(case: Case, trajectory: Trajectory, *, decides: bool) -> Iterator[Issue]:
    for keyword in missing_keywords(case, trajectory.final_answer):
        expected = f"containing {describe_value(keyword)}"
        yield _answer_issue(expected, trajectory, "not in the final answer", decides=decides)


def metrics_of(case: Case, trajectory: Trajectory, context: CheckContext = EMPTY_CONTEXT) -> tuple[Metric, ...]:
    """Returns the values of the named checks of the final answer. Raises CheckError."""
    if not isinstance(case.response, dict):
        return ()
    answer, context = trajectory.final_answer, _seeing(trajectory, case, context)
    return tuple(_metric(name, check, answer, context) for name, check in case.response.items())


def _metric(name: str, check: Check, answer: str, context: CheckContext) -> Metric:
    verdict = _answer_verdict(f"response.{name}", check, answer, context)
    scale = check.scale if isinstance(check, Judged) else None
    number = verdict.number if scale is not None else None
    return Metric(name, verdict.score, verdict.holds, number, scale, describe(check), verdict.note)


def _seeing(trajectory: Trajectory, case: Case, context: CheckContext) -> CheckContext:
    """Returns the context with the run, where a Python function wants to see it."""
    wants = context.run is None and any(asks_for_run(check) for _, check in case.answer_checks)
    return replace(context, run=seen_run(case, trajectory)) if wants else context


def _answer_issues(
    case: Case, trajectory: Trajectory, context: CheckContext, metrics: Sequence[Metric]
) -> Iterator[Issue]:
    if isinstance(case.response, dict):
        for metric in metrics:
            if not metric.holds:
                decides = case.response[metric.name].required is not False
                expected, why = f"{metric.name}: {metric.expected}", f"{metric.name}: {metric.why}"
                yield _answer_issue(expected, trajectory, why, decides=decides)
    elif case.response is not None:
        verdict_note = _answer_check(case.response, trajectory.final_answer, context)
        if verdict_note is not None:
            yield _answer_issue(describe(case.response), trajectory, verdict_note)


def _answer_check(check: Check, answer: str, context: CheckContext) -> str | None:
    """Returns why the final answer does not meet its check; `None` when it does. A plain text is compared trimmed."""
    if isinstance(check.bare_value, str):
        return None if check.bare_value.strip() == answer.strip() else "not the expected text"
    verdict = _answer_verdict("response", check, answer, context)
    return None if verdict.holds else verdict.note


def _answer_verdict(key: str, check: Check, answer: str, context: CheckContext) -> CheckVerdict:
    """Raises CheckError. A function that sees the run is asked about one without an answer too."""
    try:
        return evaluate(check, answer, bool(answer) or asks_for_run(check), context=context)
    except CheckError as error:
        raise CheckError(f"{key}: {error}") from error


def _answer_issue(expected: str, trajectory: Trajectory, why: str, *, decides: bool = True) -> Issue:
    answer, finish = trajectory.final_answer, trajectory.finish
    got = describe_value(answer) if answer else unfinished(trajectory) or "no final answer"
    if not answer and finish is not None and finish.reason == "step failed":
        why = "none was requested: the chain stopped at a failed step"
    return Issue("response", why, expected=expected, got=got, decides=decides)


def latency_issue(limits: Limits, latency_ms: float) -> Issue:
    """Returns the issue of a run that took longer than `max_latency_ms`, by the grader's measure of time."""
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
    # A chain that is longer than the limit needs more rounds by itself.
    most_calls = max(limits.max_tool_calls, len(case.expected_calls()) if case.steps else 0)
    if len(trajectory.calls) > most_calls:
        yield Issue(
            "over calling",
            "more calls than the limit",
            expected=f"at most {most_calls}",
            got=str(len(trajectory.calls)),
        )
    is_decision = limits.max_rounds == 1 and not case.steps and not case.checks_answer
    if (
        not is_decision
        and trajectory.finish is not None
        and trajectory.finish.reason in ("decided", "rounds exhausted")
    ):
        yield Issue(
            "rounds exhausted",
            "the model still called tools in its last allowed round",
            expected=f"an answer within {counted(limits.max_rounds, 'round')}",
        )


# Required arguments: they must hold, whatever the score of the run is.

_EVERY: frozenset[str] = frozenset()


def with_required(case: Case, grade: Grade) -> tuple[Issue, ...]:
    """Returns the issues of a grade, where issues about a required argument that does not hold decide, and the pairings
    with each verdict marked as required or not.

    A call that was not made fulfils none of its arguments. Where a rule of `critics` decided before anything was
    scored, the run has already failed without them.
    """
    if not grade.issues or not grade.numbers:
        return grade.issues
    broken = _broken(case, grade)
    return tuple(_deciding(issue, broken) for issue in grade.issues) if broken else grade.issues


def _broken(case: Case, grade: Grade) -> Mapping[int, frozenset[str]]:
    """Returns the required arguments that do not hold, by expected call; without names where the call was not made."""
    broken: dict[int, frozenset[str]] = {}
    for line in grade.pairings:
        if line.expected_call is None:
            continue
        names = frozenset(verdict.argument for verdict in line.arguments if verdict.required and not verdict.holds)
        if line.call is None and (names or _requires_some(case, line.expected_call)):
            broken[line.expected_call] = _EVERY
        elif names:
            broken[line.expected_call] = names
    return broken


def _requires_some(case: Case, expected_call: int) -> bool:
    checks = case.expected_calls()[expected_call].args or {}
    return any(check.required and not check.optional for check in checks.values())


def _deciding(issue: Issue, broken: Mapping[int, frozenset[str]]) -> Issue:
    names = broken.get(issue.expected_call) if issue.expected_call is not None else None
    if names is None or (issue.argument is not None and issue.argument not in names):
        return issue
    return issue._replace(decides=True)
