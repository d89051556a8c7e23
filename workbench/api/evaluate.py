"""Evaluation of suites from Python, on models or on an agent of the caller."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from workbench.api.approval import Approve, approval_for, approve_nothing
from workbench.api.suites import Cell, LoadedSuite, SuitePath, UsageError, loaded
from workbench.config.folders import history_file, home_in, user_folders
from workbench.config.model_list import names_in
from workbench.config.models import DEFAULT_CONCURRENCY, ConfigError
from workbench.config.program import program_in
from workbench.config.secrets import Secrets
from workbench.dataclasses import dataclass
from workbench.engine.events import BatchEvent, ClusterSaid, HistorySaid, RunDone
from workbench.engine.plan import CellKey, PlannedRun
from workbench.engine.recordings import Recordings, recording_lines
from workbench.engine.thread import EngineThread
from workbench.evaluation.approval import Approval, needs
from workbench.evaluation.model_names import full_model_names
from workbench.evaluation.options import AddedVariants, OptionsError, OwnModel, Resume, RunOptions
from workbench.evaluation.plan import ClusterError, FinishedRun, Plan, PlanError
from workbench.evaluation.planner import plan, unresolved_models
from workbench.evaluation.report import Report
from workbench.evaluation.run import Evaluation
from workbench.history.records import HistoryError
from workbench.providers.function import AgentFunction, CallerLoop, FunctionModel
from workbench.providers.model import Model
from workbench.suite.files import absolute
from workbench.suite.model import Gate, GraderName, RepeatRule
from workbench.suite.suite_file import AddedVariantError, variants_in
from workbench.suite.variants import Variants
from workbench.trajectory.events import JsonValue

if TYPE_CHECKING:
    from workbench.evaluation.baseline import Baseline
    from workbench.show.views.baseline import AgainstBaseline, Confirm, FailOn


# Cells: the runs of one case with one model, reported as soon as the last of them is over.


@dataclass(frozen=True)
class CellDone:
    """The event that all runs of a case with a model are over.

    `report` covers these runs alone. Gates and aggregates of the suite are left out of it, so that it passes if the
    case passes.
    """

    suite: Path
    """The absolute path of the suite file."""
    case: str
    """The id of the case."""
    model: str
    """The name of the model."""
    report: Report = field(repr=False)


class Cells:
    """The cells of a plan, with the finished runs of every cell that still lacks some."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._runs = plan.runs_by_id
        self._key_of: dict[str, CellKey] = {}
        for run in plan.runs:
            self._key_of[run.run_id] = (absolute(run.file.path), run.case.id, run.model)
        self._missing = Counter(self._key_of.values())
        self._over: dict[CellKey, list[FinishedRun]] = {}

    def take(self, event: BatchEvent) -> CellDone | None:
        """Record an event, and return the cell whose last run it ends, if any."""
        if not isinstance(event, RunDone):
            return None
        run = self._runs[event.result.run_id]
        key = self._key_of[run.run_id]
        self._over.setdefault(key, []).append(FinishedRun(run.repeat, run.case, event.result))
        self._missing[key] -= 1
        if self._missing[key]:
            return None
        # Runs end in any order; the report has them in the order of the repeats.
        runs = sorted(self._over.pop(key), key=lambda finished: finished.place)
        # Gates and aggregates measure the whole suite: a single case is reported without them.
        alone = run.suite.model_copy(update={"gate": Gate(), "aggregates": ()})
        report = Report(
            runs=tuple(runs),
            suites={str(run.file.path): alone},
            started_at="",
            secrets=self._plan.program.secrets,
        )
        return CellDone(*key, report)


_Result = TypeVar("_Result")

END_TIMEOUT_S = 20.0
"""The longest time that an interrupted evaluation waits for its runs to stop and its servers to close."""


@dataclass(frozen=True)
class Agent:
    """An agent of your own, which is evaluated like a model.

    `function` is an async function from an `AgentRequest` to the agent's answer: a text, a call made with
    `workbench.call`, a list of calls, or an `AgentAnswer` with text and calls. It is called once for each round of a
    run; after calls, the next request holds their results from the mocks or the servers of the suite. `name` is the
    agent's name in results and reports, by default that of the function.

    >>> import workbench
    >>> async def clock_agent(request):
    ...     if request.results:
    ...         return request.results[0].content
    ...     return workbench.call("get_time", timezone="Europe/Oslo")
    >>> agent = workbench.Agent(clock_agent, name="v2")
    >>> report = workbench.evaluate("clock.toml", model=agent, cases=["time-in-bergen"])
    >>> report.results[0].model, report.results[0].trajectory.final_answer
    ('v2', 'It is 12:00 in Europe/Oslo.')
    """

    function: AgentFunction
    name: str = ""

    def __post_init__(self) -> None:
        # The class is frozen, and an object that is called in place of a function has no name but that of its class.
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", type(self.function).__name__))


