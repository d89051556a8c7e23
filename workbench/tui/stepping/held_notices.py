"""Runs that are held out of sight: said once, with the key that goes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.reports.values import counted
from workbench.reports.visible import one_line
from workbench.trajectory.events import Paused
from workbench.tui.lines.glyphs import GLYPHS
from workbench.tui.run_book.record import RunRecord
from workbench.tui.shell.registry import BY_ID

if TYPE_CHECKING:
    from workbench.tui.shell.workbench import Workbench


class HeldRuns:
    """Looks for runs that are held and not shown, whenever there is news of runs or the main screen is shown again."""

    def __init__(self, app: Workbench, *, goes_to_first: bool = False) -> None:
        self._app = app
        self._goes_to_first = goes_to_first
        """Whether the first run that is held is gone to, and not only told."""
        self._told: dict[str, Paused] = {}
        """Where each run was held when that was said, or seen."""

    def look(self) -> None:
        """Say which runs have come to be held out of sight."""
        main = self._app.main
        held = main.book.held_runs
        if not held and not self._told and not self._goes_to_first:
            return
        if self._app.screen is not main:
            return  # it would not be read; there is another look once nothing covers the screen
        if self._goes_to_first:
            self._go_to_first(held)
        fresh = [run for run in held if self._told.get(run.run_id) is not run.paused]
        self._told = {run.run_id: run.paused for run in held if run.paused is not None}
        shown = main.run_shown if "run" in main.panes_in_sight else None
        unseen = [run for run in fresh if run is not shown]
        if unseen:
            keys = self._app.keymap.names(BY_ID["step.held"])
            who = _where(unseen[0]) if len(unseen) == 1 else f"{counted(len(held), 'run')} are held"
            way = f"{keys} goes there" if keys else "'Go to the run that is held' is among all commands"
            main.announce(f"{who}; {way}", "warned", GLYPHS.held)

    def _go_to_first(self, held: list[RunRecord]) -> None:
        main = self._app.main
        if held:
            from workbench.tui.tree.selection import go_to_run

            self._goes_to_first = False
            go_to_run(main.selection, main, self._app, held[0])
        elif main.book.endings and not main.book.under_way():
            self._goes_to_first = False
            main.announce("No run was held: there was nothing at which a breakpoint holds", "warned", GLYPHS.warned)


def _where(run: RunRecord) -> str:
    paused = run.paused
    at = {"request": "before a request", "call": "before a call", "result": "after a result"}
    where = at.get(paused.at, "") if paused is not None else ""
    why = f": {one_line(paused.why)}" if paused is not None and paused.why != "step by step" else ""
    return f"{one_line(run.case_name)} is held {where}{why}"
