"""Adds a call to a case, as a mock with its answer or as an expected call. The call was made in a run or by hand.

In a chain, the mock or the expected call can go into a step. Steps count from 1."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench.authoring.accept import accept_call
from workbench.authoring.form.field_text import items_at, value_at, with_item, with_value
from workbench.checks.check import OPTION_NAMES, check_names_in
from workbench.checks.patterns import CheckError
from workbench.dataclasses import dataclass, json_text
from workbench.grading.critics import grade_critics
from workbench.grading.grade import CallPairing, GradingError
from workbench.suite.model import Case
from workbench.suite.problems import Place
from workbench.suite.render import Table, holds_null
from workbench.suite.settings import CaseSettings
from workbench.suite.toml_equality import toml_equal
from workbench.tools.answer import ToolAnswer
from workbench.tools.mocks import mock_answer
from workbench.trajectory.events import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory


def case_with_mock(
    case: Table, tool: str, arguments: Mapping[str, JsonValue], answer: ToolAnswer, step: int | None = None
) -> Table:
    """Add a mock to a case. It precedes other mocks of the same tool, because the first matching mock answers.

    A mock for the same arguments is replaced. With `step`, the result goes into that step of the chain. Even with
    `step`, an error becomes a mock of the case, because a step cannot express an error. Raises ValueError for an
    unknown step, and for an answer that contains the name of an argument in braces. A mock would replace such a name by
    the argument's value."""
    result: JsonValue = None
    if not answer.is_error:
        result = _result(answer.content, arguments)
    if step is not None:
        place, before = _step(case, step)
        if not answer.is_error:
            return with_value(case, place, before | {"mock_result": result})
        before.pop("mock_result", None)
        case = with_value(case, place, before)
    mock: Table = {"tool": tool}
    if arguments:
        mock["when"] = _args(arguments)
    if answer.is_error:
        mock["error"] = answer.content
    else:
        mock["result"] = result
    # The first matching mock answers, so the new mock precedes all mocks of its tool, which may be more general.
    mocks = items_at(case, ("mocks",))
    of_tool = [at for at, other in enumerate(mocks) if _is_of(other, tool)]
    for index in of_tool:
        if isinstance(other := mocks[index], dict) and other.get("when") == mock.get("when"):
            return with_value(case, ("mocks", index), mock)
    first = of_tool[0] if of_tool else len(mocks)
    return with_item(case, ("mocks", first), mock)


def _args(arguments: Mapping[str, JsonValue]) -> Table:
    return {name: _expected(value) for name, value in arguments.items()}


def case_with_expected_call(case: Table, tool: str, arguments: Mapping[str, JsonValue]) -> Table:
    """Add an expected call at the end of the list `ordered`.

    Raises ValueError for a chain, and for a case that expects no calls."""
    if "steps" in case:
        raise ValueError("the case is a chain, whose steps expect one call each: put the call into a step")
    if case.get("expect_no_calls"):
        raise ValueError("the case has expect_no_calls: remove that key first")
    call: Table = {"tool": tool, "args": _args(arguments)}
    return with_item(case, ("ordered", len(items_at(case, ("ordered",)))), call)


def step_of(trajectory: Trajectory, call: int) -> int | None:
    """Return the step of a chain, from 1, whose first call has the index `call`, or `None` if there is no such step.

    Only the first call of a step is graded and is answered by the step's mock."""
    wanted = trajectory.calls[call]
    asked = trajectory.rounds[wanted.round - 1]
    if asked.step is None or asked.calls[0] is not wanted:
        return None
    return asked.step.step


def _step(case: Table, step: int) -> tuple[Place, Table]:
    place: Place = ("steps", step - 1)
    before = value_at(case, place)
    if not isinstance(before, dict):
        raise ValueError(f"the case has no step {step}: it has changed since the run")
    return place, dict(before)


def _is_of(mock: object, tool: str) -> bool:
    return isinstance(mock, dict) and mock.get("tool") == tool


def _expected(value: JsonValue) -> object:
    """Return the expectation for a value of an argument.

    TOML has no null, so null becomes a check, even inside the value."""
    if value is None:
        return {"equals_null": True}
    if isinstance(value, dict) and holds_null(value):
        return {"has_fields": {name: _part(inner) for name, inner in value.items()}, "only_fields": True}
    if isinstance(value, list) and holds_null(value):
        return {"same_elements": [_part(inner) for inner in value], "in_order": True}
    # A table that has the name of a check, or only names of options, would be read as a check.
    if isinstance(value, dict) and (check_names_in(value) or (value and OPTION_NAMES.issuperset(value))):
        return {"equals": value}
    return value


