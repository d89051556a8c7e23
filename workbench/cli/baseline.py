"""`workbench run --baseline`: the batch that a run is held against, known before the run and compared with it after."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.analysis.batch_diff import batch_diff
from workbench.analysis.batch_tests import tests_of
from workbench.analysis.comparison import CellKey
from workbench.analysis.same_suites import SameSuites, same_suites
from workbench.cli.history_options import history_for
from workbench.cli.planning import ToRun
from workbench.cli.suites import complain
from workbench.config.history_file import history_option
from workbench.config.program import Program
from workbench.config.project import path_in, project_folder
from workbench.grading.figures import figures_of
from workbench.grading.grade import RunResult
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, Regrade, RunRow, SuiteRef
from workbench.reports.baseline import AgainstBaseline, FailOn
from workbench.reports.history_batch import later_runs
from workbench.reports.visible import one_line
from workbench.suite.loading import SuiteFile


@dataclass(frozen=True)
class Baseline:
    """A baseline, and of its runs those that belong to what is selected now. `suites` are those of
    today, by their paths, as the history has them; `planned` are the cases to come."""

    batch: BatchRow
    grading: Regrade | None
    runs: tuple[RunRow, ...]
    suites: Mapping[str, SuiteRef]
    same: SameSuites
    planned: frozenset[CellKey]
    fail_on: FailOn | None

    def against(self, results: Iterable[RunResult]) -> AgainstBaseline:
        """Compare what was run with it."""
        before = [run.figures for run in self.runs if run.figures is not None]
        after = [figures_of(result, suite=self.suites[result.suite].key) for result in results]
        never = {(run.suite.key, run.case_id, run.model) for run in self.runs if run.figures is None}
        not_yet = self.planned - {(run.suite, run.case_id, run.model) for run in after}
        diff = batch_diff(before, after, unfinished=(never, not_yet), same=self.same)
        tests = tests_of(before, after, across=diff.across, same=self.same)
        suites = {suite.key: suite for suite in self.suites.values()}
        return AgainstBaseline(self.batch, self.grading, diff, tests, suites, self.fail_on)


def fits_baseline(options: argparse.Namespace) -> bool:
    """Whether `--fail-on` has something to be about; if not, that has been said."""
    if options.fail_on is not None and options.baseline is None:
        complain(f"--fail-on {options.fail_on} needs a batch to hold the runs against: give --baseline NAME too")
        return False
    return True


def baseline_of(options: argparse.Namespace, program: Program, to_run: ToRun) -> Baseline | None:
    """The baseline of `--baseline`, as it was graded last; `None` without that option. Raises HistoryError when there
    is none, or when it has nothing of what is selected."""
    if options.baseline is None:
        return None
    file = history_for(argparse.Namespace(history=options.history), options.paths, program)
    assert file is not None
    home = program.environment.home
    suites = {str(each.path): _as_kept(each, home) for each in to_run.files}
    with History(file) as history:
        batch = history.batch(options.baseline)
        if to_run.going_on is not None and to_run.going_on.number == batch.number:
            raise HistoryError(f"batch {batch.number} goes on, and cannot be its own baseline")
        gradings = history.gradings(batch.number)
        grading = gradings[-1] if gradings else None
        runs = [run for run in history.runs(batch.number, grading) if not run.is_fork]
    planned = frozenset((suites[str(run.file.path)].key, run.case.id, run.model) for run in to_run.runs)
    over = (run for run in to_run.over.values() if run.suite in suites)
    planned |= {(suites[run.suite].key, run.case_id, run.model) for run in over}
    same = same_suites(batch.suites, suites.values())
    selected = tuple(_selected(runs, to_run, suites, same, planned))
    if not selected:
        none = f"batch {batch.number} has no run of what is selected: it cannot be the baseline of that"
        raise HistoryError(none + _renamed(batch.suites, suites.values()))
    for said in later_runs(batch, grading, selected, history_option(file)):
        complain(said)
    models, before = {model for _, _, model in planned}, {run.model for run in selected}
    if models.isdisjoint(before) and not len(models) == len(before) == 1:
        raise HistoryError(
            f"batch {batch.number} cannot be the baseline: it has the models {', '.join(sorted(before))}, and selected "
            f"are {', '.join(sorted(models))}"
        )
    return Baseline(batch, grading, selected, suites, same, planned, options.fail_on)


def _selected(
    runs: Iterable[RunRow],
    to_run: ToRun,
    suites: Mapping[str, SuiteRef],
    same: SameSuites,
    planned: frozenset[CellKey],
) -> Iterable[RunRow]:
    """The runs of a baseline that what is planned can be held against. Of a suite all of whose cases are planned, that
    is all: what is not planned any more is gone."""
    cases = {(suite, case) for suite, case, _ in planned}
    keys = [(suites[str(file.path)].key, file.suite) for file in to_run.files if file.suite is not None]
    whole = {key for key, suite in keys if all((key, case.id) in cases for case in suite.cases)}
    return (
        run for run in runs if (key := same.get(run.suite.key, run.suite.key)) in whole or (key, run.case_id) in cases
    )


def _renamed(before: Iterable[SuiteRef], after: Iterable[SuiteRef]) -> str:
    """Which suites of today have the name of one that was at another path, if any."""
    now = {suite.name: suite for suite in after}
    moved = [f"{then.name} was at {then.path}, and is at {now[then.name].path}" for then in before if then.name in now]
    return f" ({one_line('; '.join(moved))}: a suite at another path is another one)" if moved else ""


def _as_kept(file: SuiteFile, home: Path | None) -> SuiteRef:
    """A suite of today as the history would have it."""
    assert file.suite is not None
    project = project_folder(file.path.parent, home)
    return SuiteRef(0, str(project), path_in(project, file.path), file.hash, file.suite.name, len(file.suite.cases))
