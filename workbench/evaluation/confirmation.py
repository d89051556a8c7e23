"""The confirmation of cases that broke since a baseline: which cases to rerun, and a verdict on each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from workbench.analysis.batch_diff import CaseChange
from workbench.analysis.comparison import CellKey
from workbench.analysis.confirmation import (
    TYPICAL_PASS_RATE,
    Confirmation,
    ConfirmationReport,
    ConfirmedCase,
    fewest_reruns,
    repeats_confirm,
    typical_pass_rate,
)
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, with_grader
from workbench.evaluation.baseline import Baseline
from workbench.evaluation.plan import Plan
from workbench.evaluation.reruns import Rerun, Reruns, executed_write_tool
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.history.case_contents import CaseContents
from workbench.history.history import History
from workbench.history.records import HistoryError
from workbench.numerals import counted, of_text
from workbench.providers.built_in import REPLAY, is_built_in
from workbench.show.views.baseline import AgainstBaseline
from workbench.suite.variants import model_of
from workbench.trajectory.recording import RecordingError
from workbench.trajectory.trajectory import Trajectory

_NO_MORE = "a batch gets at most as many reruns as it has runs: --repeats N allows for more"

MAX_EARLIER_RUNS = 200
"""The most earlier runs of a case that are read for its typical pass rate."""


@dataclass(frozen=True)
class CaseConfirmation:
    """The cases that broke since the baseline.

    `decided` are the cases that need no rerun. `plan` is the plan of the reruns of all other cases."""

    against: AgainstBaseline
    decided: tuple[ConfirmedCase, ...]
    plan: Plan | None = None
    changes: tuple[CaseChange, ...] = ()
    """The cases to rerun, in the order of the plan's reruns."""

    @property
    def announcement(self) -> str | None:
        """A sentence on the cases to rerun and the highest number of reruns; `None` if nothing is rerun."""
        if self.plan is None or self.plan.reruns is None:
            return None
        verb, they = "are", "they"
        if len(self.changes) == 1:
            verb, they = "is", "it"
        which = f"{counted(len(self.changes), 'case')} {verb} rerun until it is decided whether {they} broke"
        return f"{which}, with at most {counted(self.plan.reruns.max_runs, 'run')}: --confirm none reruns nothing"

    def with_verdicts(
        self, results: Iterable[RunResult] = (), *, batch: int | None = None, interrupted: bool = False
    ) -> AgainstBaseline:
        """Return the comparison with a verdict on each case that broke.

        `results` are the reruns, and `batch` is the number under which the history stores them."""
        cases, errors, made = [*self.decided], 0, 0
        if self.plan is not None and self.plan.reruns is not None:
            course, in_error = self.plan.reruns.evidence(), Counter[int]()
            for result in results:
                course.add_result(result)
                made += result.status.graded or result.status == Status.ERROR
                if result.status == Status.ERROR:
                    in_error[self.plan.reruns.place_of[result.run_id]] += 1
            for place, change in enumerate(self.changes):
                evidence = course.evidence[place]
                if evidence.decided is not None:
                    why = None
                elif in_error[place]:
                    errors += 1
                    why = f"{counted(in_error[place], 'rerun')} ended in an error"
                elif course.cost_limit is not None:
                    errors += 1
                    why = course.cost_limit
                elif place in course.writing:
                    why = _not_read_only(course.writing[place])
                elif interrupted:
                    why = "stopped"
                else:
                    why = _NO_MORE
                outcome = evidence.decided or "perhaps by chance"
                cases.append(_confirmed(change, outcome, evidence.failed, evidence.good, why))
        # Cases decided without reruns and cases that were rerun are both listed in the order of the comparison.
        order = {}
        for place, change in enumerate(self.against.deciding("broke")):
            order[_key(change)] = place
        cases.sort(key=lambda case: order[case.suite, case.case_id, case.model])
        if not made:
            batch = None
        known = ConfirmationReport(tuple(cases), made, batch, errors, interrupted)
        return replace(self.against, confirmed=known)


