"""`workbench history export`: the runs of a batch as recordings, a file each, or as one JSON report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.analysis.aggregates import aggregates_of
from workbench.analysis.failures import failures_of
from workbench.analysis.quality import quality_of
from workbench.batches.recorded import result_of_recording
from workbench.batches.recordings import export_recording
from workbench.cli.history_command import HistoryCommand, grading_of
from workbench.cli.report_output import can_record_in, is_named_as_report
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.grading.grade import RunResult
from workbench.history.database import Say
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, Regrade, RunRow
from workbench.reports.history_list import called
from workbench.reports.json_report import BatchFacts, report_records, report_without_records
from workbench.reports.json_writing import document_pieces
from workbench.reports.visible import one_line
from workbench.suite.loading import parse_suite
from workbench.suite.model import Suite
from workbench.suite.numerals import counted
from workbench.trajectory.recording import Recording


@dataclass(frozen=True)
class Options:
    """Which batch is exported, as it was graded when, where to and in which form."""

    batch: str
    folder: Path
    grading: int | str | None
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    """Export; returns an exit code."""
    if is_named_as_report(options.folder) and not options.folder.is_dir():
        command.warn(f"{options.folder} looks like a file name: give the folder to export into")
        return USAGE
    with command.history() as history:
        batch = history.batch(options.batch)
        command.learn_secrets(batch)
        grading = grading_of(history, batch, options.grading)
        runs = history.runs(batch.number, grading)
        over = [run for run in runs if run.figures is not None]
        if missing := len(runs) - len(over):
            command.warn(f"{counted(missing, 'run')} of batch {batch.number} never ran and cannot be exported")
        if not over:
            command.warn("nothing was exported")
            return USAGE
        if not can_record_in(options.folder):
            return USAGE
        if options.format == "json":
            return _report(history, batch, over, grading, options.folder, command)
        damaged: list[str] = []
        count = 0
        for _, recording in history.recordings(over, grading, damaged.append):
            export_recording(options.folder, recording, command.program.secrets, f"{_name(batch, grading)}.")
            count += 1
    command.warn_of_damage(damaged)
    command.write([f"{called(batch)}: {counted(count, 'recording')} in {one_line(str(options.folder))}"])
    return USAGE if damaged else OK


def _name(batch: BatchRow, grading: Regrade | None) -> str:
    """How files are called that tell of a batch."""
    return f"batch-{batch.number}" + (f".grading-{grading.number}" if grading is not None else "")


def _report(
    history: History,
    batch: BatchRow,
    runs: Sequence[RunRow],
    grading: Regrade | None,
    folder: Path,
    command: HistoryCommand,
) -> int:
    """Write the report that `workbench run` would have written; returns an exit code."""
    file = folder / f"{_name(batch, grading)}.json"
    damaged: list[str] = []
    suites = _suites(history, batch, damaged.append)
    results = [_result(run, recording) for run, recording in history.recordings(runs, grading, damaged.append)]
    command.warn_of_damage(damaged)
    gates = {path: suite.gate for path, suite in suites.items()}
    quality = quality_of(results, gates, None, aggregates=aggregates_of(results, suites))
    cases = {path: {case.id: case for case in suite.cases} for path, suite in suites.items()}
    graded_by = {
        result.run_id: cases[result.suite][result.case_id]
        for result in results
        if result.case_id in cases.get(result.suite, {})
    }
    failures = failures_of((result, graded_by[result.run_id]) for result in results if result.run_id in graded_by)
    facts = BatchFacts(
        program_version=batch.program,
        started_at=batch.started_at,
        interrupted=bool(batch.missing),
        exit_code=_exit_code(batch, met=quality.met),
        cases=graded_by,
        batch=batch.number,
    )
    document = report_without_records(results, quality, failures, facts)
    pieces = document_pieces(document, report_records(results, quality.cases), command.program.secrets)
    try:
        with file.open("x", encoding="utf-8") as written:
            written.writelines(pieces)
    except FileExistsError:
        command.warn(f"{file} already exists: move it away, or export into another folder")
        return USAGE
    except OSError as error:
        command.warn(f"cannot write {file}: {error.strerror}")
        return USAGE
    command.write([f"{called(batch)}: {counted(len(results), 'run')} in {one_line(str(file))}"])
    return USAGE if damaged else OK


def _exit_code(batch: BatchRow, *, met: bool) -> int:
    """What `workbench run` answered, or would have."""
    if batch.missing:
        return INTERRUPTED
    if batch.count("error"):
        return INFRASTRUCTURE
    return OK if met else QUALITY_MISSED


def _suites(history: History, batch: BatchRow, damaged: Say) -> Mapping[str, Suite]:
    """The suites of a batch as they were, by their paths; without those that can no longer be read, for a secret that
    was taken out of them, or for damage, which `damaged` is told."""
    files = []
    for suite in batch.suites:
        try:
            files.append(parse_suite(history.suite_text(suite), suite.file))
        except DamagedError as error:
            damaged(str(error))
    return {str(file.path): file.suite for file in files if file.suite is not None}


def _result(run: RunRow, recording: Recording) -> RunResult:
    assert run.figures is not None
    result = result_of_recording(recording)
    return replace(
        result, suite=str(run.suite.file), cost_usd=run.figures.cost_usd, grading=run.figures.grading, repeat=run.repeat
    )
