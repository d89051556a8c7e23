"""`workbench attach`: show the steps of another process's batch, and end with the batch's report and exit code."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench.cli.parser import (
    add_amount_options,
    add_exit_codes,
    add_history_options,
    add_report_options,
    history_to_read,
)
from workbench.evaluation.exit_codes import INFRASTRUCTURE, INTERRUPTED, OK, USAGE
from workbench.show.forms import forms_of
from workbench.startup import executes

if executes(__name__):
    import queue

    from workbench.cli.batch_command import how_to_resume, step_output
    from workbench.cli.compare import pieces_of_comparison
    from workbench.cli.live import ProgressBar, StepPrinter
    from workbench.cli.redaction import create_program, printing_to, warn
    from workbench.cli.report_output import Output
    from workbench.cli.run import pieces_of_runs
    from workbench.config.folders import history_option
    from workbench.config.program import Program
    from workbench.engine.events import JudgeAsked, RequestDelayed, RunDone, RunEvent, StartUp
    from workbench.evaluation.model_comparison import ModelComparison
    from workbench.evaluation.plan import Plan
    from workbench.evaluation.progress import BatchProgress
    from workbench.evaluation.resume import CompleteBatch
    from workbench.evaluation.stored_runs import result_of_row, stored_report
    from workbench.grading.run_summary import finished_summaries
    from workbench.history.history import History
    from workbench.history.records import BatchRow, HistoryError, RunRow
    from workbench.numerals import counted, counted_of
    from workbench.remote.records import AttachError, DetachedBatch, NamedBatch, find_batch, is_running, record_of
    from workbench.remote.viewer import BatchEnded, BatchView, ConnectionEndedError, OutputLine, ViewedEvent
    from workbench.show.views.batch_list import batch_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "batch",
        nargs="?",
        metavar="BATCH",
        help="the batch (default: the only one that runs)",
    )
    parser.add_argument("--app", action="store_true", help="show it in the app")
    parser.add_argument("--from-start", action="store_true", help="show the steps of all finished runs")
    add_report_options(parser, "run", for_report=True, summary=False)
    add_history_options(parser, may_be_none=False)
    add_amount_options(parser, "show every step in full, with the reasoning")
    add_exit_codes(
        parser,
        {
            OK: "the batch's exit code, which may be any code of 'run'",
            USAGE: "no such batch",
            INFRASTRUCTURE: "also: the process was killed",
            INTERRUPTED: "Ctrl+C (the batch continues), or the batch was stopped",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    from workbench.cli.report_output import output_of

    output = output_of(arguments, "run")
    if output is None or not output.can_write():
        return USAGE
    history = history_to_read(arguments, ())
    if arguments.app:
        return attach_in_app(arguments.batch, history)
    return attach(arguments.batch, history, output, from_start=arguments.from_start)


SHOWN_BEFORE = 20
"""The number of finished runs whose steps are shown at first. The runs that finished last are shown."""

_PROCESS_END_TIMEOUT_S = 2.0
"""The time in seconds for a process to end after it has closed the connection."""

_POLL_S = 0.05
"""The seconds between two checks whether the process has ended."""


def attach(selector: str | None, history: Path, output: Output, *, from_start: bool) -> int:
    """Show a batch until it ends, and report. Return the batch's exit code."""
    program = create_program()
    try:
        batch = find_batch(program.folders, history, selector)
        if batch.known is not None and batch.running:
            forms = forms_of(batch.known.command, for_report=True)
            for each in (output, *output.further_outputs):
                if each.form is not None and each.form not in forms:
                    warn(f"'workbench {batch.known.command}' has no {each.form} report; there are {', '.join(forms)}")
                    return USAGE
            return _TerminalView(batch.known, program, output, from_start).watch()
        return report_of_stored(batch, program, output)
    except (AttachError, HistoryError) as error:
        warn(str(error), program.secrets)
        return USAGE


def attach_in_app(selector: str | None, history: Path, *, theme: str | None = None, read_only: bool = False) -> int:
    """Show a batch in the app, together with its suites. Returns the app's exit code."""
    # Lazy import: attaching in the terminal needs no app.
    from workbench.cli.app import AppOptions, show_app

    program = create_program()
    try:
        batch, suites = batch_and_suites(selector, history, program)
    except (AttachError, HistoryError) as error:
        warn(str(error), program.secrets)
        return USAGE
    paths = tuple(map(str, suites))
    options = AppOptions(paths, history=batch.history, shown_batch=batch.number, theme=theme, read_only=read_only)
    return show_app(options, program)


