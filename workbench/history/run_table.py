"""Keeps the runs of a batch in memory in columns, which is compact enough for several hundred thousand runs."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from workbench.grading.lazy_sequences import CodedColumn, LazySequence
from workbench.grading.run_summary import RunSummary, UserFigures
from workbench.history.records import RunRow

# Arrays cannot hold `None`. These values replace it, because neither is a possible time, score or count.
_NO_NUMBER = float("nan")
_NO_COUNT = -(1 << 63)

_NUMBERS = ("score", "latency_ms", "first_token_ms", "cost_usd", "began_ms", "ended_ms", "loop_ms")
_COUNTS = ("input_tokens", "output_tokens")


class RunTable(LazySequence[RunRow]):
    """The runs of a batch in order. Rows are created on access."""

    def __init__(self, runs: Iterable[RunRow] = ()) -> None:
        # Most runs share their suite, model and options with other runs. `CodedColumn` stores each combination once,
        # and a number for each run.
        self._ids, self._places = array("q"), array("q")
        self._kinds: CodedColumn[tuple[Any, ...]] = CodedColumn()
        self._cases: CodedColumn[tuple[str, str]] = CodedColumn()
        self._reasons: CodedColumn[str | None] = CodedColumn()
        self._users: CodedColumn[UserFigures | None] = CodedColumn()
        self._numbers = tuple(array("d") for _ in _NUMBERS)
        self._counts = tuple(array("q") for _ in _COUNTS)
        self._finished = 0
        for run in runs:
            self.append(run)

    def append(self, run: RunRow) -> None:
        """Add a run. The run and its figures must have the same case, model and repeat."""
        figures = run.figures
        self._ids.append(run.id)
        self._places.append(run.place)
        self._cases.append((run.case_id, run.case_name))
        of_run = (run.batch, run.suite, run.model, run.model_of_suite, run.repeat, run.by, run.is_fork)
        if figures is None:
            self._kinds.append((*of_run, None))
            self._reasons.append(None)
            self._users.append(None)
            for column in self._numbers:
                column.append(_NO_NUMBER)
            for counts in self._counts:
                counts.append(_NO_COUNT)
            return
        self._finished += 1
        of_grading = (figures.grading, figures.metrics, figures.tool_arguments, figures.repaired)
        made_by = (figures.agent, figures.user_outcome)
        kind = (figures.suite, figures.status, figures.asked, figures.is_broken, *of_grading, *made_by)
        self._kinds.append((*of_run, kind))
        self._reasons.append(figures.reason)
        self._users.append(figures.user)
        for column, name in zip(self._numbers, _NUMBERS, strict=True):
            number: float | None = getattr(figures, name)
            column.append(_NO_NUMBER if number is None else number)
        for counts, name in zip(self._counts, _COUNTS, strict=True):
            count: int | None = getattr(figures, name)
            counts.append(_NO_COUNT if count is None else count)

    def __len__(self) -> int:
        return len(self._ids)

    def at(self, index: int) -> RunRow:
        batch, suite, model, of_suite, repeat, by, is_fork, _ = self._kinds[index]
        id_, place, figures = self._ids[index], self._places[index], self.figures_at(index)
        return RunRow(id_, batch, place, suite, *self._cases[index], model, of_suite, repeat, by, is_fork, figures)

    def figures_at(self, index: int) -> RunSummary | None:
        """Return the figures of the run at an index from 0; `None` if the run never finished."""
        _, _, model, _, repeat, _, is_fork, kind = self._kinds[index]
        if kind is None:
            return None
        key, status, asked, is_broken, grading, metrics, arguments, repaired, agent, outcome = kind
        score, latency, first, cost, began, ended, loop = [_number(column[index]) for column in self._numbers]
        sent, got = [_count(column[index]) for column in self._counts]
        assert latency is not None
        of_case = (key, *self._cases[index], model, repeat, status, score, self._reasons[index])
        of_model = (latency, first, sent, got, cost, asked, is_broken, grading)
        later = (loop, metrics, arguments, repaired, agent, self._users[index], outcome)
        return RunSummary(*of_case, *of_model, began, ended, is_fork, *later)

    @property
    def figures(self) -> Sequence[RunSummary]:
        return _Figures(self, self._finished)

    def finished_indices(self) -> Iterator[int]:
        return self._kinds.where(lambda kind: kind[-1] is not None)

    @property
    def unfinished(self) -> frozenset[tuple[str, str, str]]:
        """The suite key, case id and model of each run that never finished."""
        rows = map(self.at, self._kinds.where(lambda kind: kind[-1] is None))
        return frozenset((run.suite.key, run.case_id, run.model) for run in rows)

    def of_cases(self, ids: Collection[str]) -> Iterator[RunRow]:
        return map(self.at, self._cases.where(lambda case: case[0] in ids))


def _number(value: float) -> float | None:
    # NaN is the only value that differs from itself.
    return None if value != value else value


def _count(value: int) -> int | None:
    return None if value == _NO_COUNT else value


class _Figures(LazySequence[RunSummary]):
    def __init__(self, runs: RunTable, finished: int) -> None:
        self._runs = runs
        self._finished = finished
        # If all runs are finished, a range is enough, and it needs no memory for each index.
        self._over: Sequence[int] = range(len(runs))
        if finished < len(runs):
            self._over = array("L", runs.finished_indices())

    def __len__(self) -> int:
        return self._finished

    def at(self, index: int) -> RunSummary:
        figures = self._runs.figures_at(self._over[index])
        assert figures is not None
        return figures
