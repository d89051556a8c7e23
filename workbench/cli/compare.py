"""`workbench compare`: compare models in the app or in a report, or complete a stored comparison."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cli.app import AppOptions, show_app
from workbench.cli.model_options import add_model_options
from workbench.cli.parser import (
    BASELINE,
    COMMON_OF_RUNS,
    QUIET,
    RECORDINGS,
    REPORTS,
    add_exit_codes,
    add_history_options,
    add_report_options,
    group,
    history_to_read,
    show_first,
)
from workbench.cli.run_options import (
    add_by_option,
    add_case_options,
    add_cluster_option,
    add_detach_option,
    add_execution_options,
    add_max_cost_option,
    add_paths,
    add_repeat_rule_option,
    add_resume_options,
    add_until_option,
    add_variant_options,
    folder,
    run_options,
)
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, NOTHING_GRADED, OK, USAGE
from workbench.show.forms import pieces_of
from workbench.startup import executes

if executes(__name__):
    from workbench.analysis.side_by_side import Comparison
    from workbench.cli.batch_command import (
        BaselineOptions,
        Record,
        baseline_for,
        how_to_resume,
        planned,
        print_broken_suites,
        run_plan,
        show_notices,
        with_chosen_cases,
    )
    from workbench.cli.live import BatchOutcome, Show
    from workbench.cli.redaction import create_program, json_report, redacted, warn, without_secrets, write
    from workbench.cli.report_output import Output, details_of, report_width
    from workbench.config.folders import history_option
    from workbench.config.program import Program
    from workbench.evaluation.model_comparison import ModelComparison
    from workbench.evaluation.options import AppStart, RunOptions
    from workbench.evaluation.plan import Plan, PlanError, PlannedRuns
    from workbench.evaluation.resume import complete_batch
    from workbench.history.history import History
    from workbench.history.records import BatchRow, HistoryError
    from workbench.numerals import counted
    from workbench.show.markdown import cut_markdown
    from workbench.show.text import Paint, block_lines, paint_for
    from workbench.show.views.batch_list import batch_name
    from workbench.show.views.comparison import summary_view


if TYPE_CHECKING:
    from workbench.evaluation.baseline import Baseline
    from workbench.evaluation.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_model_options(parser)
    add_case_options(parser)
    add_variant_options(parser, compares=True)
    add_execution_options(parser)
    add_by_option(parser)
    add_repeat_rule_option(parser)
    add_report_options(parser, "compare", "report in this format, without the app")
    reports = group(parser, REPORTS)
    reports.add_argument("--only-differences", action="store_true", help="report only cases on which the models differ")
    reports.add_argument("-q", "--quiet", action="store_true", help=QUIET)
    group(parser, RECORDINGS).add_argument(
        "--record", type=folder, metavar="DIR", help="record each run in a file of its own"
    )
    add_history_options(parser)
    add_resume_options(parser)
    group(parser, BASELINE).add_argument(
        "--baseline", metavar="BATCH", help="report what changed since this batch; one model is enough"
    )
    add_max_cost_option(parser)
    add_until_option(parser, compares=True)
    add_detach_option(parser)
    add_cluster_option(parser)
    add_exit_codes(
        parser,
        {
            OK: "the report is written, whatever it finds",
            USAGE: "wrong usage or missing trust",
            INFRASTRUCTURE: "some run ended in an error or was not made",
            NOTHING_GRADED: "no run was graded",
            INTERRUPTED: "interrupted",
        },
    )
    show_first(parser, *COMMON_OF_RUNS[:4], "--variant", "--only-differences", *COMMON_OF_RUNS[5:])


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.app import app_options
    from workbench.cli.report_output import output_of

    for attribute, why in _NOT_WITH_BASELINE:
        if arguments.baseline is not None and getattr(arguments, attribute) is not None:
            warn(why)
            return USAGE
    output = output_of(arguments, "compare")
    if output is None or (options := run_options(arguments, compares=True)) is None:
        return USAGE
    record = Record(arguments.record) if arguments.record is not None else None
    compared_with = None
    if arguments.baseline is not None:
        compared_with = BaselineOptions(arguments.baseline, history_to_read(arguments, arguments.paths))
    only_differences = arguments.only_differences
    app = app_options(arguments)
    return compare(
        options,
        output,
        app,
        record=record,
        only_differences=only_differences,
        compared_with=compared_with,
        detach=arguments.detach,
    )


_NOT_WITH_BASELINE = (
    (
        "resume",
        "--baseline compares new runs with a batch, and --resume completes a stored batch: omit one of them; "
        "'workbench history diff' compares stored batches",
    ),
    (
        "until",
        "--until stops as soon as the models of this batch are decided, which makes tests against another batch "
        "invalid: leave out --baseline or --until",
    ),
)
"""The options that contradict --baseline, each with the reason."""


def compare(
    options: RunOptions,
    output: Output,
    app: AppOptions,
    *,
    record: Record | None,
    only_differences: bool,
    compared_with: BaselineOptions | None = None,
    detach: bool = False,
) -> int:
    """Compare models with each other or with a stored batch, in the app or in a report. Return an exit code.

    With `detach`, the runs continue in another process that outlives this one."""
    program = create_program(options.model_options)
    comparing = ComparisonCommand(program, options, output, only_differences, detach)
    if options.resume is not None:
        return comparing.resume(record, trust=app.trust)
    plan = planned(options, program, quiet=output.quiet)
    if plan is None:
        return USAGE
    if compared_with is not None:
        baseline = baseline_for(compared_with, plan)
        if baseline is None:
            return USAGE
        if (why := baseline.test_refusal) is not None:
            warn(f"nothing was run: {why}", program.secrets)
            return USAGE
        return comparing.run_and_report(plan, record, trust=app.trust, baseline=baseline)
    if len(plan.models) < 2:
        ways = "give --model at least twice, or a stored batch with --baseline"
        warn(f"nothing to compare: {plan.models[0]} is the only model; {ways}", program.secrets)
        return USAGE
    # The app has no early stopping and no detached batch.
    if options.until is None and not detach and _opens_app(output):
        if options.cluster is not None:
            warn("the app runs in one process: omit --cluster, or ask for a report with --format or --output")
            return USAGE
        begin = AppStart(with_chosen_cases(options, plan), opens="compare", only_differences=only_differences)
        return show_app(app, program, start=begin, on_leave=partial(_print_summary, options, program))
    return comparing.run_and_report(plan, record, trust=app.trust)


_MAX_NAMED = 3
"""The maximum number of unfinished batches for which the command that resumes them is printed. The latest are
chosen."""


def _print_summary(options: RunOptions, program: Program, comparison: Comparison, unfinished: Sequence[int]) -> None:
    lines = block_lines(summary_view(comparison), report_width(sys.stdout), paint_for(sys.stdout, os.environ))
    write("\n".join(lines) + "\n")
    history = options.history
    if not unfinished:
        return
    # Only batches in a history have numbers, so there is a history.
    assert history is not None
    # The comparison itself has succeeded, so an error of the history is not reported.
    with suppress(HistoryError), History(history) as stored:
        for number in sorted(unfinished)[-_MAX_NAMED:]:
            warn(how_to_resume(history, number, stored.batch(str(number)).resumed_by), program.secrets)
        if (more := len(unfinished) - _MAX_NAMED) > 0:
            names_all = f"'workbench history list{history_option(history)}' lists all"
            warn(f"runs are also missing in {counted(more, 'batch')}: {names_all}", program.secrets)


def _opens_app(output: Output) -> bool:
    asked_for_report = output.form is not None or output.file is not None or output.further_outputs
    return not asked_for_report and all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


class ComparisonCommand:
    """A comparison that is reported without the app."""

    def __init__(
        self, program: Program, options: RunOptions, output: Output, only_differences: bool, detach: bool = False
    ) -> None:
        self._program = program
        self._options = options
        self._output = output
        self._only_differences = only_differences
        self._detach = detach

    def resume(self, record: Record | None, *, trust: bool) -> int:
        """Run the missing runs of a batch, if any, and report on the whole batch."""
        quiet, program = self._output.quiet, self._program
        try:
            complete = complete_batch(self._options)
        except PlanError as error:
            show_notices(error.notices, program, quiet=quiet)
            return USAGE
        if complete is None:
            plan = planned(self._options, program, quiet=quiet)
            if plan is None or plan.resumed is None:
                return USAGE
            if self._compares_models(plan.resumed.batch):
                return self.run_and_report(plan, record, trust=trust)
            plan.release_claim()
            return USAGE
        if not self._compares_models(complete.batch):
            return USAGE
        show_notices(complete.notices, program, quiet=quiet)
        if not self._output.can_write():
            return USAGE
        if not quiet:
            warn(f"batch {batch_name(complete.batch)} is complete: nothing was run", program.secrets)
        comparison = ModelComparison.of_batch(complete, only_differences=self._only_differences)
        return self._report(comparison, partial(self._stored, complete.batch.number))

    def run_and_report(
        self, plan: Plan, record: Record | None, *, trust: bool, baseline: Baseline | None = None
    ) -> int:
        """Run a plan, and report on the whole batch."""
        if self._detach:
            # Lazy import: most batches run in the terminal.
            from workbench.cli.detach import Job, detached

            job = Job(plan, self._output, record, "compare", baseline, self._options, self._only_differences)
            return detached(job, trust=trust)
        show = Show(sys.stdout, False, False, report_width(sys.stdout), Paint(False), self._program.secrets)
        live = run_plan(plan, show, self._output, trust=trust, record=record, command="compare")
        if isinstance(live, int):
            return live
        return self.report(live, plan, baseline)

    def report(self, outcome: BatchOutcome, plan: Plan, baseline: Baseline | None) -> int:
        """Report on all runs of a batch. Return an exit code."""
        try:
            return self._compared(outcome, plan, baseline)
        except HistoryError as error:
            warn(f"there is no report: {error}", self._program.secrets)
            return INFRASTRUCTURE

    def _compared(self, live: BatchOutcome, plan: Plan, baseline: Baseline | None) -> int:
        outcome, against = live.outcome, None
        if baseline is not None:
            against = baseline.compare(PlannedRuns(plan, outcome.results).results)
        only_differences = self._only_differences
        comparison = ModelComparison.of_plan(plan, outcome, only_differences=only_differences, against=against)
        whole = partial(outcome.report, plan, against)
        # Of the earlier runs of a resumed batch, only the figures are in memory, so reports read the runs from the
        # history.
        if plan.resumed is not None:
            whole = partial(self._stored, plan.resumed.batch.number)
        code = self._report(comparison, whole)
        return code if live.recorded else USAGE

    def _stored(self, number: int) -> Report:
        from workbench.evaluation.stored_runs import stored_report

        # A resumed batch always has a history.
        assert self._options.history is not None
        with History(self._options.history) as history:
            batch = history.batch(str(number))
            secrets = self._program.secrets
            return stored_report(
                history, batch, history.runs(number), None, secrets, lambda damage: warn(damage, secrets)
            )

    def _compares_models(self, batch: BatchRow) -> bool:
        """Return whether a batch has several models. Print an error for a batch with a single model."""
        if len(batch.models) < 2:
            only = f"{batch.models[0]} is the only model of batch {batch.number}"
            warn(f"nothing to compare: {only}", self._program.secrets)
        return len(batch.models) > 1

    def _report(self, batch: ModelComparison, whole: Callable[[], Report]) -> int:
        """Write the reports. `whole` returns the complete runs, which only some forms of reports need."""
        output, recorded_as = self._output, batch.outcome.recorded_as
        history = self._options.history
        written = output.deliver(partial(pieces_of_comparison, batch, whole, history=history))
        if not output.is_text or output.file is not None:
            print_broken_suites(batch.broken, self._program.secrets)
        if output.summary and "GITHUB_STEP_SUMMARY" in os.environ:
            from workbench.cli.github import write_summary

            write_summary(lambda most: cut_markdown(redacted(batch.markdown()), most))
        if not written:
            return USAGE
        if output.file is not None and not output.quiet:
            places = filter(None, (f"the report is in {output.file}", recorded_as))
            warn(", ".join(places), self._program.secrets)
        return batch.exit_code


def pieces_of_comparison(
    batch: ModelComparison, whole: Callable[[], Report], output: Output, *, history: Path | None = None
) -> Iterable[str]:
    """Yield the text of a comparison's report in the form of `output`. `history` is the file that holds the batch."""
    if output.is_brief:
        details = details_of(batch.outcome.batch, history, output)
        brief = batch.brief_lines(details, paint=output.paint)
        return (redacted("".join(f"{line}\n" for line in brief)),)
    match output.form:
        case "json":
            return (json_report(batch.document()),)
        case "markdown":
            return (redacted(batch.markdown()),)
        case "html":
            from workbench.show.html.runs import page_of_comparison

            return page_of_comparison(whole(), batch.exit_code, only_differences=batch.only_differences)
        case None | "text":
            lines = [*batch.lines(width=output.width, paint=output.paint)]
            if (recorded_as := batch.outcome.recorded_as) is not None and not output.quiet:
                lines.append(output.paint(recorded_as, "muted"))
            return (redacted("\n".join(lines) + "\n"),)
        case form:
            return pieces_of(form, "compare", without_secrets(batch.document()))