def batch_and_suites(selector: str | None, history: Path, program: Program) -> tuple[NamedBatch, tuple[Path, ...]]:
    """Return the selected batch, and the files of its suites that still exist.

    Raises AttachError or HistoryError."""
    batch = find_batch(program.folders, history, selector)
    with History(batch.history) as opened:
        files = (suite.file for suite in opened.batch(f"#{batch.number}").suites)
        return batch, tuple(file for file in files if file.is_file())


class _TerminalView:
    """Shows one batch in the terminal. Attaches again if the batch's process drops the connection."""

    def __init__(self, known: DetachedBatch, program: Program, output: Output, from_start: bool) -> None:
        self._known = known
        self._program = program
        self._output = output
        self._all = from_start
        self._shown: set[int] = set()
        """The places in the plan of the runs whose results were shown."""
        self._last: dict[str, int] = {}
        """The number of the last event shown, by run id."""
        self._printed: set[str] = set()

    def watch(self) -> int:
        known = self._known
        try:
            while True:
                try:
                    return self._watch_connection()
                # A process drops viewers that read too slowly, so a closed connection does not mean that the process
                # has ended.
                except ConnectionEndedError as error:
                    if not _is_still_there(known, self._program):
                        break
                    warn(f"batch {known.batch}: {error}; attaching again")
        except KeyboardInterrupt:
            option = history_option(known.file)
            warn(
                f"batch {known.batch} is running: 'workbench attach {known.batch}{option}' shows it again, "
                f"'workbench batches --stop {known.batch}{option}' stops it"
            )
            return INTERRUPTED
        # The process ended without a last message, but its record may have the exit code.
        last = record_of(self._program.folders, known.file, known.batch)
        return report_of_stored(NamedBatch(known.file, known.batch, last), self._program, self._output)

    def _watch_connection(self) -> int:
        with BatchView(self._known) as viewing:
            runs = viewing.plan
            over = viewing.over
            figures = []
            for row in over.values():
                if row.figures is not None:
                    figures.append(row.figures)
            progress = BatchProgress((run for place, run in runs.items() if place not in over), figures)
            bar = ProgressBar(progress, sys.stderr, os.environ)
            show = step_output(self._output, self._program)
            steps = show.steps and (self._known.command == "run" or self._output.verbose)
            show = replace(show, stream=bar.stream_above(show.stream), steps=steps)
            printer = StepPrinter(Plan.of(runs.values(), self._program), show)
            try:
                if show.steps:
                    self._show_earlier_runs([row for place, row in over.items() if place not in self._shown], printer)
                with printing_to(bar.stream_above(sys.stderr)):
                    code = self._follow(viewing, printer, progress, bar)
            finally:
                bar.close()
            self._output.deliver(lambda each: self._report(viewing, each))
            return code

    def _show_earlier_runs(self, runs: list[RunRow], printer: StepPrinter) -> None:
        known = self._known
        runs.sort(key=_ended_ms)
        shown = runs if self._all else runs[-SHOWN_BEFORE:]
        if left := len(runs) - len(shown):
            shows = f"'workbench attach {known.batch}{history_option(known.file)} --from-start' shows them"
            warn(f"{counted(left, 'run')} of batch {known.batch} had already ended: {shows}")
        with History(known.file) as history:
            for row, recording in history.recordings(shown, None, warn):
                # The process's messages identify a run by its place in the plan, so the stored events get the same id.
                for event in recording.events:
                    self._step(RunEvent(replace(event, run_id=str(row.place))), printer)
                printer.done(replace(result_of_row(row, recording), run_id=str(row.place)))
                self._shown.add(row.place)

    def _follow(self, viewing: BatchView, printer: StepPrinter, progress: BatchProgress, bar: ProgressBar) -> int:
        for seen in _messages_with_progress(viewing, bar):
            if isinstance(seen, BatchEnded):
                return seen.exit_code
            if isinstance(seen, OutputLine):
                if seen.text not in self._printed:
                    self._printed.add(seen.text)
                    warn(seen.text)
                continue
            if bar.enabled and self._counts(seen, viewing) and progress.on_event(seen, time.monotonic()):
                bar.changed()
            match seen:
                case RunEvent():
                    self._step(seen, printer)
                case RunDone(result) if int(result.run_id) not in self._shown:
                    printer.done(result)
                    self._shown.add(int(result.run_id))
                case StartUp():
                    printer.start_up(seen)
                case JudgeAsked():
                    printer.judging(seen)
                case RequestDelayed():
                    printer.delayed(seen)
                case _:
                    pass
        raise AssertionError("the messages of a batch must end with its end")

    def _counts(self, viewed: ViewedEvent, viewing: BatchView) -> bool:
        """Return whether the progress bar counts an event.

        It does not count the events of runs that had ended before this command attached."""
        match viewed:
            case RunEvent(event=event):
                return int(event.run_id) not in viewing.over
            case RunDone(result=result):
                return int(result.run_id) not in viewing.over
            case _:
                return True

    def _step(self, run_event: RunEvent, printer: StepPrinter) -> None:
        event = run_event.event
        if int(event.run_id) not in self._shown and event.sequence > self._last.get(event.run_id, -1):
            # After a reconnection, the process sends all events of a run again. Events that were printed before are
            # skipped.
            self._last[event.run_id] = event.sequence
            printer.step(run_event)

    def _report(self, viewing: BatchView, output: Output) -> Iterator[str]:
        return viewing.report(
            form=None if output.is_text else output.form,
            quiet=output.quiet,
            verbose=output.verbose,
            columns=output.width,
            cut=output.cut_at is not None,
            coloured=output.paint.enabled,
        )