def confirmation_of(
    baseline: Baseline,
    against: AgainstBaseline,
    results: Sequence[RunResult],
    plan: Plan | None = None,
    *,
    batch: int | None = None,
    interrupted: bool,
) -> CaseConfirmation | None:
    """Return the cases that broke and how to confirm them; `None` if no confirmation is needed.

    No confirmation is needed if none was requested, or if the test over all cases has already found the batch worse.
    `results` are the results of `plan`, and `batch` is the number of their batch in the history. Without a plan,
    nothing can be rerun."""
    changes = against.deciding("broke")
    if against.confirm == "none" or against.is_worse or not changes:
        return None
    if against.confirm != "reruns":
        plan = None
    runs = _runs_of(baseline, changes, results)
    settled: list[ConfirmedCase] = []
    to_rerun: list[tuple[CaseChange, PlannedRun]] = []
    for change in changes:
        of_case = runs.get(_key(change), [])
        failed, graded = _repeats(change)
        planned = None
        if plan is not None and not interrupted:
            planned = _planned(baseline, plan, change)
        # The cheapest evidence comes first: a model that always gives the same answer, then existing repeats, then
        # reruns.
        if (sure := _certainty(baseline, change, of_case)) is not None:
            settled.append(_confirmed(change, "confirmed", reason=sure))
        elif repeats_confirm(failed, graded, against.diff.compared):
            settled.append(_confirmed(change, "confirmed", reason=f"failed {of_text(failed, graded)} repeats"))
        elif (why_not := _why_not(baseline, change, of_case, plan, planned, interrupted=interrupted)) is not None:
            settled.append(_confirmed(change, "perhaps by chance", reason=f"not rerun: {why_not}"))
        elif planned is not None:
            to_rerun.append((change, planned))
    if not to_rerun or plan is None:
        return CaseConfirmation(against, tuple(settled))
    typical = _typical_shares(plan, to_rerun, baseline, batch)
    exempt = baseline.confirm_writes
    cases = []
    for (_, run), share in zip(to_rerun, typical, strict=True):
        cases.append(Rerun(run, share, exempt or plan.execution.exempt(run.file)))
    runs_of_batch = len(plan.runs)
    if plan.resumed is not None:
        runs_of_batch = plan.resumed.batch.planned
    # A batch gets at most as many reruns as it has runs. A batch with fewer runs than a verdict needs gets the number
    # of reruns that a verdict needs.
    most = max(runs_of_batch, fewest_reruns(len(changes)))
    reruns, planned_runs = Reruns(tuple(cases), len(changes), most, batch).planned()
    history = None
    if batch is not None:
        history = plan.history
    rerun_plan = replace(
        plan,
        runs=planned_runs,
        reruns=reruns,
        resumed=None,
        shard=None,
        until=None,
        compares=False,
        min_score=None,
        history=history,
        notices=(),
    )
    return CaseConfirmation(against, tuple(settled), rerun_plan, tuple(change for change, _ in to_rerun))


def _key(change: CaseChange) -> CellKey:
    return change.suite, change.case_id, change.model


def _confirmed(
    change: CaseChange, outcome: Confirmation, failed_count: int = 0, passed_count: int = 0, reason: str | None = None
) -> ConfirmedCase:
    return ConfirmedCase(
        change.suite, change.case_id, change.case_name, change.model, outcome, failed_count, passed_count, reason
    )


def _runs_of(
    baseline: Baseline, changes: Iterable[CaseChange], results: Iterable[RunResult]
) -> dict[CellKey, list[RunResult]]:
    found: dict[CellKey, list[RunResult]] = {}
    for change in changes:
        found[_key(change)] = []
    for result in results:
        key = baseline.suites[result.suite].key, result.case_id, result.model
        if key in found and not result.is_fork:
            found[key].append(result)
    return found


