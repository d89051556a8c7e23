"""What `workbench grade` does: open recordings, grade their runs again without asking a model, say what moved."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from workbench.analysis.aggregates import aggregates_of
from workbench.analysis.failures import Failures, failures_of
from workbench.analysis.quality import Quality, quality_of
from workbench.analysis.totals import that_count
from workbench.batches.approval import Approval, Proposal
from workbench.batches.plan import decided_by
from workbench.batches.recorded import result_of_recording, suite_of_recording
from workbench.batches.redacting import shown_result
from workbench.batches.regrading import ToRegrade, case_in, regrade
from workbench.batches.rejudging import RegradingJudges
from workbench.cli.door import json_report, know, know_suites, printing_to, redacted
from workbench.cli.exit_codes import INFRASTRUCTURE, OK, QUALITY_MISSED, USAGE
from workbench.cli.judges import judge_is_known
from workbench.cli.report_output import PLAIN_WIDTH, report_amount, report_width, write_report
from workbench.cli.suites import complain, say_problems
from workbench.cli.trust import approved
from workbench.config.folders import user_folders
from workbench.config.logs import log_to
from workbench.config.model_book import ModelOptions
from workbench.config.models import ConfigError
from workbench.config.program import Program, program_in
from workbench.grading.grade import RunResult
from workbench.reports.failures import failure_lines
from workbench.reports.json_report import report_of
from workbench.reports.moves import Regraded, move_lines, regrade_report
from workbench.reports.paint import Paint, paint_for
from workbench.reports.text import text_report
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.model import Case, GraderName, Suite
from workbench.trajectory.recording import SUFFIX, Recording, RecordingError, read_recording, recordings_in
from workbench.version import __version__


@dataclass(frozen=True)
class _ToGrade:
    """A recording, and the suite and case to grade it by."""

    recording: Recording
    recorded: RunResult
    file: SuiteFile
    case: Case


def regrade_and_report(options: argparse.Namespace) -> int:
    """Grade and report; returns an exit code."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        program = know(program_in(user_folders(), os.environ, ModelOptions(judge=options.judge)))
    except ConfigError as error:
        complain(f"nothing was graded: {error}")
        return USAGE
    log_to(program.folders.log, program.secrets)
    try:
        opened, problems = _opened(options.recordings, options.suite, options.by)
    except RecordingError as error:
        complain(f"nothing was graded: {error}", program.secrets)
        return USAGE
    for problem in problems:
        complain(problem if opened else f"nothing was graded: {problem}", program.secrets)
    if not opened:
        return USAGE
    know_suites(program, {id(each.file): each.file for each in opened}.values())
    if not judge_is_known(options.judge, (each.file for each in opened), program):
        return USAGE
    approval = approved_to_grade(((each.file, each.case) for each in opened), program, options)
    if approval is None:
        return USAGE
    judges = RegradingJudges(program, approval, options.judge)
    with printing_to(sys.stderr):  # what a suite's Python prints must not spoil the report
        runs = [ToRegrade(each.recording, each.file, each.case) for each in opened]
        results = [shown_result(result, program.secrets) for result in asyncio.run(regrade(runs, judges))]
    results, suites = _by_suite(opened, results)
    regraded = [
        Regraded(str(each.recording.path), each.recorded if each.recording.complete else None, after)
        for each, after in zip(opened, results, strict=True)
    ]
    gates = {path: suite.gate for path, suite in suites.items()}
    counted = that_count(results)
    aggregates = aggregates_of(counted, suites)
    quality = quality_of(counted, gates, options.min_score, suite_of=_recorded_suite, aggregates=aggregates)
    code = USAGE if problems else _exit_code(counted, quality)
    counts = set(map(id, counted))
    failures = failures_of(
        (result, each.case) for result, each in zip(results, opened, strict=True) if id(result) in counts
    )
    if options.format == "json":
        report = report_of(
            results,
            quality,
            failures,
            program_version=__version__,
            started_at=started_at,
            interrupted=False,
            exit_code=code,
            cases={result.run_id: each.case for result, each in zip(results, opened, strict=True)},
        )
        text = json_report(regrade_report(report, regraded))
    else:
        text = redacted("\n".join([*_text(options, opened, results, quality, failures, regraded), ""]))
    return code if write_report(text, options.output) else USAGE