AnyModel = str | Model | Agent | AgentFunction
"""A model to evaluate: its name, a `Model`, an `Agent`, or the async function of an agent."""


def evaluate(
    suites: SuitePath | LoadedSuite | Iterable[SuitePath | LoadedSuite],
    *,
    model: AnyModel | None = None,
    models: Sequence[AnyModel] = (),
    base_url: str | None = None,
    api_key_env: str | None = None,
    params: Mapping[str, JsonValue] | None = None,
    cases: Sequence[str] = (),
    tags: Sequence[str] = (),
    cells: Iterable[Cell] | None = None,
    repeats: int | None = None,
    repeat_rule: RepeatRule | None = None,
    variants: bool | Sequence[SuitePath] = False,
    by: GraderName | None = None,
    min_score: float | None = None,
    max_cost_usd: float | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    processes: int = 1,
    cluster: str | None = None,
    execute: bool | None = None,
    execute_all: bool = False,
    judge: str | None = None,
    judge_anew: bool = False,
    own_pace: bool = False,
    history: bool | SuitePath = False,
    record: SuitePath | None = None,
    record_failed: SuitePath | None = None,
    resume: bool | int | str = False,
    anyway: bool = False,
    baseline: int | str | None = None,
    fail_on: FailOn | None = None,
    confirm: Confirm = "reruns",
    confirm_writes: bool = False,
    approve: Approve = approve_nothing,
    on_event: Callable[[BatchEvent], object] | None = None,
    on_cell: Callable[[CellDone], object] | None = None,
) -> Report:
    """Run the cases of suites on models, grade the runs, and return the report.

    `suites` is one or several paths of suite files or folders with suite files, or suites that `load` returned.

    Models and cases:
    - `model`, or several `models`: names such as `openai:gpt-6-luna` or one of your `workbench.toml`, a `Model`, an
      `Agent`, or the async function of an agent. The default is the models that the suites name.
    - `base_url`, `api_key_env` and `params` hold, for models given by name, the address, the environment variable with
      the key, and additional fields of each request.
    - `cases` selects cases by ids, names and patterns such as `refund*`, `tags` by tags, `cells` single pairs of a case
      and a model (`suite.cells()` has all of them). `repeats` is the number of runs for each pair, `repeat_rule` the
      rule that joins them to one status: `every` run must pass, or the `last` one, or their `mean` score, or a
      `majority`.
    - `variants=True` runs all variants of the suites beside the suites as they are written. A list of names runs these
      variants instead; a path (`*.toml`) in the list adds the variants in that file.

    Running and grading:
    - `by` names the deciding grader, `min_score` the mean score to reach in place of the suites' own gates.
    - `max_cost_usd` limits the cost of the batch in US dollars, judges included, in place of `limits.batch_cost_usd` of
      the suites: runs that would exceed it are not started. It needs the prices of all models.
    - `concurrency` is the number of simultaneous runs on each endpoint, `processes` how many processes share the
      runs, each with servers of its own; models must then be given by name. `cluster` lets the workers of a dask
      cluster make the runs: `local:8`, or the address of a scheduler, such as `tcp://scheduler:8786`.
    - `execute=True` really executes tools marked read-only on their servers, `execute_all=True` all tools.
    - `judge` names the judging model for checks that name none; `judge_anew` asks it about known values again.
    - `own_pace` plays the recordings of `replay:` models at their original speed instead of at once.

    History and comparison:
    - `history=True` records the runs in the project's history, a path in that file. `record` is a folder that gets a
      recording of each run, `record_failed` one for runs that do not pass. By default nothing is written.
    - `resume` continues a batch of that history, by its number or name, or the latest one that lacks runs with `True`:
      only the missing runs are made, and the report covers all of them. An agent must be given again. `anyway`
      continues even if models are reached in another way than before.
    - `baseline` is the number or the name of a batch in that history to compare with. With `fail_on="regression"`, the
      report passes unless cases broke since then. Cases that broke are run again until chance is excluded, which needs
      `confirm_writes=True` for cases with an executed tool that is not read-only. With `confirm="none"`, each case that
      broke decides.

    `approve` is a function from the needs of a suite to whether it may have them. It is called for suites that would
    start a process, import a file, or send something to an address that you did not name here. `workbench.ALL` approves
    everything; the default approves nothing. `on_event` is called with each event as it happens, `on_cell` with the
    report on each case and model whose last run is over. A fault of a history or a recording is a RuntimeWarning and
    stops nothing.

    Raises SuiteError for suites with errors, ApprovalError for needs that are not approved and UsageError for arguments
    that do not fit, all before anything is started. Later faults are in the report: a run that a model or a server
    failed has the status `error`.

    Inside a running event loop this function runs on a thread of its own and blocks the loop; use `evaluate_async`
    there.

    >>> import workbench
    >>> report = workbench.evaluate("clock.toml", model="offline", repeats=2)
    >>> report.passed, report.score, len(report.runs)
    (False, 0.5, 4)
    >>> case = report.cases["time-in-bergen"]
    >>> case.status, case.reason, case.runs[0].trajectory.calls
    ('failed', 'quantity: 1 call expected, 0 made', ())
    """
    return _run(
        evaluate_async(
            suites,
            model=model,
            models=models,
            base_url=base_url,
            api_key_env=api_key_env,
            params=params,
            cases=cases,
            tags=tags,
            cells=cells,
            repeats=repeats,
            repeat_rule=repeat_rule,
            variants=variants,
            by=by,
            min_score=min_score,
            max_cost_usd=max_cost_usd,
            concurrency=concurrency,
            processes=processes,
            cluster=cluster,
            execute=execute,
            execute_all=execute_all,
            judge=judge,
            judge_anew=judge_anew,
            own_pace=own_pace,
            history=history,
            record=record,
            record_failed=record_failed,
            resume=resume,
            anyway=anyway,
            baseline=baseline,
            fail_on=fail_on,
            confirm=confirm,
            confirm_writes=confirm_writes,
            approve=approve,
            on_event=on_event,
            on_cell=on_cell,
        )
    )


