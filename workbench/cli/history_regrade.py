"""`workbench grade BATCH`: regrade batches by the present suites, and report the changes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path

from workbench.cli.approval import approved
from workbench.cli.batch_command import judge_is_known
from workbench.cli.history_command import HistoryCommand
from workbench.cli.redaction import printing_to, warn_of_problems
from workbench.dataclasses import dataclass
from workbench.evaluation.approval import Needs
from workbench.evaluation.exit_codes import INFRASTRUCTURE, OK, USAGE
from workbench.evaluation.regrade import (
    RegradingJudges,
    RegradingPlan,
    RunRegrade,
    plan_regrading,
    regrade_stored_runs,
    store_grades,
)
from workbench.grading.status import Status
from workbench.history.records import BatchRow, HistoryError
from workbench.numerals import counted
from workbench.show.forms import why_too_many
from workbench.show.json.base import VerdictReport
from workbench.show.json.history import NewVerdict, RegradedBatch, RegradedReport, RegradedRun
from workbench.show.views.batch_list import batch_name
from workbench.show.views.grade_moves import Move
from workbench.show.views.run import MovedRuns
from workbench.suite.grading_model import GraderName
from workbench.suite.suite_file import SuiteFile, load_suite


@dataclass(frozen=True)
class Options:
    """The batches to regrade, the rules, and the form of the report."""

    batches: Sequence[str]
    suite: Path | None
    by: GraderName | None
    judge: str | None
    trust: bool
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    suite = _suite(options, command)
    with command.history() as history:
        batches = list({batch.number: batch for batch in map(history.batch, options.batches)}.values())
        plans = []
        for batch in batches:
            plans.append(plan_regrading(history, batch, command.program, suite=suite, by=options.by))
        for plan in plans:
            for why in _left_out(plan, suite):
                command.warn(f"batch {plan.batch.number}: {why}")
        wanted = list(chain.from_iterable(plan.runs.graded_by for plan in plans))
        if not wanted:
            command.warn("nothing was graded")
            return USAGE
        count = sum(len(plan.runs) for plan in plans)
        shows = "omit --format, and 'workbench history show BATCH --format records' has a line for each run"
        if options.format == "json" and (too_many := why_too_many("json", count, shows)) is not None:
            command.warn(f"nothing was graded: {too_many}")
            return USAGE
        if not judge_is_known(options.judge, (file for file, _ in wanted), command.program):
            return USAGE
        needs = Needs.of_grading(wanted, command.program, judges=options.judge is not None)
        # The suites of many batches usually have the same needs, so one question covers them.
        approval = approved(needs, command.program, all_of_them=options.trust, together=True)
        if approval is None:
            return USAGE
        judges = partial(RegradingJudges, command.program, approval, options.judge)
        graded: list[_Graded] = []
        damaged: list[str] = []
        for plan in plans:
            found = _Graded(plan.batch, MovedRuns(command.paint), [] if options.format == "json" else None)
            # Python code of a suite may print. Its output must not get into the report.
            with printing_to(sys.stderr):
                again = regrade_stored_runs(history, plan.runs, judges, damaged.append)
                # The regrade is stored together with its first result, so that no regrade is stored without runs.
                if (first := next(again, None)) is not None:
                    _keep(plan, found.each(chain((first,), again)), command)
                    found.number = history.gradings(plan.batch.number)[-1].number
                    graded.append(found)
        command.warn_of_damage(damaged)
    if options.format == "json":
        command.write_json(_report(graded))
    else:
        command.write(_lines(graded, command))
    if damaged or any(plan.problems for plan in plans):
        return USAGE
    if any(each.in_error for each in graded):
        return INFRASTRUCTURE
    return OK


@dataclass
class _Graded:
    """A regraded batch and its changes. `records` has the regraded runs for a JSON report, `None` for other forms."""

    batch: BatchRow
    moved: MovedRuns
    records: list[RegradedRun] | None
    runs: int = 0
    number: int = 0
    in_error: bool = False

    def each(self, regraded: Iterable[RunRegrade]) -> Iterator[RunRegrade]:
        for each in regraded:
            self.runs += 1
            self.moved.add(each.run.row, each.before, each.after)
            self.in_error = self.in_error or each.after.status == Status.ERROR != each.before.status
            if self.records is not None:
                self.records.append(_run(each))
            yield each


def _suite(options: Options, command: HistoryCommand) -> SuiteFile | None:
    if options.suite is None:
        return None
    file = load_suite(options.suite)
    if file.suite is None:
        warn_of_problems(file.errors, command.program.secrets)
        raise HistoryError(f"nothing was graded: correct {file.path} first")
    return file


def _left_out(plan: RegradingPlan, suite: SuiteFile | None) -> Iterator[str]:
    """Yield notes on a regrade: which runs are not regraded, and which cases have a new request since they ran."""
    yield from plan.problems
    if missing := plan.batch.missing:
        have = "has" if missing == 1 else "have"
        yield f"{counted(missing, 'run')} never finished, so {have} no grades"
    if gone := dict.fromkeys(run.case_id for run in plan.missing):
        suite_text = f"the suite of {suite.path}" if suite is not None else "the suite"
        cases = f"{counted(len(plan.missing), 'run')} of cases that no longer exist"
        yield f"{cases} in {suite_text} keep their grades: {', '.join(gone)}"
    if others := dict.fromkeys(run.row.case_id for run in plan.runs if run.has_other_requests):
        yield (
            f"{', '.join(others)}: its request has changed since it ran; the old runs are graded by the expectations "
            "for the new request"
        )


def _keep(plan: RegradingPlan, regraded: Iterable[RunRegrade], command: HistoryCommand) -> None:
    graded_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    store_grades(command.file, plan, regraded, graded_at, command.program.secrets, command.warn)


def _lines(graded: Iterable[_Graded], command: HistoryCommand) -> Iterator[str]:
    for each in graded:
        title = f"{batch_name(each.batch)}: {counted(each.runs, 'run')} regraded, grading {each.number}"
        yield command.paint(title, "strong")
        yield from each.moved.lines()


def _report(graded: Iterable[_Graded]) -> RegradedReport:
    batches = []
    for each in graded:
        batches.append(RegradedBatch(batch=each.batch.number, grading=each.number, runs=tuple(each.records or ())))
    return RegradedReport(batches=tuple(batches))


def _run(regraded: RunRegrade) -> RegradedRun:
    row, before, after = regraded.run.row, regraded.before, regraded.after
    return RegradedRun(
        run=row.place + 1,
        suite=str(row.suite.file),
        case_id=row.case_id,
        model=row.model,
        repeat=row.repeat,
        before=VerdictReport(status=before.status, score=before.score),
        after=NewVerdict(status=after.status, score=after.score, reason=regraded.figures.reason),
        moved=Move(before, after).moved,
        not_regraded=after.not_regraded,
        asked_otherwise=regraded.run.has_other_requests,
    )
