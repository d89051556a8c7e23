"""Opens the comparison, also at the start, and implements its actions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from workbench.analysis.paired import all_paired, paired
from workbench.analysis.side_by_side import WhenLeft, compared
from workbench.history.records import HistoryError
from workbench.show.glyphs import GLYPHS
from workbench.trajectory.recording import RecordingError
from workbench.tui.comparing.lines import names_of
from workbench.tui.comparing.sources import ComparedCase, LiveRuns, StoredRuns
from workbench.tui.comparing.state import CompareState
from workbench.tui.kit.stage import Announce, Stage, in_background
from workbench.tui.runs.runner import Runner
from workbench.tui.tree.selection import Selection

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.analysis.paired import Pair
    from workbench.evaluation.options import Begin
    from workbench.grading.run_summary import RunSummary
    from workbench.tui.comparing.cells_screen import CellsScreen
    from workbench.tui.comparing.screen import CompareScreen
    from workbench.tui.comparing.table import ComparedTotals
    from workbench.tui.kit.side_screen import SideScreen
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.runs.starting import RunOf
    from workbench.tui.trajectory.opening import RunScreens
    from workbench.tui.two_runs.opening import PairScreens


OverTime: TypeAlias = "Callable[[SideScreen[None], Path | str, str, str], None]"
"""Shows a case over time: the screen below, the suite's file or key in the history, the case's id and name."""


class CompareCommands:
    """Creates screens of comparisons and implements `cells_screen.CompareWays`."""

    def __init__(
        self,
        stage: Stage,
        selection: Selection,
        runner: Runner,
        *,
        run_on: Callable[[Sequence[RunOf], int | None, Announce], None],
        stop_all: Callable[[], None],
        choose_models: Callable[[Callable[[], object]], None],
        runs: RunScreens,
        pairs: PairScreens,
        over_time: OverTime,
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._runner = runner
        self._run_on = run_on
        self.stop_all = stop_all
        self.choose_models = choose_models
        self._runs = runs
        self._pairs = pairs
        self._over_time = over_time
        self._last: tuple[str, CompareState, ComparedTotals] | None = None
        """The last comparison and its state."""
        self.methods: dict[str, Callable[[], object]] = {"compare": self._open}

    def screen(self, state: CompareState, place: str, totals: ComparedTotals | None = None) -> CompareScreen:
        """Return the screen of a comparison. `place` is what is compared."""
        from workbench.tui.comparing.screen import CompareScreen

        return CompareScreen(self._stage, state, place, self._selection.book, self, totals)

    def _open(self) -> None:
        from workbench.tui.comparing.table import ComparedTotals

        selection = self._selection
        suites, place = selection.suites_below()
        paths = {suite.path for suite in suites}
        if self._last is not None and self._last[0] == place:
            # The state had no news of runs meanwhile: active ones are updated here, others by the screen.
            _, state, totals = self._last
            state.look_again(dict.fromkeys(key[:2] for key in state.going))
        else:
            source = LiveRuns(
                selection.book,
                lambda: [suite for suite in selection.open_suites.suites if suite.path in paths],
                lambda: selection.models,
                variants=lambda: selection.variants,
            )
            state = CompareState(source)
            totals = ComparedTotals(state, time.perf_counter)
            self._last = place, state, totals
        self._stage.show(self.screen(state, place, totals))

    # Runs

    def run(self, cells: Sequence[CellKey], repeats: int | None, announce: Announce) -> None:
        """Run cells, `repeats` times if given. Announces why some are not run."""
        self._run_on([(Path(suite), case_id, model) for suite, case_id, model in cells], repeats, announce)

    def before(self, cell: CellKey) -> Sequence[RunSummary]:
        """Return the last runs of a cell in the history, before this session."""
        suite, case_id, model = cell
        last = self._selection.tree.remembered.of((Path(suite), case_id))
        runs = last.runs if last is not None else ()
        return [run.figures for run in runs if run.figures is not None and run.model == model]

    def stop(self, cell: CellKey) -> None:
        """Stop the runs of one cell."""
        suite, case_id, model = cell
        going = self._selection.book.under_way((Path(suite), case_id))
        self._runner.stop([run.run_id for run in going if run.model == model])

    # Other screens

    def show_run(self, shown: CellsScreen, key: CellKey, repeat: int | None) -> None:
        """Show one run of a cell."""

        async def show() -> None:
            runs = await self._read(shown, [(key, repeat)])
            if runs:
                self._stage.show(self._runs.of(runs[0], shown.place), over=shown)

        self._stage.work(show(), "compare", exclusive=True)

    def show_two(self, shown: CellsScreen, over: SideScreen[None], one: CellKey, other: CellKey) -> None:
        """Show the runs of two cells side by side, above a screen."""

        async def show() -> None:
            runs = await self._read(shown, [(one, None), (other, None)])
            if runs:
                left, right = runs
                self._stage.show(await self._pairs.of(left, right), over=over)

        self._stage.work(show(), "compare", exclusive=True)

    async def _read(self, shown: CellsScreen, wanted: Sequence[tuple[CellKey, int | None]]) -> list[RunRecord]:
        """Return the runs of some cells, none if one cannot be read, which is announced."""
        try:
            return [await shown.state.source.open_run(key, repeat) for key, repeat in wanted]
        except (LookupError, HistoryError, RecordingError) as error:
            self._stage.announce(str(error), "error", GLYPHS.error)
            return []

    def show_over_time(self, shown: CellsScreen) -> None:
        """Show the case of the row over time."""
        case = shown.state.case
        if case is not None:
            # Live runs name suites by their path as given, stored ones by the resolved path.
            suite = Path(case.suite) if shown.state.source.live else case.suite
            self._over_time(shown, suite, case.case_id, case.name)

    def show_tests(self, shown: CellsScreen) -> None:
        """Show the paired tests of the column against the base."""
        state, model, base = shown.state, shown.state.model, shown.state.base
        if model is None or base is None:
            return
        in_order = {(case.suite, case.case_id): at for at, case in enumerate(state.cases)}
        columns = {
            each: sorted(state.cells(each), key=lambda cell: in_order[cell.suite, cell.case_id])
            for each in state.models
        }
        names = dict(zip(state.models, names_of(state.models), strict=True))

        async def show() -> None:
            from workbench.tui.comparing.paired import PairedScreen, PairedState

            def tested() -> PairedState | str:
                watched = state.source.watched() if isinstance(state.source, StoredRuns) else ()
                if watched:
                    pair = next((each for each in watched if {each.first, each.second} == {base, model}), None)
                    if pair is None:
                        return f"This batch may stop early: only {names[watched[0].first]} was compared with the others"
                    one, other = pair.first, pair.second
                    found = paired(columns[one], columns[other], pair)
                else:
                    one, other = base, model
                    found = all_paired(columns.pop(base), columns)[model]
                shown = PairedState(found, names[one], names[other])
                shown.result_lines(80)  # computed and cached here, in the thread
                return shown

            tests = await in_background(tested)
            if isinstance(tests, str):
                self._stage.announce(tests, "warned", GLYPHS.warned)
                return

            def open_pair(pair: Pair) -> None:
                one, other = ((cell.suite, cell.case_id, cell.model) for cell in pair)
                self.show_two(shown, screen, one, other)

            screen = PairedScreen(self._stage, tests, open_pair)
            self._stage.show(screen, over=shown)

        self._stage.work(show(), "compare", exclusive=True)


class Compared:
    """Compares models on the cases of all open suites that `begin` selects."""

    def __init__(
        self, stage: Stage, selection: Selection, runner: Runner, comparing: CompareCommands, begin: Begin
    ) -> None:
        def takes(case: ComparedCase) -> bool:
            return begin.options.selection.takes_one(case.case_id, case.tags)

        self._stage = stage
        self._comparing = comparing
        self._runner = runner
        self._open_suites = selection.open_suites
        self._source = LiveRuns(
            selection.book,
            lambda: selection.open_suites.suites,
            lambda: selection.models,
            takes,
            lambda: selection.variants,
        )
        self._state = CompareState(self._source)
        self._state.show_differences(begin.only_differences)

    def open(self) -> None:
        """Open the screen."""
        self._stage.show(self._comparing.screen(self._state, self._open_suites.workspace.place))

    def tell(self, left: WhenLeft) -> None:
        """Report the results, if there are any."""
        state, runner = self._state, self._runner
        state.read()
        keys = [case.on(model) for case in state.cases for model in state.models]
        cells = {key: cell for key in keys if (cell := state.at(key).cell) is not None}
        runs = (run for key in keys for run in self._source.records(key))
        missing = dict.fromkeys(run.batch for run in runs if run.figures is None or run.status == "stopped")
        numbers = [number for batch in missing if (number := runner.number_of(batch)) is not None]
        if cells:
            names = {case.suite: case.suite_name for case in state.cases}
            left(compared(cells, state.models, names, self._source.gates()), numbers)
