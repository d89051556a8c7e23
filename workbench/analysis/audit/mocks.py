"""Finds mocks that never answer: for no tool, behind one that answers first, or for arguments that are not expected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.analysis.audit.finding import AuditFinding
from workbench.analysis.audit.tool_table import ToolTable, closed, parameter_schema
from workbench.checks.check import Check, Checks, NeverHoldsError, UnknownSampleError
from workbench.checks.patterns import CheckError
from workbench.suite.model import Case, Mock, Suite
from workbench.suite.problems import Place, did_you_mean, quoted

Placed = tuple[Place, Mock]


def audit_suite_mocks(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    """Returns findings on the mocks that all cases of a suite share."""
    placed: list[Placed] = [(("mocks", number), mock) for number, mock in enumerate(suite.mocks)]
    return _audit(placed, suite.cases, table, None)


def audit_case_mocks(case: Case, place: Place, table: ToolTable) -> Iterator[AuditFinding]:
    """Returns findings on a case's own mocks; `place` is the case's."""
    placed: list[Placed] = [((*place, "mocks", number), mock) for number, mock in enumerate(case.mocks)]
    return _audit(placed, [case], table, case.id)


def _audit(
    mocks: Sequence[Placed], cases: Sequence[Case], table: ToolTable, case_id: str | None
) -> Iterator[AuditFinding]:
    first: dict[str, Place] = {}
    for place, mock in mocks:
        tool = table.find(mock.tool)
        if tool is None and not table.unlisted and not mock.unlisted:
            message = f"no tool is called {quoted(mock.tool)}: this mock never answers"
            hint = did_you_mean(mock.tool, table.names)
            yield AuditFinding("unknown tool", "warning", (*place, "tool"), message, hint, case_id)
        elif mock.tool in first:
            message = (
                f"never reached: mocks[{first[mock.tool][-1]}] answers every call of {quoted(mock.tool)} before it"
            )
            yield AuditFinding("idle mock", "warning", place, message, "put the one without `when` last", case_id)
        else:
            for name in mock.when or {}:
                if tool is not None and closed(tool) and parameter_schema(tool, name) is None:
                    message = f"{quoted(mock.tool)} has no parameter {quoted(name)}: this mock never answers"
                    yield AuditFinding("idle mock", "warning", (*place, "when", name), message, "", case_id)
            if mock.when and not _expected_somewhere(mock, mock.when, cases):
                message = f"no call of {quoted(mock.tool)} that is expected matches its `when`"
                hint = "it answers only calls that no case expects"
                yield AuditFinding("idle mock", "note", (*place, "when"), message, hint, case_id)
        if not mock.when:
            first.setdefault(mock.tool, place)


def _expected_somewhere(mock: Mock, when: Checks, cases: Sequence[Case]) -> bool:
    """Returns whether an expected call may meet the condition of a mock, or no call of its tool is expected at all."""
    calls = [call for case in cases for call in case.expected_calls() if call.is_any or call.tool == mock.tool]
    return not calls or any(
        call.args is None or all(_may_meet(check, call.args.get(name)) for name, check in when.items())
        for call in calls
    )


def _may_meet(condition: Check, expected: Check | None) -> bool:
    if expected is None or expected.accepts_all or expected.is_approximate:
        return True
    try:
        return any(map(condition.holds, expected.samples()))
    except (CheckError, UnknownSampleError):
        return True
    except NeverHoldsError:
        return False
