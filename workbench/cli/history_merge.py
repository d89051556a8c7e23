"""`workbench history merge`: merge the shards of a plan into one batch and report on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from workbench.cli.batch_command import restored_model_options
from workbench.cli.history_command import HistoryCommand
from workbench.cli.report_output import Output
from workbench.cli.run import deliver_report
from workbench.config.folders import history_option, project_folder
from workbench.dataclasses import dataclass
from workbench.engine.suite_secrets import exempt_stored_suites
from workbench.evaluation.baseline import baseline_of_batch
from workbench.evaluation.confirmation import confirmation_of
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.evaluation.report import Report
from workbench.evaluation.stored_runs import stored_report
from workbench.history.edits import check_name, name_batch
from workbench.history.history import History
from workbench.history.merge import MergeResult, StoredShard, merge, plan_differences, shards_in
from workbench.history.records import BatchRow, HistoryError, OtherFileError
from workbench.numerals import count_text, counted, counted_of
from workbench.show.views.baseline import Confirm, FailOn
from workbench.show.views.batch_list import merge_hint, shard_lines
from workbench.show.visible import one_line


@dataclass(frozen=True)
class Options:
    """The shards to merge, and the report on them."""

    files: Sequence[Path]
    plan: str | None
    name: str | None
    output: Output
    min_score: float | None
    baseline: str | None
    fail_on: FailOn | None
    confirm: Confirm | None
    no_report: bool


def execute(options: Options, command: HistoryCommand) -> int:
    if options.fail_on is not None and options.baseline is None:
        command.warn(f"--fail-on {options.fail_on} needs a batch to compare with: give --baseline NAME too")
        return USAGE
    output = options.output
    if options.fail_on is None and options.confirm is not None:
        command.warn(
            "--confirm confirms the regressions of --fail-on: give --fail-on regression too, or omit --confirm"
        )
        return USAGE
    if options.no_report and (
        output.form or output.file or output.further_outputs or options.baseline or options.min_score is not None
    ):
        command.warn("--no-report makes no report: omit it, or omit the options of the report")
        return USAGE
    if options.name is not None:
        check_name(options.name)
    shards, is_whole = _shards(options, command)
    if options.baseline is not None:
        options = replace(options, baseline=_baseline(options.baseline, shards[0].uid, command))
    merged = merge(command.file, shards, project_folder(Path(), command.program.environment.home), command.warn)
    for why in (*merged.kept, *merged.damaged):
        command.warn(why)
    if not merged.number:
        command.warn("nothing was merged")
        return USAGE
    with command.history() as history:
        batch = history.batch(f"#{merged.number}")
        for line in _lines(batch, merged, history_option(command.file)):
            command.warn(line)
        is_whole = is_whole and not merged.damaged
        damaged: list[str] = []
        report = None
        if not options.no_report:
            # The report must come before the merged batch gets its name, because the baseline may be the batch that has
            # the name now.
            report = _report(history, batch, options, command, damaged)
        if options.name is not None and batch.missing:
            again = "merge again with --name once no run is missing"
            command.warn(f"batch {batch.number} is not called {one_line(options.name)} yet: {again}")
        elif options.name is not None:
            name_batch(command.file, merged.number, options.name, command.warn)
        if report is None:
            return OK if is_whole else USAGE
        if not options.output.can_write(batch.planned):
            return USAGE
        is_whole = deliver_report(report, options.output, command.file) and is_whole
    command.warn_of_damage(damaged)
    if is_whole and not damaged:
        return report.exit_code
    return USAGE


def _baseline(selector: str, uid: str, command: HistoryCommand) -> str:
    """Return the baseline of the merged batch, as `#` with its number.

    `selector` names the baseline. If an earlier merge of the same plan (`uid`) has taken this name, the baseline is the
    batch that had the name before. Raises HistoryError if there is no such batch."""
    try:
        with command.history() as history:
            batch = history.batch(selector)
            if all(each.uid != uid for each in shards_in(command.file, batch.number)):
                return f"#{batch.number}"
            by_name = selector == batch.name
            if by_name and batch.named_after and history.batches_of([batch.named_after]):
                return f"#{batch.named_after}"
    except HistoryError as error:
        raise HistoryError(f"nothing was merged: {error}") from error
    called = f", and no earlier batch of the name {selector} is known" if by_name else ""
    raise HistoryError(
        f"nothing was merged: the baseline {batch.number} belongs to the merged plan itself{called}: name another with "
        f"--baseline, or omit it; 'workbench history list{history_option(command.file)}' lists all"
    )


def _shards(options: Options, command: HistoryCommand) -> tuple[list[StoredShard], bool]:
    """Return the shards in the files, and whether all files could be read.

    Raises HistoryError if there are no shards, or shards of several plans."""
    found: list[StoredShard] = []
    is_whole = True
    for file in _histories(options.files or (command.file,)):
        try:
            itself = file.resolve() == command.file.resolve()
            # The history into which shards are merged may also have other batches, such as earlier merges.
            found += [shard for shard in shards_in(file) if shard.ref is not None or not itself]
        except HistoryError as error:
            # The user named the file, so the error leaves out its advice about the default history.
            why = error.what if options.files and isinstance(error, OtherFileError) else error
            command.warn(f"left out: {why}")
            is_whole = False
    chosen = [shard for shard in found if options.plan in (None, shard.plan_id, shard.uid[:8])]
    if not chosen:
        shard = "shard"
        if found:
            shard += f" of plan {options.plan}, only of {', '.join(dict.fromkeys(map(_plan, found)))}"
        files = ", ".join(map(str, options.files or (command.file,)))
        raise HistoryError(f"nothing was merged: no {shard} is in {files}; 'workbench run --shard' makes one")
    of_plans = {shard.uid: shard for shard in chosen}
    if len(of_plans) > 1:
        listed = "; ".join(f"{shard} is of {_plan(shard)}" for shard in of_plans.values())
        first, second, *_ = of_plans.values()
        apart = ", ".join(plan_differences(first, second)) or "something in their settings"
        raise HistoryError(
            f"nothing was merged: these are shards of several plans: {listed}; the first two differ in {apart}; choose "
            f"one, as with --plan {first.uid[:8]}, or give the files of one plan"
        )
    return chosen, is_whole


def _plan(shard: StoredShard) -> str:
    return f"plan {shard.plan_id or 'without an id'} ({shard.uid[:8]})"


def _histories(files: Sequence[Path]) -> Iterator[Path]:
    for file in files:
        if not file.is_dir():
            yield file
        elif within := sorted(each for each in file.rglob("*.sqlite3") if each.is_file()):
            yield from within
        else:
            raise HistoryError(f"there is no history in {file}: it has no file *.sqlite3")


def _lines(batch: BatchRow, merged: MergeResult, option: str) -> Iterator[str]:
    over = batch.planned - batch.missing
    come = f"{counted_of(over, batch.planned, 'run')}, {count_text(merged.new_results)} of them new"
    yield f"batch {batch.number}: {''.join(shard_lines(batch))}; {come}"
    if batch.missing:
        ways: list[str | None] = []
        # While a shard is still running, resuming would repeat its runs.
        if merged.is_running:
            ways.append("merge again when no shard is running")
        else:
            if not merged.covered_by_none:
                ways.append(merge_hint(batch))
            again = f"{batch.number}{restored_model_options(batch.settings)}{option}"
            ways.append(f"'workbench run --resume {again}' makes them")
        yield f"{counted(batch.missing, 'run')} missing: {', or '.join(filter(None, ways))}"
        yield from merged.unfinished
        if merged.covered_by_none:
            yield (
                "the shards divided the runs differently, "
                f"{count_text(merged.covered_by_several)} went to several shards and "
                f"{count_text(merged.covered_by_none)} to none: all shards need the same N in --shard I/N, and with "
                "--shard-by cost the same history"
            )
    yield from merged.named
    if merged.second_results:
        yield (
            f"{counted(merged.second_results, 'run')} had two different results; the first are kept: "
            "shards of different batches need different --plan IDs"
        )
    if len(merged.programs) > 1:
        yield f"the shards were made by several versions of Workbench: {', '.join(sorted(merged.programs))}"


def _report(
    history: History, batch: BatchRow, options: Options, command: HistoryCommand, damage_messages: list[str]
) -> Report:
    """Return the report on the merged batch. The runs are read from the history when the report is written.

    `damage_messages` collects the reasons why runs are left out."""
    command.register_secrets(batch)
    exempt_stored_suites(command.program, history, batch)
    runs = history.runs(batch.number)
    report = stored_report(history, batch, runs, None, command.program.secrets, damage_messages.append)
    if options.min_score is not None:
        report = replace(report, min_score=options.min_score)
    if options.baseline is not None:
        baseline, notices = baseline_of_batch(
            options.baseline, command.file, batch, runs, report.suites, options.fail_on
        )
        for notice in notices:
            command.warn(notice)
        baseline = replace(baseline, confirm=options.confirm or "repeats")
        against = baseline.compare(report.results)
        confirms = confirmation_of(baseline, against, report.results, interrupted=report.interrupted)
        if confirms is not None:
            against = confirms.with_verdicts()
        report = replace(report, against=against)
    return report