def _ended_ms(row: RunRow) -> float:
    return (row.figures.ended_ms if row.figures is not None else None) or 0


def _messages_with_progress(viewing: BatchView, bar: ProgressBar) -> Iterator[ViewedEvent]:
    """Yield the messages of a batch. Draw the batch's progress between messages.

    Raises the errors of the viewer."""
    news: queue.SimpleQueue[ViewedEvent | Exception] = queue.SimpleQueue()

    def read() -> None:
        try:
            for seen in viewing:
                news.put(seen)
        except Exception as error:  # noqa: BLE001 (raised below)
            news.put(error)

    # A thread reads the socket, because the progress line has to be redrawn while no message arrives.
    threading.Thread(target=read, name="batch", daemon=True).start()
    while True:
        bar.draw()
        try:
            seen = news.get(timeout=bar.wait_s())
        except queue.Empty:
            continue
        if isinstance(seen, Exception):
            raise seen
        yield seen
        if isinstance(seen, BatchEnded):
            return


def _is_still_there(known: DetachedBatch, program: Program) -> bool:
    """Return whether the process of a batch still runs some time after it has closed the connection."""
    until = time.monotonic() + _PROCESS_END_TIMEOUT_S
    while is_running(program.folders, known):
        if time.monotonic() > until:
            return True
        time.sleep(_POLL_S)
    return False


def report_of_stored(batch: NamedBatch, program: Program, output: Output) -> int:
    """Read a batch that has ended or was killed from the history, and report on it. Return the batch's exit code."""
    with History(batch.history) as history:
        stored = history.batch(f"#{batch.number}")
        known, option = batch.known, history_option(batch.history)
        if batch.in_another_program:
            warn(
                f"batch {batch_name(stored)} was started without --detach, so only its own program shows it; "
                f"'workbench history show {stored.number}{option}' shows the finished runs"
            )
            return USAGE
        lines, code = list[str](), None
        if known is not None:
            lines, code = list(known.said), known.exit_code
            if code is None:
                lines.append(
                    f"the process of batch {batch_name(stored)} ended without a message, as if killed or shut down: "
                    f"{counted_of(stored.planned - stored.missing, stored.planned, 'run')} are in the history"
                )
        if stored.missing:
            lines.append(how_to_resume(batch.history, stored.number, stored.resumed_by))
        # Equal lines are printed once, because the process may already have printed the command for resuming.
        for line in dict.fromkeys(lines):
            warn(line)
        code_of_runs = _report_stored(history, stored, program, output)
        if code is not None:
            return code
        if known is not None and stored.missing:
            return INFRASTRUCTURE
        return code_of_runs


def _report_stored(history: History, batch: BatchRow, program: Program, output: Output) -> int:
    def damaged(why: str) -> None:
        warn(f"left out: {why}")

    report = stored_report(history, batch, history.runs(batch.number), None, program.secrets, damaged)
    if batch.resumed_by == "compare" and len(batch.models) > 1 and not batch.missing:
        figures = tuple(finished_summaries(history.runs(batch.number)))
        complete = CompleteBatch(batch, figures, history.gates(batch, damaged))
        comparison = ModelComparison.of_batch(complete, only_differences=False)
        output.deliver(partial(pieces_of_comparison, comparison, lambda: report, history=history.file))
        return comparison.exit_code
    output.deliver(partial(pieces_of_runs, report, history=history.file))
    return report.exit_code
