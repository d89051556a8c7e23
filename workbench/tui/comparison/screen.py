"""The comparison screen: cases as rows, models as columns, results of runs as cells."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.timer import Timer

from workbench.analysis.side_by_side import LeaveCallback, compare_cells
from workbench.grading.status import Status
from workbench.numerals import counted, counted_of, of_text
from workbench.show.glyphs import GLYPHS
from workbench.show.spans import EMPTY, Line, Span, title_line
from workbench.show.views.comparison import Filtered, comparison_view
from workbench.show.visible import one_line
from workbench.suite.variants import model_of
from workbench.tui.comparison.cells_screen import CellsScreen
from workbench.tui.comparison.sources import UNFINISHED, ComparedCase, LiveRuns
from workbench.tui.comparison.state import CompareState
from workbench.tui.comparison.table import Columns, ComparedTotals, CompareHead, CompareTable, CompareTotals, cell_text
from workbench.tui.kit.actions import Action, Situation, action, key_for, unless_read_only
from workbench.tui.kit.bars import KeyBar
from workbench.tui.kit.fields import FilterField
from workbench.tui.kit.side_screen import ActionOverride
from workbench.tui.kit.stage import in_background
from workbench.tui.kit.strips import Bar
from workbench.tui.runs.status_line import progress_ends

if TYPE_CHECKING:
    from workbench.authoring.case_list import CaseKey
    from workbench.evaluation.options import AppStart
    from workbench.tui.shell.workbench import Workbench


TOTALS_SHARE = 3 / 8
"""The maximum share of rows for totals. Totals may also take rows left empty by cases."""

OTHER_ROWS = 6
"""The rows for title, heads, description of the cell, keys, and some space."""

_LIVE_ACTIONS = tuple(f"compare.{name}" for name in ("run", "run_all", "run_errors", "repeats", "models", "stop"))
"""The actions available only for live runs, not for a batch of the history."""

CATCH_UP_S, CATCH_UP_LIVE_S = 0.03, 0.25
"""The delay in seconds before outdated totals are computed: without active runs, and with active runs."""


class CompareScreen(CellsScreen):
    """The comparison of models. `place` names the compared suite, folder or batch."""

    DEFAULT_CSS = "CompareScreen { overflow: hidden; }"
    NAME = "compare"
    FIRST_ACTIONS = ("open", "run", "run_all", "models", "pair", "differences", "sort", "filter")
    TITLE_IN_TEXT = "the comparison"
    ACTION_OVERRIDES = (ActionOverride("filter", title="Filter as you type: name, tag, failed, model:failed"),)
    AUTO_FOCUS = "#compare-table"

    def __init__(
        self,
        app: Workbench,
        state: CompareState,
        place: str,
        totals: ComparedTotals | None = None,
    ) -> None:
        super().__init__(app, state, place)
        self._book = app.selection.book
        if totals is None:
            totals = ComparedTotals(state, time.perf_counter)
        self.totals = totals
        self._shows_totals = True
        self._totals_rows = -1
        self._sums_shown: tuple[object, Columns | None] = ((), None)
        """The last drawn totals and columns."""
        self._catching_up: Timer | None = None

    def compose(self) -> ComposeResult:
        table = CompareTable(self.state, self._floors, "compare-table")
        yield Bar("compare-title")
        yield CompareHead("compare-head")
        yield table
        yield FilterField(placeholder="words of case or tag, failed, model:failed")
        yield Bar("compare-cell")
        yield CompareTotals(self.totals, table, "compare-totals")
        yield KeyBar("compare-keys")

    def on_mount(self) -> None:
        self._update_totals()
        self._show_state()

    def on_resize(self, event: events.Resize) -> None:
        self._show_state()

    # Content

    @property
    def table(self) -> CompareTable:
        """The widget with the cells."""
        return self.query_one("#compare-table", CompareTable)

    @property
    def _totals(self) -> CompareTotals:
        return self.query_one("#compare-totals", CompareTotals)

    @property
    def takes_questions(self) -> bool:
        """Whether a run may open its permission dialog above this screen."""
        return not self._filtering

    def _floors(self) -> Mapping[str | None, int]:
        if self._shows_totals:
            return self.totals.floors
        return {}

    def _show_state(self) -> None:
        self._place_totals()
        self.table.show_state()
        self._show_bars()

    def _place_totals(self) -> None:
        height = self.app.size.height
        room = max(int(height * TOTALS_SHARE), height - OTHER_ROWS - len(self.state.rows))
        rows = 0
        if self._shows_totals and height > OTHER_ROWS:
            rows = min(len(self.totals.rows) + 1, room)
        # Setting a height lays out and paints the whole screen, so an unchanged height is not set again.
        if rows != self._totals_rows:
            self._totals_rows = rows
            self._sums_shown = ((), None)
            self._totals.styles.height = rows
            self._totals.display = rows > 1

    @on(CompareTable.Moved)
    def _show_cell(self) -> None:
        table = self.table
        head, state = table.head, self.state
        self.query_one("#compare-head", CompareHead).set_line(lambda _: head)
        self.query_one("#compare-cell", Bar).set_line(lambda width: cell_text(state, width))
        sums = self.totals.rows, table.columns
        # Totals are repainted only if they changed or other columns are visible, not on every cursor key.
        if self._shows_totals and (self._sums_shown[0] is not sums[0] or self._sums_shown[1] != sums[1]):
            self._sums_shown = sums
            self._totals.repaint()
        super()._show_bars()

    def _show_bars(self) -> None:
        state = self.state
        only = "  only differences" if state.only_differences else ""
        left: Line = (
            Span(" Compare ", "badge"),
            Span(f" {one_line(self.place)}"),
            Span(f"{self._filter_text}{only}", "accent"),
        )
        shown, cases = len(state.cases_shown), len(state.cases)
        text = short = counted(cases, "case")
        if shown != cases:
            text, short = counted_of(shown, cases, "case"), of_text(shown, cases)
        about = [f"{text} {GLYPHS.dot} {counted(len(state.models), 'model')}", text, short]
        if self.totals.most_failures is not None:
            about.insert(0, f"{self.totals.most_failures} {GLYPHS.dot} {about[0]}")
        ends = self._title_ends([(Span(f"{each} ", "muted"),) for each in about])
        self.query_one("#compare-title", Bar).set_line(lambda width: title_line(left, ends, width))
        self._show_cell()

    def _title_ends(self, details: Sequence[Line]) -> Sequence[Line]:
        """Return the texts for the right end of the title, longest first. The title shows the first one that fits.

        While runs are active, the texts are their progress, otherwise `details`."""
        progress = self._book.progress()
        if progress.is_active:
            return progress_ends(progress, details[0])
        return (*details, EMPTY)

    # News

    def update_times(self) -> None:
        self._show_bars()

    def update_runs(self, cases: set[CaseKey], batches: bool) -> None:
        self._show_news(self.state.update_runs(cases))

    def _show_news(self, others: bool) -> None:
        """Redraw the table and its totals. With `others`, the table has other rows than when it was last drawn."""
        # A covered screen is updated when it is uncovered.
        if self.is_covered:
            return
        self._update_totals()
        if others:
            self.table.show_state()
        else:
            self.table.repaint()
        self._show_bars()

    def _update_totals(self) -> None:
        """Compute as many totals as time allows. A timer computes the rest."""
        if not self._shows_totals or not self.totals.is_behind or self._catching_up is not None:
            return
        before = self.totals.most_failures
        self.totals.update()
        self._place_totals()
        if self.state.source.live and (found := self.totals.most_failures) is not None and found != before:
            self.workbench.announce(found)
        if self.state.active:
            self._catching_up = self.set_timer(CATCH_UP_LIVE_S, self._catch_up)
        elif self.totals.is_behind:
            self._catching_up = self.set_timer(CATCH_UP_S, self._catch_up)

    def _catch_up(self) -> None:
        self._catching_up = None
        if self.is_covered:
            return
        self._update_totals()
        self.table.repaint()
        self._show_bars()

    def update_grades(self) -> None:
        if self.state.source.live and not self.is_covered:
            self.follow()

    def on_screen_resume(self) -> None:
        self.follow()

    def follow(self) -> None:
        """Show the current columns and cells."""
        before = self.state.models
        self.state.follow()
        # If the columns have changed, the totals are updated at once, not by the timer. Otherwise, the previous totals
        # would be displayed below other models.
        if self._catching_up is not None and before != self.state.models:
            self._catching_up.stop()
            self._catching_up = None
        self._update_totals()
        self._show_state()

    @on(CompareTable.Opened)
    def _opened(self) -> None:
        self.action_do("compare.open")

    @on(CompareHead.Chosen)
    def _head_chosen(self, event: CompareHead.Chosen) -> None:
        column = self.table.columns.at(event.x)
        if column is not None:
            self.table.move_column(column)
            self.action_do("compare.sort")

    # Actions

    @property
    def exit_actions(self) -> tuple[tuple[str, str], ...]:
        ways = (("stop_all", "stops all"), *super().exit_actions)
        if self.state.source.live:
            return (("stop", "stops the cell"), *ways)
        return ways

    @property
    def situation(self) -> Situation:
        return Situation(has_text=True, typing="a filter" if self._filtering else None, refusals=self._refusals())

    def _key_bar_actions(self) -> list[tuple[Action, bool]]:
        offered = super()._key_bar_actions()
        if self.state.source.live:
            return offered
        return [each for each in offered if each[0].id not in _LIVE_ACTIONS]

    def _refusals(self) -> dict[str, str]:
        state, key = self.state, self.state.key
        why: dict[str, str] = {}
        nothing = state.why_no_cells
        if key is None:
            why |= dict.fromkeys(("open", "mark", "run", "stop", "base", "sort"), nothing or "there is no case here")
            why |= dict.fromkeys(("run_all", "run_errors", "repeats"), nothing or "no case is shown")
        else:
            cell_state = state.at(key)
            if cell_state.stage == "not run":
                text = "this case has not run on this model"
                if state.source.live:
                    text += unless_read_only("; r runs it")
                why |= dict.fromkeys(("open", "mark"), text)
            elif cell_state.stage == "to come" and cell_state.cell is None:
                why |= dict.fromkeys(("open", "mark"), "this run has not started yet")
            if cell_state.stage in UNFINISHED:
                why["run"] = f"this cell is running; {key_for('compare.stop')} stops it"
            else:
                why["stop"] = "this cell is not running"
        if not self._book.progress().is_active:
            why["stop_all"] = "nothing is running"
        if nothing is not None:
            why["pair"] = nothing
        elif len(state.models) < 2:
            why["pair"] = "there is only one model"
            if state.source.live:
                why["pair"] += unless_read_only(f"; {key_for('compare.models')} chooses more")
        elif state.model == state.base:
            why["pair"] = (
                "this column is the base: put the cursor on the one to compare with it, "
                f"or {key_for('compare.base')} on another"
            )
        if state.source.live:
            why["reload"] = "these runs are shown as they progress"
        refused = {f"compare.{name}": text for name, text in why.items()}
        if not state.source.live:
            why_not = f"no batch of the history can be run here: {key_for('history.resume')} in the history resumes it"
            refused |= dict.fromkeys(_LIVE_ACTIONS, why_not)
        return refused

    @action("f5 ctrl+r", "Reload the batch from the history")
    def do_reload(self) -> None:
        """Reload a batch of the history. Live runs have nothing to reload."""

    @action("left", "Column to the left")
    def do_left(self) -> None:
        self.table.move_column(self.state.column - 1)

    @action("right", "Column to the right")
    def do_right(self) -> None:
        self.table.move_column(self.state.column + 1)

    @action("o", "Switch the column's sorting", label="sort")
    def do_sort(self) -> None:
        """Sort by the selected column, worst first. A second call reverses the order, and a third ends sorting."""
        self.state.sort()
        self._show_state()

    @action(".", "Show only differing cases, or all", label="differences")
    def do_differences(self) -> None:
        self.state.show_differences(not self.state.only_differences)
        self._show_state()

    @action("z", "Zoom: hide or show the totals", label="totals")
    def do_totals(self) -> None:
        self._shows_totals = not self._shows_totals
        self._update_totals()
        self._show_state()

    @action("space", "Mark the cell; two are shown side by side", label="mark")
    def do_mark(self) -> None:
        """Mark or unmark the selected cell. Show two marked cells side by side."""
        both = self.state.mark()
        self._show_state()
        if both is not None:
            self._show_pair(self, *both)
        elif self.state.marked is not None:
            self.announce("Marked: space on another cell shows both side by side")

    @action("y", "Copy everything as Markdown", label="copy")
    def do_copy(self) -> None:
        state = self.state
        # The data is copied here, in the event loop, because the state may change while the thread writes the text.
        models, only = state.models, state.only_differences
        cells, names, gates = state.all_cells(), state.suite_names, state.source.gates()
        filtered: Filtered | None = None
        if words := state.filter.strip():
            filtered = Filtered(words, frozenset(case.key for case in state.cases_shown))

        async def copy() -> None:
            from workbench.show.markdown import document

            def written() -> str:
                found = compare_cells(cells, models, names, gates, state.source.watched())
                return document(comparison_view(found, only_differences=only, filtered=filtered))

            text = await in_background(written)
            self.workbench.copy(text, "the comparison", self.announce)

        # Exclusive work cancels other work of its group. The copy has its own group, so it does not cancel the opening
        # of a run.
        self.workbench.work(copy(), "compare_copy", exclusive=True)

    @action("*", "Set or clear the base column", label="base")
    def do_base(self) -> None:
        self.state.make_base()
        self._show_state()

    @action("tab shift+tab", "Go to the totals, or back")
    def do_other(self) -> None:
        if self.focused is self.table and self._totals.display:
            self.set_focus(self._totals)
        else:
            self.set_focus(self.table)

    def _focus_list(self) -> None:
        self.set_focus(self.table)

    @action("esc", "Leave the filter, the mark or the screen", label="back")
    def do_back(self) -> None:
        """End the filter, or return to the table, or remove the mark, or close the screen: the first that applies."""
        if self._filtering or self.state.filter:
            self._close_filter(keep=False)
        elif self.focused is not self.table:
            self.set_focus(self.table)
        elif self.state.marked is not None:
            self.state.marked = None
            self._show_state()
        else:
            self.dismiss()


class Comparison:
    """Opens the comparison of the selected suite or folder. Keeps cursor, filter and sorting for the next opening."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        self._last: tuple[str, CompareState, ComparedTotals] | None = None

    def open(self) -> None:
        selection = self._app.selection
        suites, place = selection.suites_below()
        paths = {suite.path for suite in suites}
        if self._last is not None and self._last[0] == place:
            # While the screen was closed, it received no events. Update the cells that were active then. The screen
            # updates the rest.
            _, state, totals = self._last
            state.update_cases(dict.fromkeys(key[:2] for key in state.active))
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
        self._app.show(CompareScreen(self._app, state, place, totals))

    @property
    def last_batch(self) -> int | None:
        """The number of the last batch that compared all chosen models on the selected suites.

        `None` if there is no such batch, or if a case ran in this session."""
        book, remembered = self._app.selection.book, self._app.selection.tree.remembered
        models: dict[int, set[str]] = {}
        for suite in self._app.selection.suites_below()[0]:
            for outline in suite.run_cases:
                case = suite.path, outline.key
                if book.has_runs(case):
                    return None
                last = remembered.of(case)
                for run in last.runs if last is not None else ():
                    models.setdefault(run.batch, set()).add(run.model)
        chosen = set(self._app.selection.models)
        compared = [
            number for number, names in models.items() if len(names) > 1 and chosen <= {*map(model_of, names), *names}
        ]
        return max(compared, default=None)


