"""Injects faults into results of tools: runs at hand are forked at faulty results, others are made first."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult

from workbench.analysis.estimate import estimate
from workbench.analysis.fault_matrix import FAULTS, LASTS, FaultName, Lasts
from workbench.authoring.case_list import CaseKey
from workbench.authoring.open_suite import OpenSuite
from workbench.dataclasses import dataclass
from workbench.engine.plan import PlannedRun, plan_runs, same_question
from workbench.grading.status import Status
from workbench.numerals import counted
from workbench.providers.built_in import is_built_in
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, with_margin
from workbench.show.views.values import estimate_text
from workbench.show.visible import one_line
from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, ReadLines, keys_line
from workbench.tui.kit.stage import in_background
from workbench.tui.run_book.record import RunRecord
from workbench.tui.tree.selection import go_to_run

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.analysis.fault_matrix import FaultMatrix
    from workbench.grading.run_summary import RunSummary
    from workbench.lab.faults import FaultOptions, FaultPlan, Trial
    from workbench.tui.shell.workbench import Workbench


Cases = Sequence[tuple[OpenSuite, tuple[str, ...]]]
"""Keys of cases by suite."""


@dataclass(frozen=True)
class _Found:
    """The runs of some cases: those at hand, as planned now, and those that have to be made first."""

    at_hand: tuple[tuple[PlannedRun, RunRecord], ...]
    missing: tuple[PlannedRun, ...]


class FaultTrials:
    """Tries faults of tools, and shows the reactions."""

    def __init__(self, app: Workbench) -> None:
        self._stage = app
        self._selection = app.selection
        self._delivered = asyncio.Event()
        self._last: tuple[FaultMatrix, Mapping[str, RunRecord], str] | None = None
        """The last matrix, its runs, and its scope."""
        app.services.runs_delivered.append(self._delivered.set)

    def begin(self) -> None:
        """Ask which faults to try, and try them."""
        self._stage.work(self._break(), group="start")

    async def _break(self) -> None:
        from workbench.lab.faults import FaultOptions
        from workbench.tui.faults.trials import SHOW_LAST, FaultsDialog

        cases, place = self._selection.runnable_below(self._selection.row), one_line(self._selection.title)
        found = self._found(cases)
        everything = await self._planned(found, FaultOptions(FAULTS, lasts=LASTS))
        why = "; ".join(
            {one_line(f"{each.case_name}: {each.why}"): None for each in everything.untried if not each.tool}
        )
        if not found.missing and not everything.trials:
            self._refused(why or "no run called a tool")
            return
        wanted = FaultsDialog(
            lambda choice: self._says(found, everything.trials, choice), has_last=self._last is not None
        )
        choice = await self._stage.ask(wanted)
        if choice is None:
            return
        if choice == SHOW_LAST:
            self._show()
            return
        if found.missing and (why_not := await self._made(found.missing)) is not None:
            self._refused(why_not)
            return
        found = self._found(cases) if found.missing else found
        plan = await self._planned(found, FaultOptions(choice[0], lasts=choice[1]))
        if not plan.plan.runs:
            why = "; ".join({one_line(f"{each.case_name}: {each.why}"): None for each in plan.untried})
            self._refused(why or "no run called a tool")
            return
        origins = {record.run_id: record for _, record in found.at_hand}
        begun = {}
        for each in plan.trials:
            if each.run is not None:
                begun[each.run.run_id] = origins[each.origin.run_id]
        if (why_not := await self._stage.services.starter.run_forks(plan.plan, begun)) is not None:
            self._refused(why_not)
            return
        records = {}
        for run in self._selection.book.under_way():
            if run.run_id in begun:
                records[run.run_id] = run
        await self._ended(lambda: any(run.run_id in begun for run in self._selection.book.under_way()))
        results = [result for record in records.values() if (result := record.result) is not None]
        self._last = self._stage.program.secrets.redacted(plan.matrix(results)), records, place
        if self._stage.shows_main:
            self._show()
        else:
            self._stage.announce("All faults were tried: 'Inject faults' in the palette shows the matrix")

    def _show(self) -> None:
        from workbench.tui.faults.screen import FaultsScreen

        assert self._last is not None
        matrix, records, place = self._last

        def go(run_id: str | None) -> None:
            if run_id is not None:
                go_to_run(self._selection, self._stage.main, self._stage, records[run_id])

        self._stage.show(FaultsScreen(self._stage, matrix, place), go)

    def _refused(self, why: str) -> None:
        self._stage.announce(f"No fault was tried: {why}", "warned", GLYPHS.warned)

    # What there is, and what it takes

    def _found(self, cases: Cases) -> _Found:
        """Return one run of each case and model.

        The runs of a case are at hand if there is one for each model: those that are made anew replace them all."""
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
                there = [(run, record) for run in planned if (record := self._at_hand(run)) is not None]
                if len(there) == len(planned):
                    at_hand += [(replace(run, run_id=record.run_id), record) for run, record in there]
                else:
                    missing += planned
        return _Found(tuple(at_hand), tuple(missing))

    def _at_hand(self, planned: PlannedRun) -> RunRecord | None:
        """Return a finished run of a planned case, a good one if there is any."""
        assert planned.file.suite is not None
        runs = [
            run
            for run in self._selection.book.runs_that_count((planned.file.path, planned.case.id))
            if run.model == planned.model
            and run.status not in (None, Status.ERROR, Status.STOPPED)
            and same_question(run.made, planned.file.suite, planned.written)
            and (result := run.result) is not None
            and not any(place.call is not None for place in result.redacted)
        ]
        return next((run for run in runs if run.status is not None and run.status.good), next(iter(runs), None))

    async def _planned(self, found: _Found, options: FaultOptions) -> FaultPlan:
        from workbench.lab.faults import plan_faults

        plan = self._stage.services.starter.plan([run for run, _ in found.at_hand])
        results = [result for _, record in found.at_hand if (result := record.result) is not None]
        return await in_background(lambda: plan_faults(plan, results, options))

    def _says(self, found: _Found, trials: Iterable[Trial], choice: Choice) -> str:
        """Show the cost of a choice."""
        faults, lasting = choice
        tried = []
        for each in trials:
            if each.fault in faults and each.lasts in lasting:
                tried.append(each)
        cells: Counter[CellKey] = Counter(_cell(each.origin) for each in tried)
        cells.update(_cell(run) for run in found.missing)
        before: dict[CellKey, list[RunSummary]] = {}
        for run in found.missing:
            before[_cell(run)] = []
        before |= {_cell(run): [record.figures] for run, record in found.at_hand if record.figures is not None}
        parts = []
        if found.at_hand:
            forks = counted(len(tried), "fork")
            parts.append(f"{counted(len(found.at_hand), 'run')} at hand: {forks}, each at a tool result.")
        if found.missing:
            first, then = counted(len(found.missing), "run"), counted(len(faults) * len(lasting), "fork")
            parts.append(f"{first} first, then {then} for each tool that a run calls.")
        takes = estimate_text(estimate(cells.items(), before, is_free=is_built_in))
        if takes:
            parts.append(f"{takes[:1].upper()}{takes[1:]}. Forks take less: earlier steps are replayed.")
        return " ".join(parts)

    # Running

    async def _made(self, runs: Sequence[PlannedRun]) -> str | None:
        """Make runs, and wait until they ended.

        Returns why not, if none was made."""
        cases: set[CaseKey] = {(run.file.path, run.case.id) for run in runs}
        why = await self._stage.services.starter.run_on([(run.file.path, run.case.id, run.model) for run in runs], 1)
        if not any(self._selection.book.under_way(case) for case in cases):
            return why or "nothing was run"
        await self._ended(lambda: any(self._selection.book.under_way(case) for case in cases))
        return None

    async def _ended(self, is_under_way: Callable[[], bool]) -> None:
        while is_under_way():
            self._delivered.clear()
            await self._delivered.wait()


def _cell(run: PlannedRun) -> CellKey:
    return str(run.file.path), run.case.id, run.model


Lasting = tuple[Lasts, ...]
_LASTINGS: tuple[tuple[str, Lasting], ...] = (
    ("once", ("once",)),
    ("for good: all further calls of the tool fail too", ("for good",)),
    ("both: once, and for good", LASTS),
)

Choice = tuple[tuple[FaultName, ...], Lasting]
"""The faults, and how long they last. No fault stands for the matrix that was shown last."""

SHOW_LAST: Choice = ((), ())


class FaultsDialog(Dialog[Choice]):
    """Asks which faults to try.

    `says` returns the cost of a choice."""

    TITLE_LINE: ClassVar[str] = "Inject faults"
    DEFAULT_CSS = "FaultsDialog > Vertical { width: 84; }"

    def __init__(self, says: Callable[[Choice], str], *, has_last: bool) -> None:
        super().__init__(keys_line(("Enter", "choose"), ("Esc", "leave")))
        self._says = says
        self._has_last = has_last
        self._faults = set(FAULTS)
        self._lasting = 0

    def body(self) -> ComposeResult:
        yield ReadLines(self._lines, "reading")
        yield ChooseLines(self._options(), widget_id="choices")

    def on_mount(self) -> None:
        self.set_focus(self.query_one("#choices"))

    @property
    def _choice(self) -> Choice:
        return tuple(fault for fault in FAULTS if fault in self._faults), _LASTINGS[self._lasting][1]

    def _lines(self, width: int) -> list[Line]:
        text = self._says(self._choice) if self._faults else "No fault is chosen."
        return [EMPTY, *with_margin(text, width), EMPTY]

    def _options(self) -> list[Option]:
        last = [Option("show the last matrix")] if self._has_last else []
        faults = []
        for fault in FAULTS:
            faults.append(Option(fault, checked=fault in self._faults))
        return [Option("run the trials"), *last, Option(f"lasts  {_LASTINGS[self._lasting][0]}"), *faults]

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        at = event.index - self._has_last
        if event.index == 0:
            if self._faults:
                self.dismiss(self._choice)
        elif at == 0:
            self.dismiss(SHOW_LAST)
        elif at == 1:
            self._lasting = (self._lasting + 1) % len(_LASTINGS)
        else:
            self._faults ^= {FAULTS[at - 2]}
        choices = self.query_one("#choices", ChooseLines)
        choices.options = self._options()
        choices.repaint()
        self.query_one("#reading", ReadLines).show_anew(from_top=True)
