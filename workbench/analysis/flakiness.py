"""Which cases are flaky: the same question, sometimes answered well and sometimes not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise

from workbench.analysis.comparison import GOOD
from workbench.analysis.intervals import Interval, share_interval
from workbench.dataclasses import dataclass
from workbench.grading.grade import GRADED, Status


@dataclass(frozen=True, slots=True)
class StoredStatus:
    """The status of one run of a batch. `content` tells whether two runs were asked, and expected, the same."""

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
    """A case with a model that is flaky since a batch. `good` of its `runs` passed or were warned; `interval` is that
    of the share, 95%. `course` has its batches, the oldest first, each with how many runs were good, and of
    how many.
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
        if run.status in GRADED:
            by_case.setdefault((run.suite, run.case_id, run.model), []).append(run)
    found = [flaky for of_case in by_case.values() if (flaky := _flaky(of_case)) is not None]
    return sorted(found, key=lambda flaky: flaky.good / flaky.runs)


def _flaky(runs: list[StoredStatus]) -> FlakyCase | None:
    latest = runs[-1]
    same = [run for run in runs if run.content == latest.content]
    batches = [list(of_batch) for _, of_batch in groupby(same, key=lambda run: run.batch)]
    course = tuple((of[0].batch, sum(run.status in GOOD for run in of), len(of)) for of in batches)
    mixed = [0 < good < of for _, good, of in course]
    changes = sum((before[1] == 0) != (after[1] == 0) for before, after in pairwise(course))
    if not any(mixed) and changes < 2:
        return None
    first = next(
        index for index, (_, good, _) in enumerate(course) if mixed[index] or (good == 0) != (course[0][1] == 0)
    )
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
