"""From pairings to issues: wrong tools, missing and extra calls, wrong and missing arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.checks.describe import cut, describe, describe_value
from workbench.grading.grade import CallPairing, Issue
from workbench.grading.thresholds import ROUNDING_SLACK
from workbench.suite.model import ExpectedCall
from workbench.trajectory.trajectory import CallRecord


def findings(
    expected: Sequence[ExpectedCall],
    calls: Sequence[CallRecord],
    pairings: Sequence[CallPairing],
    *,
    quantity_matters: bool,
) -> tuple[Issue, ...]:
    """The issues of a grade, each placed on the call, the expected call and the argument that it is about.

    `quantity_matters`: a number of calls other than expected is an issue, and so is every extra call.
    """
    return tuple(_findings(expected, calls, pairings, quantity_matters))


def _findings(
    expected: Sequence[ExpectedCall], calls: Sequence[CallRecord], pairings: Sequence[CallPairing], quantity: bool
) -> Iterator[Issue]:
    if quantity and len(expected) != len(calls):
        yield Issue(
            "quantity",
            "more calls than expected" if len(calls) > len(expected) else "fewer calls than expected",
            expected=str(len(expected)),
            got=str(len(calls)),
        )
    for pairing in pairings:
        if pairing.expected_call is None:
            if quantity and pairing.call is not None:
                yield extra_call(calls, pairing.call, "more calls than expected")
        elif pairing.call is None:
            yield _missing_call(expected[pairing.expected_call], pairing.expected_call)
        elif not pairing.same_tool:
            yield Issue(
                "wrong tool",
                "another tool was expected",
                tool=calls[pairing.call].tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                expected=describe_expected(expected[pairing.expected_call]),
                got=describe_call(calls[pairing.call]),
            )
        else:
            yield from _argument_issues(expected[pairing.expected_call], calls[pairing.call], pairing)


def _argument_issues(expected: ExpectedCall, record: CallRecord, pairing: CallPairing) -> Iterator[Issue]:
    for verdict in pairing.arguments:
        if verdict.holds is False:
            shown = verdict.given or verdict.got is not None
            yield Issue(
                "wrong argument" if shown else "missing argument",
                verdict.why,
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                argument=verdict.argument,
                expected=verdict.expected,
                got=describe_value(verdict.got) if shown else None,
            )
        elif verdict.holds and verdict.score < verdict.weight - ROUNDING_SLACK:
            yield Issue(
                "partial credit",
                f"holds, but earns {verdict.score:.2f} of {verdict.weight:.2f}",
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                argument=verdict.argument,
                expected=verdict.expected,
                got=describe_value(verdict.got),
            )
    if expected.args == {} and record.arguments:
        for name, value in record.arguments.items():
            yield Issue(
                "unexpected argument",
                "no arguments are expected",
                tool=record.tool,
                call=pairing.call,
                expected_call=pairing.expected_call,
                argument=name,
                got=describe_value(value),
            )


def _missing_call(expected: ExpectedCall, index: int) -> Issue:
    return Issue(
        "missing call",
        "no call was made for it",
        tool=expected.tool,
        expected_call=index,
        expected=describe_expected(expected),
    )


def extra_call(calls: Sequence[CallRecord], index: int, why: str, *, decides: bool = False) -> Issue:
    """A call that no expectation accounts for."""
    record = calls[index]
    return Issue("extra call", why, tool=record.tool, call=index, got=describe_call(record), decides=decides)


def describe_expected(expected: ExpectedCall) -> str:
    """An expected call in one line: `set_lights(room="bedroom", brightness=5..20)`, `(…)` where arguments are free."""
    if expected.args is None:
        return f"{expected.tool}(…)"
    return cut(f"{expected.tool}({', '.join(f'{name}={describe(check)}' for name, check in expected.args.items())})")


def describe_call(record: CallRecord) -> str:
    """An actual call in one line."""
    arguments = ", ".join(f"{name}={describe_value(value)}" for name, value in record.arguments.items())
    return cut(f"{record.tool}({arguments})")
