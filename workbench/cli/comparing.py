"""What `workbench compare` does: in a terminal open the app on the comparison, else run all cases and report;
or report on a batch of the history, after what is missing in it was run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter

from workbench.analysis.comparison import cells_of
from workbench.analysis.side_by_side import Comparison, compared
from workbench.cli.beginning import begin_from
from workbench.cli.door import json_report, redacted, write
from workbench.cli.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, USAGE
from workbench.cli.history_list import batches_text
from workbench.cli.history_options import history_for
from workbench.cli.live import Live, Show
from workbench.cli.main import show_app
from workbench.cli.making import make_runs, says_what
from workbench.cli.model_options import program_for
from workbench.cli.planning import ToRun, suite_names, to_run
from workbench.cli.report_output import PLAIN_WIDTH, can_write, report_width, write_report
from workbench.cli.resuming import to_go_on, to_resume, way_to_go_on, whole_batch
from workbench.cli.suites import NoSuitesError, complain
from workbench.config.history_file import history_option
from workbench.config.program import Program
from workbench.grading.figures import RunSummary
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.reports.comparison import comparison_lines, summary_lines
from workbench.reports.comparison_json import comparison_report
from workbench.reports.comparison_markdown import markdown_of
from workbench.reports.history_list import called
from workbench.reports.paint import Paint, paint_for
from workbench.version import __version__


def compare(options: argparse.Namespace) -> int:
    """Compare in the app, or without it; returns an exit code."""
    program = program_for(options)
    if program is None or not says_what(options, "compare"):
        return USAGE
    if options.resume is not None:
        return _resume(options, program)
    asked = to_run(options, program)
    if asked is None:
        return USAGE
    models = tuple(dict.fromkeys(run.model for run in asked.runs))
    if len(models) < 2:
        complain(f"nothing to compare: {models[0]} is the only model; give --model at least twice", program.secrets)
        return USAGE
    if _opens_app(options):
        return show_app(
            options, program, begin=begin_from(options, "compare"), left=partial(_say_what_was_seen, options, program)
        )
    return _run_and_report(options, program, asked, models, suite_names(asked.files))


_NAMED_MAX = 3
"""Of so many batches, the latest, it is said how they can go on."""


def _say_what_was_seen(
    options: argparse.Namespace, program: Program, comparison: Comparison, unfinished: Sequence[int]
) -> None:
    """Leave on the terminal what was seen in the app."""
    lines = summary_lines(comparison, width=report_width(sys.stdout), paint=paint_for(sys.stdout, os.environ))
    write("\n".join(lines) + "\n")
    history = history_for(options, options.paths, program)
    if not unfinished:
        return
    assert history is not None  # numbers are those of batches in it
    with suppress(HistoryError), History(history) as kept:
        for number in sorted(unfinished)[-_NAMED_MAX:]:
            by = kept.batch(str(number)).resumed_by
            complain(f"{to_go_on(by)}: {way_to_go_on(history, number, by)}", program.secrets)
        if (more := len(unfinished) - _NAMED_MAX) > 0:
            names_all = f"'workbench history list{history_option(history)}' names all"
            complain(f"runs are missing in {batches_text(more)} more: {names_all}", program.secrets)


def _opens_app(options: argparse.Namespace) -> bool:
    """Whether a person is there to look, and asked for no report."""
    asked_for_report = options.format is not None or options.output is not None
    return not asked_for_report and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _resume(options: argparse.Namespace, program: Program) -> int:
    """Make what is missing in a batch, if anything is, and report on all of it."""
    try:
        whole = whole_batch(options, program)
        asked = to_resume(options, program, in_full=False) if whole is None else None
    except (HistoryError, NoSuitesError) as error:
        complain(f"nothing was run: {error}", program.secrets)
        return USAGE
    batch = whole[0] if whole is not None else asked.batch if asked is not None else None
    if batch is None:
        return USAGE
    if len(batch.models) < 2:
        complain(f"nothing to compare: {batch.models[0]} is the only model of batch {batch.number}", program.secrets)
        return USAGE
    names = {str(suite.file): suite.name for suite in batch.suites}
    if asked is not None:
        return _run_and_report(options, program, asked, batch.models, names)
    assert whole is not None
    if not can_write(options.output):
        return USAGE
    if not options.quiet:
        complain(f"nothing is missing in batch {called(batch)}: nothing was run", program.secrets)
    live = Live(batch=batch.number, started_at=batch.started_at)
    _, figures, gates = whole
    return _report(options, program, compared(cells_of(figures), batch.models, names, gates), figures, live)


def _run_and_report(
    options: argparse.Namespace, program: Program, asked: ToRun, models: Sequence[str], names: Mapping[str, str]
) -> int:
    history = history_for(options, options.paths, program)
    show = Show(sys.stdout, False, False, report_width(sys.stdout), Paint(False), program.secrets)
    live = make_runs(options, program, asked, history, "compare", show)
    if live is None:
        return USAGE
    places = asked.places
    made = {places[result.run_id]: of_run for result, of_run in zip(live.results, live.figures(), strict=True)}
    figures = [of_run for _, of_run in sorted({**asked.over, **made}.items(), key=itemgetter(0))]
    gates = {str(file.path): file.suite.gate for file in asked.files if file.suite is not None}
    code = _report(options, program, compared(cells_of(figures), models, names, gates), figures, live)
    return code if live.recorded else USAGE


def _report(
    options: argparse.Namespace,
    program: Program,
    comparison: Comparison,
    figures: Sequence[RunSummary],
    live: Live,
) -> int:
    code = _exit_code(live, figures)
    text = _text(options, comparison, live, code)
    written = write_report(text, options.output)
    if written and options.output is not None and not options.quiet:
        batch = f", {live.kept}" if live.kept is not None else ""
        complain(f"the report is in {options.output}{batch}", program.secrets)
    return code if written else USAGE


def _exit_code(live: Live, figures: Sequence[RunSummary]) -> int:
    """A comparison is no gate: that cases fail is what it is about."""
    if live.interrupted_by is not None:
        return INTERRUPTED
    return INFRASTRUCTURE if any(run.status == "error" for run in figures) else OK


def _text(options: argparse.Namespace, comparison: Comparison, live: Live, code: int) -> str:
    only_differences: bool = options.only_differences
    form = options.format
    interrupted = live.interrupted_by is not None
    if form == "json":
        report = comparison_report(
            comparison,
            only_differences=only_differences,
            program_version=__version__,
            started_at=live.started_at,
            interrupted=interrupted,
            exit_code=code,
            batch=live.batch,
        )
        return json_report(report)
    if form == "markdown":
        return redacted(
            markdown_of(comparison, only_differences=only_differences, interrupted=interrupted, kept=live.kept)
        )
    to_file = options.output is not None
    width = PLAIN_WIDTH if to_file else report_width(sys.stdout)
    paint = Paint(False) if to_file else paint_for(sys.stdout, os.environ)
    lines = list(
        comparison_lines(
            comparison, width=width, paint=paint, only_differences=only_differences, interrupted=interrupted
        )
    )
    if live.kept is not None and not options.quiet:
        lines.append(paint(live.kept, "quiet"))
    return redacted("\n".join(lines) + "\n")
