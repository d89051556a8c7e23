"""The latest runs of each case by model. A model keeps its runs when the case is run on a different one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from workbench.authoring.case_now import CaseKey
from workbench.tui.run_book.record import RunRecord


class RunsByModel:
    """The runs of each case and model that count: those of the last batch with both, or, if that was stopped early,
    those that counted before. Recorded runs count only if there are no others, and forks never do."""

    def __init__(self) -> None:
        self._runs: dict[CaseKey, dict[str, list[RunRecord]]] = {}
        self._before: dict[CaseKey, dict[str, list[RunRecord]]] = {}
        """The runs that counted when the last batch began, if any of them had ended."""
        self._models: dict[Path, dict[str, None]] = {}
        self._begun: dict[CaseKey, int] = {}
        """The value of `_puts` when the runs of a case were last stored or regraded, the latest last."""
        self._puts = 0

    def start(self, batch: Iterable[RunRecord]) -> None:
        """Replace the previous runs with those of a new batch."""
        fresh: dict[tuple[CaseKey, str], list[RunRecord]] = {}
        for run in batch:
            if not run.is_fork:
                fresh.setdefault(((run.path, run.case_id), run.model), []).append(run)
        for (case, model), runs in fresh.items():
            before, spoke = self._runs.get(case, {}).get(model, []), self._before.get(case, {}).get(model, [])
            if _verdicts(before) and not _came_to_less(before, spoke):
                self._before.setdefault(case, {})[model] = before
            self._put(case, model, sorted(runs, key=lambda run: run.repeat))

    def recall(self, run: RunRecord) -> None:
        """Add a recorded run."""
        case = run.path, run.case_id
        known = self._runs.get(case, {}).get(run.model, [])
        if not run.is_fork and all(other.recorded for other in known):
            others = [other for other in known if other.repeat != run.repeat]
            self._put(case, run.model, sorted([*others, run], key=lambda each: each.repeat))

    def grade_anew(self, case: CaseKey) -> None:
        """Note that finished runs of a case have new grades."""
        self._tell(case)

    def of(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """Return the runs of a case by model, those of each model by repeat."""
        latest, spared = self._runs.get(case, {}), self.spared(case)
        return {**latest, **spared} if spared else latest

    def spared(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """Return, by model, the earlier runs that count for a case because the last ones were stopped."""
        latest = self._runs.get(case, {})
        return {
            model: runs
            for model, runs in self._before.get(case, {}).items()
            if all(run.figures is not None for run in latest[model]) and _came_to_less(latest[model], runs)
        }

    def before(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """Return, by model, the runs that counted for a case when the last ones began, if any of them had ended."""
        return self._before.get(case, {})

    def models(self, suite: Path) -> Iterable[str]:
        """Return the models on which cases of a suite were run, in the order of their first run."""
        return self._models.get(suite, ())

    def begun_since(self, seen: int) -> tuple[list[CaseKey], int]:
        """Return the cases with new runs or grades since `seen`, the latest first, and the value to pass next time. 0
        is the beginning."""
        latest = reversed(self._begun.items())
        return [case for case, _ in takewhile(lambda begun: begun[1] > seen, latest)], self._puts

    def _put(self, case: CaseKey, model: str, runs: list[RunRecord]) -> None:
        self._tell(case)
        self._runs.setdefault(case, {})[model] = runs
        self._models.setdefault(case[0], {})[model] = None

    def _tell(self, case: CaseKey) -> None:
        self._puts += 1
        self._begun.pop(case, None)
        self._begun[case] = self._puts


def _came_to_less(runs: Sequence[RunRecord], before: Sequence[RunRecord]) -> bool:
    """Return whether some of the runs were stopped or are active, and fewer of them ended than of the earlier runs."""
    over = _verdicts(runs)
    return over < len(runs) and over < _verdicts(before)


def _verdicts(runs: Sequence[RunRecord]) -> int:
    """Return how many of the runs ended, errors included."""
    return sum(run.figures is not None and run.status != "stopped" for run in runs)
