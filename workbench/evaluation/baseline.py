"""A baseline: an earlier batch with which a later batch is compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import chain, islice
from pathlib import Path

from workbench.analysis.batch_diff import BatchDiff, ChangeKind, batch_diff
from workbench.analysis.comparison import CellKey
from workbench.config.folders import history_option, path_in, project_folder
from workbench.dataclasses import dataclass
from workbench.engine.plan import same_value
from workbench.evaluation.instruction_changes import MAX_RUNS, first_runs, notes_on_instructions, stored_start
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
from workbench.suite.model import Case, Suite, by_name
from workbench.suite.suite_file import SuiteFile, cases_by_id, parse_suite, suites_of
from workbench.trajectory.events import ToolDefinition
from workbench.trajectory.recording import RecordingError

# Changes to suites since the baseline. They are shown with the verdict, because they may explain it.

_MAX_NAMED = 5
"""The most cases or tools in one note."""


def changed_suites(
    history: History, baseline: BatchRow, suites: Iterable[SuiteRef], same_suites: SameSuites
) -> dict[SuiteRef, Suite | None]:
    """Return the suites whose text has changed since the baseline, each with its earlier version.

    The earlier version is `None` if its text cannot be read."""
    now = {suite.key: suite for suite in suites}
    found: dict[SuiteRef, Suite | None] = {}
    for then in baseline.suites:
        suite = now.get(same_suites.get(then.key, then.key))
        if suite is not None and suite.hash != then.hash:
            found[suite] = None
            with suppress(DamagedError):
                found[suite] = parse_suite(history.suite_text(then), then.file).suite
    return found


def lost_expectations(before: Suite | None, after: Suite) -> Iterator[str]:
    """Yield the ids of cases that had expectations before and have none now.

    If `before` is `None`, the earlier text cannot be read, and every case without expectations is yielded."""
    expected = set()
    if before is not None:
        for case in before.cases:
            if not case.expects_nothing:
                expected.add(case.id)
    for case in after.cases:
        if case.expects_nothing and (before is None or case.id in expected):
            yield case.id


def note_on_suite(path: str, before: Suite | None, after: Suite, urgent: Collection[str]) -> str | None:
    """Return a sentence on the changes to a suite; `None` if only comments or layout changed.

    Cases whose ids are in `urgent` are named first."""
    if before is None:
        return f"{path} changed since the baseline: its earlier text cannot be read"
    if parts := [*_differences(before, after, urgent)]:
        return f"{path} changed since the baseline: {'; '.join(parts)}"
    return None


def _differences(before: Suite, after: Suite, urgent: Collection[str]) -> Iterator[str]:
    if not same_value(before.model_copy(update={"cases": ()}), after.model_copy(update={"cases": ()})):
        yield "settings of all cases"
    then, now = cases_by_id(before), cases_by_id(after)
    found: dict[str, list[Case]] = {"changed": [], "added": [], "removed": []}
    for id_, case in now.items():
        if id_ not in then:
            found["added"].append(case)
        elif not same_value(then[id_], case):
            found["changed"].append(case)
    for id_, case in then.items():
        if id_ not in now:
            found["removed"].append(case)
    for how, cases in found.items():
        if cases:
            cases.sort(key=lambda case: case.id not in urgent)
            named = ", ".join(case.name for case in cases[:_MAX_NAMED])
            more = ""
            if len(cases) > _MAX_NAMED:
                more = ", …"
            yield f"{counted(len(cases), 'case')} {how} ({named}{more})"


# Changes to tool definitions between two batches. They are shown with the broken cases because they may be the cause.

_MAX_COMPARED_CASES = 50
"""The most cases whose tools are compared. Reading the tools of a case from the history takes some milliseconds."""

OfferedTools = Callable[[CellKey], Sequence[ToolDefinition]]
"""Returns the tools offered to the first run of a case, by the case's key in the later batch. If they are unknown, it
returns an empty sequence."""


def notes_on_tools(diff: BatchDiff, before: OfferedTools, after: OfferedTools) -> Iterator[str]:
    """Yield a sentence that names the tools whose definitions changed in cases that broke, if there are any."""
    broke = compared_cases(diff)
    found: Counter[str] = Counter()
    cases = 0
    for key in broke:
        then, now = before(key), after(key)
        if then and now and (changed := _changes(then, now)):
            found.update(changed)
            cases += 1
    if found:
        named = ", ".join(name for name, _ in found.most_common(_MAX_NAMED))
        more = ""
        if len(found) > _MAX_NAMED:
            more = f", and {counted(len(found) - _MAX_NAMED, 'other')}"
        of = f"{counted_of(cases, len(broke), 'case')} that broke"
        yield f"offered different tools in {of}: {named}{more}"


def compared_cases(diff: BatchDiff) -> dict[CellKey, None]:
    """Return the first cases that broke, whose tools are compared, as the keys of an ordered dictionary."""
    compared: dict[CellKey, None] = {}
    for change in diff.of("broke")[:_MAX_COMPARED_CASES]:
        compared[change.suite, change.case_id, change.model] = None
    return compared


def offered_tools(
    history: History, runs: RunTable, diff: BatchDiff, earlier_suites: SameSuites | None = None
) -> OfferedTools:
    """Return a function that finds the tools offered to the cases of a batch.

    For the earlier batch of a comparison, `earlier_suites` maps the keys of its suites to the suite keys of the later
    batch."""
    # All runs of a case were offered the same tools, so the first run is enough.
    wanted, first = compared_cases(diff), dict[CellKey, RunRow]()
    # If the batches have different models, the earlier batch stores the case under its own model.
    models = {}
    if diff.across is not None and earlier_suites is not None:
        models = dict([diff.across])
    for run in runs.of_cases({case_id for _, case_id, _ in wanted}):
        if run.figures is not None:
            suite = (earlier_suites or {}).get(run.suite.key, run.suite.key)
            key = suite, run.case_id, models.get(run.model, run.model)
            if key in wanted:
                first.setdefault(key, run)

    def offered(key: CellKey) -> Sequence[ToolDefinition]:
        if key not in first:
            return ()
        try:
            return history.recording(first[key]).trajectory.offered
        except (HistoryError, RecordingError):
            # The damaged run was already reported when the batch was read.
            return ()

    return offered


def _changes(before: Sequence[ToolDefinition], after: Sequence[ToolDefinition]) -> list[str]:
    old, new = by_name(before), by_name(after)
    changes = []
    for name in old:
        if name not in new:
            changes.append(f"{name} (gone)")
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
    """The runs of an earlier batch, for the comparison with a new batch.

    `suites` and `planned` describe the new batch. `suites` maps the path of each suite to its key in the history.
    `planned` are the cases and models that will run."""

    batch: BatchRow
    grading: Regrade | None
    runs: RunTable
    suites: Mapping[str, SuiteRef]
    same: SameSuites
    planned: frozenset[CellKey]
    fail_on: FailOn | None
    file: Path
    """The history's file."""
    definitions: Mapping[str, Suite] = field(repr=False)
    """The current suites as they are written, by path."""
    confirm: Confirm = "reruns"
    """How a broken case is confirmed before it decides the exit code."""
    confirm_writes: bool = False
    """Whether cases that executed tools with effects may be rerun."""

    @property
    def test_refusal(self) -> str | None:
        """Why a paired test against this baseline is impossible or invalid; `None` if it is possible and valid."""
        number = self.batch.number
        if Until.of(self.batch.settings) is not None:
            return f"batch {number} could stop early (--until), so a test against it would be invalid"
        # The models may differ, because a comparison may be between two models.
        cases = {(suite, case) for suite, case, _ in self.planned}
        for run in self.runs:
            if (self.same.get(run.suite.key, run.suite.key), run.case_id) in cases:
                return None
        return f"batch {number} has no case that is selected now: there is nothing to compare"

    def compare(self, results: Sequence[RunResult]) -> AgainstBaseline:
        """Compare the results of the batch with this baseline."""
        suites = {suite.key: suite for suite in self.suites.values()}
        with History(self.file) as history:
            changed = changed_suites(history, self.batch, self.suites.values(), self.same)
        defined = {}
        for path, suite in self.definitions.items():
            if path in self.suites:
                defined[self.suites[path]] = suite
        lost: set[tuple[str, str]] = set()
        for ref, then in changed.items():
            if ref in defined:
                lost |= {(ref.key, case) for case in lost_expectations(then, defined[ref])}
        before, after = self.runs.figures, RunTable(map(self._row, range(len(results)), results)).figures
        # A case without a run counts as unfinished. Otherwise, it would count as missing, and so as broken, although
        # the batch was only interrupted.
        not_yet = self.planned - {(run.suite, run.case_id, run.model) for run in after}
        diff = batch_diff(
            before, after, unfinished=(self.runs.unfinished, not_yet), same_suites=self.same, lost_cells=lost
        )
        suite_changes = []
        for ref, then in changed.items():
            if ref in defined and (note := note_on_suite(ref.path, then, defined[ref], _worse_cases(diff, ref.key))):
                suite_changes.append(one_line(note))
        notes: list[str] = []
        if diff.of("broke"):
            notes = self._notes_on_tools(diff, results)
        notes += self._notes_on_instructions(results)
        confirm: Confirm = "none"
        if self.fail_on is not None:
            confirm = self.confirm
        keys = {path: suite.key for path, suite in self.suites.items()}
        return AgainstBaseline(
            self.batch,
            self.grading,
            diff,
            suites,
            self.fail_on,
            notes=tuple(map(one_line, notes)),
            suite_changes=tuple(suite_changes),
            keys=keys,
            confirm=confirm,
        )

    def _notes_on_tools(self, diff: BatchDiff, results: Iterable[RunResult]) -> list[str]:
        wanted, now = compared_cases(diff), dict[CellKey, RunResult]()
        for result in results:
            if (key := (self.suites[result.suite].key, result.case_id, result.model)) in wanted:
                now.setdefault(key, result)
        with History(self.file) as history:
            earlier = offered_tools(history, self.runs, diff, self.same)

            def later(key: CellKey) -> Sequence[ToolDefinition]:
                if key not in now:
                    return ()
                return now[key].trajectory.offered

            return [*notes_on_tools(diff, earlier, later)]

    def _notes_on_instructions(self, results: Sequence[RunResult]) -> list[str]:
        with_more = set()
        for path, suite in self.definitions.items():
            if suite.servers or any(case.images for case in suite.cases):
                with_more.add(self.suites[path].key)
        now: dict[tuple[str, str], RunResult] = {}
        for result in islice(results, MAX_RUNS):
            key = self.suites[result.suite].key
            if key in with_more:
                now.setdefault((key, result.case_id), result)
        if not now:
            return []
        before, names = first_runs(self.runs, self.same), ("the baseline", "this batch")
        with History(self.file) as history:
            start_before = stored_start(history)
            return [*notes_on_instructions(before, now, start_before, lambda result: result.trajectory.start, names)]

    def _row(self, place: int, result: RunResult) -> RunRow:
        suite = self.suites[result.suite]
        named = (result.case_id, result.case_name, result.model, False, result.repeat, None, result.is_fork)
        return RunRow(0, 0, place, suite, *named, summary_of(result, suite=suite.key))


