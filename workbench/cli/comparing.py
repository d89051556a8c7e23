"""What `workbench compare` does: in a terminal open the app on the comparison, else run all cases and report;
or report on a batch of the history, after what is missing in it was run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from operator import itemgetter

from workbench.analysis.comparison import cells_of
from workbench.analysis.side_by_side import Comparison, compared
from workbench.cli.app import AppOptions, show_app
from workbench.cli.door import begin_program, json_report, redacted, warn, write
from workbench.cli.history_list import batches_text
from workbench.cli.live import Live
from workbench.cli.making import Record, make_runs, planned, show_notices, way_to_go_on
from workbench.cli.report_output import Output, report_width
from workbench.cli.step_printer import Show
from workbench.config.history_file import history_option
from workbench.config.program import Program
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, USAGE
from workbench.evaluation.options import Begin, RunOptions
from workbench.evaluation.plan import Plan, PlanError
from workbench.evaluation.resume import complete_batch
from workbench.evaluation.run import Outcome
from workbench.grading.run_summary import RunSummary
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.reports.comparison import comparison_lines, summary_lines
from workbench.reports.comparison_json import comparison_report
from workbench.reports.comparison_markdown import markdown_of
from workbench.reports.history_list import called
from workbench.reports.paint import Paint, paint_for
from workbench.version import __version__


def compare(
    options: RunOptions, output: Output, app: AppOptions, *, record: Record | None, only_differences: bool
) -> int:
    """Compare in the app, or without it; returns an exit code."""
    program = begin_program(options.model_options)
    comparing = _Comparing(program, options, output, only_differences)
    if options.resume is not None:
        return comparing.resume(record, trust=app.trust)
    plan = planned(options, program, quiet=output.quiet)
    if plan is None:
        return USAGE
    models = tuple(dict.fromkeys(run.model for run in plan.runs))
    if len(models) < 2:
        warn(f"nothing to compare: {models[0]} is the only model; give --model at least twice", program.secrets)
        return USAGE
    if _opens_app(output):
        begin = Begin(options, opens="compare", only_differences=only_differences)
        return show_app(app, program, begin=begin, left=partial(_say_what_was_seen, options, program))
    return comparing.run_and_report(plan, models, record, trust=app.trust)


_NAMED_MAX = 3
"""Of so many batches, the latest, it is said how they can go on."""


def _say_what_was_seen(
    options: RunOptions, program: Program, comparison: Comparison, unfinished: Sequence[int]
) -> None:
    """Leave on the terminal what was seen in the app."""
    lines = summary_lines(comparison, width=report_width(sys.stdout), paint=paint_for(sys.stdout, os.environ))
    write("\n".join(lines) + "\n")
    history = options.history
    if not unfinished:
        return
    assert history is not None  # numbers are those of batches in it
    with suppress(HistoryError), History(history) as stored:
        for number in sorted(unfinished)[-_NAMED_MAX:]:
            warn(way_to_go_on(history, number, stored.batch(str(number)).resumed_by), program.secrets)
        if (more := len(unfinished) - _NAMED_MAX) > 0:
            names_all = f"'workbench history list{history_option(history)}' lists all"
            warn(f"runs are also missing in {batches_text(more)}: {names_all}", program.secrets)


def _opens_app(output: Output) -> bool:
    """Whether a person is there to look, and asked for no report."""
    asked_for_report = output.form is not None or output.file is not None
    return not asked_for_report and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


class _Comparing:
    """A comparison that is reported without the app."""

    def __init__(self, program: Program, options: RunOptions, output: Output, only_differences: bool) -> None:
        self._program = program
        self._options = options
        self._output = output
        self._only_differences = only_differences

    def resume(self, record: Record | None, *, trust: bool) -> int:
        """Make what is missing in a batch, if anything is, and report on all of it."""
        quiet, program = self._output.quiet, self._program
        try:
            complete = complete_batch(self._options, program)
        except PlanError as error:
            show_notices(error.notices, program, quiet=quiet)
            return USAGE
        plan = planned(self._options, program, quiet=quiet) if complete is None else None
        if complete is not None:
            batch = complete.batch
        elif plan is not None and plan.resumed is not None:
            batch = plan.resumed.batch
        else:
            return USAGE
        if len(batch.models) < 2:
            if plan is not None:
                plan.abandon()
            only = f"{batch.models[0]} is the only model of batch {batch.number}"
            warn(f"nothing to compare: {only}", program.secrets)
            return USAGE
        if plan is not None:
            return self.run_and_report(plan, batch.models, record, trust=trust)
        assert complete is not None
        show_notices(complete.notices, program, quiet=quiet)
        if not self._output.can_write():
            return USAGE
        if not quiet:
            warn(f"batch {called(batch)} is complete: nothing was run", program.secrets)
        names = {str(suite.file): suite.name for suite in batch.suites}
        comparison = compared(cells_of(complete.figures), batch.models, names, complete.gates)
        return self._report(comparison, complete.figures, Outcome(batch=batch.number, started_at=batch.started_at))

    def run_and_report(self, plan: Plan, models: Sequence[str], record: Record | None, *, trust: bool) -> int:
        """Make the runs of a plan, and report on all of its batch."""
        show = Show(sys.stdout, False, False, report_width(sys.stdout), Paint(False), self._program.secrets)
        live = make_runs(plan, show, self._output, trust=trust, record=record, command="compare")
        if live is None:
            return USAGE
        figures = _figures(plan, live)
        gates = {str(file.path): file.suite.gate for file in plan.files if file.suite is not None}
        code = self._report(compared(cells_of(figures), models, _names(plan), gates), figures, live.outcome)
        return code if live.recorded else USAGE

    def _report(self, comparison: Comparison, figures: Sequence[RunSummary], outcome: Outcome) -> int:
        code = _exit_code(outcome, figures)
        written = self._output.deliver(self._text(comparison, outcome, code))
        if written and self._output.file is not None and not self._output.quiet:
            batch = f", {outcome.recorded_as}" if outcome.recorded_as is not None else ""
            warn(f"the report is in {self._output.file}{batch}", self._program.secrets)
        return code if written else USAGE

    def _text(self, comparison: Comparison, outcome: Outcome, code: int) -> str:
        output, only_differences, interrupted = self._output, self._only_differences, outcome.interrupted
        if output.form == "json":
            report = comparison_report(
                comparison,
                only_differences=only_differences,
                program_version=__version__,
                started_at=outcome.started_at,
                interrupted=interrupted,
                exit_code=code,
                batch=outcome.batch,
            )
            return json_report(report)
        kept = outcome.recorded_as
        if output.form == "markdown":
            return redacted(
                markdown_of(comparison, only_differences=only_differences, interrupted=interrupted, kept=kept)
            )
        lines = list(
            comparison_lines(
                comparison,
                width=output.width,
                paint=output.paint,
                only_differences=only_differences,
                interrupted=interrupted,
            )
        )
        if kept is not None and not output.quiet:
            lines.append(output.paint(kept, "quiet"))
        return redacted("\n".join(lines) + "\n")


def _figures(plan: Plan, live: Live) -> list[RunSummary]:
    """The figures of all runs of the batch, in the order of its plan."""
    places = plan.places
    now = {places[run_id]: figures for run_id, figures in live.outcome.figures_by_run.items()}
    before = plan.resumed.over if plan.resumed is not None else {}
    return [figures for _, figures in sorted({**before, **now}.items(), key=itemgetter(0))]


def _names(plan: Plan) -> Mapping[str, str]:
    """What the suites of the batch are called, by their paths."""
    if plan.resumed is not None:
        return {str(suite.file): suite.name for suite in plan.resumed.batch.suites}
    return plan.suite_names


def _exit_code(outcome: Outcome, figures: Sequence[RunSummary]) -> int:
    """A comparison is no gate: that cases fail is what it is about."""
    if outcome.interrupted:
        return INTERRUPTED
    return INFRASTRUCTURE if any(run.status == "error" for run in figures) else OK
