"""Plans the missing runs of a batch in the history, so that the batch can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.config.folders import project_folder
from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.history_recorder import stored_cases
from workbench.engine.missing_runs import Resumption, claim_and_read, register_model_secrets, suite_of
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import ExecutionRules
from workbench.evaluation.cost_limit import CostLimitError, cost_limit
from workbench.evaluation.judges import unjudged_checks, unknown_judge
from workbench.evaluation.options import Resume, RunOptions
from workbench.evaluation.plan import (
    NOT_IN_A_CLUSTER,
    Notice,
    Plan,
    PlanError,
    cases_of,
    notices,
)
from workbench.evaluation.resumed_batch import ResumedBatch, RunsBefore, figures_of, runs_before
from workbench.evaluation.suites import NoSuitesError
from workbench.evaluation.trust import trust_store
from workbench.grading.run_summary import RunSummary
from workbench.grading.scoring import mean
from workbench.history.claims import is_claimed
from workbench.history.database import ReportProblem
from workbench.history.history import History
from workbench.history.records import BatchRow, DamagedError, HistoryError, SuiteRef, Until
from workbench.numerals import of_text
from workbench.show.views.batch_list import batch_name
from workbench.show.when import ago, local_time
from workbench.suite.grading_model import Gate
from workbench.suite.model import Case
from workbench.suite.project import Search, find_suites
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.suite.variants import model_of
from workbench.trajectory.recording import RecordingError

if TYPE_CHECKING:
    from workbench.evaluation.cost_limit import CostLimit


@dataclass(frozen=True)
class CompleteBatch:
    """A batch of the history without missing runs.

    `figures` are summaries of its runs. `gates` are the gates of its suites by path."""

    batch: BatchRow
    figures: tuple[RunSummary, ...]
    gates: Mapping[str, Gate]
    notices: tuple[Notice, ...] = ()


def plan_resumption(options: RunOptions, program: Program, search: Search | None) -> Plan:
    """Return the plan of the missing runs of the batch that `options.resume` names.

    The batch is claimed, so that no other program resumes it. Unless the options ask for a comparison of models, the
    plan's report also includes the finished runs, which are read only for the report. Raises PlanError."""
    resume, file = options.resume, options.history
    assert resume is not None
    if file is None:
        raise PlanError(Notice("no history is given, so no batch can be resumed: name the history of the batch"))
    try:
        return _planned(options, resume, file, program, search)
    except (HistoryError, NoSuitesError, RecordingError) as error:
        raise PlanError(Notice(f"nothing was run: {error}")) from error


def _planned(options: RunOptions, resume: Resume, file: Path, program: Program, search: Search | None) -> Plan:
    in_full = not options.compares
    with History(file) as history:
        suites = _suites_at(options, search)
        chosen = _named(history, resume.batch) if resume.batch else _lacking(history, suites, program)
        _must_have(chosen, suites, options.model_names)
        resumption = claim_and_read(history, chosen.number, program, options.model_names, options.own_openers)
        try:
            return _plan_of(resumption, options, resume, history, program, in_full=in_full)
        except BaseException:
            # Even Ctrl+C must release the claim. Otherwise, no program could resume the batch until this process ends.
            resumption.handle.release()
            raise


def _plan_of(
    resumption: Resumption, options: RunOptions, resume: Resume, history: History, program: Program, *, in_full: bool
) -> Plan:
    batch, lacking = resumption.batch, {file.path for file in resumption.files}
    files = _files_of(resumption)
    left_out: list[str] = []
    if in_full:
        files |= dict(_complete_suites(history, batch, lacking, program, left_out.append))
    warnings = []
    # Several suites may be left out for the same reason, so each reason is reported once.
    for why in dict.fromkeys(left_out):
        warnings.append(f"left out of the report: {why}")
    warnings += resumption.stored_text_notices
    wrong = [*_resume_refusals(options, resume, resumption)]
    if not wrong:
        warnings += resumption.differences
        wrong = [*unknown_judge(options.judge, resumption.files, program)]
    shown = notices(warnings, "warning")
    if wrong:
        raise PlanError(*shown, *map(Notice, wrong))
    before = runs_before(resumption, _cases_of(files, program))
    try:
        limit = cost_limit_of(resumption, before, history, program, options.max_cost_usd)
    except CostLimitError as error:
        raise PlanError(*shown, *map(Notice, error.problems)) from error
    if limit is not None and options.cluster is not None:
        raise PlanError(*shown, Notice(NOT_IN_A_CLUSTER))
    which = batch_name(batch)
    if not resume.batch:
        which += f" of {_when(batch)}"
    missing = f"{of_text(len(resumption.runs), batch.planned)} runs are missing"
    details = [f"resuming batch {which}: {missing}"]
    if limit is not None:
        details.append(limit.notice(resumption.runs))
    details += unjudged_checks(cases_of(resumption.runs), program.models)
    shown += notices(details, "detail")
    # The default means that the user gave no option, so the batch's stored value applies.
    concurrency = resumption.concurrency
    if options.concurrency != DEFAULT_CONCURRENCY:
        concurrency = options.concurrency
    return Plan(
        runs=resumption.runs,
        program=program,
        # The files are in the order of the batch, as in its first report.
        files=tuple(files[suite] for suite in batch.suites if suite in files),
        execution=ExecutionRules(resumption.execute, resumption.execute_all, trust_store(program.folders).is_exempt),
        concurrency=concurrency,
        cluster=options.cluster,
        compares=options.compares,
        specs=resumption.specs,
        resumed=ResumedBatch(
            batch,
            resumption.handle,
            before,
            in_full=in_full,
            left_out=bool(left_out),
        ),
        until=Until.of(batch.settings),
        min_score=options.min_score,
        cost_limit=limit,
        instructions=resumption.instructions,
        original_pace=options.original_pace,
        renew_judgements=options.renew_judgements,
        history=options.history,
        history_named=options.history_named,
        notices=tuple(shown),
    )


