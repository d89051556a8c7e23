"""What `workbench run` does: run the cases of suites, stream the steps, report, and answer with an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from workbench.cli.door import begin_program, redacted, warn
from workbench.cli.live import Live, run_live, signals_interrupt
from workbench.cli.making import BaselineOptions, Record, allowed, baseline_for, make_allowed, planned, show_of
from workbench.cli.report_output import Output
from workbench.cli.step_printer import Show
from workbench.config.history_file import history_option
from workbench.evaluation.approval import Approval
from workbench.evaluation.exit_codes import INFRASTRUCTURE, USAGE
from workbench.evaluation.options import RunOptions
from workbench.evaluation.plan import Plan
from workbench.history.records import HistoryError
from workbench.trajectory.recording import RecordingError

MANY_RUNS = 2_000
"""Reading this many stored runs takes a second."""

if TYPE_CHECKING:
    from workbench.evaluation.baseline import Baseline
    from workbench.evaluation.report import Report
    from workbench.reports.baseline import AgainstBaseline


def run_and_report(
    options: RunOptions,
    output: Output,
    *,
    trust: bool,
    record: Record | None,
    compared_with: BaselineOptions | None,
    frozen: bool = False,
    detach: bool = False,
) -> int:
    """Run and report; with `detach`, in a process of its own that goes on without this one. Returns an exit code."""
    program = begin_program(options.model_options)
    plan = planned(options, program, quiet=output.quiet)
    if plan is None:
        return USAGE
    if plan.shard_ref is not None and compared_with is not None:
        plan.abandon()
        warn(f"{plan.shard_ref} has only some of the runs: give --baseline to 'workbench history merge' instead")
        return USAGE
    baseline = baseline_for(compared_with, plan) if compared_with is not None else None
    if baseline is None and compared_with is not None:
        return USAGE
    if detach:
        from workbench.cli.detaching import Job, detached  # on use: most batches stay

        job = Job(plan, output, record, "run", baseline)
        return detached(job, trust=trust, frozen=frozen)
    show = show_of(output, program)
    approval = allowed(plan, output, trust=trust, record=record, frozen=frozen)
    if isinstance(approval, int):
        return approval
    live = make_allowed(plan, approval, show, output, record, "run", from_history=True)
    if isinstance(live, int):
        return live
    return report_on_runs(live, plan, approval, baseline, output, show)


def report_on_runs(
    live: Live, plan: Plan, approval: Approval, baseline: Baseline | None, output: Output, show: Show
) -> int:
    """Report on what was run, after cases that broke since the baseline were made again, with the same approval;
    returns an exit code."""
    resumed = plan.resumed
    if resumed is not None and resumed.before.count >= MANY_RUNS and not output.quiet:
        warn(f"reading the {resumed.before.count:,} runs that were over before, for the report")
    try:
        with signals_interrupt():
            report = live.outcome.report(plan)
        for why in live.outcome.left_out:
            warn(f"left out of the report: {why}", plan.program.secrets)
        if baseline is not None:
            against = baseline.against(report.results)
            report = replace(report, against=_confirmed(against, report, live, plan, approval, baseline, show))
        return report.exit_code if deliver_report(report, output) and live.recorded else USAGE
    except (HistoryError, RecordingError) as error:  # of a large batch, what was written is read from there
        warn(f"there is no report: {error}", plan.program.secrets)
        return INFRASTRUCTURE
    except KeyboardInterrupt:
        if live.outcome.batch is not None and plan.history is not None:
            stored = f"workbench history show {live.outcome.batch}{history_option(plan.history)}"
            warn(f"stopping; there is no report, but the runs are in the history: {stored}")
        raise


def _confirmed(
    against: AgainstBaseline,
    report: Report,
    live: Live,
    plan: Plan,
    approval: Approval,
    baseline: Baseline,
    show: Show,
) -> AgainstBaseline:
    """The comparison after it was made sure which cases broke, which makes runs."""
    from workbench.evaluation.confirming import confirming  # on use, as in `baseline_for`

    confirms = confirming(baseline, against, report.results, plan, batch=report.batch, interrupted=report.interrupted)
    if confirms is None:
        return against
    if confirms.plan is None:
        return confirms.done()
    assert confirms.announcement is not None
    warn(confirms.announcement)
    again = run_live(confirms.plan, approval, show)
    if confirms.plan.needs_history and again.outcome.unrecorded:
        live.recorded = False
    outcome = again.outcome
    return confirms.done(outcome.results, batch=outcome.batch, interrupted=outcome.interrupted)


def deliver_report(report: Report, output: Output) -> bool:
    """Write a report wherever it is wanted, and tell GitHub; returns whether all files could be written."""
    against = report.against
    if against is not None and against.failed and (not output.is_text or output.file is not None):
        warn(against.verdict, report.secrets)
    if report.nothing_graded is not None and (not output.is_text or output.file is not None):
        warn(report.nothing_graded, report.secrets)
    written = output.deliver(partial(pieces_of_runs, report))
    tell_github(report, output)
    return written


def pieces_of_runs(report: Report, output: Output) -> Iterable[str]:
    """The pieces of a report on runs, as it is wanted."""
    if not output.is_text:
        return report.pieces(str(output.form))
    text = report.text(width=output.width, cut_at=output.cut_at, paint=output.paint, amount=output.amount)
    return (redacted(text),)


def tell_github(report: Report, output: Output) -> None:
    """In a job of GitHub Actions, annotate what did not pass, and put the report into the summary."""
    if output.form != "github" and not any(name in os.environ for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")):
        return
    from workbench.cli.github import in_github, write_commands, write_summary
    from workbench.reports.github import annotation_lines
    from workbench.reports.runs_markdown import markdown_pieces

    if output.form == "github" or in_github():
        apart = output.file is None and not output.is_text  # standard output is a report for a program
        write_commands(annotation_lines(report), sys.stderr if apart else sys.stdout)
    if output.summary:
        write_summary(partial(markdown_pieces, report))
