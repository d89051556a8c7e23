"""The reports of the published systems on a batch: each suite in the words of the system that decides it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType

from workbench.analysis.published.system import Summary, System
from workbench.dataclasses import dataclass
from workbench.grading.grade import Grade, RunResult
from workbench.grading.status import Status
from workbench.grading.traits import TRAITS
from workbench.limits import MAX_DOCUMENT_RUNS
from workbench.suite.model import Case

_NO_CASES: Mapping[str, Case] = MappingProxyType({})


@dataclass(frozen=True)
class PublishedReport:
    """What a system reports of the runs of one suite with one model; a comparison of its models where `model` is
    `None`. `suite` is the suite's path."""

    suite: str
    model: str | None
    grader: str
    system: str
    summary: Summary


def _by_its_grader(run: RunResult, verdict: Status) -> RunResult:
    return run if run.status == verdict else run.with_status(verdict)


def _as_published(run: RunResult) -> RunResult:
    """Returns the run with the grade that the system gives where the suite frees surplus calls."""
    if not run.has_free_calls:
        return run
    grade = run.grade
    assert grade is not None and grade.published is not None
    return replace(run, grades=(Grade(*grade.published), *run.grades[1:]))


def published_reports(results: Sequence[RunResult], cases: Mapping[str, Case] = _NO_CASES) -> Iterator[PublishedReport]:
    """Returns the reports on a batch, suite by suite in the order of the runs. `cases` are those of the runs, by run.

    Runs count by the verdict of the deciding grader, because the published systems have no requirements besides it.
    Runs that were not graded, or to which it does not apply, are left out. Of more than `MAX_DOCUMENT_RUNS` runs
    there are none.
    """
    if len(results) > MAX_DOCUMENT_RUNS:
        return
    groups: dict[tuple[str, str], list[RunResult]] = {}
    for run in map(_as_published, results):
        grader, verdict = run.grader, run.verdict
        if grader is not None and isinstance(verdict, Status) and verdict.graded:
            groups.setdefault((run.suite, grader), []).append(_by_its_grader(run, verdict))
    for (suite, grader), runs in groups.items():
        system = system_of(grader)
        models = dict.fromkeys(run.model for run in runs)
        for model in models:
            mine = [run for run in runs if run.model == model]
            summary = system.summary(mine) if system.with_cases is None else system.with_cases(mine, cases)
            yield PublishedReport(suite, model, grader, TRAITS[grader].system, summary)
        if len(models) > 1 and system.comparison is not None:
            yield PublishedReport(suite, None, grader, TRAITS[grader].system, system.comparison(runs))


def system_of(grader: str) -> System:
    """Return the report of the published system that a grader follows: `SYSTEM` of the module named like the grader."""
    if grader not in TRAITS:
        raise ValueError(f"no published system has a grader {grader!r}")
    system: System = import_module(f"workbench.analysis.published.{grader}").SYSTEM
    return system
