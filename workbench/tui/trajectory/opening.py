"""The screens of one run and of two: what their keys do, and putting two runs of a case side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.kit.background import push_from
from workbench.tui.kit.copying import copy_text
from workbench.tui.kit.side_screen import on_beside

if TYPE_CHECKING:
    from workbench.tui.shell.main_screen import MainScreen
    from workbench.tui.shell.workbench import Workbench
    from workbench.tui.trajectory.screen import TrajectoryScreen
    from workbench.tui.two_runs.screen import PairScreen


class TrajectoryCommands:
    """The methods of `actions.trajectory` and `actions.pair`. The screens are imported when they are first opened."""

    def __init__(self, app: Workbench) -> None:
        self._app = app
        of_run: dict[str, Callable[[TrajectoryScreen], object]] = {
            "expand": lambda shown: shown.run.run_list.toggle(),
            "find": lambda shown: shown.run.search(),
            "find_next": lambda shown: shown.run.find(1),
            "grades": lambda shown: shown.open_grades(),
            "copy": lambda shown: copy_text(app, *shown.text_to_copy(), shown.announce),
            "save": lambda shown: app.run_saver.save_soon(shown.record, shown.announce),
            "back": lambda shown: shown.back(),
        }
        of_pair: dict[str, Callable[[PairScreen], object]] = {
            "next": lambda pair: pair.to_difference(1),
            "previous": lambda pair: pair.to_difference(-1),
            "expand": lambda pair: pair.fold(None),
            "unfold": lambda pair: pair.fold(False),
            "fold": lambda pair: pair.fold(True),
            "copy": lambda pair: copy_text(app, pair.text, "the comparison", pair.announce),
            "first": lambda pair: pair.open_run(0),
            "second": lambda pair: pair.open_run(1),
            "layout": lambda pair: pair.turn(),
            "back": lambda pair: pair.dismiss(),
        }
        self.methods: dict[str, Callable[[MainScreen], object]] = {
            "run.pair": self._pair,
            **on_beside(app, "trajectory", of_run),
            **on_beside(app, "pair", of_pair),
        }

    def _pair(self, screen: MainScreen) -> None:
        """Put the run shown beside the one that it was forked from, or else beside the next one of the case."""
        runs, shown = screen.runs_shown, screen.run_shown
        if shown is None or len(runs) < 2:
            return
        next_one = runs[(screen.selection.chosen_run + 1) % len(runs)]
        beside = next((run for run in runs if run is shown.origin), next_one)
        left, right = sorted((shown, beside), key=runs.index)

        async def show() -> None:
            from workbench.tui.two_runs.screen import PairScreen, beside_each_other

            state = await beside_each_other(left, right)
            push_from(self._app, screen, PairScreen(self._app, state))

        self._app.run_worker(show(), group="pair", exclusive=True)