def _planned(baseline: Baseline, plan: Plan, change: CaseChange) -> PlannedRun | None:
    """Return the planned run to repeat for a case; `None` if the plan has no run of the case's suite and model.

    In a resumed batch, the plan lacks cases whose runs finished earlier. Such a case gets the settings of another
    planned case of its suite and model, for which the user has approved the same needs."""
    alike = None
    for run in plan.runs:
        if (baseline.suites[str(run.file.path)].key, run.model) == (change.suite, change.model):
            if run.case.id == change.case_id:
                return run
            alike = alike or run
    if alike is None:
        return None
    for written in alike.written_suite.cases:
        if written.id == change.case_id:
            return replace(alike, written=with_grader(written, alike.by, alike.repeat_rule))
    return None


def _certainty(baseline: Baseline, change: CaseChange, runs: Sequence[RunResult]) -> str | None:
    """Return why a case that broke is confirmed without a rerun; `None` if a rerun could differ.

    A built-in model always gives the same answer, unless its recording was replaced."""
    model = model_of(change.model)
    if not is_built_in(model):
        return None
    if not model.startswith(REPLAY):
        return f"{model} always gives the same answer"
    # The recording may have been replaced since the baseline, so the responses are compared.
    before = set(map(_response_of, _before(baseline, change)))
    for run in runs:
        if run.status == Status.FAILED and _response_of(run.trajectory) not in before:
            return None
    return "the recording answers as it did in the baseline"


def _before(baseline: Baseline, change: CaseChange) -> Iterator[Trajectory]:
    with History(baseline.file) as history:
        for run in baseline.runs.of_cases({change.case_id}):
            there = baseline.same.get(run.suite.key, run.suite.key)
            if there == change.suite and run.figures is not None:
                # The damaged run was already reported when the batch was read.
                with suppress(HistoryError, RecordingError):
                    yield history.recording(run).trajectory


def _response_of(trajectory: Trajectory) -> str:
    """Return a text that is equal for runs with equal calls and answers."""
    # The responses are put into a set. Dictionaries are not hashable, so the text of `repr` is used.
    calls = [(call.tool, dict(call.arguments)) for call in trajectory.calls]
    return repr((calls, trajectory.final_answer))


def _repeats(change: CaseChange) -> tuple[int, int]:
    if change.after is None:
        return 0, 0
    return change.after.graded - change.after.good, change.after.graded


def _why_not(
    baseline: Baseline,
    change: CaseChange,
    runs: Sequence[RunResult],
    plan: Plan | None,
    planned: PlannedRun | None,
    *,
    interrupted: bool,
) -> str | None:
    if model_of(change.model).startswith(REPLAY):
        return "a recording always gives the same answer, and its repeats do not decide"
    if interrupted:
        return "the batch was interrupted"
    if plan is None:
        return "nothing can be rerun here, and its repeats do not decide"
    if plan.cluster is not None:
        return "a cluster makes no reruns, and its repeats do not decide"
    if planned is None:
        return "all its runs had ended when the batch was resumed"
    if baseline.confirm_writes or plan.execution.exempt(planned.file):
        return None
    for tool in filter(None, map(executed_write_tool, runs)):
        return _not_read_only(tool)
    return None


def _not_read_only(tool: str) -> str:
    return f"it executed {tool}, which is not read-only; --confirm-writes reruns it anyway"


def _typical_shares(
    plan: Plan, again: Sequence[tuple[CaseChange, PlannedRun]], baseline: Baseline, batch: int | None
) -> list[float]:
    if batch is None or plan.history is None:
        return [TYPICAL_PASS_RATE] * len(again)
    shares = []
    with History(plan.history) as history:
        contents = CaseContents(history)
        for change, run in again:
            statuses, content = [], None
            suite = baseline.suites[str(run.file.path)]
            for row in history.runs_of_case(suite.key, change.case_id, MAX_EARLIER_RUNS, lambda _why: None):
                if row.model != change.model or row.is_fork or row.figures is None:
                    continue
                # The rows begin with this batch, whose case has the present content. Earlier batches count only if
                # their case had the same content.
                if row.batch == batch:
                    content = contents.of(row)
                elif row.batch < batch and contents.of(row) == content and row.figures.status.graded:
                    statuses.append(row.figures.status != Status.FAILED)
            shares.append(typical_pass_rate(sum(statuses), len(statuses)))
    return shares
