"""`workbench history diff`: compare two batches case by case, and test whether the difference is chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.analysis.batch_diff import batch_diff
from workbench.cli.history_command import HistoryCommand, grading_of, newest
from workbench.cli.redaction import json_report, lines_redacted, redacted, without_secrets
from workbench.cli.report_output import Output
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.evaluation.baseline import notes_on_tools, offered_tools
from workbench.evaluation.exit_codes import USAGE
from workbench.evaluation.instruction_changes import instructions_between
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, HistoryError, Regrade, RunRow, same_suites
from workbench.history.run_table import RunTable
from workbench.show.forms import pieces_of, why_too_many
from workbench.show.markdown import document
from workbench.show.text import block_lines
from workbench.show.views.batch_diff import diff_view, names_of, notes_between, test_lines, title_of
from workbench.show.visible import one_line
from workbench.suite.grading_model import GraderName

if TYPE_CHECKING:
    from workbench.evaluation.report import Report


@dataclass(frozen=True)
class _Side:
    batch: BatchRow
    grading: Regrade | None
    runs: RunTable


@dataclass(frozen=True)
class Options:
    """The options of `workbench history diff`."""

    before: str
    after: str | None
    grading: int | str | None
    by: GraderName | None
    output: Output


def execute(options: Options, command: HistoryCommand) -> int:
    missing: list[str] = []
    with command.history() as history:
        before = _side(history, history.batch(options.before), options.grading, options.by, missing)
        after_batch = history.batch(options.after) if options.after is not None else newest(history)
        if options.after is None and after_batch.number == before.batch.number:
            raise HistoryError(f"batch {after_batch.number} is the newest one: give the batch to compare it with")
        after = _side(history, after_batch, options.grading, options.by, missing)
    command.warn_of_damage(missing)
    forms = [each.form for each in (options.output, *options.output.further_outputs)]
    count = len(before.runs) + len(after.runs)
    # The HTML page contains all runs of both batches, so their number is limited.
    if "html" in forms and (why := why_too_many("html", count, "give another --format")) is not None:
        command.warn(why)
        return USAGE
    command.register_secrets(before.batch, after.batch)
    same = same_suites(before.batch.suites, after.batch.suites)
    unfinished = before.runs.unfinished, after.runs.unfinished
    diff = batch_diff(before.runs.figures, after.runs.figures, unfinished=unfinished, same_suites=same)
    notes = []
    if options.by is not None:
        notes.append(f"all runs as {options.by} grades them")
    notes += notes_between(diff, before, after, same, history_option(command.file))
    with command.history() as history:
        # Changed tools may be the reason why cases broke, so the report names them.
        earlier = offered_tools(history, before.runs, diff, same)
        notes += map(one_line, notes_on_tools(diff, earlier, offered_tools(history, after.runs, diff)))
        notes += map(one_line, instructions_between(history, before, after, same))
    suites = {}
    for suite in (*before.batch.suites, *after.batch.suites):
        suites[suite.key] = suite
    title = title_of(before, after)
    tests = list(test_lines(diff.tests, *names_of(before, after)))

    def page() -> Iterator[str]:
        from workbench.evaluation.stored_runs import combined_report, stored_report
        from workbench.show.html.runs import page_of_changes
        from workbench.show.views.baseline import AgainstBaseline

        reports = []
        secrets = command.program.secrets
        with command.history() as history:
            for side in (before, after):
                report = stored_report(history, side.batch, side.runs, side.grading, secrets, missing.append)
                reports.append(_by(report, options.by))
        command.warn_of_damage(missing)
        first, last = reports
        against = AgainstBaseline(before.batch, before.grading, diff, suites, fail_on=None)
        files = {suite.key: str(suite.file) for suite in suites.values()}
        both = combined_report(first, last, against, {files[key]: files[later] for key, later in same.items()})
        return page_of_changes(both, title)

    def pieces(output: Output) -> Iterator[str]:
        blocks = diff_view(diff, suites, title=title, tests=tests, notes=notes)
        if output.form == "markdown":
            return iter((redacted(document(blocks)),))
        if output.form == "text":
            return lines_redacted(block_lines(blocks, output.cut_at, output.paint))
        if output.form == "html":
            return page()
        from workbench.show.json.history import diff_report

        report = diff_report(diff, before, after, suites, notes)
        if output.form == "json":
            return iter((json_report(report),))
        return pieces_of(str(output.form), "history diff", without_secrets(report))

    code = command.deliver(options.output, pieces)
    return USAGE if missing else code


def _side(
    history: History, batch: BatchRow, selector: int | str | None, grader: GraderName | None, damage_messages: list[str]
) -> _Side:
    # Forks and reruns depend on the outcome of other runs, so a comparison with them would be biased.
    if batch.kind == "fork":
        raise HistoryError(
            f"batch {batch.number} is a fork of one run, so it cannot be compared: "
            f"'workbench history show {batch.number} --run 1{history_option(history.file)}' shows it"
        )
    if batch.kind == "reruns":
        raise HistoryError(
            f"batch {batch.number} only reruns cases that broke in batch {batch.confirms}, so it cannot be compared: "
            f"'workbench history show {batch.number}{history_option(history.file)}' shows them"
        )
    grading = grading_of(history, batch, selector)
    runs = history.runs(batch.number, grading)
    if grader is not None:
        runs = RunTable(_graded_by(grader, run, history, grading, damage_messages) for run in runs)
    return _Side(batch, grading, runs)


def _graded_by(
    grader: GraderName, run: RunRow, history: History, grading: Regrade | None, damage_messages: list[str]
) -> RunRow:
    """Replace the grade of a run by the grade of `grader`.

    If the run cannot be read, its figures become `None`, and `damage_messages` gets the reason."""
    from workbench.evaluation.stored_runs import figures_by

    if run.figures is None:
        return run
    try:
        return replace(run, figures=figures_by(run, history.outcome(run, grading), grader))
    except DamagedError as error:
        damage_messages.append(str(error))
        return replace(run, figures=None)


def _by(report: Report, grader: GraderName | None) -> Report:
    from workbench.evaluation.stored_runs import as_graded_by

    if grader is None:
        return report
    return replace(report, runs=tuple(replace(run, result=as_graded_by(run.result, grader)) for run in report.runs))
