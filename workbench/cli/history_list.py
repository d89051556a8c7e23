"""`workbench history list`: list the batches, newest first, and the trends of their suites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge
from itertools import chain, islice
from pathlib import Path

from workbench.analysis.trends import TrendKey, stored_trends
from workbench.cli.history_command import HistoryCommand
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK
from workbench.history.database import bytes_on_disk
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, SuiteRef
from workbench.numerals import bytes_text, count_text, counted
from workbench.show.markdown import document_table
from workbench.show.text import table_lines
from workbench.show.views.batch_list import BatchFacts, batch_table, facts_of, trend_table
from workbench.show.visible import one_line


@dataclass(frozen=True)
class Options:
    """The batches to list, and the form of the list."""

    suite: str | None
    limit: int
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    with command.history() as history:
        suites = suites_named(history, options.suite, command.file)
        count, fork_count = history.count_batches(suites)
        runs = list(islice(history.each_batch(forks=False, suites=suites), options.limit))
        forks = list(islice(history.each_batch(forks=True, suites=suites), options.limit))
        regraded = history.regraded()
        shown = runs
        if options.format == "json":
            # In JSON, forks are listed among the other batches, so one limit applies to both.
            both = merge(runs, forks, key=lambda batch: batch.number, reverse=True)
            shown = list(islice(both, options.limit))
        keys: list[TrendKey] = []
        for batch in shown:
            if batch.kind == "runs":
                keys += [(part.suite.key, part.model) for part in batch.parts]
        trends = stored_trends(history, keys, runs[0].number if runs else 0)
    command.register_secrets(*runs, *forks)
    active = frozenset(batch.number for batch in (*runs, *forks) if command.is_running(batch))
    listed = _Listed(facts_of(runs, regraded, active), facts_of(forks, regraded, active), count, fork_count, trends)
    match options.format:
        case "json":
            from workbench.show.json.history import list_report

            command.write_json(list_report(command.file, shown, trends, regraded))
        case "text":
            command.write(_lines(listed, command))
        case "csv":
            from workbench.show.csv import table_rows

            command.write(["".join(table_rows(batch_table([*listed.runs, *listed.forks]))).rstrip()])
        case _:
            command.write([document_table(batch_table([*listed.runs, *listed.forks]))])
    return OK


def suites_named(history: History, name: str | None, file: Path) -> list[int] | None:
    """Return the ids of the suites that `--suite` names, `None` for all suites.

    Raises HistoryError if no batch has such a suite."""
    if name is None:
        return None
    suites = history.suites_called(name)
    # In an empty history, no name is known, so the name is not reported as wrong.
    if not history.count_batches(suites)[0] and history.count_batches() != (0, 0):
        names = ", ".join(history.suite_paths())
        raise HistoryError(f"there is no batch of a suite {name!r} in {file}; there are {names}")
    return suites


def is_suite(suite: SuiteRef, text: str) -> bool:
    """Return whether a text names a suite, by its name, its path in the project, or a path from the current folder."""
    return text in (suite.name, suite.path) or Path(text).resolve() == suite.file


@dataclass(frozen=True)
class _Listed:
    runs: Sequence[BatchFacts]
    forks: Sequence[BatchFacts]
    count: int
    fork_count: int
    trends: Mapping[TrendKey, Sequence[tuple[int, float]]]


def _lines(listed: _Listed, command: HistoryCommand) -> Iterator[str]:
    now = datetime.now(UTC)
    if not listed.count:
        keeps_one = f"'workbench run PATH{history_option(command.file)}' stores one"
        yield one_line(f"there is no batch in {command.file} yet: {keeps_one}, and so does the app")
        return
    runs, forks = listed.runs, listed.forks
    yield from table_lines(batch_table(runs, now), command.width, command.paint)
    if forks:
        yield ""
        yield f"{_kinds_of(each.batch for each in forks)}, which count for no case"
        yield from table_lines(batch_table(forks, now), command.width, command.paint)
    suites = dict.fromkeys(chain.from_iterable(each.batch.suites for each in runs))
    trends = trend_table(tuple(suites), listed.trends)
    if trends.rows:
        yield from ("", "pass rates of the latest whole batches, the oldest first")
        yield from table_lines(trends, command.width, command.paint)
    yield ""
    total = counted(listed.count, "batch")
    if hidden := listed.count - len(runs) - len(forks):
        total += f", {count_text(hidden)} of them not shown (--limit N)"
    yield command.paint(f"{total}, in {_file(command.file)}", "muted")


def _kinds_of(batches: Iterable[BatchRow]) -> str:
    names = {"fork": "forks of single runs", "reruns": "reruns of cases that broke"}
    kinds = {batch.kind for batch in batches}
    return " and ".join(name for kind, name in names.items() if kind in kinds)


def _file(file: Path) -> str:
    size = ""
    with suppress(OSError):
        size = f" ({bytes_text(bytes_on_disk(file))})"
    return f"{one_line(str(file))}{size}"
