"""Fault injection: choose faults in a dialog, fork runs so that a tool returns a fault, and show the reactions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult

from workbench.analysis.estimate import estimate
from workbench.analysis.fault_matrix import FAULT_DURATIONS, FAULTS, FaultDuration, FaultName
from workbench.authoring.case_list import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, plan_runs, sends_same_requests
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.providers.built_in import is_built_in
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, with_margin
from workbench.show.views.values import estimate_text
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import ChoiceList, Dialog, Option, TextView, keys_line
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.record import RunRecord, results_of
from workbench.tui.tree.selection import go_to_run

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.analysis.fault_matrix import FaultMatrix, FaultTrial
    from workbench.grading.run_summary import RunSummary
    from workbench.lab.faults import FaultOptions, FaultPlan, PlannedTrial
    from workbench.tui.shell.workbench import Workbench


Cases = Sequence[tuple[OpenSuite, tuple[str, ...]]]
"""Suites with the keys of some of their cases."""


@dataclass(frozen=True)
class _Found:
    """The runs that the trials fork.

    `finished_runs` are finished runs, each with a plan for running it again. `missing` are planned runs that must
    finish first."""

    finished_runs: tuple[tuple[PlannedRun, RunRecord], ...]
    missing: tuple[PlannedRun, ...]

    @property
    def origins(self) -> Mapping[str, RunRecord]:
        return {run.run_id: run for _, run in self.finished_runs}


class FaultTrials:
    """Injects faults into the tools of some cases: asks for faults, runs the forks, and shows the models' reactions."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._selection = app.selection
        self._delivered = asyncio.Event()
        self._last: tuple[FaultMatrix, Mapping[str, RunRecord], str] | None = None
        """The last matrix, its runs by id, and the name of the suite, folder or case."""
        app.services.run_update_callbacks.append(self._delivered.set)

    def begin(self) -> None:
        """Ask which faults to inject, run the trials, and show the matrix."""
        self._app.work(self._break(), group="start")

    async def _break(self) -> None:
        from workbench.lab.faults import FaultOptions
        from workbench.tui.faults.trials import SHOW_LAST, FaultsDialog

        cases, place = self._selection.runnable_below(self._selection.row), one_line(self._selection.title)
        found = self._runs_to_fault(cases)
        everything = await self._planned(found, FaultOptions(FAULTS, lasts=FAULT_DURATIONS))
        if not found.missing and not everything.trials:
            self._refused(_reasons(each for each in everything.untried if not each.tool))
            return
        trials = everything.trials
        question = FaultsDialog(
            lambda choice: self._choice_text(found, trials, choice), has_last=self._last is not None
        )
        choice = await self._app.ask(question)
        if choice is None:
            return
        if choice == SHOW_LAST:
            self._show()
            return
        if found.missing and (why_not := await self._run_and_wait(found.missing)) is not None:
            self._refused(why_not)
            return
        if found.missing:
            found = self._runs_to_fault(cases)
        plan = await self._planned(found, FaultOptions(choice[0], lasts=choice[1]))
        if not plan.plan.runs:
            self._refused(_reasons(plan.untried))
            return
        origins = found.origins
        begun = {}
        for each in plan.trials:
            if each.run is not None:
                begun[each.run.run_id] = origins[each.origin.run_id]
        if (why_not := await self._app.services.starter.run_forks(plan.plan, begun)) is not None:
            self._refused(why_not)
            return
        # The records are collected now, because active runs can be found by id, but ended runs cannot.
        records = {}
        for record in self._selection.book.active_runs():
            if record.run_id in begun:
                records[record.run_id] = record
        await self._ended(lambda: any(run.run_id in begun for run in self._selection.book.active_runs()))
        matrix = plan.matrix(results_of(records.values()))
        self._last = self._app.program.secrets.redacted(matrix), records, place
        if self._app.shows_main:
            self._show()
        else:
            self._app.announce("All faults were tried: 'Inject faults' in the palette shows the matrix")

    def _show(self) -> None:
        from workbench.tui.faults.screen import FaultsScreen

        assert self._last is not None
        matrix, records, place = self._last

        def go(run_id: str | None) -> None:
            if run_id is not None:
                go_to_run(self._selection, self._app.main, self._app, records[run_id])

        self._app.show(FaultsScreen(self._app, matrix, place), go)

    def _refused(self, why: str) -> None:
        self._app.announce(f"No fault was tried: {why}", "warned", GLYPHS.warned)

    def _runs_to_fault(self, cases: Cases) -> _Found:
        # A new run of a case replaces its runs with all models. Therefore, if one model lacks a run, the case is run
        # with all its models.
        at_hand: list[tuple[PlannedRun, RunRecord]] = []
        missing: list[PlannedRun] = []
        for suite, keys in cases:
            file = suite.runnable(keys) or suite.file
            runs = plan_runs([file], models=self._selection.models, case_ids=keys, repeats=1)
            of_cases: dict[str, list[PlannedRun]] = {}
            for run in runs:
                if run.case.skip is None:
                    of_cases.setdefault(run.case.id, []).append(run)
            for planned in of_cases.values():
                there = []
                for run in planned:
                    record = self._finished_run(run)
                    if record is not None:
                        there.append((replace(run, run_id=record.run_id), record))
                if len(there) == len(planned):
                    at_hand += there
                else:
                    missing += planned
        return _Found(tuple(at_hand), tuple(missing))

    def _finished_run(self, planned: PlannedRun) -> RunRecord | None:
        """Return a finished run that can be forked in place of a planned run. Prefer a run with a good status."""
        found: RunRecord | None = None
        for run in self._selection.book.counting_runs((planned.file.path, planned.case.id)):
            if not _can_replace(run, planned):
                continue
            if run.status is not None and run.status.good:
                return run
            found = found or run
        return found

    async def _planned(self, found: _Found, options: FaultOptions) -> FaultPlan:
        from workbench.lab.faults import plan_faults

        plan = self._app.services.starter.plan([run for run, _ in found.finished_runs])
        results = results_of(found.origins.values())
        return await in_background(lambda: plan_faults(plan, results, options))

    def _choice_text(self, found: _Found, trials: Iterable[PlannedTrial], choice: Choice) -> str:
        faults, lasting = choice
        # A fork is estimated as a whole run of its case and model. This is an upper bound, because a fork replays the
        # steps before the fault.
        cells: Counter[CellKey] = Counter()
        tried = 0
        for each in trials:
            if each.fault in faults and each.lasts in lasting:
                tried += 1
                cells[_cell(each.origin)] += 1
        cells.update(map(_cell, found.missing))
        before: dict[CellKey, list[RunSummary]] = {_cell(run): [] for run in found.missing}
        for run, record in found.finished_runs:
            if record.figures is not None:
                before[_cell(run)] = [record.figures]
        parts = []
        if found.finished_runs:
            forks = counted(tried, "fork")
            parts.append(f"{counted(len(found.finished_runs), 'run')} at hand: {forks}, each at a tool result.")
        if found.missing:
            first, then = counted(len(found.missing), "run"), counted(len(faults) * len(lasting), "fork")
            parts.append(f"{first} first, then {then} for each tool that a run calls.")
        takes = estimate_text(estimate(cells.items(), before, is_free=is_built_in))
        if takes:
            parts.append(f"{takes[:1].upper()}{takes[1:]}. Forks take less: earlier steps are replayed.")
        return " ".join(parts)

    async def _run_and_wait(self, runs: Sequence[PlannedRun]) -> str | None:
        """Start runs and wait until they have ended. Return why no run was started, `None` if runs were started."""
        cases: set[CaseKey] = set()
        wanted: list[tuple[Path, str, str]] = []
        for run in runs:
            cases.add((run.file.path, run.case.id))
            wanted.append((run.file.path, run.case.id, run.model))
        why = await self._app.services.starter.run_targets(wanted, 1)
        if not self._selection.book.any_active(cases):
            return why or "nothing was run"
        await self._ended(lambda: self._selection.book.any_active(cases))
        return None

    async def _ended(self, is_under_way: Callable[[], bool]) -> None:
        # Events are delivered only during an `await`. There is none between the check and `clear`, so no delivery is
        # missed.
        while is_under_way():
            self._delivered.clear()
            await self._delivered.wait()