def _files_of(resumption: Resumption) -> dict[SuiteRef, SuiteFile]:
    by_path = {file.path: file for file in resumption.files}
    files = {}
    for suite in resumption.batch.suites:
        if suite.file in by_path:
            files[suite] = by_path[suite.file]
    return files


def _cases_of(files: Mapping[SuiteRef, SuiteFile], program: Program) -> dict[SuiteRef, Mapping[str, Case]]:
    return {suite: stored_cases(file, program.secrets) for suite, file in files.items()}


def cost_limit_of(
    resumption: Resumption, before: RunsBefore, history: History, program: Program, wanted_usd: float | None = None
) -> CostLimit | None:
    """Return the cost limit of a resumed batch: `wanted_usd`, or else the batch's stored limit; `None` without a limit.

    The cost of runs that finished earlier counts towards the limit. Raises CostLimitError and HistoryError."""
    stored = resumption.batch.settings.get("cost_limit_usd")
    if wanted_usd is None and isinstance(stored, int | float):
        wanted_usd = float(stored)
    if wanted_usd is None:
        return None
    spent = earlier_cost(history, resumption.batch.number, before)
    return cost_limit(wanted_usd, resumption.runs, resumption.specs, program, history.file, spent)


def earlier_cost(history: History, batch: int, before: RunsBefore) -> float:
    """Return the cost of a batch's earlier runs in US dollars, including judges and stopped runs.

    A run of unknown cost counts with the mean cost of the other runs."""
    known: list[float] = []
    unknown = 0
    for row in history.each_run(batch):
        if row.figures is None or not row.figures.asked:
            continue
        if row.figures.cost_usd is None:
            unknown += 1
        else:
            known.append(row.figures.cost_usd)
    spent = sum(known)
    if known:
        spent += mean(known) * unknown
    for _, _, result in before.read(lambda _why: None):
        spent += result.judging.cost_usd or 0.0
    return spent


def plan_of(resumption: Resumption, program: Program, exempt: Callable[[SuiteFile], bool]) -> Plan:
    """Return the plan of a batch's missing runs for the app.

    Call this function after the user has seen how the present options differ from those of the batch. `exempt` returns
    whether a suite may execute tools without asking. Raises CostLimitError and HistoryError."""
    limit = None
    if resumption.batch.settings.get("cost_limit_usd") is not None:
        before = runs_before(resumption, _cases_of(_files_of(resumption), program))
        with History(resumption.history) as history:
            limit = cost_limit_of(resumption, before, history, program)
    return Plan(
        runs=resumption.runs,
        program=program,
        files=resumption.files,
        execution=ExecutionRules(resumption.execute, resumption.execute_all, exempt),
        concurrency=resumption.concurrency,
        specs=resumption.specs,
        until=Until.of(resumption.batch.settings),
        cost_limit=limit,
        instructions=resumption.instructions,
        resumed=ResumedBatch(resumption.batch, resumption.handle, runs_before(resumption)),
    )


def complete_batch(options: RunOptions) -> CompleteBatch | None:
    """Return the batch that `options.resume` names if no run of it is missing; otherwise `None`.

    Raises PlanError."""
    resume, file = options.resume, options.history
    if file is None or resume is None or not resume.batch:
        return None
    damaged: list[Notice] = []
    try:
        with History(file) as history:
            batch = _named(history, resume.batch)
            if batch.missing:
                return None
            _must_have(batch, _suites_at(options), options.model_names)
            figures = tuple(figures_of(row) for row in history.runs(batch.number))
            gates = history.gates(batch, lambda why: damaged.append(Notice(why, "warning")))
    except (HistoryError, NoSuitesError) as error:
        raise PlanError(Notice(f"nothing was run: {error}")) from error
    return CompleteBatch(batch, figures, gates, tuple(damaged))


