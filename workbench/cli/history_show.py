"""`workbench history show`: show a batch, cases over time, or one run step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from workbench.cli.batch_command import restored_model_options
from workbench.cli.history_command import HistoryCommand, grading_of, newest
from workbench.cli.redaction import json_report, lines_redacted
from workbench.cli.report_output import Output
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass, parsed_json
from workbench.engine.recordings import result_of_recording
from workbench.engine.redaction import EventRedaction, SuiteParts, shown_result
from workbench.engine.suite_secrets import exempt_stored_suites
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.grading.run_summary import finished_summaries
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, Regrade
from workbench.numerals import counted
from workbench.show.views.batch import gates_reached, head_lines, later_runs, run_title, runs_lines, totals_lines
from workbench.show.views.batch_list import batch_name
from workbench.show.views.cases import titled_case_lines
from workbench.show.views.gates import gate_demands
from workbench.show.views.trajectory import repaired_line_of
from workbench.show.visible import one_line
from workbench.suite.case_selectors import matching_ids, near_ids
from workbench.trajectory.recording import event_to_line

if TYPE_CHECKING:
    from workbench.evaluation.report import Report

_MAX_RUNS_OF_CASE = 1_000
"""The maximum number of runs to read for one case. The latest runs are read."""


@dataclass(frozen=True)
class Options:
    """What to show: a batch (by default the newest), the stored runs of a case, or one run of a batch."""

    batch: str | None
    case: str | None
    run: int | None
    verbose: bool
    grading: int | str | None
    output: Output


def execute(options: Options, command: HistoryCommand) -> int:
    if (options.case is not None or options.run is not None) and not _is_of_one(options.output, command):
        return USAGE
    form = str(options.output.form)
    with command.history() as history:
        if options.case is not None:
            return _show_cases(history, options.batch, options.case, form, command)
        batch = history.batch(options.batch) if options.batch is not None else newest(history)
        command.register_secrets(batch)
        exempt_stored_suites(command.program, history, batch)
        grading = grading_of(history, batch, options.grading)
        if options.run is not None:
            _show_run(history, batch, options.run, grading, options, command)
            return OK
        return _show_batch(history, batch, grading, options, command)


def _is_of_one(output: Output, command: HistoryCommand) -> bool:
    """Return whether the output options fit a single run or case. Otherwise print an error."""
    if output.further_outputs:
        command.warn("--report reports on a whole batch: leave out --run and --case, or --report")
    elif output.lean:
        command.warn("--lean is for reports on a whole batch: leave out --run and --case, or --lean")
    elif output.form not in ("text", "json"):
        command.warn(f"--format {output.form} is only for a whole batch: for --run and --case, give text or json")
    else:
        return True
    return False


def _show_batch(
    history: History, batch: BatchRow, grading: Regrade | None, options: Options, command: HistoryCommand
) -> int:
    if not options.output.can_write(batch.planned):
        return USAGE
    runs, gradings = history.runs(batch.number, grading), history.gradings(batch.number)
    damaged: list[str] = []
    reached = list(gates_reached(batch, history.gates(batch, damaged.append), runs))
    command.warn_of_damage(damaged)
    is_active = command.is_running(batch)

    def lines(output: Output) -> Iterator[str]:
        paint, option = output.paint, history_option(command.file)
        resuming = f"{restored_model_options(batch.settings)}{option}"
        yield from head_lines(
            batch, gradings, grading, runs, resuming, is_active=is_active, width=output.width, paint=paint
        )
        for line in later_runs(batch, grading, runs, option):
            yield paint(f"  {line}", "warned")
        yield from ("", *totals_lines(batch, runs, paint))
        if (repaired := repaired_line_of(finished_summaries(runs))) is not None:
            yield paint(f"▲ {repaired}", "warned")
        for demand in gate_demands(reached, batch.suite_names, with_model=len(batch.models) > 1):
            yield from map(paint.line, demand.lines)
        yield ""
        yield from runs_lines(runs, output.cut_at, paint, every=options.verbose)
        shows_run = f"'workbench history show {batch.number} --run N{option}' shows a run step by step"
        yield from ("", paint(one_line(shows_run), "muted"))

    # The report is created once for all outputs, because this reads all runs of the batch.
    @cache
    def report() -> Report:
        from workbench.evaluation.stored_runs import stored_report

        return stored_report(history, batch, runs, grading, command.program.secrets, missing.append)

    def pieces(output: Output) -> Iterator[str]:
        if output.form == "text":
            return lines_redacted(lines(output))
        if output.form == "json":
            from workbench.show.json.history import shown_batch

            shown = shown_batch(batch, gradings, grading, runs, reached)
            if output.lean:
                from workbench.show.json.lean import lean_batch_pieces

                return lean_batch_pieces(shown, command.program.secrets)
            return iter((json_report(shown),))
        if output.form == "csv":
            from workbench.evaluation.stored_runs import StoredRows
            from workbench.show.csv import csv_rows

            return csv_rows(StoredRows(history, runs, grading, command.program.secrets, missing.append).records())
        return report().pieces(str(output.form))

    # The list is filled while a report is written, so it is complete only after `deliver`.
    missing: list[str] = []
    code = command.deliver(options.output, pieces)
    command.warn_of_damage(each for each in dict.fromkeys(missing) if each not in damaged)
    return USAGE if missing else code


def _show_run(
    history: History,
    batch: BatchRow,
    number: int,
    grading: Regrade | None,
    options: Options,
    command: HistoryCommand,
) -> None:
    run = history.run_at(batch.number, number - 1, grading)
    if run is None:
        raise HistoryError(f"batch {batch.number} has {counted(batch.planned, 'run')}: there is no run {number}")
    recording = history.recording(run, grading)
    parts = SuiteParts(command.program.secrets)
    result = shown_result(result_of_recording(recording), parts.secrets)
    redaction = EventRedaction(parts)
    shown = list(chain.from_iterable(map(redaction.add, recording.events)))
    shown += redaction.flush()
    if options.output.form == "json":
        from workbench.show.json.history import shown_run

        events = [parsed_json(event_to_line(event)) for event in shown]
        command.write_json(shown_run(run, events, recording.result or {}))
        return
    command.write([f"{batch_name(batch)} run {number}  {run_title(run)}  {one_line(run.model)}"])
    # Lazy import: without --run, this command shows no single run.
    from workbench.show.views.run import run_steps

    command.write(run_steps(shown, result, command.width, command.paint, verbose=options.verbose))


def _show_cases(history: History, selector: str | None, word: str, form: str, command: HistoryCommand) -> int:
    number = history.batch(selector).number if selector is not None else None
    case_ids = _case_ids(history, number, word)
    suites = [{suite.key: suite for suite in history.suites_with(case_id, number)} for case_id in case_ids]
    command.register_suite_secrets(chain.from_iterable(each.values() for each in suites))
    damaged: list[str] = []
    by_case = []
    for case_id, of_case in zip(case_ids, suites, strict=True):
        for suite in of_case:
            if found := history.runs_of_case(suite, case_id, _MAX_RUNS_OF_CASE, damaged.append):
                by_case.append(found)
    command.warn_of_damage(damaged)
    runs = list(chain.from_iterable(by_case))
    if form == "json":
        from workbench.show.json.history import shown_case

        command.write_json(shown_case(case_ids, runs))
        return USAGE if damaged else OK
    batches = history.batches_of({run.batch for run in runs})
    for found in by_case:
        command.write(titled_case_lines(found, batches, command.width, command.paint))
    return USAGE if damaged else OK


def _case_ids(history: History, batch: int | None, word: str) -> list[str]:
    # An id is found through an index. Names and patterns require a pass over all runs.
    if history.suites_with(word, batch):
        return [word]
    cases = history.case_names(batch)
    if found := matching_ids(word, cases):
        return found
    option = history_option(history.file)
    if batch is not None:
        message = f"batch {batch} ran no case {word!r}"
        way_out = f"'workbench history show {batch} --verbose{option}' lists all"
    else:
        message = f"no batch in {history.file} ran a case {word!r}"
        way_out = f"'workbench history list{option}' lists all batches"
    if near := near_ids(word, cases):
        way_out = f"did you mean {near[0]!r}?"
    raise HistoryError(f"{message}: {way_out}")
