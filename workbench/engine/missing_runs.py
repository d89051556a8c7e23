"""Resumes a batch of the history: reads the missing runs of its plan and prepares them.

The history stores the whole plan before the first run, and each result when its run ends. So a planned run without a
result is missing, however the program ended. An interrupted run starts again from its beginning. Resumed runs go into
the same batch, at their positions in the plan.

All runs of a batch must have the same conditions. So a suite whose file has changed is run from its text in the
history, with the graders, repeats and variants of the plan. If settings of models or judges have changed, `differences`
names them, and the user must accept them. A claim, which is a lock on the batch, keeps two programs from executing the
same runs. The claim ends with its program."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from workbench.config.models import DEFAULT_CONCURRENCY
from workbench.config.program import Program
from workbench.dataclasses import dataclass
from workbench.engine.history_recorder import (
    external_model_settings,
    images_of_suites,
    judges_of,
    model_settings,
    stored_cases,
)
from workbench.engine.model_specs import ModelSpecs
from workbench.engine.plan import (
    NO_OWN_MODELS,
    EarlierInstructions,
    OwnModels,
    PlannedRun,
    next_run_id,
    parse_grader,
    parse_repeat_rule,
    run_id_at,
    with_grader,
)
from workbench.engine.suite_secrets import register_run_secrets
from workbench.history.claims import claim
from workbench.history.history import History
from workbench.history.records import ANSWER_SETTINGS, BatchRow, HistoryError, ModelUse, RunRow, SuiteRef
from workbench.history.writer import BatchHandle
from workbench.numerals import count_text
from workbench.providers.built_in import is_built_in
from workbench.suite.grading_model import GRADERS, RepeatRule
from workbench.suite.model import Case
from workbench.suite.suite_file import SuiteFile, load_suite, parse_suite
from workbench.suite.variants import UnknownVariantError, model_of, variant_of
from workbench.trajectory.events import JsonValue
from workbench.trajectory.recording import RecordingError


@dataclass(frozen=True)
class Resumption:
    """A batch that can be resumed.

    `runs` are the missing runs in the order of the plan, and `files` are their suites. `execute` and `execute_all` come
    from the batch's `ExecutionRules`; the user must give `execute_all` again."""

    batch: BatchRow
    runs: tuple[PlannedRun, ...]
    files: tuple[SuiteFile, ...]
    handle: BatchHandle = field(repr=False)
    """The handle of the batch in the history. It has the place of each run in the plan."""
    specs: ModelSpecs = field(repr=False)
    """The present settings of the models and judges."""
    history: Path
    """The file of the history."""
    stored_text_notices: tuple[str, ...]
    """Messages for the user about suites that are run and graded by their stored text."""
    differences: tuple[str, ...]
    """Messages for the user about models and judges whose settings have changed since the batch."""
    instructions: EarlierInstructions
    execute: bool | None
    execute_all: bool
    concurrency: int

    @property
    def places(self) -> Mapping[str, int]:
        """The position of each run in the batch's plan, from 0, by run id."""
        return self.handle.places


def claim_and_read(
    history: History,
    number: int,
    program: Program,
    named_models: Collection[str],
    own_models: OwnModels = NO_OWN_MODELS,
) -> Resumption:
    """Claim a batch, and return what `resumable` returns for the batch.

    The claim keeps other programs from executing these runs. If you do not resume the batch, release `handle.claim`.
    Raises HistoryError."""
    taken = claim(history.file, number)
    try:
        resumption = resumable(
            history, history.batch(f"#{number}"), program, named_models=named_models, own_models=own_models
        )
    except BaseException:
        taken.release()
        raise
    resumption.handle.claim = taken
    return resumption