async def evaluate_async(
    suites: SuitePath | LoadedSuite | Iterable[SuitePath | LoadedSuite],
    *,
    model: AnyModel | None = None,
    models: Sequence[AnyModel] = (),
    base_url: str | None = None,
    api_key_env: str | None = None,
    params: Mapping[str, JsonValue] | None = None,
    cases: Sequence[str] = (),
    tags: Sequence[str] = (),
    cells: Iterable[Cell] | None = None,
    repeats: int | None = None,
    repeat_rule: RepeatRule | None = None,
    variants: bool | Sequence[SuitePath] = False,
    by: GraderName | None = None,
    min_score: float | None = None,
    max_cost_usd: float | None = None,
    concurrency: int = DEFAULT_CONCURRENCY,
    processes: int = 1,
    cluster: str | None = None,
    execute: bool | None = None,
    execute_all: bool = False,
    judge: str | None = None,
    judge_anew: bool = False,
    own_pace: bool = False,
    history: bool | SuitePath = False,
    record: SuitePath | None = None,
    record_failed: SuitePath | None = None,
    resume: bool | int | str = False,
    anyway: bool = False,
    baseline: int | str | None = None,
    fail_on: FailOn | None = None,
    confirm: Confirm = "reruns",
    confirm_writes: bool = False,
    approve: Approve = approve_nothing,
    on_event: Callable[[BatchEvent], object] | None = None,
    on_cell: Callable[[CellDone], object] | None = None,
) -> Report:
    """Evaluate as `evaluate` does, without blocking the event loop; several evaluations may run at the same time.

    Agents, `approve`, `on_event` and `on_cell` are called in the caller's loop, so that they may use its tasks, locks
    and connections. Cancelling stops all runs, and closes servers and connections before the cancellation is passed on.

    >>> import asyncio, workbench
    >>> async def main():
    ...     return await asyncio.gather(
    ...         workbench.evaluate_async("clock.toml", model="offline"),
    ...         workbench.evaluate_async("clock.toml", model="offline", tags=["time"]),
    ...     )
    >>> [len(report.runs) for report in asyncio.run(main())]
    [2, 1]
    """
    if confirm not in ("reruns", "repeats", "none"):
        raise UsageError(f"cases are confirmed by 'reruns', by 'repeats', or by 'none', not {confirm!r}")
    files = tuple(suite.file for suite in loaded(suites))
    own_history = history_file(user_folders(), files[0].path.parent, home_in(os.environ))
    stored_in: Path | None = None
    # A batch that is resumed is in the history, so its remaining runs are recorded there in any case.
    if not isinstance(history, bool):
        stored_in = Path(history)
    elif history or resume is not False:
        stored_in = own_history
    continued = None
    if resume is not False:
        continued = Resume(None if resume is True else str(resume), anyway)
    loop = CallerLoop()
    given = list(models)
    if model is not None:
        given.insert(0, model)
    chosen_cells = None
    if cells is not None:
        chosen_cells = frozenset(cell.key for cell in cells)
    try:
        options = RunOptions(
            suites=files,
            models=tuple(_named(each, loop) for each in given),
            base_url=base_url,
            api_key_env=api_key_env,
            params=dict(params or {}),
            cases=tuple(cases),
            tags=tuple(tags),
            cells=chosen_cells,
            repeats=repeats,
            repeat_rule=repeat_rule,
            variants=_variants(variants),
            added_variants=_added_variants(variants),
            by=by,
            min_score=min_score,
            max_cost_usd=max_cost_usd,
            concurrency=concurrency,
            processes=processes,
            cluster=cluster,
            execute=execute,
            execute_all=execute_all,
            judge=judge,
            judge_anew=judge_anew,
            own_pace=own_pace,
            resume=continued,
            history=stored_in,
        )
    except OptionsError as error:
        raise UsageError(str(error)) from error
    program = program_in(user_folders(), os.environ, options.model_options)
    try:
        planned = plan(options, program)
    except PlanError as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    # A plan holds a lock on the batch that it resumes: it must be abandoned unless an evaluation takes it over.
    try:
        approval = approval_for(needs(planned), approve, program)
        before = None
        if baseline is not None:
            before = _baseline(str(baseline), stored_in or own_history, planned, fail_on)
            before = replace(before, confirm=confirm, confirm_writes=confirm_writes)
        recordings = _recordings(record, record_failed, program.secrets)
    except BaseException:
        planned.abandon()
        raise
    try:
        evaluation = Evaluation(planned, approval, record=recordings, hears_events=on_event is not None)
        report = await _report(evaluation, on_event, on_cell)
        if before is not None:
            report = replace(report, against=await _against(before, report, planned, approval, on_event))
    except ClusterError as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    finally:
        # Cancelled agents clean up in the caller's loop, which may be closed as soon as this function returns.
        await loop.settle()
    if recordings is not None and recordings.problem is not None:
        warnings.warn(program.secrets.redact(recordings.problem), RuntimeWarning, stacklevel=1)
    return report


