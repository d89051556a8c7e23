"""`workbench history diff`: what broke, was fixed and moved from one batch to another, and whether that is chance."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.analysis.batch_diff import batch_diff
from workbench.analysis.batch_tests import tests_of
from workbench.analysis.comparison import CellKey
from workbench.cli.history_command import HistoryCommand, grading_of, newest
from workbench.config.history_file import history_option
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK
from workbench.grading.run_summary import RunSummary
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, Regrade, RunRow, same_suites
from workbench.reports.batch_diff import (
    change_lines,
    counts_text,
    markdown_lines,
    names_of,
    notes_between,
    test_lines,
    title_of,
)


@dataclass(frozen=True)
class _Side:
    """A batch, its runs, and by which grading."""

    batch: BatchRow
    grading: Regrade | None
    runs: Sequence[RunRow]

    @property
    def figures(self) -> list[RunSummary]:
        return [run.figures for run in self.runs if run.figures is not None]

    @property
    def unfinished(self) -> set[CellKey]:
        """The cases that it never came to."""
        return {(run.suite.key, run.case_id, run.model) for run in self.runs if run.figures is None}


@dataclass(frozen=True)
class Options:
    """Which batches are compared, as they were graded when, and how that is shown."""

    before: str
    after: str | None
    grading: int | str | None
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    """Compare; returns an exit code."""
    with command.history() as history:
        before = _side(history, history.batch(options.before), options.grading)
        after_batch = history.batch(options.after) if options.after is not None else newest(history)
        if options.after is None and after_batch.number == before.batch.number:
            raise HistoryError(f"batch {after_batch.number} is the newest one: give the batch to compare it with")
        after = _side(history, after_batch, options.grading)
    command.learn_secrets(before.batch, after.batch)
    same = same_suites(before.batch.suites, after.batch.suites)
    unfinished = before.unfinished, after.unfinished
    diff = batch_diff(before.figures, after.figures, unfinished=unfinished, same=same)
    tests = tests_of(before.figures, after.figures, across=diff.across, same=same)
    notes = list(notes_between(diff, before, after, same, history_option(command.file)))
    suites = {suite.key: suite for side in (before, after) for suite in side.batch.suites}
    with_model = len(diff.models) > 1
    if options.format == "json":
        from workbench.reports.history_reports import diff_report

        command.write_json(diff_report(diff, before, after, tests, suites, notes))
        return OK
    tests_text = list(test_lines(tests, *names_of(before, after)))
    title = title_of(before, after)
    if options.format == "markdown":
        command.write(markdown_lines(diff, suites, title=title, notes=[*tests_text, *notes], with_model=with_model))
        return OK
    command.write([command.paint(title, "strong"), counts_text(diff, command.paint), *tests_text])
    command.write(command.paint(note, "quiet") for note in notes)
    command.write(change_lines(diff.changes, suites, command.cut_at, command.paint, with_model=with_model))
    return OK


def _side(history: History, batch: BatchRow, wanted: int | str | None) -> _Side:
    if batch.kind == "fork":
        raise HistoryError(
            f"batch {batch.number} is a fork of one run, an experiment that counts for no case: "
            f"'workbench history show {batch.number} --run 1{history_option(history.file)}' shows it"
        )
    grading = grading_of(history, batch, wanted)
    return _Side(batch, grading, history.runs(batch.number, grading))