def resumable(
    history: History,
    batch: BatchRow,
    program: Program,
    *,
    named_models: Collection[str] = (),
    own_models: OwnModels = NO_OWN_MODELS,
    next_run_id: Callable[[], str] = next_run_id,
) -> Resumption:
    """Return the missing runs of a batch, ready to be run.

    The function blocks while it reads the history, suites and settings. `named_models` are the models that the user
    gives in this command. `own_models` must contain the Python models that the batch uses. Raises HistoryError when no
    run is missing, or when a missing run cannot be made as planned."""
    if batch.kind == "reruns":
        why = f"batch {batch.number} has reruns of cases that broke in batch {batch.confirms}"
        raise HistoryError(f"{why}, which cannot be resumed: 'workbench run --baseline' makes new reruns")
    if (planned_in := history.planned_in(batch.number)) < batch.planned:
        written = f"{count_text(planned_in)} of its {count_text(batch.planned)} runs are in it"
        raise HistoryError(
            f"batch {batch.number} was interrupted while its plan was being written, {written}: start a new batch"
        )
    missing, used = history.missing_runs(batch.number), history.models_of(batch.number)
    if not missing:
        forks = "a fork cannot be resumed" if batch.missing else "all of its runs are finished"
        raise HistoryError(f"nothing to resume in batch {batch.number}: {forks}")
    # A foreign history may claim that the user named a model. Requests would then go to an endpoint that the user never
    # chose. So only the user's own history is trusted here. In other histories, models count as named by the suites.
    if history.file.resolve() != program.folders.history.resolve():
        missing = [
            replace(row, model_of_suite=_of_suite(row.model, row.model_of_suite, named_models)) for row in missing
        ]
        used = [
            use._replace(is_named_by_suite=_of_suite(use.model, use.is_named_by_suite, named_models)) for use in used
        ]
    specs = ModelSpecs(program.models, program.environment)
    files: dict[SuiteRef, SuiteFile] = {}
    as_then: list[str] = []
    for suite in dict.fromkeys(row.suite for row in missing):
        _check_path(batch, suite, files)
        files[suite], problem = suite_of(history, batch, suite)
        # The history stores redacted ids and models. They can be compared with the current ones only after all secrets
        # are registered.
        uses = [use for use in used if use.suite == suite]
        register_model_secrets(program, files[suite], uses, specs)
        as_then += problem
    if history.gradings(batch.number):
        as_then.append(
            f"batch {batch.number} was regraded after it ran: new runs are graded by what its suites "
            "expected then, until the batch is regraded"
        )
    cases = {suite: stored_cases(file, program.secrets) for suite, file in files.items()}
    taken = history.run_ids(batch.number)
    runs: list[PlannedRun] = []
    places: dict[str, int] = {}
    rule = parse_repeat_rule(batch.settings.get("repeat_rule"))
    for row in missing:
        run_id = _new_id(next_run_id, row, batch)
        while run_id in taken:
            run_id = _new_id(next_run_id, row, batch)
        planned = _planned(run_id, row, files[row.suite], cases[row.suite].get(row.case_id), rule)
        if not row.model_of_suite:
            planned = replace(planned, own_model=own_models.get(row.model))
        runs.append(planned)
        places[run_id] = row.place
    settings = batch.settings
    concurrency = settings.get("concurrency")
    if not isinstance(concurrency, int) or concurrency <= 0:
        concurrency = DEFAULT_CONCURRENCY
    execute = settings.get("execute")
    return Resumption(
        batch=batch,
        runs=tuple(runs),
        files=tuple(files.values()),
        handle=BatchHandle(batch.number, places, batch.started_at, resumed_by=batch.resumed_by),
        specs=specs,
        history=history.file,
        stored_text_notices=tuple(as_then),
        differences=tuple(_differences(batch, used, runs, program, specs)),
        instructions=_earlier_instructions(history, batch, files),
        execute=execute if isinstance(execute, bool) else None,
        execute_all=settings.get("execute_all") is True,
        concurrency=concurrency,
    )


def _earlier_instructions(
    history: History, batch: BatchRow, files: Mapping[SuiteRef, SuiteFile]
) -> EarlierInstructions:
    found: dict[Path, dict[str, str]] = {}
    waiting = {ref: file.suite for ref, file in files.items() if file.suite is not None and file.suite.servers}
    for row in history.each_run(batch.number):
        suite = waiting.get(row.suite)
        if not waiting:
            break
        if suite is None or row.figures is None:
            continue
        case = next((case for case in suite.cases if case.id == row.case_id), None)
        # A case that selects tools may leave out a server. Its run then lacks that server's instructions.
        if case is None or case.offer is not None:
            continue
        try:
            start = history.recording(row).trajectory.start
        except (HistoryError, RecordingError):
            continue
        # A run without tools could not start, so it has no instructions.
        if start is not None and start.tools:
            del waiting[row.suite]
            then = {server.name: "" for server in suite.servers}
            found[files[row.suite].path] = then | {each.server: each.text for each in start.instructions}
    return found


def _new_id(next_run_id: Callable[[], str], row: RunRow, batch: BatchRow) -> str:
    if batch.shard is None:
        return next_run_id()
    return run_id_at(next_run_id(), row.place)


def _of_suite(model: str, of_suite: bool, named_models: Collection[str]) -> bool:
    return of_suite or not (model_of(model) in named_models or is_built_in(model_of(model)))


def _check_path(batch: BatchRow, suite: SuiteRef, other_suites: Collection[SuiteRef]) -> None:
    """Raise HistoryError unless the suite's path is absolute and unique in its batch."""
    # A user trusts a suite by its path, so two suites with the same path would share the trust.
    if not suite.file.is_absolute() or "\0" in str(suite.file):
        raise HistoryError(f"batch {batch.number} is damaged: the path of its suite {str(suite.file)!r} is incomplete")
    if suite.file in {other.file for other in other_suites}:
        raise HistoryError(f"batch {batch.number} is damaged: it has two suites at {suite.file}")


