"""The actions on cells of a comparison: run cells, show their runs, and test the difference of two columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from textual import on
from textual.app import ComposeResult

from workbench.analysis.comparison import Cell
from workbench.analysis.estimate import Estimate, estimate
from workbench.analysis.paired import CellPair
from workbench.grading.run_summary import finished_summaries
from workbench.history.records import HistoryError
from workbench.numerals import count_text, counted, duration_text, score_text
from workbench.providers.built_in import is_built_in
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, with_margin
from workbench.show.views.values import estimate_text
from workbench.show.visible import one_line
from workbench.trajectory.recording import RecordingError
from workbench.tui.comparison.sources import deciding_repeat
from workbench.tui.comparison.state import CompareState
from workbench.tui.comparison.table import names_of
from workbench.tui.kit.actions import action
from workbench.tui.kit.dialogs import ChoiceList, Dialog, Option, keys_line
from workbench.tui.kit.questions import QuestionScreen
from workbench.tui.kit.side_screen import FilterScreen, SideScreen
from workbench.tui.kit.stage import in_background
from workbench.tui.models.chooser import ModelChooser
from workbench.tui.run_book.record import RunRecord
from workbench.tui.run_pair.screen import pair_screen
from workbench.tui.runs.dialogs import RepeatsScreen
from workbench.tui.trajectory.screen import TrajectoryScreen

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.grading.run_summary import RunSummary
    from workbench.tui.shell.workbench import Workbench


class RepeatChoiceScreen(Dialog[int]):
    """Asks which repeat of a cell to show.

    `active_repeats` are the running repeats. Preselects the first of them, or else the repeat that decides the status
    of the cell."""

    TITLE_LINE: ClassVar[str] = "Which run?"
    DEFAULT_CSS = "RepeatChoiceScreen #repeats { max-height: 16; }"

    def __init__(self, cell: Cell, active_repeats: Sequence[int]) -> None:
        super().__init__(keys_line(("Enter", "show"), ("Esc", "leave")))
        options = {}
        for repeat in active_repeats:
            options[repeat] = Option(f"{repeat + 1:>3}  {GLYPHS.running} running", "")
        for run in cell.runs:
            name = f"{run.repeat + 1:>3}  {run.status.sign} {run.status:<8} {score_text(run.score, ''):>4}"
            took = "–"
            if run.limited_ms:
                took = duration_text(run.limited_ms)
            options[run.repeat] = Option(name, f"{took:>8}  {one_line(run.reason or '')}")
        self._repeats = sorted(options)
        self._options = [options[repeat] for repeat in self._repeats]
        self._first = self._repeats.index(min(active_repeats, default=deciding_repeat(cell.runs)))

    def body(self) -> ComposeResult:
        yield ChoiceList(self._options, self._first, widget_id="repeats")

    def on_mount(self) -> None:
        repeats = self.query_one("#repeats", ChoiceList)
        self.set_focus(repeats)
        # Scrolling to the cursor needs the height of the list. The height is known after the layout.
        self.call_after_refresh(repeats.move_cursor, self._first)

    @on(ChoiceList.Chosen)
    def _chosen(self, event: ChoiceList.Chosen) -> None:
        self.dismiss(self._repeats[event.index])


class CellsScreen(FilterScreen[None]):
    """The base of screens with a table of cells. `place` names the compared suite, folder or batch."""

    def __init__(self, app: Workbench, state: CompareState, place: str) -> None:
        super().__init__(app)
        self.state: CompareState = state
        self.place = place
        self._is_confirming = False
        """Whether the last key was `R` and a notice asked to press it again."""

    def follow(self) -> None:
        """Update the table with the current columns and cells."""
        raise NotImplementedError

    def action_do(self, action_id: str) -> None:
        if action_id != "compare.run_all":
            self._is_confirming = False
        super().action_do(action_id)

    # Showing runs

    @action("enter", "Show the run of the cell", label="open")
    def do_open(self) -> None:
        """Show the run of the cell. If the cell has several runs, ask which run to show."""
        key = self.state.key
        if key is None:
            return
        cell_state = self.state.at(key)
        cell = cell_state.cell
        active = self.state.source.active(key)
        # With `before`, the cell has results of an earlier batch, whose runs were replaced. There is no run to choose.
        if cell is None or cell_state.before or len({*active, *(run.repeat for run in cell.runs)}) == 1:
            self._show_run(key, None)
            return

        def show(repeat: int | None) -> None:
            if repeat is not None:
                self._show_run(key, repeat)

        self.workbench.show(RepeatChoiceScreen(cell, active), show)

    @action("h", "History of the case")
    def do_timeline(self) -> None:
        self._show_over_time()

    @action("p", "Paired tests of the column against the base", label="test")
    def do_pair(self) -> None:
        self._show_tests()

    # Runs

    @action("r", "Run the cell", label="run", changes=True)
    def do_run(self) -> None:
        if (key := self.state.key) is not None:
            self._run([key])

    @action("F", "Rerun cells in error", changes=True)
    def do_run_errors(self) -> None:
        state = self.state
        wanted = [key for key in state.planned() if state.at(key).is_in_error]
        if wanted:
            self._run(wanted)
        else:
            self.announce("No cell that is shown ended in an error")

    def _run(
        self, cells: Sequence[CellKey], times: int | None = None, *, then: Callable[[], object] | None = None
    ) -> None:
        """Run each cell `times` times, by default as often as before. Call `then` when the runs have started.

        If some of the cells ran before and running costs money, ask first."""
        estimated, rerun_count = self._estimate(cells, times)
        if rerun_count and estimated.cost_usd:

            def on_answer(answer: str | None) -> None:
                if answer == "run":
                    self._run_now(cells, times, then)

            self.workbench.show(RerunScreen(rerun_count, estimated), on_answer)
        else:
            self._run_now(cells, times, then)

    def _run_now(self, cells: Sequence[CellKey], times: int | None, then: Callable[[], object] | None) -> None:
        # A batch has one number of repeats, so cells with different numbers need several batches.
        by_repeats: dict[int | None, list[CellKey]] = {}
        for key in cells:
            by_repeats.setdefault(times or self.state.repeats(key), []).append(key)
        for repeats, keys in by_repeats.items():
            self._start(keys, repeats)
        if then is not None:
            then()

    def _estimate(self, cells: Sequence[CellKey], times: int | None = None) -> tuple[Estimate, int]:
        """Estimate the cost of running cells, and count the cells with earlier runs in the session or the history."""
        state = self.state
        models = {key[2] for key in cells}
        # The estimate for a cell without runs uses other cases on the same model.
        known: dict[CellKey, Sequence[RunSummary]] = {}
        for case in state.cases:
            for model in models:
                key = case.on(model)
                if (cell := state.at(key).cell) is not None:
                    known[key] = cell.runs
                else:
                    known[key] = self._earlier_runs(key)
        planned = [(key, times or state.repeats(key) or len(known[key]) or 1) for key in cells]
        return estimate(planned, known, is_free=is_built_in), sum(bool(known[key]) for key in cells)

    @action(
        "R",
        "Run all unfinished cells shown; if none, press twice to rerun",
        label="run all",
        changes=True,
    )
    def do_run_all(self) -> None:
        """Run the displayed cells without a finished run. If there are none, ask to press again to rerun all cells."""
        state = self.state
        planned = state.planned()
        missing: list[CellKey] = []
        over: list[CellKey] = []
        for key in planned:
            if state.at(key).is_missing:
                missing.append(key)
            if state.at(key).stage == "done":
                over.append(key)
        wanted = missing or over
        if not planned:
            self.announce("No model is chosen: m chooses")
            return
        if not wanted:
            self.announce("Nothing is left to run: the rest is running")
            return
        if not missing and not self._is_confirming:
            self._is_confirming = True
            runs = sum(state.at(key).planned for key in over)
            text = "The run is finished. Press R again to rerun it"
            if runs > 1:
                text = f"All {count_text(runs)} runs are finished. Press R again to rerun them all"
            text += f" ({estimate_text(self._estimate(over)[0])})"
            errors = sum(state.at(key).is_in_error for key in over)
            if 0 < errors < len(over):
                text += f"; F reruns the {counted(errors, 'cell')} in error"
            self.announce(text, "warned", GLYPHS.warned)
            return
        self._is_confirming = False

        def announce_count() -> None:
            if missing and len(missing) < len(planned):
                self.announce(f"Running the {counted(len(missing), 'cell')} without a finished run")

        self._run(wanted, then=announce_count)

    @action("T", "Run all cells shown several times", label="repeats", changes=True)
    def do_repeats(self) -> None:
        cells = self.state.planned()

        def run(times: int | None) -> None:
            if times is not None:
                self._run(cells, times)

        self.workbench.show(RepeatsScreen(counted(len(self.state.cases_shown), "case")), run)

    @action("m", "Choose models", label="models", changes=True)
    def do_models(self) -> None:
        ModelChooser(self.workbench).choose(self.follow)

    @action("x", "Stop the cell", label="stop", changes=True)
    def do_stop(self) -> None:
        if (key := self.state.key) is not None:
            self._stop(key)

    @action("X", "Stop all runs", changes=True)
    def do_stop_all(self) -> None:
        self.workbench.services.stop_all()

    def _start(self, cells: Sequence[CellKey], repeats: int | None) -> None:
        runs = [(Path(suite), case_id, model) for suite, case_id, model in cells]
        self.workbench.services.starter.run_targets_soon(runs, repeats, self.announce)

    def _earlier_runs(self, cell: CellKey) -> Sequence[RunSummary]:
        suite, case_id, model = cell
        last = self.workbench.selection.tree.remembered.of((Path(suite), case_id))
        if last is None:
            return ()
        return [figures for figures in finished_summaries(last.runs) if figures.model == model]

    def _stop(self, cell: CellKey) -> None:
        suite, case_id, model = cell
        active = self.workbench.selection.book.active_runs((Path(suite), case_id))
        self.workbench.services.runner.stop([run.run_id for run in active if run.model == model])

    # Other screens

    def _show_run(self, key: CellKey, repeat: int | None) -> None:
        async def show() -> None:
            runs = await self._runs_of([(key, repeat)])
            if runs:
                self.workbench.show(TrajectoryScreen(self.workbench, runs[0], self.place), below=self)

        self.workbench.work(show(), "compare", exclusive=True)

    def _show_pair(self, below: SideScreen[None], one: CellKey, other: CellKey) -> None:
        async def show() -> None:
            runs = await self._runs_of([(one, None), (other, None)])
            if runs:
                left, right = runs
                self.workbench.show(await pair_screen(self.workbench, left, right), below=below)

        self.workbench.work(show(), "compare", exclusive=True)

    async def _runs_of(self, requested: Sequence[tuple[CellKey, int | None]]) -> list[RunRecord]:
        """Return the requested runs, each given by its cell and repeat (`None`: the repeat that decides the status).

        If any run cannot be read, announce why and return no runs."""
        try:
            return [await self.state.source.open_run(key, repeat) for key, repeat in requested]
        except (LookupError, HistoryError, RecordingError) as error:
            self.workbench.announce(str(error), "error", GLYPHS.error)
            return []

    def _show_over_time(self) -> None:
        case = self.state.case
        if case is not None:
            # Live runs store the path of a suite as given. Stored runs have the resolved path.
            suite = Path(case.suite) if self.state.source.live else case.suite
            self.workbench.screens.show_timeline(self, suite, case.case_id, case.name)

    def _show_tests(self) -> None:
        state, model, base = self.state, self.state.model, self.state.base
        if model is None or base is None:
            return
        in_order = {case.key: at for at, case in enumerate(state.cases)}
        columns: dict[str, list[Cell]] = {}
        for each in state.models:
            columns[each] = sorted(state.cells(each), key=lambda cell: in_order[cell.suite, cell.case_id])
        names = dict(zip(state.models, names_of(state.models), strict=True))

        async def show() -> None:
            from workbench.analysis.paired import compare_pairs, compare_with_first
            from workbench.tui.comparison.paired import PairedScreen, PairedState

            def tested() -> PairedState | str:
                watched = state.source.watched()
                # A batch with early stopping tests some pairs of models repeatedly, by a method made for repeated
                # tests. For other pairs, an ordinary test would overstate the evidence.
                if watched:
                    pair = next((each for each in watched if {each.first, each.second} == {base, model}), None)
                    if pair is None:
                        return f"This batch may stop early: only {names[watched[0].first]} was compared with the others"
                    one, other = pair.first, pair.second
                    found = compare_pairs(columns[one], columns[other], pair)
                else:
                    one, other = base, model
                    found = compare_with_first(columns.pop(base), columns)[model]
                shown = PairedState(found, names[one], names[other])
                # Tests are computed on first use. Use them here, in the thread, where the computation delays no key.
                shown.result_lines(80)
                return shown

            tests = await in_background(tested)
            if isinstance(tests, str):
                self.workbench.announce(tests, "warned", GLYPHS.warned)
                return

            def open_pair(pair: CellPair) -> None:
                first, second = pair
                self._show_pair(screen, _key_of(first), _key_of(second))

            screen = PairedScreen(self.workbench, tests, open_pair)
            self.workbench.show(screen, below=self)

        self.workbench.work(show(), "compare", exclusive=True)


def _key_of(cell: Cell) -> CellKey:
    return cell.suite, cell.case_id, cell.model


class RerunScreen(QuestionScreen[Literal["run", "no"]]):
    """Asks whether to run cells again although that costs money. `cells` is the number of cells that ran before."""

    TITLE_LINE = "Run again, for money?"

    def __init__(self, cells: int, estimate: Estimate) -> None:
        def lines(width: int) -> list[Line]:
            before = f"{counted(cells, 'cell')} ran before."
            if cells == 1 == estimate.runs:
                before = "It ran before."
            return [
                EMPTY,
                *with_margin(f"{counted(estimate.runs, 'run')}: {estimate_text(estimate)}.", width),
                *with_margin(f"{before} The estimate is the mean of earlier runs.", width, "muted"),
            ]

        super().__init__(
            lines,
            [
                ("run", Option("run", "and pay for it")),
                ("no", Option("no", "nothing runs")),
            ],
            leaving="run nothing",
        )
