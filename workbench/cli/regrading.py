"""What `workbench grade` does: open recordings, grade their runs again without asking a model, say what moved."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from workbench import __version__
from workbench.analysis.quality import Quality
from workbench.batches.recordings import result_of_recording, suite_of_recording
from workbench.batches.regrading import case_in, grading_needs_trust, regrade
from workbench.cli.batch import report_width
from workbench.cli.exit_codes import INFRASTRUCTURE, OK, QUALITY_MISSED, USAGE
from workbench.cli.suites import complain, say_problems
from workbench.cli.trust import trusted_suites
from workbench.config.folders import user_folders
from workbench.config.logs import log_to
from workbench.config.program import program_in
from workbench.grading.grade import RunResult
from workbench.reports.json_report import report_of
from workbench.reports.moves import Regraded, move_lines, regrade_report
from workbench.reports.paint import paint_for
from workbench.reports.text import text_report
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.model import Case
from workbench.trajectory.json_text import json_text
from workbench.trajectory.recording import Recording, RecordingError, read_recording


@dataclass(frozen=True)
class _ToGrade:
    """A recording, and the suite and case to grade it by."""

    recording: Recording
    file: SuiteFile
    case: Case


def regrade_and_report(options: argparse.Namespace) -> int:
    """Grade and report; returns an exit code."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    program = program_in(user_folders(), os.environ)
    log_to(program.folders.log, program.secrets)
    try:
        opened = _opened(options.recordings, options.suite)
        recorded = [result_of_recording(each.recording) for each in opened]
    except RecordingError as error:
        complain(f"nothing was graded: {error}", program.secrets)
        return USAGE
    asking = {each.file.path: each.file for each in opened if grading_needs_trust(each.file, each.case)}
    trusted = trusted_suites(asking.values(), program, all_of_them=options.trust)
    if trusted is None:
        return USAGE
    with redirect_stdout(sys.stderr):  # what a suite's Python prints must not spoil the report
        results = [regrade(e.recording, e.file, e.case, trusted=e.file.path in trusted) for e in opened]
    regraded = [
        Regraded(str(each.recording.path), before if each.recording.complete else None, after)
        for each, before, after in zip(opened, recorded, results, strict=True)
    ]
    code = _exit_code(results)
    quality = Quality(met=code != QUALITY_MISSED, gates=())
    if options.format == "json":
        report = report_of(
            results, quality, program_version=__version__, started_at=started_at, interrupted=False, exit_code=code
        )
        text = json_text(regrade_report(report, regraded).model_dump(mode="json"), indent=2)
    else:
        text = "\n".join(_text(opened, results, quality, regraded))
    sys.stdout.write(program.secrets.redact(f"{text}\n"))
    return code


def _opened(paths: Sequence[Path], suite: Path | None) -> list[_ToGrade]:
    """The recordings with what they are graded by; raises RecordingError."""
    recordings = [read_recording(path) for path in dict.fromkeys(paths)]
    now = _sound(load_suite(suite)) if suite is not None else None
    files = [now or _sound(suite_of_recording(recording)) for recording in recordings]
    return [
        _ToGrade(recording, file, case_in(file, recording)) for recording, file in zip(recordings, files, strict=True)
    ]


def _sound(file: SuiteFile) -> SuiteFile:
    if file.suite is None:
        say_problems(file.errors)
        raise RecordingError(f"put the suite of {file.path} right first")
    return file


def _exit_code(results: Sequence[RunResult]) -> int:
    statuses = {result.status for result in results}
    if "error" in statuses:
        return INFRASTRUCTURE
    return QUALITY_MISSED if "failed" in statuses else OK


def _text(
    opened: Sequence[_ToGrade], results: Sequence[RunResult], quality: Quality, regraded: Sequence[Regraded]
) -> list[str]:
    paint = paint_for(sys.stdout, os.environ)
    names = {str(each.file.path): each.file.suite.name for each in opened if each.file.suite is not None}
    lines = text_report(results, quality, suite_names=names, width=report_width(sys.stdout), paint=paint)
    return [*lines, *move_lines(regraded, paint)]
