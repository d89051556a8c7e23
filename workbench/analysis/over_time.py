"""Cases over many batches of the history: flaky cases, and the last result of each case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workbench.dataclasses import dataclass
from workbench.encoding import toml_of
from workbench.grading.status import Status
from workbench.history.database import ReportProblem
from workbench.history.history import History
from workbench.history.records import CaseTexts, RunRow, SuiteRef
from workbench.suite.model import derived_id
from workbench.suite.suite_file import SuiteFile

if TYPE_CHECKING:
    from workbench.analysis.comparison import Cell
    from workbench.analysis.statistics import Interval
    from workbench.grading.run_summary import RunSummary

# Flaky cases: their results change although request and expectations stay the same.


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """The status of one stored run.

    `content` is equal for runs with the same request and expectations."""

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
    """A case whose results with a model vary, although its request and expectations stayed the same.

    `since_batch` is the first batch in which they varied, and `since` is the time when it started. `good` is the number
    of its `runs` that passed or were warned. `interval` is the 95% interval of their share. `course` holds each batch
    with the number of good and of graded runs, the oldest batch first."""

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
    """Return the flaky cases of stored runs. The cases with the lowest pass rate come first.

    `runs` are in the order of batches. The runs of a case count if they have the same content as its latest run. A case
    is flaky if the runs of one batch differ, or if its result changed more than once between batches. A single change
    is a regression or a repair. The case counts as flaky since the first batch that has differing runs or another
    result than the first batch."""
    by_case: dict[tuple[str, str, str], list[StoredStatus]] = {}
    for run in runs:
        if run.status.graded:
            by_case.setdefault((run.suite, run.case_id, run.model), []).append(run)
    found = filter(None, map(_flaky, by_case.values()))
    return sorted(found, key=lambda flaky: flaky.good / flaky.runs)


class _BatchShare(NamedTuple):
    batch: int
    good: int
    runs: int

    @property
    def is_mixed(self) -> bool:
        return 0 < self.good < self.runs

    def differs(self, before: _BatchShare) -> bool:
        """Return whether the case had good runs in exactly one of two batches."""
        return (self.good == 0) != (before.good == 0)


def _flaky(runs: list[StoredStatus]) -> FlakyCase | None:
    latest = runs[-1]
    same = [run for run in runs if run.content == latest.content]
    course: list[_BatchShare] = []
    began: list[str] = []
    for batch, of_batch in groupby(same, key=lambda run: run.batch):
        in_batch = list(of_batch)
        course.append(_BatchShare(batch, _number_good(in_batch), len(in_batch)))
        began.append(in_batch[0].started_at)
    changes = sum(after.differs(before) for before, after in pairwise(course))
    if changes < 2 and not any(each.is_mixed for each in course):
        return None
    first = 0
    while not (course[first].is_mixed or course[first].differs(course[0])):
        first += 1
    # Lazy import: the list of batches imports this module and needs no statistics.
    from workbench.analysis.statistics import share_interval

    good, of = _number_good(same), len(same)
    return FlakyCase(
        suite=latest.suite,
        suite_name=latest.suite_name,
        case_id=latest.case_id,
        case_name=latest.case_name,
        model=latest.model,
        since_batch=course[first].batch,
        since=began[first],
        good=good,
        runs=of,
        interval=share_interval(good, of),
        course=tuple(course),
    )


def _number_good(runs: Iterable[StoredStatus]) -> int:
    return sum(run.status.good for run in runs)


# The last result of each case in the history, for the app's tree of suites.


@dataclass(frozen=True)
class LastResult:
    """The runs of a case with all models and repeats, in the last batch with a finished run of the case.

    `edited` is true if the text of the case has changed since."""

    runs: tuple[RunRow, ...]
    edited: bool

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        # Lazy imports, here and below: the list of batches imports this module and compares nothing.
        from workbench.analysis.comparison import cells_of

        return tuple(cells_of(figures for _, figures in self._finished).values())

    @cached_property
    def statuses(self) -> frozenset[Status]:
        """The statuses of the case with all models, each once."""
        return frozenset(cell.status for cell in self.cells)

    def compute(self) -> None:
        """Compute the cached properties, so that reading them later takes no time."""
        _ = self.statuses, self.status, self.score, self.began_ms

    @property
    def _finished(self) -> Iterator[tuple[RunRow, RunSummary]]:
        for run in self.runs:
            if run.figures is not None:
                yield run, run.figures

    @cached_property
    def status(self) -> Status:
        """The worst status of the case among all models."""
        return min(self.cells, key=lambda cell: cell.status.urgency).status

    @property
    def worst_run(self) -> RunRow:
        run, _ = min(self._finished, key=lambda finished: finished[1].status.urgency)
        return run

    @cached_property
    def score(self) -> float | None:
        from workbench.analysis.comparison import scores_of

        return min(scores_of(self.cells), default=None)

    @cached_property
    def began_ms(self) -> float:
        """The time at which the first run began, in milliseconds since 1970."""
        return min(figures.began_ms or 0.0 for _, figures in self._finished)


LastResults = Mapping[tuple[Path, str], LastResult]
"""Last results by the suite's path, as given, and the case's id."""


def last_results(
    history: History, suites: Iterable[SuiteFile], redacted: Callable[[str], str], damaged: ReportProblem
) -> LastResults:
    """Return the last result of each case of the suites, read from the history.

    `redacted` removes secrets from a text as the history does. Damaged runs are left out and reported to `damaged`.
    Raises HistoryError."""
    files = {_key_of(file.path): file.standalone for file in suites}
    places = {key: _places(file) for key, file in files.items()}
    found: dict[tuple[str, str], list[RunRow]] = {}
    for run in history.last_runs(places, damaged):
        found.setdefault((run.suite.key, run.case_id), []).append(run)
    texts: dict[int, Mapping[str, str]] = {}
    regraded: dict[int, CaseTexts] = {}

    def is_edited(run: RunRow) -> bool:
        suite, file = run.suite, files[run.suite.key]
        if run.batch not in regraded:
            gradings = history.gradings(run.batch)
            regraded[run.batch] = history.regraded_texts(gradings[-1]) if gradings else {}
        then = regraded[run.batch].get(suite.key, {}).get(run.case_id)
        # Usually, the file is unchanged. Then the texts of its cases need not be read from the history.
        if then is None and file.hash == suite.hash:
            return False
        if then is None:
            if suite.id not in texts:
                texts[suite.id] = history.case_texts(suite)
            then = texts[suite.id].get(run.case_id)
        if file.parts is None or then is None:
            return True
        return not _have_same_content(then, redacted(file.parts.block(places[suite.key][run.case_id])))

    results = {}
    for (suite, case_id), runs in found.items():
        results[files[suite].path, case_id] = LastResult(tuple(runs), is_edited(runs[-1]))
    return results


def edited_texts(
    history: History, suite: SuiteRef, file: SuiteFile, cases: Iterable[str], redacted: Callable[[str], str]
) -> dict[str, str]:
    """Return the current texts of the cases that were edited since they ran, by case id, with secrets redacted."""
    if file.hash == suite.hash or file.parts is None:
        return {}
    then, places = history.case_texts(suite), _places(file)
    edited: dict[str, str] = {}
    for case in cases:
        if case in places:
            text = redacted(file.parts.block(places[case]))
            if case not in then or not _have_same_content(then[case], text):
                edited[case] = text
    return edited


def _key_of(path: Path) -> str:
    return str(path.resolve())


def _places(file: SuiteFile) -> dict[str, int]:
    if file.suite is not None:
        return {case.id: at for at, case in enumerate(file.suite.cases)}
    if file.parts is None:
        return {}
    places = {}
    for at, table in enumerate(file.parts.cases):
        places[str(table.get("id") or derived_id(str(table.get("name"))))] = at
    return places


def _have_same_content(one: str, other: str) -> bool:
    """Return whether two blocks of TOML have the same content, regardless of comments and layout."""
    if one.strip() == other.strip():
        return True
    try:
        # Compared as texts, NaN equals NaN, and 1 differs from 1.0 and true.
        return repr(toml_of(one)) == repr(toml_of(other))
    except ValueError:
        return False
