"""Captures what runs of cases share as what the cases expect, for whole suites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workbench.authoring.accepting.calls import AcceptError
from workbench.authoring.accepting.several import RunToAccept, proposal_for_all
from workbench.authoring.document import Document
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.reports.capture import CapturedCase, CapturedSuite
from workbench.suite.disk import from_here
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.suite.render import Table
from workbench.suite.sameness import same
from workbench.suite.splice import SpliceError

_ENDED = ("answered", "decided", "steps done", "step failed")
"""Why a run ended that says what the model does: neither a limit nor a refusal cut it off."""


@dataclass(frozen=True)
class CaseToCapture:
    """A case, the runs of it that count, and why others do not."""

    case: Case
    runs: tuple[RunToAccept, ...]
    left_out: tuple[str, ...] = ()


def why_left_out(result: RunResult) -> str | None:
    """Return why a run says nothing about what the model does; `None` if it does."""
    finish = result.trajectory.finish
    if result.status in (Status.ERROR, Status.STOPPED) or finish is None:
        return result.error or result.status
    return None if finish.reason in _ENDED else f"it ended because of: {finish.reason}"


def left_out(result: RunResult, why: str) -> str:
    """Say which run is left out, and why."""
    return f"run {result.repeat + 1} with {result.model}: {why}"


def case_table(file: SuiteFile, case: Case) -> tuple[int, Table]:
    """Return where a case stands in its sound suite, and its table."""
    assert file.suite is not None and file.parts is not None, "only sound suites are captured"
    index = next(at for at, other in enumerate(file.suite.cases) if other.id == case.id)
    return index, file.parts.cases[index]


def captured_suite(file: SuiteFile, cases: Sequence[CaseToCapture], secrets: Secrets) -> CapturedSuite:
    """Propose expectations for cases of a sound suite. Everything else in its text stays as it is."""
    document, captured = Document.of(file.text), []
    for each in cases:
        came_to = _captured(file, each, secrets)
        if came_to.table is not None:
            index, _ = case_table(file, each.case)
            try:
                document = document.with_case(index, came_to.table)
                came_to = replace(came_to, block=document.block(index), table=document.table(index))
            except SpliceError as error:
                came_to = replace(came_to, outcome="not agreed", why=str(error), table=None)
        captured.append(came_to)
    assert document.parts is not None, "a sound suite has parts"
    after = document.parts.checked().text
    return CapturedSuite(path=from_here(str(file.path)), before=file.text, after=after, cases=tuple(captured))


def _captured(file: SuiteFile, asked: CaseToCapture, secrets: Secrets) -> CapturedCase:
    case, runs = asked.case, asked.runs
    came_to = CapturedCase(
        case_id=case.id, case_name=case.name, outcome="no runs", runs=len(runs), left_out=asked.left_out
    )
    if case.skip is not None:
        return replace(came_to, outcome="skipped", why=case.skip, left_out=())
    if not runs:
        return came_to
    assert file.suite is not None
    _, table = case_table(file, case)
    try:
        changed = proposal_for_all(file.suite, case, table, runs, secrets).expectations_in(table)
    except AcceptError as error:
        return replace(came_to, outcome="not agreed", why=str(error))
    if same(changed, table):
        return replace(came_to, outcome="unchanged")
    return replace(came_to, outcome="proposed", table=changed)
