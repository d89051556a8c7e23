"""What `workbench run` does: run the cases of suites, stream the steps, report, and answer with an exit code."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from workbench import __version__
from workbench.analysis.aggregates import aggregates_of
from workbench.analysis.failures import Failures, failures_of
from workbench.analysis.quality import Quality, quality_of
from workbench.batches.plan import PlannedRun, plan_runs
from workbench.batches.recordings import recording_lines
from workbench.batches.single import Execution
from workbench.cli.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, QUALITY_MISSED, USAGE
from workbench.cli.judges import judge_is_known, judge_problems
from workbench.cli.live import Live, Show, run_live
from workbench.cli.model_options import program_for
from workbench.cli.recordings import can_record, recordings_of
from workbench.cli.suites import NoSuitesError, complain, load_suites, say_problems
from workbench.cli.trust import trust_store, trusted_for
from workbench.config.folders import Folders
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.config.secrets import Secrets
from workbench.grading.grade import RunResult
from workbench.providers.built_in import is_built_in
from workbench.providers.model import ModelError
from workbench.providers.registry import BuiltInModels
from workbench.reports.failures import failure_lines
from workbench.reports.json_report import report_of
from workbench.reports.paint import Paint, paint_for
from workbench.reports.text import Amount, text_report
from workbench.suite.loading import SuiteFile
from workbench.trajectory.json_text import json_text

KNOWN_SHOWN_MAX = 20

PLAIN_WIDTH = 120
"""Columns of a report that does not go to a terminal."""


def run_and_report(options: argparse.Namespace) -> int:
    """Run and report; returns an exit code."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    program = program_for(options)
    planned = plan_of(options, program) if program is not None else None
    if program is None or planned is None:
        return USAGE
    files, runs = planned
    if not options.quiet:
        cases_to_run = {(run.file.path, run.case.id): (run.file, run.case) for run in runs}.values()
        for problem in judge_problems(cases_to_run, program.models):
            complain(problem, program.secrets)
    trusted = trusted_for(runs, program, all_of_them=options.trust)
    if trusted is None or not _writable(options.output) or not can_record(options):
        return USAGE
    lines = recording_lines(program.secrets)
    record = recordings_of(options, lines)
    live = run_live(
        runs,
        suite_names=_names(files),
        program=program,
        execution=_execution(options, program.folders),
        concurrency=options.concurrency,
        trusted=trusted,
        show=_show(options, program.secrets),
        lines=lines if options.format == "jsonl" else None,
        record=record,
        own_pace=options.pace == "recorded",
        judge_anew=options.no_judge_cache,
    )
    suites = {str(file.path): file.suite for file in files if file.suite is not None}
    gates = {path: suite.gate for path, suite in suites.items()}
    quality = quality_of(live.results, gates, options.min_score, aggregates=aggregates_of(live.results, suites))
    code = _exit_code(live, quality)
    recorded = record is None or record.problem is None
    if record is not None and record.problem is not None:
        complain(record.problem, program.secrets)
    if options.format == "jsonl":
        return code if recorded else USAGE
    cases = {planned.run_id: planned.case for planned in runs}
    failures = failures_of((result, cases[result.run_id]) for result in live.results)
    if options.format == "json":
        report = report_of(
            live.results,
            quality,
            failures,
            program_version=__version__,
            started_at=started_at,
            interrupted=live.interrupted_by is not None,
            exit_code=code,
        )
        text = json_text(report.model_dump(mode="json"), indent=2) + "\n"
    else:
        text = _text(options, live.results, quality, failures, files)
    written = _write(program.secrets.redact(text), options.output)
    return code if written and recorded else USAGE


def _execution(options: argparse.Namespace, folders: Folders) -> Execution:
    wanted = True if options.execute or options.execute_all else None
    return Execution(wanted, options.execute_all, trust_store(folders).is_bundled)


