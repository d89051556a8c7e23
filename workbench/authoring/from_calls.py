"""A call and its answer, by hand or of a run, put into a case: as a mock that answers it again, or as what is expected.

In a chain either may go into one of its steps, which are counted from 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from workbench.authoring.accepting.run import accept_call
from workbench.authoring.form.tables import items_at, value_at, with_item, with_value
from workbench.checks.describe import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.grade import CallPairing, GradingError
from workbench.suite.checks import OPTION_NAMES, check_names_in
from workbench.suite.model import Case
from workbench.suite.problems import Place
from workbench.suite.render import Table
from workbench.suite.sameness import same
from workbench.suite.settings import CaseSettings
from workbench.tools.answer import ToolAnswer
from workbench.tools.mocks import mock_answer
from workbench.trajectory.messages import JsonValue
from workbench.trajectory.trajectory import CallRecord, Trajectory
from workbench.trajectory.typed_json import json_text


def case_with_mock(
    case: Table, tool: str, arguments: Mapping[str, JsonValue], answer: ToolAnswer, step: int | None = None
) -> Table:
    """A case with a mock more, before those of the same tool that would answer in its place; one for the very same
    arguments is replaced. With `step`, for the first call of a step's answer, it is the step's own; but a step cannot
    say that a tool failed, so that goes among the case's. Raises ValueError for a step that there is not, and for an
    answer that a mock would fill with the call's arguments."""
    result = None if answer.is_error else _result(answer.content, arguments)
    if step is not None:
        place, before = _step(case, step)
        if not answer.is_error:
            return with_value(case, place, before | {"mock_result": result})
        case = with_value(case, place, {key: value for key, value in before.items() if key != "mock_result"})
    mock: Table = {"tool": tool}
    if arguments:
        mock["when"] = {name: _expected(value) for name, value in arguments.items()}
    if answer.is_error:
        mock["error"] = answer.content
    else:
        mock["result"] = result
    mocks = items_at(case, ("mocks",))
    same = [at for at, other in enumerate(mocks) if _is_of(other, tool)]
    for index in same:
        if isinstance(other := mocks[index], dict) and other.get("when") == mock.get("when"):
            return with_value(case, ("mocks", index), mock)
    return with_item(case, ("mocks", same[0] if same else len(mocks)), mock)


def case_expecting(case: Table, tool: str, arguments: Mapping[str, JsonValue], step: int | None = None) -> Table:
    """A case that expects the call too, last of those in order; with `step`, one whose step expects it, in place
    of what it did. Raises ValueError for a case that cannot: a chain without a step, or one that expects no calls."""
    call: Table = {"tool": tool, "args": {name: _expected(value) for name, value in arguments.items()}}
    if step is not None:
        place, before = _step(case, step)
        forbidden = [name for name in items_at(before, ("forbidden_args",)) if name not in arguments]
        kept = {key: value for key, value in before.items() if key != "forbidden_args"}
        return with_value(case, place, kept | call | ({"forbidden_args": forbidden} if forbidden else {}))
    if "steps" in case:
        raise ValueError("the case is a chain, whose steps expect one call each: put the call into a step")
    if case.get("expect_no_calls"):
        raise ValueError("the case expects that nothing is called: take that out first")
    return with_item(case, ("ordered", len(items_at(case, ("ordered",)))), call)


def step_of(trajectory: Trajectory, call: int) -> int | None:
    """The step, from 1, whose first call has that index in the trajectory: the call that is judged, and that the step's
    mock answers. `None` for other calls."""
    wanted = trajectory.calls[call]
    asked = trajectory.rounds[wanted.round - 1]
    return asked.step.step if asked.step is not None and asked.calls[0] is wanted else None


def _step(case: Table, step: int) -> tuple[Place, Table]:
    place: Place = ("steps", step - 1)
    before = value_at(case, place)
    if not isinstance(before, dict):
        raise ValueError(f"the case has no step {step}: it has changed since the run")
    return place, before


def _is_of(mock: object, tool: str) -> bool:
    return isinstance(mock, dict) and mock.get("tool") == tool


def _expected(value: JsonValue) -> object:
    """A value as the suite expects it; what TOML cannot say is expected to be given."""
    if value is None:
        return {"equals_null": True}
    if _has_null(value):
        return {"present": True}
    reads_as_check = isinstance(value, dict) and (check_names_in(value) or (value and OPTION_NAMES.issuperset(value)))
    return {"equals": value} if reads_as_check else value


