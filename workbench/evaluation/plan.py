"""The plan of an evaluation: its runs, and everything that is decided before the first run."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from workbench.config.folders import Folders
from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import DEFAULT_EXECUTION, EarlierInstructions, ExecutionRules, PlannedRun
from workbench.evaluation.options import RunOptions
from workbench.evaluation.trust import trust_store
from workbench.grading.grade import RunResult
from workbench.grading.lazy_sequences import LazySequence, MappedSequence
from workbench.grading.run_summary import RunSummary
from workbench.suite.grading_model import Gate
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile, suites_of

if TYPE_CHECKING:
    from workbench.engine.plan import PlannedShard
    from workbench.evaluation.cost_limit import CostLimit
    from workbench.evaluation.reruns import Reruns
    from workbench.evaluation.resumed_batch import ResumedBatch
    from workbench.history.records import ShardRef, Until
    from workbench.show.views.runs_report import BrokenSuite


NOT_IN_A_CLUSTER = (
    "a cluster cannot keep a limit on cost, which needs a single program: leave out --cluster, or the limit"
)


Severity = Literal["error", "warning", "detail"]


@dataclass(frozen=True)
class Notice:
    """A sentence about a plan that is shown to the user."""

    text: str
    severity: Severity = "error"
    """The severity; a quiet output omits details."""


def notices(texts: Iterable[str], severity: Severity) -> list[Notice]:
    return [Notice(text, severity) for text in texts]


def broken_suites_of(files: Iterable[SuiteFile]) -> tuple[BrokenSuite, ...]:
    """Return the suites with errors as reports show them."""
    files = tuple(files)
    if not files:
        return ()
    # This import is lazy, because few plans have a broken suite.
    from workbench.show.views.runs_report import BrokenSuite

    broken = []
    for file in files:
        problems = tuple(str(problem) for problem in file.errors)
        line = next((each.line for each in file.errors if each.line), None)
        broken.append(BrokenSuite(str(file.path), problems, line))
    return tuple(broken)


class PlanError(Exception):
    """No plan can be made from the options.

    `notices` holds the errors and all other notices, in order."""

    def __init__(self, *notices: Notice) -> None:
        errors = []
        for notice in notices:
            if notice.severity == "error":
                errors.append(notice.text)
        super().__init__("\n".join(errors))
        self.notices = notices


class ClusterError(Exception):
    """A cluster cannot execute a plan, and no run was started.

    Each of `problems` is a sentence."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class WaitCancelledError(ClusterError):
    """The user stopped waiting for a cluster, and no run was started."""


class NotInstalledError(ClusterError):
    """A package that clusters need is not installed here."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run with its case and its `place` in the plan of its batch, counted from 0.

    The case is `None` if the suite of a stored run can no longer be read."""

    place: int
    case: Case | None
    result: RunResult

    def __repr__(self) -> str:
        return f"FinishedRun({self.place}, {self.result!r})"


class LazyRuns(LazySequence[FinishedRun]):
    """Finished runs in the order of their batch's plan.

    Runs are read when they are needed, because memory may not hold all of them."""

    @property
    def results(self) -> Sequence[RunResult]:
        raise NotImplementedError

    def case_of(self, result: RunResult) -> Case | None:
        """Return the case that graded a run."""
        raise NotImplementedError


