"""Checks of each call against its tool's input schema: the measure "valid arguments".

A violation does not depend on the expectations of the case, so it is not part of any score. It fails the run regardless
of the score, unless the tool refused the call and the model then corrected it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from workbench.checks.schemas import ArgumentSchema, BrokenSchemaError, Violation
from workbench.checks.values import cut_text, describe_value
from workbench.dataclasses import cached_by_identity
from workbench.grading.grade import Issue
from workbench.startup import late_pattern
from workbench.suite.grading_model import InvalidArguments
from workbench.trajectory.events import ToolDefinition, tools_by_name
from workbench.trajectory.trajectory import CallRecord, Trajectory

# Refusals: the results of servers that refuse the arguments of a call, in contrast to failures of the tool's work.

INVALID_PARAMS = -32602
"""The code of JSON-RPC for invalid parameters."""

# MCP has no field for a refusal. Its SDKs report invalid arguments as a tool error with one of these beginnings.
_REFUSALS = late_pattern(
    r"""
      (?: MCP\ error\ -32602 .* )? Input\ validation\ error     # the SDKs for Python (jsonschema) and TypeScript (zod)
    | MCP\ error\ -32602
    | Invalid\ arguments\ for\ tool                             # earlier versions of the TypeScript SDK
    | (?: Error\ (?: executing | calling )\ tool\ [^\n]{1,200}:\ )?
      \d+\ validation\ errors?\ for\ (?: call\[ | \S+Arguments\b )  # pydantic, in FastMCP and the SDK for Python
    | (?: invalid\ params:\ )? validating\ "arguments"          # the SDK for Go
    """,
    re.VERBOSE | re.IGNORECASE,
)

# The same code and prefixes also report other faults: an unknown or disabled tool, or a result that violates the tool's
# output schema.
_NOT_OF_ARGUMENTS = late_pattern(
    r"\bunknown tool\b|\btool\b.{0,200}\b(?:not found|disabled)\b|^(?:MCP error -32602: *)?Output validation error",
    re.IGNORECASE,
)


def refusal_of(record: CallRecord) -> str | None:
    """Return the one-line message with which a server refused a call's arguments, or `None` without a refusal."""
    # Only real servers and tools outside Workbench validate arguments. A mock answers as its suite says.
    result = record.unedited or record.result
    if result is None or not result.is_error or result.source not in ("server", "reported"):
        return None
    refused = result.code == INVALID_PARAMS or _REFUSALS.match(result.content) is not None
    # Later lines quote values of the arguments and may contain any words.
    first = result.content.partition("\n")[0]
    if not refused or _NOT_OF_ARGUMENTS.search(first):
        return None
    return cut_text(result.content)


# Last answers that ended early: cut off at the token limit, or refused.


def end_issues(trajectory: Trajectory) -> Iterator[Issue]:
    """Yield an issue if the last answer was cut off or refused. The issue does not fail the run."""
    how = _how_it_ended(trajectory)
    if how == "truncated":
        yield Issue("cut off", trajectory.rounds[-1].cut_off)
    elif how == "refused":
        yield Issue("refused", "the model, or a content filter of its endpoint, refused to answer")


def unfinished_answer(trajectory: Trajectory) -> str | None:
    """Describe a last answer that was cut off or refused, with its text. Return `None` for any other answer."""
    how = _how_it_ended(trajectory)
    if how is None:
        return None
    ending = "an answer that was cut off" if how == "truncated" else "a refusal"
    if text := trajectory.rounds[-1].text:
        return f"{ending}: {describe_value(text)}"
    return ending


def _how_it_ended(trajectory: Trajectory) -> Literal["truncated", "refused"] | None:
    if not trajectory.rounds:
        return None
    reasons: set[str | None] = {trajectory.rounds[-1].stop_reason}
    if trajectory.finish is not None:
        reasons.add(trajectory.finish.reason)
    if "truncated" in reasons:
        return "truncated"
    if "refused" in reasons:
        return "refused"
    return None


class CheckedCall(NamedTuple):
    """The result of checking the arguments of one call.

    `valid` is `None` if the tool is unknown, if the provider runs the tool, or if the tool's schema is invalid.
    `broken_schema` explains an invalid schema. `refusal` is the message of a server that refused the arguments.
    `corrected` is true if the call was answered by an error and the model then made a valid call of the same tool."""

    valid: bool | None
    violations: tuple[Violation, ...] = ()
    refusal: str | None = None
    corrected: bool = False
    broken_schema: str | None = None


def check_calls(trajectory: Trajectory) -> tuple[CheckedCall, ...]:
    calls = trajectory.calls
    if not calls:
        return ()
    tools = tools_by_name(trajectory.offered)
    checked = [_checked(record, tools.get(record.tool)) for record in calls]
    for index in _corrected(calls, checked):
        checked[index] = checked[index]._replace(corrected=True)
    return tuple(checked)


_schema_of: Callable[[ToolDefinition], ArgumentSchema] = cached_by_identity(
    lambda tool: ArgumentSchema(tool.parameters)
)


def _checked(record: CallRecord, tool: ToolDefinition | None) -> CheckedCall:
    if record.by_provider:
        return CheckedCall(None)
    refusal = refusal_of(record)
    if record.is_broken:
        return CheckedCall(False, refusal=refusal)
    # Without a schema, only a refusal by the server shows that the arguments are invalid.
    valid_by_server = None if refusal is None else False
    if tool is None:
        return CheckedCall(valid_by_server, refusal=refusal)
    try:
        found = _schema_of(tool).violations(record.arguments)
    except BrokenSchemaError as error:
        return CheckedCall(valid_by_server, refusal=refusal, broken_schema=str(error))
    return CheckedCall(not found and refusal is None, found, refusal)


def _corrected(calls: Sequence[CallRecord], checked: Sequence[CheckedCall]) -> Iterator[int]:
    # All calls of an answer are made before any of them is refused, so they are separate attempts. A call of a later
    # answer is a retry of the earliest open attempt of its tool. If the retry is valid, it closes the attempt.
    open_attempts: dict[str, deque[list[int]]] = {}
    of_this_answer: dict[str, list[list[int]]] = {}
    answer = None
    for index, (record, check) in enumerate(zip(calls, checked, strict=True)):
        if record.round != answer:
            answer = record.round
            for tool, attempts in of_this_answer.items():
                open_attempts.setdefault(tool, deque()).extend(attempts)
            of_this_answer = {}
        earlier = open_attempts.get(record.tool)
        attempt: list[int] = []
        if earlier:
            attempt = earlier.popleft()
        if check.valid is False:
            was_refused = record.result is not None and record.result.is_error
            # If the tool accepted the call, the model has nothing to correct.
            if was_refused:
                of_this_answer.setdefault(record.tool, []).append([*attempt, index])
        elif check.valid:
            yield from attempt


def unchecked_reasons(trajectory: Trajectory) -> dict[str, str]:
    reasons = {}
    for record, check in zip(trajectory.calls, check_calls(trajectory), strict=True):
        if check.valid is None:
            reasons[record.tool] = _why_unchecked(record, check)
    return reasons


def _why_unchecked(record: CallRecord, check: CheckedCall) -> str:
    if record.by_provider:
        return "the provider runs it and does not publish its schema"
    if check.broken_schema is None:
        return "no tool of that name is known"
    return f"its schema is invalid: {check.broken_schema}"


def argument_issues(
    trajectory: Trajectory, checked: Sequence[CheckedCall], decides: InvalidArguments
) -> Iterator[Issue]:
    """Yield an issue for each call with invalid arguments.

    The issue fails the run, unless the model corrected the call. If the arguments are a JSON object that violates the
    schema, the effect also depends on `decides`. With "fail", the issue fails the run. With "ignore", there is no
    issue."""
    cut_off = {}
    for each in trajectory.rounds:
        if each.stop_reason == "truncated":
            cut_off[each.number] = each.cut_off
    for index, (record, check) in enumerate(zip(trajectory.calls, checked, strict=True)):
        if record.is_broken:
            why = None
            if record.round in cut_off:
                why = f"cut off {cut_off[record.round]}"
            yield _broken(record, index, why, is_deciding=not check.corrected)
        elif check.valid is False and decides != "ignore":
            fails = decides == "fail" and not check.corrected
            yield from _violated(record, index, check, is_deciding=fails)


def error_issues(trajectory: Trajectory, reported: Collection[int | None]) -> Iterator[Issue]:
    """Yield an issue for each call that was answered by an error. The issues do not fail the run.

    Calls with the indices `reported` are left out because they have a more specific issue."""
    for index, record in enumerate(trajectory.calls):
        result = record.unedited or record.result
        if result is not None and result.is_error and result.source != "skipped" and index not in reported:
            # The issue does not fail the run: a tool can fail without a fault of the model, and a suite may mock an
            # error on purpose.
            yield Issue("tool error", f"the tool answered: {cut_text(result.content)}", tool=record.tool, call=index)


def _broken(record: CallRecord, index: int, reason: str | None, *, is_deciding: bool) -> Issue:
    return Issue(
        "broken arguments",
        reason or record.call.problem or "the arguments never became complete",
        tool=record.tool,
        call=index,
        expected="a JSON object",
        got=cut_text(record.call.raw or ""),
        decides=is_deciding,
    )


def _violated(record: CallRecord, index: int, check: CheckedCall, *, is_deciding: bool) -> Iterator[Issue]:
    corrected = "; corrected later" if check.corrected else ""
    for found in check.violations:
        got = None
        if found.argument is not None and found.argument in record.arguments:
            got = describe_value(record.arguments[found.argument])
        yield Issue(
            "schema violation",
            f"the tool's schema refuses it ({found.rule}): {found.message}{corrected}",
            tool=record.tool,
            call=index,
            argument=found.place or None,
            got=got,
            decides=is_deciding,
        )
    if not check.violations and check.refusal is not None:
        why = f"the server refused the arguments: {check.refusal}{corrected}"
        yield Issue("schema violation", why, tool=record.tool, call=index, decides=is_deciding)
