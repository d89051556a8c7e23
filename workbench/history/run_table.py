"""The runs of a batch in columns: some hundred bytes for each, however many there are. Rows are made as they are looked
at."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from workbench.grading.lazy import Codes, Lazy
from workbench.grading.run_summary import RunSummary
from workbench.history.records import RunRow

_NO_NUMBER = float("nan")
_NO_COUNT = -(1 << 63)
"""What stands for `None` in a column; neither a time nor a score is the one, and no provider counts the other."""

_NUMBERS = ("score", "latency_ms", "first_token_ms", "cost_usd", "began_ms", "ended_ms", "loop_ms")
_COUNTS = ("input_tokens", "output_tokens")


class RunTable(Lazy[RunRow]):
    """Runs of a history, in their order."""

    def __init__(self, runs: Iterable[RunRow] = ()) -> None:
        self._ids, self._places = array("q"), array("q")
        self._kinds: Codes[tuple[Any, ...]] = Codes()
        self._cases: Codes[tuple[str, str]] = Codes()
        self._reasons: Codes[str | None] = Codes()
        self._numbers = tuple(array("d") for _ in _NUMBERS)
        self._counts = tuple(array("q") for _ in _COUNTS)
        self._finished = 0
        for run in runs:
            self.append(run)

    def append(self, run: RunRow) -> None:
        """Add a run; its figures are those of the same case, model and repeat."""
        figures = run.figures
        self._ids.append(run.id)
        self._places.append(run.place)
        self._cases.append((run.case_id, run.case_name))
        of_run = (run.batch, run.suite, run.model, run.model_of_suite, run.repeat, run.by, run.is_fork)
        if figures is None:
            self._kinds.append((*of_run, None))
            self._reasons.append(None)
            for column in self._numbers:
                column.append(_NO_NUMBER)
            for counts in self._counts:
                counts.append(_NO_COUNT)
            return
        self._finished += 1
        kind = (figures.suite, figures.status, figures.asked, figures.is_broken, figures.grading, figures.metrics)
        self._kinds.append((*of_run, kind))
        self._reasons.append(figures.reason)
        for column, name in zip(self._numbers, _NUMBERS, strict=True):
            value = getattr(figures, name)
            column.append(_NO_NUMBER if value is None else value)
        for counts, name in zip(self._counts, _COUNTS, strict=True):
            value = getattr(figures, name)
            counts.append(_NO_COUNT if value is None else value)

    def __len__(self) -> int:
        return len(self._ids)

    def at(self, index: int) -> RunRow:
        batch, suite, model, of_suite, repeat, by, is_fork, kind = self._kinds[index]
        case_id, case_name = self._cases[index]
        figures = None
        if kind is not None:
            key, status, asked, is_broken, grading, metrics = kind
            score, latency, first, cost, began, ended, loop = [
                None if (value := column[index]) != value else value for column in self._numbers
            ]
            sent, got = [None if (value := column[index]) == _NO_COUNT else value for column in self._counts]
            assert latency is not None
            of_case = (key, case_id, case_name, model, repeat, status, score, self._reasons[index])
            figures = RunSummary(
                *of_case,
                latency,
                first,
                sent,
                got,
                cost,
                asked,
                is_broken,
                grading,
                began,
                ended,
                is_fork,
                loop,
                metrics,
            )
        place = self._places[index]
        return RunRow(
            self._ids[index], batch, place, suite, case_id, case_name, model, of_suite, repeat, by, is_fork, figures
        )

    @property
    def figures(self) -> Sequence[RunSummary]:
        """The figures of the runs that are over, in their order."""
        return _Figures(self, self._finished)


class _Figures(Lazy[RunSummary]):
    def __init__(self, runs: RunTable, finished: int) -> None:
        self._runs = runs
        self._finished = finished
        over = (index for index, run in enumerate(runs) if run.figures is not None) if finished < len(runs) else None
        self._over = array("L", over) if over is not None else range(len(runs))

    def __len__(self) -> int:
        return self._finished

    def at(self, index: int) -> RunSummary:
        figures = self._runs.at(self._over[index]).figures
        assert figures is not None
        return figures
