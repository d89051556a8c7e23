"""Turns pairings into issues: wrong tools, missing and extra calls, wrong and missing arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.by_identity import ByIdentity
from workbench.checks.check import describe
from workbench.checks.values import cut, describe_value
from workbench.decimals import decimals
from workbench.grading.grade import ArgumentVerdict, CallPairing, Issue, IssueKind
from workbench.grading.scoring import ROUNDING_SLACK, part_earned
from workbench.suite.model import ExpectedCall
from workbench.trajectory.trajectory import CallRecord


def findings(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    *,
    extras_matter: bool = False,
    closed: bool = False,
) -> tuple[Issue, ...]:
    """Returns the issues of a grade, each with the call, the expected call and the argument that it concerns.

    With `extras_matter`, every extra call is an issue. With `closed`, so is every argument that its expected call does
    not list and that has no verdict.
    """
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
        elif pairing.call is None:
            yield missing_call(expected[pairing.expected_call], pairing.expected_call)
        elif not pairing.same_tool:
            wanted, record = expected[pairing.expected_call], calls[pairing.call]
            misplaced = wanted.tool in called_elsewhere and record.tool in expected_elsewhere
            yield Issue(
                "wrong order" if misplaced else "wrong tool",
                f"{wanted.tool_text} was expected" + (f" here, and {record.tool} elsewhere" if misplaced else ""),
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                expected=describe_expected(wanted),
                got=describe_call(record),
            )
        else:
            wanted, record = expected[pairing.expected_call], calls[pairing.call]
            for verdict in pairing.arguments:
                if verdict.holds is None or (verdict.holds and verdict.score >= verdict.weight - ROUNDING_SLACK):
                    continue
                # A forbidden argument is an issue under every grader, and so one of the requirements.
                if not verdict.given or not wanted.unwanted([verdict.argument]):
                    yield argument_issue(wanted, record, pairing, verdict)
            if closed and wanted.args is not None and not record.arguments.keys() <= wanted.args.keys():
                yield from _without_verdict(wanted, record, pairing)


def _out_of_place(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing]
) -> tuple[set[str], set[str]]:
    """Returns the tools that were expected and those that were called, in lines that do not contain both."""
    lines = [pairing for pairing in pairings if not pairing.same_tool and pairing.prohibition is None]
    if not lines:
        return set(), set()
    return (
        {expected[line.expected_call].tool for line in lines if line.expected_call is not None},
        {calls[line.call].tool for line in lines if line.call is not None},
    )


def argument_issue(expected: ExpectedCall, record: CallRecord, pairing: CallPairing, verdict: ArgumentVerdict) -> Issue:
    """Returns what is wrong with an argument that has not earned everything it could."""
    if not verdict.listed:
        return _unexpected(expected, record, pairing, verdict.argument)
    kind: IssueKind
    shown = bool(verdict.holds) or verdict.given or verdict.got is not None
    if verdict.holds:
        kind, why = "partial credit", f"holds, but earns {decimals(verdict.score)} of {decimals(verdict.weight)}"
    else:
        kind, why = "wrong argument" if shown else "missing argument", verdict.why
        if verdict.counted and (part := part_earned(verdict.score, verdict.weight)):
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
    )


def _without_verdict(expected: ExpectedCall, record: CallRecord, pairing: CallPairing) -> Iterator[Issue]:
    named = {
        *(expected.args or {}),
        *expected.unwanted(record.arguments),
        *(verdict.argument for verdict in pairing.arguments),
    }
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
    """Returns the issue of an expected call, by its index, that was not made."""
    return Issue(
        "missing call",
        "no call matches it",
        tool=expected.tool_text,
        expected_call=index,
        expected=describe_expected(expected),
    )


def extra_call(calls: Sequence[CallRecord], index: int, why: str, *, decides: bool = False) -> Issue:
    """Returns the issue of a call that no expectation accounts for."""
    record = calls[index]
    return Issue("extra call", why, tool=record.tool, call=index, got=describe_call(record), decides=decides)


def _expected_text(expected: ExpectedCall) -> str:
    if expected.args is None:
        return f"{expected.tool_text}(…)"
    arguments = [f"{name}={describe(check)}" for name, check in expected.args.items()]
    arguments += ["nothing else"] * expected.only_args
    return cut(f"{expected.tool_text}({', '.join(arguments)})")


describe_expected: ByIdentity[ExpectedCall, str] = ByIdentity(_expected_text)
"""Returns an expected call in one line: `set_lights(room="bedroom", brightness=5..20)`, `(…)` where arguments are
free."""


def _call_text(record: CallRecord) -> str:
    arguments = ", ".join(f"{name}={describe_value(value)}" for name, value in record.arguments.items())
    return cut(f"{record.tool}({arguments})")


describe_call: ByIdentity[CallRecord, str] = ByIdentity(_call_text)
"""Returns an actual call in one line."""
