"""A call of a run put into its case: as a mock that answers it again, or as an expected call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.checks.errors import CheckError
from workbench.grading.critics import grade_critics
from workbench.grading.errors import GradingError
from workbench.grading.grade import CallPairing
from workbench.suite.model import Case
from workbench.suite.render import Table
from workbench.suite.sameness import same
from workbench.suite.settings import CaseSettings
from workbench.tools.answer import ToolAnswer
from workbench.trajectory.trajectory import CallRecord, Trajectory
from workbench.tui.state.accept import accept_call
from workbench.tui.state.taking import case_with_mock, step_of


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
