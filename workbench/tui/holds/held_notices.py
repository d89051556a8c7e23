"""Notices about held runs that are not visible. Each notice names the key that goes to the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.numerals import counted
from workbench.show.glyphs import GLYPHS
from workbench.show.visible import one_line
from workbench.trajectory.events import Paused
from workbench.tui.kit.actions import HOLD_PLACES
from workbench.tui.run_book.record import RunRecord
from workbench.tui.tree.selection import Selection, go_to_run

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench


class HeldNotices:
    """Announces held runs that are not displayed. Each hold is announced once."""

    def __init__(
        self,
        app: Workbench,
        selection: Selection,
        panes: MainScreen,
        key_name: Callable[[str], str],
        *,
        goes_to_first: bool,
    ) -> None:
        self._app = app
        self._selection = selection
        self._book = selection.book
        self._panes = panes
        self._key_name = key_name
        """Returns the names of an action's keys, "" without a key."""
        self._goes_to_first = goes_to_first
        """Whether to go to the first held run instead of announcing it, as after a start with a breakpoint."""
        self._announced: dict[str, Paused] = {}
        """The last announced or displayed hold of each run, by run id."""

    def show_pending(self) -> None:
        """Announce newly held runs that are not visible."""
        held = self._book.held_runs
        if not held and not self._announced and not self._goes_to_first:
            return
        if not self._app.shows_main:
            # A notice would not be visible now. The main screen calls `show_pending` again when it is shown.
            return
        if self._goes_to_first:
            self._go_to_first(held)
        shown = self._selection.run if "run" in self._panes.visible_panes else None
        unseen = []
        for run in held:
            # Each hold of a run is a new object, so the identity of the object shows whether the hold was announced.
            if run is not shown and self._announced.get(run.run_id) is not run.paused:
                unseen.append(run)
        self._announced = {run.run_id: run.paused for run in held if run.paused is not None}
        if unseen:
            who = _position_text(unseen[0]) if len(unseen) == 1 else f"{counted(len(held), 'run')} are held"
            keys = self._key_name("step.held")
            way = f"{keys} goes there" if keys else "'Go to the held run' is among all commands"
            self._app.announce(f"{who}; {way}", "warned", GLYPHS.held)

    def _go_to_first(self, held_runs: list[RunRecord]) -> None:
        if held_runs:
            self._goes_to_first = False
            go_to_run(self._selection, self._panes, self._app, held_runs[0])
        elif self._book.endings and not self._book.active_runs():
            self._goes_to_first = False
            self._app.announce("No run was held: no breakpoint was reached", "warned", GLYPHS.warned)


def _position_text(run: RunRecord) -> str:
    name, paused = one_line(run.case_name), run.paused
    if paused is None:
        return f"{name} is held "
    text = f"{name} is held {HOLD_PLACES.get(paused.at, '')}"
    if paused.why != "step by step":
        text += f": {one_line(paused.why)}"
    return text
