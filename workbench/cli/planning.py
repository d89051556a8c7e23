"""What a command runs: which cases of which suites with which models, in which way. Everything wrong is said before any
run begins."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.batches.plan import PlannedRun, plan_runs
from workbench.batches.single import Execution
from workbench.batches.specs import Specs
from workbench.cli.judges import judge_is_known
from workbench.cli.suites import NoSuitesError, complain, load_suites, say_problems
from workbench.cli.trust import trust_store
from workbench.config.folders import Folders
from workbench.config.models import ConfigError
from workbench.config.program import Program
from workbench.grading.figures import RunSummary
from workbench.grading.grade import RunResult
from workbench.history.records import BatchRow
from workbench.history.writing import Ticket
from workbench.providers.built_in import is_built_in
from workbench.providers.model import ModelError
from workbench.providers.registry import BuiltInModels
from workbench.suite.loading import SuiteFile
from workbench.suite.model import Case

KNOWN_SHOWN_MAX = 20


@dataclass(frozen=True)
class Made:
    """A run that is over, its case, and where it stands in the plan of its batch, from 0."""

    place: int
    case: Case
    result: RunResult


@dataclass(frozen=True)
class ToRun:
    """What is to be run. `batch` is the one that it belongs to where one is resumed, and `going_on` that for the
    session; `over` is then what the runs of it came to that are over already, by their places, and `kept` what happened
    in those that a report tells of. `left_out` says that some of these are damaged, and in no report. `known` is
    what was found out about the models of a resumed batch."""

    files: tuple[SuiteFile, ...]
    runs: tuple[PlannedRun, ...]
    execution: Execution
    concurrency: int
    batch: BatchRow | None = None
    going_on: Ticket | None = None
    over: Mapping[int, RunSummary] = field(default_factory=dict)
    kept: tuple[Made, ...] = ()
    left_out: bool = False
    known: Specs | None = None

    @property
    def places(self) -> Mapping[str, int]:
        """Where each run stands in the plan of its batch, by its id."""
        if self.going_on is not None:
            return self.going_on.places
        return {run.run_id: place for place, run in enumerate(self.runs)}

    def whole(self, results: Iterable[RunResult]) -> list[Made]:
        """All runs of the batch that are over, in the order of its plan; `results` are those that were made now."""
        cases, places = {run.run_id: run.case for run in self.runs}, self.places
        now = [Made(places[result.run_id], cases[result.run_id], result) for result in results]
        return sorted((*self.kept, *now), key=lambda made: made.place)


def to_run(options: argparse.Namespace, program: Program) -> ToRun | None:
    """What the options of `workbench run` ask for; `None` when that is not possible, which has then been said."""
    planned = plan_of(options, program)
    if planned is None:
        return None
    files, runs = planned
    return ToRun(files, runs, execution_of(options, program.folders), options.concurrency)


def execution_of(options: argparse.Namespace, folders: Folders) -> Execution:
    """What `--execute` and `--execute-all` allow."""
    wanted = True if options.execute or options.execute_all else None
    return Execution(wanted, options.execute_all, trust_store(folders).is_exempt)


def plan_of(
    options: argparse.Namespace, program: Program
) -> tuple[tuple[SuiteFile, ...], tuple[PlannedRun, ...]] | None:
    """What is to be run; `None` when that is not possible, which has then been said."""
    try:
        files = load_suites(options.paths)
    except NoSuitesError as error:
        complain(str(error))
        return None
    say_problems(
        (problem for file in files for problem in file.problems if problem.severity == "error" or not options.quiet),
        program.secrets,
    )
    if any(file.suite is None for file in files):
        complain("nothing was run: put these suites right first")
        return None
    runs = plan_runs(
        files,
        models=options.model,
        case_ids=options.case,
        tags=options.tag,
        repeats=options.repeats,
        by=options.by,
    )
    suites = [file.suite for file in files if file.suite is not None]
    ids = {case.id for suite in suites for case in suite.cases}
    tags = {tag for suite in suites for case in suite.cases for tag in (*suite.tags, *case.tags)}
    # A case that was renamed must not drop out of a check unnoticed, so every word has to mean something.
    if _all_known("case", options.case, ids) and _all_known("tag", options.tag, tags):
        if runs:
            known = _all_resolved(options.model, files, program) and judge_is_known(options.judge, files, program)
            return (files, runs) if known else None
        complain("no case selected: no case fits all of the options" if ids else "no case selected: there is none")
    return None


def _all_resolved(models: Sequence[str], files: Sequence[SuiteFile], program: Program) -> bool:
    """Whether it is known how to reach the models of `--model`, before any run begins."""
    problems: dict[str, None] = {}
    built_in = BuiltInModels()
    for name in models:
        if is_built_in(name):
            try:
                built_in.check(name, Path())
            except ModelError as error:
                problems[str(error)] = None
            continue
        for folder in {file.path.parent for file in files}:
            try:
                program.models.resolve(name, folder, by_suite=False)
            except ConfigError as error:
                problems |= dict.fromkeys(error.problems)
    for problem in problems:
        complain(problem, program.secrets)
    return not problems


def _all_known(kind: str, wanted: Sequence[str], known: set[str]) -> bool:
    for word in wanted:
        if word not in known:
            some = ", ".join(sorted(known)[:KNOWN_SHOWN_MAX]) or "none"
            more = ", …" if len(known) > KNOWN_SHOWN_MAX else ""
            complain(f"no case selected: there is no {kind} {word!r}; there are {some}{more}")
    return known.issuperset(wanted)


def suite_names(files: Sequence[SuiteFile]) -> dict[str, str]:
    """What sound suites are called, by their paths."""
    return {str(file.path): file.suite.name for file in files if file.suite is not None}