def _can_replace(run: RunRecord, planned: PlannedRun) -> bool:
    """Return whether a finished run can be used in place of a planned run.

    The run must be complete, and its requests to the model must be those that the planned run would send."""
    assert planned.file.suite is not None
    result = run.result
    if result is None or run.model != planned.model or run.status in (None, Status.ERROR, Status.STOPPED):
        return False
    if not sends_same_requests(run.original_plan, planned.file.suite, planned.written):
        return False
    # Redacted arguments of a call are lost, and without them the run cannot be replayed.
    return not result.has_redacted_calls


def _reasons(untried: Iterable[FaultTrial]) -> str:
    reasons = dict.fromkeys(one_line(f"{each.case_name}: {each.why}") for each in untried)
    return "; ".join(reasons) or "no run called a tool"


def _cell(run: PlannedRun) -> CellKey:
    return str(run.file.path), run.case.id, run.model


Lasting = tuple[FaultDuration, ...]
_LASTINGS: tuple[tuple[str, Lasting], ...] = (
    ("once", ("once",)),
    ("for good: all further calls of the tool fail too", ("for good",)),
    ("both: once, and for good", FAULT_DURATIONS),
)

Choice = tuple[tuple[FaultName, ...], Lasting]
"""The faults to inject, and how long they last."""