class StartComparison:
    """The comparison that the app shows at its start. `start` selects its cases from all open suites."""

    def __init__(self, app: Workbench, start: AppStart) -> None:
        selection = app.selection

        def takes(case: ComparedCase) -> bool:
            return start.options.selection.includes_case(case.case_id, case.tags)

        self._app = app
        self._source = LiveRuns(
            selection.book,
            lambda: selection.open_suites.suites,
            lambda: selection.models,
            takes,
            lambda: selection.variants,
        )
        self._state = CompareState(self._source)
        self._state.show_differences(start.only_differences)

    def open(self) -> None:
        self._app.show(CompareScreen(self._app, self._state, self._app.open_suites.workspace.place))

    def report(self, on_leave: LeaveCallback) -> None:
        """If there are results, call `on_leave` with them and with the numbers of the batches that are incomplete."""
        state, runner = self._state, self._app.services.runner
        state.read()
        cells = state.all_cells()
        # Unlike a set, a dict keeps the order of the batches.
        missing: dict[str, None] = {}
        for key in state.keys:
            for run in self._source.records(key):
                if run.figures is None or run.status == Status.STOPPED:
                    missing[run.batch] = None
        numbers = [number for batch in missing if (number := runner.batch_number(batch)) is not None]
        if cells:
            on_leave(compare_cells(cells, state.models, state.suite_names, self._source.gates()), numbers)
