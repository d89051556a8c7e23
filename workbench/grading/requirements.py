"""What decides or informs beside the score, under every grader: prohibitions, extra calls, the final answer, limits."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from workbench.checks.describe import cut, describe, describe_value
from workbench.checks.equality import EqualsRule, by_json
from workbench.checks.errors import CheckError
from workbench.checks.evaluate import NOTHING_OUTSIDE, Outside, all_hold, evaluate
from workbench.grading.findings import describe_call, describe_expected, extra_call
from workbench.grading.grade import CallPairing, Issue
from workbench.grading.tool_names import same_tool
from workbench.suite.checks import Check, Equals
from workbench.suite.model import Case, ExpectedCall
from workbench.suite.settings import Limits
from workbench.trajectory.trajectory import CallRecord, Trajectory


def requirement_issues(
    case: Case,
    limits: Limits,
    trajectory: Trajectory,
    pairings: Sequence[CallPairing] = (),
    *,
    equal: EqualsRule = by_json,
    outside: Outside = NOTHING_OUTSIDE,
) -> tuple[Issue, ...]:
    """Everything that is wrong apart from the score. Issues with `decides` make the status failed.

    `pairings` are those of the grader that decides: they say which calls are accounted for. `equal` is its rule of
    equality for plain values in prohibitions. Raises CheckError when a check cannot be evaluated.
    """
    calls = trajectory.calls
    forbidden = dict(_forbidden_calls(case.disallowed, calls, equal, outside))
    return (
        *(issue for issues in forbidden.values() for issue in issues),
        *_forbidden_arguments(case, calls, pairings),
        *_extra_calls(case, calls, pairings, forbidden.keys()),
        *_broken_arguments(calls),
        *_answer_issues(case, trajectory.final_answer, outside),
        *_limit_issues(limits, trajectory),
    )


def _forbidden_calls(
    disallowed: Sequence[ExpectedCall], calls: Sequence[CallRecord], equal: EqualsRule, outside: Outside
) -> Iterator[tuple[int, list[Issue]]]:
    for index, record in enumerate(calls):
        issues = [
            Issue(
                "forbidden call",
                "this call must not be made",
                tool=record.tool,
                call=index,
                expected=f"no {describe_expected(prohibition)}",
                got=describe_call(record),
                decides=True,
            )
            for prohibition in disallowed
            if _fits(prohibition, record, equal, outside)
        ]
        if issues:
            yield index, issues


def _fits(prohibition: ExpectedCall, record: CallRecord, equal: EqualsRule, outside: Outside) -> bool:
    """Whether a call is one that a prohibition means: the tool, and all its checks on what the model really wrote."""
    if not same_tool(prohibition.tool, record.tool):
        return False
    if any(name in record.arguments for name in prohibition.forbidden_args):
        return False
    if prohibition.args is None:
        return True
    if not prohibition.args:
        return not record.arguments
    try:
        return all_hold(prohibition.args, record.arguments, equal=equal, outside=outside)
    except CheckError as error:
        raise CheckError(f"disallowed {prohibition.tool}: {error}") from error


def _forbidden_arguments(case: Case, calls: Sequence[CallRecord], pairings: Sequence[CallPairing]) -> Iterator[Issue]:
    expected = tuple(case.expected_calls())
    for pairing in pairings:
        if pairing.expected_call is None or pairing.call is None or not pairing.same_tool:
            continue
        record = calls[pairing.call]
        for name in expected[pairing.expected_call].forbidden_args:
            if name in record.arguments:
                yield Issue(
                    "forbidden argument",
                    "this argument must not be given",
                    tool=record.tool,
                    call=pairing.call,
                    expected_call=pairing.expected_call,
                    argument=name,
                    got=describe_value(record.arguments[name]),
                    decides=True,
                )


def _extra_calls(
    case: Case, calls: Sequence[CallRecord], pairings: Sequence[CallPairing], forbidden: Container[int]
) -> Iterator[Issue]:
    """Calls that no expectation accounts for, where those are wrong; a forbidden call is not also an extra one."""
    if not case.expect_no_calls and case.extra_calls != "forbid":
        return
    why = "no calls are expected" if case.expect_no_calls else "extra calls are forbidden"
    accounted = {pairing.call for pairing in pairings if pairing.expected_call is not None and pairing.same_tool}
    for index in range(len(calls)):
        if index not in accounted and index not in forbidden:
            yield extra_call(calls, index, why, decides=True)


def _broken_arguments(calls: Sequence[CallRecord]) -> Iterator[Issue]:
    for index, record in enumerate(calls):
        if record.call.problem is not None or not record.complete:
            yield Issue(
                "broken arguments",
                record.call.problem or "the arguments never became complete",
                tool=record.tool,
                call=index,
                expected="a JSON object",
                got=cut(record.call.raw or ""),
            )


def _answer_issues(case: Case, answer: str, outside: Outside) -> Iterator[Issue]:
    folded = answer.casefold()
    for keyword in case.response_contains:
        if keyword.casefold() not in folded:
            yield _answer_issue(f"containing {describe_value(keyword)}", answer, "not in the final answer")
    if case.response is not None:
        verdict_note = _answer_check(case.response, answer, outside)
        if verdict_note is not None:
            yield _answer_issue(describe(case.response), answer, verdict_note)


def _answer_check(check: Check, answer: str, outside: Outside) -> str | None:
    """Why the final answer does not meet its check; `None` when it does. A plain text is compared trimmed."""
    if isinstance(check, Equals) and check.plain and isinstance(check.equals, str):
        return None if check.equals.strip() == answer.strip() else "not the expected text"
    try:
        verdict = evaluate(check, answer, bool(answer), outside=outside)
    except CheckError as error:
        raise CheckError(f"response: {error}") from error
    return None if verdict.holds else verdict.note


def _answer_issue(expected: str, answer: str, why: str) -> Issue:
    got = describe_value(answer) if answer else "no final answer"
    return Issue("response", why, expected=expected, got=got, decides=True)


def _limit_issues(limits: Limits, trajectory: Trajectory) -> Iterator[Issue]:
    latency_ms = trajectory.model_latency_ms
    if latency_ms > limits.max_latency_ms:
        yield Issue(
            "latency exceeded",
            "the model took longer than its budget",
            expected=f"at most {limits.max_latency_ms:g} ms",
            got=f"{latency_ms:.0f} ms",
        )
    if len(trajectory.calls) > limits.max_tool_calls:
        yield Issue(
            "over calling",
            "more calls than the limit",
            expected=f"at most {limits.max_tool_calls}",
            got=str(len(trajectory.calls)),
        )
    if trajectory.finish is not None and trajectory.finish.reason == "rounds exhausted":
        yield Issue(
            "rounds exhausted",
            "the model still called tools in its last allowed round",
            expected=f"an answer within {limits.max_rounds} rounds",
        )