def register_model_secrets(program: Program, file: SuiteFile, models: Sequence[ModelUse], specs: ModelSpecs) -> None:
    """Register the secrets in a stored suite, and the secrets of the models that run the suite."""
    if file.suite is None:
        return
    runs = []
    for case in file.suite.cases:
        for use in models:
            runs.append(PlannedRun("", file, case, use.model, 0, use.is_named_by_suite))
    register_run_secrets(program, runs, specs)


def suite_of(history: History, batch: BatchRow, suite: SuiteRef) -> tuple[SuiteFile, list[str]]:
    """Return a suite of a batch as it was when the batch ran, and messages for the user if the file has changed.

    Raises HistoryError when the suite's text was not stored completely, or is no longer valid."""
    # The file is preferred to the stored text, because the stored text is redacted.
    today = load_suite(suite.file).standalone
    if today.suite is not None and today.hash == suite.hash:
        return today, []
    then = replace(parse_suite(history.suite_text(suite), suite.file), is_historical=True)
    changed = "was removed" if today.is_missing else "has changed"
    if then.hash != suite.hash:
        raise HistoryError(
            f"{suite.file} {changed} since batch {batch.number}, and secrets in its old text were not stored: "
            "restore the old file, or start a new batch"
        )
    if then.suite is None:
        why = then.errors[0] if then.errors else "start a new batch"
        raise HistoryError(
            f"{suite.file} {changed} since batch {batch.number}, and its old text is no longer a valid suite: {why}"
        )
    return then, [f"{suite.file} {changed} since batch {batch.number}: its old text is run"]


def _planned(run_id: str, row: RunRow, file: SuiteFile, case: Case | None, rule: RepeatRule | None) -> PlannedRun:
    if case is None:
        raise HistoryError(
            f"run {row.place + 1} of batch {row.batch} is damaged: {file.path} has no case {row.case_id!r}"
        )
    assert file.suite is not None
    try:
        variant_of(file.suite, row.model)
    except UnknownVariantError as error:
        raise HistoryError(f"run {row.place + 1} of batch {row.batch} is of a variant, but {error}") from None
    by = parse_grader(row.by)
    if row.by is not None and by is None:
        raise HistoryError(f"batch {row.batch} was graded by {row.by!r}, which is not one of {', '.join(GRADERS)}")
    case = with_grader(case, by, rule)
    return PlannedRun(run_id, file, case, row.model, row.repeat, row.model_of_suite, by, repeat_rule=rule)


def _differences(
    batch: BatchRow, used: Sequence[ModelUse], runs: Sequence[PlannedRun], program: Program, specs: ModelSpecs
) -> Iterator[str]:
    asked_now = {run.model for run in runs}
    brought = {run.model: external_model_settings(run) for run in runs}
    # The batch stores a model's settings under the suite of the model's first run. Look there, even if that suite has
    # no missing run.
    models: dict[str, JsonValue] = {}
    for suite, model, of_suite in used:
        if model in asked_now and model not in models:
            find = partial(specs.of_model, model, suite.file, by_suite=of_suite)
            models[model] = brought[model] or model_settings(find)
    images = batch.settings.get("images")
    if isinstance(images, dict):
        for file in {run.file.path: run.file for run in runs}.values():
            then, now = images.get(file.hash), images_of_suites((file,)).get(file.hash)
            if then != now:
                yield f"the images of {file.path} have changed since batch {batch.number}"
    for kind, today in (("model", models), ("judge", judges_of(runs, specs))):
        then = batch.settings.get(f"{kind}s")
        for name, now in program.secrets.redacted(today).items():
            before = then.get(name) if isinstance(then, dict) else None
            yield from _difference(f"the {kind} {name!r}", batch.number, before, now)


def _difference(subject: str, batch: int, before: JsonValue, now: JsonValue) -> Iterator[str]:
    assert isinstance(now, dict)
    if not isinstance(before, dict):
        if "problem" in now:
            yield f"batch {batch} was judged, but not all of its checks can be judged now: {now['problem']}"
        else:
            yield f"{subject} was not asked in batch {batch}"
    elif "problem" in before:
        return
    elif "problem" in now:
        yield f"{subject} of batch {batch} can no longer be reached: {now['problem']}"
    else:
        changed = []
        for name in ANSWER_SETTINGS:
            if before.get(name) != now.get(name):
                changed.append(f"{name} was {before.get(name)} and is now {now.get(name)}")
        if changed:
            yield f"{subject} has different settings than in batch {batch}: {'; '.join(changed)}"