def models_in(lists: Sequence[str], paths: Sequence[SuitePath]) -> tuple[str, ...]:
    """Return the full names of the models in texts such as `openai:gpt-6-luna,gpt-6.1-sol`, for suites at the paths.

    Raises UsageError for an empty name, and for a `workbench.toml` that is needed and cannot be used."""
    try:
        return full_model_names([names_in(text) for text in lists], paths)
    except (ValueError, ConfigError) as error:
        raise UsageError(str(error)) from None


def unknown_models(suites: Iterable[LoadedSuite], models: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons why some of these models cannot be asked about the suites; empty if all can."""
    files = tuple({suite.path: suite.file for suite in suites}.values())
    try:
        options = RunOptions(suites=files, models=tuple(models))
    except OptionsError as error:
        return (str(error),)
    program = program_in(user_folders(), os.environ, options.model_options)
    return tuple(map(program.secrets.redact, unresolved_models(options, files, program)))


async def _against(
    baseline: Baseline,
    report: Report,
    planned: Plan,
    approval: Approval,
    on_event: Callable[[BatchEvent], object] | None,
) -> AgainstBaseline:
    """Compare a report with its baseline, after running cases that broke again."""
    # Imported on use: most evaluations have no baseline.
    from workbench.evaluation.confirmation import confirming

    against = baseline.against(report.results)
    confirms = confirming(
        baseline, against, report.results, planned, batch=report.batch, interrupted=report.interrupted
    )
    if confirms is None:
        return against
    if confirms.plan is None:
        return confirms.done()
    evaluation = Evaluation(confirms.plan, approval, hears_events=on_event is not None)
    again = await _report(evaluation, on_event, None)
    return confirms.done(again.results, batch=again.batch, interrupted=again.interrupted)


async def _report(
    evaluation: Evaluation,
    on_event: Callable[[BatchEvent], object] | None,
    on_cell: Callable[[CellDone], object] | None,
) -> Report:
    cells = Cells(evaluation.plan) if on_cell is not None else None
    async with evaluation:
        async for event in evaluation:
            if on_cell is not None and cells is not None and (done := cells.take(event)) is not None:
                on_cell(done)
            if isinstance(event, HistorySaid | ClusterSaid):
                message = evaluation.plan.program.secrets.redact(event.text)
                warnings.warn(message, RuntimeWarning, stacklevel=1)
            if on_event is not None:
                on_event(event)
        return await evaluation.report()


@dataclass(frozen=True)
class _OwnModel:
    """A `Model` of the caller, which all runs share."""

    name: str
    model: Model

    def open(self, planned: PlannedRun) -> Model:
        """Return the model, the same one for every run."""
        return self.model


@dataclass(frozen=True)
class _OwnAgent:
    """An agent of the caller, which runs on the caller's event loop."""

    name: str
    function: AgentFunction
    loop: CallerLoop = field(repr=False)

    def open(self, planned: PlannedRun) -> Model:
        """Return a model that asks the agent for one run."""
        return FunctionModel(self.name, self.function, case=planned.case.id, run=planned.run_id, loop=self.loop)


def _variants(wanted: bool | Sequence[SuitePath]) -> Variants:
    if isinstance(wanted, bool):
        return Variants(all_of_them=wanted)
    names = {os.fspath(each) for each in wanted}
    return Variants(frozenset(names.difference(_files(wanted))), plain=not wanted)


def _added_variants(wanted: bool | Sequence[SuitePath]) -> tuple[AddedVariants, ...]:
    """Return the variants in the files among `wanted`; raise UsageError for a file that cannot be used."""
    try:
        return tuple(AddedVariants(variants_in(Path(file)), file) for file in _files(wanted))
    except AddedVariantError as error:
        raise UsageError(str(error)) from None


def _files(wanted: bool | Sequence[SuitePath]) -> list[str]:
    if isinstance(wanted, bool):
        return []
    files = []
    for each in wanted:
        name = os.fspath(each)
        if name.endswith(".toml"):
            files.append(name)
    return files


def _named(model: AnyModel, loop: CallerLoop) -> str | OwnModel:
    if isinstance(model, str):
        return model
    if isinstance(model, Agent):
        return _OwnAgent(model.name, model.function, loop)
    # Before `callable`: the object that implements a model may be callable, too.
    if isinstance(model, Model):
        return _OwnModel(model.name, model)
    if callable(model):
        return _named(Agent(model), loop)
    raise UsageError(
        f"a model is a name, a workbench.Model, a workbench.Agent or an async function, not a {type(model).__name__}"
    )


def _baseline(which: str, history: Path, planned: Plan, fail_on: FailOn | None) -> Baseline:
    from workbench.evaluation.baseline import baseline_of

    try:
        return baseline_of(which, history, planned, fail_on)[0]
    except HistoryError as error:
        raise UsageError(planned.program.secrets.redact(str(error))) from None


def _recordings(whole: SuitePath | None, failed: SuitePath | None, secrets: Secrets) -> Recordings | None:
    if whole is not None and failed is not None:
        raise UsageError("give record or record_failed, not both")
    folder = failed if whole is None else whole
    if folder is None:
        return None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"runs cannot be recorded in {folder}: {error.strerror}") from error
    return Recordings(Path(folder), recording_lines(secrets), only_failed=failed is not None)


def _run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run a coroutine to its end and return its result, also inside a running event loop."""
    if not _in_event_loop():
        return asyncio.run(work)
    # `asyncio.run` refuses to run inside a loop, such as that of a notebook: so the work gets a thread with its own.
    thread = EngineThread()
    try:
        return thread.submit(work).result()
    finally:
        thread.close(END_TIMEOUT_S)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
