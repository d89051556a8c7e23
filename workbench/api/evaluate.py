"""Evaluation of suites from Python, on models or on an agent of the caller."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.api.approval import approval_for
from workbench.api.cells import CellDone, Cells
from workbench.api.given_suites import Suites, loaded
from workbench.api.loops import run_blocking
from workbench.api.models import named
from workbench.api.option_types import check_types
from workbench.api.options import RunOptions, with_keywords
from workbench.api.suite_builder import variant_table
from workbench.api.suites import LoadedSuite, SuitePath, UsageError
from workbench.config.folders import history_file, home_folder, user_folders
from workbench.config.model_list import names_in
from workbench.config.models import ConfigError
from workbench.config.program import create_program
from workbench.config.secrets import Secrets
from workbench.encoding import toml_of
from workbench.engine.events import BatchEvent, ClusterNotice, HistoryProblem
from workbench.engine.recordings import Recordings, recording_lines
from workbench.evaluation.approval import Approval, needs_of_plan
from workbench.evaluation.model_names import full_model_names
from workbench.evaluation.options import AddedVariants, CommonOptions, OptionsError, Resume
from workbench.evaluation.options import RunOptions as BatchOptions
from workbench.evaluation.plan import ClusterError, Plan, PlanError
from workbench.evaluation.planner import plan, unresolved_models
from workbench.evaluation.report import Report
from workbench.evaluation.run import Evaluation
from workbench.history.records import HistoryError
from workbench.providers.function import CallerLoop
from workbench.suite.added_variants import AddedVariantError, variants_in, with_variants
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.suite.toml_edit import CannotEditError, edit_toml
from workbench.suite.variants import Variants

if TYPE_CHECKING:
    from workbench.evaluation.baseline import Baseline
    from workbench.show.views.baseline import AgainstBaseline, FailOn


@with_keywords(RunOptions)
def evaluate(suites: Suites, options: RunOptions) -> Report:
    """Run the cases of suites on models, grade the runs, and return the report.

    `suites` is one or several suites, each a suite from `load`, or the path of a suite file or of a folder with suite
    files. Each option is a keyword, such as `model`, `cases` or `repeats`. `help(workbench.RunOptions)` describes all
    of them. Options for several evaluations can be kept in a `workbench.RunOptions`. A keyword takes precedence over
    the same option of the `RunOptions`.

    Raises SuiteError for suites with errors, ApprovalError for unapproved needs and UsageError for unfit arguments, all
    before anything is started. Errors after the start are in the report: a run has the status `error` if its model or a
    server failed. A fault of the history or of a recording causes only a RuntimeWarning.

    Inside a running event loop, for example in a notebook, this function uses a separate thread and blocks the loop.
    `evaluate_async` does not block it.

    >>> import workbench
    >>> report = workbench.evaluate("clock.toml", model="offline", repeats=2)
    >>> report.passed, report.score, len(report.runs)
    (False, 0.5, 4)
    >>> case = report.cases["time-in-bergen"]
    >>> case.status, case.reason, case.runs[0].trajectory.calls
    ('failed', 'quantity: 1 call expected, 0 made', ())"""
    return run_blocking(_evaluate(suites, options))


@with_keywords(RunOptions)
async def evaluate_async(suites: Suites, options: RunOptions) -> Report:
    """Evaluate like `evaluate`, without blocking the event loop. Several evaluations may run at the same time.

    Agents, `approve`, `on_event` and `on_cell` are called in the caller's loop, so they may use its tasks, locks and
    connections. Cancellation stops all runs and closes servers and connections before CancelledError is raised.

    >>> import asyncio, workbench
    >>> async def main():
    ...     return await asyncio.gather(
    ...         workbench.evaluate_async("clock.toml", model="offline"),
    ...         workbench.evaluate_async("clock.toml", model="offline", tags=["time"]),
    ...     )
    >>> [len(report.runs) for report in asyncio.run(main())]
    [2, 1]"""
    return await _evaluate(suites, options)


async def _evaluate(suites: Suites, given: RunOptions) -> Report:
    check_types(given)
    if given.fail_on is not None and given.baseline is None:
        raise UsageError("fail_on needs a batch to compare with: give baseline=… too")
    tables = _variant_tables(given.variants)
    files, own = [], []
    for suite in loaded(suites):
        file = suite.file if given.system is None else _with_system(suite.file, given.system)
        files.append(file)
        if suite.is_own:
            own.append(_with_variants(file, tables))
    own_history = history_file(user_folders(), files[0].path.parent, home_folder(os.environ))
    loop = CallerLoop()
    options = _batch_options(tuple(files), given, own_history, loop)
    program = create_program(user_folders(), os.environ, options.model_options)
    try:
        planned = plan(options, program)
    except PlanError as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    # The plan of a resumed batch holds a lock, which must be released if the plan is not run.
    try:
        approval = approval_for(needs_of_plan(planned), given.approve, program, own)
        before = None
        if given.baseline is not None:
            before = _baseline(str(given.baseline), options.history or own_history, planned, given.fail_on)
            before = replace(before, confirm=given.confirm, confirm_writes=given.confirm_writes)
        recordings = _recordings(given.record, given.record_failed, program.secrets)
    except BaseException:
        planned.release_claim()
        raise
    try:
        evaluation = Evaluation(planned, approval, record=recordings, receives_events=given.on_event is not None)
        report = await _report(evaluation, given.on_event, given.on_cell)
        if before is not None:
            report = replace(report, against=await _against(before, report, planned, approval, given.on_event))
    except ClusterError as error:
        raise UsageError(program.secrets.redact(str(error))) from None
    finally:
        # Cancelled agents clean up in the caller's loop, which may be closed right after this function.
        await loop.wait_for_cancelled()
    if recordings is not None and recordings.problem is not None:
        warnings.warn(program.secrets.redact(recordings.problem), RuntimeWarning, stacklevel=1)
    return report


def _batch_options(
    files: tuple[SuiteFile, ...], given: RunOptions, own_history: Path, loop: CallerLoop
) -> BatchOptions:
    stored_in: Path | None = None
    # The remaining runs of a resumed batch are stored in the history as well.
    if not isinstance(given.history, bool):
        stored_in = Path(given.history)
    elif given.history or given.resume is not False:
        stored_in = own_history
    continued = None
    if given.resume is not False:
        continued = Resume(None if given.resume is True else str(given.resume), given.anyway)
    models = list(given.models)
    if given.model is not None:
        models.insert(0, given.model)
    cells = None
    if given.cells is not None:
        cells = frozenset(cell.key for cell in given.cells)
    common = {each.name: getattr(given, each.name) for each in fields(CommonOptions)}
    try:
        return BatchOptions(
            **common,
            suites=files,
            models=tuple(named(each, loop) for each in models),
            cells=cells,
            variants=_variants(given.variants),
            added_variants=_added_variants(given.variants),
            resume=continued,
            history=stored_in,
        )
    except OptionsError as error:
        raise UsageError(str(error)) from error


def models_in(lists: Sequence[str], paths: Sequence[SuitePath]) -> tuple[str, ...]:
    """Return the full names of the models in texts such as `openai:gpt-6-luna,gpt-6.1-sol`, for suites at the paths.

    Raises UsageError for an empty name, and for an unusable `workbench.toml`."""
    try:
        return full_model_names([names_in(text) for text in lists], paths)
    except (ValueError, ConfigError) as error:
        raise UsageError(str(error)) from None


def unknown_models(suites: Iterable[LoadedSuite], models: Sequence[str]) -> tuple[str, ...]:
    """Return one message for each model that cannot run the suites. The result is empty if all models can run them."""
    files = tuple({suite.path: suite.file for suite in suites}.values())
    if not files:
        return ()
    try:
        options = BatchOptions(suites=files, models=tuple(models))
    except OptionsError as error:
        return (str(error),)
    program = create_program(user_folders(), os.environ, options.model_options)
    return tuple(map(program.secrets.redact, unresolved_models(options, files, program)))


async def _against(
    baseline: Baseline,
    report: Report,
    planned: Plan,
    approval: Approval,
    on_event: Callable[[BatchEvent], object] | None,
) -> AgainstBaseline:
    # Lazy import: most evaluations have no baseline.
    from workbench.evaluation.confirmation import confirmation_of

    against = baseline.compare(report.results)
    confirms = confirmation_of(
        baseline, against, report.results, planned, batch=report.batch, interrupted=report.interrupted
    )
    if confirms is None:
        return against
    if confirms.plan is None:
        return confirms.with_verdicts()
    evaluation = Evaluation(confirms.plan, approval, receives_events=on_event is not None)
    again = await _report(evaluation, on_event, None)
    return confirms.with_verdicts(again.results, batch=again.batch, interrupted=again.interrupted)


async def _report(
    evaluation: Evaluation,
    on_event: Callable[[BatchEvent], object] | None,
    on_cell: Callable[[CellDone], object] | None,
) -> Report:
    cells = Cells(evaluation.plan) if on_cell is not None else None
    async with evaluation:
        async for event in evaluation:
            if on_cell is not None and cells is not None and (done := cells.on_event(event)) is not None:
                on_cell(done)
            if isinstance(event, HistoryProblem | ClusterNotice):
                message = evaluation.plan.program.secrets.redact(event.text)
                warnings.warn(message, RuntimeWarning, stacklevel=1)
            if on_event is not None:
                on_event(event)
        return await evaluation.report()


def _with_system(file: SuiteFile, system: str) -> SuiteFile:
    document = toml_of(file.text)
    changed = {**document, "system": system}
    if "cases" in document:
        changed["cases"] = [{key: case[key] for key in case if key != "system"} for case in document["cases"]]
    line_end = "\r\n" if "\r\n" in file.text else "\n"
    try:
        return parse_suite(edit_toml(file.text, document, changed, line_end), file.path)
    except (CannotEditError, ValueError) as error:
        raise UsageError(f"the system prompt of {file.path} cannot be replaced: {error}") from error


def _with_variants(file: SuiteFile, tables: Sequence[Mapping[str, object]]) -> SuiteFile:
    try:
        return with_variants(file, tables, _ORIGIN) if tables else file
    except AddedVariantError as error:
        raise UsageError(str(error)) from None


_ORIGIN = "a variant given to evaluate"

_Wanted = bool | Sequence[SuitePath | Mapping[str, Any]]


def _variants(variants: _Wanted) -> Variants:
    if isinstance(variants, bool):
        return Variants(all_of_them=variants)
    names = [os.fspath(each) for each in variants if not isinstance(each, Mapping)]
    return Variants(frozenset(names).difference(_files(variants)), plain=not variants)


def _variant_tables(variants: _Wanted) -> list[Mapping[str, object]]:
    if isinstance(variants, bool):
        return []
    return [variant_table(each) for each in variants if isinstance(each, Mapping)]


def _added_variants(variants: _Wanted) -> tuple[AddedVariants, ...]:
    added = []
    if tables := _variant_tables(variants):
        added.append(AddedVariants(tuple(tables), _ORIGIN))
    try:
        added += [AddedVariants(variants_in(Path(file)), file) for file in _files(variants)]
    except AddedVariantError as error:
        raise UsageError(str(error)) from None
    return tuple(added)


def _files(variants: _Wanted) -> list[str]:
    if isinstance(variants, bool):
        return []
    files = []
    for each in variants:
        if not isinstance(each, Mapping) and (name := os.fspath(each)).endswith(".toml"):
            files.append(name)
    return files


def _baseline(selector: str, history: Path, planned: Plan, fail_on: FailOn | None) -> Baseline:
    from workbench.evaluation.baseline import baseline_of

    try:
        return baseline_of(selector, history, planned, fail_on)[0]
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
