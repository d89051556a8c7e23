"""An audit of a suite: what its cases cannot find out, and what in them can never be met.

Each case is graded by the suite's own graders on the runs of imagined agents: what an agent passes that understands
nothing asks too little, and what one fails that does exactly what is expected asks for what cannot be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from workbench.analysis.audit.agents import AGREEING, REFUSING, careless_agents, right_run
from workbench.analysis.audit.coverage import Coverage, coverage_of
from workbench.analysis.audit.expectations import audit_calls
from workbench.analysis.audit.finding import AuditFinding
from workbench.analysis.audit.mocks import audit_case_mocks, audit_suite_mocks
from workbench.analysis.audit.samples import NeverHoldsError
from workbench.analysis.audit.tool_table import ToolTable
from workbench.checks.errors import CheckError
from workbench.grading.errors import GradingError
from workbench.grading.grade import Grade
from workbench.grading.run import graded_by
from workbench.suite.model import Case, Suite
from workbench.suite.places import Place
from workbench.suite.settings import CaseSettings, settings_of
from workbench.tools.listings import Listing

_MOST_SAID = 3
"""Reasons of a case out of reach that are named."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found in a suite, in the order of the file, and what of the tools its cases cover."""

    findings: tuple[AuditFinding, ...]
    coverage: Coverage


def audit_suite(suite: Suite, listings: Mapping[str, Listing]) -> Audit:
    """Audit a sound suite. `listings` are the tools that its servers listed when they last ran, by server; nothing is
    started, called or asked."""
    table = ToolTable.of(suite, listings)
    return Audit(tuple(_findings(suite, table)), coverage_of(suite.cases, table))


def _findings(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    for name in table.unlisted:
        number = next(index for index, server in enumerate(suite.servers) if server.name == name)
        message = f"the tools of the server {name!r} are not known: names and values of its tools were not looked at"
        yield AuditFinding("unknown tools", "note", ("servers", number), message, "`workbench tools` asks the server")
    yield from audit_suite_mocks(suite, table)
    for index in range(len(suite.cases)):
        yield from audit_case(suite, index, table)
    yield from _gate(suite, table)


def audit_case(suite: Suite, index: int, table: ToolTable) -> Iterator[AuditFinding]:
    """Audit one case of a sound suite, skipped or not."""
    case = suite.cases[index]
    place: Place = ("cases", index)
    settings = settings_of(suite, case)
    yield from audit_calls(case, place, table)
    yield from audit_case_mocks(case, place, table)
    yield from _out_of_reach(case, place, settings, table)
    yield from _careless(case, place, settings, table)


def _out_of_reach(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    grade = _best(case, settings, table)
    if grade is None or grade.status in ("passed", "error"):
        return
    why = [issue.why for issue in grade.issues][:_MOST_SAID] or [grade.reason]
    score = f" with {grade.score:.2f}" if grade.score is not None else ""
    if grade.status == "failed":
        message = (
            f"no run can pass: one that does exactly what is expected fails{score} ({'; '.join(dict.fromkeys(why))})"
        )
        yield AuditFinding("out of reach", "warning", place, message, "", case.id)
    else:
        message = f"no run can do better than warned: one that does exactly what is expected gets{score or ' that'}"
        yield AuditFinding("out of reach", "note", place, message, "lower warn_threshold", case.id)


def _best(case: Case, settings: CaseSettings, table: ToolTable) -> Grade | None:
    """The grade of a run that does exactly what is expected; `None` where that cannot be made up."""
    try:
        meant, run = right_run(case, table.offered(case.offer), settings.limits.max_rounds)
        return graded_by(settings.grading.by, meant, settings, run, AGREEING)
    except (NeverHoldsError, CheckError, GradingError):
        return None


def _careless(case: Case, place: Place, settings: CaseSettings, table: ToolTable) -> Iterator[AuditFinding]:
    """The first agent that passes without understanding anything."""
    for agent in careless_agents(case, table.offered(case.offer)):
        try:
            grade = graded_by(settings.grading.by, case, settings, agent.run, REFUSING)
        except (CheckError, GradingError):
            return
        if grade.status in ("passed", "warned"):
            # A case that expects no call is there to be passed by silence; it says little all the same.
            meant = case.expect_no_calls
            hint = "check the answer too" if meant or not case.expects_calls_or_none else "check arguments more closely"
            message = f"{agent.said} {'passes' if grade.status == 'passed' else 'is no more than warned'}"
            yield AuditFinding("weak case", "note" if meant else "warning", place, message, hint, case.id)
            return


def _gate(suite: Suite, table: ToolTable) -> Iterator[AuditFinding]:
    """A mean score that no run of the suite reaches."""
    if suite.gate.min_score is None:
        return
    grades = [_best(case, settings_of(suite, case), table) for case in suite.cases if case.skip is None]
    scores = [grade.score for grade in grades if grade is not None and grade.score is not None]
    if scores and sum(scores) / len(scores) < suite.gate.min_score - 1e-9:
        message = (
            f"out of reach: runs that do exactly what is expected have the mean score {sum(scores) / len(scores):.3f}"
        )
        yield AuditFinding("out of reach", "warning", ("gate", "min_score"), message)