def _named(history: History, name: str) -> BatchRow:
    try:
        return history.batch(name)
    except HistoryError as error:
        # In `--resume PATH`, argparse takes the path for the name of a batch. The message explains this mistake.
        if Path(name).exists():
            raise HistoryError(f"{error}; put paths before --resume, or after the number of a batch") from error
        raise


def _lacking(history: History, suites: Sequence[Path], program: Program) -> BatchRow:
    """Return the latest batch that has all of these suites and missing runs.

    The user's own history has the batches of all projects. If no suites are given, only batches of the current project
    are searched there. Raises HistoryError if there is no such batch."""
    batches = history.each_batch(forks=False, lacking=True)
    lacking = [batch for batch in batches if batch.damage is None]
    found, place = lacking, str(history.file)
    if suites:
        found = [batch for batch in lacking if _has(batch, suites)]
        place = ", ".join(map(str, suites))
    elif history.file.resolve() == program.folders.history.resolve():
        project = project_folder(Path(), program.environment.home)
        found = [batch for batch in lacking if _is_of(batch, project)]
        place = str(project)
    # The newest batch comes first.
    for batch in found:
        if not is_claimed(history.file, batch.number):
            return batch
    if found:
        raise HistoryError(f"batch {found[0].number} is running in another program: stop it there, or wait")
    message = f"nothing to resume: no run is missing in any batch of {place}"
    if lacking:
        message += f"; batch {lacking[0].number} has missing runs: --resume {lacking[0].number}"
    raise HistoryError(message)


def _has(batch: BatchRow, suites: Sequence[Path]) -> bool:
    return {suite.file.resolve() for suite in batch.suites}.issuperset(map(Path.resolve, suites))


def _is_of(batch: BatchRow, project: Path) -> bool:
    return any(suite.file.is_relative_to(project) for suite in batch.suites)


def _when(batch: BatchRow) -> str:
    return ", ".join(filter(None, (local_time(batch.started_at), ago(batch.started_at, datetime.now(UTC)))))


def _suites_at(options: RunOptions, search: Search | None = None) -> Sequence[Path]:
    paths = []
    for suite in options.suites:
        if isinstance(suite, SuiteFile):
            paths.append(suite.path)
        else:
            paths.append(Path(suite))
    found = find_suites(paths, search)
    if paths and not found:
        raise NoSuitesError(f"no suite at {', '.join(map(str, paths))}")
    return found


def _must_have(batch: BatchRow, suites: Sequence[Path], models: Sequence[str]) -> None:
    for path in suites:
        if not _has(batch, [path]):
            raise HistoryError(
                f"{path} is not a suite of batch {batch.number}: omit the path, because the batch stores its suites"
            )
    for model in models:
        if model not in batch.models and model not in map(model_of, batch.models):
            known = ", ".join(batch.models)
            raise HistoryError(f"{model!r} is not a model of batch {batch.number}, which has {known}")


def _complete_suites(
    history: History,
    batch: BatchRow,
    incomplete_suites: Collection[Path],
    program: Program,
    on_left_out: ReportProblem,
) -> Iterator[tuple[SuiteRef, SuiteFile]]:
    """Yield the suites without missing runs, as they were when the batch ran.

    `on_left_out` is called with the reason for each suite that can no longer be read. A suite from which the history
    redacted secrets is yielded too, because its runs are only reported and not executed."""
    specs, used = ModelSpecs(program.models, program.environment), history.models_of(batch.number)
    for suite in batch.suites:
        if suite.file in incomplete_suites:
            continue
        try:
            file = suite_of(history, batch, suite)[0]
        except HistoryError:
            # A suite with redacted secrets cannot be run, but its finished runs can be reported.
            try:
                file = replace(parse_suite(history.suite_text(suite), suite.file), hash=suite.hash)
            except DamagedError as error:
                on_left_out(str(error))
                continue
        if file.suite is None:
            on_left_out(f"{suite.file}, whose text in batch {batch.number} can no longer be read")
            continue
        # The report shows results of these suites, so their models' keys must be redacted too.
        register_model_secrets(program, file, [use for use in used if use.suite == suite], specs)
        yield suite, file


def _resume_refusals(options: RunOptions, resume: Resume, resumption: Resumption) -> Iterator[str]:
    """Yield the reasons why a batch cannot be resumed with these options.

    Executing all tools needs the user's permission, so the user must give `--execute-all` again."""
    number = resumption.batch.number
    if resumption.execute_all and not options.execute_all:
        yield f"batch {number} executed all tools without asking: to resume it, give --execute-all again"
    elif options.execute_all and not resumption.execute_all:
        yield f"batch {number} did not execute all tools: leave out --execute-all"
    elif resumption.differences and not resume.anyway:
        yield from resumption.differences
        yield (
            "nothing was run: give the original options again (--model, --base-url, --param, --judge), or --anyway to "
            "resume regardless"
        )
