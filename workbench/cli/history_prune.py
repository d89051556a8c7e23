"""`workbench history prune`: remove old batches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from workbench.cli.history_command import HistoryCommand
from workbench.cli.redaction import ask
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK, USAGE
from workbench.history.database import bytes_on_disk
from workbench.history.edits import remove_batches
from workbench.history.history import History
from workbench.history.records import BatchRow
from workbench.numerals import bytes_text, counted
from workbench.show.text import table_lines
from workbench.show.views.batch_list import batch_table, facts_of
from workbench.show.when import took_s


@dataclass(frozen=True)
class Options:
    """The batches to remove."""

    keep: int | None
    older_than: float | None
    batch: Sequence[str]
    named: bool
    yes: bool


def execute(options: Options, command: HistoryCommand) -> int:
    if options.keep is None and options.older_than is None and not options.batch:
        command.warn("nothing was removed: choose batches with --keep N, --older-than AGE or --batch BATCH")
        return USAGE
    now = datetime.now(UTC)
    with command.history() as history:
        known = history.all_batches()
        chosen = _chosen(history, known, options, now)
        if options.keep is not None or options.older_than is not None:
            for batch in known:
                if batch.damage is not None and batch not in chosen:
                    removes = f"--batch {batch.number} removes it"
                    command.warn(f"batch {batch.number} is damaged and was not removed: {removes}")
        code, named, removable = OK, _named(history, options), []
        for batch in chosen:
            if not command.is_running(batch):
                removable.append(batch)
                continue
            command.warn(f"batch {batch.number} is still running and was not removed: stop it first")
            # The options name this batch, so it is an error that it is kept.
            if batch.number in named:
                code = USAGE
        chosen = removable
        regraded, size = history.regraded(), history.bytes_of(chosen)
    if not chosen:
        if code == OK:
            command.write(["there is nothing to remove"])
        return code
    command.register_secrets(*chosen)
    command.write(table_lines(batch_table(facts_of(chosen, regraded), now), command.width, command.paint))
    batches = counted(len(chosen), "batch")
    # Removed batches cannot be restored. If there is no terminal to ask on, --yes is required.
    if not (options.yes or _confirmed(f"Remove {batches}, about {bytes_text(size)} permanently?")):
        why = "answer 'yes' on a terminal, or give --yes"
        command.warn(f"nothing was removed ({batches}, about {bytes_text(size)}): {why}")
        return USAGE
    # SQLite keeps the pages of removed batches for later use, so the file may shrink by less than their size.
    before = bytes_on_disk(command.file)
    free = remove_batches(command.file, [batch.number for batch in chosen], command.warn)
    freed = max(before - bytes_on_disk(command.file), 0)
    done = f"removed {batches}; the history is {bytes_text(freed)} smaller"
    if free:
        done += f", and {bytes_text(free)} in it are free for the next batches"
    command.write([done])
    return code


def _named(history: History, options: Options) -> set[int]:
    return {history.batch(which, damaged=True).number for which in options.batch}


def _chosen(history: History, known: Sequence[BatchRow], options: Options, now: datetime) -> list[BatchRow]:
    """Return the batches to remove, newest first.

    These are the batches that the options name, and the batches beyond both limits (`--keep`, `--older-than`). A limit
    that is not given has no effect. The limits never apply to damaged batches, and to named batches only with
    `--named`."""
    batches = [batch for batch in known if batch.damage is None]
    wanted = _named(history, options)
    if options.keep is not None or options.older_than is not None:
        least_s = (options.older_than or 0) * 86_400
        for batch in batches[options.keep or 0 :]:
            age_s = took_s(batch.started_at, now.isoformat()) or 0
            if age_s >= least_s and (options.named or batch.name is None):
                wanted.add(batch.number)
    return [batch for batch in known if batch.number in wanted]


def _confirmed(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    ask(f"{question} [yes/no]")
    return sys.stdin.readline().strip().lower() in ("yes", "y")
