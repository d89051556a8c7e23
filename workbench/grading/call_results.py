"""Comparison of the actual results of calls with the expected results of a case."""

from __future__ import annotations

import json
from collections.abc import Callable

from workbench.checks.check import Check, CheckContext, evaluate, verdict_text
from workbench.checks.patterns import CheckError
from workbench.dataclasses import cached_by_identity
from workbench.suite.expected_calls import ExpectedCall, with_forbidden
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord


def result_mismatch(expected: ExpectedCall, record: CallRecord, context: CheckContext) -> str | None:
    """Return why the result of a call is not the expected result, or `None` for the expected result.

    Raises CheckError if a check cannot be evaluated."""
    if not expected.checks_result:
        return None
    result = record.result
    if result is None or result.source == "skipped":
        return "the call has no result"
    if expected.is_error is not None and result.is_error is not expected.is_error:
        return "returned an error; expected a result" if result.is_error else "returned a result; expected an error"
    if expected.result is None:
        return None
    value = result_value(result.content, expected.result)
    try:
        verdict = evaluate(expected.result, value, context=context)
    except CheckError as error:
        raise CheckError(f"{expected.tool}: result: {error}") from error
    if verdict.holds:
        return None
    return f"returned another result: {verdict_text(expected.result, verdict, value)}"


def _whole_alternatives(call: ExpectedCall) -> tuple[ExpectedCall, ...]:
    if not call.any_of:
        return (call,)
    alternatives = []
    for each in map(with_forbidden, call.any_of):
        # Keys next to `any_of` apply to each alternative.
        if call.checks_result:
            result = call.result if each.result is None else each.result
            is_error = call.is_error if each.is_error is None else each.is_error
            each = each.model_copy(update={"result": result, "is_error": is_error})
        alternatives.append(each)
    return tuple(alternatives)


alternatives_of: Callable[[ExpectedCall], tuple[ExpectedCall, ...]] = cached_by_identity(_whole_alternatives)
"""Returns the alternatives of an expected call, each with its expected result."""


def result_value(content: str, check: Check) -> JsonValue:
    """Return the value of a call's result for its check: parsed JSON, or the text if the check is only about texts."""
    if check.value_types <= {"string"}:
        return content
    try:
        value: JsonValue = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return value
