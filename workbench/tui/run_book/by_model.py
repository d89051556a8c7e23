"""The latest runs of each case on each model: a model keeps its own when the case is run on another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from workbench.authoring.case_now import CaseKey
from workbench.tui.run_book.record import RunRecord


class RunsByModel:
    """Of each case and model the runs of the last batch that had both, or, where that was stopped before it came to as
    much, those that spoke for it before; recorded ones only where there are no others, and no forks."""

    def __init__(self) -> None:
        self._runs: dict[CaseKey, dict[str, list[RunRecord]]] = {}
        self._before: dict[CaseKey, dict[str, list[RunRecord]]] = {}
        """Those that spoke for it when the last batch began, where these had come to anything."""
        self._models: dict[Path, dict[str, None]] = {}
        self._begun: dict[CaseKey, int] = {}
        """How often runs had been put in their places, or graded anew, when those of a case last were, the latest
        last."""
        self._puts = 0

    def start(self, batch: Iterable[RunRecord]) -> None:
        """Runs of one batch take the places of those before."""
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
        """Take over a recorded run."""
        case = run.path, run.case_id
        known = self._runs.get(case, {}).get(run.model, [])
        if not run.is_fork and all(other.recorded for other in known):
            others = [other for other in known if other.repeat != run.repeat]
            self._put(case, run.model, sorted([*others, run], key=lambda each: each.repeat))

    def grade_anew(self, case: CaseKey) -> None:
        """Runs of a case that are over have other grades now."""
        self._tell(case)

    def of(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """The runs of a case by their models, those of each in the order of their repeats."""
        latest, spared = self._runs.get(case, {}), self.spared(case)
        return {**latest, **spared} if spared else latest

    def spared(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """By model, the runs that speak for a case in the place of the last ones, which were stopped."""
        latest = self._runs.get(case, {})
        return {
            model: runs
            for model, runs in self._before.get(case, {}).items()
            if all(run.figures is not None for run in latest[model]) and _came_to_less(latest[model], runs)
        }

    def before(self, case: CaseKey) -> Mapping[str, Sequence[RunRecord]]:
        """By model, the runs that spoke for a case when the last ones began, where they had come to anything."""
        return self._before.get(case, {})

    def models(self, suite: Path) -> Iterable[str]:
        """The models on which cases of a suite were run, in the order in which they first were."""
        return self._models.get(suite, ())

    def begun_since(self, seen: int) -> tuple[list[CaseKey], int]:
        """The cases whose runs are others than at `seen`, or have other grades, the latest first, and what to ask with
        next; 0 is the beginning."""
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
    """Whether some of the runs were stopped, or are not over, and fewer of them than of those before came to an end."""
    over = _verdicts(runs)
    return over < len(runs) and over < _verdicts(before)


def _verdicts(runs: Sequence[RunRecord]) -> int:
    """How many of the runs came to an end, be it an error."""
    return sum(run.figures is not None and run.status != "stopped" for run in runs)
