"""Issues of the pairings of a grade: wrong tools, missing and extra calls, wrong and missing arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from workbench.checks.check import Check, describe
from workbench.checks.values import cut_text, describe_value
from workbench.dataclasses import cached_by_identity
from workbench.grading.grade import ArgumentVerdict, CallPairing, Issue, IssueKind, call_text
from workbench.grading.scoring import ROUNDING_SLACK, earned_share_text
from workbench.numerals import counted, score_text
from workbench.suite.expected_calls import DisallowedCall, ExpectedCall
from workbench.suite.model import Step
from workbench.trajectory.trajectory import CallRecord


def pairing_issues(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    *,
    extras_matter: bool = False,
    closed: bool = False,
) -> tuple[Issue, ...]:
    """Return the issues that the pairings of a grade show.

    Each issue names the call, the expected call and the argument concerned. With `extras_matter`, every extra call is
    an issue. With `closed`, every argument that the expected call does not list is an issue, unless it has a
    verdict."""
    return tuple(_findings(expected, calls, pairings, extras_matter, closed))


def _findings(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    extras: bool,
    closed: bool,
) -> Iterator[Issue]:
    expected_elsewhere, called_elsewhere = _out_of_place(expected, calls, pairings)
    for pairing in pairings:
        if pairing.expected_call is None:
            if pairing.call is not None and extras:
                yield extra_call(calls, pairing.call, "it matches no expected call")
            continue
        wanted = expected[pairing.expected_call]
        if pairing.call is None:
            yield missing_call(wanted, pairing.expected_call)
            continue
        record = calls[pairing.call]
        if pairing.same_tool:
            yield from _argument_findings(wanted, record, pairing, closed)
        else:
            # Two swapped tools are one mistake of order, not two wrong tools.
            misplaced = wanted.tool in called_elsewhere and record.tool in expected_elsewhere
            yield _other_tool(wanted, record, pairing, is_misplaced=misplaced)


def _other_tool(expected_call: ExpectedCall, record: CallRecord, pairing: CallPairing, *, is_misplaced: bool) -> Issue:
    kind: IssueKind = "wrong tool"
    why = f"{expected_call.tool_text} was expected"
    if is_misplaced:
        kind = "wrong order"
        why += f" here, and {record.tool} elsewhere"
    return Issue(
        kind,
        why,
        tool=record.tool,
        call=pairing.call,
        expected_call=pairing.expected_call,
        expected=describe_expected(expected_call),
        got=describe_call(record),
    )


def _argument_findings(
    expected_call: ExpectedCall, record: CallRecord, pairing: CallPairing, closed: bool
) -> Iterator[Issue]:
    for verdict in pairing.arguments:
        if verdict.holds is None or (verdict.holds and verdict.score >= verdict.weight - ROUNDING_SLACK):
            continue
        # `requirements` reports a forbidden argument because it is an issue under every grader.
        if not verdict.given or not expected_call.disallowed_arguments([verdict.argument]):
            yield argument_issue(expected_call, record, pairing, verdict)
    if closed and expected_call.args is not None and not record.arguments.keys() <= expected_call.args.keys():
        yield from _without_verdict(expected_call, record, pairing)


def _out_of_place(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing]
) -> tuple[set[str], set[str]]:
    wanted: set[str] = set()
    called: set[str] = set()
    for pairing in pairings:
        if pairing.same_tool or pairing.prohibition is not None:
            continue
        if pairing.expected_call is not None:
            wanted.add(expected[pairing.expected_call].tool)
        if pairing.call is not None:
            called.add(calls[pairing.call].tool)
    return wanted, called


def argument_issue(expected: ExpectedCall, record: CallRecord, pairing: CallPairing, verdict: ArgumentVerdict) -> Issue:
    if not verdict.listed:
        return _unexpected(expected, record, pairing, verdict.argument)
    kind: IssueKind = "missing argument"
    why = verdict.why
    # A value can come from the default in the tool's schema without being given.
    shown = bool(verdict.holds) or verdict.given or verdict.got is not None
    if verdict.holds:
        kind, why = "partial credit", f"holds, but earns {score_text(verdict.score)} of {score_text(verdict.weight)}"
    else:
        if shown:
            kind = "wrong argument"
        if verdict.counted and (part := earned_share_text(verdict.score, verdict.weight)):
            why += f"; earns {part} of its weight"
    return Issue(
        kind,
        why,
        tool=record.tool,
        call=pairing.call,
        expected_call=pairing.expected_call,
        argument=verdict.argument,
        expected=verdict.expected,
        got=describe_value(verdict.got) if shown else None,
        because=expected.reason_for(verdict.argument),
    )


def _without_verdict(expected: ExpectedCall, record: CallRecord, pairing: CallPairing) -> Iterator[Issue]:
    named = {*(expected.args or {}), *expected.disallowed_arguments(record.arguments)}
    named.update(verdict.argument for verdict in pairing.arguments)
    for name in record.arguments:
        if name not in named:
            yield _unexpected(expected, record, pairing, name)


def _unexpected(expected: ExpectedCall, record: CallRecord, pairing: CallPairing, argument: str) -> Issue:
    return Issue(
        "unexpected argument",
        "the expected call does not list it" if expected.args else "no arguments are expected",
        tool=record.tool,
        call=pairing.call,
        expected_call=pairing.expected_call,
        argument=argument,
        got=describe_value(record.arguments[argument]),
    )


def missing_call(expected: ExpectedCall, index: int) -> Issue:
    """Return the issue of an expected call that was not made. `index` is its index in the case."""
    return Issue(
        "missing call",
        "no call matches it",
        tool=expected.tool_text,
        expected_call=index,
        expected=describe_expected(expected),
    )


def forbidden_call(prohibition: DisallowedCall, record: CallRecord, index: int) -> Issue:
    """Return the issue of a call that violates a prohibition. `index` is the call's index in `Trajectory.calls`."""
    why = "this call must not be made"
    if condition := condition_text(prohibition):
        why = f"this call must not be made {condition}"
    return Issue(
        "forbidden call",
        why,
        tool=record.tool,
        call=index,
        expected=f"no {describe_expected(prohibition)}",
        got=describe_call(record),
        decides=True,
        because=prohibition.because,
    )


