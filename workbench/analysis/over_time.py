"""Follow cases from batch to batch: flaky cases, last results."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.history.database import Say
from workbench.history.history import History
from workbench.history.records import RunRow, SuiteRef
from workbench.suite.model import derived_id
from workbench.suite.suite_file import SuiteFile

if TYPE_CHECKING:
    from workbench.analysis.comparison import Cell
    from workbench.analysis.statistics import Interval

# Which cases are flaky: the same question, sometimes answered well and sometimes not.


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """The status of one run of a batch.

    `content` tells whether two runs were asked, and expected, the same."""

    suite: str
    suite_name: str
    case_id: str
    case_name: str
    model: str
    content: str
    batch: int
    started_at: str
    status: Status


@dataclass(frozen=True, slots=True)
class FlakyCase:
    """A case with a model that is flaky since a batch.

    `good` of its `runs` passed or were warned; `interval` is that of the share, 95%. `course` has its batches, the
    oldest first, each with how many runs were good, and of how many.
    """

    suite: str
    suite_name: str
    case_id: str
    case_name: str
    model: str
    since_batch: int
    since: str
    good: int
    runs: int
    interval: Interval
    course: tuple[tuple[int, int, int], ...]


def flaky_cases(runs: Iterable[StoredStatus]) -> list[FlakyCase]:
    """Return the flaky cases among runs that are given in the order of their batches, those that pass least first.

    Only runs with the content of the latest one count. A case is flaky if runs of one batch differ, or if it changed
    more than once from batch to batch: one change alone is an improvement or a regression. It is flaky since the first
    batch that did not go like those before it.
    """
    by_case: dict[tuple[str, str, str], list[StoredStatus]] = {}
    for run in runs:
        if run.status.graded:
            by_case.setdefault((run.suite, run.case_id, run.model), []).append(run)
    found = [flaky for of_case in by_case.values() if (flaky := _flaky(of_case)) is not None]
    return sorted(found, key=lambda flaky: flaky.good / flaky.runs)


def _flaky(runs: list[StoredStatus]) -> FlakyCase | None:
    latest = runs[-1]
    same = [run for run in runs if run.content == latest.content]
    batches = [list(of_batch) for _, of_batch in groupby(same, key=lambda run: run.batch)]
    course = tuple((of[0].batch, sum(run.status.good for run in of), len(of)) for of in batches)
    mixed = [0 < good < of for _, good, of in course]
    changes = sum((before[1] == 0) != (after[1] == 0) for before, after in pairwise(course))
    if not any(mixed) and changes < 2:
        return None
    first = next(
        index for index, (_, good, _) in enumerate(course) if mixed[index] or (good == 0) != (course[0][1] == 0)
    )
    from workbench.analysis.statistics import share_interval  # the list of batches needs no statistics

    good, of = sum(good for _, good, _ in course), len(same)
    return FlakyCase(
        suite=latest.suite,
        suite_name=latest.suite_name,
        case_id=latest.case_id,
        case_name=latest.case_name,
        model=latest.model,
        since_batch=course[first][0],
        since=batches[first][0].started_at,
        good=good,
        runs=of,
        interval=share_interval(good, of),
        course=course,
    )


# The last result of each case of some suites, from a history, and whether the case was edited since.


@dataclass(frozen=True)
class LastResult:
    """The result of a case in the last batch in which it finished a run: its runs there, of all models and repeats.

    `edited` tells whether the case has another text now."""

    runs: tuple[RunRow, ...]
    edited: bool

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The case on each model."""
        from workbench.analysis.comparison import cells_of

        return tuple(cells_of(run.figures for run in self.runs if run.figures is not None).values())

    @property
    def status(self) -> Status:
        """The worst status among the models."""
        return min((cell.status for cell in self.cells), key=lambda status: status.urgency)

    @property
    def worst_run(self) -> RunRow:
        """The first run with the worst status."""
        finished = []
        for run in self.runs:
            if run.figures is not None:
                finished.append((run.figures.status.urgency, run))
        return min(finished, key=lambda ranked: ranked[0])[1]

    @property
    def score(self) -> float | None:
        """The lowest score among the models."""
        return min((cell.score for cell in self.cells if cell.score is not None), default=None)

    @property
    def began_ms(self) -> float:
        """When its first run began, in milliseconds since 1970."""
        return min(run.figures.began_ms or 0.0 for run in self.runs if run.figures is not None)


LastResults = Mapping[tuple[Path, str], LastResult]
"""Last results by the path of the suite, as given, and the id of the case."""


def last_results(
    history: History, suites: Iterable[SuiteFile], redacted: Callable[[str], str], damaged: Say
) -> LastResults:
    """Read the last result of each case.

    `redacted` removes secrets from a text as the history does. Damaged runs are left out and reported to `damaged`.
    Raises HistoryError."""
    files = {_key_of(file.path): file for file in suites}
    places = {key: _places(file) for key, file in files.items()}
    found: dict[tuple[str, str], list[RunRow]] = {}
    for run in history.last_runs(places, damaged):
        found.setdefault((run.suite.key, run.case_id), []).append(run)
    texts: dict[int, Mapping[str, str]] = {}

    def is_edited(suite: SuiteRef, case_id: str) -> bool:
        file = files[suite.key]
        if file.hash == suite.hash:
            return False
        if suite.id not in texts:
            texts[suite.id] = history.case_texts(suite)
        then = texts[suite.id].get(case_id)
        if file.parts is None or then is None:
            return True
        return not _say_the_same(then, redacted(file.parts.block(places[suite.key][case_id])))

    return {
        (files[suite].path, case_id): LastResult(tuple(runs), is_edited(runs[-1].suite, case_id))
        for (suite, case_id), runs in found.items()
    }


def _key_of(path: Path) -> str:
    """Return the history's key of a suite file, like `SuiteRef.key`."""
    return str(path.resolve())


def _places(file: SuiteFile) -> dict[str, int]:
    """Return the indices of the cases of a suite, which may have errors, by their ids."""
    if file.suite is not None:
        return {case.id: at for at, case in enumerate(file.suite.cases)}
    tables = file.parts.cases if file.parts is not None else ()
    return {str(table.get("id") or derived_id(str(table.get("name")))): at for at, table in enumerate(tables)}


def _say_the_same(one: str, other: str) -> bool:
    """Return whether two blocks of TOML have the same content, whatever their comments and layout."""
    if one.strip() == other.strip():
        return True
    try:
        return repr(tomllib.loads(one)) == repr(tomllib.loads(other))
    except ValueError:
        return False
