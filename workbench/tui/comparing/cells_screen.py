"""The actions on cells of a comparison: running them, and showing their runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual import on
from textual.app import ComposeResult

from workbench.analysis.comparison import Cell
from workbench.analysis.estimate import Estimate, estimate
from workbench.numerals import counted, duration_text, score_text
from workbench.providers.built_in import is_built_in
from workbench.reports.values import estimate_text
from workbench.show.glyphs import GLYPHS, STATUS_SIGNS
from workbench.show.visible import one_line
from workbench.tui.comparing.again import AgainScreen
from workbench.tui.comparing.sources import to_look_at
from workbench.tui.comparing.state import CompareState
from workbench.tui.kit.dialogs import ChooseLines, Dialog, Option, keys_line
from workbench.tui.kit.side_screen import FilterScreen, SideScreen
from workbench.tui.kit.stage import Announce, Stage
from workbench.tui.runs.dialogs import RepeatsScreen

if TYPE_CHECKING:
    from workbench.analysis.comparison import CellKey
    from workbench.grading.run_summary import RunSummary


class RepeatChoiceScreen(Dialog[int]):
    """Asks for a repeat, also one of those under way, which are at `going`: the first of these is preselected, else the
    deciding one."""

    TITLE_LINE: ClassVar[str] = "Which run?"
    DEFAULT_CSS = "RepeatChoiceScreen #repeats { max-height: 16; }"

    def __init__(self, cell: Cell, going: Sequence[int]) -> None:
        super().__init__(keys_line(("Enter", "show"), ("Esc", "leave")))
        options = {
            run.repeat: Option(
                f"{run.repeat + 1:>3}  {STATUS_SIGNS[run.status][0]} {run.status:<8} {score_text(run.score, ''):>4}",
                f"{duration_text(run.limited_ms) if run.limited_ms else '–':>8}  {one_line(run.reason or '')}",
            )
            for run in cell.runs
        }
        options |= {
            repeat: Option(f"{repeat + 1:>3}  {GLYPHS.running} running", "")
            for repeat in going
            if repeat not in options
        }
        self._repeats = sorted(options)
        self._options = [options[repeat] for repeat in self._repeats]
        self._first = self._repeats.index(min(going, default=to_look_at(cell.runs)))

    def body(self) -> ComposeResult:
        yield ChooseLines(self._options, self._first, widget_id="repeats")

    def on_mount(self) -> None:
        repeats = self.query_one("#repeats", ChooseLines)
        self.set_focus(repeats)
        self.call_after_refresh(repeats.move_cursor, self._first)

    @on(ChooseLines.Chosen)
    def _chosen(self, event: ChooseLines.Chosen) -> None:
        self.dismiss(self._repeats[event.index])


class CompareWays(Protocol):
    """What a comparison needs from the rest of the app."""

    def run(self, cells: Sequence[CellKey], repeats: int | None, announce: Announce) -> None:
        """Run cells, `repeats` times if given. Announces why some are not run."""
        ...

    def before(self, cell: CellKey) -> Sequence[RunSummary]:
        """Return the last runs of a cell in the history, before this session."""
        ...

    def stop(self, cell: CellKey) -> None:
        """Stop the runs of one cell."""
        ...

    def stop_all(self) -> None:
        """Stop every run."""
        ...

    def choose_models(self, taken: Callable[[], object]) -> None:
        """Ask for the models to run on. `taken` is called if the selection changed."""
        ...

    def show_run(self, shown: CellsScreen, key: CellKey, repeat: int | None) -> None:
        """Show one run of a cell."""
        ...

    def show_two(self, shown: CellsScreen, over: SideScreen[None], one: CellKey, other: CellKey) -> None:
        """Show the runs of two cells side by side, above a screen."""
        ...

    def show_tests(self, shown: CellsScreen) -> None:
        """Show the paired tests of the column against the base."""
        ...

    def show_over_time(self, shown: CellsScreen) -> None:
        """Show the case of the row over time."""
        ...


class CellsScreen(FilterScreen[None]):
    """The keys for cells. `place` is what is compared: a suite, a folder, a batch."""

    def __init__(self, stage: Stage, state: CompareState, place: str, ways: CompareWays) -> None:
        super().__init__(stage)
        self.state: CompareState = state
        self.place = place
        self._ways = ways
        self._asked_again = False
        """Whether the last key was answered with a notice that everything has run."""

    def follow(self) -> None:
        """Show the current columns and cells."""
        raise NotImplementedError

    def action_do(self, action_id: str) -> None:
        if action_id != "compare.run_all":
            self._asked_again = False
        super().action_do(action_id)

    # Showing runs

    def do_open(self) -> None:
        """Show the run of the cell. If it has several, ask which."""
        key = self.state.key
        if key is None:
            return
        standing = self.state.at(key)
        cell = standing.cell if not standing.before else None
        going = self.state.source.going(key)
        if cell is None or len({*going, *(run.repeat for run in cell.runs)}) == 1:
            self._ways.show_run(self, key, None)
            return

        def show(repeat: int | None) -> None:
            if repeat is not None:
                self._ways.show_run(self, key, repeat)

        self.stage.show(RepeatChoiceScreen(cell, going), show)

    def do_timeline(self) -> None:
        """Show the case over time."""
        self._ways.show_over_time(self)

    def do_pair(self) -> None:
        """Test whether the column is better than the base."""
        self._ways.show_tests(self)

    # Runs

    def do_run(self) -> None:
        """Run the selected cell."""
        if (key := self.state.key) is not None:
            self._run([key])

    def do_run_errors(self) -> None:
        """Run the displayed cells again that ended in an error."""
        state = self.state
        wanted = [key for key in state.planned() if state.at(key).is_in_error]
        if wanted:
            self._run(wanted)
        else:
            self.announce("No cell that is shown ended in an error")

    def _run(
        self, cells: Sequence[CellKey], times: int | None = None, *, then: Callable[[], object] | None = None
    ) -> None:
        """Run cells as often as they ran before, or so many `times`, and do something after that. If some of them ran
        before and that costs money, ask first."""
        estimated, again = self._estimate(cells, times)
        if again and estimated.cost_usd:

            def take(answer: str | None) -> None:
                if answer == "run":
                    self._run_now(cells, times, then)

            self.stage.show(AgainScreen(again, estimated), take)
        else:
            self._run_now(cells, times, then)

    def _run_now(self, cells: Sequence[CellKey], times: int | None, then: Callable[[], object] | None) -> None:
        by_repeats: dict[int | None, list[CellKey]] = {}
        for key in cells:
            by_repeats.setdefault(times or self.state.repeats(key), []).append(key)
        for repeats, keys in by_repeats.items():
            self._ways.run(keys, repeats, self.announce)
        if then is not None:
            then()

    def _estimate(self, cells: Sequence[CellKey], times: int | None = None) -> tuple[Estimate, int]:
        """Return what running cells will probably take, and how many of them ran before, in this session or not."""
        state = self.state
        known = {
            case.on(model): cell.runs if (cell := state.at(case.on(model)).cell) else self._ways.before(case.on(model))
            for case in state.cases
            for model in {key[2] for key in cells}
        }
        planned = [(key, times or state.repeats(key) or len(known[key]) or 1) for key in cells]
        return estimate(planned, known, is_free=is_built_in), sum(bool(known[key]) for key in cells)

    def do_run_all(self) -> None:
        """Run what is missing of the displayed cells. With nothing missing, a second press runs all again."""
        state = self.state
        planned = state.planned()
        missing = [key for key in planned if state.at(key).is_missing]
        over = [key for key in planned if state.at(key).stage == "done"]
        wanted = missing or over
        if not missing and not over:
            self.announce("Nothing is left to run: the rest is running" if planned else "No model is chosen: m chooses")
            return
        if not missing and not self._asked_again:
            self._asked_again = True
            runs = sum(state.at(key).planned for key in over)
            finished = f"All {runs:,} runs are finished" if runs > 1 else "The run is finished"
            errors = sum(state.at(key).is_in_error for key in over)
            only = f"; F reruns the {counted(errors, 'cell')} in error" if 0 < errors < len(over) else ""
            took = estimate_text(self._estimate(over)[0])
            text = f"{finished}. Press R again to rerun {'them all' if runs > 1 else 'it'} ({took}){only}"
            self.announce(text, "warned", GLYPHS.warned)
            return
        self._asked_again = False

        def tell() -> None:
            if missing and len(missing) < len(planned):
                self.announce(f"Running the {counted(len(missing), 'cell')} without a finished run")

        self._run(wanted, then=tell)

    def do_repeats(self) -> None:
        """Run all displayed cells several times."""
        cells = self.state.planned()

        def run(times: int | None) -> None:
            if times is not None:
                self._run(cells, times)

        self.stage.show(RepeatsScreen(counted(len(self.state.cases_shown), "case")), run)

    def do_models(self) -> None:
        """Select models."""
        self._ways.choose_models(self.follow)

    def do_stop(self) -> None:
        """Stop the runs of the cell."""
        if (key := self.state.key) is not None:
            self._ways.stop(key)

    def do_stop_all(self) -> None:
        """Stop all runs."""
        self._ways.stop_all()