def _result(content: str, arguments: Mapping[str, JsonValue]) -> JsonValue:
    """What a mock says, so that the model is given this very text. Raises ValueError where no result says it."""
    result = _shortest(content)
    filled = (name for name in arguments if mock_answer(result, {name: arguments[name]}).content != content)
    if (name := next(filled, None)) is not None:
        raise ValueError(f"a mock fills {{{name}}} in the answer with that argument: only one with `python` can say it")
    return result


def _shortest(content: str) -> JsonValue:
    """A table or list where the model would be given the very same text for it, else the text."""
    if content[:1] not in ("{", "["):
        return content
    try:
        value: JsonValue = json.loads(content)
        if _has_null(value) or json_text(value) != content:
            return content
    except (ValueError, RecursionError):
        return content
    return value


def _has_null(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


@dataclass(frozen=True)
class Taken:
    """The case's table with the call in it, and what was made, in words."""

    table: Table
    said: str


def index_of_call(trajectory: Trajectory, call_id: str) -> int:
    """The index of a call among those of a run. Raises ValueError for one that is not, or no longer, among them."""
    for index, call in enumerate(trajectory.calls):
        if call.call.id == call_id:
            return index
    raise ValueError("this call was set aside: its round was asked again")


def mock_of_call(table: Table, trajectory: Trajectory, index: int) -> Taken:
    """A case with a mock that gives a call the answer that the model read. It is for the arguments as the model wrote
    them, which is what will come again; as the first call of a step of a chain, for that step. Raises ValueError."""
    record = trajectory.calls[index]
    tool, answer = record.tool, record.result
    if answer is None:
        raise ValueError(f"{tool} has no answer yet: s goes on to it")
    if answer.source == "skipped" and record.unedited is None:  # nobody wrote a result in its place
        raise ValueError(f"{tool} was skipped: there is no answer that a mock could give")
    _check(record)
    step = step_of(trajectory, index)
    table = case_with_mock(table, tool, record.arguments, ToolAnswer(answer.content, answer.is_error), step)
    if step is not None and not answer.is_error:
        return Taken(table, f"Mock of {tool} in step {step}")
    written = ", for the arguments as the model wrote them" if record.edited is not None else ""
    return Taken(table, f"Mock of {tool}{written}")


def expectation_of_call(
    case: Case, settings: CaseSettings, table: Table, trajectory: Trajectory, index: int
) -> Taken | None:
    """A case that expects a call as it was sent: in the place of the expectation that it meets best, of which those
    checks stay that hold, else as one more; in a chain, in its step. `None` when the case expects just that already.
    Raises ValueError."""
    record = trajectory.calls[index]
    if record.edited is None:
        _check(record)
    as_sent = _as_sent(trajectory)
    pairings = [] if case.steps else [each for each in _pairings(case, settings, as_sent) if each.same_tool]
    proposal = accept_call(case, table, as_sent, pairings, index)
    changed, tool = proposal.applied(table), record.tool
    if case.steps:
        said = f"Step {step_of(trajectory, index)} expects {tool} as it was sent"
    else:
        replaced = "as one more call" if proposal.added_at is not None else "in the place of what was expected of it"
        said = f"{tool} is expected as it was sent, {replaced}"
    return None if same(changed, table) else Taken(changed, said)


def _check(record: CallRecord) -> None:
    if record.call.problem is not None or not record.complete or not record.tool:
        raise ValueError(f"the arguments that the model wrote for {record.tool or 'this call'} are broken")


def _as_sent(trajectory: Trajectory) -> Trajectory:
    """The run as if the model had written every call as it was sent."""
    rounds = [
        replace(each, calls=tuple(replace(call, call=call.sent) for call in each.calls)) for each in trajectory.rounds
    ]
    return replace(trajectory, rounds=tuple(rounds))


def _pairings(case: Case, settings: CaseSettings, trajectory: Trajectory) -> Sequence[CallPairing]:
    try:
        return grade_critics(case, settings.grading, trajectory).pairings
    except (CheckError, GradingError) as error:
        raise ValueError(f"the case cannot be compared with this run: {error}") from error
