"""The batch that a run is compared with, known before the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from workbench.analysis.batch_diff import BatchDiff, ChangeKind, batch_diff
from workbench.analysis.comparison import CellKey
from workbench.config.folders import history_option, path_in, project_folder
from workbench.dataclasses import dataclass
from workbench.engine.plan import same_value
from workbench.evaluation.plan import Plan
from workbench.grading.grade import RunResult
from workbench.grading.run_summary import summary_of
from workbench.history.history import History
from workbench.history.records import (
    BatchRow,
    DamagedError,
    HistoryError,
    Regrade,
    RunRow,
    SameSuites,
    SuiteRef,
    Until,
    same_suites,
)
from workbench.history.run_table import RunTable
from workbench.numerals import counted, counted_of
from workbench.show.views.baseline import AgainstBaseline, Confirm, FailOn
from workbench.show.views.batch import later_runs
from workbench.show.visible import one_line
from workbench.suite.model import Case, Suite
from workbench.suite.suite_file import SuiteFile, parse_suite
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.recording import RecordingError

# What changed in suites since a baseline, as a reason beside the verdict.

_MAX_NAMED = 5


def changed_suites(
    history: History, baseline: BatchRow, suites: Iterable[SuiteRef], same: SameSuites
) -> dict[SuiteRef, Suite | None]:
    """Return the suites of now that have another text than in the baseline, each as it was then; `None` where that
    cannot be read."""
    now = {suite.key: suite for suite in suites}
    found: dict[SuiteRef, Suite | None] = {}
    for then in baseline.suites:
        suite = now.get(same.get(then.key, then.key))
        if suite is not None and suite.hash != then.hash:
            found[suite] = None
            with suppress(DamagedError):
                found[suite] = parse_suite(history.suite_text(then), then.file).suite
    return found


def lost_expectations(before: Suite | None, after: Suite) -> Iterator[str]:
    """Yield the ids of the cases that expect nothing any more."""
    expected = {case.id for case in before.cases if not case.expects_nothing} if before is not None else None
    for case in after.cases:
        if case.expects_nothing and (expected is None or case.id in expected):
            yield case.id


def note_on_suite(path: str, before: Suite | None, after: Suite, urgent: Collection[str]) -> str | None:
    """Return what is different in a suite that has changed; nothing where only comments and layout are.

    Of its cases, `urgent` ones are named first."""
    parts = [*_differences(before, after, urgent)] if before is not None else ["its earlier text cannot be read"]
    return f"{path} changed since the baseline: {'; '.join(parts)}" if parts else None


def _differences(before: Suite, after: Suite, urgent: Collection[str]) -> Iterator[str]:
    if not same_value(before.model_copy(update={"cases": ()}), after.model_copy(update={"cases": ()})):
        yield "what all its cases share"
    then, now = ({case.id: case for case in suite.cases} for suite in (before, after))
    found: dict[str, list[Case]] = {
        "changed": [case for id_, case in now.items() if id_ in then and not same_value(then[id_], case)],
        "added": [case for id_, case in now.items() if id_ not in then],
        "removed": [case for id_, case in then.items() if id_ not in now],
    }
    for how, cases in found.items():
        if cases:
            cases.sort(key=lambda case: case.id not in urgent)
            named = ", ".join(case.name for case in cases[:_MAX_NAMED])
            more = ", …" if len(cases) > _MAX_NAMED else ""
            yield f"{counted(len(cases), 'case')} {how} ({named}{more})"


# Definitions of tools that changed between two batches, as a reason beside the cases that broke.

_MAX_LOOKED_AT = 50
"""So many of the cases that broke are looked at: each is read from the history."""

Offered = Callable[[CellKey], Sequence[ToolDefinition] | None]
"""The tools that the first run of a case was offered, by what the case is known as in the later batch; `None` where
that is not known."""


def notes_on_tools(diff: BatchDiff, before: Offered, after: Offered) -> Iterator[str]:
    """Yield which definitions changed in how many of the cases that broke; nothing where none did."""
    broke = looked_at(diff)
    found: Counter[str] = Counter()
    cases = 0
    for key in broke:
        then, now = before(key), after(key)
        changed = _changes(then, now) if then and now else []
        found.update(changed)
        cases += bool(changed)
    if found:
        named = ", ".join(what for what, _ in found.most_common(_MAX_NAMED))
        more = f", and {counted(len(found) - _MAX_NAMED, 'other')}" if len(found) > _MAX_NAMED else ""
        of = f"{counted_of(cases, len(broke), 'case')} that broke"
        yield f"offered other tools in {of}: {named}{more}"


def looked_at(diff: BatchDiff) -> dict[CellKey, None]:
    """Return the cases that broke whose tools are looked at."""
    return dict.fromkeys((each.suite, each.case_id, each.model) for each in diff.of("broke")[:_MAX_LOOKED_AT])


def offered_in(history: History, runs: RunTable, diff: BatchDiff, earlier: SameSuites | None = None) -> Offered:
    """Return what tells the tools of those runs of a batch that are looked at; of the earlier one, `earlier` has its
    suites in the later one."""
    wanted, first = looked_at(diff), dict[CellKey, RunRow]()
    for run in runs.of_cases({case_id for _, case_id, _ in wanted}):
        if run.figures is not None:
            across = diff.across is not None and earlier is not None and run.model == diff.across[0]
            model = diff.across[1] if across and diff.across is not None else run.model
            key = (earlier or {}).get(run.suite.key, run.suite.key), run.case_id, model
            if key in wanted:
                first.setdefault(key, run)

    def offered(key: CellKey) -> Sequence[ToolDefinition] | None:
        if key not in first:
            return None
        try:
            start = history.recording(first[key]).trajectory.start
        except (HistoryError, RecordingError):  # what is damaged is told of elsewhere
            return None
        return start.tools if start is not None else None

    return offered


def _changes(before: Sequence[ToolDefinition], after: Sequence[ToolDefinition]) -> list[str]:
    old, new = ({tool.name: tool for tool in tools} for tools in (before, after))
    changes = [f"{name} (gone)" for name in old if name not in new]
    for name, tool in new.items():
        if (then := old.get(name)) is None:
            changes.append(f"{name} (new)")
            continue
        parts = ("description", "parameters", "annotations")
        if altered := [part for part in parts if getattr(then, part) != getattr(tool, part)]:
            changes.append(f"{name} ({', '.join(altered)})")
    return changes


_WORSE: tuple[ChangeKind, ...] = ("broke", "missing", "gone")


@dataclass(frozen=True)
class Baseline:
    """A baseline, and of its runs those that belong to what is selected now.

    `suites` are those of today, by their paths, as the history has them; `planned` are the cases to come."""

    batch: BatchRow
    grading: Regrade | None
    runs: RunTable
    suites: Mapping[str, SuiteRef]
    same: SameSuites
    planned: frozenset[CellKey]
    fail_on: FailOn | None
    file: Path
    """The history."""
    definitions: Mapping[str, Suite] = field(repr=False)
    """The suites of today as they are defined, by their paths."""
    confirm: Confirm = "reruns"
    """How it is made sure that a case broke, where that decides."""
    confirm_writes: bool = False
    """Whether cases that executed tools which change something are made again too."""

    @property
    def why_no_test(self) -> str | None:
        """Why no paired test of what is planned against it can be made or would hold, if so."""
        number = self.batch.number
        if Until.of(self.batch.settings) is not None:
            return f"batch {number} could stop early (--until), so no test against it would hold"
        cases = {(suite, case) for suite, case, _ in self.planned}
        if not any((self.same.get(run.suite.key, run.suite.key), run.case_id) in cases for run in self.runs):
            return f"batch {number} has no case that is selected now: there is nothing to compare"
        return None

    def against(self, results: Sequence[RunResult]) -> AgainstBaseline:
        """Compare what was run with it."""
        with History(self.file) as history:
            changed = changed_suites(history, self.batch, self.suites.values(), self.same)
        pairs = {suite: (then, now) for suite, then in changed.items() if (now := self._definition(suite)) is not None}
        lost = {(suite.key, case) for suite, (then, now) in pairs.items() for case in lost_expectations(then, now)}
        before, after = self.runs.figures, RunTable(map(self._row, range(len(results)), results)).figures
        not_yet = self.planned - {(run.suite, run.case_id, run.model) for run in after}
        diff = batch_diff(before, after, unfinished=(self.runs.unfinished, not_yet), same=self.same, lost=lost)
        suites = {suite.key: suite for suite in self.suites.values()}
        worse = {(each.suite, each.case_id) for kind in _WORSE for each in diff.of(kind)}
        differences = [
            note
            for suite, (then, now) in pairs.items()
            if (note := note_on_suite(suite.path, then, now, {case for key, case in worse if key == suite.key}))
        ]
        return AgainstBaseline(
            self.batch,
            self.grading,
            diff,
            suites,
            self.fail_on,
            notes=tuple(map(one_line, self._notes_on_tools(diff, results) if diff.of("broke") else ())),
            suite_changes=tuple(map(one_line, differences)),
            keys={path: suite.key for path, suite in self.suites.items()},
            confirm=self.confirm if self.fail_on is not None else "none",
        )

    def _notes_on_tools(self, diff: BatchDiff, results: Iterable[RunResult]) -> list[str]:
        wanted, now = looked_at(diff), dict[CellKey, RunResult]()
        for result in results:
            if (key := (self.suites[result.suite].key, result.case_id, result.model)) in wanted:
                now.setdefault(key, result)
        with History(self.file) as history:
            earlier = offered_in(history, self.runs, diff, self.same)
            return [*notes_on_tools(diff, earlier, lambda key: _offered_to(now.get(key)))]

    def _definition(self, suite: SuiteRef) -> Suite | None:
        path = next((path for path, each in self.suites.items() if each == suite), "")
        return self.definitions.get(path)

    def _row(self, place: int, result: RunResult) -> RunRow:
        suite = self.suites[result.suite]
        named = (result.case_id, result.case_name, result.model, False, result.repeat, None, result.is_fork)
        return RunRow(0, 0, place, suite, *named, summary_of(result, suite=suite.key))


def _offered_to(result: RunResult | None) -> Sequence[ToolDefinition] | None:
    start = result.trajectory.start if result is not None else None
    return start.tools if start is not None else None


def baseline_of(which: str, file: Path, plan: Plan, fail_on: FailOn | None = None) -> tuple[Baseline, list[str]]:
    """Return a batch of a history as the baseline of a plan, as it was graded last, and what is to be known of it.

    Raises HistoryError when there is none, or when it has nothing of what is planned."""
    home = plan.program.environment.home
    suites = {str(each.path): _as_stored(each, home) for each in plan.files}
    planned = frozenset((suites[str(run.file.path)].key, run.case.id, run.model) for run in plan.runs)
    over = plan.resumed.over.values() if plan.resumed is not None else ()
    planned |= {(suites[run.suite].key, run.case_id, run.model) for run in over if run.suite in suites}
    cases = {str(file.path): file.suite for file in plan.files if file.suite is not None}
    resumed = plan.resumed.batch.number if plan.resumed is not None else None
    return _baseline(which, file, suites, planned, cases, fail_on, resumed)


def baseline_of_batch(
    which: str,
    file: Path,
    batch: BatchRow,
    runs: Iterable[RunRow],
    suites: Mapping[str, Suite],
    fail_on: FailOn | None = None,
) -> tuple[Baseline, list[str]]:
    """Return a batch of a history as the baseline of another one, as `baseline_of` does for a plan; `suites` are those
    of the latter as they were, by their paths."""
    planned = frozenset((run.suite.key, run.case_id, run.model) for run in runs)
    known = {str(suite.file): suite for suite in batch.suites}
    return _baseline(which, file, known, planned, suites, fail_on, batch.number)


def _baseline(
    which: str,
    file: Path,
    suites: Mapping[str, SuiteRef],
    planned: frozenset[CellKey],
    cases: Mapping[str, Suite],
    fail_on: FailOn | None,
    itself: int | None,
) -> tuple[Baseline, list[str]]:
    with History(file) as history:
        batch = history.batch(which)
        if batch.number == itself:
            raise HistoryError(f"batch {batch.number} is this batch itself and cannot be its own baseline")
        if batch.kind == "reruns":
            which = f"batch {batch.number} has reruns of cases that broke in batch {batch.confirms}"
            raise HistoryError(f"{which}, and cannot be a baseline")
        gradings = history.gradings(batch.number)
        grading = gradings[-1] if gradings else None
        runs = history.runs(batch.number, grading)
    same = same_suites(batch.suites, suites.values())
    known = {cell[:2] for cell in planned}
    whole = {
        suites[path].key
        for path, suite in cases.items()
        if all((suites[path].key, case.id) in known for case in suite.cases)
    }
    selected = RunTable(_selected((run for run in runs if not run.is_fork), same, planned, whole))
    if not selected:
        none = f"batch {batch.number} has no run of the selected cases, so it cannot be their baseline"
        raise HistoryError(none + _renamed(batch.suites, suites.values()))
    notices = [*later_runs(batch, grading, selected, history_option(file))]
    models, before = {model for _, _, model in planned}, {run.model for run in selected}
    if models.isdisjoint(before) and not len(models) == len(before) == 1:
        raise HistoryError(
            f"batch {batch.number} cannot be the baseline: it has the models {', '.join(sorted(before))}, but the "
            f"selected models are {', '.join(sorted(models))}"
        )
    return Baseline(batch, grading, selected, suites, same, planned, fail_on, file, cases), notices


def _selected(
    runs: Iterable[RunRow], same: SameSuites, planned: frozenset[CellKey], whole: Collection[str]
) -> Iterable[RunRow]:
    """Return the runs of a baseline that what is planned can be held against.

    Of a suite all of whose cases are planned, which is in `whole`, that is all: what is not planned any more is gone.
    """
    cases = {(suite, case) for suite, case, _ in planned}
    return (
        run for run in runs if (key := same.get(run.suite.key, run.suite.key)) in whole or (key, run.case_id) in cases
    )


def _renamed(before: Iterable[SuiteRef], after: Iterable[SuiteRef]) -> str:
    """Return which suites of today have the name of one that was at another path, if any."""
    now = {suite.name: suite for suite in after}
    moved = [
        f"{then.name} was at {then.path} and is now at {now[then.name].path}" for then in before if then.name in now
    ]
    return f" ({one_line('; '.join(moved))}: a suite at a different path is a different suite)" if moved else ""


def _as_stored(file: SuiteFile, home: Path | None) -> SuiteRef:
    """Return a suite of today as the history would store it."""
    assert file.suite is not None
    project = project_folder(file.path.parent, home)
    return SuiteRef(0, str(project), path_in(project, file.path), file.hash, file.suite.name, len(file.suite.cases))
