"""Which batch is meant by who wants to attach to one, and what became of it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from workbench.attaching.records import AttachError, Detached, is_running, record_of, records
from workbench.config.folders import Folders
from workbench.config.history_file import history_option
from workbench.dataclasses import dataclass
from workbench.history.claims import claimed
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError


@dataclass(frozen=True)
class Found:
    """A batch, the history it is in, and what is known of it as one that went on without a terminal. `running` is
    whether its process is there."""

    history: Path
    number: int
    known: Detached | None = None
    running: bool = False

    @property
    def in_another_program(self) -> bool:
        """Whether some program makes its runs that nobody can attach to."""
        return not self.running and claimed(self.history, self.number)


def running_ones(folders: Folders) -> list[Found]:
    """The batches that go on without a terminal now, the one that began last first."""
    return [Found(known.file, known.batch, known, True) for known in records(folders) if is_running(folders, known)]


def found(folders: Folders, history: Path, which: str | None) -> Found:
    """The batch that is meant: of the history, by its number or its name, else one of this number that goes on without
    a terminal and is in another history. Without `which`, the only one that goes on. Raises AttachError, HistoryError.
    """
    running = running_ones(folders)
    if which is None:
        return _only(running, folders)
    number = which.removeprefix("#")
    error: HistoryError | None = None
    stored: BatchRow | None = None
    try:
        with History(history) as opened:
            stored = opened.batch(which)
    except HistoryError as why:
        error = why
    # The one in this history is meant, unless that never went on without a terminal, and one elsewhere does now.
    known = record_of(folders, history, stored.number) if stored is not None else None
    here = [each for each in running if stored is not None and _is(each, history, stored.number)]
    if not here and known is None:
        here = [each for each in running if number.isdecimal() and each.number == int(number)]
    if len(here) > 1:
        files = ", ".join(str(each.history) for each in here)
        raise AttachError(f"there are several batches {number} that go on: say which with --history, of {files}")
    if here:
        return here[0]
    if stored is None:
        assert error is not None
        raise error
    return Found(history, stored.number, known)


def _is(each: Found, history: Path, number: int) -> bool:
    return each.number == number and each.history == history.resolve()


def _only(running: list[Found], folders: Folders) -> Found:
    if len(running) == 1:
        return running[0]
    if running:
        *others, last_one = (f"{each.number}{history_option(each.history)}" for each in running)
        which = f"{', '.join(others)} or {last_one}"
        raise AttachError(f"several batches go on without a terminal: say which: {which}")
    last = next(iter(records(folders)), None)
    ended = (
        f"; the last one was batch {last.batch}: 'workbench attach {last.batch}{history_option(last.file)}' shows what "
        "became of it"
        if last is not None
        else ": 'workbench run PATH --detach' begins one"
    )
    raise AttachError(f"no batch goes on without a terminal{ended}")


def going_in(history: Path) -> list[BatchRow]:
    """The batches of a history that some program makes runs of now, the newest first; none where it cannot be read."""
    with suppress(HistoryError), History(history) as opened:
        unended = (batch for batch in opened.each_batch(unended=True) if batch.damage is None)
        return [batch for batch in unended if claimed(history, batch.number)]
    return []
