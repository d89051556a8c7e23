"""Finds forbidden calls: those that a case disallows, and those that repeat a successful call."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from workbench.checks.check import CheckContext
from workbench.checks.values import canonical
from workbench.grading.call_results import alternatives_of, result_mismatch
from workbench.grading.grade import CallPairing, Issue
from workbench.grading.pairing_issues import describe_call
from workbench.suite.expected_calls import DisallowedCall, ExpectedCall
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord

Fits = Callable[[ExpectedCall, CallRecord], bool]
"""Returns whether a call has the described tool and arguments, by the rules of a grader."""


def offending_calls(
    prohibition: DisallowedCall, calls: Sequence[CallRecord], fits: Fits, context: CheckContext
) -> list[int]:
    """Return the indices of the calls that a prohibition forbids.

    Raises CheckError if a check cannot be evaluated."""
    found = [index for index, record in enumerate(calls) if fits(prohibition, record)]
    if not found:
        return []
    for key, other in prohibition.conditions:
        first = _first(other, calls, fits, context)
        late = {index for index in found if first is not None and _follows(calls, index, first, other)}
        # `before` forbids calls before the first call of the other tool, and `after` forbids calls after it.
        found = [index for index in found if (index in late) == (key == "after")]
    return found


def _first(other: ExpectedCall, calls: Sequence[CallRecord], fits: Fits, context: CheckContext) -> int | None:
    for index, record in enumerate(calls):
        for alternative in alternatives_of(other):
            if fits(alternative, record) and result_mismatch(alternative, record, context) is None:
                return index
    return None


def _follows(calls: Sequence[CallRecord], call: int, first: int, other: ExpectedCall) -> bool:
    # The calls of one answer are made together, so none can depend on another's result.
    if any(alternative.checks_result for alternative in alternatives_of(other)):
        return calls[first].round < calls[call].round
    return first < call


def duplicate_issues(calls: Sequence[CallRecord], pairings: Sequence[CallPairing]) -> Iterator[Issue]:
    """Yield an issue that fails the run, for each call that repeats a successful call more often than expected.

    Equal calls may succeed once, or as often as `pairings` match them to expected calls. A call repeated after an error
    is another attempt, not a duplicate."""
    expected = {line.call for line in pairings if line.expected_call is not None and line.same_tool}
    allowed = Counter(_key(calls[index]) for index in expected if index is not None)
    succeeded: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, record in enumerate(calls):
        key = _key(record)
        earlier = succeeded[key]
        if len(earlier) >= max(allowed[key], 1):
            yield Issue(
                "duplicate call",
                f"duplicate_calls is forbidden, and this call equals call {earlier[0] + 1}, which succeeded",
                tool=record.tool,
                call=index,
                got=describe_call(record),
                decides=True,
            )
        if record.result is None or not record.result.is_error:
            earlier.append(index)


def _key(record: CallRecord) -> tuple[str, str]:
    """Return the tool and the arguments of a call as texts. Equal calls have equal texts."""
    arguments = json.dumps(canonical(_with_integers(dict(record.arguments))), sort_keys=True)
    return record.tool, record.call.raw or arguments if record.is_broken else arguments


def _with_integers(value: JsonValue) -> JsonValue:
    """Return a value with whole numbers as integers: in JSON, 5.0 equals 5."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    if isinstance(value, dict):
        return {key: _with_integers(each) for key, each in value.items()}
    return value