SHOW_LAST: Choice = ((), ())
"""The choice of the last matrix in place of new trials."""


class FaultsDialog(Dialog[Choice]):
    """A dialog that asks which faults to inject. `says` returns a text about the cost of a choice."""

    TITLE_LINE: ClassVar[str] = "Inject faults"
    DEFAULT_CSS = "FaultsDialog > Vertical { width: 84; }"

    def __init__(self, says: Callable[[Choice], str], *, has_last: bool) -> None:
        super().__init__(keys_line(("Enter", "choose"), ("Esc", "leave")))
        self._choice_text = says
        self._has_last = has_last
        self._faults = set(FAULTS)
        self._lasting_index = 0

    def body(self) -> ComposeResult:
        yield TextView(self._lines, "reading")
        yield ChoiceList(self._options(), widget_id="choices")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#choices"))

    @property
    def _choice(self) -> Choice:
        return tuple(fault for fault in FAULTS if fault in self._faults), _LASTINGS[self._lasting_index][1]

    def _lines(self, width: int) -> list[Line]:
        text = self._choice_text(self._choice) if self._faults else "No fault is chosen."
        return [EMPTY, *with_margin(text, width), EMPTY]

    def _options(self) -> list[Option]:
        options = [Option("run the trials")]
        if self._has_last:
            options.append(Option("show the last matrix"))
        options.append(Option(f"lasts  {_LASTINGS[self._lasting_index][0]}"))
        options += [Option(fault, checked=fault in self._faults) for fault in FAULTS]
        return options

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        # Row 0 runs the trials. The optional next row shows the last matrix, and is not counted in `at`. Then come the
        # row of the duration, with `at` 1, and the rows of the faults.
        at = event.index - self._has_last
        if event.index == 0:
            if self._faults:
                self.dismiss(self._choice)
        elif at == 0:
            self.dismiss(SHOW_LAST)
        elif at == 1:
            self._lasting_index = (self._lasting_index + 1) % len(_LASTINGS)
        else:
            self._faults ^= {FAULTS[at - 2]}
        choices = self.query_one("#choices", ChoiceList)
        choices.options = self._options()
        choices.repaint()
        self.query_one("#reading", TextView).rebuild_lines(from_top=True)