def approved_to_grade(
    wanted: Iterable[tuple[SuiteFile, Case]], program: Program, options: argparse.Namespace
) -> Approval | None:
    """What may be called and which judges may be asked to grade these cases; `None` as `approved` has it."""
    proposal = Proposal.of_grading(wanted, program, judges=options.judge is not None)
    return approved(proposal, program, all_of_them=options.trust, together=True)


def _files(path: Path) -> list[Path]:
    """The file of that path, or the recordings of a folder; raises RecordingError."""
    try:
        found = recordings_in(path) if path.is_dir() else [path]
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    if not found:
        raise RecordingError(f"{path} holds no recording: *{SUFFIX}")
    return found


def _by_suite(opened: Sequence[_ToGrade], results: Sequence[RunResult]) -> tuple[list[RunResult], dict[str, Suite]]:
    """The runs, those of one recorded suite under the path of the first, and each suite by that path: a recording has a
    path of its own, and of its suite's cases only one."""
    paths: dict[tuple[str, str], str] = {}
    suites: dict[str, Suite] = {}
    cases: dict[str, dict[str, Case]] = {}
    runs: list[RunResult] = []
    for each, run in zip(opened, results, strict=True):
        assert each.file.suite is not None
        by_itself = each.file.path == each.recording.path
        path = paths.setdefault((_recorded_suite(run), "") if by_itself else ("", run.suite), run.suite)
        suites.setdefault(path, each.file.suite)
        cases.setdefault(path, {}).setdefault(each.case.id, each.case)
        runs.append(replace(run, suite=path))
    return runs, {
        path: suite.model_copy(update={"cases": tuple(cases[path].values())}) for path, suite in suites.items()
    }


def _recorded_suite(run: RunResult) -> str:
    """The hash of the suite that was recorded."""
    start = run.trajectory.start
    return start.suite_hash if start is not None else run.suite


def _opened(paths: Sequence[Path], suite: Path | None, by: GraderName | None) -> tuple[list[_ToGrade], list[str]]:
    """The recordings at the paths, each once, with what they are graded by, and why others cannot be graded; raises
    RecordingError when none can be, since the suite cannot be used. `by` is the grader to decide, instead of the
    case's."""
    now = _sound(load_suite(suite)) if suite is not None else None
    opened: list[_ToGrade] = []
    problems: list[str] = []
    files: dict[Path, None] = {}
    for path in paths:
        try:
            files |= dict.fromkeys(_files(path))
        except RecordingError as error:
            problems.append(str(error))
    for path in files:
        try:
            recording = read_recording(path)
            recorded = result_of_recording(recording)
            file = now or _sound(suite_of_recording(recording))
            case = case_in(file, recording)
            opened.append(_ToGrade(recording, recorded, file, decided_by(case, by) if by is not None else case))
        except RecordingError as error:
            problems.append(str(error))
    return opened, problems


def _sound(file: SuiteFile) -> SuiteFile:
    if file.suite is None:
        say_problems(file.errors)
        raise RecordingError(f"put the suite of {file.path} right first")
    return file


def _exit_code(results: Sequence[RunResult], quality: Quality) -> int:
    if any(result.status == "error" for result in results):
        return INFRASTRUCTURE
    return OK if quality.met else QUALITY_MISSED


def _text(
    options: argparse.Namespace,
    opened: Sequence[_ToGrade],
    results: Sequence[RunResult],
    quality: Quality,
    failures: Failures,
    regraded: Sequence[Regraded],
) -> list[str]:
    to_file = options.output is not None
    paint = Paint(False) if to_file else paint_for(sys.stdout, os.environ)
    names = {str(each.file.path): each.file.suite.name for each in opened if each.file.suite is not None}
    width, amount = PLAIN_WIDTH if to_file else report_width(sys.stdout), report_amount(options)
    lines = text_report(results, quality, suite_names=names, width=width, paint=paint, amount=amount)
    return [*lines, *failure_lines(failures, paint, with_advice=not options.quiet), *move_lines(regraded, paint)]
