"""Plans what the tools' faults do to runs: each run is forked at a result, which is made faulty there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.analysis.faults import (
    FaultMatrix,
    FaultName,
    Faulty,
    Lasts,
    Lure,
    Tried,
    Verdict,
    around,
    faulty,
    lure_for,
    verdict_of,
)
from workbench.batches.plan import PlannedRun, plan_fork
from workbench.dataclasses import dataclass
from workbench.engine.checkpoint import EditResult
from workbench.engine.fork import Fork, ForkPoint
from workbench.evaluation.plan import Plan
from workbench.grading.grade import RunResult
from workbench.grading.status import Status
from workbench.suite.added_variants import with_variants
from workbench.suite.loading import SuiteFile
from workbench.suite.variants import contender
from workbench.trajectory.trajectory import CallRecord, Trajectory

ENDED = ("answered", "decided", "steps done", "rounds exhausted", "step failed")
"""How a run ended that can be forked."""


@dataclass(frozen=True)
class FaultOptions:
    """Which faults are tried on which tools (all without any), and how long they last."""

    faults: tuple[FaultName, ...]
    tools: frozenset[str] = frozenset()
    lasts: tuple[Lasts, ...] = ("once",)


@dataclass(frozen=True)
class Trial:
    """A fault that is to be tried: the run it begins like, and the run that has it, unless that cannot be made."""

    origin: PlannedRun
    call: CallRecord
    fault: FaultName
    lasts: Lasts
    made: Faulty
    lure: Lure | None
    run: PlannedRun | None = None


@dataclass(frozen=True)
class FaultPlan:
    """The trials, and the plan of their runs."""

    plan: Plan
    trials: tuple[Trial, ...]
    origins: Mapping[str, RunResult]
    """The runs without faults, by their ids."""
    untried: tuple[Tried, ...]
    """What cannot be tried, with the reason."""

    def matrix(self, results: Iterable[RunResult]) -> FaultMatrix:
        """Return what the runs came to."""
        by_id = {result.run_id: result for result in results}
        tried = [
            _tried(trial, by_id.get(trial.run.run_id), self.origins[trial.origin.run_id])
            for trial in self.trials
            if trial.run is not None
        ]
        return FaultMatrix((*tried, *self.untried))


def plan_faults(plan: Plan, results: Iterable[RunResult], options: FaultOptions) -> FaultPlan:
    """Plan the faults of all tools that were called in finished runs of a plan: for each run, the first call of each
    tool. What stays the same for all runs, such as servers and trust, needs no further approval."""
    by_id = {result.run_id: result for result in results}
    trials: list[Trial] = []
    untried: list[Tried] = []
    for run in plan.runs:
        result = by_id.get(run.run_id)
        if result is None or result.status == Status.SKIPPED:
            continue
        finish = result.trajectory.finish
        if finish is None or finish.reason not in ENDED:
            untried.append(_untried(run, "", options.faults[0], options.lasts[0], result.error or result.status))
            continue
        if not result.status.good:
            why = f"it {'is not graded' if result.status is Status.NOT_GRADED else 'fails'} without a fault, too"
            untried.append(_untried(run, "", options.faults[0], options.lasts[0], why))
            continue
        for made in _trials(run, result, options):
            if isinstance(made, Trial):
                trials.append(made)
            else:
                untried.append(made)
    files = _with_fault_variants(plan.files, trials)
    planned = [replace(trial, run=_run_of(trial, files[trial.origin.file.path], by_id)) for trial in trials]
    runs = tuple(trial.run for trial in planned if trial.run is not None)
    return FaultPlan(replace(plan, runs=runs, files=tuple(files.values())), tuple(planned), by_id, tuple(untried))


def _trials(run: PlannedRun, result: RunResult, options: FaultOptions) -> Iterator[Trial | Tried]:
    start = result.trajectory.start
    offered = start.tools if start is not None else ()
    seen: set[str] = set()
    for record in result.trajectory.calls:
        if record.tool in seen or record.result is None or (options.tools and record.tool not in options.tools):
            continue
        seen.add(record.tool)
        lure = lure_for(run.case, offered, record.tool)
        for fault in options.faults:
            for lasts in options.lasts:
                if fault == "injection" and lure is None:
                    yield _untried(run, record.tool, fault, lasts, "the case expects every tool on offer")
                    continue
                made = faulty(fault, record.result.content, lure)
                yield Trial(run, record, fault, lasts, made, lure if fault == "injection" else None)


def _variant_name(trial: Trial) -> str:
    lasting = f"{trial.fault} of {trial.call.tool}{' for good' if trial.lasts == 'for good' else ''}"
    variant = trial.origin.variant
    return lasting if variant is None else f"{variant.name} + {lasting}"


def _with_fault_variants(files: Sequence[SuiteFile], trials: Iterable[Trial]) -> Mapping[Path, SuiteFile]:
    """Return the suites with a variant for each fault, so that each run says how it was made. One that lasts answers
    further calls in the same way."""
    tables: dict[Path, dict[str, dict[str, object]]] = {}
    for trial in trials:
        variant = trial.origin.variant
        table: dict[str, object] = {}
        if variant is not None:
            table = variant.model_dump(mode="json", exclude_unset=True, exclude_none=True)
        table["name"] = _variant_name(trial)
        table["description"] = f"{trial.fault} in the first result of {trial.call.tool}"
        if trial.lasts == "for good":
            answer = "error" if trial.made.is_error else "result"
            mocks = table.get("mocks")
            before = [{"tool": trial.call.tool, answer: trial.made.content}]
            table["mocks"] = [*before, *(mocks if isinstance(mocks, list) else [])]
        tables.setdefault(trial.origin.file.path, {})[str(table["name"])] = table
    return {
        file.path: with_variants(file, tables[file.path].values(), "faults") if file.path in tables else file
        for file in files
    }


def _run_of(trial: Trial, file: SuiteFile, results: Mapping[str, RunResult]) -> PlannedRun:
    origin = trial.origin
    trajectory = results[origin.run_id].trajectory
    assert file.suite is not None
    calls = trajectory.rounds[trial.call.round - 1].calls
    answered = next(at for at, record in enumerate(calls, 1) if record.call.id == trial.call.call.id)
    fork = Fork(
        trajectory,
        ForkPoint(trial.call.round, answered),
        result=EditResult(trial.made.content, trial.made.is_error),
    )
    variant = next(each for each in file.suite.variants if each.name == _variant_name(trial))
    written = next(case for case in file.suite.cases if case.id == origin.written.id)
    model = contender(origin.asked_model, variant)
    of_suite = origin.model_of_suite
    planned = plan_fork(file, written, model, fork, repeat=origin.repeat, model_of_suite=of_suite, by=origin.by)
    return replace(planned, own_model=origin.own_model)


def _tried(trial: Trial, result: RunResult | None, origin: RunResult) -> Tried:
    assert trial.run is not None
    if result is None:
        return _untried(trial.origin, trial.call.tool, trial.fault, trial.lasts, "it was not run")
    verdict, why = verdict_of(result, origin, trial.call.call.id, trial.fault, trial.lure, trial.made)
    cell = _cell(trial.origin, trial.call.tool, trial.fault, trial.lasts, verdict, why, result)
    _, after = around(result.trajectory, trial.call.call.id)
    return replace(cell, request=_request(origin.trajectory, trial.call), made=trial.made.content, after=after)


def _request(trajectory: Trajectory, call: CallRecord) -> str:
    """Return what was asked when a call was made: by the step of a chain, or by the last message of the user."""
    step, start = trajectory.rounds[call.round - 1].step, trajectory.start
    if step is not None and step.user is not None:
        return step.user
    messages = start.messages if start is not None else ()
    return next((message.content for message in reversed(messages) if message.role == "user"), "")


def _untried(run: PlannedRun, tool: str, fault: FaultName, lasts: Lasts, why: str) -> Tried:
    return _cell(run, tool, fault, lasts, "not tried", why)


def _cell(
    run: PlannedRun,
    tool: str,
    fault: FaultName,
    lasts: Lasts,
    verdict: Verdict,
    why: str,
    result: RunResult | None = None,
) -> Tried:
    return Tried(
        suite=str(run.file.path),
        case_id=run.case.id,
        case_name=run.case.name,
        model=run.model,
        tool=tool,
        fault=fault,
        lasts=lasts,
        verdict=verdict,
        why=why,
        answer=result.trajectory.final_answer if result is not None else "",
        run_id=result.run_id if result is not None else None,
    )