def plan_of(
    options: argparse.Namespace, program: Program
) -> tuple[tuple[SuiteFile, ...], tuple[PlannedRun, ...]] | None:
    """What is to be run; `None` when that is not possible, which has then been said."""
    try:
        files = load_suites(options.paths)
    except NoSuitesError as error:
        complain(str(error))
        return None
    say_problems(
        (problem for file in files for problem in file.problems if problem.severity == "error" or not options.quiet),
        program.secrets,
    )
    if any(file.suite is None for file in files):
        complain("nothing was run: put these suites right first")
        return None
    runs = plan_runs(
        files,
        models=options.model,
        case_ids=options.case,
        tags=options.tag,
        repeats=options.repeats,
        by=options.by,
    )
    suites = [file.suite for file in files if file.suite is not None]
    ids = {case.id for suite in suites for case in suite.cases}
    tags = {tag for suite in suites for case in suite.cases for tag in (*suite.tags, *case.tags)}
    # A case that was renamed must not drop out of a check unnoticed, so every word has to mean something.
    if _all_known("case", options.case, ids) and _all_known("tag", options.tag, tags):
        if runs:
            known = _all_resolved(options.model, files, program) and judge_is_known(options.judge, files, program)
            return (files, runs) if known else None
        complain("no case selected: no case fits all of the options" if ids else "no case selected: there is none")
    return None


def _all_resolved(models: Sequence[str], files: Sequence[SuiteFile], program: Program) -> bool:
    """Whether it is known how to reach the models of `--model`, before any run begins."""
    problems: dict[str, None] = {}
    built_in = BuiltInModels()
    for name in models:
        if is_built_in(name):
            try:
                built_in.check(name, Path())
            except ModelError as error:
                problems[str(error)] = None
            continue
        for folder in {file.path.parent for file in files}:
            try:
                program.models.resolve(name, folder, by_suite=False)
            except ConfigError as error:
                problems |= dict.fromkeys(error.problems)
    for problem in problems:
        complain(problem, program.secrets)
    return not problems


def _all_known(kind: str, wanted: Sequence[str], known: set[str]) -> bool:
    for word in wanted:
        if word not in known:
            some = ", ".join(sorted(known)[:KNOWN_SHOWN_MAX]) or "none"
            more = ", …" if len(known) > KNOWN_SHOWN_MAX else ""
            complain(f"no case selected: there is no {kind} {word!r}; there are {some}{more}")
    return known.issuperset(wanted)


def _show(options: argparse.Namespace, secrets: Secrets) -> Show:
    steps = not options.quiet and not (options.format == "json" and options.output is None)
    paint = paint_for(sys.stdout, os.environ)
    return Show(sys.stdout, steps, options.verbose, report_width(sys.stdout), paint, secrets)


def report_width(stream: TextIO) -> int:
    """Columns for a report on a stream."""
    return shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns if stream.isatty() else PLAIN_WIDTH


def _names(files: Sequence[SuiteFile]) -> dict[str, str]:
    return {str(file.path): file.suite.name for file in files if file.suite is not None}


def _exit_code(live: Live, quality: Quality) -> int:
    if live.interrupted_by is not None:
        return INTERRUPTED
    if any(result.status == "error" for result in live.results):
        return INFRASTRUCTURE
    return OK if quality.met else QUALITY_MISSED


def _text(
    options: argparse.Namespace,
    results: Sequence[RunResult],
    quality: Quality,
    failures: Failures,
    files: Sequence[SuiteFile],
) -> str:
    to_file = options.output is not None
    paint = Paint(False) if to_file else paint_for(sys.stdout, os.environ)
    lines = text_report(
        results,
        quality,
        suite_names=_names(files),
        width=PLAIN_WIDTH if to_file else report_width(sys.stdout),
        paint=paint,
        amount=report_amount(options),
    )
    return "\n".join((*lines, *failure_lines(failures, paint, with_advice=not options.quiet))) + "\n"


def report_amount(options: argparse.Namespace) -> Amount:
    """What `--quiet` and `--verbose` ask for."""
    return "little" if options.quiet else "much" if options.verbose else "normal"


def _writable(output: Path | None) -> bool:
    """Whether the report can be written later: found out before any run is paid for."""
    if output is None:
        return True
    if output.is_dir():
        obstacle = "it is a folder"
    elif not output.parent.is_dir():
        obstacle = f"there is no folder {output.parent}"
    elif not os.access(output if output.exists() else output.parent, os.W_OK):
        obstacle = "permission denied"
    else:
        return True
    complain(f"cannot write {output}: {obstacle}")
    return False


def _write(text: str, output: Path | None) -> bool:
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return True
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        complain(f"cannot write {output}: {error.strerror}; the report follows on standard output")
        sys.stdout.write(text)
        return False
    return True
