"""`workbench batches`: list the running batches, or stop one of them."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from workbench.cli.parser import add_history_options, history_to_read
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.startup import executes

if executes(__name__):
    from workbench.cli.batch_command import how_to_resume
    from workbench.cli.redaction import create_program, warn, write, write_json
    from workbench.cli.report_output import report_width
    from workbench.config.folders import history_option
    from workbench.config.program import Program
    from workbench.history.history import History
    from workbench.history.records import BatchRow, HistoryError
    from workbench.numerals import counted_of
    from workbench.remote.records import (
        AttachError,
        NamedBatch,
        find_batch,
        is_running,
        remove_stale,
        running_batches,
        running_in,
    )
    from workbench.remote.viewer import Connection, ConnectionEndedError
    from workbench.show.text import paint_for, table_lines
    from workbench.show.views.batch_list import batch_name, batch_table, facts_of
    from workbench.show.visible import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stop",
        metavar="BATCH",
        help="stop this batch; finished runs are kept",
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="what to write (default %(default)s)"
    )
    add_history_options(parser, may_be_none=False)


def execute(arguments: argparse.Namespace) -> int:
    history = history_to_read(arguments, ())
    if arguments.stop is not None:
        return stop(arguments.stop, history)
    return list_running(history, arguments.format)


_POLL_S = 0.05
"""The seconds between two checks whether the process has ended."""


@dataclass(frozen=True)
class Running:
    """A running batch and its row in the history. `found` is set if other processes can attach to the batch."""

    history: Path
    batch: BatchRow
    found: NamedBatch | None = None

    @property
    def process(self) -> int | None:
        """The id of the batch's process, `None` if other processes cannot attach to it."""
        if self.found is None or self.found.known is None:
            return None
        return self.found.known.pid


def list_running(history: Path, form: str) -> int:
    """List the running batches. Return an exit code.

    The list has all batches without a terminal, and all batches of the history that another process runs."""
    program = create_program()
    # Killed processes leave sockets and records behind, which must not be listed.
    remove_stale(program.folders)
    running = [*_running(program, history)]
    if form == "json":
        from workbench.show.json.history import RunningBatch, RunningReport

        batches = []
        for each in running:
            batch = each.batch
            document = RunningBatch(
                number=batch.number,
                name=batch.name,
                history=str(each.history),
                command=batch.resumed_by,
                started_at=batch.started_at,
                planned=batch.planned,
                over=batch.planned - batch.missing,
                attachable=each.found is not None,
                process=each.process,
            )
            batches.append(document)
        write_json(RunningReport(batches=tuple(batches)))
    else:
        for line in _lines(running, history):
            write(f"{line}\n")
    return OK


def _running(program: Program, history: Path) -> Iterator[Running]:
    # A batch without a terminal has a record, whichever history it uses. Other batches are found only in the given
    # history.
    attachable = running_batches(program.folders)
    for each in attachable:
        try:
            with History(each.history) as opened:
                yield Running(each.history, opened.batch(f"#{each.number}"), each)
        except HistoryError as error:
            warn(str(error), program.secrets)
    known = {(each.history, each.number) for each in attachable}
    for batch in running_in(history):
        if (history.resolve(), batch.number) not in known:
            yield Running(history, batch)


def _lines(running: list[Running], history: Path) -> Iterator[str]:
    if not running:
        yield "no batch runs: 'workbench run PATH --detach' begins one that runs without a terminal"
        return
    paint, width, now = paint_for(sys.stdout, os.environ), report_width(sys.stdout), datetime.now(UTC)
    for each in running:
        number, option = each.batch.number, history_option(each.history)
        yield from table_lines(batch_table(facts_of([each.batch], active_batches={number}), now), width, paint)
        gap = " " * (len(f"#{number}") + 2)
        if each.process is not None:
            how = f"process {each.process}: workbench attach {number}{option}"
        else:
            how = "in another program, which shows it"
        yield gap + paint(one_line(how), "muted")


def stop(selector: str, history: Path) -> int:
    """Stop a batch without a terminal, and wait until it has ended. Return an exit code."""
    program = create_program()
    try:
        batch = find_batch(program.folders, history, selector)
        known = batch.known
        if known is None or not batch.running:
            warn(_why_not_stopped(batch), program.secrets)
            return USAGE
        # Once the process has ended, the batch is completely written.
        with Connection(known, "stop"):
            while is_running(program.folders, known):
                time.sleep(_POLL_S)
        with History(known.file) as opened:
            stored = opened.batch(f"#{known.batch}")
    except ConnectionEndedError as error:
        warn(f"{error}; its process is {batch.known.pid if batch.known is not None else 'gone'}", program.secrets)
        return USAGE
    except (AttachError, HistoryError) as error:
        warn(str(error), program.secrets)
        return USAGE
    write(f"batch {batch_name(stored)} has stopped: {_over(stored)}\n")
    if stored.missing:
        write(f"{how_to_resume(known.file, stored.number, stored.resumed_by)}\n")
    return OK


def _over(batch: BatchRow) -> str:
    return f"{counted_of(batch.planned - batch.missing, batch.planned, 'run')} have ended"


def _why_not_stopped(batch: NamedBatch) -> str:
    if batch.in_another_program:
        return f"batch {batch.number} was started without --detach: stop the batch in its own program"
    return f"batch {batch.number} is not running: 'workbench batches' lists the batches that are"