def _worse_cases(diff: BatchDiff, suite: str) -> set[str]:
    worse = set()
    for change in chain.from_iterable(map(diff.of, _WORSE)):
        if change.suite == suite:
            worse.add(change.case_id)
    return worse


def baseline_of(which: str, file: Path, plan: Plan, fail_on: FailOn | None) -> tuple[Baseline, list[str]]:
    """Return the stored batch `which` as the baseline of a plan, with its latest grades, and notices about it.

    `file` is the history. Raises HistoryError if there is no such batch, or if it has no run of the planned cases."""
    home = plan.program.environment.home
    suites = {str(each.path): _as_stored(each, home) for each in plan.files}
    planned = set()
    for run in plan.runs:
        planned.add((suites[str(run.file.path)].key, run.case.id, run.model))
    # A resumed batch is compared as a whole, including its earlier runs.
    for over in plan.finished_figures.values():
        if over.suite in suites:
            planned.add((suites[over.suite].key, over.case_id, over.model))
    resumed = None
    if plan.resumed is not None:
        resumed = plan.resumed.batch.number
    return _baseline(which, file, suites, frozenset(planned), suites_of(plan.files), fail_on, resumed)


def baseline_of_batch(
    which: str,
    file: Path,
    batch: BatchRow,
    runs: Iterable[RunRow],
    suites: Mapping[str, Suite],
    fail_on: FailOn | None,
) -> tuple[Baseline, list[str]]:
    """Return the stored batch `which` as the baseline of another stored batch, and notices about it.

    `batch`, its `runs`, and `suites` (by path, as they were then) belong to the later batch. Raises HistoryError like
    `baseline_of`."""
    planned = frozenset((run.suite.key, run.case_id, run.model) for run in runs)
    known = batch.suites_by_path
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
        grading = next(reversed(history.gradings(batch.number)), None)
        runs = history.runs(batch.number, grading)
    same = same_suites(batch.suites, suites.values())
    known: dict[str, set[str]] = {}
    models: set[str] = set()
    for suite_key, case_id, model in planned:
        known.setdefault(suite_key, set()).add(case_id)
        models.add(model)
    whole = set()
    for path, suite in cases.items():
        if known.get(suites[path].key, set()).issuperset(cases_by_id(suite)):
            whole.add(suites[path].key)
    selected = RunTable(_selected(runs, same, known, whole))
    if not selected:
        none = f"batch {batch.number} has no run of the selected cases, so it cannot be their baseline"
        raise HistoryError(none + _renamed(batch.suites, suites.values()))
    notices = [*later_runs(batch, grading, selected, history_option(file))]
    before = {run.model for run in selected}
    # If each batch has a single model, these two models are compared. With more models, it would be a guess which
    # models belong together.
    if models.isdisjoint(before) and not len(models) == len(before) == 1:
        raise HistoryError(
            f"batch {batch.number} cannot be the baseline: it has the models {', '.join(sorted(before))}, but the "
            f"selected models are {', '.join(sorted(models))}"
        )
    return Baseline(batch, grading, selected, suites, same, planned, fail_on, file, cases), notices


