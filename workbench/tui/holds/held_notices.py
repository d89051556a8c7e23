"""Notices about held runs that are not visible, shown once each, with the key that goes there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.trajectory.events import Paused
from workbench.tui.run_book.record import RunRecord
from workbench.tui.tree.selection import Selection, go_to_run

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class HeldNotices:
    """Checks for held runs that are not displayed, on news of runs and when the main screen is shown."""

    def __init__(
        self,
        stage: Workbench,
        selection: Selection,
        panes: MainScreen,
        key_name: Callable[[str], str],
        *,
        goes_to_first: bool = False,
    ) -> None:
        self._stage = stage
        self._selection = selection
        self._book = selection.book
        self._panes = panes
        self._key_name = key_name
        """Returns the names of an action's keys, empty if it has none."""
        self._goes_to_first = goes_to_first
        """Whether to go to the first held run, not only announce it."""
        self._told: dict[str, Paused] = {}
        """The hold of each run that was announced or seen."""

    def look(self) -> None:
        """Announce runs that are newly held and not visible."""
        held = self._book.held_runs
        if not held and not self._told and not self._goes_to_first:
            return
        if not self._stage.shows_main:
            return  # the notice would not be seen; this is repeated when the main screen is shown
        if self._goes_to_first:
            self._go_to_first(held)
        fresh = []
        for run in held:
            if self._told.get(run.run_id) is not run.paused:
                fresh.append(run)
        self._told = {run.run_id: run.paused for run in held if run.paused is not None}
        shown = self._selection.run if "run" in self._panes.panes_in_sight else None
        unseen = [run for run in fresh if run is not shown]
        if unseen:
            keys = self._key_name("step.held")
            who = _where(unseen[0]) if len(unseen) == 1 else f"{counted(len(held), 'run')} are held"
            way = f"{keys} goes there" if keys else "'Go to the run that is held' is among all commands"
            self._stage.announce(f"{who}; {way}", "warned", GLYPHS.held)

    def _go_to_first(self, held: list[RunRecord]) -> None:
        if held:
            self._goes_to_first = False
            go_to_run(self._selection, self._panes, self._stage, held[0])
        elif self._book.endings and not self._book.under_way():
            self._goes_to_first = False
            self._stage.announce("No run was held: no breakpoint was reached", "warned", GLYPHS.warned)


def _where(run: RunRecord) -> str:
    paused = run.paused
    at = {"request": "before a request", "call": "before a call", "result": "after a result"}
    where = at.get(paused.at, "") if paused is not None else ""
    why = f": {one_line(paused.why)}" if paused is not None and paused.why != "step by step" else ""
    return f"{one_line(run.case_name)} is held {where}{why}"
