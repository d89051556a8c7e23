"""What `workbench run` does: run the cases of suites, stream the steps, report, and answer with an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from workbench.analysis.aggregates import aggregates_of
from workbench.analysis.failures import Failures, failures_of
from workbench.analysis.quality import Quality, quality_of
from workbench.batches.redacting import shown_result
from workbench.cli.baseline import Baseline, baseline_of, fits_baseline
from workbench.cli.door import json_report, redacted
from workbench.cli.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.cli.history_options import history_for
from workbench.cli.live import Live, Show
from workbench.cli.making import make_runs, says_what
from workbench.cli.model_options import program_for
from workbench.cli.planning import ToRun, suite_names, to_run
from workbench.cli.report_output import PLAIN_WIDTH, report_amount, report_width, write_report
from workbench.cli.resuming import to_resume
from workbench.cli.suites import NoSuitesError, complain
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.grading.grade import RunResult
from workbench.history.records import HistoryError
from workbench.reports.baseline import AgainstBaseline, baseline_lines
from workbench.reports.failures import failure_lines
from workbench.reports.json_report import report_of
from workbench.reports.paint import Paint, paint_for
from workbench.reports.text import text_report
from workbench.reports.timing import timing_line
from workbench.suite.loading import SuiteFile
from workbench.trajectory.recording import RecordingError
from workbench.version import __version__


def run_and_report(options: argparse.Namespace) -> int:
    """Run and report; returns an exit code."""
    program = program_for(options)
    if program is None or not says_what(options, "run") or not fits_baseline(options):
        return USAGE
    history = history_for(options, options.paths, program)
    try:
        asked = to_run(options, program) if options.resume is None else to_resume(options, program, in_full=True)
        baseline = baseline_of(options, program, asked) if asked is not None else None
    except (HistoryError, RecordingError, NoSuitesError) as error:
        complain(f"nothing was run: {error}", program.secrets)
        return USAGE
    return _run(options, program, asked, baseline, history) if asked is not None else USAGE


def _run(
    options: argparse.Namespace, program: Program, asked: ToRun, baseline: Baseline | None, history: Path | None
) -> int:
    live = make_runs(options, program, asked, history, "run", _show(options, program.secrets))
    if live is None:
        return USAGE
    whole = asked.whole(live.results)
    results = [made.result for made in whole]
    suites = {str(file.path): file.suite for file in asked.files if file.suite is not None}
    gates = {path: suite.gate for path, suite in suites.items()}
    quality = quality_of(results, gates, options.min_score, aggregates=aggregates_of(results, suites))
    against = baseline.against(results) if baseline is not None else None
    code = _exit_code(live, asked, results, quality, against)
    if against is not None and against.failed and (options.format not in (None, "text") or options.output is not None):
        complain(against.verdict, program.secrets)
    if options.format == "jsonl":
        return code if live.recorded else USAGE
    results = [shown_result(result, program.secrets) for result in results]
    failures = failures_of(zip(results, (program.secrets.redacted(made.case) for made in whole), strict=True))
    if options.format == "json":
        report = report_of(
            results,
            quality,
            failures,
            program_version=__version__,
            started_at=live.started_at,
            interrupted=live.interrupted_by is not None,
            exit_code=code,
            batch=live.batch,
            baseline=against,
            timing=live.timing(),
            cases={made.result.run_id: made.case for made in whole},
        )
        text = json_report(report)
    else:
        text = redacted(_text(options, results, quality, failures, asked.files, against, live))
    written = write_report(text, options.output)
    return code if written and live.recorded else USAGE


def _show(options: argparse.Namespace, secrets: Secrets) -> Show:
    steps = not options.quiet and not (options.format == "json" and options.output is None)
    paint = paint_for(sys.stdout, os.environ)
    return Show(sys.stdout, steps, options.verbose, report_width(sys.stdout), paint, secrets)


def _exit_code(
    live: Live, asked: ToRun, results: Sequence[RunResult], quality: Quality, against: AgainstBaseline | None
) -> int:
    if live.interrupted_by is not None:
        return INTERRUPTED
    if asked.left_out:
        return USAGE  # whether demands are met is not known
    if any(result.status == "error" for result in results):
        return INFRASTRUCTURE
    if against is not None and against.fail_on is not None:
        return QUALITY_MISSED if against.failed or not quality.demands_met else OK
    return OK if quality.met else QUALITY_MISSED


def _text(
    options: argparse.Namespace,
    results: Sequence[RunResult],
    quality: Quality,
    failures: Failures,
    files: Sequence[SuiteFile],
    against: AgainstBaseline | None,
    live: Live,
) -> str:
    to_file = options.output is not None
    paint = Paint(False) if to_file else paint_for(sys.stdout, os.environ)
    width = PLAIN_WIDTH if to_file else report_width(sys.stdout)
    lines = [
        *text_report(
            results,
            quality,
            suite_names=suite_names(files),
            width=width,
            paint=paint,
            amount=report_amount(options),
        ),
        *failure_lines(failures, paint, with_advice=not options.quiet),
    ]
    if against is not None:
        cut_at = None if to_file or not sys.stdout.isatty() else width
        lines += baseline_lines(against, cut_at, paint, only_worse=options.quiet)
    lines.append(paint(timing_line(live.timing()), "quiet"))
    if live.kept is not None:
        lines.append(paint(live.kept, "quiet"))
    return "\n".join(lines) + "\n"
