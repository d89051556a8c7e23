"""Batches of the history, read for the screens.

Each function opens, reads and closes the history in the calling thread, and may raise HistoryError. The first call
imports SQLite, so do not call it on the app's event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass

if TYPE_CHECKING:
    from workbench.analysis.trends import TrendKey
    from workbench.history.history import History
    from workbench.history.records import BatchPart, BatchRow, Regrade, RunRow
    from workbench.suite.grading_model import Gate


MAX_RUNS_OF_CASE = 1_000
"""The maximum number of runs to read for one case. The latest runs are read."""


@dataclass(frozen=True)
class LoadedBatches:
    """The latest batches, newest first, including damaged batches.

    `regraded` is the number of regrades by batch. `active` has the batches with active runs, in this or another
    process. `older` counts the batches that are not included, and `older_forks` the forks among them."""

    batches: tuple[BatchRow, ...] = ()
    regraded: Mapping[int, int] = field(default_factory=dict)
    active: frozenset[int] = frozenset()
    older: int = 0
    older_forks: int = 0


MAX_RUNS_READ = 20_000
"""The maximum number of runs to read from a batch. Of a larger batch, only some cases are read."""

RUNS_UNTIL_SEARCHED = 4_000
"""The number of runs to read from a larger batch before words are searched. The batch then opens within 200 ms."""


FIRST_RUNS = 200
"""The number of runs to read from a batch before its screen opens. They fill the screen within 200 ms."""

MAX_RUNS_AT_ONCE = 1_000
"""The size of a batch, in runs, from which only the first runs are read before its screen opens."""


@dataclass(frozen=True)
class LoadedBatch:
    """A batch with its runs.

    The grades are those of the regrade `grading`, or the original grades if it is `None`. `is_active` is true while
    this or another process executes runs of the batch. Of a large batch, `runs` covers only the first cases. With a
    search text `words`, it covers the first cases that contain each word. `is_all` is false if further cases were left
    out."""

    batch: BatchRow
    runs: Sequence[RunRow]
    grading: Regrade | None = None
    is_active: bool = False
    gates: Mapping[str, Gate] = field(default_factory=dict)
    """The gate of each suite with a readable text, by the suite's key. Empty if runs are omitted."""
    words: str = ""
    is_all: bool = True
    is_first: bool = False
    """Whether only the first runs were read, to show them before the others are read."""

    @property
    def is_whole(self) -> bool:
        """Whether `runs` are all runs of the batch."""
        return self.is_all and not self.words


@contextmanager
def opened(file: Path) -> Iterator[History]:
    """Open the history, and close it after use."""
    from workbench.history.history import History

    with History(file) as history:
        yield history


def read_batches(file: Path, limit: int | None = None) -> LoadedBatches:
    """Return the newest batches, at most `limit`. Without a limit, return all."""
    with opened(file) as history:
        batches = tuple(islice(history.each_batch(), limit))
        count, forks = history.count_batches()
        older = max(count - len(batches), 0)
        older_forks = 0
        if older:
            older_forks = max(forks - sum(batch.kind != "runs" for batch in batches), 0)
        return LoadedBatches(batches, history.regraded(), _active(file, batches), older, older_forks)


def read_trends(file: Path, batch: BatchRow) -> dict[TrendKey, list[tuple[int, float]]]:
    """Return the past results of each suite and model in a batch, up to this batch, oldest first.

    Each result is a batch number with the pass rate."""
    from workbench.analysis.trends import stored_trends

    with opened(file) as history:
        return stored_trends(history, ((part.suite.key, part.model) for part in batch.parts), batch.number)


def read_active(file: Path, numbers: Iterable[int]) -> tuple[list[BatchRow], frozenset[int]]:
    """Return the batches with these numbers, and the numbers of the batches with active runs."""
    with opened(file) as history:
        batches = [history.batch(f"#{number}") for number in numbers]
        return batches, _active(file, batches)


class OutdatedError(Exception):
    """Raised when the caller no longer wants the result of a search."""


def read_cases(
    file: Path,
    number: int,
    grading: int | None = None,
    words: str = "",
    is_wanted: Callable[[], bool] = lambda: True,
    *,
    first: bool = False,
) -> LoadedBatch:
    """Return one batch. From a large batch, read only the first cases whose `case_text` has all of `words`.

    `grading` is the id of a regrade. With `first`, read only the first runs of a batch with more than
    `MAX_RUNS_AT_ONCE` runs. Raises OutdatedError as soon as `is_wanted` returns false."""
    with opened(file) as history:
        return _batch(history, file, number, grading, words, MAX_RUNS_READ, is_wanted, first=first)


