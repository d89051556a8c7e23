"""`workbench history list`: the batches, the newest first, and how their suites did from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from pathlib import Path

from workbench.analysis.over_time import TrendKey, stored_trends
from workbench.cli.history import HistoryCommand
from workbench.config.folders import history_option
from workbench.dataclasses import dataclass
from workbench.evaluation.exit_codes import OK
from workbench.history.database import bytes_on_disk
from workbench.history.history import History
from workbench.history.records import BatchRow, HistoryError, SuiteRef
from workbench.reports.history_list import batch_lines, trend_lines
from workbench.reports.visible import one_line


@dataclass(frozen=True)
class Options:
    """Which batches are listed, and how."""

    suite: str | None
    limit: int
    format: str


def execute(options: Options, command: HistoryCommand) -> int:
    """List; returns an exit code."""
    with command.history() as history:
        suites = suites_called(history, options.suite, command.file)
        count, fork_count = history.count_batches(suites)
        runs, forks = (
            list(islice(history.each_batch(forks=are_forks, suites=suites), options.limit))
            for are_forks in (False, True)
        )
        regraded = history.regraded()
        shown = runs
        if options.format == "json":
            both = merge(runs, forks, key=lambda batch: batch.number, reverse=True)
            shown = list(islice(both, options.limit))
        parts = (part for batch in shown if batch.kind == "runs" for part in batch.parts)
        up_to = runs[0].number if runs else 0
        trends = stored_trends(history, ((part.suite.key, part.model) for part in parts), up_to)
    command.learn_secrets(*runs, *forks)
    if options.format == "json":
        from workbench.reports.history_reports import list_report

        command.write_json(list_report(command.file, shown, trends, regraded))
    else:
        command.write(_lines(_Listed(runs, forks, count, fork_count, regraded, trends), command))
    return OK


def suites_called(history: History, name: str | None, file: Path) -> list[int] | None:
    """Return the ids of the suites that `--suite` names, `None` for all. Raises HistoryError when batches have others
    only."""
    if name is None:
        return None
    suites = history.suites_called(name)
    if not history.count_batches(suites)[0] and history.count_batches() != (0, 0):
        names = ", ".join(history.suite_paths())
        raise HistoryError(f"there is no batch of a suite {name!r} in {file}; there are {names}")
    return suites


def is_suite(suite: SuiteRef, wanted: str) -> bool:
    """Return whether a suite is meant by its name, the path in its project, or a path from here."""
    return wanted in (suite.name, suite.path) or Path(wanted).resolve() == suite.file


@dataclass(frozen=True)
class _Listed:
    """The newest batches of runs, and of forks and reruns; how many batches there are, and how many of them are forks
    or reruns."""

    runs: Sequence[BatchRow]
    forks: Sequence[BatchRow]
    count: int
    fork_count: int
    regraded: Mapping[int, int]
    trends: Mapping[TrendKey, Sequence[tuple[int, float]]]


def _lines(listed: _Listed, command: HistoryCommand) -> Iterator[str]:
    now = datetime.now(UTC)
    if not listed.count:
        keeps_one = f"'workbench run PATH{history_option(command.file)}' stores one"
        yield one_line(f"there is no batch in {command.file} yet: {keeps_one}, and so does the app")
        return
    runs, forks, regraded = listed.runs, listed.forks, listed.regraded
    going = frozenset(batch.number for batch in (*runs, *forks) if command.is_going(batch))
    yield from batch_lines(runs, regraded, going, now=now, width=command.width, paint=command.paint)
    if forks:
        yield ""
        yield f"{_kinds_of(forks)}, which count for no case"
        yield from batch_lines(forks, regraded, going, now=now, width=command.width, paint=command.paint)
    suites = tuple(dict.fromkeys(suite for batch in runs for suite in batch.suites))
    trends = list(trend_lines(suites, listed.trends, command.width, command.paint))
    yield from ("", *trends) if trends else ()
    yield ""
    hidden = listed.count - len(runs) - len(forks)
    more = f", {hidden:,} of them not shown (--limit N)" if hidden else ""
    yield command.paint(f"{batches_text(listed.count)}{more}, in {_file(command.file)}", "quiet")


def _kinds_of(batches: Iterable[BatchRow]) -> str:
    names = {"fork": "forks of single runs", "reruns": "reruns of cases that broke"}
    return " and ".join(names[kind] for kind in names if any(batch.kind == kind for batch in batches))


def _file(file: Path) -> str:
    size = ""
    with suppress(OSError):
        size = f" ({bytes_text(bytes_on_disk(file))})"
    return f"{one_line(str(file))}{size}"


def batches_text(number: int) -> str:
    """`1 batch`, `20 batches`."""
    return f"{number:,} batch{'' if number == 1 else 'es'}"


def bytes_text(number: int) -> str:
    """A size in a unit that a person reads at a glance."""
    if number < 1_000_000:
        return f"{number / 1_000:.0f} kB"
    return f"{number / 1_000_000:.1f} MB" if number < 1_000_000_000 else f"{number / 1_000_000_000:.1f} GB"
