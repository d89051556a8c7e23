"""`workbench run`: run the cases of suites, print the steps, report, and return an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.app import AppOptions, show_app
from workbench.cli.model_options import add_model_options
from workbench.cli.parser import (
    COMMON_OF_RUNS,
    DEBUGGING,
    RECORDINGS,
    TOOLS,
    add_amount_options,
    add_exit_codes,
    add_history_options,
    add_report_options,
    group,
    history_to_read,
    show_first,
)
from workbench.cli.run_options import (
    add_baseline_options,
    add_by_option,
    add_case_options,
    add_cluster_option,
    add_confirm_option,
    add_detach_option,
    add_execution_options,
    add_max_cost_option,
    add_min_score_option,
    add_paths,
    add_repeat_rule_option,
    add_resume_options,
    add_shard_options,
    add_until_option,
    add_variant_options,
    folder,
    run_options,
)
from workbench.evaluation.exit_codes import DESCRIPTIONS, INFRASTRUCTURE, USAGE
from workbench.numerals import count_text
from workbench.startup import executes

if executes(__name__):
    from workbench.cli.batch_command import (
        BaselineOptions,
        Record,
        approve_runs,
        baseline_for,
        planned,
        print_broken_suites,
        run_approved,
        step_output,
        with_chosen_cases,
    )
    from workbench.cli.live import BatchOutcome, Show, run_live, signals_interrupt
    from workbench.cli.redaction import create_program, redacted, warn
    from workbench.cli.report_output import Output, details_of
    from workbench.config.folders import history_option
    from workbench.engine.breakpoints import Breakpoint, BreakpointError, breakpoint_of, breakpoint_warning
    from workbench.evaluation.approval import Approval
    from workbench.evaluation.options import AppStart, RunOptions
    from workbench.evaluation.plan import Plan
    from workbench.history.records import HistoryError
    from workbench.suite.suite_file import SuiteFile
    from workbench.tools.listings import StoredListings, definition_of
    from workbench.trajectory.events import ToolDefinition
    from workbench.trajectory.recording import RecordingError


if TYPE_CHECKING:
    from workbench.evaluation.baseline import Baseline
    from workbench.evaluation.report import Report
    from workbench.show.views.baseline import AgainstBaseline, Confirm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_model_options(parser)
    add_case_options(parser)
    add_variant_options(parser, compares=False)
    add_execution_options(parser)
    group(parser, TOOLS).add_argument(
        "--frozen", action="store_true", help="run nothing if a server's tools differ from their pins"
    )
    add_by_option(parser)
    add_repeat_rule_option(parser)
    add_min_score_option(parser)
    add_report_options(parser, "run")
    add_amount_options(parser, "show every step in full, with the reasoning")
    recording = group(parser, RECORDINGS).add_mutually_exclusive_group()
    recording.add_argument("--record", type=folder, metavar="DIR", help="record each run in a file of its own")
    recording.add_argument(
        "--record-failed", type=folder, metavar="DIR", help="record only runs that failed or ended in an error"
    )
    add_history_options(parser)
    add_resume_options(parser)
    add_baseline_options(parser)
    add_confirm_option(parser, reruns=True)
    add_max_cost_option(parser)
    add_until_option(parser, compares=False)
    add_detach_option(parser)
    add_shard_options(parser)
    add_cluster_option(parser)
    group(parser, DEBUGGING).add_argument(
        "--break",
        dest="breakpoints",
        action="append",
        default=[],
        metavar="LINE",
        help="run in the app, and hold the runs at this breakpoint, such as 'tool send_email'; repeatable",
    )
    add_exit_codes(parser, DESCRIPTIONS)
    show_first(parser, *COMMON_OF_RUNS)


def execute(arguments: argparse.Namespace) -> int:
    """Run cases and report, or open the app if there are breakpoints. Return an exit code."""
    if arguments.breakpoints and arguments.resume is None:
        return _open_at_breakpoints(arguments)
    from workbench.cli.report_output import output_of

    output = output_of(arguments, "run")
    if output is None or (options := run_options(arguments, compares=False)) is None:
        return USAGE
    baseline = None
    if arguments.baseline is not None:
        history = history_to_read(arguments, arguments.paths)
        confirm: Confirm = arguments.confirm or "reruns"
        baseline = BaselineOptions(arguments.baseline, history, arguments.fail_on, confirm, arguments.confirm_writes)
    elif arguments.fail_on is not None:
        way_out = "give --baseline NAME too"
        if arguments.shard is not None:
            way_out = "give it and --baseline to 'workbench history merge'"
        warn(f"--fail-on {arguments.fail_on} needs a batch to compare with: {way_out}")
        return USAGE
    if (arguments.confirm or arguments.confirm_writes) and arguments.fail_on is None:
        word = "--confirm" if arguments.confirm else "--confirm-writes"
        warn(f"{word} confirms the regressions of --fail-on: give --fail-on regression too, or leave {word} out")
        return USAGE
    if arguments.confirm_writes and baseline is not None and baseline.confirm != "reruns":
        warn(f"--confirm {baseline.confirm} makes no reruns, so --confirm-writes has no effect: omit one of them")
        return USAGE
    record = None
    if arguments.record is not None:
        record = Record(arguments.record)
    elif arguments.record_failed is not None:
        record = Record(arguments.record_failed, only_failed=True)
    return run_and_report(
        options,
        output,
        trust=arguments.trust,
        record=record,
        compared_with=baseline,
        frozen=arguments.frozen,
        detach=arguments.detach,
    )


_WITHOUT_APP = (
    ("format", "--format"),
    ("output", "--output"),
    ("report", "--report"),
    ("no_step_summary", "--no-step-summary"),
    ("min_score", "--min-score"),
    ("until", "--until"),
    ("shard", "--shard"),
    ("cluster", "--cluster"),
    ("frozen", "--frozen"),
    ("baseline", "--baseline"),
    ("fail_on", "--fail-on"),
    ("confirm", "--confirm"),
    ("confirm_writes", "--confirm-writes"),
    ("record_failed", "--record-failed"),
    ("quiet", "--quiet"),
    ("verbose", "--verbose"),
    ("detach", "--detach"),
)
"""The options that do not apply to the app: attribute of the parsed arguments and name of the option."""


def _open_at_breakpoints(arguments: argparse.Namespace) -> int:
    from workbench.cli.app import app_options

    for attribute, name in _WITHOUT_APP:
        if getattr(arguments, attribute) not in (None, False, []):
            warn(f"{name} cannot be used with --break, which opens the app: omit one of them")
            return USAGE
    options = run_options(arguments, compares=False)
    if options is None:
        return USAGE
    return open_at_breakpoints(options, arguments.breakpoints, app_options(arguments))


MANY_RUNS = 2_000
"""The minimum number of stored runs for which reading them is announced. Reading this many runs takes a second."""


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
    """Run cases and report. With `detach`, do so in another process that outlives this one.

    Returns an exit code."""
    program = create_program(options.model_options)
    plan = planned(options, program, quiet=output.quiet)
    if plan is None:
        return USAGE
    # A shard has only some of the baseline's cases, so all others would be reported as removed.
    if plan.shard_ref is not None and compared_with is not None:
        plan.release_claim()
        warn(f"{plan.shard_ref} has only some of the runs: give --baseline to 'workbench history merge' instead")
        return USAGE
    # The baseline is read before the runs, so that a wrong name costs no money.
    baseline = None
    if compared_with is not None:
        baseline = baseline_for(compared_with, plan)
        if baseline is None:
            return USAGE
    if detach:
        # Lazy import: most batches run in the terminal.
        from workbench.cli.detach import Job, detached

        job = Job(plan, output, record, "run", baseline)
        return detached(job, trust=trust, frozen=frozen)
    show = step_output(output, program)
    approval = approve_runs(plan, output, trust=trust, record=record, frozen=frozen)
    if isinstance(approval, int):
        return approval
    live = run_approved(plan, approval, show, output, record, "run", from_history=True)
    if isinstance(live, int):
        return live
    return report_on_runs(live, plan, approval, baseline, output, show)


def report_on_runs(
    outcome: BatchOutcome, plan: Plan, approval: Approval, baseline: Baseline | None, output: Output, show: Show
) -> int:
    """Rerun cases that passed in the baseline and now fail, and report. The reruns have the same approval.

    Returns an exit code."""
    resumed = plan.resumed
    if resumed is not None and resumed.before.count >= MANY_RUNS and not output.quiet:
        warn(f"reading the {count_text(resumed.before.count)} earlier runs for the report")
    try:
        # All servers are closed now, so a signal may raise an exception anywhere.
        with signals_interrupt():
            report = outcome.outcome.report(plan)
        for why in outcome.outcome.left_out:
            warn(f"left out of the report: {why}", plan.program.secrets)
        if baseline is not None:
            against = baseline.compare(report.results)
            report = replace(report, against=_confirmed(against, report, outcome, plan, approval, baseline, show))
        if deliver_report(report, output, plan.history) and outcome.recorded:
            return report.exit_code
        return USAGE
    # In a large batch, most runs are read from the history for the report.
    except (HistoryError, RecordingError) as error:
        warn(f"there is no report: {error}", plan.program.secrets)
        return INFRASTRUCTURE
    except KeyboardInterrupt:
        if outcome.outcome.batch is not None and plan.history is not None:
            stored = f"workbench history show {outcome.outcome.batch}{history_option(plan.history)}"
            warn(f"stopping; there is no report, but the runs are in the history: {stored}")
        raise


def _confirmed(
    against: AgainstBaseline,
    report: Report,
    live: BatchOutcome,
    plan: Plan,
    approval: Approval,
    baseline: Baseline,
    show: Show,
) -> AgainstBaseline:
    # Lazy import: few runs have a baseline.
    from workbench.evaluation.confirmation import confirmation_of

    confirms = confirmation_of(
        baseline, against, report.results, plan, batch=report.batch, interrupted=report.interrupted
    )
    if confirms is None:
        return against
    if confirms.plan is None:
        return confirms.with_verdicts()
    assert confirms.announcement is not None
    warn(confirms.announcement)
    # The reruns have the same needs as the batch, so its approval covers them.
    again = run_live(confirms.plan, approval, show)
    if confirms.plan.needs_history and again.outcome.unrecorded:
        live.recorded = False
    outcome = again.outcome
    return confirms.with_verdicts(outcome.results, batch=outcome.batch, interrupted=outcome.interrupted)


def deliver_report(report: Report, output: Output, history: Path | None) -> bool:
    """Write a report to its destinations and to GitHub Actions. Returns whether all files could be written.

    `history` holds the batch, if it is recorded."""
    # A text report on the terminal already has these lines.
    if not output.is_text or output.file is not None:
        if report.against is not None and report.against.failed:
            warn(report.against.verdict, report.secrets)
        if report.nothing_graded is not None:
            warn(report.nothing_graded, report.secrets)
        print_broken_suites(report.broken, report.secrets)
    written = output.deliver(partial(pieces_of_runs, report, history=history))
    report_to_github(report, output)
    return written


def pieces_of_runs(report: Report, output: Output, *, history: Path | None = None) -> Iterable[str]:
    """Return the pieces of a report on runs in the form of the output. `history` holds the batch, if it is recorded."""
    if not output.is_text:
        return report.pieces(str(output.form), lean=output.lean)
    if output.is_brief:
        details = details_of(report.batch, history, output)
        if report.unrecorded:
            details += f"; {report.recorded_as}"
        return (redacted(report.brief(details, width=output.width, paint=output.paint)),)
    text = report.text(width=output.width, cut_at=output.cut_at, paint=output.paint, amount=output.amount)
    return (redacted(text),)


def report_to_github(report: Report, output: Output) -> None:
    """In a job of GitHub Actions, annotate failed cases, and put the report into the summary."""
    if output.form != "github" and not any(name in os.environ for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")):
        return
    from workbench.cli.github import in_github, write_commands, write_summary
    from workbench.show.github import annotation_lines
    from workbench.show.views.batch_markdown import markdown_pieces

    if output.form == "github" or in_github():
        # A program may read the report from standard output. The annotations then go to standard error.
        apart = output.file is None and not output.is_text
        write_commands(annotation_lines(report), sys.stderr if apart else sys.stdout)
    if output.summary:
        write_summary(partial(markdown_pieces, report))


def open_at_breakpoints(options: RunOptions, lines: Sequence[str], app: AppOptions) -> int:
    """Open the app with runs that are held at breakpoints. Return the app's exit code."""
    breakpoints = _breakpoints(lines)
    if breakpoints is None:
        return USAGE
    program = create_program(options.model_options)
    plan = planned(options, program, quiet=False)
    if plan is None:
        return USAGE
    tools = _known_tools(plan.files, StoredListings(program.folders.listings))
    # A breakpoint on an unknown tool is not an error, because the tool may be missing from the known lists.
    for line, point in zip(lines, breakpoints, strict=True):
        if (doubt := breakpoint_warning(point, tools)) is not None:
            warn(f"--break {line!r}: {doubt}", program.secrets)
    return show_app(app, program, start=AppStart(with_chosen_cases(options, plan), breakpoints))


def _known_tools(files: Iterable[SuiteFile], listings: StoredListings) -> list[ToolDefinition]:
    tools: list[ToolDefinition] = []
    for file in files:
        if file.suite is not None:
            tools += map(definition_of, file.suite.tools)
            for case in file.suite.cases:
                tools += map(definition_of, case.tools)
            for listing in listings.of(file.suite, file.path).values():
                tools += listing.tools
    return tools


def _breakpoints(lines: Sequence[str]) -> tuple[Breakpoint, ...] | None:
    found: list[Breakpoint] = []
    for line in lines:
        try:
            found.append(breakpoint_of(line))
        except BreakpointError as error:
            warn(f"--break {line!r}: {error}")
    return tuple(found) if len(found) == len(lines) else None