def _part(value: JsonValue) -> object:
    """Return the expectation for a part of a value.

    A table becomes an `equals` check, because the fields of a plain table would be compared one by one."""
    expected = _expected(value)
    if isinstance(value, dict) and expected is value:
        return {"equals": value}
    return expected


def _result(content: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
    result = _shortest(content)
    for name, value in arguments.items():
        if mock_answer(result, {name: value}).content != content:
            raise ValueError(
                f"the answer contains {{{name}}}, which a mock would replace by that argument: "
                "only a mock with `python` returns the text unchanged"
            )
    return result


def _shortest(content: str) -> JsonValue:
    """If a text is exactly the JSON that a mock would send for a value, return the value.

    Otherwise return the text."""
    if content[:1] not in ("{", "["):
        return content
    try:
        value: JsonValue = json.loads(content)
        # A mock would send the value as `json_text`, so the text must be equal in spaces and order of keys, too.
        if holds_null(value) or json_text(value) != content:
            return content
    except (ValueError, RecursionError):
        return content
    return value


@dataclass(frozen=True)
class Addition:
    """The table of a case to which a call was added, and a summary of the change."""

    table: Table
    summary: str


def index_of_call(trajectory: Trajectory, call_id: str) -> int:
    """Return the index of a call in a run. Raises ValueError if the run does not, or no longer, contain the call."""
    for index, call in enumerate(trajectory.calls):
        if call.call.id == call_id:
            return index
    raise ValueError("this call was superseded, because its round was repeated")


def mock_of_call(table: Table, trajectory: Trajectory, index: int) -> Addition:
    """Add a mock that answers a call as in the run.

    The mock matches the arguments as the model wrote them, because the model will probably write them so again. For the
    first call in a step of a chain, the mock belongs to the step. Raises ValueError if a mock cannot give this
    answer."""
    record = trajectory.calls[index]
    tool, answer = record.tool, record.result
    if record.by_provider:
        raise ValueError(f"the provider runs {tool} itself, so a mock would never answer it")
    if answer is None:
        raise ValueError(f"{tool} has no answer yet: press s to step to it")
    if answer.source == "skipped" and record.unedited is None:  # an unedited text only says that the call was skipped
        raise ValueError(f"{tool} was skipped, so there is no result for a mock")
    _check(record)
    step = step_of(trajectory, index)
    table = case_with_mock(table, tool, record.arguments, ToolAnswer(answer.content, answer.is_error), step)
    if step is not None and not answer.is_error:
        return Addition(table, f"Mock of {tool} in step {step}")
    if record.edited is not None:
        return Addition(table, f"Mock of {tool}, for the arguments as the model wrote them")
    return Addition(table, f"Mock of {tool}")


def expectation_of_call(
    case: Case, settings: CaseSettings, table: Table, trajectory: Trajectory, index: int
) -> Addition | None:
    """Add to a case the expectation of a call with the arguments that were sent.

    The call replaces the expectation that the grader paired with it, and checks that pass are kept. If there is no such
    expectation, the call is added. In a chain, the call goes into its step. Returns `None` if the case already expects
    exactly this call. Raises ValueError if the call cannot be expected."""
    record = trajectory.calls[index]
    if record.edited is None:
        _check(record)
    as_sent = _as_sent(trajectory)
    # The call may only replace an expectation of the same tool, because an expectation of another tool would be lost.
    pairings: list[CallPairing] = []
    if not case.steps:
        pairings = [each for each in _pairings(case, settings, as_sent) if each.same_tool]
    proposal = accept_call(case, table, as_sent, pairings, index)
    changed, tool = proposal.applied(table), record.tool
    if toml_equal(changed, table):
        return None
    if case.steps:
        return Addition(changed, f"Step {step_of(trajectory, index)} expects {tool} as it was sent")
    if proposal.added_at is not None:
        return Addition(changed, f"{tool} is expected as it was sent, as one more call")
    return Addition(changed, f"{tool} is expected as it was sent, in place of the earlier expectation")


def _check(record: CallRecord) -> None:
    if record.call.problem is not None or not record.complete or not record.tool:
        raise ValueError(f"the model wrote invalid arguments for {record.tool or 'this call'}: choose another call")


def _as_sent(trajectory: Trajectory) -> Trajectory:
    """Return the run as if the model had written the arguments that were sent.

    These arguments differ from the model's where the user edited a held call."""
    rounds = []
    for each in trajectory.rounds:
        calls = tuple(replace(call, call=call.sent) for call in each.calls)
        rounds.append(replace(each, calls=calls))
    return replace(trajectory, rounds=tuple(rounds))


def _pairings(case: Case, settings: CaseSettings, trajectory: Trajectory) -> Sequence[CallPairing]:
    try:
        return grade_critics(case, settings.grading, trajectory).pairings
    except (CheckError, GradingError) as error:
        raise ValueError(f"the case cannot be compared with this run: {error}") from error