def case_text(suite: str, name: str, case_id: str, tags: Iterable[str], ended: Iterable[tuple[str, str]]) -> str:
    """Return the case-folded text in which a search of the batch looks for its words.

    `ended` has the status of the case on each model."""
    statuses = (f"{model}:{status}" for model, status in ended)
    return " ".join((suite, name, case_id, *tags, *statuses)).casefold()


def read_two(
    file: Path, before: tuple[int, int | None], after: tuple[int, int | None]
) -> tuple[LoadedBatch, LoadedBatch]:
    """Return two batches.

    Each is given by its number and the id of a regrade (`None`: the original grades)."""
    with opened(file) as history:
        return _batch(history, file, *before), _batch(history, file, *after)


def read_gradings(file: Path, number: int) -> list[tuple[Regrade, tuple[BatchPart, ...]]]:
    """Return every regrade of a batch, each with its counts by suite and model."""
    with opened(file) as history:
        batch = history.batch(f"#{number}")
        return [(grading, history.counted_again(batch, grading)) for grading in history.gradings(number)]


def read_agents(file: Path, number: int) -> dict[str, tuple[str, ...]]:
    """Return the names and versions of the agents of a batch by model."""
    with opened(file) as history:
        return history.agents_of(number)


def read_case(
    file: Path, suite: str, case_id: str
) -> tuple[Sequence[RunRow], Mapping[int, str], Mapping[int, int], Sequence[str]]:
    """Return the latest runs of a case, newest first, and data about their batches.

    The second value has the names of batches and the third the numbers of regrades, both by batch number. The last
    value has a message for each damaged run. `suite` is the suite's key in the history."""
    damaged: list[str] = []
    with opened(file) as history:
        runs = history.runs_of_case(suite, case_id, MAX_RUNS_OF_CASE, damaged.append)
        return runs, history.names(), history.regraded(), damaged


def _active(file: Path, batches: Iterable[BatchRow]) -> frozenset[int]:
    from workbench.history.claims import is_claimed

    active: set[int] = set()
    for batch in batches:
        # A batch without an end is active only while a process claims it. Otherwise, the process that ran the batch was
        # killed.
        if batch.ended_at is None and batch.damage is None and is_claimed(file, batch.number):
            active.add(batch.number)
    return frozenset(active)


def _batch(
    history: History,
    file: Path,
    number: int,
    grading: int | None,
    words: str = "",
    limit: int | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
    *,
    first: bool = False,
) -> LoadedBatch:
    from workbench.history.claims import is_claimed

    # The claim is checked before the batch is read: without a claim at this moment, the batch is completely written.
    has_claim = is_claimed(file, number)
    # The number needs a #, because another batch's name may look like a number.
    batch = history.batch(f"#{number}")
    is_going = batch.ended_at is None and has_claim
    chosen = None
    for each in history.gradings(number):
        if each.id == grading:
            chosen = each
    if first and batch.planned > MAX_RUNS_AT_ONCE:
        runs, _ = _first_matching(history, number, chosen, "", FIRST_RUNS, is_wanted)
        return LoadedBatch(batch, runs, chosen, is_going, is_all=False, is_first=True)
    if limit is None or batch.planned <= limit:
        gates = history.gates(batch, lambda _: None)
        return LoadedBatch(batch, history.runs(number, chosen), chosen, is_going, gates)
    if not words.split():
        limit = min(limit, RUNS_UNTIL_SEARCHED)
    runs, is_all = _first_matching(history, number, chosen, words, limit, is_wanted)
    return LoadedBatch(batch, runs, chosen, is_going, words=words, is_all=is_all)


def _first_matching(
    history: History, number: int, grading: Regrade | None, words: str, limit: int, is_wanted: Callable[[], bool]
) -> tuple[Sequence[RunRow], bool]:
    """Return the runs of the first cases with all words, and whether no other case matches."""
    wanted = words.casefold().split()
    places: list[tuple[int, int]] = []
    found = 0
    is_all = True
    with closing(history.cases_of(number, grading)) as cases:
        for case in cases:
            if not is_wanted():
                raise OutdatedError
            ended = [(model, status or "not run") for model, status in case.ended]
            text = case_text(case.suite.name, case.case_name, case.case_id, (), ended)
            if not all(word in text for word in wanted):
                continue
            found += len(case.ended)
            # The first case is read even if it has too many runs, because the screen would be empty otherwise.
            if found > limit and places:
                is_all = False
                break
            # One query reads neighbouring cases.
            if places and places[-1][1] + 1 == case.first:
                places[-1] = places[-1][0], case.last
            else:
                places.append((case.first, case.last))
    runs: list[RunRow] = []
    for first, last in places:
        runs += history.runs_between(number, first, last, grading)
    return runs, is_all
