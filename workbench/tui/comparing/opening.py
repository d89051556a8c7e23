"""The comparison: opening it, running its cells, and the ways from it to runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.history.records import HistoryError
from workbench.trajectory.recording import RecordingError
from workbench.tui.comparing.lines import names_of
from workbench.tui.comparing.repeat_dialog import RepeatChoiceScreen
from workbench.tui.kit.background import push_from, worked_out
from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.lines.words import many
from workbench.tui.runs.commands import choose_models
from workbench.tui.runs.repeats_dialog import RepeatsScreen

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.analysis.paired import Pair
    from workbench.tui.comparing.paired import PairedScreen
    from workbench.tui.comparing.screen import CompareScreen
    from workbench.tui.comparing.state import CompareState
    from workbench.tui.comparing.totals import ComparedTotals
    from workbench.tui.kit.side_screen import BesideScreen
    from workbench.tui.run_book.record import RunRecord
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class CompareCommands:
    """The methods of `actions.comparing`. The screen is imported when it is first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._last: tuple[str, CompareState, ComparedTotals] | None = None
        """What was compared last, and how that was looked at."""
        of_screen: dict[str, Callable[[CompareScreen], object]] = {
            "open": self._open_cell,
            "mark": self._mark,
            "run": self._run_cell,
            "run_all": self._run_all,
            "repeats": self._repeat_all,
            "stop": self._stop,
            "stop_all": lambda shown: app.action_stop_all(),
            "models": lambda shown: choose_models(app, shown.follow),
            "pair": self._test,
            "reload": lambda shown: shown.read_again(),
            "differences": lambda shown: shown.turn_differences(),
            "sort": lambda shown: shown.sort(),
            "filter": lambda shown: shown.open_filter(),
            "totals": lambda shown: shown.turn_totals(),
            "base": lambda shown: shown.make_base(),
            "copy": self._copy,
            "left": lambda shown: shown.sideways(-1),
            "right": lambda shown: shown.sideways(1),
            "other": lambda shown: shown.other_part(),
            "back": lambda shown: shown.back(),
        }
        of_paired: dict[str, Callable[[PairedScreen], object]] = {
            "open": lambda shown: shown.open(),
            "copy": lambda shown: copy_text(app, shown.state.text(), "the tests", shown.announce),
            "back": lambda shown: shown.dismiss(),
        }
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "compare": self._open,
            **on_beside(app, "compare", of_screen),
            **on_beside(app, "paired", of_paired),
        }

    def _open(self, screen: MainScreen) -> None:
        from workbench.tui.comparing.screen import CompareScreen
        from workbench.tui.comparing.sources import LiveRuns
        from workbench.tui.comparing.state import CompareState
        from workbench.tui.comparing.totals import ComparedTotals

        suites, place = screen.selection.suites_below()
        paths = {suite.path for suite in suites}
        if self._last is not None and self._last[0] == place:
            # Nothing was said of runs meanwhile: those that went on are looked at here, and others by the screen.
            state = self._last[1]
            state.look_again(dict.fromkeys(key[:2] for key in state.going))
        else:
            source = LiveRuns(
                screen.book,
                lambda: [suite for suite in screen.desk.suites if suite.path in paths],
                lambda: screen.models,
            )
            state = CompareState(source)
            self._last = place, state, ComparedTotals(state, time.perf_counter)
        self._app.push_screen(CompareScreen(self._app, self._last[1], place, self._last[2]))

    # Runs

    def _run_cell(self, shown: CompareScreen) -> None:
        if (key := shown.state.key) is not None:
            self._run(shown, [key], shown.state.repeats(key))

    def _run_all(self, shown: CompareScreen) -> None:
        state = shown.state
        planned = state.planned()
        missing = [key for key in planned if state.at(key).is_missing]
        over = [key for key in planned if state.at(key).stage == "done"]
        wanted = missing or over
        if not missing and not over:
            shown.announce(
                "Nothing is left to run: the rest is under way" if planned else "No model is chosen: m chooses"
            )
            return
        if not missing and not shown.asked_again:
            shown.asked_again = True
            runs = sum(state.at(key).planned for key in over)
            finished = f"All {runs:,} runs are finished" if runs > 1 else "The run is finished"
            said = f"{finished}. Press R again to rerun {'them all' if runs > 1 else 'it'}"
            shown.announce(said, "warned", GLYPHS.warned)
            return
        shown.asked_again = False
        by_repeats: dict[int | None, list[CellKey]] = {}
        for key in wanted:
            by_repeats.setdefault(state.repeats(key), []).append(key)
        for repeats, keys in by_repeats.items():
            self._run(shown, keys, repeats)
        if missing and len(missing) < len(planned):
            shown.announce(f"Running the {many(len(missing), 'cell')} without a finished run")

    def _repeat_all(self, shown: CompareScreen) -> None:
        cells = shown.state.planned()

        def run(times: int | None) -> None:
            if times is not None:
                self._run(shown, cells, times)

        self._app.push_screen(RepeatsScreen(many(len(shown.state.cases_shown), "case")), run)

    def _run(self, shown: CompareScreen, cells: Sequence[CellKey], repeats: int | None) -> None:
        wanted = [(Path(suite), case_id, model) for suite, case_id, model in cells]
        self._app.run_on(wanted, repeats, shown.announce)

    def _stop(self, shown: CompareScreen) -> None:
        key = shown.state.key
        if key is not None:
            going = self._app.main.book.under_way((Path(key[0]), key[1]))
            self._app.runner.stop([run.run_id for run in going if run.model == key[2]])

    # Ways to runs

    def _open_cell(self, shown: CompareScreen) -> None:
        key = shown.state.key
        if key is None:
            return
        standing = shown.state.at(key)
        cell = standing.cell if not standing.before else None
        if cell is None or len(cell.runs) == 1:
            self._show(shown, key)
            return

        def show(repeat: int | None) -> None:
            if repeat is not None:
                self._show(shown, key, repeat)

        self._app.push_screen(RepeatChoiceScreen(cell), show)

    def _show(self, shown: CompareScreen, key: CellKey, repeat: int | None = None) -> None:
        async def show() -> None:
            from workbench.tui.trajectory.screen import TrajectoryScreen

            runs = await self._read(shown, [(key, repeat)])
            if runs:
                push_from(self._app, shown, TrajectoryScreen(self._app, runs[0], shown.place))

        self._app.run_worker(show(), group="compare", exclusive=True)

    def _mark(self, shown: CompareScreen) -> None:
        both = shown.mark()
        if both is not None:
            self._side_by_side(shown, shown, *both)

    def _side_by_side(self, shown: CompareScreen, asked: BesideScreen[None], one: CellKey, other: CellKey) -> None:
        async def show() -> None:
            from workbench.tui.two_runs.screen import PairScreen, beside_each_other

            runs = await self._read(shown, [(one, None), (other, None)])
            if runs:
                push_from(self._app, asked, PairScreen(self._app, await beside_each_other(*runs)))

        self._app.run_worker(show(), group="compare", exclusive=True)

    async def _read(self, shown: CompareScreen, wanted: Sequence[tuple[CellKey, int | None]]) -> list[RunRecord]:
        """The runs of some cells; none where one cannot be read, which is announced."""
        try:
            return [await shown.state.source.open_run(key, repeat) for key, repeat in wanted]
        except (LookupError, HistoryError, RecordingError) as error:
            self._app.announce(str(error), "error", GLYPHS.error)
            return []

    # What it comes to

    def _test(self, shown: CompareScreen) -> None:
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
            from workbench.analysis.paired import all_paired
            from workbench.tui.comparing.paired import PairedScreen, PairedState

            def tested() -> PairedState:
                paired = PairedState(all_paired(columns.pop(base), columns)[model], names[base], names[model])
                paired.said(80)  # worked out here, and known from then on
                return paired

            paired = await worked_out(tested)

            def open_pair(pair: Pair) -> None:
                one, other = ((cell.suite, cell.case_id, cell.model) for cell in pair)
                self._side_by_side(shown, screen, one, other)

            screen = PairedScreen(self._app, paired, open_pair)
            push_from(self._app, shown, screen)

        self._app.run_worker(show(), group="compare", exclusive=True)

    def _copy(self, shown: CompareScreen) -> None:
        state = shown.state
        models, only = state.models, state.only_differences
        keys = [case.on(model) for case in state.cases for model in models]
        cells = {key: cell for key in keys if (cell := state.at(key).cell) is not None}
        names, gates = {case.suite: case.suite_name for case in state.cases}, state.source.gates()
        shown_cases = frozenset((case.suite, case.case_id) for case in state.cases_shown)
        words = state.filter.strip()

        async def copy() -> None:
            from workbench.reports.comparison_markdown import Filtered, comparison_markdown

            filtered = Filtered(words, shown_cases) if words else None
            text = await worked_out(
                lambda: comparison_markdown(cells, models, names, gates, only_differences=only, filtered=filtered)
            )
            copy_text(self._app, text, "the comparison", shown.announce)

        # In a group of its own: what else is worked out goes on.
        self._app.run_worker(copy(), group="compare_copy", exclusive=True)