class PlannedRuns(LazyRuns):
    """The finished runs of a plan's batch, in the order of the plan.

    `results` are the results of this plan. If the plan resumes a batch, `before` holds the runs that ended earlier."""

    def __init__(self, plan: Plan, results: Sequence[RunResult], before: Sequence[FinishedRun] = ()) -> None:
        self._plan, self._now, self._before = plan, results, before
        self._planned = {run.run_id: index for index, run in enumerate(plan.runs)}
        self._cases_before = {run.result.run_id: run.case for run in self._before}
        places = plan.places
        # A batch may have a million runs, so places are stored in arrays instead of lists.
        unordered = array("L", (run.place for run in self._before))
        unordered.extend(places[result.run_id] for result in results)
        self._order = array("L", sorted(range(len(unordered)), key=unordered.__getitem__))
        self._places = array("L", (unordered[index] for index in self._order))

    def __len__(self) -> int:
        return len(self._order)

    def at(self, index: int) -> FinishedRun:
        result = self._result(index)
        return FinishedRun(self._places[index], self.case_of(result), result)

    @property
    def results(self) -> Sequence[RunResult]:
        return MappedSequence(range(len(self)), self._result)

    def case_of(self, result: RunResult) -> Case | None:
        index = self._planned.get(result.run_id)
        if index is None:
            return self._cases_before.get(result.run_id)
        return self._plan.runs[index].case

    def _result(self, index: int) -> RunResult:
        number, before = self._order[index], len(self._before)
        if number < before:
            return self._before[number].result
        return self._now[number - before]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The runs to execute, in order, and the settings that they share.

    `approval.Needs` finds what the runs need on this machine: programs, code and models."""

    runs: tuple[PlannedRun, ...]
    program: Program = field(repr=False)
    files: tuple[SuiteFile, ...]
    """The suites of the runs."""
    broken: tuple[SuiteFile, ...] = ()
    """The suites that are not run because of errors."""
    execution: ExecutionRules = DEFAULT_EXECUTION
    concurrency: int = DEFAULT_CONCURRENCY
    cluster: str | None = None
    """The cluster that executes the runs in place of this process: `local:N`, or the address of a scheduler."""
    compares: bool = False
    specs: ModelSpecs | None = field(default=None, repr=False)
    """The models and endpoints that planning resolved."""
    resumed: ResumedBatch | None = None
    instructions: EarlierInstructions = field(default_factory=dict)
    """The instructions of servers in earlier runs of a resumed batch."""
    shard: PlannedShard | None = None
    """The whole plan if these are the runs of one shard."""
    until: Until | None = None
    """The rule for early stopping, if any."""
    min_score: float | None = None
    reruns: Reruns | None = None
    """The cases to confirm if these runs are reruns."""
    cost_limit: CostLimit | None = None
    original_pace: bool = False
    renew_judgements: bool = False
    history: Path | None = None
    """The file in which an evaluation records the batch."""
    history_named: bool = False
    """Whether the user named that history."""
    notices: tuple[Notice, ...] = ()
    """The notices to show before the first run."""

    @classmethod
    def of(
        cls,
        runs: Iterable[PlannedRun],
        program: Program,
        *,
        execution: ExecutionRules = DEFAULT_EXECUTION,
        concurrency: int = DEFAULT_CONCURRENCY,
        compares: bool = False,
    ) -> Plan:
        """Return a plan for runs that the caller chose, such as runs that the user selected in the app."""
        runs = tuple(runs)
        # A dictionary keeps the files in the order of the runs.
        files = tuple({run.file.path: run.file for run in runs}.values())
        return cls(
            runs=runs, program=program, files=files, execution=execution, concurrency=concurrency, compares=compares
        )

    @property
    def places(self) -> Mapping[str, int]:
        """The place of each run in the whole plan of its batch, by run id.

        In a shard or a resumed batch, some places belong to runs that this plan lacks."""
        if self.resumed is not None:
            return self.resumed.handle.places
        if self.shard is not None:
            # The runs of a shard keep their places in the whole plan, so shards can be merged.
            places: Iterable[int] = self.shard.places
        else:
            places = range(len(self.runs))
        return dict(zip((run.run_id for run in self.runs), places, strict=True))

    @property
    def shard_ref(self) -> ShardRef | None:
        """The shard that this batch runs; `None` without shards."""
        if self.resumed is not None:
            return self.resumed.batch.shard
        if self.shard is None:
            return None
        return self.shard.ref

    @property
    def needs_history(self) -> bool:
        """Whether it is an error if a run cannot be recorded in the history."""
        # Merging reads the histories of shards, and resuming continues a batch in its history. Both need every run.
        return self.history_named or self.resumed is not None or self.shard is not None

    @property
    def models(self) -> tuple[str, ...]:
        if self.resumed is not None:
            return self.resumed.batch.models
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def runs_by_id(self) -> dict[str, PlannedRun]:
        return {run.run_id: run for run in self.runs}

    @property
    def suite_names(self) -> dict[str, str]:
        if self.resumed is not None:
            return self.resumed.batch.suite_names
        return {path: suite.name for path, suite in suites_of(self.files).items()}

    @property
    def gates(self) -> dict[str, Gate]:
        return gates_of(self.files)

    @property
    def finished_figures(self) -> Mapping[int, RunSummary]:
        """The figures of the runs that ended before the batch was resumed, by place in the plan.

        Empty for a new batch. Raises HistoryError."""
        if self.resumed is not None:
            return self.resumed.finished_runs
        return {}

    def release_claim(self) -> None:
        """Give up the exclusive right to resume a batch, so that another program can resume it."""
        if self.resumed is not None:
            self.resumed.handle.release()

    def only(self, suites: Iterable[Path]) -> Plan:
        paths = set(suites)
        files = tuple(file for file in self.files if file.path in paths)
        runs = tuple(run for run in self.runs if run.file.path in paths)
        return replace(self, runs=runs, files=files)


def gates_of(files: Iterable[SuiteFile]) -> dict[str, Gate]:
    """Return the gates of the readable suites by path."""
    return {path: suite.gate for path, suite in suites_of(files).items()}


def cases_of(runs: Iterable[PlannedRun]) -> Collection[tuple[SuiteFile, Case]]:
    return {(run.file.path, run.case.id): (run.file, run.case) for run in runs}.values()


def execution_of(options: RunOptions, folders: Folders) -> ExecutionRules:
    wanted = options.execute
    if options.execute_all:
        wanted = True
    return ExecutionRules(wanted, options.execute_all, trust_store(folders).is_exempt)
