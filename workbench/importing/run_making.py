"""Makes recordings of imported runs: their events, and the grades that their cases give them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from workbench.batches.plan import PlannedRun, next_run_id
from workbench.batches.recordings import save_recording
from workbench.batches.single import result_of
from workbench.checks.check import CheckContext
from workbench.config.secrets import Secrets
from workbench.engine.told import started_elsewhere, told_payloads
from workbench.evaluation.regrade import graded_anew
from workbench.grading.agreement import Agreement, AgreementFold, agreements
from workbench.grading.grade import RunResult
from workbench.importing.imported import ImportedRun
from workbench.importing.suite_making import MadeSuite
from workbench.limits import MAX_MILLISECONDS
from workbench.suite.excerpt import Excerpts
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case
from workbench.tools.listings import definitions_for
from workbench.trajectory.events import Event, EventPayload, FinishReason, ResponseFinished, RunFinished
from workbench.trajectory.fold import fold


def run_of(file: SuiteFile, case: Case, run: ImportedRun, repeat: int) -> tuple[PlannedRun, list[Event], RunResult]:
    """Returns an imported run as one of its case, graded by it. No model is asked, and no tool is called."""
    planned = PlannedRun(next_run_id(), file, case, run.model, repeat)
    events: list[Event] = []
    time_ms = 0.0
    for payload in _payloads(planned, run):
        if isinstance(payload, ResponseFinished):
            time_ms = min(time_ms + payload.latency_ms, MAX_MILLISECONDS)
        events.append(Event(planned.run_id, len(events), time_ms, payload))
    return planned, events, graded_anew(result_of(planned, "error", fold(events)), planned, CheckContext())


def agreement_of(made: MadeSuite) -> tuple[Agreement, ...]:
    """Return how the scores of the runs where they were made agree with those of their cases."""
    assert made.file.suite is not None
    pairs = zip(made.file.suite.cases, made.cases, strict=True)
    scored = [(case, number, run) for case, each in pairs for number, run in enumerate(each.runs) if run.scores]
    return agreements(run_of(made.file, case, run, number)[2] for case, number, run in scored)


def record_runs(made: MadeSuite, folder: Path, secrets: Secrets, agreement: AgreementFold | None = None) -> int:
    """Record the runs of all cases into a folder, and count them in an `agreement`. Returns how many there are. Raises
    RecordingError."""
    assert made.file.suite is not None
    count, excerpts = 0, Excerpts()
    for case, imported in zip(made.file.suite.cases, made.cases, strict=True):
        for repeat, run in enumerate(imported.runs):
            planned, events, result = run_of(made.file, case, run, repeat)
            if agreement is not None:
                agreement.add(result)
            started_at = run.started_at or datetime.now(UTC).isoformat(timespec="milliseconds")
            save_recording(folder, planned, events, result, started_at=started_at, secrets=secrets, excerpts=excerpts)
            count += 1
    return count


def _payloads(planned: PlannedRun, run: ImportedRun) -> Iterator[EventPayload]:
    case, suite = planned.case, planned.suite
    tools = [tool for tool in definitions_for(suite, case) if case.offer is None or tool.name in case.offer]
    notice = "imported: the run was made elsewhere"
    yield started_elsewhere(suite, case, run.model, planned.file.hash, tools, (notice,), run.scores)
    yield from told_payloads(run.rounds)
    reason: FinishReason = "answered"
    if run.rounds and run.rounds[-1].calls:
        reason = "decided" if len(run.rounds) == 1 and not case.checks_answer else "rounds exhausted"
    yield RunFinished(reason)
