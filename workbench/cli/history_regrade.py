"""`workbench history regrade`: grades batches again by what their suites expect today, and says what moved."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from workbench.cli.door import printing_to, warn_of_problems
from workbench.cli.history_command import HistoryCommand
from workbench.cli.trust import approved, judge_is_known
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Needs
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.evaluation.regrade import (
    GradedAgain,
    RegradingJudges,
    RegradingPlan,
    grade_again,
    plan_regrading,
    store_grades,
)
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError
from workbench.reports.history_json import NewVerdict, RegradedBatch, RegradedReport, RegradedRun
from workbench.reports.history_list import called
from workbench.reports.history_run import moved_run_lines
from workbench.reports.move_kinds import Move
from workbench.reports.moves import VerdictReport
from workbench.suite.loading import SuiteFile, load_suite
from workbench.suite.model import GraderName
from workbench.suite.numerals import counted


@dataclass(frozen=True)
class Options:
    """Which batches are regraded, by what, and how that is shown."""

    batches: Sequence[str]
    suite: Path | None
    by: GraderName | None
    judge: str | None
    trust: bool
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    """Grade again, keep that, and report; returns an exit code."""
    suite = _suite(options, command)
    with command.history() as history:
        batches = list({batch.number: batch for batch in map(history.batch, options.batches)}.values())
        plans = [plan_regrading(history, batch, command.program, suite=suite, by=options.by) for batch in batches]
        for plan in plans:
            for why in _left_out(plan, suite):
                command.warn(f"batch {plan.batch.number}: {why}")
        wanted = [(run.file, run.case) for plan in plans for run in plan.runs]
        if not wanted:
            command.warn("nothing was graded")
            return USAGE
        if not judge_is_known(options.judge, (file for file, _ in wanted), command.program):
            return USAGE
        needs = Needs.of_grading(wanted, command.program, judges=options.judge is not None)
        approval = approved(needs, command.program, all_of_them=options.trust, together=True)
        if approval is None:
            return USAGE
        judges = partial(RegradingJudges, command.program, approval, options.judge)
        graded: list[tuple[BatchRow, int, list[GradedAgain]]] = []
        damaged: list[str] = []
        for plan in plans:
            with printing_to(sys.stderr):  # what a suite's Python prints must not spoil the report
                again = list(grade_again(history, plan.runs, judges, damaged.append))
            if again:
                graded.append((plan.batch, _keep(history, plan.batch, again, command), again))
        command.warn_of_damage(damaged)
    if options.format == "json":
        command.write_json(_report(graded))
    else:
        command.write(_lines(graded, command))
    if damaged or any(plan.problems for plan in plans):
        return USAGE
    in_error = any(each.after.status == "error" != each.before.status for _, _, again in graded for each in again)
    return INFRASTRUCTURE if in_error else OK


def _suite(options: Options, command: HistoryCommand) -> SuiteFile | None:
    """The suite of `--suite`; raises HistoryError when it cannot be used."""
    if options.suite is None:
        return None
    file = load_suite(options.suite)
    if file.suite is None:
        warn_of_problems(file.errors, command.program.secrets)
        raise HistoryError(f"nothing was graded: correct {file.path} first")
    return file


def _left_out(plan: RegradingPlan, suite: SuiteFile | None) -> Iterator[str]:
    """What of a batch is not regraded, and what is graded by another question than it was asked."""
    yield from plan.problems
    missing = plan.batch.missing
    if missing:
        yield f"{counted(missing, 'run')} never finished, and {'has' if missing == 1 else 'have'} no grades"
    gone = dict.fromkeys(run.case_id for run in plan.gone)
    if gone:
        where = f" of {suite.path}" if suite is not None else ""
        cases = f"{counted(len(plan.gone), 'run')} of cases that no longer exist"
        yield f"{cases} in the suite{where} keep their grades: {', '.join(gone)}"
    others = dict.fromkeys(run.row.case_id for run in plan.runs if run.asked_otherwise)
    if others:
        yield (
            f"{', '.join(others)}: its question has changed since it ran; the old runs are graded by what "
            "the new question expects"
        )


def _keep(history: History, batch: BatchRow, again: Sequence[GradedAgain], command: HistoryCommand) -> int:
    """Keep the new grades; the number of the grading."""
    graded_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    store_grades(command.file, batch, again, graded_at, command.program.secrets, command.warn)
    return history.gradings(batch.number)[-1].number


def _lines(graded: Sequence[tuple[BatchRow, int, Sequence[GradedAgain]]], command: HistoryCommand) -> Iterator[str]:
    for batch, number, again in graded:
        yield command.paint(f"{called(batch)}: {counted(len(again), 'run')} regraded, grading {number}", "strong")
        yield from moved_run_lines([(each.run.row, each.before, each.after) for each in again], command.paint)


def _report(graded: Sequence[tuple[BatchRow, int, Sequence[GradedAgain]]]) -> RegradedReport:
    return RegradedReport(
        batches=tuple(
            RegradedBatch(batch=batch.number, grading=number, runs=tuple(map(_run, again)))
            for batch, number, again in graded
        )
    )


def _run(again: GradedAgain) -> RegradedRun:
    row, before, after = again.run.row, again.before, again.after
    return RegradedRun(
        run=row.place + 1,
        suite=str(row.suite.file),
        case_id=row.case_id,
        model=row.model,
        repeat=row.repeat,
        before=VerdictReport(status=before.status, score=before.score),
        after=NewVerdict(status=after.status, score=after.score, reason=again.figures.reason),
        moved=Move(before, after).moved,
        not_regraded=after.not_regraded,
        asked_otherwise=again.run.asked_otherwise,
    )
