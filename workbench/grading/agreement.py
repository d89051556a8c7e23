"""How the verdicts of the system that made imported runs agree with those of their cases."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from workbench.dataclasses import dataclass
from workbench.grading.grade import RunResult


@dataclass(frozen=True)
class Difference:
    """Something of which the source's verdict is another one: its value there, 0..1, and whether it passed here."""

    about: str
    value: float
    passed_here: bool


@dataclass(frozen=True)
class Agreement:
    """The verdicts of a source by one of its scores beside those of the cases: how many of those that both have are
    the same, and which are not. `ungraded` are those that have none here."""

    name: str
    agree: int
    of: int
    ungraded: int
    differ: tuple[Difference, ...]


@dataclass
class _Scored:
    """What a source scored, which may be several runs, such as the turns of a conversation."""

    value: float
    passed: bool
    statuses: list[bool] = field(default_factory=list)


class AgreementFold:
    """The agreement for each score of a source, to which runs are added one by one. What consists of several runs
    passes here when all of those do that are graded."""

    def __init__(self) -> None:
        self._scored: dict[str, dict[tuple[str, str], _Scored]] = {}

    def add(self, run: RunResult) -> None:
        """Add a run."""
        for metric in run.metrics:
            if metric.about is not None:
                of_name = self._scored.setdefault(metric.name, {})
                each = of_name.setdefault((metric.about, run.model), _Scored(metric.value, metric.holds))
                each.statuses += [run.passed] if run.status.graded else []

    def agreements(self) -> tuple[Agreement, ...]:
        """Return what they come to, in the order of the scores."""
        return tuple(_agreement(name, found) for name, found in self._scored.items())


def agreements(results: Iterable[RunResult]) -> tuple[Agreement, ...]:
    """Return the agreement for each score of a source over some runs."""
    fold = AgreementFold()
    for run in results:
        fold.add(run)
    return fold.agreements()


def _agreement(name: str, scored: dict[tuple[str, str], _Scored]) -> Agreement:
    graded = {about: each for (about, _), each in scored.items() if each.statuses}
    differ = tuple(
        Difference(about, each.value, all(each.statuses))
        for about, each in graded.items()
        if all(each.statuses) != each.passed
    )
    return Agreement(name, len(graded) - len(differ), len(graded), len(scored) - len(graded), differ)