def _selected(
    runs: Iterable[RunRow],
    same_suites: SameSuites,
    planned: Mapping[str, Collection[str]],
    whole_suites: Collection[str],
) -> Iterable[RunRow]:
    """Yield the runs of a baseline that can be compared with the planned runs.

    `planned` has the ids of planned cases by suite. `whole_suites` names the suites of which all cases are planned. All
    runs of these suites are yielded: if the suite no longer has a case, the comparison reports the case as removed."""
    for run in runs:
        key = same_suites.get(run.suite.key, run.suite.key)
        if not run.is_fork and (key in whole_suites or run.case_id in planned.get(key, ())):
            yield run


def _renamed(before: Iterable[SuiteRef], after: Iterable[SuiteRef]) -> str:
    now = by_name(after)
    moved = []
    for then in before:
        if then.name in now:
            moved.append(f"{then.name} was at {then.path} and is now at {now[then.name].path}")
    if not moved:
        return ""
    return f" ({one_line('; '.join(moved))}: a suite at a different path is a different suite)"


def _as_stored(file: SuiteFile, home: Path | None) -> SuiteRef:
    assert file.suite is not None
    project = project_folder(file.path.parent, home)
    return SuiteRef(0, str(project), path_in(project, file.path), file.hash, file.suite.name, len(file.suite.cases))
