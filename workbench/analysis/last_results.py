"""The last result of each case of some suites, from a history, and whether the case was edited since."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from workbench.analysis.comparison import Cell, cells_of
from workbench.dataclasses import dataclass
from workbench.grading.status import Status
from workbench.history.database import Say
from workbench.history.history import History
from workbench.history.records import RunRow, SuiteRef
from workbench.suite.loading import SuiteFile
from workbench.suite.model import derived_id


@dataclass(frozen=True)
class LastResult:
    """What a case came to in the last batch in which it finished a run: its runs there, of all models and repeats.
    `edited` tells whether the case has another text now."""

    runs: tuple[RunRow, ...]
    edited: bool

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The case on each model."""
        return tuple(cells_of(run.figures for run in self.runs if run.figures is not None).values())

    @property
    def status(self) -> Status:
        """The worst status among the models."""
        return min((cell.status for cell in self.cells), key=lambda status: status.urgency)

    @property
    def worst_run(self) -> RunRow:
        """The first run with the worst status."""
        finished = [(run.figures.status.urgency, run) for run in self.runs if run.figures is not None]
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
    """Read the last result of each case. `redacted` removes secrets from a text as the history does. Damaged runs are
    left out and reported to `damaged`. Raises HistoryError."""
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
    """Returns the history's key of a suite file, like `SuiteRef.key`."""
    return str(path.resolve())


def _places(file: SuiteFile) -> dict[str, int]:
    """Returns the indices of the cases of a suite, which may have errors, by their ids."""
    if file.suite is not None:
        return {case.id: at for at, case in enumerate(file.suite.cases)}
    tables = file.parts.cases if file.parts is not None else ()
    return {str(table.get("id") or derived_id(str(table.get("name")))): at for at, table in enumerate(tables)}


def _say_the_same(one: str, other: str) -> bool:
    """Returns whether two blocks of TOML have the same content, whatever their comments and layout."""
    if one.strip() == other.strip():
        return True
    try:
        return repr(tomllib.loads(one)) == repr(tomllib.loads(other))
    except ValueError:
        return False