def condition_text(prohibition: DisallowedCall) -> str:
    """Return the condition of a prohibition in words, or an empty text if it has none.

    Example: `before verify_customer(…) has returned no error`."""
    parts = []
    for key, other in prohibition.conditions:
        text = f"{key} {describe_expected(other)}"
        if other.checks_result:
            text += f" has returned {expected_result(other.result, other.is_error)}"
        parts.append(text)
    return " and ".join(parts)


def outcomes_text(pairings: Iterable[CallPairing], as_expected: Collection[str]) -> str:
    """Return how many pairings have each outcome, wrong outcomes first: `1 × missing; 2 × exact`."""
    counts: dict[str, int] = {}
    for pairing in pairings:
        counts[pairing.outcome] = counts.get(pairing.outcome, 0) + 1
    wrong_first = sorted(counts.items(), key=lambda found: found[0] in as_expected)
    return "; ".join(f"{number} × {outcome}" for outcome, number in wrong_first)


ALLOWED_EXTRA_CALL = "extra, allowed"
"""The outcome of a surplus call that costs nothing."""


def extra_call(calls: Sequence[CallRecord], index: int, rule: str, *, is_deciding: bool = False) -> Issue:
    """Return the issue of a call that meets no expectation. `rule` names the rule that the call breaks."""
    record = calls[index]
    return Issue("extra call", rule, tool=record.tool, call=index, got=describe_call(record), decides=is_deciding)


def expected_result(result: Check | None, is_error: bool | None) -> str:
    """Return an expected result in a few words: `an error`, `no error`, or the check of the result."""
    parts = []
    if is_error is not None:
        parts.append("an error" if is_error else "no error")
    if result is not None:
        parts.append(describe(result))
    return " with ".join(parts)


def call_notes(call: ExpectedCall | Step) -> list[str]:
    """Return what a suite expects of a call besides its tool and arguments, in words: `1 to 3 times`, `→ no error`."""
    notes = []
    if isinstance(call, ExpectedCall):
        if call.optional:
            notes.append("optional")
        if call.times is not None:
            notes.append(_times_text(call.fewest, call.most))
    if isinstance(call, DisallowedCall) and not call.is_unconditional:
        notes.append(condition_text(call))
    if result := expected_result(call.result, call.is_error):
        notes.append(f"→ {result}")
    return notes


def _times_text(minimum: int, maximum: float) -> str:
    if minimum == maximum:
        return counted(minimum, "time")
    if math.isinf(maximum):
        return f"at least {counted(minimum, 'time')}" if minimum else "any number of times"
    return f"{minimum} to {counted(int(maximum), 'time')}"


def _expected_text(expected: ExpectedCall) -> str:
    return cut_text(" or ".join(map(_alternative_text, expected.alternatives)))


def _alternative_text(expected: ExpectedCall) -> str:
    if expected.args is None:
        return f"{expected.tool_text}(…)"
    arguments = []
    for name, check in expected.args.items():
        arguments.append(f"{name}={describe(check)}")
    arguments += ["nothing else"] * expected.only_args
    return f"{expected.tool_text}({', '.join(arguments)})"


describe_expected: Callable[[ExpectedCall], str] = cached_by_identity(_expected_text)
"""Returns an expected call in one line: `set_lights(room="bedroom", brightness=5..20)`. Unchecked arguments are written
`(…)`."""


def _call_text(record: CallRecord) -> str:
    return call_text(record.tool, record.arguments)


describe_call: Callable[[CallRecord], str] = cached_by_identity(_call_text)
"""Returns an actual call in one line."""
